// Wake: how a room of the coordinator wakes threads that it does not know. Both may be called with the lock
// of the farm or without it; the second needs it.
#pragma once

#include <functional>
#include <string>

namespace tuner {

struct FarmState;

struct Wake {
  std::function<void()> desk;  // something may be leased or answered
  std::function<void(FarmState& farm, const std::string& job_id)> search;  // the job needs a turn
};

}  // namespace tuner
