#include "tuner/dashboard/live_daemon.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "compiler_core/base/printable.h"
#include "db/writer_lock.h"
#include "proto/convert.h"
#include "tuner/client/daemon_client.h"
#include "tuner/client/top_json.h"
#include "tuner/client/worker_list.h"
#include "tuner/daemon/daemon_host.h"
#include "tuner/text/facts.h"

namespace tuner::dashboard {
namespace {

using Steady = std::chrono::steady_clock;
constexpr std::chrono::seconds kPauseAfterTrouble{2};
constexpr double kLookLimitS = 3;
constexpr size_t kMostJobFileBytes = 1 << 20;

// Whether a process answers on this socket of ours. Who merely writes the database, as an import does, has
// none.
bool somebody_listens(const std::string& path) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_un to{.sun_family = AF_UNIX};
  if (fd < 0 || path.size() >= sizeof to.sun_path) return false;
  path.copy(to.sun_path, sizeof to.sun_path - 1);
  const bool connected =
      connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0 || errno == EAGAIN;
  close(fd);
  return connected;
}

class Found final : public LiveDaemon {
 public:
  explicit Found(std::function<Result<std::string>()> where) : where_(std::move(where)) {}

  Status with(const std::function<Status(const DaemonClient&)>& f) override {
    ASSIGN_OR_RETURN(const std::shared_ptr<DaemonClient> client, present());
    const Status status = f(*client);
    if (status.code() != StatusCode::kUnavailable) return status;
    // Of a daemon that has ended, the place where it was says more than the call.
    const Result<std::string> where = where_();
    const Status why = where ? status : where.status();
    forget(client, why);
    return why;
  }

 private:
  Result<std::shared_ptr<DaemonClient>> present() {
    std::unique_lock lock(mutex_);
    if (client_ != nullptr) return client_;
    if (!trouble_.is_ok() && Steady::now() < again_) return trouble_;
    // Connecting may take ten seconds. Others do not wait for it.
    if (connecting_) return unavailable("the daemon is being connected to: ask again");
    connecting_ = true;
    lock.unlock();
    Result<DaemonClient> client = connect();
    lock.lock();
    connecting_ = false;
    if (client) {
      client_ = std::make_shared<DaemonClient>(*std::move(client));
      return client_;
    }
    trouble_ = client.status();
    again_ = Steady::now() + kPauseAfterTrouble;
    return trouble_;
  }
  Result<DaemonClient> connect() const {
    ASSIGN_OR_RETURN(const std::string where, where_());
    return DaemonClient::connect({.daemon = where});
  }
  void forget(const std::shared_ptr<DaemonClient>& client, const Status& why) {
    const std::lock_guard lock(mutex_);
    if (client_ != client) return;
    client_ = nullptr;
    trouble_ = why;
    again_ = Steady::now() + kPauseAfterTrouble;
  }

  const std::function<Result<std::string>()> where_;
  std::mutex mutex_;
  std::shared_ptr<DaemonClient> client_;
  bool connecting_ = false;
  Status trouble_;
  Steady::time_point again_;
};

nlohmann::ordered_json submitted_json(const v1::SubmitReply& reply) {
  return {{"job", reply.job_id()},
          {"already_finished", reply.already_finished()},
          {"continued", reply.continued()}};
}

}  // namespace

std::unique_ptr<LiveDaemon> LiveDaemon::at(const std::string& where) {
  return std::make_unique<Found>([where] { return Result<std::string>(where); });
}

std::unique_ptr<LiveDaemon> LiveDaemon::of_database(const std::string& db) {
  return std::make_unique<Found>([db]() -> Result<std::string> {
    if (!db::has_writer(db))
      return unavailable("no daemon runs on ", db, ". Start one: tuner serve --db ", db);
    ASSIGN_OR_RETURN(std::string socket, private_socket(db));
    if (somebody_listens(socket.substr(std::string_view("unix:").size()))) return socket;
    return unavailable("another process writes ", db,
                       ", which is no daemon. When it has ended: tuner serve --db ", db);
  });
}

Result<std::string> LiveDaemon::look() {
  std::string text;
  const Status status = with([&](const DaemonClient& client) {
    TopLook look{.daemon = client.name()};
    ASSIGN_OR_RETURN(look.list, client.known_jobs(kLookLimitS));
    ASSIGN_OR_RETURN(look.workers, client.workers(kLookLimitS));
    TrialRate rate;
    look.trials_per_second = rate.look(look.list, 0);
    text = str("{\"now\":", top_json(look), ",\"workers\":", workers_json(look.workers), "}");
    return Status::ok();
  });
  if (!status) return status;
  return text;
}

Result<std::string> LiveDaemon::submit(const std::string& job_file, bool only_check) {
  if (job_file.size() > kMostJobFileBytes)
    return invalid_argument("job file: found ", job_file.size(), " bytes, expected at most ",
                            kMostJobFileBytes);
  nlohmann::ordered_json jobs = nlohmann::ordered_json::array();
  const Status status = with([&](const DaemonClient& client) -> Status {
    ASSIGN_OR_RETURN(v1::ReadJobFileReply read, client.read_job_file(job_file, "job file"));
    for (v1::SubmitRequest& request : *read.mutable_jobs()) {
      request.set_request_id(new_request_id());
      ASSIGN_OR_RETURN(const JobRow job, job_from_proto(request));
      if (only_check) {
        jobs.push_back({{"tasks", job.tasks.size()}, {"trials", job.trials}, {"search", job.search}});
        continue;
      }
      ASSIGN_OR_RETURN(const v1::SubmitReply reply, client.submit(job, /*fresh=*/false));
      jobs.push_back(submitted_json(reply));
    }
    return Status::ok();
  });
  if (!status) return status;
  return one_line({{"jobs", jobs}});
}

Result<std::string> LiveDaemon::submit_job(JobRow job) {
  job.request_id = new_request_id();
  nlohmann::ordered_json jobs = nlohmann::ordered_json::array();
  const Status status = with([&](const DaemonClient& client) -> Status {
    ASSIGN_OR_RETURN(const v1::SubmitReply reply, client.submit(job, /*fresh=*/false));
    jobs.push_back(submitted_json(reply));
    return Status::ok();
  });
  if (!status) return status;
  return one_line({{"jobs", jobs}});
}

Result<std::string> LiveDaemon::cancel(const std::string& job) {
  const Status status =
      with([&](const DaemonClient& client) -> Status { return client.cancel(job).status(); });
  if (!status) return status;
  return one_line({{"job", job}, {"cancelled", true}});
}

}  // namespace tuner::dashboard
