#include "tuner/dashboard/store_facts.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "compiler_core/backend.h"
#include "compiler_core/base/printable.h"
#include "db/resolve/default_time.h"
#include "tuner/dashboard/fact_json.h"
#include "tuner/dashboard/task_work.h"
#include "tuner/jobs/job_state.h"
#include "tuner/text/facts.h"
#include "tuner/text/format.h"

namespace tuner::dashboard {
namespace {

using nlohmann::ordered_json;
using Steady = std::chrono::steady_clock;
constexpr size_t kMostRows = 200'000;                               // of a list that is kept in memory
constexpr int64_t kMostRaces = 20, kRacesLookedAt = 1'000;          // of a task
constexpr int kMostParts = 10;                                      // of records that are read for one answer
constexpr int64_t kNewestJobs = 50;                                 // that mark() looks at
constexpr size_t kMostLeases = 200;                                 // shown of what workers have
constexpr std::chrono::seconds kAnswersFor{2}, kAnswersAtMost{10};  // before they are read again

// Which jobs the visitor sees; each is looked up once.
class SeenJobs {
 public:
  SeenJobs(const Store& store, const Tenant& tenant) : store_(store), tenant_(tenant) {}
  bool has(const std::string& id) {
    if (!tenant_) return true;
    const auto known = seen_.find(id);
    if (known != seen_.end()) return known->second;
    const Result<JobRow> job = store_.job(id);
    return seen_[id] = job.is_ok() && sees(tenant_, *job);
  }

 private:
  const Store& store_;
  const Tenant& tenant_;
  std::map<std::string, bool> seen_;
};

class StoreFacts final : public FactSource {
 public:
  StoreFacts(std::shared_ptr<const Store> store, std::unique_ptr<LiveDaemon> live)
      : store_(std::move(store)), live_(std::move(live)), work_(store_->where()) {}

  std::string name() const override { return "database " + store_->where(); }
  Result<std::string> jobs(const Part& part, const Tenant& tenant) const override;
  Result<std::string> job(const std::string& id, const Tenant& tenant) const override;
  Result<std::string> curve(const std::string& id, const After& after, const Tenant& tenant) const override;
  Result<std::string> race(const std::string& job, int64_t id, const Tenant& tenant) const override;
  Result<std::string> answers(const Part& part) const override;
  Result<std::string> task(const TaskName& task, const Tenant& tenant) const override;
  Result<std::string> records(const TaskName& task, const After& after, const Tenant& tenant) const override;
  Result<std::string> workers(const Tenant& tenant) const override;
  Result<std::string> mark() const override;
  Result<std::string> submit(const std::string& job_file, bool only_check) override {
    return live_->submit(job_file, only_check);
  }
  Result<std::string> cancel(const std::string& job) override { return live_->cancel(job); }
  Result<std::string> tune_on(const TaskName& task, int more) override;
  Result<std::string> tune_job_on(const std::string& id, int more, const Tenant& tenant) override {
    ASSIGN_OR_RETURN(const JobRow job, seen_job(id, tenant));
    ASSIGN_OR_RETURN(const int64_t done, store_->trials_done(id));
    return live_->submit_job(job_on(job, done, more));
  }
  Result<std::string> verify(const TaskName& name) override {
    ASSIGN_OR_RETURN(const JobRow::Task task, task_of_name(name));
    return work_.verify(task);
  }
  Result<Download> library(const TaskName& name) override {
    ASSIGN_OR_RETURN(const JobRow::Task task, task_of_name(name));
    return work_.library(task);
  }

 private:
  Result<JobRow> seen_job(const std::string& id, const Tenant& tenant) const {
    Result<JobRow> job = store_->job(id);
    if (!job && job.status().code() != StatusCode::kNotFound) return job;
    if (!job || !sees(tenant, *job)) return no_such_job(id);
    return job;
  }
  // What is known of a task; nothing: nothing correct was measured. Only a certified answer claims a gain
  // and has the time of its default. `with_default`: the others, too, which takes a millisecond per task.
  Result<std::optional<TunedConfig>> best_of(const JobRow::Task& task, bool with_default) const;
  Result<std::vector<std::string>> all_answers() const;
  Result<ordered_json> leases(const Tenant& tenant) const;

