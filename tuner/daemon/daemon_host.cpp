#include "tuner/daemon/daemon_host.h"

#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "compiler_core/base/cpu_affinity.h"
#include "compiler_core/base/output_file.h"
#include "compiler_core/base/printable.h"
#include "compiler_core/base/process_limits.h"
#include "compiler_core/base/room.h"
#include "tuner/identity/identity_folder.h"

namespace tuner {
namespace {

constexpr int kWorkerGraceMs = 5'000;
constexpr size_t kMostKnownBuilds = 262'144;  // some hundred bytes each
// Of what is known of builds over restarts. Raise the number where a tolerance, an input or a reference
// answer changes and neither a template's nor a code generator's version does.
constexpr char kKnownBuildsRelease[] = TUNER_VERSION " 1";

// FNV-1a of the database's real path: one socket and one work folder a database, whatever name it is called
// by.
std::string hash_of(const std::string& db) {
  const Result<std::string> links = follow_links(db);
  const std::string real = links ? *links : db;
  uint64_t hash = 14695981039346656037u;
  for (const char c : real) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

// A folder of mode 0700 that is ours, or why not: in /tmp anybody could have made it first.
Status make_private_folder(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return failed(path, ": cannot be made for the daemon's socket: ", std::strerror(errno),
                  ". Set XDG_RUNTIME_DIR to a folder of yours");
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != getuid())
    return failed(path,
                  ": expected a folder owned by this user, found something else. Set XDG_RUNTIME_DIR to a "
                  "folder of yours");
  if ((info.st_mode & 077) != 0 && chmod(path.c_str(), 0700) != 0)
    return failed(path, ": others may enter it, and that cannot be changed: ", std::strerror(errno));
  return Status::ok();
}

}  // namespace

Result<std::string> private_socket(const std::string& db) {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  const std::string name = "/" + hash_of(db) + ".sock";
  std::string folder = runtime != nullptr && runtime[0] == '/' ? str(runtime, "/tuner") : "";
  // A socket's path has at most 107 bytes.
  if (folder.empty() || folder.size() + name.size() > 107 || access(runtime, W_OK) != 0)
    folder = str("/tmp/tuner-", getuid());
  RETURN_IF_ERROR(make_private_folder(folder));
  return "unix:" + folder + name;
}

std::string private_work_dir(const std::string& db) { return user_cache_folder() + "/worker-" + hash_of(db); }

namespace {

// How long a race may take: $TUNER_RACE_LIMIT_S, for who waits for answers more than for certain times.
Result<double> race_limit_s() {
  constexpr double kLeast = 0.001, kMost = 3600;
  const char* const given = std::getenv("TUNER_RACE_LIMIT_S");
  if (given == nullptr || *given == '\0') return RaceOptions().limit_s;
  const std::string_view text = given;
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error == std::errc() && end == text.data() + text.size() && seconds >= kLeast && seconds <= kMost)
    return seconds;
  return invalid_argument("TUNER_RACE_LIMIT_S: expected seconds from 0.001 to 3600, found \"",
                          printable(text.substr(0, 40)), "\"");
}

}  // namespace

Result<std::unique_ptr<DaemonHost>> DaemonHost::start(const DaemonHostOptions& options) {
  RETURN_IF_ERROR(options.own_worker ? check_process_limits("a worker of this command", kWorkerNeeds)
                                     : check_process_limits("a daemon", kDaemonNeeds));
  if (!options.own_worker) return make(options);
  ASSIGN_OR_RETURN(const std::string program, find_measure_server());
  // What the worker beside this daemon keeps for the kernel being timed is left to it: threads of ours that
  // answer calls, write and think for milliseconds would be seen in the samples. They begin in a thread of
  // its own, from which they have their CPUs; this process keeps its own.
  std::optional<Result<std::unique_ptr<DaemonHost>>> made;
  std::thread([&] {
    use_cpus(cpus_beside_runs());
    made = make(options);
  }).join();
  RETURN_IF_ERROR(made->status());
  std::unique_ptr<DaemonHost> host = *std::move(*made);
  host->worker_ = std::make_unique<WorkerProcess>(
      WorkerProcess::Options{program, "unix:" + host->socket_path_, private_work_dir(options.db)});
  return host;
}

