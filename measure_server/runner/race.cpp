#include "measure_server/runner/race.h"

#include <chrono>
#include <cmath>
#include <memory>
#include <vector>

#include "compiler_core/artifact/artifact.h"
#include "measure_server/runner/candidate_run.h"

namespace tuner {

namespace {

// A neighbour's burst lasts tenths of a second; who disturbs for longer is a fact of this machine.
constexpr std::chrono::seconds kPatience{1};

// `children`: all the runner has, the candidates' own among them, so that the end of one does not take along
// the others.
Result<std::vector<std::unique_ptr<CandidateRun>>> start_all(int socket, SealedFiles& files,
                                                             const RaceRequest& r,
                                                             std::vector<pid_t>& children) {
  std::vector<std::unique_ptr<CandidateRun>> runs;
  for (const RaceRequest::Candidate& c : r.candidates) {
    ASSIGN_OR_RETURN(Artifact artifact, load_artifact(r.base.artifact_dir, c.digest));
    if (artifact.manifest.kind == BinaryKind::kCubin)
      return failed("artifact ", c.digest, " is for a GPU; only CPU candidates are raced");
    RunRequest request = r.base;
    request.digest = c.digest;
    request.check = c.check;
    auto run =
        std::make_unique<CandidateRun>(socket, files, std::move(request), std::move(artifact), children);
    RETURN_IF_ERROR(run->begin());
    children.push_back(run->child());
    runs.push_back(std::move(run));
  }
  return runs;
}

// A core that was idle runs slower for some tens of milliseconds; what is timed first must not pay for it.
// Returns when three sentinels in a row differ by less than a percent, and after 150 ms at the latest.
void warm_up(const std::vector<int>& cpus) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(150);
  for (int alike = 0; alike < 3 && std::chrono::steady_clock::now() < end;) {
    const double first = sentinel_on(cpus), second = sentinel_on(cpus);
    alike = std::fabs(first - second) < 0.01 * second ? alike + 1 : 0;
  }
}

}  // namespace

RaceReply run_race(int socket, SealedFiles& files, const RaceRequest& request, pid_t spared, bool& go_on) {
  const auto begin = std::chrono::steady_clock::now();
  RaceReply reply;
  reply.id = request.base.id;
  std::vector<pid_t> children = {spared};
  Result<std::vector<std::unique_ptr<CandidateRun>>> started = start_all(socket, files, request, children);
  if (!started.is_ok()) {
    reply.error = started.message();
    return reply;
  }
  const std::vector<std::unique_ptr<CandidateRun>>& runs = *started;
  const size_t n = runs.size();
  std::vector<bool> racing(n);
  for (size_t i = 0; i < n; ++i) racing[i] = runs[i]->take_turn();
  std::vector<std::vector<double>> sentinels(n);
  std::vector<std::vector<size_t>> kept(n);  // numbers of the samples that count
  std::vector<size_t> taken(n);
  warm_up(request.base.cpus);
  const auto patience = std::chrono::steady_clock::now() + kPatience;
  for (int round = 0; round < request.rounds; ++round) {
    for (size_t k = 0; k < n; ++k) {
      const size_t i = (k + static_cast<size_t>(round)) % n;
      for (bool again = true; again && racing[i] && taken[i] < CandidateReport::kMaxSamples;) {
        const auto fine = [&](double ns) {
          return request.disturbed_above_ns <= 0 || ns <= request.disturbed_above_ns ||
                 std::chrono::steady_clock::now() > patience;
        };
        double before = sentinel_on(request.base.cpus);
        while (!fine(before)) before = sentinel_on(request.base.cpus);
        racing[i] = runs[i]->take_turn();
        if (!racing[i]) break;
        ++taken[i];
        const double after = sentinel_on(request.base.cpus);
        again = !fine(after) && taken[i] + static_cast<size_t>(request.rounds) < CandidateReport::kMaxSamples;
        if (again) continue;
        kept[i].push_back(taken[i] - 1);
        sentinels[i].push_back((before + after) / 2);
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
    if (one.outcome != "ok") continue;
    for (size_t s = 0; s < kept[i].size() && kept[i][s] < one.run_ns.size(); ++s) {
      c.run_ns.push_back(one.run_ns[kept[i][s]]);
      c.cpu_ns.push_back(one.cpu_ns[kept[i][s]]);
      c.sentinel_ns.push_back(sentinels[i][s]);
    }
  }
  reply.run_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  return reply;
}

}  // namespace tuner
