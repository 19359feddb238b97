// tuner records: what is in a database, out, in, together and compared. One file a subcommand: records_*.cpp.
#include "tuner/cli/records_commands.h"

namespace tuner::cli {

void add_records_command(Command app, CommandContext& context) {
  const Command records =
      app.add_subcommand("records", "Measure records: export, import, merge, compare, check, prune");
  records.need_subcommand();
  add_records_export(records, context);
  add_records_import(records, context);
  add_records_merge(records, context);
  add_records_diff(records, context);
  add_records_check(records, context);
  add_records_prune(records, context);
}

}  // namespace tuner::cli
