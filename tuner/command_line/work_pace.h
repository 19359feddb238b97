// WorkPace: when a long command shows what it does, and when it is ended because it does not stop by itself.
//
// Pure: the caller says what time it is (milliseconds, monotonic), and asks every kTickMs. Then lines come
// at least every two seconds, and a command ends within one second of the signal.
#pragma once

#include <cstdint>
#include <optional>

namespace tuner {

class WorkPace {
 public:
  static constexpr int64_t kTickMs = 50;

  explicit WorkPace(int64_t now_ms) : begin_ms_(now_ms), printed_ms_(now_ms) {}

  struct Now {
    int64_t ms = 0;
    bool is_asked = false;    // to stop, by a signal
    bool is_guarded = false;  // it may be ended
    bool has_words = false;   // there is something to show
  };
  enum class Act : uint8_t { kNothing, kPrint, kEnd };
  Act tick(const Now& now);
  int64_t seconds(int64_t now_ms) const { return (now_ms - begin_ms_) / 1000; }  // since the beginning

 private:
  int64_t begin_ms_, printed_ms_;
  std::optional<int64_t> asked_ms_;
};

}  // namespace tuner
