#include "tuner/command_line/work_pace.h"

namespace tuner {
namespace {

// Whoever stops in order needs less than this: a step of a library, or one kernel's compilation.
constexpr int64_t kPatienceMs = 500;
// With a tick that is late by another one, a line comes at least every 2 s.
constexpr int64_t kBetweenLinesMs = 1900;

}  // namespace

WorkPace::Act WorkPace::tick(const Now& now) {
  if (now.is_asked && !asked_ms_) asked_ms_ = now.ms;
  if (now.is_guarded && asked_ms_ && now.ms - *asked_ms_ >= kPatienceMs) return Act::kEnd;
  if (!now.has_words || now.ms - printed_ms_ < kBetweenLinesMs) return Act::kNothing;
  printed_ms_ = now.ms;
  return Act::kPrint;
}

}  // namespace tuner
