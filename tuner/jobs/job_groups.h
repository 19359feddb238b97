// From the entries of a job file to jobs: a job is what is searched and measured alike.
#pragma once

#include <vector>

#include "db/records.h"
#include "templates/workload/workload.h"

namespace tuner {

struct JobGroup {
  JobRow job;                       // without id and request_id
  std::vector<Workload> workloads;  // of its tasks, in order
};

// Puts a task into the group whose job is searched and measured as `job` (whose tasks are not looked at), or
// into a new one. The same task twice counts twice: its uses are added.
void add_task(std::vector<JobGroup>& groups, const JobRow& job, const JobRow::Task& task,
              const Workload& workload);

}  // namespace tuner