  const std::shared_ptr<const Store> store_;
  const std::unique_ptr<LiveDaemon> live_;
  const TaskWork work_;
  // The list of answers, as it was read last. Reading it takes tens of microseconds per task.
  mutable std::mutex answers_mutex_;
  mutable std::vector<std::string> answers_;
  mutable int64_t answers_until_ = -1;  // the last record that was there
  mutable Steady::time_point answers_read_;
};

Result<std::optional<TunedConfig>> StoreFacts::best_of(const JobRow::Task& task, bool with_default) const {
  Result<TunedConfig> best =
      store_->best(task.workload_key, task.target, {}, /*counted=*/false, task.constants);
  if (!best && best.status().code() == StatusCode::kNotFound) return std::optional<TunedConfig>();
  if (!best) return best.status();
  if (best->certified || !with_default) return std::optional(*std::move(best));
  const Result<Workload> workload = workload_from_key(task.workload_key);
  const Result<Target> target = parse_target(task.target);
  if (workload && target) RETURN_IF_ERROR(add_default_time(*store_, *workload, *target, "", *best));
  return std::optional(*std::move(best));
}

Result<std::string> StoreFacts::tune_on(const TaskName& task, int more) {
  ASSIGN_OR_RETURN(const JobRow usual, usual_job(task));
  ASSIGN_OR_RETURN(const std::vector<JobRow> all, store_->jobs());
  const auto before =
      std::ranges::find_if(all, [&](const JobRow& job) { return is_same_search(job, usual); });
  int64_t done = 0;
  if (before != all.end()) {
    ASSIGN_OR_RETURN(done, store_->trials_done(before->id));
  }
  return live_->submit_job(job_on(usual, done, more));
}

Result<std::string> StoreFacts::jobs(const Part& part, const Tenant& tenant) const {
  const JobStates states(store_->where());
  ASSIGN_OR_RETURN(std::vector<JobRow> all, store_->jobs());
  std::erase_if(all, [&](const JobRow& job) { return !sees(tenant, job); });
  std::ranges::reverse(all);
  const size_t from = std::min(static_cast<size_t>(part.from), all.size());
  const size_t end = std::min(from + static_cast<size_t>(part.count), all.size());
  ordered_json rows = ordered_json::array();
  for (size_t i = from; i < end; ++i) {
    ASSIGN_OR_RETURN(const int64_t done, store_->trials_done(all[i].id));
    rows.push_back(job_row(all[i], states.name(all[i]), states.message(all[i]), done));
  }
  return one_line({{"jobs", rows}, {"from", from}, {"total", all.size()}});
}

Result<std::string> StoreFacts::job(const std::string& id, const Tenant& tenant) const {
  const JobStates states(store_->where());
  ASSIGN_OR_RETURN(const JobRow job, seen_job(id, tenant));
  ASSIGN_OR_RETURN(const int64_t done, store_->trials_done(id));
  ASSIGN_OR_RETURN(const std::vector<RaceRow> races, store_->races(id));
  ordered_json out = job_row(job, states.name(job), states.message(job), done);
  ordered_json tasks = ordered_json::array();
  for (size_t i = 0; i < job.tasks.size() && i < Part::kMost; ++i) {
    ASSIGN_OR_RETURN(const std::optional<TunedConfig> best, best_of(job.tasks[i], /*with_default=*/true));
    tasks.push_back(task_row(job.tasks[i], best ? &*best : nullptr));
  }
  out["tasks"] = tasks;
  out["races"] = races_of_job(races);
  return one_line(out);
}

Result<std::string> StoreFacts::curve(const std::string& id, const After& after, const Tenant& tenant) const {
  ASSIGN_OR_RETURN(const JobRow job, seen_job(id, tenant));
  ASSIGN_OR_RETURN(std::vector<ObservedRecord> records, store_->records_after(id, after.id, after.count + 1));
  const bool more = records.size() > static_cast<size_t>(after.count);
  if (more) records.resize(static_cast<size_t>(after.count));
  std::vector<std::string> ids;
  for (const ObservedRecord& r : records) ids.push_back(r.record.trial_id);
  std::vector<TrialWithRecord> trials;
  if (!ids.empty()) {
    ASSIGN_OR_RETURN(trials, store_->trials(TrialQuery{.ids = ids}));
  }
  std::ranges::sort(trials, {}, &TrialWithRecord::record_id);
  ordered_json points = ordered_json::array();
  for (const TrialWithRecord& t : trials)
    if (t.record) points.push_back(curve_point(t));
  return one_line({{"points", points},
                   {"next", records.empty() ? after.id : records.back().record_id},
                   {"more", more},
                   {"state", JobStates(store_->where()).name(job)}});
}

Result<std::string> StoreFacts::race(const std::string& job, int64_t id, const Tenant& tenant) const {
  RETURN_IF_ERROR(seen_job(job, tenant).status());
  ASSIGN_OR_RETURN(const std::vector<RaceRow> races, store_->races(job));
  const auto found = std::ranges::find_if(races, [&](const RaceRow& race) { return race.id == id; });
  if (found == races.end()) return not_found("race ", id, " is not one of job ", printable(job));
  std::vector<TrialRow> trials;
  for (const RaceFinalist& f : found->finalists) {
    const Result<TrialWithRecord> trial = store_->trial(f.trial_id);
    trials.push_back(trial ? trial->trial : TrialRow{});
  }
  return one_line(whole_race(*found, trials));
}

Result<std::vector<std::string>> StoreFacts::all_answers() const {
  std::vector<std::string> rows;
  for (const Constants constants : {Constants::kWarm, Constants::kCold}) {
    ASSIGN_OR_RETURN(const std::vector<JobRow::Task> tasks, store_->tasks(constants));
    for (JobRow::Task task : tasks) {
      task.constants = constants;
      ASSIGN_OR_RETURN(const std::optional<TunedConfig> best, best_of(task, /*with_default=*/false));
      if (best && rows.size() < kMostRows) rows.push_back(one_line(answer_row(*best)));
    }
  }
  return rows;
}

Result<std::string> StoreFacts::answers(const Part& part) const {
  ASSIGN_OR_RETURN(const int64_t last, store_->last_record_id());
  const std::lock_guard lock(answers_mutex_);
  // A race adds no record, so the list is read again now and then though no record is new.
  const auto age = Steady::now() - answers_read_;
  if (answers_until_ < 0 || (last != answers_until_ && age > kAnswersFor) || age > kAnswersAtMost) {
    ASSIGN_OR_RETURN(answers_, all_answers());
    answers_until_ = last;
    answers_read_ = Steady::now();
  }
  return list_text("answers", answers_, part);
}

Result<std::string> StoreFacts::task(const TaskName& name, const Tenant& tenant) const {
  ASSIGN_OR_RETURN(const JobRow::Task task, task_of_name(name));
  Result<TunedConfig> best =
      store_->best(task.workload_key, task.target, {}, /*counted=*/true, task.constants);
  if (!best && best.status().code() == StatusCode::kNotFound)
    return not_found("nothing correct was measured of this task here. /api/answers lists all that are known");
  if (!best) return best.status();
  ASSIGN_OR_RETURN(const std::optional<TunedConfig> with_default, best_of(task, /*with_default=*/true));
  if (with_default && best->default_time_ns == 0) best->default_time_ns = with_default->default_time_ns;
  const Result<Workload> workload = workload_from_key(task.workload_key);
  ordered_json out = tuned_json(*best, workload ? workload->flops() : 0, workload ? workload->bytes() : 0);
  out["answer"] = answer_row(*best);
  // Who sees only some jobs finds his races among those of others.
  ASSIGN_OR_RETURN(std::vector<RaceRow> races,
                   store_->races_of_task(task, tenant ? kRacesLookedAt : kMostRaces));
  SeenJobs seen(*store_, tenant);
  std::erase_if(races, [&](const RaceRow& race) { return !seen.has(race.job_id); });
  if (races.size() > static_cast<size_t>(kMostRaces)) races.resize(static_cast<size_t>(kMostRaces));
  out["races"] = races_of_task(races);
  return one_line(out);
}

Result<std::string> StoreFacts::records(const TaskName& name, const After& after,
                                        const Tenant& tenant) const {
  ASSIGN_OR_RETURN(const JobRow::Task task, task_of_name(name));
  const auto count = static_cast<size_t>(after.count);
  SeenJobs seen(*store_, tenant);
  ordered_json rows = ordered_json::array();
  int64_t next = after.id;
  bool more = true;
  // Of one who sees everything the first part is full; others may see little of it.
  for (int part = 0; more && rows.size() < count && part < kMostParts; ++part) {
    ASSIGN_OR_RETURN(const std::vector<TrialWithRecord> trials,
                     store_->records_of_task(task, next, after.count + 1));
    size_t read = 0;
    for (; read < std::min(trials.size(), count) && rows.size() < count; ++read) {
      next = trials[read].record_id;
      if (seen.has(trials[read].trial.job_id)) rows.push_back(record_row(trials[read]));
    }
    more = read < trials.size();
  }
  return one_line({{"records", rows}, {"next", next}, {"more", more}});
}

// Trials that workers have now. Only of jobs that may be seen.
Result<ordered_json> StoreFacts::leases(const Tenant& tenant) const {
  ordered_json rows = ordered_json::array();
  ASSIGN_OR_RETURN(const std::vector<JobRow> jobs, store_->jobs(JobQuery{.newest = kNewestJobs}));
  for (const JobRow& job : jobs) {
    if (job.state != JobState::kRunning || !sees(tenant, job)) continue;
    ASSIGN_OR_RETURN(const std::vector<TrialWithRecord> trials,
                     store_->trials(TrialQuery{.job = job.id, .open = true}));
    for (const TrialWithRecord& t : trials) {
      if (t.trial.state != TrialState::kLeased || rows.size() >= kMostLeases) continue;
      rows.push_back({{"worker", t.trial.worker_id},
                      {"job", job.id},
                      {"trial", t.trial.id},
                      {"workload", t.task.workload_key},
                      {"template", t.trial.template_name},
                      {"config", t.trial.config}});
    }
  }
  return rows;
}

Result<std::string> StoreFacts::workers(const Tenant& tenant) const {
  const Result<std::string> look = live_->look();
  ordered_json out = ordered_json::object();
  if (look)
    out = ordered_json::parse(*look, nullptr, /*allow_exceptions=*/false);
  else
    out = {{"now", nullptr}, {"workers", ordered_json::array()}, {"why", look.message()}};
  // Jobs of other tenants are not for this visitor; /api/jobs has his.
  if (tenant && out["now"].is_object()) out["now"].erase("jobs"), out["now"].erase("tenants");
  ASSIGN_OR_RETURN(out["leases"], leases(tenant));
  return one_line(out);
}

Result<std::string> StoreFacts::mark() const {
  ASSIGN_OR_RETURN(const int64_t last, store_->last_record_id());
  ASSIGN_OR_RETURN(const std::vector<JobRow> jobs, store_->jobs(JobQuery{.newest = kNewestJobs}));
  std::string states;
  for (const JobRow& job : jobs) states += static_cast<char>('0' + static_cast<int>(job.state));
  return str(last, " ", jobs.empty() ? "" : jobs.back().id, " ", states);
}

}  // namespace

std::unique_ptr<FactSource> facts_of_store(std::shared_ptr<const Store> store,
                                           std::unique_ptr<LiveDaemon> live) {
  return std::make_unique<StoreFacts>(std::move(store), std::move(live));
}

}  // namespace tuner::dashboard
