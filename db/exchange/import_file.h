// A file of records into a database, every line accounted for.
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
  int64_t lines = 0;                   // of a T4 document: results
  int64_t blank = 0;                   // also a CSV header
  Count jobs, trials, races, foreign;  // a trial counts once for each of its records
  int64_t skipped = 0;
  int64_t unmatched = 0;  // of `foreign`: ImportOptions::warms_a_search said no
  // Of the first kShown skipped lines: its number and why. The number 0: what is wrong with the file as a
  // whole.
  static constexpr size_t kShown = 100;
  std::vector<std::pair<int64_t, std::string>> why;
  // lines == blank + the four counts + skipped, always.
  Count& count_of(const ExchangeRow& row);
  int64_t accounted() const {
    return blank + jobs.all() + trials.all() + races.all() + foreign.all() + skipped;
  }
};

struct ImportOptions {
  std::optional<Format> format;  // else told by content
  // Of foreign records whose file does not say: the task (empty: the file's name) and the target.
  std::string task, target;
  // Refuses what nobody could query, asked once for each (workload, target); may be empty.
  std::function<Status(const JobRow::Task&)> check_task;
  // Of a record of another tuner: whether it is of a space of ours. May be empty: nobody asks.
  std::function<bool(const ForeignRecord&)> warms_a_search;
  std::function<void(int64_t lines)> progress;  // called now and then, may be empty
};

// What the file is, by its first lines. `kPackResults` is for import_results() (tuner/cli).
enum class Detected { kJsonLines, kAutotvm, kT4, kCsv, kPackResults };
// InvalidArgument: none of them; the message says what the first line is.
Result<Detected> detect_format(const std::string& path);

// Stores what the file holds; lines that cannot be read are skipped and told. Stored again, it changes
// nothing. Memory does not grow with the file, but for T4, which is one document. InvalidArgument: no file,
// or one that is of none of the formats. Failed: the disk; what was stored before stays.
Result<ImportReport> import_file(const std::string& path, Store& store, const ImportOptions& options);

}  // namespace tuner::exchange
