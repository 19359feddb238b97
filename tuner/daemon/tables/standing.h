// Standing: how far a worker is trusted with new work, from what it has sent. It outlives sessions and lives
// of the worker, and is kept by its id.
//
//   strikes  results that cannot be (belief.h). After three the worker gets nothing for ten minutes, and for
//            twice as long with each further one, at most a day. The only worker of its kind waits 30 s:
//            nobody gains by a job that stands still, and its trials soon end as not measured.
//   pace     the sentinel, a fixed piece of work beside each trial. If the better of a trial's two sentinels
//            is 1.8 times the worker's calm level in the median of its last 16 trials, the machine has become
//            slower (a neighbour who stays, a throttled CPU): its times would be believed too slow. It gets
//            nothing for 20 s, then one trial at a time until the median of the last four is within 1.3 times
//            the level. After ten minutes the new pace is believed to be its own.
//
// Why 1.8 and 16: on a shared core the sentinel reads 1.5 to 1.7 times its calm time whenever somebody uses
// the core's other thread, and single trials read more. Such trials are measured again by the worker itself
// (CalmLevel), so ordinary noise is no drift; a machine at half its speed for 16 trials is.
//
// Pure: the caller says what time it is (milliseconds, monotonic).
#pragma once

#include <cstdint>
#include <deque>
#include <string>

namespace tuner {

class Standing {
 public:
  // A result of it cannot be. Returns for how long it gets nothing now; 0: it goes on.
  int64_t strike(int64_t now_ms, const std::string& why);
  int64_t strikes() const { return strikes_; }

  // At registration: what it measured of itself, on that hardware. 0: nothing. A level that is slower than
  // what was known of the same hardware does not replace it; a peak that has fallen as far as the sentinel
  // may not (1.8 times) tells that the machine has become slower. True: it does.
  bool enter(const std::string& hardware, double sentinel_ns, double peak_gflops, int64_t now_ms);
  enum class News : uint8_t { kNone, kSlower, kCalm, kNewPace };
  // The better sentinel of a trial on its CPU; 0: not timed.
  News observe(double sentinel_ns, int64_t now_ms);
  bool slower() const { return slower_since_ms_ >= 0; }
  double level_ns() const { return level_ns_; }  // calm; 0: not known yet

  // For how long it gets nothing, and why, for both reasons. `others`: can somebody else do its work? A
  // worker that is slower, but the only one, goes on.
  int64_t pause_ms(int64_t now_ms, bool others) const;
  // True if it may have one lease at a time only: it has to show that it can be trusted.
  bool on_trial(bool others) const;
  std::string why(int64_t now_ms, bool others) const;

 private:
  int64_t strikes_ = 0, struck_ms_ = 0, struck_until_ms_ = 0;
  std::string last_strike_;
  std::string hardware_;
  double level_ns_ = 0, peak_gflops_ = 0;
  std::deque<double> latest_;
  int64_t slower_since_ms_ = -1, slower_until_ms_ = 0;
  double pace_ = 1;  // the latest median as a multiple of the level
};

}  // namespace tuner
