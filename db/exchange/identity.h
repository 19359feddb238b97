// Decides when rows of different databases are the same, by names that do not depend on where a row is
// stored.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "db/records.h"

namespace tuner {

// The `search` of jobs that an import made from another program's results. Such a job holds each config once,
// and its numbering is its own.
inline constexpr char kPackImport[] = "import";

// Returns the name that a job has in every database: its id, its submission time and a checksum of its
// request.
std::string job_uid(const JobRow& job);

// Returns a digest of task, template and config. With the trial's home_seq (0 for a pack) it names a trial in
// its job.
int64_t content_of(const TrialRow& trial, const JobRow::Task& task);

// Returns the position of the task in the job, or -1. It may differ from the position in the file (`hint`) if
// parts of the file are missing.
int index_of(const JobRow& job, const JobRow::Task& task, int hint);

// The SHA-256 of the texts, cut to 128 bits. Lengths are hashed too, so ("ab", "c") and ("a", "bc") differ.
struct Digest {
  int64_t high = 0, low = 0;
};
Digest digest_of(std::initializer_list<std::string_view> texts);

// Returns the tasks as compact JSON, the text by which databases recognise a job.
std::string tasks_json(const std::vector<JobRow::Task>& tasks);

}  // namespace tuner
