// DaemonHost: a daemon inside this process: store, coordinator, server, and in embedded mode a worker beside
// it.
//
// `tuner serve` hosts one for others; `tuner submit` without --daemon hosts one for itself (embedded). Both
// hold the database's lock and listen on the database's private socket, where a second command on the same
// database joins.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "db/store.h"
#include "tuner/daemon/coordinator.h"
#include "tuner/daemon/health.h"
#include "tuner/daemon/integrity_check.h"
#include "tuner/daemon/rooms/clock.h"
#include "tuner/daemon/server.h"
#include "tuner/daemon/status_server.h"
#include "tuner/daemon/worker_process.h"

namespace tuner {

struct DaemonHostOptions {
  std::string db;
  std::vector<std::string> listen;  // besides the private socket
  std::string identity;             // folder that says who may do what; empty: the database's
  bool own_worker = false;  // start a measure_server here, and no other ever: leases found are dead ones
  int64_t artifact_bytes =
      int64_t{4} << 30;  // what artifacts of builders may take, in DB.artifacts; not with own_worker
  bool resume_jobs = false;
  int search_threads = 0;     // as CoordinatorOptions::search_threads
  bool watch_health = false;  // a thread judges whether it is ready (health.h); else it always says so
  // Of /metrics, /healthz and /readyz, as check_pages_address(); needs watch_health; empty: none.
  std::string status_listen;
  std::function<Present(const Target& target)> present;  // as CoordinatorOptions::present
};

class DaemonHost {
 public:
  // Aborted when another process has the database open for writing: join it at private_socket().
  static Result<std::unique_ptr<DaemonHost>> start(const DaemonHostOptions& options);
  ~DaemonHost();  // stops
  // Lets the worker finish and report, tells clients `reason`, gives the database free. Bounded: about ten
  // seconds.
  void stop(const std::string& reason);
  // As the coordinator's: for a command that hosts its own daemon and is about to end.
  bool wait_until_learned(double limit_s) { return coordinator_->wait_until_learned(limit_s); }
  const std::vector<std::string>& addresses() const { return server_->addresses(); }
  // Where /metrics is; empty: nowhere.
  std::string status_address() const { return status_ ? status_->address() : ""; }
  // What is told at /metrics, /healthz and /readyz, for who serves them elsewhere; needs watch_health.
  // Calls to it must have ended before stop().
  StatusPages status_pages() const;
  // False: a thread is stuck or nobody gets in, so that only a restart helps. True without watch_health.
  bool alive() const { return health_ == nullptr || health_->ready().alive; }
  // Of the worker beside it; OK without one.
  Status worker_state() const { return worker_ ? worker_->state() : Status::ok(); }

 private:
  static Result<std::unique_ptr<DaemonHost>> make(const DaemonHostOptions& options);
  DaemonHost() = default;
  std::string metrics_page() const;
  SteadyClock clock_;
  std::string socket_path_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<BlobStore> blobs_;
  std::unique_ptr<MadeIndex> made_;
  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Health> health_;
  std::unique_ptr<StatusServer> status_;
  std::unique_ptr<IntegrityCheck> check_;
  std::unique_ptr<WorkerProcess> worker_;
  bool stopped_ = false;
};

// "unix:/run/user/1000/tuner/3f...c2.sock": derived from the database's real path, in a folder only this user
// may enter. Makes the folder. Failed when that folder belongs to somebody else.
Result<std::string> private_socket(const std::string& db);
// Folder for the worker beside this database: $XDG_CACHE_HOME/tuner/worker-HASH.
std::string private_work_dir(const std::string& db);

}  // namespace tuner
