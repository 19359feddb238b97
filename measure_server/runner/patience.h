// Patience: a limit for somebody's answer that stands still while we stand still. A worker that was stopped
// (SIGSTOP, a frozen container, a virtual machine that its host paused) must not take its own absence for the
// silence of a candidate or a builder, which was stopped with it.
#pragma once

#include <algorithm>
#include <chrono>

namespace tuner {

class Patience {
 public:
  using Clock = std::chrono::steady_clock;
  // Whoever waits asks over() this often; of what lies between two questions no more than this counts.
  static constexpr std::chrono::milliseconds kLook{250}, kMostAtOnce{1'000};

  explicit Patience(Clock::duration limit = {}, Clock::time_point now = Clock::now())
      : left_(limit), looked_(now) {}

  // Counts the time since the last question. True: the limit is used up.
  bool over(Clock::time_point now = Clock::now()) {
    left_ -= std::min<Clock::duration>(now - looked_, kMostAtOnce);
    looked_ = now;
    return left_ <= Clock::duration::zero();
  }

  // What has passed since the last question was our own doing, and does not count.
  void forgive(Clock::time_point now = Clock::now()) { looked_ = now; }

  void extend(Clock::duration more) { left_ += more; }

  // How long to poll() before the next question, in milliseconds, at most `most`.
  int poll_ms(std::chrono::milliseconds most = kLook) const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(left_);
    return static_cast<int>(std::clamp(left, std::chrono::milliseconds(0), most).count());
  }

 private:
  Clock::duration left_;
  Clock::time_point looked_;
};

}  // namespace tuner
