// SqliteStore: the Store of store.h on one SQLite file. Its methods stand in jobs.cpp, trials.cpp,
// records.cpp, task_view.cpp, donors.cpp, races.cpp, learned.cpp, import_rows.cpp and export_rows.cpp.
// schema.sql tells the tables.
//
// An OS lock on FILE-lock refuses a second writer and names the first. In the writing process one connection,
// behind one mutex and with group commit, does all writes and all checkpoints (Debian 12's SQLite 3.40 can
// corrupt a WAL that two connections checkpoint at once), with synchronous=FULL. Every row has a checksum.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "db/exchange/exchange_store.h"
#include "db/file_lock.h"
#include "db/sqlite/rows.h"
#include "db/sqlite/sqlite.h"
#include "db/sqlite/writer.h"
#include "db/store.h"
#include "db/task_view.h"

namespace tuner::db {

class SqliteStore final : public Store, public ExchangeStore {
 public:
  static Result<std::unique_ptr<Store>> open_for_writing(const std::string& path);
  static Result<std::unique_ptr<Store>> open_for_reading(const std::string& path);

  const std::string& where() const override { return path_; }

  Status add_job(const JobRow& job) override;
  Status update_job(std::string_view job_id, const JobChange& change) override;
  Result<std::vector<JobRow>> jobs(const JobQuery& query) const override;
  Result<int64_t> trials_done(std::string_view job_id) const override;

  Status add_trials(std::vector<TrialRow>& trials, ProposalRow* proposal) override;
  Result<std::vector<TrialRow>> lease_trials(const std::vector<std::string>& trial_ids,
                                             std::string_view worker_id) override;
  Status requeue_trial(std::string_view trial_id, int attempt) override;
  Status cancel_open_trials(std::string_view job_id) override;
  using Store::trials;
  Result<std::vector<TrialWithRecord>> trials(const TrialQuery& query) const override;
  Result<std::vector<ProposalRow>> proposals(std::string_view job_id) const override;

  Status add_records(const std::vector<MeasureRecord>& records) override;
  Result<std::vector<MeasureRecord>> records(std::string_view trial_id) const override;
  Result<std::vector<ObservedRecord>> records_after(std::string_view job_id, int64_t after) const override;
  Result<int64_t> last_record_id() const override;

  Result<std::vector<JobRow::Task>> tasks(Constants constants) const override;
  Status with_task(const JobRow::Task& task, const std::function<Status(const TaskView&)>& f) const override;
  Result<std::vector<TrialWithRecord>> sample_records(const JobRow::Task& task, int64_t until,
                                                      int most) const override;
  Result<TrialWithRecord> fastest_of_config(const JobRow::Task& task, std::string_view template_name,
                                            int template_version, std::string_view config) const override;

  Status add_race(RaceRow& race) override;
  Result<std::vector<RaceRow>> races(std::string_view job_id) const override;

  Status add_learned(LearnedRow& row) override;
  Result<LearnedRow> learned(std::string_view kind, std::string_view op,
                             std::string_view target) const override;

  Result<int64_t> add_event(std::string_view job_id, std::string_view json) override;
  Result<std::vector<std::pair<int64_t, std::string>>> events(std::string_view job_id, int64_t after_seq,
                                                              int limit) const override;

  ExchangeStore& exchange() override { return *this; }
  const ExchangeStore& exchange() const override { return *this; }
  Status for_each_row(const ExchangeFilter& filter,
                      const std::function<bool(const ExchangeRow&)>& f) const override;
  std::unique_ptr<Importer> importer(Origin origin) override;
  Result<std::vector<ForeignTask>> foreign_tasks() const override;
  Result<int64_t> last_foreign_id() const override;
  Result<std::vector<ForeignRecord>> sample_foreign(const ForeignTask& task, int64_t until,
                                                    int most) const override;

  // For the parts of this engine that stand in other classes: ExchangeWalk, SqliteImporter.
  // Runs `operation` on the writer's thread, in a transaction. Failed when this store only reads.
  Status write(Writer::Operation operation);
  // The next number of the file's one counter. Only inside a write.
  int64_t next_seq() { return ++last_seq_; }
  // Runs `f(Connection&)` on a read connection inside one snapshot.
  template <class F>
  auto read(F f) const -> decltype(f(std::declval<Connection&>()));

 private:
  SqliteStore(std::string path, Connection::Access reading) : path_(std::move(path)), reading_(reading) {}

  // Opens the writing connection; what was begun on failure is up to the caller.
  Status begin_writing(const std::string& folder);
  // Inside a write: stores the batch, fills id and seq.
  Status insert_trials(Connection& connection, std::vector<TrialRow>& trials);
  // Inside a write: queued -> leased.
  Result<TrialRow> lease(Connection& connection, int64_t seq, std::string_view worker_id);
  Result<std::unique_ptr<Connection>> take_reader() const;
  void give_back(std::unique_ptr<Connection> reader) const;

  std::string path_;
  Connection::Access reading_;
  std::optional<FileLock> lock_;
  int64_t last_seq_ = 0;
  std::unique_ptr<Writer> writer_;  // null when this store only reads
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

// Rows by key: what several subjects need. NotFound names what was asked for.
Result<StoredJob> find_job_row(Connection& connection, std::string_view job_id);
Result<StoredTrial> find_trial_row(Connection& connection, int64_t seq);  // without job_id
Result<StoredTask> find_task_row(Connection& connection, int64_t task_id);
// The trial with its job id, task and terminal record.
Result<TrialWithRecord> with_record(Connection& connection, StoredTrial stored);
Status save_trial(Connection& connection, const StoredTrial& stored);  // state, attempt, fencing, worker_id
// The interned task, made when it is new; `new_id` gives its number then.
Result<int64_t> task_id_of(Connection& connection, const JobRow::Task& task,
                           const std::function<int64_t()>& new_id);
// Records: InvalidArgument when a number is none a record may hold; stored; of one trial, oldest first; the
// same but for what the database adds.
Status check_numbers(const MeasureRecord& record);
Status insert_record(Connection& connection, const StoredRecord& record);
Result<std::vector<StoredRecord>> records_of(Connection& connection, int64_t trial_seq);
bool same_content(StoredRecord a, StoredRecord b);
// Races: the same for their numbers and their trials.
Status check_race(const RaceRow& race);

// copy_database() of a file.
Status copy_file_database(const std::string& from, const std::string& to);

}  // namespace tuner::db
