#include "tuner/client/daemon_health.h"

#include "proto/grpc_access.h"
#include "proto/health_check.h"
#include "tuner/daemon/daemon_host.h"

namespace tuner {
namespace {

Result<DaemonAccess> access_of(const std::string& daemon, const std::string& db) {
  if (!daemon.empty()) return find_daemon(daemon);
  ASSIGN_OR_RETURN(std::string socket, private_socket(db));
  return DaemonAccess{.address = std::move(socket)};
}

}  // namespace

Status check_daemon(const std::string& daemon, const std::string& db, double limit_s) {
  quieten_grpc();
  ASSIGN_OR_RETURN(const DaemonAccess access, access_of(daemon, db));
  const std::string name = daemon.empty() ? "the daemon on " + db : "daemon " + access.address;
  const Result<bool> ready = check_health(access, static_cast<int64_t>(limit_s * 1000));
  if (!ready) {
    const std::string trouble = tls_trouble(access, ready.message());
    return unavailable(name, ": no answer within ", limit_s,
                       " s: ", trouble.empty() ? ready.message() : trouble);
  }
  if (!*ready) return unavailable(name, ": not ready. Its log and /readyz say why");
  return Status::ok();
}

}  // namespace tuner
