// TimeLimit: how the time of one run of a job is shared between its search and its races. A run that a
// restart of the daemon has interrupted goes on with the time that was left.
//
//   0 s                                                                    time limit
//   |  every task's default  |  trials where they gain the most  |  races  |
//
// The search ends early enough for the races of the tasks that have something to race, but it gives them no
// more than a third of the time, and none while a task is without any trial. Races get equal shares of the
// time that is left; where that is not enough for one heat, none. How long races take is learned from those
// that have ended.
//
// Pure: the caller says what time it is (milliseconds, monotonic).
#pragma once

#include <cstdint>

namespace tuner {

class TimeLimit {
 public:
  TimeLimit() = default;  // no limit
  // `limit_s` from now, less what was used before; 0: no limit.
  TimeLimit(double limit_s, int64_t now_ms, double used_s = 0);

  bool exists() const { return limit_s_ > 0; }
  double limit_s() const { return limit_s_; }
  double used_s(int64_t now_ms) const;
  // Whether it is time to store used_s() again: a fiftieth of the limit has passed, and a second.
  bool is_to_be_stored(int64_t now_ms) const;
  void stored(int64_t now_ms) { stored_ms_ = now_ms; }
  bool is_over(int64_t now_ms) const { return exists() && now_ms >= deadline_ms_; }

  // Whether the search is to end, for so many races are to come. `untried`: some task has no trial yet.
  bool ends_search(int64_t races, bool untried, int64_t now_ms) const;
  // What RaceOptions::limit_s is to be of the next race, one of `races` to come, which `racers` workers run
  // side by side. `searching`: other tasks are still searched for, and keep their time. `most_s`: no race
  // gets more. 0: no time is left for a race.
  double race_limit_s(int64_t races, int racers, bool searching, double most_s, int64_t now_ms) const;
  // A race that was given `limit_s` took so long, seen from here.
  void count_race(double took_ms, double limit_s);

 private:
  double limit_s_ = 0;
  int64_t deadline_ms_ = 0, stored_ms_ = 0;
  // Each begins with a guess, which counts as one race.
  double races_ = 1, sum_ms_ = 8'000;
  double late_races_ = 1, late_ms_ = 500;  // those that used their limit up: how long they went on after it
};

}  // namespace tuner
