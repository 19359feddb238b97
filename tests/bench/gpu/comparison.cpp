#include "tests/bench/gpu/comparison.h"

#include <algorithm>

namespace tuner {

namespace {

constexpr size_t kFewestRounds = 5;     // below these a median says little
constexpr int kRoundsToChoose = 3;      // which of several kernels is held against the peer
constexpr int kRoundsOneByOne = 5;      // of calls that are not recorded, beside those that are
constexpr size_t kOurs = 0, kPeer = 1;  // of the contestants

}  // namespace

std::vector<size_t> fastest_candidates(const PackFile& pack, const PackResults* results, size_t task,
                                       size_t most) {
  struct Known {
    size_t candidate = 0, rounds = 0;
    double ns = 0;
  };
  std::vector<Known> right;
  bool any_known = false;
  const size_t count = pack.pack().tasks[task].candidates.size();
  for (size_t c = 0; c < count && results != nullptr; ++c) {
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
    if (last != nullptr && !failed_once) right.push_back({c, rounds, last->time_ns});
  }
  if (!any_known)
    for (size_t c = 0; c < count; ++c) right.push_back({.candidate = c});
  // More rounds first, then the time.
  std::ranges::stable_sort(right, [](const Known& a, const Known& b) {
    return std::pair(b.rounds, a.ns) < std::pair(a.rounds, b.ns);
  });
  std::vector<size_t> best;
  for (size_t i = 0; i < std::min(most, right.size()); ++i) best.push_back(right[i].candidate);
  return best;
}

Status Comparison::run(size_t task, const std::vector<size_t>& candidates, double peer_seconds,
                       TaskReport& report) {
  peer_seconds_ = peer_seconds;
  const PackTask& t = pack_.pack().tasks[task];
  report.workload = t.workload_key;
  report.target = t.target;
  if (candidates.empty()) {
    report.error = "every candidate that was measured failed: see the results of run-pack";
    return Status::ok();
  }
  report.template_name = t.candidates[candidates.front()].template_name;
  report.config = t.candidates[candidates.front()].config;
  const Status status = run_checked(task, candidates, report);
  if (!status) report.error = status.message();
  return status.code() == StatusCode::kUnavailable ? status : Status::ok();
}

Status Comparison::open(size_t task, size_t candidate, std::vector<Kernel>& kernels) const {
  auto opened = DeviceCase::open(bench_, pack_, task, candidate, options_.caches);
  if (!opened.is_ok()) return opened.status();
  Kernel kernel{.candidate = candidate, .operands = *std::move(opened)};
  ASSIGN_OR_RETURN(kernel.max_error, kernel.operands->check([&kernel](int set) { return kernel.call(set); }));
  ASSIGN_OR_RETURN(kernel.output, kernel.operands->output_sha256());
  kernels.push_back(std::move(kernel));
  return Status::ok();
}

OtherReport Comparison::report_of(size_t task, size_t candidate) const {
  const PackCandidate& c = pack_.pack().tasks[task].candidates[candidate];
  return {.template_name = c.template_name, .config = c.config, .artifact = c.artifact.manifest.digest};
}

// Puts the fastest in front.
Status Comparison::choose(std::vector<Kernel>& kernels) const {
  if (kernels.size() < 2 || options_.interleave.rounds == 0) return Status::ok();
  std::vector<Contestant> racers;
  for (const Kernel& k : kernels)
    racers.push_back({.name = "ours", .call = [&k](int set) { return k.call(set); }});
  InterleaveOptions race = options_.interleave;
  race.rounds = kRoundsToChoose;
  race.sets = kernels.front().operands->sets();
  const Status recorded = record_graphs(bench_, race, racers);
  if (recorded.code() == StatusCode::kUnavailable) return recorded;
  std::vector<std::string> states;
  RETURN_IF_ERROR(interleave(bench_, race, racers, states));
  size_t fastest = 0;
  for (size_t i = 1; i < racers.size(); ++i)
    if (!racers[i].ns.empty() && median(racers[i].ns) < median(racers[fastest].ns)) fastest = i;
  std::swap(kernels.front(), kernels[fastest]);
  return Status::ok();
}

Status Comparison::run_checked(size_t task, const std::vector<size_t>& candidates, TaskReport& report) {
  std::vector<Kernel> kernels;
  for (const size_t candidate : candidates) {
    const Status opened = open(task, candidate, kernels);
    if (opened) continue;
    if (opened.code() == StatusCode::kUnavailable || candidates.size() == 1) return opened;
    report.others.push_back(report_of(task, candidate));
    report.others.back().error = opened.message();
  }
  if (kernels.empty()) return failed("not one of ", candidates.size(), " kernels is right");
  RETURN_IF_ERROR(choose(kernels));
  const Kernel& ours = kernels.front();
  const Workload& workload = ours.operands->workload();
  const OtherReport chosen = report_of(task, ours.candidate);
  report.template_name = chosen.template_name;
  report.config = chosen.config;
  report.artifact = ours.operands->digest();
  report.flops = workload.flops();
  report.bytes = workload.bytes();
  report.memory_bound = workload.memory_bound();
  report.dtype = workload.dtype();
  if (const auto* w = workload.get_if<MatmulWorkload>()) report.allow_tf32 = w->allow_tf32;
  if (const auto* w = workload.get_if<Conv2dWorkload>()) report.allow_tf32 = w->allow_tf32;
  report.sets = ours.operands->sets();
  report.output = ours.output;
  return time(task, kernels, report);
}

// Ours first, then the peer where there is one and what is told beside it, then the others.
Status Comparison::time(size_t task, std::vector<Kernel>& kernels, TaskReport& report) const {
  Kernel& ours = kernels.front();
  std::vector<Contestant> contestants;
  for (const Kernel& k : kernels)
    contestants.push_back({.name = "ours", .call = [&k](int set) { return k.call(set); }});
  std::vector<Contestant> others(std::make_move_iterator(contestants.begin() + 1),
                                 std::make_move_iterator(contestants.end()));
  contestants.resize(1);
  InterleaveOptions interleaving = options_.interleave;
  interleaving.sets = ours.operands->sets();
  const PeerOptions how{.interleave = interleaving, .seconds = std::max(peer_seconds_, 0.0)};
  RETURN_IF_ERROR(add_peer(bench_, libraries_, how, *ours.operands, report.peer, contestants));
  const bool has_peer = contestants.size() > kPeer;
  std::ranges::move(others, std::back_inserter(contestants));
  if (interleaving.rounds > 0) {
    const Status recorded = record_graphs(bench_, interleaving, contestants);
    if (recorded.code() == StatusCode::kUnavailable) return recorded;
    report.one_by_one = recorded.message();
    RETURN_IF_ERROR(interleave(bench_, interleaving, contestants, report.states));
    if (recorded) RETURN_IF_ERROR(time_one_by_one(contestants, has_peer, report));
  }
  for (Kernel& k : kernels) {
    OtherReport other = report_of(task, k.candidate);
    other.max_error = k.max_error;
    // A race may have shown itself only in the many calls since.
    const Result<double> after =
        interleaving.rounds > 0 ? k.operands->check([&k](int set) { return k.call(set); }) : k.max_error;
    if (after.status().code() == StatusCode::kUnavailable) return after.status();
    const Status right = after.status().with_context("right before timing and not after it: ");
    if (!right && &k == &ours) return right;
    if (!right) other.error = right.message();
    if (right) other.max_error = std::max(other.max_error, *after);
    if (&k == &ours)
      report.max_error = other.max_error;
    else
      report.others.push_back(std::move(other));
  }
  if (contestants[kOurs].ns.size() < std::min<size_t>(kFewestRounds, interleaving.rounds))
    return failed("not measured: the deadline is reached after ", contestants[kOurs].ns.size(), " rounds");
  summarise(contestants, has_peer, report);
  return Status::ok();
}

// Ours and the peer once more, each call queued by the host: what a program pays that records nothing.
Status Comparison::time_one_by_one(const std::vector<Contestant>& contestants, bool has_peer,
                                   TaskReport& report) const {
  std::vector<Contestant> plain(has_peer ? 2 : 1);
  for (size_t i = 0; i < plain.size(); ++i) {
    plain[i].name = contestants[i].name;
    plain[i].call = contestants[i].call;
  }
  InterleaveOptions rounds = options_.interleave;
  rounds.rounds = std::min(rounds.rounds, kRoundsOneByOne);
  rounds.sets = report.sets;
  std::vector<std::string> states;
  RETURN_IF_ERROR(interleave(bench_, rounds, plain, states));
  if (plain[kOurs].ns.empty()) return Status::ok();
  report.plain_ns = plain[kOurs].ns;
  report.plain_time_ns = median_interval(report.plain_ns, options_.seed);
  if (!has_peer) return Status::ok();
  report.peer.plain = {.ns = plain[kPeer].ns,
                       .time_ns = median_interval(plain[kPeer].ns, options_.seed),
                       .ratio = ratio_interval(plain[kPeer].ns, report.plain_ns, options_.seed)};
  return Status::ok();
}

void Comparison::summarise(std::vector<Contestant>& contestants, bool has_peer, TaskReport& report) const {
  if (options_.interleave.rounds == 0) return;
  report.calls = contestants[kOurs].calls;
  report.ns = std::move(contestants[kOurs].ns);
  report.time_ns = median_interval(report.ns, options_.seed);
  // The last ones of the report, in the same order; those that were wrong from the start stand before them.
  const size_t beside = kPeer + 1, first = has_peer ? beside + report.peer.also.size() : kPeer,
               timed = contestants.size() - first;
  for (size_t i = 0; i < timed; ++i) {
    OtherReport& other = report.others[report.others.size() - timed + i];
    if (!other.error.empty()) continue;
    other.ns = std::move(contestants[first + i].ns);
    other.time_ns = median_interval(other.ns, options_.seed);
  }
  if (!has_peer) return;
  const auto timed_beside_ours = [&](Contestant& c) {
    Timed t{.ns = std::move(c.ns)};
    t.time_ns = median_interval(t.ns, options_.seed);
    t.ratio = ratio_interval(t.ns, report.ns, options_.seed);
    return t;
  };
  report.peer.timed = timed_beside_ours(contestants[kPeer]);
  for (size_t i = 0; i < report.peer.also.size(); ++i)
    report.peer.also[i].timed = timed_beside_ours(contestants[beside + i]);
}

}  // namespace tuner
