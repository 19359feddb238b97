// What makes rows of different databases the same: names that do not depend on where a row lies.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "db/records.h"

namespace tuner {

// Search of the jobs that import made of another program's results: they hold a config once, and number it as
// they like.
inline constexpr char kPackImport[] = "import";

// Names a job in every database it gets to: its id, when it was submitted, and a checksum of what was asked.
std::string job_uid(const JobRow& job);

// What makes two trials of one job the same one.
int64_t content_of(const TrialRow& trial, const JobRow::Task& task);

// Position of the task in the job, which need not be that of the file (`hint`) when parts of the file are
// missing; -1: not there.
int index_of(const JobRow& job, const JobRow::Task& task, int hint);

// SHA-256, cut to 128 bits, of the texts; each is told apart from the next by its length.
struct Digest {
  int64_t high = 0, low = 0;
};
Digest digest_of(std::initializer_list<std::string_view> texts);

// Tasks as compact JSON: the text by which databases recognise a job.
std::string tasks_json(const std::vector<JobRow::Task>& tasks);

}  // namespace tuner
