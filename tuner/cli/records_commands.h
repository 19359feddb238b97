// The subcommands of `tuner records`, a file each.
#pragma once

#include <string>
#include <vector>

#include "db/records.h"
#include "tuner/cli/command.h"

namespace tuner::cli {

void add_records_export(Command records, CommandContext& context);
void add_records_import(Command records, CommandContext& context);
void add_records_merge(Command records, CommandContext& context);
void add_records_diff(Command records, CommandContext& context);

// Rows done so far, on stderr: a line that is rewritten on a terminal, else one every 10 seconds.
class RowProgress {
 public:
  explicit RowProgress(std::string what);
  ~RowProgress();
  void operator()(int64_t rows);

 private:
  std::string what_;
  double begun_s_, told_s_;
  bool terminal_, shown_ = false;
};

}  // namespace tuner::cli
