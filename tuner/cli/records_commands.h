// The subcommands of `tuner records`, one file each.
#pragma once

#include <string>
#include <vector>

#include "db/exchange/import_file.h"
#include "tuner/cli/command.h"
#include "tuner/text/facts.h"
#include "tuner/text/row_progress.h"

namespace tuner::cli {

void add_records_export(Command records, CommandContext& context);
void add_records_import(Command records, CommandContext& context);
void add_records_merge(Command records, CommandContext& context);
void add_records_diff(Command records, CommandContext& context);
void add_records_check(Command records, CommandContext& context);
void add_records_prune(Command records, CommandContext& context);

// {"new": 3, "known": 1}
inline nlohmann::ordered_json new_and_known(const exchange::ImportReport::Count& count) {
  return new_and_known_json(count.added, count.known);
}

}  // namespace tuner::cli
