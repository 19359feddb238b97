#include "measure_server/runner/race.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <vector>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/base/clock.h"
#include "measure_server/runner/candidate_run.h"
#include "measure_server/runner/device_host.h"
#include "measure_server/runner/pulse.h"
#include "measure_server/runner/sentinel.h"

namespace tuner {

namespace {

// A neighbour's burst lasts tenths of a second; who disturbs for longer is a fact of this machine.
constexpr std::chrono::seconds kPatience{1};

// `children`: all the runner has, the candidates' own among them, so that the end of one does not take along
// the others.
Result<std::vector<std::unique_ptr<CandidateRun>>> start_all(int socket, SealedFiles& files, Jail& jail,
                                                             const RaceRequest& r,
                                                             std::vector<pid_t>& children) {
  std::vector<std::unique_ptr<CandidateRun>> runs;
  for (const RaceRequest::Candidate& c : r.candidates) {
    ASSIGN_OR_RETURN(Artifact artifact, load_artifact(r.base.artifact_dir, c.digest));
    if (DeviceHost::takes(artifact.manifest))
      return failed("artifact ", c.digest, " is for a GPU; only CPU candidates are raced");
    RunRequest request = r.base;
    request.digest = c.digest;
    request.check = c.check;
    auto run = std::make_unique<CandidateRun>(socket, files, jail, std::move(request), std::move(artifact),
                                              children);
    RETURN_IF_ERROR(run->begin(r.samples, r.other_samples));
    children.push_back(run->child());
    runs.push_back(std::move(run));
  }
  return runs;
}

// A core that was idle runs slower for some tens of milliseconds; what is timed first must not pay for it.
// Returns when three sentinels in a row differ by less than a percent, and after 150 ms at the latest.
void warm_up_core(const std::vector<int>& cpus) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(150);
  for (int alike = 0; alike < 3 && std::chrono::steady_clock::now() < end;) {
    const double first = sentinel_on(cpus), second = sentinel_on(cpus);
    alike = std::fabs(first - second) < 0.01 * second ? alike + 1 : 0;
  }
}

// The sentinels at one moment; 0: not timed.
struct Beside {
  double compute_ns = 0, memory_ns = 0;
};

// One candidate's turns in this heat.
struct Turns {
  struct Kept {
    size_t number = 0;  // from 0, among all its turns
    Beside beside;
    bool calm = true;
  };
  std::vector<Kept> kept;
  size_t taken = 0;
  int discarded = 0;

  // Where some turns were calm, the others do not count.
  void drop_disturbed() {
    const auto calm = [](const Kept& k) { return k.calm; };
    if (std::none_of(kept.begin(), kept.end(), calm)) return;
    const size_t before = kept.size();
    std::erase_if(kept, [&](const Kept& k) { return !calm(k); });
    discarded += static_cast<int>(before - kept.size());
  }
};

// The samples of the turns that count, with their sentinels.
void fill_in(const RaceRequest& request, const Turns& turns, const RunReply& run,
             const CandidateRun& candidate, RaceReply::Candidate& c) {
  const std::vector<double>&other_ns = candidate.other_ns(), &pulses_ns = candidate.pulses_ns();
  c.turns = static_cast<int>(turns.taken);
  c.discarded = turns.discarded;
  const auto samples = static_cast<size_t>(request.samples);
  const size_t others = other_ns.size() / std::max<size_t>(turns.taken, 1);
  for (const Turns::Kept& kept : turns.kept) {
    c.disturbed += kept.calm ? 0 : 1;
    for (size_t s = kept.number * samples; s < (kept.number + 1) * samples && s < run.run_ns.size(); ++s) {
      c.run_ns.push_back(run.run_ns[s]);
      c.cpu_ns.push_back(run.cpu_ns[s]);
      c.sentinel_ns.push_back(pulses_ns[s] > 0 ? pulses_ns[s] : kept.beside.compute_ns);
      if (kept.beside.memory_ns > 0) c.memory_ns.push_back(kept.beside.memory_ns);
    }
    for (size_t s = kept.number * others; s < (kept.number + 1) * others && s < other_ns.size(); ++s)
      c.other_ns.push_back(other_ns[s]);
  }
}

}  // namespace

RaceReply run_race(int socket, SealedFiles& files, Jail& jail, const RaceRequest& request,
                   const std::vector<pid_t>& spared, bool& go_on) {
  const auto begin = std::chrono::steady_clock::now();
  RaceReply reply;
  reply.id = request.base.id;
  std::vector<pid_t> children = spared;
  Result<std::vector<std::unique_ptr<CandidateRun>>> started =
      start_all(socket, files, jail, request, children);
  if (!started.is_ok()) {
    reply.error = started.message();
    return reply;
  }
  const std::vector<std::unique_ptr<CandidateRun>>& runs = *started;
  const size_t n = runs.size();
  std::vector<bool> racing(n);
  for (size_t i = 0; i < n; ++i) racing[i] = runs[i]->take_turn();
  const bool memory = std::any_of(runs.begin(), runs.end(), [](const auto& r) { return r->feels_memory(); });
  const bool pulses =
      request.base.patience_ms > 0 && pulse_ns() > 0;  // else the sentinel is what times are compared with
  const auto sentinels = [&] {
    return Beside{.compute_ns = pulses ? 0 : sentinel_on(request.base.cpus),
                  .memory_ns = memory ? memory_sentinel_on(request.base.cpus) : 0};
  };
  const auto calm = [&](const Beside& b) {
    return request.memory_disturbed_above_ns <= 0 || b.memory_ns <= request.memory_disturbed_above_ns;
  };
  std::vector<Turns> turns(n);
  const size_t most_turns = CandidateReport::kMaxSamples /
                            static_cast<size_t>(std::max({request.samples, request.other_samples, 1}));
  warm_up_core(request.base.cpus);
  const auto patience = std::chrono::steady_clock::now() + kPatience;
  const auto patient = [&] { return std::chrono::steady_clock::now() < patience; };
  Beside before = sentinels();
  for (int round = 0; round < request.rounds; ++round) {
    for (size_t k = 0; k < n; ++k) {
      const size_t i = (k + static_cast<size_t>(round)) % n;
      const auto turns_left = static_cast<size_t>(request.rounds - round);
      while (racing[i] && turns[i].taken < most_turns) {
        while (!calm(before) && patient()) before = sentinels();
        racing[i] = runs[i]->take_turn();
        if (!racing[i]) break;
        const size_t number = turns[i].taken++;
        const Beside after = sentinels();
        const Beside mean{(before.compute_ns + after.compute_ns) / 2,
                          (before.memory_ns + after.memory_ns) / 2};
        const bool undisturbed = runs[i]->turn_was_calm() && calm(before) && calm(after);
        before = after;
        if (!undisturbed && patient() && turns[i].taken + turns_left < most_turns) {
          ++turns[i].discarded;
          continue;
        }
        turns[i].kept.push_back({number, mean, undisturbed});
        break;
      }
    }
  }
  for (size_t i = 0; i < n; ++i) {
    const RunReply one = runs[i]->finish();
    go_on = go_on && !runs[i]->peer_gone();
    if (!one.error.empty() && reply.error.empty()) reply.error = one.error;
    RaceReply::Candidate& c = reply.candidates.emplace_back();
    c.outcome = one.outcome;
    c.message = one.message;
    c.max_error = one.max_error;
    c.pulse_ns = one.pulse_ns;
    if (one.outcome != "ok") continue;
    turns[i].drop_disturbed();
    fill_in(request, turns[i], one, *runs[i], c);
  }
  reply.run_ms = ms_since(begin);
  return reply;
}

}  // namespace tuner
