#include "measure_server/worker/race.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

#include "compiler_core/base/percent.h"
#include "measure_server/worker/race_statistics.h"

namespace tuner {
namespace {

constexpr int kEnoughProcesses = 6;  // when one finalist is left, or all that are left are as good...
// ...and the winner's interval is this narrow. Here and below, what drifts later (kDriftHalfWidth) is part of
// it.
constexpr double kNarrowHalfWidth = 0.020;
constexpr double kWideHalfWidth = 0.0225;  // wider than this after all processes: as many again
constexpr int kMostTimes = 3;              // options.processes, while the interval certifies nothing
// Wider than this after options.processes, and more of them are for nothing: the interval is that of one more
// process, so it narrows no further than the processes differ. Of simulated races that 27 normal processes
// would certify, one in 300 looks so wide after nine if its interval is 4.6 % in the median, one in 75 if it
// is 5.3 %.
constexpr double kHopelessHalfWidth = 2 * kWidestCertified;
// While more race, each has one turn a heat: most of them are soon found slower or as good.
constexpr size_t kMany = 6;
// A heat most of whose turns were disturbed is run again. So many of them, and the race is given up: a
// neighbour's bursts last for seconds, who disturbs for longer is a fact of this machine.
constexpr int kMostSpoilt = 6;

// A race under way: what its samples say so far.
struct Course {
  std::vector<Racer> racers;
  Preference preference;
  std::vector<bool> racing;
  int processes = 0;
  int turns = 0, discarded = 0;    // taken; thrown away
  int counted = 0, disturbed = 0;  // turns that count; of these disturbed nevertheless
  int slices = 0, retaken = 0;     // of all turns; of these repeated
  std::string trouble;             // of the first finalist that failed
  struct Heat {
    std::vector<size_t> running;  // which racers
    RaceReply reply;
  };
  std::vector<Heat> spoilt;  // heats that were run again

