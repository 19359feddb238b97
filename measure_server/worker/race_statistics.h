// Decides a race from its samples: who is out, who won, how certain it is. Pure arithmetic.
//
// A finalist's time in one process is the lower quartile of its samples there, because a disturbance between
// two calm pulses makes a call slower, never faster. Its time in the race is the trimmed mean of the
// logarithms of these (a fifth off each end), so that a process with unlucky pages does not decide; where
// most processes ran beside calm memory, of these alone (compiler_core/base/process_times.h). Finalists are
// compared process by process, as both ran interleaved there under the same conditions. The test is Yuen's:
// Student's t on trimmed means. The deviation of such a difference is its own, or that of all finalists
// together if that is more: they share the machine, and of three processes one's own says little.
//
// Times of an exact clock are known after one process. Then no difference is noise: only equal times tie.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler_core/base/process_times.h"

namespace tuner {

// Who cannot be faster than the leader by more than this need not be told from it (an indifference zone).
inline constexpr double kAsGood = 0.01;
// Two finalists tie if one is slower by at most kAsGood, or by at most this and cannot be told from the other
// (97.5 %).
inline constexpr double kTie = 0.02;

// Samples of one finalist in the order taken: time per call, the pulses beside it (or the sentinel, if there
// is no pulse), and the process (0, 1, ...).
struct Racer {
  std::string trial_id;
  std::vector<double> samples_ns, sentinel_ns;
  std::vector<int> process;
  // For information: the memory sentinel beside each sample, if timed; samples with the other kind of
  // constants, and their processes.
  std::vector<double> memory_ns, other_ns;
  std::vector<int> other_process;
  bool exact_clock = false;  // of its device: one process knows its time
  // Who led the race when it left as not slower: the other one is faster than it by at most `as_good_within`
  // or, of one that led itself, slower.
  std::optional<size_t> as_good_as;
  double as_good_within = kAsGood;
};

// Who wins among equals, so that a task tuned twice has one answer. Indices into the racers.
struct Preference {
  // The stored answer. It stays unless another one is faster by more than kAsGood, and that is certain (99.5
  // %).
  std::optional<size_t> stored;
  std::vector<size_t> order;  // of ties the first one of these wins; empty: the fastest
};

struct RaceVerdict {
  size_t winner = 0;  // index into the racers
  size_t leader = 0;  // the fastest
  // Finalists that tie with the leader (kTie) or cannot be told from it, itself and the winner included,
  // fastest first.
  std::vector<size_t> tied;
  bool alone = true;      // no other one ties with the leader
  Spread time_ns, ratio;  // the winner's; ratio: time divided by the pulse, so independent of the clock
  // The true time of the winner exceeds the fastest one's by at most this fraction (95 %); the same of the
  // leader.
  double regret_bound = 0, leader_regret = 0;
};

// With fewer processes the spread between them is not known.
inline constexpr int kFewestProcesses = 3;

// Whether all times are an exact clock's; racers without samples do not count.
bool are_exact(std::span<const Racer> racers);

// Estimate over all processes of a racer; zeros without samples.
Spread time_spread(const Racer& racer);
double other_time_ns(const Racer& racer);  // the value of a time_spread() over other_ns; 0 without samples
Spread ratio_spread(const Racer& racer);

// What another process could still bring.
enum class Chance {
  kOpen,    // it may win by more than kAsGood
  kSlower,  // certainly slower than the fastest: by 10 % in one process; at 99.5 % confidence over three and
            // more, or over two beside six others; by 15 % in the mean of two; or it did not take part in the
            // latest process. Of 514 races (19,549 processes) this would have saved 8 % of the processes: of
            // the 993 that left earlier one had won, by 0.6 %
  kAsGood,  // not faster than the fastest by more than kAsGood, at 99.5 % over three and more
};
struct Chances {
  size_t leader = 0;
  std::vector<Chance> of;  // each racer
};
Chances chances(std::span<const Racer> racers);

// Needs at least one racer with samples; others without are not looked at.
RaceVerdict judge_race(std::span<const Racer> racers, const Preference& preference = {});
// Whether the leader may leave the race to the winner: it is not faster by more than kTie (99.5 %).
bool may_leave_to_winner(std::span<const Racer> racers, const RaceVerdict& verdict);

}  // namespace tuner
