// Imports a file of records into a database and accounts for every line.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "db/exchange/formats.h"
#include "db/store.h"

namespace tuner::exchange {

struct ImportReport {
  struct Count {
    int64_t added = 0, known = 0;
    int64_t all() const { return added + known; }
  };
  std::string source;
  Format format = Format::kJsonLines;
  int64_t lines = 0;                            // results, for a T4 document
  int64_t blank = 0;                            // includes the header of a CSV file
  Count jobs, trials, races, foreign, kernels;  // a trial counts once for each of its records
  int64_t skipped = 0;
  // Rows that ImportOptions::attach refused; line and reason of the first.
  int64_t outside = 0;
  std::pair<int64_t, std::string> first_outside;
  int64_t unmatched = 0;  // how many of `foreign` ImportOptions::warms_a_search refused
  // The line number and reason of the first kShown skipped lines. Number 0 stands for the file as a whole.
  static constexpr size_t kShown = 100;
  std::vector<std::pair<int64_t, std::string>> why;
  // Always true: lines == blank + the five counts + skipped + outside.
  Count& count_of(const ExchangeRow& row);
  int64_t accounted() const {
    return blank + jobs.all() + trials.all() + races.all() + foreign.all() + kernels.all() + skipped +
           outside;
  }
};

struct ImportOptions {
  std::optional<Format> format;  // empty: detected from the content
  // For foreign records whose file names neither: their task (empty: the file's name) and target.
  std::string task, target;
  // Refuses tasks that nobody could query. Called once for each (workload, target); may be empty.
  std::function<Status(const JobRow::Task&)> check_task;
  // Refuses documents that are not what their digest says. May be empty: who uses one finds out.
  std::function<Status(const KernelRow&)> check_kernel;
  // True if a foreign record belongs to a config space of ours. May be empty: nothing is then counted.
  std::function<bool(const ForeignRecord&)> warms_a_search;
  // Makes a record of another tuner one of a task of ours, or says why it is none. May be empty.
  std::function<Result<ForeignRecord>(const ForeignRecord&)> attach;
  std::function<void(int64_t lines)> progress;  // called from time to time; may be empty
};

// The kind of a file, judged by its first lines. `kPackResults` is read by import_results() (tuner/cli).
enum class Detected { kJsonLines, kAutotvm, kT4, kCsv, kKernelTuner, kPackResults };
// InvalidArgument: no known kind; the message describes the first line.
Result<Detected> detect_format(const std::string& path);

// OK if ImportOptions::attach takes one record of the document at least: asked before a store is opened,
// which may make a file. InvalidArgument: none, with the reason of the first. Requires Format::kT4 or
// kKernelTuner.
Status check_some_fit(const std::string& path, Format format, const ImportOptions& options);

// Stores the file's content; unreadable lines are skipped and reported. Importing a file again changes
// nothing. Memory does not grow with the file, except for T4 and Kernel Tuner's, which are one document.
// InvalidArgument: no file, or an unknown format. Failed: the disk; what was stored before stays.
Result<ImportReport> import_file(const std::string& path, Store& store, const ImportOptions& options);

}  // namespace tuner::exchange
