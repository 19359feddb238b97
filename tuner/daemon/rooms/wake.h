// Wake: how a room of the coordinator wakes threads that it does not know. Both may be called with the lock
// of the farm or without it.
#pragma once

#include <functional>
#include <string>

namespace tuner {

struct Wake {
  std::function<void()> desk;                             // something may be leased or answered
  std::function<void(const std::string& job_id)> search;  // the job needs a turn
};

}  // namespace tuner
