// What every engine has in common: reads that are built on others.
#include "db/store.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>

#include "db/task_view.h"

namespace tuner {

namespace {

std::atomic<const char*> given_words = "with --db";

// Trials read at one moment: a long reader would hold up a writer's clearing away.
constexpr size_t kPage = 256;

Status no_job(std::string_view job_id) {
  return not_found("no job \"", job_id, "\". `tuner jobs` lists them");
}

Result<JobRow> the_one(Result<std::vector<JobRow>> jobs, const Status& none) {
  if (!jobs) return jobs.status();
  if (jobs->empty()) return none;
  return std::move(jobs->front());
}

}  // namespace

std::string_view how_a_database_is_given() { return given_words.load(); }
void set_how_a_database_is_given(const char* words) { given_words = words; }

Result<JobRow> Store::job(std::string_view job_id) const {
  if (job_id.empty()) return no_job(job_id);
  return the_one(jobs({.id = std::string(job_id)}), no_job(job_id));
}

Result<JobRow> Store::job_by_request(std::string_view request_id) const {
  if (request_id.empty()) return not_found("no job of request \"\"");
  return the_one(jobs({.request_id = std::string(request_id)}),
                 not_found("no job of request \"", request_id, "\""));
}

Result<JobRow> Store::find_job(const std::vector<JobRow::Task>& tasks, std::string_view search, uint64_t seed,
                               std::string_view tenant) const {
  return the_one(jobs({.search = JobQuery::Search{tasks, std::string(search), seed, std::string(tenant)}}),
                 not_found("no job with these tasks, search ", search, " and seed ", seed));
}

Status Store::set_job_state(std::string_view job_id, JobState state, std::string_view message) {
  return update_job(job_id, {.state = state, .message = std::string(message)});
}

Status Store::extend_job(std::string_view job_id, int trials, const StopOptions& stop) {
  return update_job(job_id, {.state = JobState::kQueued, .least_trials = trials, .stop = stop});
}

Result<std::vector<TrialRow>> Store::lease_trials(const std::vector<std::string>& trial_ids,
                                                  std::string_view worker_id) {
  std::vector<LeaseWish> wishes;
  wishes.reserve(trial_ids.size());
  for (const std::string& id : trial_ids) wishes.push_back({id, std::string(worker_id)});
  return lease_trials(wishes);
}

Status Store::requeue_trial(std::string_view trial_id, int attempt) {
  ASSIGN_OR_RETURN(const int64_t requeued, requeue_trials({{std::string(trial_id), attempt}}));
  if (requeued == 0) return not_found("trial ", trial_id, " is not leased at attempt ", attempt);
  return Status::ok();
}

Result<std::vector<TrialWithRecord>> Store::trials(std::string_view job_id) const {
  if (job_id.empty()) return no_job(job_id);
  return trials(TrialQuery{.job = std::string(job_id), .numbered = true});
}

Result<TrialWithRecord> Store::trial(std::string_view trial_id) const {
  ASSIGN_OR_RETURN(std::vector<TrialWithRecord> found,
                   trials(TrialQuery{.ids = {std::string(trial_id)}, .numbered = true}));
  return std::move(found.at(0));
}

Status Store::for_each_record(std::string_view job_id,
                              const std::function<bool(const TrialWithRecord&)>& f) const {
  TrialQuery query{.job = std::string(job_id), .limit = kPage};
  while (true) {
    ASSIGN_OR_RETURN(const std::vector<TrialWithRecord> page, trials(query));
    for (const TrialWithRecord& trial : page)
      if (trial.record && !f(trial)) return Status::ok();
    if (page.size() < kPage) return Status::ok();
    query.after = page.back().trial.seq;
  }
}

Status Store::for_each_record_of(const JobRow::Task& task,
                                 const std::function<bool(const TrialWithRecord&)>& f) const {
  std::vector<std::string> ids;
  RETURN_IF_ERROR(with_task(task, [&](const TaskView& view) -> Status {
    ASSIGN_OR_RETURN(ids, view.measured_trials());
    return Status::ok();
  }));
  for (size_t begin = 0; begin < ids.size(); begin += kPage) {
    const auto from = ids.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto to = ids.begin() + static_cast<std::ptrdiff_t>(std::min(begin + kPage, ids.size()));
    ASSIGN_OR_RETURN(const std::vector<TrialWithRecord> page, trials(TrialQuery{.ids = {from, to}}));
    for (const TrialWithRecord& trial : page)
      if (trial.record && !f(trial)) return Status::ok();
  }
  return Status::ok();
}

Result<std::vector<RaceRow>> Store::races_of_task(const JobRow::Task& task, int64_t most) const {
  const auto same = [&](const JobRow::Task& t) {
    return t.workload_key == task.workload_key && t.target == task.target && t.constants == task.constants;
  };
  std::vector<RaceRow> found;
  ASSIGN_OR_RETURN(const std::vector<JobRow> all, jobs());
  for (auto job = all.rbegin(); job != all.rend() && std::ssize(found) < most; ++job) {
    if (std::ranges::none_of(job->tasks, same)) continue;
    ASSIGN_OR_RETURN(std::vector<RaceRow> of_job, races(job->id));
    for (RaceRow& race : of_job)
      if (race.task_index >= 0 && static_cast<size_t>(race.task_index) < job->tasks.size() &&
          same(job->tasks[static_cast<size_t>(race.task_index)]) && std::ssize(found) < most)
        found.push_back(std::move(race));
  }
  return found;
}

Result<std::vector<TrialWithRecord>> Store::records_of_task(const JobRow::Task& task, int64_t after,
                                                            int64_t most) const {
  std::vector<std::string> ids;
  RETURN_IF_ERROR(with_task(task, [&](const TaskView& view) -> Status {
    ASSIGN_OR_RETURN(ids, view.measured_trials_after(after, most));
    return Status::ok();
  }));
  std::vector<TrialWithRecord> all;
  for (size_t begin = 0; begin < ids.size(); begin += kPage) {
    const auto from = ids.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto to = ids.begin() + static_cast<std::ptrdiff_t>(std::min(begin + kPage, ids.size()));
    ASSIGN_OR_RETURN(std::vector<TrialWithRecord> page, trials(TrialQuery{.ids = {from, to}}));
    for (TrialWithRecord& trial : page)
      if (trial.record) all.push_back(std::move(trial));
  }
  std::ranges::sort(all, {}, &TrialWithRecord::record_id);
  return all;
}

std::string default_db_path() {
  const auto set = [](const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && value[0] == '/' ? std::string(value) : std::string();
  };
  // The XDG rule: a relative path in the variable is as good as none.
  if (const std::string data = set("XDG_DATA_HOME"); !data.empty()) return data + "/tuner/tuner.db";
  if (const std::string home = set("HOME"); !home.empty()) return home + "/.local/share/tuner/tuner.db";
  return "tuner.db";
}

}  // namespace tuner
