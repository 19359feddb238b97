// Results of another tuner that a person says are of a task of ours: rows whose parameters are the knobs of
// one of its templates, with values that its space has, become foreign records of that task.
#pragma once

#include "compiler_core/base/status.h"
#include "db/exchange/exchange_store.h"
#include "tuner/daemon/search/task_space.h"

namespace tuner {

class AttachedRows {
 public:
  // Errors as make_task_space().
  static Result<AttachedRows> of(const JobRow::Task& task);

  // The record as one of the task: its task, its target, its config in the spelling of the space. A word of a
  // knob is found by its text. InvalidArgument in one line: other parameters than the knobs, a value that a
  // knob does not have, a constraint that is broken. Requires a record in the form of T4.
  Result<ForeignRecord> attach(const ForeignRecord& record) const;

 private:
  explicit AttachedRows(JobRow::Task task, TaskSpace space)
      : task_(std::move(task)), space_(std::move(space)) {}

  JobRow::Task task_;
  TaskSpace space_;
};

}  // namespace tuner
