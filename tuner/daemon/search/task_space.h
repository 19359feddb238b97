// TaskSpace: a task as the search sees it: the applicable templates, their spaces and their Programs'
// features.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/target.h"
#include "db/records.h"
#include "templates/schedule_template.h"
#include "templates/workload/workload.h"
#include "tuner/search/search_strategy.h"

namespace tuner {

struct TaskSpace {
  int64_t flops = 0;  // of the workload; for GFLOP/s
  SearchSpace search;
  std::vector<int> template_versions;  // one a part of `search`
  std::shared_ptr<void> owned;         // what `search` borrows from
};

// Applies every template that serves the task. NotFound with one line a template when none does.
Result<TaskSpace> make_task_space(const JobRow::Task& task);

// The same errors, without building any space: for refusing a job when it is submitted.
Status check_task(const JobRow::Task& task);

}  // namespace tuner
