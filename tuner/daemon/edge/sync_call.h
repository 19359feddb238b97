// SyncCall: one Sync, from its arrival until it is answered. The desk (desk.h) owns it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler_core/base/status.h"
#include "measure.pb.h"
#include "tuner/daemon/tables/builds.h"
#include "tuner/daemon/tables/lease_table.h"

namespace tuner {

struct SyncCall {
  using Done = std::function<void(const Status&)>;

  uint64_t id = 0;  // of the coordinator, for its cancellation
  const v1::SyncRequest* request = nullptr;
  v1::SyncReply* reply = nullptr;
  Done done;  // called once; request and reply may be gone afterwards

  // Filled when the desk takes it up:
  uint64_t number = 0;  // among the Syncs of its session (Workers::begin_sync)
  std::vector<LeaseTable::Held> held;
  std::set<std::string> held_ids;
  int64_t deadline_ms = 0;
  int slots = 0;    // leases it has room for
  WorkerLife life;  // who called
  // Of a builder: orders that it has, and how many more it would take. Of a runner: leases that await what is
  // made for them.
  std::vector<Builds::Held> builds;
  int build_slots = 0;
  std::set<std::string> awaits;
  bool gone = false;      // the caller has gone, and its connection
  bool answered = false;  // nothing more is to be said but `status`
  Status status;

  const std::string& session() const { return request->session(); }
  bool has_news() const {
    return reply->acks_size() + reply->leases_size() + reply->revoked_size() + reply->orders_size() +
               reply->build_acks_size() + reply->stop_builds_size() + reply->built_size() >
           0;
  }
  // The first answer stands. The caller hears of it at the end of the desk's turn, without locks.
  void answer(Status with) {
    if (std::exchange(answered, true)) return;
    status = std::move(with);
  }
};

using SyncCalls = std::vector<std::unique_ptr<SyncCall>>;               // that have come together
using WaitingSyncs = std::map<std::string, std::unique_ptr<SyncCall>>;  // without news so far, by session

}  // namespace tuner
