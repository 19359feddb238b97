// tuner dashboard: results and jobs in a browser.
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <thread>

#include "db/store.h"
#include "tuner/cli/command.h"
#include "tuner/cli/log.h"
#include "tuner/command_line/interrupt.h"
#include "tuner/dashboard/daemon_facts.h"
#include "tuner/dashboard/dashboard_server.h"
#include "tuner/dashboard/open_browser.h"
#include "tuner/dashboard/store_facts.h"
#include "tuner/identity/register.h"

namespace tuner::cli {
namespace {

struct DashboardCommandOptions {
  std::string db, daemon, beside;
  std::string http = "127.0.0.1:0";
  bool no_open = false;
};

Result<std::shared_ptr<dashboard::FactSource>> facts_of(const DashboardCommandOptions& options) {
  using dashboard::LiveDaemon;
  if (!options.daemon.empty()) {
    std::unique_ptr<LiveDaemon> daemon = LiveDaemon::at(options.daemon);
    RETURN_IF_ERROR(daemon->look().status());
    return std::shared_ptr(dashboard::facts_of_daemon(options.daemon, std::move(daemon)));
  }
  ASSIGN_OR_RETURN(std::shared_ptr<Store> store, Store::open(options.db, Store::Mode::kRead));
  return std::shared_ptr(dashboard::facts_of_store(std::move(store), LiveDaemon::of_database(options.db)));
}

int run(const DashboardCommandOptions& options) {
  dashboard::DashboardServerOptions server_options{.address = options.http, .token = identity::make_token()};
  if (const Status s = dashboard::DashboardServer::check(server_options); !s) return report(s);
  if (!options.beside.empty()) {
    const auto beside = facts_of({.db = options.beside});
    if (!beside) return report(beside.status().with_context("--beside: "));
    server_options.beside = *beside;
  }
  const Result<std::shared_ptr<dashboard::FactSource>> facts = facts_of(options);
  if (!facts) return report(facts.status());
  const Result<std::unique_ptr<dashboard::DashboardServer>> server =
      dashboard::DashboardServer::start(server_options, *facts);
  if (!server) return report(server.status());
  std::printf("dashboard on %s\n", (*server)->link().c_str());
  std::fflush(stdout);
  if (!(*server)->has_page())
    std::fprintf(
        stderr,
        "tuner: the page is not built. The package tuner brings it; in a source tree: deploy/page.sh. "
        "Facts are there: /api/jobs\n");
  std::optional<dashboard::OpenedPage> opened;
  if (!options.no_open && (*server)->has_page())
    if (Result<dashboard::OpenedPage> page = dashboard::OpenedPage::open((*server)->link()))
      opened.emplace(*std::move(page));
  std::fprintf(stderr, "%s; Ctrl-C ends it\n",
               opened ? "your browser opens it" : "open this link in a browser");
  while (!interrupted()) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  return kExitDone;
}

}  // namespace

void add_dashboard_command(Command app, CommandContext& context) {
  auto options = std::make_shared<DashboardCommandOptions>();
  const Command command = add_command(
      app, context, "dashboard", "Shows jobs, workers and answers in a browser, of a database or a daemon",
      [options, &context] {
        log_to_stderr(context.verbose > 0 ? spdlog::level::info : spdlog::level::err);
        catch_interrupts();
        return run(*options);
      });
  add_db_option(command, options->db);
  add_daemon_option(command, options->daemon, "; else the database");
  command
      .add_option("--beside", options->beside,
                  "A second database, whose jobs and answers the page shows beside those of the first")
      .type_name("FILE");
  command
      .add_option(
          "--http", options->http,
          "HOST:PORT on loopback where the page is; port 0: a free one. For other hosts: tuner serve --http")
      .show_default();
  command.add_flag("--no-open", options->no_open, "Print the link, and open no browser");
}

}  // namespace tuner::cli
