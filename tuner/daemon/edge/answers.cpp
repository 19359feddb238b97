#include "tuner/daemon/edge/answers.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "db/device_records.h"
#include "db/resolve/default_time.h"
#include "proto/convert.h"
#include "templates/schedule_template.h"
#include "templates/workload/workload.h"

namespace tuner {

Result<TunedConfig> Answers::best_of(const JobRow::Task& task, bool counted) const {
  return with_default(task, store_.best(task.workload_key, task.target, templates_of(task.algorithms),
                                        counted, task.constants));
}

Result<TunedConfig> Answers::best_on_device(const JobRow::Task& task) const {
  return with_default(task, tuner::best_on_device(store_, task, templates_of(task.algorithms)));
}

Result<TunedConfig> Answers::with_default(const JobRow::Task& task, Result<TunedConfig> best) const {
  if (!best) return best;
  const Result<Workload> workload = workload_from_key(task.workload_key);
  const Result<Target> target = parse_target(task.target);
  if (workload && target)
    RETURN_IF_ERROR(add_default_time(store_, *workload, *target, task.algorithms, *best));
  return best;
}

Result<v1::TunedConfig> Answers::tuned(const JobRow::Task& task, int64_t flops) const {
  ASSIGN_OR_RETURN(const TunedConfig best, best_of(task));
  v1::TunedConfig message;
  to_proto(best, flops, &message);
  return message;
}

Result<std::optional<KnownConfig>> Answers::known_config(const JobRow::Task& task) const {
  const Result<Workload> workload = workload_from_key(task.workload_key);
  const Result<Target> target = parse_target(task.target);
  if (!workload || !target) return std::optional<KnownConfig>();
  ASSIGN_OR_RETURN(Answer answer, resolver_.resolve(*workload, *target, task.algorithms, task.constants));
  if (answer.kind == AnswerKind::kDefault) return std::optional<KnownConfig>();
  return std::optional(KnownConfig{.template_name = std::move(answer.template_name),
                                   .template_version = answer.template_version,
                                   .config = std::move(answer.config)});
}

Status Answers::query(const v1::QueryRequest& request, v1::QueryReply* reply) const {
  ASSIGN_OR_RETURN(const JobRow::Task task, from_proto(request.task()));
  ASSIGN_OR_RETURN(const Workload workload, workload_from_key(task.workload_key));
  ASSIGN_OR_RETURN(const Target target, parse_target(task.target));
  ASSIGN_OR_RETURN(Answer answer, resolver_.resolve(workload, target, task.algorithms, task.constants));
  if (answer.kind == AnswerKind::kExact && !request.without_outcomes()) {
    ASSIGN_OR_RETURN(answer.tuned, best_on_device(task));
  }
  for (Basis& b : answer.rests_on)
    if (const Result<TrialWithRecord> trial = store_.trial(b.trial_id)) b.trial_name = trial->trial.name();
  to_proto(answer, workload.flops(), reply->mutable_answer());
  reply->set_found(answer.kind == AnswerKind::kExact);
  if (reply->found()) {
    *reply->mutable_tuned() = reply->answer().tuned();
    return Status::ok();
  }
  // What was tuned is told, also where this program cannot build it.
  const Result<TunedConfig> best = best_on_device(task);
  if (!best) return best.status().code() == StatusCode::kNotFound ? Status::ok() : best.status();
  reply->set_found(true);
  to_proto(*best, workload.flops(), reply->mutable_tuned());
  return Status::ok();
}

// Speed of the fastest trial, record by record: a job may have had a million.
Status Answers::add_best_gflops(const std::string& job_id, v1::JobSummary* summary) const {
  return store_.for_each_record(job_id, [&](const TrialWithRecord& t) {
    summary->set_trials_done(summary->trials_done() + 1);
    if (t.record->outcome != Outcome::kOk || t.record->cut) return true;
    const Result<Workload> workload = workload_from_key(t.task.workload_key);
    const double time_ns = record_time_ns(*t.record);
    if (workload && time_ns > 0)
      summary->set_best_gflops(
          std::max(summary->best_gflops(), static_cast<double>(workload->flops()) / time_ns));
    return true;
  });
}

Status Answers::list(const v1::ListRequest& request, const Scope& scope, v1::ListReply* reply) const {
  constexpr size_t kPartBytes = size_t{4} << 20;
  ASSIGN_OR_RETURN(const std::vector<JobRow> jobs, store_.jobs());
  reply->set_with_tuned(request.with_tuned());
  // Many jobs have the same tasks.
  std::map<std::string, std::optional<v1::TunedConfig>> known;
  const auto tuned = [&](const JobRow::Task& task) -> const std::optional<v1::TunedConfig>& {
    const auto [it, added] = known.try_emplace(str(task.workload_key, '\n', task.target, '\n',
                                                   task.algorithms, '\n', constants_name(task.constants)));
    if (added)
      if (const Result<TunedConfig> best = best_of(task, !request.without_outcomes()))
        to_proto(*best, /*flops=*/0, &it->second.emplace());
    return it->second;
  };
  bool begun = request.after().empty();
  size_t bytes = 0;
  for (const JobRow& row : jobs) {
    if (!begun) {
      begun = row.id == request.after();
      continue;
    }
    if (scope && row.tenant != *scope) continue;
    if (request.has_after() && bytes > kPartBytes) {
      reply->set_next(reply->jobs().rbegin()->job_id());
      return Status::ok();
    }
    v1::JobSummary* summary = reply->add_jobs();
    to_proto(row, summary);
    if (request.without_best()) {
      ASSIGN_OR_RETURN(const int64_t done, store_.trials_done(row.id));
      summary->set_trials_done(done);
    } else {
      RETURN_IF_ERROR(add_best_gflops(row.id, summary));
    }
    for (size_t i = 0; request.with_tuned() && i < row.tasks.size(); ++i) {
      const std::optional<v1::TunedConfig>& best = tuned(row.tasks[i]);
      if (!best) continue;
      v1::TaskTuned* const one = summary->add_tuned();
      one->set_task_index(static_cast<int>(i));
      *one->mutable_tuned() = *best;
    }
    bytes += summary->ByteSizeLong();
  }
  return Status::ok();
}

}  // namespace tuner
