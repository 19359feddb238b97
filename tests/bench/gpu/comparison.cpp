#include "tests/bench/gpu/comparison.h"

#include <algorithm>

namespace tuner {

namespace {

constexpr size_t kFewestRounds = 5;  // below these a median says little
constexpr int kOurs = 0, kPeer = 1;  // of the contestants

}  // namespace

int fastest_candidate(const PackFile& pack, const PackResults* results, size_t task) {
  if (results == nullptr) return 0;
  int best = -1;
  bool any_known = false;
  std::pair<size_t, double> best_rank;  // rounds it took part in, more first; then time
  for (size_t c = 0; c < pack.pack().tasks[task].candidates.size(); ++c) {
    const PackOutcome* last = nullptr;
    size_t rounds = 0;
    bool failed_once = false;
    for (size_t round = 0; round < pack.pack().plan.rounds.size(); ++round) {
      const PackOutcome* outcome = results->find(task, c, round);
      if (outcome == nullptr) continue;
      failed_once = failed_once || !outcome->ok;
      last = outcome;
      ++rounds;
    }
    any_known = any_known || last != nullptr;
    if (last == nullptr || failed_once) continue;
    const bool better = best < 0 || rounds > best_rank.first ||
                        (rounds == best_rank.first && last->time_ns < best_rank.second);
    if (better) best = static_cast<int>(c), best_rank = {rounds, last->time_ns};
  }
  return any_known ? best : 0;
}

Status Comparison::run(size_t task, int candidate, TaskReport& report) {
  const PackTask& t = pack_.pack().tasks[task];
  report.workload = t.workload_key;
  report.target = t.target;
  if (candidate < 0) {
    report.error = "every candidate that was measured failed: see the results of run-pack";
    return Status::ok();
  }
  report.template_name = t.candidates[candidate].template_name;
  report.config = t.candidates[candidate].config;
  const Status status = run_checked(task, candidate, report);
  if (!status) report.error = status.message();
  return status.code() == StatusCode::kUnavailable ? status : Status::ok();
}

Status Comparison::run_checked(size_t task, int candidate, TaskReport& report) {
  auto opened = DeviceCase::open(bench_, pack_, task, static_cast<size_t>(candidate), options_.caches);
  if (!opened.is_ok()) return opened.status();
  DeviceCase& ours = **opened;
  report.artifact = ours.digest();
  report.flops = ours.workload().flops();
  report.bytes = ours.workload().bytes();
  report.memory_bound = ours.workload().memory_bound();
  report.dtype = ours.workload().dtype();
  if (const auto* w = ours.workload().get_if<MatmulWorkload>()) report.allow_tf32 = w->allow_tf32;
  if (const auto* w = ours.workload().get_if<Conv2dWorkload>()) report.allow_tf32 = w->allow_tf32;
  report.sets = ours.sets();
  const auto call = [&ours](int set) { return ours.call(set); };
  ASSIGN_OR_RETURN(report.max_error, ours.check(call));
  std::vector<Contestant> contestants;
  contestants.push_back({.name = "ours", .call = call});
  InterleaveOptions interleaving = options_.interleave;
  interleaving.sets = ours.sets();
  RETURN_IF_ERROR(add_peer(bench_, libraries_, interleaving, ours, report.peer, contestants));
  RETURN_IF_ERROR(interleave(bench_, interleaving, contestants, report.states));
  // A race may have shown itself only in the many calls since.
  const Result<double> after = ours.check(call);
  if (!after.is_ok()) return after.status().with_context("right before timing and not after it: ");
  report.max_error = std::max(report.max_error, *after);
  if (contestants[kOurs].ns.size() < std::min<size_t>(kFewestRounds, interleaving.rounds))
    return failed("not measured: the deadline is reached after ", contestants[kOurs].ns.size(), " rounds");
  summarise(contestants, report);
  return Status::ok();
}

void Comparison::summarise(std::vector<Contestant>& contestants, TaskReport& report) const {
  report.calls = contestants[kOurs].calls;
  report.ns = std::move(contestants[kOurs].ns);
  report.time_ns = median_interval(report.ns, options_.seed);
  if (contestants.size() <= kPeer) return;
  report.peer.ns = std::move(contestants[kPeer].ns);
  report.peer.time_ns = median_interval(report.peer.ns, options_.seed);
  report.peer.ratio = ratio_interval(report.peer.ns, report.ns, options_.seed);
}

}  // namespace tuner
