// Groups the entries of a job file into jobs. All tasks of one job are searched and measured alike.
#pragma once

#include <vector>

#include "db/records.h"
#include "templates/workload/workload.h"

namespace tuner {

struct JobGroup {
  JobRow job;                       // without id and request_id
  std::vector<Workload> workloads;  // of the job's tasks, in order
};

// Adds a task to the group that is searched and measured like `job` (its tasks are ignored), or to a new
// group. Uses of a repeated task are added up.
void add_task(std::vector<JobGroup>& groups, const JobRow& job, const JobRow::Task& task,
              const Workload& workload);

}  // namespace tuner
