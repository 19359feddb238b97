// tuner admin: the farm's keys, and whom its daemon lets in. It writes the identity folder (tuner/identity),
// which a running daemon follows.
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <memory>

#include "compiler_core/base/output_file.h"
#include "db/store.h"
#include "tuner/cli/admin_commands.h"
#include "tuner/identity/give_out.h"
#include "tuner/identity/listing.h"
#include "tuner/text/terminal.h"

namespace tuner::cli {
namespace {

using identity::Entry;
using identity::IdentityFolder;

constexpr int kAuthorityDays = 3650, kDaemonDays = 825, kWorkerDays = 365, kTokenDays = 90, kMostDays = 3650;

struct AdminOptions {
  std::string db, identity;
  identity::Wish wish;
  double weight = 0;                         // 0: not given
  int leases = -1, jobs = -1, sources = -1;  // negative: not given
  bool renew = false, json = false;

  std::string folder() const { return identity.empty() ? IdentityFolder::path_of(db) : identity; }
};

int make_authority(const AdminOptions& options) {
  const int days = options.wish.days;
  // As a daemon does for its database, which may come later.
  if (options.identity.empty() && options.db == default_db_path()) {
    const std::string folder = options.db.substr(0, options.db.rfind('/'));
    if (const Status made = make_folders(folder); !made) return report(made);
  }
  const Result<IdentityFolder> folder = options.renew
                                            ? IdentityFolder::open(options.folder())
                                            : IdentityFolder::create(options.folder(), kAuthorityDays, days);
  if (!folder) return report(folder.status());
  if (!options.renew) {
    std::printf("%s: an authority of this farm, and the daemon's certificate for %d days\n",
                folder->path().c_str(), days);
    std::printf("next: tuner serve --listen tls:0.0.0.0:7070\n");
    return kExitDone;
  }
  if (const Status renewed = folder->renew_daemon(days); !renewed) return report(renewed);
  std::printf("%s: the daemon has a new certificate for %d days. A running daemon takes it up by itself\n",
              folder->path().c_str(), days);
  return kExitDone;
}

int let_in(const AdminOptions& options) {
  const Result<Entry> entry = identity::give_out(options.folder(), options.wish);
  if (!entry) return report(entry.status());
  if (options.wish.output == "-") return kExitDone;
  const bool worker = entry->kind == Entry::Kind::kWorker;
  std::printf("%s: %s %s until %s\nbring it there secretly (scp), then: %s --daemon %s\n",
              options.wish.output.c_str(), worker ? "worker" : "a token of", entry->name.c_str(),
              identity::date_text(entry->until_s).c_str(), worker ? "measure_server" : "tuner submit FILE",
              options.wish.output.c_str());
  return kExitDone;
}

int revoke(const AdminOptions& options) {
  const Result<IdentityFolder> folder = IdentityFolder::open(options.folder());
  const Result<int> count = folder ? folder->revoke(options.wish.name) : Result<int>(folder.status());
  if (!count) return report(count.status());
  std::printf("%s: %d revoked. From the next second on a running daemon answers it no more\n",
              options.wish.name.c_str(), *count);
  return kExitDone;
}

int set_share(const AdminOptions& options) {
  const Result<IdentityFolder> folder = IdentityFolder::open(options.folder());
  if (!folder) return report(folder.status());
  ShareChange change;
  if (options.weight > 0) change.weight = options.weight;
  if (options.leases >= 0) change.most_leases = options.leases;
  if (options.jobs >= 0) change.most_jobs = options.jobs;
  if (options.sources >= 0) change.most_source_mib = options.sources;
  const Result<Share> share = folder->change_share(options.wish.tenant, change);
  if (!share) return report(share.status());
  std::printf("%s\n", identity::share_text(options.wish.tenant, *share).c_str());
  return kExitDone;
}

int list(const AdminOptions& options) {
  const Result<IdentityFolder> folder = IdentityFolder::open(options.folder());
  if (!folder) return report(folder.status());
  const auto now_s = static_cast<int64_t>(std::time(nullptr));
  const Result<std::string> text =
      options.json ? listing_json(*folder, now_s) : listing(*folder, now_s, terminal_width(STDOUT_FILENO));
  if (!text) return report(text.status());
  std::printf("%s", text->c_str());
  return kExitDone;
}

using Body = int (*)(const AdminOptions&);
using Options = std::shared_ptr<AdminOptions>;

Command add_act(Command admin, CommandContext& context, const char* name, const char* description, Body body,
                const Options& options) {
  const Command act =
      add_command(admin, context, name, description, [options, body] { return body(*options); });
  add_db_option(act, options->db);
  add_identity_option(act, options->identity);
  return act;
}

void offer_days(Command act, AdminOptions& options, int usual) {
  options.wish.days = usual;
  act.add_option("--days", options.wish.days, "For how many days it is good")
      .in_range(1, kMostDays)
      .show_default();
}

Command add_let_in(Command admin, CommandContext& context, const char* name, const char* description,
                   int days, const Options& options) {
  const Command act = add_act(admin, context, name, description, let_in, options);
  act.add_option("NAME", options->wish.name, "What it is called in lists and logs").required();
  act.add_option("--address", options->wish.address, "HOST:PORT at which the daemon is reached from there")
      .required();
  act.add_option("-o,--output", options->wish.output, "Credentials file to write; - is stdout")
      .type_name("FILE")
      .required();
  offer_days(act, *options, days);
  return act;
}

}  // namespace

void add_admin_command(Command app, CommandContext& context) {
  const Command admin = app.add_subcommand("admin", "A farm's keys, and whom its daemon lets in");
  admin.need_subcommand();
  const auto made = [] { return std::make_shared<AdminOptions>(); };

  Options options = made();
  const Command ca = add_act(admin, context, "ca", "Makes the farm's authority and the daemon's certificate",
                             make_authority, options);
  ca.add_flag("--renew", options->renew, "A new certificate for the daemon, from the same authority");
  offer_days(ca, *options, kDaemonDays);

  options = made();
  options->wish.kind = Entry::Kind::kWorker;
  add_let_in(admin, context, "worker", "Lets a worker in: writes its credentials", kWorkerDays, options)
      .add_flag("--fleet", options->wish.fleet,
                "For many hosts: each that has the file is a worker NAME.HOST-DIGITS");

  options = made();
  options->wish.roles = "submit,query";
  const Command token = add_let_in(admin, context, "token",
                                   "Lets a person or a program in: writes credentials", kTokenDays, options);
  token.add_option("--roles", options->wish.roles, "Of query, submit, work, admin, with commas between")
      .offers(offer_list({"query", "submit", "work", "admin"}))
      .show_default();
  token.add_option("--tenant", options->wish.tenant,
                   "Whose jobs it makes and sees; else those of nobody in particular");

  options = made();
  add_act(admin, context, "revoke", "Ends all that was given out under a name", revoke, options)
      .add_option("NAME", options->wish.name, "Of a worker or a token")
      .required();

  options = made();
  const Command share =
      add_act(admin, context, "tenant", "Changes what a tenant may have, and prints it", set_share, options);
  share.add_option("NAME", options->wish.tenant, "As in the tokens of its people").required();
  share
      .add_option("--weight", options->weight,
                  "Its share of device time beside other tenants' weights; at first 1")
      .in_range(1e-3, 1e6);
  share.add_option("--leases", options->leases, "Trials at workers at once; 0: no limit, as at first")
      .in_range(0, 1'000'000);
  share.add_option("--jobs", options->jobs, "Unfinished jobs at once; 0: no limit, as at first")
      .in_range(0, 1'000'000);
  share
      .add_option("--sources", options->sources,
                  "MiB of kernels' sources that the daemon stores; 0: no limit; at first 256")
      .in_range(0, 1'000'000);

  add_admin_usage(admin, context);
  add_admin_backup(admin, context);
  add_admin_drain(admin, context);

  options = made();
  add_json_option(add_act(admin, context, "list", "Lists whom the daemon lets in", list, options),
                  options->json);
}

}  // namespace tuner::cli
