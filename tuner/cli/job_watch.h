// JobWatch: follows a job's events in the background while the command looks after the screen and the
// keyboard.
#pragma once

#include <grpcpp/client_context.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "compiler_core/base/status.h"
#include "tuner/daemon/connection.h"
#include "tuning.grpc.pb.h"

namespace tuner::cli {

class JobWatch {
 public:
  // `connection` outlives this. Events after `after_seq`.
  JobWatch(Connection& connection, const std::string& job_id, int64_t after_seq);
  ~JobWatch();  // ends the call

  struct Next {
    std::optional<v1::JobEvent> event;
    bool ended = false;  // no more events; `status` says how it ended
    Status status;
  };
  // The next event, or nothing after `wait_ms`.
  Next next(int wait_ms);

 private:
  std::string peer_;
  grpc::ClientContext context_;
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<v1::JobEvent> events_;
  bool ended_ = false;
  Status status_;
  std::thread thread_;
};

}  // namespace tuner::cli
