// Reruns: trials that have their result and are measured once more, each for a caller who waits (tuner
// rerun). The job's own result stands; the new one is stored beside it.
//
// Pure: no clock, no disk, no threads. The caller holds its own lock around every call.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "db/records.h"

namespace tuner {

class Reruns {
 public:
  struct Rerun {
    std::optional<MeasureRecord> record;
    std::string error;
    bool ended() const { return record.has_value() || !error.empty(); }
  };
  // Its attempts begin at a million and hold the time in seconds (of the Unix clock): each is a sample of its
  // own, told apart from the job's.
  static int attempt_at(int64_t wall_us);

  void begin(const std::string& trial_id);
  void end(const std::string& trial_id);
  const Rerun* find(const std::string& trial_id) const;  // null: none is under way; good until its end
  // False: it is a late result of one of the job's own attempts, not of the rerun.
  bool take(const MeasureRecord& record);
  void fail(const std::string& trial_id, const std::string& why);

 private:
  std::map<std::string, Rerun> reruns_;  // by trial id
};

}  // namespace tuner
