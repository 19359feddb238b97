#include "measure_server/worker/isolation_rule.h"

namespace tuner {

bool is_here(const std::string& daemon) {
  if (daemon.starts_with("unix:")) return true;
  const std::string host = daemon.substr(0, daemon.rfind(':'));
  if (host == "localhost" || host == "[::1]" || host == "::1") return true;
  // 127.0.0.0/8, written as four numbers: "127.example.org" is somebody's name.
  return host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string::npos;
}

Status may_run(Isolation reached, const std::string& missing, Isolation least, const std::string& daemon,
               bool root) {
  const std::string why = missing.empty() ? "" : str(" (", missing, ")");
  if (reached < least)
    return invalid_argument("isolation ", isolation_name(least), " is not to be had on this host, only ",
                            isolation_name(reached), why, "; --isolation ", isolation_name(reached),
                            " accepts it");
  if (root && reached < Isolation::kStrict && !is_here(daemon))
    return invalid_argument("root runs no candidates of ", daemon, " with isolation ",
                            isolation_name(reached), why, "; start this worker as another user");
  return Status::ok();
}

}  // namespace tuner
