// TaskRecords: what a database holds of one task, a row a config: for recorded spaces (space_export.h) and
// for playing other searches on them (whatif).
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
    // Of an ok config: every sample of its records that ran to their end, ns a call, in the order measured.
    // Empty when each of its records was cut short: then only `bound_ns` is known.
    std::vector<double> samples_ns;
    double bound_ns = 0;

    bool is_timed() const { return outcome == Outcome::kOk && !samples_ns.empty(); }
    double time_ns() const;  // median of the samples; 0 unless timed
  };
  JobRow::Task task;
  std::vector<Row> rows;  // in the order of their first records
  std::string hardware;   // fingerprint of the machine all of them are from
  int64_t outdated = 0;   // records left out: of another version of their template
};

// The rows of one task of a job (`task_index` -1: of its only one, InvalidArgument when it has several), or
// of every job that had this task. Times of different machines are not comparable: `hardware` empty and
// records of several: InvalidArgument, naming them.
Result<TaskRecords> records_of_job(const Store& store, const std::string& job_id, int task_index,
                                   const std::string& hardware = {});
Result<TaskRecords> records_of_task(const Store& store, const JobRow::Task& task,
                                    const std::string& hardware = {});

// Row of each candidate of `space`, -1: not recorded. Rows whose template or config the space does not have
// are counted in `unknown`.
struct RowIndex {
  std::vector<std::pair<Candidate, int>> sorted;  // by candidate
  int64_t unknown = 0;
  int find(const Candidate& candidate) const;
};
RowIndex index_rows(const TaskRecords& records, const SearchSpace& space);

}  // namespace tuner
