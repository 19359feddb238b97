// tuner admin backup FILE: a copy of a database at one moment.
#include <cstdio>
#include <memory>
#include <optional>
#include <stop_token>

#include "db/store.h"
#include "tuner/cli/admin_commands.h"
#include "tuner/command_line/interrupt.h"
#include "tuner/text/row_progress.h"

namespace tuner::cli {
namespace {

struct BackupOptions {
  std::string db, identity, output;
};

int back_up(const BackupOptions& options) {
  const Result<std::unique_ptr<Store>> store = Store::open(options.db, Store::Mode::kRead);
  if (!store) return report(store.status());
  catch_interrupts();
  std::stop_source stop;
  std::optional<RowProgress> progress(std::in_place, "copied", "pages");
  const Status copied = (*store)->backup(options.output, stop.get_token(), [&](int64_t pages, int64_t) {
    (*progress)(pages);
    if (interrupted()) stop.request_stop();
  });
  progress.reset();  // what is said next has the line to itself
  if (!copied) return report(copied);
  std::printf("%s: a copy of %s as it was at this moment\n", options.output.c_str(), options.db.c_str());
  return kExitDone;
}

}  // namespace

void add_admin_backup(Command admin, CommandContext& context) {
  auto options = std::make_shared<BackupOptions>();
  const Command command =
      add_command(admin, context, "backup", "Copies a database, also one that a daemon writes at this moment",
                  [options] { return back_up(*options); });
  add_db_option(command, options->db);
  add_identity_option(command, options->identity);
  command.add_option("FILE", options->output, "The copy; a name that is not there yet").required();
}

}  // namespace tuner::cli
