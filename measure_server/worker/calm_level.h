// CalmLevel: what a pulse or a sentinel takes when nobody else slows this machine down.
//
// On a shared host a core runs at two thirds of its speed whenever somebody uses its other hardware thread,
// and memory is slower for as long as a neighbour streams through it; no clock of ours shows that, pulses and
// sentinels do. The level is the lowest that the median of eight successive ones has come down to. It rises
// by 1 % a minute of measuring, so that a machine that has become slower for good is believed after a while,
// and a neighbour who stays for a minute is not.
//
// Kept in a file for the next start, which takes it over as long as it is news: what a shared host was like
// with other neighbours, and was not again for half an hour, is not what it is like when calm.
#pragma once

#include <chrono>
#include <deque>
#include <optional>
#include <string>

namespace tuner {

class CalmLevel {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::minutes kNews{30};  // how long a level is that was not seen again

  // `path`: where it is kept; a level of other `hardware` is not taken over. Empty: nowhere. `disturbed`: one
  // above so many times the level says that what was timed beside it is not the kernel's own time.
  CalmLevel(std::string path, std::string hardware, double disturbed);

  void observe(double sentinel_ns, Clock::time_point now = Clock::now());
  double ns() const { return level_ns_; }  // 0: not known yet
  bool disturbed(double sentinel_ns) const { return level_ns_ > 0 && sentinel_ns > disturbed_ * level_ns_; }

 private:
  void keep(Clock::time_point now);

  std::string path_, hardware_;
  std::deque<double> latest_;
  Clock::time_point kept_at_{};
  double disturbed_, level_ns_ = 0, kept_ns_ = 0;
  std::optional<Clock::time_point> latest_at_;
};

}  // namespace tuner
