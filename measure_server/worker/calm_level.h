// CalmLevel: what a sentinel takes when nobody else slows this machine down.
//
// On a shared host a core runs at two thirds of its speed for tenths of a second at a time, whenever somebody
// uses its other hardware thread, and memory is slower for as long as a neighbour streams through it; no
// clock of ours shows that, the sentinels do. The level is the lowest that the median of eight successive
// ones has come down to. It rises by 1 % a minute of measuring, so that a machine that has become slower for
// good is believed after a while, and a neighbour who stays for a minute is not. Kept in a file for the next
// start.
#pragma once

#include <chrono>
#include <deque>
#include <optional>
#include <string>

namespace tuner {

class CalmLevel {
 public:
  using Clock = std::chrono::steady_clock;

  // `path`: where it is kept; a level of other `hardware` is not taken over. Empty: nowhere. `disturbed`: a
  // sentinel above so many times the level says that what was timed beside it is not the kernel's own time.
  CalmLevel(std::string path, std::string hardware, double disturbed = kDisturbed);

  void observe(double sentinel_ns, Clock::time_point now = Clock::now());
  double ns() const { return level_ns_; }  // 0: not known yet
  bool disturbed(double sentinel_ns) const { return level_ns_ > 0 && sentinel_ns > disturbed_ * level_ns_; }

  static constexpr double kDisturbed = 1.10;

 private:
  void keep();

  std::string path_, hardware_;
  std::deque<double> latest_;
  double disturbed_ = kDisturbed, level_ns_ = 0, kept_ns_ = 0;
  std::optional<Clock::time_point> latest_at_;
};

}  // namespace tuner
