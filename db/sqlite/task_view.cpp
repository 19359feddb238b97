// What is known of one task at one moment: the queries behind best().
#include <algorithm>
#include <map>
#include <set>

#include "db/sqlite/sql.h"
#include "db/sqlite/sqlite_store.h"

namespace tuner::db {

namespace {

// ",a,b,", as the statements of sql.h compare; "" for any.
std::string list_of(const std::vector<std::string>& templates) {
  std::string names;
  for (const std::string& name : templates) names += (names.empty() ? "," : "") + name + ",";
  return names;
}

class SqliteTaskView final : public TaskView {
 public:
  SqliteTaskView(Connection& connection, int64_t task_id) : connection_(connection), task_id_(task_id) {}

  Result<std::vector<RaceRow>> races() const override {
    ASSIGN_OR_RETURN(const std::vector<SqlRow> rows, connection_.all(kRacesOfTask, {task_id_}));
    std::vector<RaceRow> out;
    for (const SqlRow& row : rows) {
      ASSIGN_OR_RETURN(StoredRace stored, race_without_samples(row));
      job_of_race_[stored.race.id] = stored.job_seq;
      out.push_back(std::move(stored.race));
    }
    return out;
  }

  Result<TrialRow> trial(std::string_view trial_id) const override {
    ASSIGN_OR_RETURN(const int64_t seq, trial_seq(trial_id));
    ASSIGN_OR_RETURN(StoredTrial stored, find_trial_row(connection_, seq));
    return std::move(stored.trial);
  }

  Result<std::optional<Measured>> measured(std::string_view trial_id) const override {
    ASSIGN_OR_RETURN(const int64_t seq, trial_seq(trial_id));
    return with_trial(connection_.one(kTerminalRecord, {seq}));
  }

  Result<std::vector<std::string>> measured_trials() const override {
    ASSIGN_OR_RETURN(const std::vector<SqlRow> rows, connection_.all(kTrialSeqsOfTask, {task_id_}));
    std::vector<int64_t> seqs;
    seqs.reserve(rows.size());
    for (const SqlRow& row : rows) seqs.push_back(std::get<int64_t>(row[0]));
    std::sort(seqs.begin(), seqs.end());
    std::vector<std::string> ids;
    ids.reserve(seqs.size());
    for (const int64_t seq : seqs) ids.push_back(trial_id_text(seq));
    return ids;
  }

  Result<std::vector<std::string>> measured_trials_after(int64_t record_id, int64_t most) const override {
    ASSIGN_OR_RETURN(const std::vector<SqlRow> rows,
                     connection_.all(kTrialSeqsOfTaskAfter, {task_id_, record_id, most}));
    std::vector<std::string> ids;
    ids.reserve(rows.size());
    for (const SqlRow& row : rows) ids.push_back(trial_id_text(std::get<int64_t>(row[0])));
    return ids;
  }

  Result<std::optional<Measured>> fastest(const std::vector<std::string>& templates) const override {
    return with_trial(templates.empty()
                          ? connection_.one(kBestRecord, {task_id_})
                          : connection_.one(kBestRecordOfTemplates, {task_id_, list_of(templates)}));
  }

  Result<std::vector<std::string>> hardware() const override {
    ASSIGN_OR_RETURN(const std::vector<SqlRow> rows, connection_.all(kHardwareOfTask, {task_id_}));
    std::set<std::string> found;
    for (const SqlRow& row : rows)
      if (const auto* text = std::get_if<std::string>(&row[0])) found.insert(*text);
    return std::vector<std::string>(found.begin(), found.end());
  }

  Result<std::optional<Measured>> fastest_on(const std::string& hardware,
                                             const std::vector<std::string>& templates) const override {
    const std::string names = list_of(templates);
    return with_trial(connection_.one(kBestRecordOfHardware, {task_id_, hardware, names, names}));
  }

  Result<std::optional<Measured>> fastest_of_environment(
      const Environment& e, const std::vector<std::string>& templates) const override {
    const std::string names = list_of(templates);
    return with_trial(connection_.one(
        kBestRecordOfEnvironment, {task_id_, e.toolchain, e.hardware, int64_t{e.harness_abi}, names, names}));
  }

