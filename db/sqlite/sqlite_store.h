// SqliteStore: the Store of store.h on one SQLite file. schema.sql describes the tables. The methods are in
// jobs.cpp, trials.cpp, records.cpp, task_view.cpp, donors.cpp, races.cpp, open_races.cpp, kernels.cpp,
// learned.cpp, distrust.cpp, import_rows.cpp, export_rows.cpp, prune.cpp and integrity.cpp.
//
// An OS lock on FILE-lock refuses a second writer and names the first. In the writing process one connection,
// behind one mutex and with group commit, does all writes and checkpoints, with synchronous=FULL. (Debian
// 12's SQLite 3.40 can corrupt a WAL that two connections checkpoint at once.) Every row has a checksum.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "db/exchange/exchange_store.h"
#include "db/sqlite/rows.h"
#include "db/sqlite/sqlite.h"
#include "db/sqlite/writer.h"
#include "db/store.h"
#include "db/task_view.h"
#include "db/writer_lock.h"

namespace tuner::db {

// Jobs and tasks that trials belong to, each read once. Good within one snapshot.
class Owners {
 public:
  Result<const std::string*> job_id(Connection& connection, int64_t job_seq);
  Result<const JobRow::Task*> task(Connection& connection, int64_t task_id);

 private:
  std::map<int64_t, std::string> jobs_;
  std::map<int64_t, JobRow::Task> tasks_;
};

class SqliteStore final : public Store, public ExchangeStore {
 public:
  static Result<std::unique_ptr<Store>> open_for_writing(const std::string& path);
  static Result<std::unique_ptr<Store>> open_for_reading(const std::string& path);
  ~SqliteStore() override { drop_beside(); }

  const std::string& where() const override { return path_; }

  using Store::add_job;
  Status add_job(const JobRow& job, const std::vector<KernelRow>& kernels) override;
  Status update_job(std::string_view job_id, const JobChange& change) override;
  Result<std::vector<JobRow>> jobs(const JobQuery& query) const override;
  Result<int64_t> trials_done(std::string_view job_id) const override;
  Result<std::vector<UsageRow>> usage() const override;
  Result<PruneCount> prunable(const JobRow::Task& task, const PruneRules& rules) const override;
  Result<PruneCount> prune(const JobRow::Task& task, const PruneRules& rules, int64_t most) override;

  Status add_trials(std::vector<TrialRow>& trials, ProposalRow* proposal) override;
  using Store::lease_trials;
  Result<std::vector<TrialRow>> lease_trials(const std::vector<LeaseWish>& wishes) override;
  Result<int64_t> requeue_trials(const std::vector<std::pair<std::string, int>>& attempts) override;
  Status cancel_open_trials(std::string_view job_id) override;
  using Store::trials;
  Result<std::vector<TrialWithRecord>> trials(const TrialQuery& query) const override;
  Result<std::vector<ProposalRow>> proposals(std::string_view job_id) const override;

  Status add_records(const std::vector<MeasureRecord>& records) override;
  Result<std::vector<MeasureRecord>> records(std::string_view trial_id) const override;
  using Store::records_after;
  Result<std::vector<ObservedRecord>> records_after(std::string_view job_id, int64_t after,
                                                    int64_t most) const override;
  Result<int64_t> last_record_id() const override;

  Result<std::vector<JobRow::Task>> tasks(Constants constants) const override;
  Result<std::vector<JobRow::Task>> tasks_of(std::string_view workload_key,
                                             Constants constants) const override;
  Status with_task(const JobRow::Task& task, const std::function<Status(const TaskView&)>& f) const override;
  Result<std::vector<TrialWithRecord>> sample_records(const JobRow::Task& task, int64_t until,
                                                      int most) const override;
  Result<std::vector<TrialWithRecord>> trials_of_config(const JobRow::Task& task,
                                                        std::string_view template_name, int template_version,
                                                        std::string_view config, int most) const override;

  Status add_race(RaceRow& race) override;
  Result<std::vector<RaceRow>> races(std::string_view job_id) const override;
  Status open_race(const OpenRaceRow& race) override;
  Result<OpenRaceRow> lease_race(std::string_view race_id, std::string_view worker_id,
                                 std::string_view incarnation) override;
  Status requeue_race(std::string_view race_id, int attempt) override;
  Status end_race(std::string_view race_id, RaceRow* result, std::string_view message) override;
  Result<std::vector<OpenRaceRow>> open_races(std::string_view job_id) const override;
  Result<std::vector<Grant>> race_grants(std::string_view race_id) const override;

  Status add_quarantine(QuarantineRow& row) override;
  Result<std::vector<QuarantineRow>> quarantine(std::string_view lease_id) const override;
  Status add_deaths(std::vector<DeathRow>& rows) override;
  Result<std::vector<DeathRow>> deaths() const override;

  Result<KernelRow> kernel(std::string_view digest, const std::optional<std::string>& tenant) const override;
  Result<int64_t> kernel_bytes(std::string_view tenant) const override;
  Status for_each_kernel(const std::function<bool(const KernelRow&)>& f,
                         const std::function<void(const Status&)>& damaged) const override;

