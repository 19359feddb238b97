// The subcommands of `tuner records`, one file each.
#pragma once

#include <string>
#include <vector>

#include "db/exchange/import_file.h"
#include "tuner/cli/command.h"
#include "tuner/text/facts.h"

namespace tuner::cli {

void add_records_export(Command records, CommandContext& context);
void add_records_import(Command records, CommandContext& context);
void add_records_merge(Command records, CommandContext& context);
void add_records_diff(Command records, CommandContext& context);
void add_records_check(Command records, CommandContext& context);

// {"new": 3, "known": 1}
inline nlohmann::ordered_json new_and_known(const exchange::ImportReport::Count& count) {
  return new_and_known_json(count.added, count.known);
}

// Shows the rows done so far on stderr: a line that is rewritten on a terminal, else one line every 10
// seconds.
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
