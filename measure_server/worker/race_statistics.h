// What the samples of a race say: who is out, who won, how sure. Pure arithmetic.
//
// A finalist's time in one process is the lower quartile of its samples there: what disturbs a call that ran
// between two calm pulses makes it slower, never faster. Its time in the race is the trimmed mean of the
// logarithms of these (a fifth off each end), so that a process with unlucky pages does not decide. Finalists
// are compared process by process, where both ran interleaved under the same conditions: Yuen's test,
// Student's t on trimmed means.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace tuner {

// Samples of one finalist in the order taken: time per call, the pulses beside it (where there is no pulse:
// the sentinel), the process (0, 1, ...).
struct Racer {
  std::string trial_id;
  std::vector<double> samples_ns, sentinel_ns;
  std::vector<int> process;
  // For information: the memory sentinel beside each sample, where timed; samples with constants the other
  // way, and their processes.
  std::vector<double> memory_ns, other_ns;
  std::vector<int> other_process;
};

// An estimate and where one more process would lie in 95 % of cases.
struct Spread {
  double value = 0, low = 0, high = 0;
  double half_width() const { return value > 0 ? (high - low) / 2 / value : 0; }  // as a fraction
};

struct RaceVerdict {
  size_t winner = 0;         // index into the racers
  std::vector<size_t> tied;  // that cannot be told from it, itself included, fastest first
  Spread time_ns, ratio;     // of the winner; ratio: over the pulse, so at whatever clock
  double regret_bound = 0;   // its true time is above the fastest one's by at most this fraction (95 %)
};

// Fewer processes than this say nothing about the spread between them.
inline constexpr int kFewestProcesses = 3;

// Over the processes all of a racer's samples came from; empty without samples. A time's spread is no wider
// than its ratio's: it is of the clock that the race ran at.
Spread time_spread(const Racer& racer);
double other_time_ns(const Racer& racer);  // as the value of time_spread(), of other_ns; 0 without
Spread ratio_spread(const Racer& racer);

// Whether each may still win: those that took part in the latest process and are not certainly slower than
// the fastest of them: by 30 % in one process, by 15 % in the mean of two, or at 99.5 % over three and more.
std::vector<bool> still_racing(std::span<const Racer> racers);

// Of racers with samples; at least one.
RaceVerdict judge_race(std::span<const Racer> racers);

}  // namespace tuner
