// Races: finalists of a task measured against each other, and single trials measured again beside the
// sentinel (tuner verify --times), from the time they are asked for until their end has been told.
//
//           begin             leased                  won, failed
//   (nothing) ----> waiting ----------> with a worker ------------> ended ----> taken
//                      |                                              ^
//                      +--- give_up_unserved: nobody left to run it --+
//
// A race is leased as trials are, under its own id (lease_table.h); a race lost with its worker is leased
// again, and nothing changes here. An ended race is ended once: what comes later is ignored.
//
// Pure: no clock, no disk, no threads. The caller says what time it is (milliseconds, monotonic), stores the
// results, and holds its own lock around every call.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "db/records.h"
#include "tuner/daemon/tables/work.h"

namespace tuner {

class Races {
 public:
  // `wait_ms`: how long a race waits for a worker that can run it, after the last one has gone.
  explicit Races(int64_t wait_ms) : wait_ms_(wait_ms) {}

  struct Race {
    std::string job_id;  // empty: a remeasurement, which somebody waits for
    int task_index = 0;
    Needs needs;         // of its worker
    double limit_s = 0;  // RaceOptions::limit_s
    RaceCourse course;
    std::optional<int64_t> begun_ms;  // when a worker was last given it
    bool ended = false;
    std::string error;              // why it ended without a winner
    std::string uncertified_why;    // its winner is not certified, and why
    std::optional<RaceRow> result;  // of a remeasurement: no job's results are stored without
  };
  // The id of its lease. No two races have the same: the result of an earlier one, sent again, must not pass
  // for this one's.
  static std::string id_of(std::string_view what, int64_t wall_us);
  void begin(const std::string& id, Race race, int64_t now_ms);
  void leased(const std::string& id, int64_t now_ms);
  // What its worker says of it. False: it is not under way.
  bool take_course(const std::string& id, const RaceCourse& course);
  void won(const std::string& id, const RaceRow& result);
  void failed(const std::string& id, const std::string& why);
  // Ends those of the job that nobody can run: `served` was true for none of their needs at any call within
  // the last wait_ms. Returns their ids.
  using Served = std::function<bool(const Needs&)>;
  std::vector<std::string> give_up_unserved(const std::string& job_id, const Served& served, int64_t now_ms);

  size_t open_races() const;                           // that have not ended, remeasurements too
  const Race* find(const std::string& id) const;       // null: unknown; good until it is taken or forgotten
  const Race* under_way(const std::string& id) const;  // null also when it has ended
  // Of the job, ended ones too until they are taken, in the order of their ids.
  std::vector<const Race*> of_job(const std::string& job_id) const;
  std::vector<Race> take_ended(const std::string& job_id);  // forgets them
  void forget(const std::string& id);
  void forget_job(const std::string& job_id);

 private:
  struct Entry {
    Race race;
    int64_t served_ms = 0;  // when somebody could last run it
  };
  Race* open(const std::string& id);

  int64_t wait_ms_;
  std::map<std::string, Entry> races_;
};

}  // namespace tuner
