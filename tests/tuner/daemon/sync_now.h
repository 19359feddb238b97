// A Sync that waits for its answer, for tests that talk to the coordinator without a wire.
#pragma once

#include <future>

#include "tuner/daemon/coordinator.h"

namespace tuner::testing {

inline Status sync_now(Coordinator& coordinator, const v1::SyncRequest& request, v1::SyncReply* reply) {
  std::promise<Status> answer;
  coordinator.sync(request, reply, [&](const Status& status) { answer.set_value(status); });
  return answer.get_future().get();
}

}  // namespace tuner::testing