Result<std::unique_ptr<DaemonHost>> DaemonHost::make(const DaemonHostOptions& options) {
  std::unique_ptr<DaemonHost> host(new DaemonHost);
  ASSIGN_OR_RETURN(host->store_, Store::open(options.db, Store::Mode::kWrite));
  CoordinatorOptions coordinator;
  ASSIGN_OR_RETURN(coordinator.race.limit_s, race_limit_s());
  coordinator.resume_jobs = options.resume_jobs;
  coordinator.present = options.present;
  coordinator.search_threads = options.search_threads;
  if (options.own_worker) {
    coordinator.leases.restart_grace_ms = 0;
  } else {
    ASSIGN_OR_RETURN(const std::string real, follow_links(options.db));
    ASSIGN_OR_RETURN(host->blobs_, BlobStore::open(real + ".artifacts", options.artifact_bytes));
    coordinator.blobs = host->blobs_.get();
    Result<std::unique_ptr<MadeIndex>> made =
        MadeIndex::open(real + ".artifacts/made.db", kMostKnownBuilds, kKnownBuildsRelease);
    if (made)
      host->made_ = *std::move(made);
    else
      spdlog::warn("what builders make is forgotten at the next start: {}", made.message());
    coordinator.made = host->made_.get();
  }
  host->coordinator_ = std::make_unique<Coordinator>(*host->store_, host->clock_, coordinator);
  RETURN_IF_ERROR(host->coordinator_->start());

  ASSIGN_OR_RETURN(const std::string socket, private_socket(options.db));
  host->socket_path_ = socket.substr(5);
  unlink(host->socket_path_.c_str());  // left by a host that was killed: its lock is ours now
  std::vector<std::string> addresses = options.listen;
  addresses.push_back(socket);
  const std::string identity =
      options.identity.empty() ? identity::IdentityFolder::path_of(options.db) : options.identity;
  ASSIGN_OR_RETURN(host->server_,
                   Server::start(*host->coordinator_, addresses, identity, host->store_.get()));
  if (options.watch_health)
    host->health_ = std::make_unique<Health>(*host->coordinator_, host->clock_, *host->server_);
  if (options.watch_health && !options.status_listen.empty()) {
    const bool by_tls = std::ranges::any_of(  // then the server tells when the certificate ends
        options.listen, [](const std::string& listen) { return listen.starts_with("tls:"); });
    ASSIGN_OR_RETURN(host->status_, StatusServer::start(options.status_listen, host->status_pages(), identity,
                                                        /*warns=*/!by_tls));
  }
  // Beside a worker nothing runs that could disturb it; such a daemon does not live long either.
  if (!options.own_worker) host->check_ = std::make_unique<IntegrityCheck>(*host->store_);
  return host;
}

StatusPages DaemonHost::status_pages() const {
  return {.metrics = [this] { return metrics_page(); }, .ready = [this] { return health_->ready(); }};
}

std::string DaemonHost::metrics_page() const {
  DaemonNow now = coordinator_->now();
  if (check_) {
    const IntegrityCheck::Found found = check_->found();
    now.database_checks = found.checks;
    now.checked_rows = found.rows;
    now.database_faults = found.faults;
  }
  return tuner::metrics_page(coordinator_->metrics(), now, server_->gate_stats(), health_->ready().ready);
}

DaemonHost::~DaemonHost() { stop("the daemon is stopping"); }

void DaemonHost::stop(const std::string& reason) {
  if (stopped_) return;
  stopped_ = true;
  status_.reset();
  health_.reset();
  check_.reset();
  if (worker_) worker_->stop(kWorkerGraceMs);  // first: its last results still have somebody to go to
  if (coordinator_) coordinator_->stop(reason);
  if (server_) server_->stop();
  if (!socket_path_.empty())
    unlink(socket_path_.c_str());  // before the lock is free: the next host makes its own
  coordinator_.reset();
  made_.reset();
  blobs_.reset();
  store_.reset();
}

}  // namespace tuner