  bool too_disturbed() const { return 2 * disturbed > counted; }
};

// The stored answer stays so far, and another finalist may be faster by more than a tie.
bool is_disputed(const RaceVerdict& v, const Preference& preference) {
  return v.winner == preference.stored && v.winner != v.leader && v.regret_bound > kTie;
}

bool decided(const Course& c) {
  if (are_exact(c.racers)) return true;
  if (c.processes < kEnoughProcesses) return false;
  const RaceVerdict v = judge_race(c.racers, c.preference);
  if (is_disputed(v, c.preference)) return false;
  if (std::count(c.racing.begin(), c.racing.end(), true) > 1 && v.leader_regret > kAsGood) return false;
  return std::max(v.time_ns.half_width(), v.ratio.half_width()) <= kNarrowHalfWidth;
}

// Whether another process of each that still races would help.
bool goes_on(const Course& c, const v1::RaceOptions& options) {
  if (c.spoilt.size() >= kMostSpoilt) return false;
  if (c.processes < options.processes()) return true;
  const RaceVerdict v = judge_race(c.racers, c.preference);
  const double half_width = v.time_ns.half_width();
  const bool disputed = is_disputed(v, c.preference);
  if (half_width > kHopelessHalfWidth && !disputed) return false;
  if (c.processes < 2 * options.processes()) return half_width > kWideHalfWidth || disputed;
  return c.processes < kMostTimes * options.processes() && half_width > kWidestCertified;
}

v1::RaceCourse course_of(const Course& c, const v1::RaceOptions& options) {
  v1::RaceCourse course;
  course.set_finalists(static_cast<int>(c.racers.size()));
  course.set_racing(static_cast<int>(std::count(c.racing.begin(), c.racing.end(), true)));
  course.set_processes(c.processes);
  course.set_spoilt(static_cast<int>(c.spoilt.size()));
  const int times = std::clamp((c.processes + options.processes() - 1) / options.processes(), 1, kMostTimes);
  course.set_most_processes(times * options.processes());
  return course;
}

void count_slices(const RaceReply& reply, Course& c) {
  for (const RaceReply::Candidate& one : reply.candidates) {
    c.slices += one.slices;
    c.retaken += one.retaken;
  }
}

bool is_spoilt(const RaceReply& reply) {
  int counted = 0, disturbed = 0;
  for (const RaceReply::Candidate& c : reply.candidates) {
    counted += c.turns - c.discarded;
    disturbed += c.disturbed;
  }
  return 2 * disturbed > counted;
}

void take_in(const RaceReply& reply, const std::vector<size_t>& running, Course& c) {
  for (size_t k = 0; k < running.size(); ++k) {
    const RaceReply::Candidate& one = reply.candidates[k];
    Racer& racer = c.racers[running[k]];
    if (one.outcome != Outcome::kOk) {
      c.racing[running[k]] = false;
      if (c.trouble.empty())
        c.trouble = str("trial ", racer.trial_id, ": ", one.outcome ? outcome_name(*one.outcome) : "", ": ",
                        one.message);
      racer = {.trial_id = racer.trial_id};  // it cannot win, however fast it was before
      continue;
    }
    // Who came back is compared anew.
    racer.as_good_as.reset(), racer.as_good_within = kAsGood;
    racer.samples_ns.insert(racer.samples_ns.end(), one.run_ns.begin(), one.run_ns.end());
    racer.sentinel_ns.insert(racer.sentinel_ns.end(), one.sentinel_ns.begin(), one.sentinel_ns.end());
    racer.process.insert(racer.process.end(), one.run_ns.size(), c.processes);
    racer.memory_ns.insert(racer.memory_ns.end(), one.memory_ns.begin(), one.memory_ns.end());
    racer.other_ns.insert(racer.other_ns.end(), one.other_ns.begin(), one.other_ns.end());
    racer.exact_clock = one.exact_clock;
    racer.other_process.insert(racer.other_process.end(), one.other_ns.size(), c.processes);
    c.turns += one.turns;
    c.discarded += one.discarded;
    c.disturbed += one.disturbed;
    c.counted += one.turns - one.discarded;
  }
  ++c.processes;
}

// Why nobody won; empty: somebody did.
std::string why_not_compared(const Course& c) {
  if (c.too_disturbed())
    return str("the machine is too disturbed: ", c.disturbed, " of ", c.counted,
               " turns that count were disturbed");
  if (c.processes < kFewestProcesses && !are_exact(c.racers))
    return str("there was time for ", c.processes, " of at least ", kFewestProcesses, " processes");
  return "";
}

// Why nothing is certified; empty: it is.
std::string what_is_missing(const std::string& uncompared, const Course& c, const Spread& time) {
  if (!uncompared.empty()) return uncompared;
  if (time.half_width() > kWidestCertified)
    return str("the race knows the time of its fastest only to +- ",
               percent_beside(time.half_width(), kWidestCertified), ", wider than ",
               std::lround(100 * kWidestCertified), " %, after ", c.processes, " processes");
  return "";
}

void set_time(const Spread& time, const Spread& ratio, v1::RaceResult& result) {
  result.set_time_ns(time.value);
  result.set_time_low_ns(time.low);
  result.set_time_high_ns(time.high);
  result.set_ratio(ratio.value);
  result.set_ratio_low(ratio.low);
  result.set_ratio_high(ratio.high);
}

// The finalists in the order in which they win ties: the default, then by size, then by template and config.
std::vector<size_t> tie_order(const std::vector<RaceEntry>& entries, const std::string& default_trial) {
  std::vector<size_t> order(entries.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) {
    const v1::RaceCandidate& c = entries[i].candidate;
    const int64_t bytes =
        entries[i].code_bytes > 0 ? entries[i].code_bytes : std::numeric_limits<int64_t>::max();
    return std::tuple(c.trial_id() != default_trial, bytes, c.template_name(), c.config());
  });
  return order;
}

// Why the verdict's winner won, in the words of proto/record.proto.
std::string_view won_by(const RaceVerdict& verdict, const Preference& preference,
                        const std::vector<RaceEntry>& entries, const std::string& default_trial) {
  if (verdict.winner == preference.stored) return "stored";
  if (verdict.alone) return "fastest";
  if (entries[verdict.winner].candidate.trial_id() == default_trial) return "default";
  const auto as_small = [&](size_t i) {
    return i != verdict.winner && entries[i].code_bytes == entries[verdict.winner].code_bytes;
  };
  return std::ranges::any_of(verdict.tied, as_small) ? "order" : "smallest";
}

v1::RaceResult result_of(const Course& c, const std::vector<RaceEntry>& entries, const RaceRoles& roles) {
  v1::RaceResult result;
  const auto measured = [](const Racer& r) { return !r.samples_ns.empty(); };
  if (std::ranges::none_of(c.racers, measured)) {
    result.set_error(c.trouble.empty() ? "no finalist could be measured" : c.trouble);
    return result;
  }
  for (const Racer& r : c.racers) {
    if (!measured(r)) continue;
    v1::RaceFinalist* f = result.add_finalists();
    f->set_trial_id(r.trial_id);
    f->mutable_samples_ns()->Add(r.samples_ns.begin(), r.samples_ns.end());
    f->mutable_sentinel_ns()->Add(r.sentinel_ns.begin(), r.sentinel_ns.end());
    f->mutable_process()->Add(r.process.begin(), r.process.end());
    if (r.memory_ns.size() == r.samples_ns.size())
      f->mutable_memory_ns()->Add(r.memory_ns.begin(), r.memory_ns.end());
    f->mutable_other_ns()->Add(r.other_ns.begin(), r.other_ns.end());
    f->mutable_other_process()->Add(r.other_process.begin(), r.other_process.end());
    f->set_exact_clock(r.exact_clock);
    if (r.trial_id == roles.stored_trial) result.set_stored_trial(roles.stored_trial);
    if (r.trial_id != roles.default_trial) continue;
    result.set_default_trial(roles.default_trial);
    result.set_default_time_ns(time_spread(r).value);
  }
  result.set_turns(c.turns);
  result.set_discarded(c.discarded);
  result.set_disturbed(c.disturbed);
  result.set_slices(c.slices);
  result.set_retaken(c.retaken);
  const RaceVerdict verdict = judge_race(c.racers, c.preference);
  const std::string uncompared = why_not_compared(c),
                    missing = what_is_missing(uncompared, c, verdict.time_ns);
  result.set_certified(missing.empty());
  result.set_uncertified_why(missing);
  const std::optional<size_t> stored = c.preference.stored;
  const Racer& winner = uncompared.empty()                      ? c.racers[verdict.winner]
                        : stored && measured(c.racers[*stored]) ? c.racers[*stored]
                                                                : *std::ranges::find_if(c.racers, measured);
  result.set_winner(winner.trial_id);
  result.set_other_time_ns(other_time_ns(winner));
  set_time(time_spread(winner), ratio_spread(winner), result);
  if (!uncompared.empty()) return result;
  for (const size_t i : verdict.tied) result.add_tie_set(c.racers[i].trial_id);
  result.set_regret_bound(verdict.regret_bound);
  result.set_won_by(std::string(won_by(verdict, c.preference, entries, roles.default_trial)));
  return result;
}

}  // namespace

