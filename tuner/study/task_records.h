// TaskRecords: what a database holds about one task, one row per config. Used for recorded spaces
// (space_export.h) and for playing other searches on them (whatif).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "db/store.h"
#include "templates/space/config_space.h"
#include "tuner/search/search_strategy.h"

namespace tuner {

struct TaskRecords {
  struct Row {
    std::string template_name;
    Config config;
    Outcome outcome = Outcome::kOk;
    // For an ok config: every sample of its records that ran to their end, ns per call, in the order
    // measured. Empty if all its records were cut short: then only `bound_ns` is known.
    std::vector<double> samples_ns;
    double bound_ns = 0;

    bool is_timed() const { return outcome == Outcome::kOk && !samples_ns.empty(); }
    double time_ns() const;  // median of the samples; 0 if there are none
  };
  JobRow::Task task;
  std::vector<Row> rows;  // in the order of their first records
  std::string hardware;   // fingerprint of the machine that all rows are from
  int64_t outdated = 0;   // records left out because they are of another template version
};

// Returns the rows of one task of a job, or of every job that had the task. `task_index` -1 selects the job's
// only task (InvalidArgument if it has several). Times of different machines cannot be compared: if
// `hardware` is empty and there are records of several machines, InvalidArgument names them. `device_class`:
// of the task's records those on devices of the class (TargetFamily::device_class); empty: all.
Result<TaskRecords> records_of_job(const Store& store, const std::string& job_id, int task_index,
                                   const std::string& hardware = {});
Result<TaskRecords> records_of_task(const Store& store, const JobRow::Task& task,
                                    const std::string& hardware = {}, const std::string& device_class = {});

// The row of each candidate of `space`; -1: not recorded. Rows whose template or config is not in the space
// are counted in `unknown`.
struct RowIndex {
  std::vector<std::pair<Candidate, int>> sorted;  // by candidate
  int64_t unknown = 0;
  int find(const Candidate& candidate) const;
};
RowIndex index_rows(const TaskRecords& records, const SearchSpace& space);

}  // namespace tuner
