// JobWatch: follows a job's events in the background while the command serves screen and keyboard.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "compiler_core/base/status.h"
#include "tuning.pb.h"

namespace tuner {

class JobEvents;  // the call that delivers them

class JobWatch {
 public:
  explicit JobWatch(std::unique_ptr<JobEvents> events);  // DaemonClient::watch() makes it
  ~JobWatch();                                           // ends the call

  struct Next {
    std::optional<v1::JobEvent> event;
    bool ended = false;  // there are no more events; `status` says how it ended
    Status status;
  };
  // Returns the next event, or none after `wait_ms`. Of unread progress events only the latest is kept.
  Next next(int wait_ms);

 private:
  void follow();

  std::unique_ptr<JobEvents> events_;
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<v1::JobEvent> waiting_;
  bool ended_ = false;
  Status status_;
  std::thread thread_;
};

}  // namespace tuner