  Status add_learned(LearnedRow& row) override;
  Result<LearnedRow> learned(std::string_view kind, std::string_view op,
                             std::string_view target) const override;

  Result<int64_t> add_event(std::string_view job_id, std::string_view json) override;
  Result<std::vector<std::pair<int64_t, std::string>>> events(std::string_view job_id, int64_t after_seq,
                                                              int limit) const override;

  Status backup(const std::string& path, std::stop_token stop,
                const std::function<void(int64_t, int64_t)>& after_pages) const override;
  Result<IntegrityReport> check_integrity(std::stop_token stop,
                                          const std::function<void(int64_t)>& after_page) const override;

  ExchangeStore& exchange() override { return *this; }
  const ExchangeStore& exchange() const override { return *this; }
  Status for_each_row(const ExchangeFilter& filter,
                      const std::function<bool(const ExchangeRow&)>& f) const override;
  std::unique_ptr<Importer> importer(Origin origin) override;
  Result<std::vector<ForeignTask>> foreign_tasks() const override;
  Result<int64_t> last_foreign_id() const override;
  Result<std::vector<ForeignRecord>> sample_foreign(const ForeignTask& task, int64_t until,
                                                    int most) const override;

  // For classes that are parts of this engine: ExchangeWalk, SqliteImporter.
  // Runs `operation` on the writer's thread, in a transaction. Failed if this store was opened for reading.
  Status write(Writer::Operation operation);
  // Returns the next number of the file's one counter. Call it only inside a write.
  int64_t next_seq() { return ++last_seq_; }
  // Runs `f(Connection&)` on a read connection inside one snapshot.
  template <class F>
  auto read(F f) const -> decltype(f(std::declval<Connection&>()));

 private:
  SqliteStore(std::string path, Connection::Access reading) : path_(std::move(path)), reading_(reading) {}

  // Opens the writing connection. On failure the caller cleans up.
  Status begin_writing(const std::string& folder);
  // Call inside a write. Stores the batch and fills id and seq.
  Status insert_trials(Connection& connection, std::vector<TrialRow>& trials);
  // Call inside a write. Changes the trial from queued to leased.
  Result<TrialRow> lease(Connection& connection, int64_t seq, const LeaseWish& wish, Owners& owners);
  // Call inside a write. Stores the result and fills its id.
  Status insert_race(Connection& connection, RaceRow& race);
  Result<std::unique_ptr<Connection>> take_reader() const;
  void give_back(std::unique_ptr<Connection> reader) const;

  std::string path_;
  Connection::Access reading_;
  std::optional<WriterLock> lock_;
  int64_t last_seq_ = 0;
  std::unique_ptr<Writer> writer_;  // null if opened for reading
  mutable std::mutex readers_mutex_;
  mutable std::vector<std::unique_ptr<Connection>> idle_readers_;
};

template <class F>
auto SqliteStore::read(F f) const -> decltype(f(std::declval<Connection&>())) {
  Result<std::unique_ptr<Connection>> reader = take_reader();
  if (!reader) return reader.status();
  Connection& connection = **reader;
  if (const Status begun = connection.run("BEGIN"); !begun) return begun;
  auto result = f(connection);
  (void)connection.run("COMMIT");  // ends the snapshot; a read has nothing to lose
  if (!connection.in_transaction() && !connection.broken()) give_back(*std::move(reader));
  return result;
}

// Rows by key, needed in several files. NotFound names the key.
Result<StoredJob> find_job_row(Connection& connection, std::string_view job_id);
Result<StoredTrial> find_trial_row(Connection& connection, int64_t seq);  // leaves job_id empty
Result<StoredTask> find_task_row(Connection& connection, int64_t task_id);
// Returns the trial with its job id, task and terminal record.
Result<TrialWithRecord> with_record(Connection& connection, StoredTrial stored);
Result<TrialWithRecord> with_record(Connection& connection, StoredTrial stored, Owners& owners);
Status save_trial(Connection& connection, const StoredTrial& stored);  // saves state, attempt, fencing and
                                                                       // worker_id
// Returns the id of the task, and adds its row if it is new; `new_id` then gives the number.
Result<int64_t> task_id_of(Connection& connection, const JobRow::Task& task,
                           const std::function<int64_t()>& new_id);
// Records. check_numbers() gives InvalidArgument for a number that no record may hold. records_of() returns a
// trial's records, oldest first. same_content() ignores what the database adds.
Status check_numbers(const MeasureRecord& record);
Status insert_record(Connection& connection, const StoredRecord& record);
Result<std::vector<StoredRecord>> records_of(Connection& connection, int64_t trial_seq);
bool same_content(StoredRecord a, StoredRecord b);
// Kernels. insert_kernel() returns false if its tenant has brought it already; InvalidArgument as
// Store::add_job().
Result<bool> insert_kernel(Connection& connection, KernelRow kernel, const std::function<int64_t()>& new_id);
// Races. Checks their numbers and trials, like check_numbers().
Status check_race(const RaceRow& race);

// Implements is_damaged_database() and copy_database() for files.
bool is_damaged_file(const std::string& path);
Status copy_file_database(const std::string& from, const std::string& to);

}  // namespace tuner::db
