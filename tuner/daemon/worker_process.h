// WorkerProcess: the measure_server that an embedded daemon starts beside itself, and starts again when it
// dies.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "compiler_core/base/status.h"

namespace tuner {

class WorkerProcess {
 public:
  struct Options {
    std::string program;   // measure_server
    std::string daemon;    // unix:/path it dials
    std::string work_dir;  // its results not yet acknowledged, and log; made when missing
  };
  // Starts it and the thread that watches it. It ends with this process, however this process ends.
  explicit WorkerProcess(Options options);
  ~WorkerProcess();  // stops

  // Asks it to finish what runs and report, then kills it after `grace_ms`. Twice is fine.
  void stop(int grace_ms);
  // Not OK once it has died several times in a row soon after its start: it will not be started again.
  Status state() const;

 private:
  Result<pid_t> spawn() const;
  void supervise();

  Options options_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  int grace_ms_ = 0;
  Status state_;
  std::thread thread_;
};

// measure_server beside this program. NotFound says where it was looked for.
Result<std::string> find_measure_server();

}  // namespace tuner