v1::RaceOptions with_defaults(v1::RaceOptions options) {
  if (options.min_repeat_ms() <= 0) options.set_min_repeat_ms(1);
  if (options.processes() <= 0) options.set_processes(9);
  if (options.rounds() <= 0) options.set_rounds(3);
  if (options.limit_s() <= 0) options.set_limit_s(20);
  if (options.constants().empty()) options.set_constants("warm");
  return options;
}

namespace {

// Lets those leave that cannot win any more, once a heat has been taken in. Who would win now stays.
void send_home(const std::vector<RaceEntry>& entries, const RaceRoles& roles, Course& c) {
  const Chances now = chances(c.racers);
  const RaceVerdict verdict = judge_race(c.racers, c.preference);
  for (size_t i = 0; i < c.racing.size(); ++i) {
    const std::string& id = entries[i].candidate.trial_id();
    // Both are published or kept by what they take here; of the default it is the gain that depends on it.
    const bool awaited = (id == roles.default_trial && c.processes < kEnoughProcesses) ||
                         (id == roles.stored_trial && c.processes < kFewestProcesses);
    if (!c.racing[i] || now.of[i] == Chance::kOpen || awaited || i == verdict.winner) continue;
    c.racing[i] = false;
    if (now.of[i] == Chance::kAsGood) c.racers[i].as_good_as = now.leader;
  }
  if (!c.racers[verdict.winner].samples_ns.empty()) c.racing[verdict.winner] = true;  // also if it had left
  if (c.racing[verdict.leader] && may_leave_to_winner(c.racers, verdict)) {
    c.racing[verdict.leader] = false;
    c.racers[verdict.leader].as_good_as = verdict.winner;
    c.racers[verdict.leader].as_good_within = kTie;
  }
}

}  // namespace

