#include "tuner/daemon/edge/record_calls.h"

#include <algorithm>
#include <map>
#include <set>

#include "compiler_core/base/printable.h"
#include "proto/convert.h"

namespace tuner {
namespace {

constexpr size_t kMostBytes = size_t{2} << 20;  // of a reply, about: a client takes 4 MiB
constexpr size_t kMostKeyBytes = size_t{1} << 20;
constexpr int64_t kRacesOfTask = 20;
constexpr int64_t kRacesOfJob = 1'000;

// Which jobs the caller sees.
class Seen {
 public:
  Seen(const Store& store, const Scope& scope) : store_(store), scope_(scope) {}

  bool job(const std::string& id) {
    if (!scope_) return true;
    const auto [at, added] = known_.try_emplace(id, false);
    if (added)
      if (const Result<JobRow> row = store_.job(id)) at->second = row->tenant == *scope_;
    return at->second;
  }
  Status must_be_job(const std::string& id) {
    const Result<JobRow> row = store_.job(id);
    if (!row && row.status().code() != StatusCode::kNotFound) return row.status();
    return row && job(id) ? Status::ok() : not_found("there is no job ", printable(id.substr(0, 40)));
  }

 private:
  const Store& store_;
  const Scope& scope_;
  std::map<std::string, bool> known_;
};

Status add_results(const std::vector<TrialWithRecord>& trials, bool last_page, Seen& seen, int64_t after,
                   v1::RecordsReply* reply) {
  size_t bytes = 0;
  reply->set_next(after);
  for (const TrialWithRecord& t : trials) {
    if (bytes > kMostBytes) {
      reply->set_more(true);
      return Status::ok();
    }
    reply->set_next(t.record_id);
    if (!seen.job(t.trial.job_id)) continue;
    v1::TrialResult* const result = reply->add_results();
    to_proto(t, result);
    bytes += result->ByteSizeLong();
  }
  reply->set_more(!last_page);
  return Status::ok();
}

// A page of the job's trials in the order of their records.
Result<std::vector<TrialWithRecord>> results_of_job(const Store& store, const std::string& job, int64_t after,
                                                    int64_t most) {
  ASSIGN_OR_RETURN(const std::vector<ObservedRecord> records, store.records_after(job, after, most));
  std::vector<std::string> ids;
  ids.reserve(records.size());
  for (const ObservedRecord& r : records) ids.push_back(r.record.trial_id);
  if (ids.empty()) return std::vector<TrialWithRecord>();
  ASSIGN_OR_RETURN(std::vector<TrialWithRecord> trials, store.trials(TrialQuery{.ids = std::move(ids)}));
  std::erase_if(trials, [](const TrialWithRecord& t) { return !t.record; });
  std::ranges::sort(trials, {}, &TrialWithRecord::record_id);
  return trials;
}

// With all samples, and what the finalists are.
Status add_whole_race(const Store& store, const RaceRow& race, v1::RacesReply* reply) {
  v1::StoredRace* const out = reply->add_races();
  to_proto(race, out);
  to_proto(race, out->mutable_result());
  for (const RaceFinalist& finalist : race.finalists) {
    v1::TrialResult* const trial = out->add_trials();
    trial->set_trial_id(finalist.trial_id);
    const Result<TrialWithRecord> known = store.trial(finalist.trial_id);
    if (!known) continue;
    trial->set_trial_name(known->trial.name());
    trial->set_template_name(known->trial.template_name);
    trial->set_config(known->trial.config);
  }
  return Status::ok();
}

}  // namespace

Result<JobRow::Task> stored_task(const v1::TaskSpec& spec) {
  if (spec.workload_key().empty() || spec.workload_key().size() > kMostKeyBytes || spec.target().empty() ||
      spec.target().size() > kMostKeyBytes)
    return invalid_argument("task: expected a workload and a target, of at most 1 MiB each");
  const std::optional<Constants> constants =
      spec.constants().empty() ? Constants::kWarm : constants_from_name(spec.constants());
  if (!constants) return invalid_argument("task.constants: expected warm or cold");
  return JobRow::Task{.workload_key = spec.workload_key(), .target = spec.target(), .constants = *constants};
}

Status list_records(const Store& store, const v1::RecordsRequest& request, const Scope& scope,
                    v1::RecordsReply* reply) {
  if (request.has_task() == !request.job_id().empty())
    return invalid_argument("expected one of task and job_id, found ",
                            request.has_task() ? "both" : "neither");
  if (request.after() < 0) return invalid_argument("after: expected a number >= 0, found ", request.after());
  if (request.most() < 0 || request.most() > kMostResults)
    return invalid_argument("most: expected 0 to ", kMostResults, ", found ", request.most());
  const int64_t most = request.most() == 0 ? kMostResults : request.most();
  Seen seen(store, scope);
  std::vector<TrialWithRecord> page;
  if (request.has_task()) {
    ASSIGN_OR_RETURN(const JobRow::Task task, stored_task(request.task()));
    ASSIGN_OR_RETURN(page, store.records_of_task(task, request.after(), most + 1));
  } else {
    RETURN_IF_ERROR(seen.must_be_job(request.job_id()));
    ASSIGN_OR_RETURN(page, results_of_job(store, request.job_id(), request.after(), most + 1));
  }
  const bool last_page = page.size() <= static_cast<size_t>(most);
  if (!last_page) page.resize(static_cast<size_t>(most));
  return add_results(page, last_page, seen, request.after(), reply);
}

Status list_races(const Store& store, const v1::RacesRequest& request, const Scope& scope,
                  v1::RacesReply* reply) {
  if (request.has_task() == !request.job_id().empty())
    return invalid_argument("expected one of task and job_id, found ",
                            request.has_task() ? "both" : "neither");
  if (request.race_id() < 0 || (request.race_id() > 0 && request.has_task()))
    return invalid_argument("race_id: expected a number >= 0, of a race of job_id, found ",
                            request.race_id());
  Seen seen(store, scope);
  if (request.has_task()) {
    ASSIGN_OR_RETURN(const JobRow::Task task, stored_task(request.task()));
    // Who sees only some jobs finds his races among those of others.
    ASSIGN_OR_RETURN(const std::vector<RaceRow> races,
                     store.races_of_task(task, scope ? kRacesOfJob : kRacesOfTask));
    for (const RaceRow& race : races)
      if (reply->races_size() < kRacesOfTask && seen.job(race.job_id)) to_proto(race, reply->add_races());
    return Status::ok();
  }
  RETURN_IF_ERROR(seen.must_be_job(request.job_id()));
  ASSIGN_OR_RETURN(const std::vector<RaceRow> races, store.races(request.job_id()));
  for (const RaceRow& race : races) {
    if (request.race_id() == race.id) return add_whole_race(store, race, reply);
    if (request.race_id() == 0 && reply->races_size() < kRacesOfJob) to_proto(race, reply->add_races());
  }
  return request.race_id() == 0 ? Status::ok()
                                : not_found("race ", request.race_id(), " is not one of job ",
                                            printable(request.job_id().substr(0, 40)));
}

}  // namespace tuner
