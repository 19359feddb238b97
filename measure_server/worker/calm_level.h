// CalmLevel: the time of a pulse or sentinel when nobody else slows this machine down.
//
// On a shared host a core runs at two thirds of its speed whenever somebody uses its other hardware thread,
// and memory is slower while a neighbour streams through it. No clock shows this, but pulses and sentinels
// do. The level is the lowest median of eight successive times so far. It rises by 1 % per minute of
// measuring. So a machine that became slower for good is believed after a while, and a neighbour who stays
// for a minute is not.
//
// The level is kept in a file for the next start, which uses it while it is fresh. A level that was not seen
// again for half an hour dates from other neighbours and says nothing about calm now.
#pragma once

#include <chrono>
#include <deque>
#include <optional>
#include <string>

namespace tuner {

class CalmLevel {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::minutes kNews{30};  // how long a level stays valid without being seen again

  // `path`: the file that keeps the level; empty: none. A level of other `hardware` is not taken over.
  // `disturbed`: a time above this multiple of the level means that the measurement beside it was disturbed.
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