Result<v1::RaceResult> run_heats(const std::vector<RaceEntry>& entries, const RaceRoles& roles,
                                 const RunRequest& base, const v1::RaceOptions& options,
                                 const std::function<Result<RaceReply>(const RaceRequest&)>& heat,
                                 const std::function<void(const v1::RaceCourse&)>& tell) {
  const auto begin = std::chrono::steady_clock::now();
  Course c;
  for (const RaceEntry& e : entries) c.racers.push_back({.trial_id = e.candidate.trial_id()});
  c.racing.assign(entries.size(), true);
  c.preference.order = tie_order(entries, roles.default_trial);
  for (size_t i = 0; i < entries.size(); ++i)
    if (!roles.stored_trial.empty() && entries[i].candidate.trial_id() == roles.stored_trial)
      c.preference.stored = i;
  while (goes_on(c, options)) {
    if (tell) tell(course_of(c, options));
    if (c.processes + static_cast<int>(c.spoilt.size()) > 0 &&
        std::chrono::steady_clock::now() - begin > std::chrono::duration<double>(options.limit_s()))
      break;
    RaceRequest request{.base = base};
    request.base.min_repeat_ms = options.min_repeat_ms();
    request.base.cold_constants = options.constants() == "cold";
    std::vector<size_t> running;
    // Another one first each time: what the first leaves to the others is nobody's advantage.
    for (size_t k = 0; k < entries.size(); ++k)
      if (const size_t i = (k + static_cast<size_t>(c.processes)) % entries.size(); c.racing[i])
        running.push_back(i);
    for (const size_t i : running) request.candidates.push_back(entries[i].built);
    request.rounds = running.size() > kMany ? 1 : options.rounds();
    ASSIGN_OR_RETURN(RaceReply reply, heat(request));
    count_slices(reply, c);
    if (is_spoilt(reply)) {
      c.spoilt.push_back({std::move(running), std::move(reply)});
      continue;
    }
    take_in(reply, running, c);
    if (std::ranges::all_of(c.racers, [](const Racer& r) { return r.samples_ns.empty(); })) break;
    send_home(entries, roles, c);
    if (std::none_of(c.racing.begin(), c.racing.end(), [](bool r) { return r; })) break;
    if (decided(c)) break;
  }
  // Where there were too few calm heats, all that is known is of the others.
  const bool few = c.processes < kFewestProcesses;
  for (Course::Heat& spoilt : c.spoilt) {
    if (few) {
      take_in(spoilt.reply, spoilt.running, c);
      continue;
    }
    for (const RaceReply::Candidate& one : spoilt.reply.candidates)
      c.turns += one.turns, c.discarded += one.turns;
  }
  return result_of(c, entries, roles);
}

}  // namespace tuner
