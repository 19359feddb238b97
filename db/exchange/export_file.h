// Writes records of a database into a file.
#pragma once

#include <functional>
#include <string>

#include "db/exchange/formats.h"
#include "db/store.h"

namespace tuner::exchange {

struct ExportOptions {
  Format format = Format::kJsonLines;
  ExchangeFilter filter;
  std::string path = "-";      // a name ending in .gz is compressed; "-" is standard output
  bool foreign_table = false;  // CSV only: write the records of other tuners instead of our own
  std::function<void(int64_t lines)> progress;
};

struct ExportReport {
  int64_t lines = 0;     // results, for a T4 document
  int64_t trials = 0;    // our records, and trials without a record
  int64_t foreign = 0;   // records of other tuners
  int64_t left_out = 0;  // rows that were asked for but that the format cannot hold
  int64_t damaged = 0;   // rows not written because they, or rows they need, are damaged
  static constexpr size_t kShown = 100;
  std::vector<std::string> why;  // the first kShown damaged rows, one line each
};

// Memory does not grow with the database, except for T4. The file appears when it is complete (TextOutput).
// InvalidArgument: a bad path, or T4 for records of several tasks. NotFound: no such job. Failed: the disk.
Result<ExportReport> export_file(const Store& store, const ExportOptions& options);

}  // namespace tuner::exchange
