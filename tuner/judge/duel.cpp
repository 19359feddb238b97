#include "tuner/judge/duel.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler_core/base/percent.h"
#include "compiler_core/base/statistics.h"
#include "tuner/text/format.h"

namespace tuner {
namespace {

constexpr int kFewestOfAll = 3;  // with fewer pairs nothing is known of the noise
constexpr double kPatienceMs = 60;

// Of one process: the lower quartile of its samples.
double time_of(const RaceReply::Candidate& one) { return lower_quartile(one.run_ns); }

// A race judges a process by one look at its times, and a busy machine makes some of them doubtful: it stops
// the process between two readings of its clocks. Who forges them does so in each heat. What is doubted
// counts for nothing, so doing it seldom gains nothing.
constexpr int kDoubts = 3, kDoubtLasts = 5;

struct Course {
  std::vector<double> kernel_ns, rival_ns;  // of each process
  int turns = 0, disturbed = 0, spoilt = 0;
  int slices = 0, retaken = 0;
  double calm_pulse_ns = 0;
  int heats = 0;
  std::vector<int> doubted_heats[2];  // of kernel and rival

  // Remembers that times of this heat cannot be true. True: too often of late.
  bool is_one_doubt_too_many(bool of_rival) {
    std::vector<int>& doubted = doubted_heats[of_rival ? 1 : 0];
    doubted.push_back(heats);
    return std::ranges::count_if(doubted, [&](int heat) { return heats - heat < kDoubtLasts; }) >= kDoubts;
  }
  // Few turns were disturbed, and few slices had to be taken anew (as in tuner/verify/published.h).
  bool was_calm() const { return spoilt == 0 && 10 * disturbed <= turns && 50 * retaken <= slices; }
  int processes() const { return static_cast<int>(kernel_ns.size()); }
  void take_in(const RaceReply::Candidate& kernel, const RaceReply::Candidate& rival) {
    kernel_ns.push_back(time_of(kernel));
    rival_ns.push_back(time_of(rival));
    for (const RaceReply::Candidate* one : {&kernel, &rival}) {
      turns += one->turns - one->discarded;
      disturbed += one->disturbed;
      slices += one->slices;
      retaken += one->retaken;
    }
  }
};

bool is_spoilt(const RaceReply::Candidate& kernel, const RaceReply::Candidate& rival) {
  const int counted = kernel.turns - kernel.discarded + rival.turns - rival.discarded;
  return 2 * (kernel.disturbed + rival.disturbed) > counted;
}

double known_to(const Spread& s) {
  return s.value > 0 ? s.half_width() : std::numeric_limits<double>::infinity();
}

std::string range_of(const std::vector<double>& ns) {
  const auto [low, high] = std::ranges::minmax(ns);
  return str(format_time(low), " to ", format_time(high));
}

std::string what_is_missing(const Course& c, const Spread& ratio, const DuelOptions& options) {
  if (2 * c.disturbed > c.turns || c.processes() < kFewestOfAll)
    return str("the machine is too busy: ", c.disturbed, " of ", c.turns,
               " turns that count were disturbed, and ", c.spoilt, " rounds were thrown away");
  if (known_to(ratio) <= options.certified) return "";
  const std::string known = str("after ", c.processes(), " processes the ratio is known only to +- ",
                                percent_beside(known_to(ratio), options.certified), ", wider than ",
                                std::lround(100 * options.certified), " %. This kernel took ",
                                range_of(c.kernel_ns), ", the other ", range_of(c.rival_ns));
  return (c.was_calm() ? "times differ from process to process on a calm machine: "
                       : "the machine is too busy: ") +
         known;
}

}  // namespace

Spread ratio_of_pairs(const std::vector<double>& kernel_ns, const std::vector<double>& rival_ns) {
  std::vector<double> logs;
  for (size_t i = 0; i < std::min(kernel_ns.size(), rival_ns.size()); ++i)
    logs.push_back(std::log(rival_ns[i] / kernel_ns[i]));
  if (logs.empty()) return {};
  const Mean mean = trimmed_mean_of(logs);
  if (mean.n < 2 || mean.degrees == 0)
    return {std::exp(mean.mean), 0, std::numeric_limits<double>::infinity()};
  const double off = student_quantile(0.975, static_cast<double>(mean.degrees)) * mean.deviation *
                     std::sqrt(1 + 1 / static_cast<double>(mean.n));
  return {std::exp(mean.mean), std::exp(mean.mean - off), std::exp(mean.mean + off)};
}

Result<DuelResult> run_duel(const RunRequest& base, const RaceRequest::Candidate& kernel,
                            const RaceRequest::Candidate& rival, const DuelOptions& options,
                            const std::function<Result<RaceReply>(const RaceRequest&)>& heat) {
  const auto begin = std::chrono::steady_clock::now();
  DuelResult result;
  result.failed.outcome = Outcome::kOk;
  Course c;
  while (c.processes() < options.most && c.spoilt < options.most_spoilt) {
    if (c.processes() + c.spoilt > 0 && std::chrono::steady_clock::now() - begin > options.limit) break;
    RaceRequest request{.base = base};
    request.base.calm_pulse_ns = c.calm_pulse_ns;
    request.base.patience_ms = kPatienceMs;
    // Another one first each time: what the first leaves to the other is nobody's advantage.
    const bool rival_first = (c.processes() + c.spoilt) % 2 == 1;
    request.candidates = rival_first ? std::vector{rival, kernel} : std::vector{kernel, rival};
    ASSIGN_OR_RETURN(const RaceReply reply, heat(request));
    const RaceReply::Candidate &one = reply.candidates.at(rival_first ? 1 : 0),
                               &other = reply.candidates.at(rival_first ? 0 : 1);
    ++c.heats;
    for (const bool of_rival : {false, true})
      if (const RaceReply::Candidate& who = of_rival ? other : one;
          who.outcome != Outcome::kOk && !(who.doubted && !c.is_one_doubt_too_many(of_rival))) {
        result.failed = who;
        result.rival_failed = of_rival;
        return result;
      }
    if (one.outcome != Outcome::kOk || other.outcome != Outcome::kOk) {
      ++c.spoilt;
      continue;
    }
    for (const RaceReply::Candidate* who : {&one, &other})
      if (who->pulse_ns > 0)
        c.calm_pulse_ns = c.calm_pulse_ns > 0 ? std::min(c.calm_pulse_ns, who->pulse_ns) : who->pulse_ns;
    if (is_spoilt(one, other)) {
      ++c.spoilt;
      continue;
    }
    c.take_in(one, other);
    if (c.processes() >= options.fewest &&
        known_to(ratio_of_pairs(c.kernel_ns, c.rival_ns)) <= options.narrow)
      break;
  }
  result.ratio = ratio_of_pairs(c.kernel_ns, c.rival_ns);
  result.time_ns = median(c.kernel_ns);
  result.rival_time_ns = median(c.rival_ns);
  result.processes = c.processes();
  result.turns = c.turns;
  result.disturbed = c.disturbed;
  result.missing = what_is_missing(c, result.ratio, options);
  return result;
}

}  // namespace tuner
