// BuildOffice: builders here, runners there. What leases of runners need is ordered, goes to builders, and
// comes back with the runner's next Sync.
//
// All of it happens in the desk's turns but for the bytes, which have calls of their own: read_blob() and
// write_blob() may be called from any thread. What takes a FarmState& runs under its lock. It writes no store
// but that of blobs, and the index of what was made.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "compiler_core/base/line_limit.h"
#include "compiler_core/base/status.h"
#include "measure.pb.h"
#include "tuner/daemon/edge/sync_call.h"
#include "tuner/daemon/rooms/clock.h"
#include "tuner/daemon/rooms/coordinator_options.h"
#include "tuner/daemon/rooms/document_office.h"
#include "tuner/daemon/rooms/farm_state.h"
#include "tuner/daemon/rooms/locked.h"

namespace tuner {

class BuildOffice {
 public:
  // All of these outlive the office. `wake_desk`: some orders wait again; called without the lock.
  BuildOffice(Guarded<FarmState>& farm, const Clock& clock, const CoordinatorOptions& options,
              DocumentOffice& documents, std::function<void()> wake_desk);

  // InvalidArgument: a builder or a runner, and this daemon keeps no artifacts.
  Status check_kind(WorkerKind kind) const;

  // Bytes that runners fetch and builders send (Coordinator::read_blob).
  Status read_blob(const v1::ReadBlobRequest& request, v1::ReadBlobReply* reply);
  Status write_blob(const v1::WriteBlobRequest& request, v1::WriteBlobReply* reply);

  // What a new Sync of a builder says of its orders. No effect on other workers' calls.
  void take_builds(FarmState& farm, SyncCall& call);
  // What a new Sync of a runner says of leases that await their builds. It comes after the heartbeat, by
  // which a lease of an earlier daemon is taken up. No effect on other workers' calls.
  void take_awaits(FarmState& farm, SyncCall& call);
  // A runner has been given that lease: orders what the lease needs. What is known already is not made again.
  void want(FarmState& farm, const std::string& trial_id);
  // A few times a second: who waits here is alive, and so are his orders; others run out.
  void look_after(FarmState& farm, const WaitingSyncs& waiting);
  // At the end of a turn: orders to builders that have room; to runners what their leases await.
  void serve(const WaitingSyncs& waiting, const SyncCalls& arrived);

  // For people: leases of the job wait because no builder is here that makes what they need. Empty: none do,
  // or it was `told` already, which is kept here while it lasts.
  std::string builder_to_tell(const FarmState& farm, const std::string& job_id, bool& told) const;

 private:
  // The task of that lease or order of the worker.
  static std::optional<std::string> key_asked(const FarmState& farm, const WorkerLife& life,
                                              const v1::ReadBlobRequest& request);
  static void add_order(const FarmState& farm, const Builds::Order& order, v1::SyncReply* reply);
  void take_built(FarmState& farm, const SyncCall& call, const v1::BuildDone& done, int index);
  bool is_usable(const FarmState& farm, const BuildNeed& need, const Made& made) const;
  std::optional<Made> recall(const FarmState& farm, const std::string& id, const BuildNeed& need) const;
  void remember(const std::string& id, const Made& made);
  void serve(FarmState& farm, SyncCall& call) const;

  Guarded<FarmState>& farm_;
  const Clock& clock_;
  const CoordinatorOptions& options_;
  DocumentOffice& documents_;
  const std::function<void()> wake_desk_;
  LineLimit disk_log_, refused_log_;
};

}  // namespace tuner
