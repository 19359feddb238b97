// What may be said of a tuned config's time, and how. Every command that prints one prints these words.
//
// One rule (docs/how_we_measure.md, "What an answer claims"):
//   certified      its time with the 95 % interval in which a fresh process finds it, half of that as a share
//                  of the time, and the gain over the default config in the same race
//                  Where the device's clock is exact, the time alone: every process finds the same
//   not certified  the time of one trial, and why the race certified nothing. No interval, no bound and no
//                  gain: those of one process say nothing about the next
#pragma once

#include <string>

#include "db/records.h"

namespace tuner {

struct TimeWords {
  std::string time;  // "17.97 us (95 %: 17.60 .. 18.34 us)"; "7.291 us in one trial"
  // "certified to +- 2.1 %"; "certified: the device's clock is exact"; "not certified: the race knows the
  // time of its fastest only to ..."
  std::string certainty;
  // "2.72 times as fast as the default config (48.95 us, in the same race)"; "not known: ..."; "not claimed,
  // because the time is not certified (default config: 27.71 us in one trial)".
  std::string gain;
  std::string other;  // "58.62 us with constants cold"; empty: not known
};
TimeWords time_words(const TunedConfig& tuned);

// Half of the interval as a share of the time; 0 without a time.
double half_width(const TunedConfig& tuned);
// The default's time over this one; 0: none may be claimed.
double claimed_gain(const TunedConfig& tuned);

}  // namespace tuner
