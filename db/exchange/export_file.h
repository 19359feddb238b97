// Records of a database as a file.
#pragma once

#include <functional>
#include <string>

#include "db/exchange/formats.h"
#include "db/store.h"

namespace tuner::exchange {

struct ExportOptions {
  Format format = Format::kJsonLines;
  ExchangeFilter filter;
  std::string path = "-";      // compressed when it ends in .gz; "-" is standard output
  bool foreign_table = false;  // CSV: the records of other tuners instead of our own
  std::function<void(int64_t lines)> progress;
};

struct ExportReport {
  int64_t lines = 0;     // written; of a T4 document: results
  int64_t trials = 0;    // records of ours, and trials without one
  int64_t foreign = 0;   // records of other tuners
  int64_t left_out = 0;  // rows that were asked for and have no place in the format
  int64_t damaged = 0;   // rows that are damaged in the database, or need one that is; not written
  static constexpr size_t kShown = 100;
  std::vector<std::string> why;  // each damaged row once, the first kShown of them
};

// Writes line after line; memory does not grow with the database, but for T4. The file appears when it is
// whole (TextOutput). InvalidArgument: the path; T4 of records that are of several tasks. NotFound: no such
// job. Failed: the disk.
Result<ExportReport> export_file(const Store& store, const ExportOptions& options);

}  // namespace tuner::exchange
