#include "measure_server/worker/race.h"

#include <algorithm>
#include <chrono>

#include "measure_server/worker/race_statistics.h"

namespace tuner {
namespace {

constexpr int kEnoughProcesses = 6;         // when one finalist is left...
constexpr double kNarrowHalfWidth = 0.016;  // ...and its interval is this narrow

constexpr double kWideHalfWidth = 0.019;  // wider than this after all processes: as many again
constexpr size_t kFew = 3;
constexpr int kMoreRounds = 3;

bool decided(const std::vector<Racer>& racers, const std::vector<bool>& racing, int processes) {
  if (processes < kEnoughProcesses || std::count(racing.begin(), racing.end(), true) > 1) return false;
  const auto last = std::find(racing.begin(), racing.end(), true);
  if (last == racing.end()) return true;
  const Racer& racer = racers[static_cast<size_t>(last - racing.begin())];
  return std::max(time_spread(racer).half_width(), ratio_spread(racer).half_width()) <= kNarrowHalfWidth;
}

}  // namespace

v1::RaceOptions with_defaults(v1::RaceOptions options) {
  if (options.min_repeat_ms() <= 0) options.set_min_repeat_ms(1);
  if (options.processes() <= 0) options.set_processes(9);
  if (options.rounds() <= 0) options.set_rounds(5);
  if (options.limit_s() <= 0) options.set_limit_s(20);
  return options;
}

Result<v1::RaceResult> run_heats(const std::vector<RaceEntry>& entries, const RunRequest& base,
                                 const v1::RaceOptions& options,
                                 const std::function<Result<RaceReply>(const RaceRequest&)>& heat) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<Racer> racers;
  for (const RaceEntry& e : entries) racers.push_back({.trial_id = e.candidate.trial_id()});
  std::vector<bool> racing(entries.size(), true);
  std::string trouble;
  for (int process = 0; process < 2 * options.processes(); ++process) {
    if (process >= options.processes() && judge_race(racers).ratio.half_width() <= kWideHalfWidth) break;
    if (process > 0 &&
        std::chrono::steady_clock::now() - begin > std::chrono::duration<double>(options.limit_s()))
      break;
    RaceRequest request{.base = base, .rounds = options.rounds()};
    request.base.min_repeat_ms = options.min_repeat_ms();
    std::vector<size_t> running;
    // Another one first each time: what the first leaves to the others is nobody's advantage.
    for (size_t k = 0; k < entries.size(); ++k)
      if (const size_t i = (k + static_cast<size_t>(process)) % entries.size(); racing[i])
        running.push_back(i);
    // Where few are left more samples cost little, and are what tells them apart.
    if (running.size() <= kFew) request.rounds *= kMoreRounds;
    for (const size_t i : running) request.candidates.push_back(entries[i].built);
    ASSIGN_OR_RETURN(const RaceReply reply, heat(request));
    for (size_t k = 0; k < running.size(); ++k) {
      const RaceReply::Candidate& c = reply.candidates[k];
      Racer& racer = racers[running[k]];
      if (c.outcome != "ok") {
        racing[running[k]] = false;
        if (trouble.empty()) trouble = str("trial ", racer.trial_id, ": ", c.outcome, ": ", c.message);
        continue;
      }
      racer.samples_ns.insert(racer.samples_ns.end(), c.run_ns.begin(), c.run_ns.end());
      racer.sentinel_ns.insert(racer.sentinel_ns.end(), c.sentinel_ns.begin(), c.sentinel_ns.end());
      racer.process.insert(racer.process.end(), c.run_ns.size(), process);
    }
    // One that failed cannot win, however fast it was before.
    for (size_t i = 0; i < racers.size(); ++i)
      if (!racing[i] && std::find(running.begin(), running.end(), i) != running.end())
        racers[i] = {racers[i].trial_id};
    const std::vector<bool> still = still_racing(racers);
    for (size_t i = 0; i < racing.size(); ++i) racing[i] = racing[i] && still[i];
    if (std::none_of(racing.begin(), racing.end(), [](bool r) { return r; })) break;
    if (decided(racers, racing, process + 1)) break;
  }
  v1::RaceResult result;
  std::erase_if(racers, [](const Racer& r) { return r.samples_ns.empty(); });
  if (racers.empty()) {
    result.set_error(trouble.empty() ? "no finalist could be measured" : trouble);
    return result;
  }
  for (const Racer& r : racers) {
    v1::RaceFinalist* f = result.add_finalists();
    f->set_trial_id(r.trial_id);
    f->mutable_samples_ns()->Add(r.samples_ns.begin(), r.samples_ns.end());
    f->mutable_sentinel_ns()->Add(r.sentinel_ns.begin(), r.sentinel_ns.end());
    f->mutable_process()->Add(r.process.begin(), r.process.end());
  }
  const RaceVerdict verdict = judge_race(racers);
  result.set_winner(racers[verdict.winner].trial_id);
  for (const size_t i : verdict.tied) result.add_tie_set(racers[i].trial_id);
  result.set_time_ns(verdict.time_ns.value);
  result.set_time_low_ns(verdict.time_ns.low);
  result.set_time_high_ns(verdict.time_ns.high);
  result.set_ratio(verdict.ratio.value);
  result.set_ratio_low(verdict.ratio.low);
  result.set_ratio_high(verdict.ratio.high);
  result.set_regret_bound(verdict.regret_bound);
  return result;
}

}  // namespace tuner
