// DaemonClient: a daemon as its clients see it, one method a call of proto/tuning.proto. It knows deadlines,
// retries, request ids and how a daemon is reached: a given one, the one that runs on this database already,
// or one of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "compiler_core/base/status.h"
#include "db/prune.h"
#include "db/store.h"
#include "tuner/client/job_watch.h"
#include "tuning.pb.h"

namespace tuner {

struct ConnectOptions {
  std::string daemon;  // HOST:PORT, unix:/path or a credentials file; empty: embedded on `db`
  std::string db;
  bool own_worker = false;  // embedded: this command wants trials measured here
};

// True if this is what a call of ours says of a daemon that does not know it yet.
bool is_of_older_daemon(const Status& status);

class DaemonClient {
 public:
  // Unavailable when nobody answers within about ten seconds; NotFound: no database and no own worker;
  // InvalidArgument: no such credentials file, or it is damaged.
  static Result<DaemonClient> connect(const ConnectOptions& options);
  DaemonClient(DaemonClient&&) noexcept;
  DaemonClient& operator=(DaemonClient&&) noexcept;
  ~DaemonClient();

  const std::string& name() const;  // of the daemon, for messages

  // Whether the daemon is this process, hosted for the life of the client. The three below then ask and end
  // it; elsewhere they do nothing.
  bool hosts() const;
  Status worker_state() const;                    // of the worker beside it; OK without one
  bool wait_until_learned(double limit_s) const;  // false: what the job teaches is not learned yet
  // Lets the worker finish and report, tells other clients `reason`, gives the database free. About ten
  // seconds at most.
  void stop_host(const std::string& reason) const;

  // All calls end within a deadline of their own (Unavailable). Those that change nothing, or the same
  // however often they are made, are tried again twice where the connection broke; the others are not. Any
  // thread.
  //
  // A job's request id makes a repeated submit the same one; where it is empty, it gets a new one.
  Result<v1::SubmitReply> submit(const JobRow& job, bool fresh) const;
  // What a job file's text asks for, as the daemon reads it. InvalidArgument: what is wrong with it.
  Result<v1::ReadJobFileReply> read_job_file(const std::string& text, const std::string& name) const;
  // The tuned config and the answer as the resolver gave it.
  Result<v1::QueryReply> query(const JobRow::Task& task) const;
  // Of that reply only what was tuned; nothing when the task never was.
  Result<std::optional<TunedConfig>> tuned(const JobRow::Task& task) const;
  Result<v1::CancelReply> cancel(const std::string& job_id, double limit_s = 60) const;
  // One trial measured again, apart from any job. Takes seconds, 330 at most.
  Result<MeasureRecord> rerun(const std::string& trial_id) const;
  // A trial's config measured in so many fresh processes; nothing is stored. Takes seconds, 330 at most.
  Result<RaceRow> remeasure(const std::string& trial_id, int processes, Constants constants) const;
  Result<v1::ListWorkersReply> workers(double limit_s = 60) const;
  // The worker finishes what it holds, and ends. Returns how many leases that are. NotFound: it is not there.
  Result<int> drain(const std::string& worker_id) const;
  // Removes records of the task on which no answer rests (db/prune.h), a few thousand at most; `more` says
  // that there are more.
  Result<PruneCount> prune(const JobRow::Task& task, const PruneRules& rules) const;
  // All jobs of its database, oldest first, without best_gflops; with what is known of their tasks.
  // `counted`: with trials and outcomes of these, for which all records are read. Asked for in parts, so that
  // there may be any number.
  Result<v1::ListReply> jobs(bool counted = false) const;
  // Those that it has run or runs, from its memory, and what it does now: for who asks often.
  Result<v1::ListReply> known_jobs(double limit_s = 60) const;
  // Single results of a task or of a job, `most` at most, behind record `after`; and races, of one its
  // samples. Unavailable: also where the daemon is of an older version.
  Result<v1::RecordsReply> records(const JobRow::Task& task, int64_t after, int64_t most) const;
  Result<v1::RecordsReply> records(const std::string& job_id, int64_t after, int64_t most) const;
  Result<v1::RacesReply> races(const JobRow::Task& task) const;
  Result<v1::RacesReply> races(const std::string& job_id, int64_t race_id = 0) const;
  // Events after `after_seq`, followed in the background. The watch must end before the client.
  std::unique_ptr<JobWatch> watch(const std::string& job_id, int64_t after_seq) const;

 private:
  struct Connection;
  explicit DaemonClient(std::unique_ptr<Connection> connection);
  Result<v1::RecordsReply> records(v1::RecordsRequest request, int64_t after, int64_t most) const;
  Result<v1::RacesReply> races(const v1::RacesRequest& request) const;
  std::unique_ptr<Connection> connection_;
};

// Tells one submit from another; 128 random bits.
std::string new_request_id();

}  // namespace tuner
