// EventLog: what watchers of a job are told beside its progress, for as long as the database lives. Each is
// stored as the JSON form of its message.
//
// May be called from any thread; blocks while the disk writes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "db/store.h"
#include "tuning.pb.h"

namespace tuner {

class EventLog {
 public:
  explicit EventLog(Store& store) : store_(store) {}

  // An event that cannot be stored is lost, and the log says so.
  void add(const std::string& job_id, JobState state, const std::string& message,
           const v1::TunedConfig* tuned = nullptr);
  // The oldest of the job's events with a larger seq than `seq`, at most 256.
  Result<std::vector<v1::JobEvent>> after(const std::string& job_id, int64_t seq) const;

 private:
  Store& store_;
};

}  // namespace tuner
