// tuner serve: the daemon, for workers and clients that dial in.
#include <malloc.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>

#include "tuner/cli/command.h"
#include "tuner/cli/log.h"
#include "tuner/command_line/interrupt.h"
#include "tuner/daemon/daemon_host.h"
#include "tuner/daemon/service_manager.h"
#include "tuner/dashboard/dashboard_server.h"
#include "tuner/dashboard/store_facts.h"
#include "tuner/identity/identity_folder.h"
#include "tuner/study/present.h"

namespace tuner::cli {
namespace {

constexpr auto kByIdentity = dashboard::DashboardServerOptions::Access::kIdentity;

struct ServeOptions {
  std::string db;
  std::vector<std::string> listen{"127.0.0.1:7070"};
  std::string identity;
  std::string metrics, http;
  double artifact_gib = 4;
  int search_threads = 0;
  std::string log_format = "text";
};

// Connections and files of a whole farm: as many as the system lets us.
void raise_file_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// The page about this daemon, which it shows to whom its identity lets in, and its status pages.
Result<std::unique_ptr<dashboard::DashboardServer>> start_dashboard(const ServeOptions& options,
                                                                    const DaemonHost& host) {
  ASSIGN_OR_RETURN(std::shared_ptr<Store> store, Store::open(options.db, Store::Mode::kRead));
  ASSIGN_OR_RETURN(const std::string socket, private_socket(options.db));
  const auto status_pages = [pages = host.status_pages()](
                                const http::Request& request,
                                const dashboard::DashboardServerOptions::Refusal& refusal) {
    StatusPages asked = pages;
    asked.refusal = refusal;
    return answer_status(request, asked);
  };
  return dashboard::DashboardServer::start(
      {.address = options.http,
       .access = kByIdentity,
       .identity =
           options.identity.empty() ? identity::IdentityFolder::path_of(options.db) : options.identity,
       .status_pages = status_pages},
      dashboard::facts_of_store(std::move(store), dashboard::LiveDaemon::at(socket)));
}

int run(const ServeOptions& options) {
  mallopt(M_ARENA_MAX, 4);  // each reserves 64 MiB of addresses, of which `ulimit -v` leaves few
  // Large texts go back to the system when their call ends. By itself the limit grows to the largest block
  // that was ever freed.
  mallopt(M_MMAP_THRESHOLD, 128 << 10);
  for (const std::string& address : options.listen)
    if (const Status s = check_listen_address(address); !s) return report(s);
  if (!options.metrics.empty())
    if (const Status s = check_pages_address(options.metrics); !s) return report(s);
  const dashboard::DashboardServerOptions http{.address = options.http, .access = kByIdentity};
  if (!options.http.empty())
    if (const Status s = dashboard::DashboardServer::check(http); !s) return report(s);
  raise_file_limit();
  ServiceManager service_manager;
  Result<std::unique_ptr<DaemonHost>> host =
      DaemonHost::start({.db = options.db,
                         .listen = options.listen,
                         .identity = options.identity,
                         .own_worker = false,
                         .artifact_bytes = static_cast<int64_t>(options.artifact_gib * (int64_t{1} << 30)),
                         .resume_jobs = true,
                         .search_threads = options.search_threads,
                         .watch_health = true,
                         .status_listen = options.metrics,
                         .present = [](const Target& target) { return present_here(target); }});
  if (!host) return report(host.status());
  for (const std::string& address : (*host)->addresses()) std::printf("listening on %s\n", address.c_str());
  if (!options.metrics.empty())
    std::printf("metrics on http%s://%s/metrics\n", options.metrics.starts_with("tls:") ? "s" : "",
                (*host)->status_address().c_str());
  std::unique_ptr<dashboard::DashboardServer> pages;  // goes before the daemon
  if (!options.http.empty()) {
    Result<std::unique_ptr<dashboard::DashboardServer>> started = start_dashboard(options, **host);
    if (!started) return report(started.status());
    pages = *std::move(started);
    std::printf("dashboard on %s\n", pages->link().c_str());
    if (!pages->has_page())
      std::fprintf(stderr,
                   "tuner: the dashboard's page is not built. The package tuner brings it; in a source "
                   "tree: deploy/page.sh\n");
  }
  const bool tls = options.listen[0].starts_with("tls:");
  std::printf("database %s\nworkers: measure_server --daemon %s\n", options.db.c_str(),
              tls ? "FILE (tuner admin worker writes it)" : (*host)->addresses()[0].c_str());
  std::fflush(stdout);
  service_manager.tell("READY=1\nSTATUS=database " + options.db);
  while (!interrupted()) {
    if ((*host)->alive()) service_manager.alive();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  service_manager.tell("STOPPING=1");
  pages.reset();
  std::fprintf(stderr, "stopping; unfinished jobs go on at the next start\n");
  (*host)->stop("the daemon is stopping; its jobs go on when it is started again");
  return kExitDone;
}

}  // namespace

void add_serve_command(Command app, CommandContext& context) {
  auto options = std::make_shared<ServeOptions>();
  const Command command = add_command(
      app, context, "serve", "Runs the daemon that workers and clients dial", [options, &context] {
        log_to_stderr(context.verbose > 0 ? spdlog::level::debug : spdlog::level::info,
                      options->log_format == "json" ? LogLines::kJson : LogLines::kText);
        catch_interrupts();
        return run(*options);
      });
  add_db_option(command, options->db);
  command
      .add_option("--listen", options->listen,
                  "HOST:PORT on loopback, tls:HOST:PORT, or unix:/path; may be given several times")
      .show_default();
  add_identity_option(command, options->identity);
  command
      .add_option("--artifact-gib", options->artifact_gib,
                  "What may be kept in DB.artifacts of what builders have made for runners, GiB")
      .in_range(0.01, 1e6)
      .show_default();
  command.add_option("--metrics", options->metrics,
                     "HOST:PORT on loopback, or tls:HOST:PORT where /metrics asks for a token with the role "
                     "query: for /metrics (Prometheus), /healthz and /readyz; else none");
  command.add_option("--http", options->http,
                     "HOST:PORT on loopback, or tls:HOST:PORT for callers with a token: the dashboard, and "
                     "/metrics, /healthz and /readyz; else none");
  command
      .add_option("--search-threads", options->search_threads,
                  "Threads that search, for many jobs at once; 0: one for each CPU, at most four")
      .in_range(0, 256)
      .show_default();
  command
      .add_option("--log-format", options->log_format,
                  "Lines of the log on stderr: for people, or one JSON object each")
      .one_of({"text", "json"})
      .show_default();
}

}  // namespace tuner::cli
