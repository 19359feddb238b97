// Coordinator: the daemon but for the wire. A front for its rooms, which are its members in the order in
// which one may call another (README.md, "Rooms"); what it knows of one database's jobs is a FarmState, plain
// tables under one lock. Two kinds of threads do what nobody waits for by a call of his own:
//
//   the desk     one thread; answers Syncs, all that have come together in one turn (desk.h)
//   the search   a few threads; each takes the turn of one job (search_threads.h)
//
// Methods take and fill the messages of proto/, may be called from any thread, and block no longer than they
// say. Error codes are those of Status; kAborted means "this session is unknown, register again" (server.cpp
// maps it to FAILED_PRECONDITION).
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "compiler_core/base/status.h"
#include "db/store.h"
#include "measure.pb.h"
#include "tuner/daemon/edge/answers.h"
#include "tuner/daemon/edge/metrics.h"
#include "tuner/daemon/edge/sync_call.h"
#include "tuner/daemon/rooms/build_office.h"
#include "tuner/daemon/rooms/clock.h"
#include "tuner/daemon/rooms/coordinator_options.h"
#include "tuner/daemon/rooms/desk.h"
#include "tuner/daemon/rooms/document_office.h"
#include "tuner/daemon/rooms/farm_state.h"
#include "tuner/daemon/rooms/job_desk.h"
#include "tuner/daemon/rooms/job_news.h"
#include "tuner/daemon/rooms/leasing.h"
#include "tuner/daemon/rooms/locked.h"
#include "tuner/daemon/rooms/loss_office.h"
#include "tuner/daemon/rooms/measure_again.h"
#include "tuner/daemon/rooms/race_office.h"
#include "tuner/daemon/rooms/reception.h"
#include "tuner/daemon/rooms/referee.h"
#include "tuner/daemon/rooms/result_intake.h"
#include "tuner/daemon/rooms/search_threads.h"
#include "tuner/daemon/rooms/wake.h"
#include "tuner/daemon/rooms/watch_desk.h"
#include "tuner/daemon/search/learner.h"
#include "tuner/daemon/tables/shares.h"
#include "tuner/daemon/tables/work.h"
#include "tuner/daemon/tables/workers.h"
#include "tuning.pb.h"

namespace tuner {

class Coordinator {
 public:
  // `store` (opened for writing) and `clock` outlive this.
  Coordinator(Store& store, const Clock& clock, CoordinatorOptions options);
  ~Coordinator();  // stops
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // Loads unfinished jobs and starts the search thread. Before it no other method may be called.
  Status start();
  // Every blocked call returns kUnavailable with `reason`; running jobs go back to `queued` and can be
  // continued. Calling it twice is fine.
  void stop(const std::string& reason);

  using Cancelled = tuner::Cancelled;

  // By hand: answers the Syncs that have come, and gives every job that was woken a turn, until there is
  // nothing left to do at this moment of the clock. One thread calls it.
  void turn();

  // Waits until the lessons of ended jobs about other shapes are stored, at most limit_s. False on timeout.
  bool wait_until_learned(double limit_s) { return learner_.wait_until_idle(limit_s); }

  // --- workers ---
  // Aborted: another process with this id is here.
  Status register_worker(const v1::RegisterRequest& request, v1::RegisterReply* reply,
                         Workers::Registrar registrar = {}) {
    return reception_.register_worker(request, reply, std::move(registrar));
  }
  // Answers at once if there is news, else after request.wait_ms, by calling `done` once, from any thread.
  // Both messages must live until then. Returns a name for cancel_sync().
  uint64_t sync(const v1::SyncRequest& request, v1::SyncReply* reply, SyncCall::Done done) {
    return desk_.sync(request, reply, std::move(done));
  }
  // The caller of that Sync has gone, and its connection with it: it is answered soon, to nobody. No effect
  // on one that is answered.
  void cancel_sync(uint64_t call) { desk_.cancel_sync(call); }

  // Bytes that builders send and runners fetch. Aborted: unknown session. InvalidArgument, NotFound, Failed:
  // as the store's. Unavailable: no lease of the caller names the blob, or the caller does not hold the
  // order.
  Status read_blob(const v1::ReadBlobRequest& request, v1::ReadBlobReply* reply) {
    return build_office_.read_blob(request, reply);
  }
  Status write_blob(const v1::WriteBlobRequest& request, v1::WriteBlobReply* reply) {
    return build_office_.write_blob(request, reply);
  }

  // The worker finishes what it holds, gets nothing more, and ends. NotFound: it is not here.
  Status drain(const v1::DrainRequest& request, v1::DrainReply* reply) {
    return reception_.drain(request, reply);
  }

  // --- jobs ---
  // `scope`: whose job it will be, and whose jobs are there for the caller. NotFound: no such job in it.
  // Aborted: the tenant has as many jobs as it may.
  Status submit(const v1::SubmitRequest& request, v1::SubmitReply* reply, const Scope& scope = {}) {
    return job_desk_.submit(request, reply, scope);
  }
  // Sends events until the job ends; `send` returns false when the reader is gone.
  using Send = WatchDesk::Send;
  Status watch(const v1::WatchRequest& request, const Send& send, const Cancelled& cancelled,
               const Scope& scope = {}) {
    return watch_desk_.watch(request, send, cancelled, scope);
  }
  Status cancel(const v1::CancelRequest& request, v1::CancelReply* reply, const Scope& scope = {}) {
    return job_desk_.cancel(request, reply, scope);
  }
  Status rerun(const v1::RerunRequest& request, v1::MeasureRecord* reply, const Cancelled& cancelled,
               const Scope& scope = {}) {
    return measure_again_.rerun(request, reply, cancelled, scope);
  }
  Status remeasure(const v1::RemeasureRequest& request, v1::RaceResult* reply, const Cancelled& cancelled,
                   const Scope& scope = {}) {
    return measure_again_.remeasure(request, reply, cancelled, scope);
  }

  // From now on: what tenants may have.
  void set_shares(ShareByTenant shares);

  // --- questions ---
  Status list(const v1::ListRequest& request, v1::ListReply* reply, const Scope& scope = {}) const;
  Status list_workers(v1::ListWorkersReply* reply) const;
  // What the store alone tells: the config of a workload, single results, races.
  const Answers& answers() const { return answers_; }
  Status read_job_file(const v1::ReadJobFileRequest& request, v1::ReadJobFileReply* reply) const;

  // --- seeing ---
  const DaemonMetrics& metrics() const { return metrics_; }
  DaemonNow now() const;

 private:
  // How the rooms wake the threads of others.
  Wake wake();

  const Clock& clock_;
  const CoordinatorOptions options_;
  const Answers answers_;
  Learner learner_;
  DaemonMetrics metrics_;

  Guarded<FarmState> farm_;
  JobNews news_;
  DocumentOffice documents_;
  BuildOffice build_office_;
  Referee referee_;
  LossOffice loss_office_;
  ResultIntake result_intake_;
  Leasing leasing_;
  Desk desk_;
  RaceOffice race_office_;
  SearchThreads search_;
  Reception reception_;
  JobDesk job_desk_;
  WatchDesk watch_desk_;
  MeasureAgain measure_again_;
};

}  // namespace tuner
