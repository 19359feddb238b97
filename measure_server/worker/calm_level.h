// CalmLevel: what the sentinel takes when nobody else slows this machine down.
//
// On a shared host a core runs at two thirds of its speed for tenths of a second at a time, whenever somebody
// uses its other hardware thread; no clock of ours shows that, the sentinel does. The level is the lowest
// that the median of eight successive sentinels has come down to; it rises by half a percent with every ten,
// so that a machine that has become slower for good is believed after a while. Kept in a file for the next
// start.
#pragma once

#include <deque>
#include <string>

namespace tuner {

class CalmLevel {
 public:
  // `path`: where it is kept; a level of other `hardware` is not taken over. Empty: nowhere.
  CalmLevel(std::string path, std::string hardware);

  void observe(double sentinel_ns);
  double ns() const { return level_ns_; }  // 0: not known yet
  // More than a tenth above the level: what was timed beside it is not the kernel's own time.
  bool disturbed(double sentinel_ns) const { return level_ns_ > 0 && sentinel_ns > kDisturbed * level_ns_; }

  static constexpr double kDisturbed = 1.10;

 private:
  void keep();

  std::string path_, hardware_;
  std::deque<double> latest_;
  double level_ns_ = 0, kept_ns_ = 0;
};

}  // namespace tuner
