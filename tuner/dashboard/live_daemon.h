// LiveDaemon: the daemon that works on what is shown: its workers, how fast it is, and changes.
//
// It is looked for when it is asked, at most every two seconds, so it may come and go. Any thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "compiler_core/base/status.h"
#include "db/records.h"

namespace tuner {
class DaemonClient;
}

namespace tuner::dashboard {

class LiveDaemon {
 public:
  // `where`: an address or a credentials file, as --daemon takes it.
  static std::unique_ptr<LiveDaemon> at(const std::string& where);
  // The daemon that has this database open, a command's own too, while there is one.
  static std::unique_ptr<LiveDaemon> of_database(const std::string& db);
  virtual ~LiveDaemon() = default;

  // Calls `f` with the connection. Unavailable: there is none, and what to do.
  virtual Status with(const std::function<Status(const DaemonClient&)>& f) = 0;

  // What it does now: {"now": as `tuner top --json`, "workers": as `tuner workers --json`}.
  Result<std::string> look();
  // As FactSource.
  Result<std::string> submit(const std::string& job_file, bool only_check);
  Result<std::string> cancel(const std::string& job);
  // Submits jobs that are there already. The daemon checks them as any.
  Result<std::string> submit_job(JobRow job);
};

}  // namespace tuner::dashboard