  Result<bool> measured_by_job_of(const RaceRow& race, std::string_view template_name,
                                  std::string_view config) const override {
    const auto job = job_of_race_.find(race.id);
    CHECK(job != job_of_race_.end()) << "race " << race.id << " is not one that races() told";
    ASSIGN_OR_RETURN(const SqlRow row,
                     connection_.one(kSameConfigInJob, {job->second, int64_t{race.task_index},
                                                        std::string(template_name), std::string(config)}));
    return !row.empty();
  }

  Result<std::vector<std::pair<Outcome, int64_t>>> outcomes() const override {
    ASSIGN_OR_RETURN(std::vector<SqlRow> rows, connection_.all(kOutcomesOfTask, {task_id_}));
    ASSIGN_OR_RETURN(const std::vector<SqlRow> pruned, connection_.all(kPrunedOutcomesOfTask, {task_id_}));
    rows.insert(rows.end(), pruned.begin(), pruned.end());
    return counted(rows);
  }

  Result<std::vector<std::pair<Outcome, int64_t>>> outcomes_on(const std::string& hardware) const override {
    ASSIGN_OR_RETURN(const std::vector<SqlRow> rows,
                     connection_.all(kOutcomesOfHardware, {task_id_, hardware}));
    return counted(rows);
  }

 private:
  // Of rows with an outcome's name and a number.
  Result<std::vector<std::pair<Outcome, int64_t>>> counted(const std::vector<SqlRow>& rows) const {
    std::map<std::string, int64_t> counts;  // by name
    for (const SqlRow& row : rows)
      if (const auto* name = std::get_if<std::string>(&row[0])) counts[*name] += std::get<int64_t>(row[1]);
    std::vector<std::pair<Outcome, int64_t>> out;
    for (const auto& [name, count] : counts) {
      const std::optional<Outcome> outcome = outcome_from_name(name);
      if (!outcome)
        return failed("a record of task ", task_id_, " has an unknown outcome: the file is damaged");
      if (count > 0) out.emplace_back(*outcome, count);
    }
    return out;
  }

  // The row of a record, with its trial.
  Result<std::optional<Measured>> with_trial(const Result<SqlRow>& row) const {
    if (!row) return row.status();
    if (row->empty()) return std::optional<Measured>();
    ASSIGN_OR_RETURN(StoredRecord record, record_from_row(*row));
    ASSIGN_OR_RETURN(StoredTrial trial, find_trial_row(connection_, record.trial_seq));
    return std::optional(Measured{std::move(trial.trial), std::move(record.record), record.record_id});
  }

  Connection& connection_;
  int64_t task_id_;
  mutable std::map<int64_t, int64_t> job_of_race_;  // filled by races()
};

}  // namespace

Status SqliteStore::with_task(const JobRow::Task& task,
                              const std::function<Status(const TaskView&)>& f) const {
  return read([&](Connection& c) -> Status {
    ASSIGN_OR_RETURN(const SqlRow row, c.one(kTaskByKey, {task.workload_key, target_in_row(task)}));
    if (row.empty()) return Status::ok();
    ASSIGN_OR_RETURN(const StoredTask stored, task_from_row(row));
    return f(SqliteTaskView(c, stored.task_id));
  });
}

Result<std::vector<TrialWithRecord>> SqliteStore::trials_of_config(const JobRow::Task& task,
                                                                   std::string_view template_name,
                                                                   int template_version,
                                                                   std::string_view config, int most) const {
  return read([&](Connection& c) -> Result<std::vector<TrialWithRecord>> {
    std::vector<TrialWithRecord> found;
    ASSIGN_OR_RETURN(const SqlRow task_row, c.one(kTaskByKey, {task.workload_key, target_in_row(task)}));
    if (task_row.empty()) return found;
    ASSIGN_OR_RETURN(const StoredTask stored, task_from_row(task_row));
    ASSIGN_OR_RETURN(const std::vector<SqlRow> rows,
                     c.all(kTrialsOfConfig, {stored.task_id, std::string(template_name),
                                             int64_t{template_version}, std::string(config), int64_t{most}}));
    for (const SqlRow& row : rows) {
      ASSIGN_OR_RETURN(StoredTrial trial, trial_from_row(row));
      ASSIGN_OR_RETURN(TrialWithRecord whole, with_record(c, std::move(trial)));
      found.push_back(std::move(whole));
    }
    return found;
  });
}

}  // namespace tuner::db
