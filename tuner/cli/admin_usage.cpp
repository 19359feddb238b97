// tuner admin usage: what each tenant has used.
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "db/store.h"
#include "tuner/cli/admin_commands.h"
#include "tuner/study/usage.h"
#include "tuner/text/terminal.h"

namespace tuner::cli {
namespace {

struct UsageOptions {
  std::string db, identity;
  bool json = false;
};

int show_usage(const UsageOptions& options) {
  const Result<std::unique_ptr<Store>> store = Store::open(options.db, Store::Mode::kRead);
  if (!store) return report(store.status());
  const Result<std::string> text =
      options.json ? usage_json(**store) : usage_text(**store, terminal_width(STDOUT_FILENO));
  if (!text) return report(text.status());
  std::printf("%s", text->c_str());
  return kExitDone;
}

}  // namespace

void add_admin_usage(Command admin, CommandContext& context) {
  auto options = std::make_shared<UsageOptions>();
  const Command command =
      add_command(admin, context, "usage", "What each tenant has used, by a database's records",
                  [options] { return show_usage(*options); });
  add_db_option(command, options->db);
  add_identity_option(command, options->identity);
  add_json_option(command, options->json);
}

}  // namespace tuner::cli
