// Single results and races, as the dashboard reads them from a daemon.
#include <nlohmann/json.hpp>

#include "proto/convert.h"
#include "proto/field_checker.h"

namespace tuner {

namespace {

// Messages of failed programs may hold any bytes, and a field of text may not.
std::string as_utf8(const std::string& text) {
  const std::string dumped =
      nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return nlohmann::json::parse(dumped).get<std::string>();
}

}  // namespace

void to_proto(const TrialWithRecord& trial, v1::TrialResult* out) {
  out->set_record_id(trial.record_id);
  out->set_trial_id(trial.trial.id);
  if (trial.trial.number > 0) out->set_trial_name(trial.trial.name());
  out->set_job_id(trial.trial.job_id);
  out->set_task_index(trial.trial.task_index);
  out->set_template_name(as_utf8(trial.trial.template_name));
  out->set_config(as_utf8(trial.trial.config));
  if (!trial.record) return;
  out->set_outcome(to_proto(trial.record->outcome));
  out->set_cut(trial.record->cut);
  if (trial.record->outcome == Outcome::kOk) out->set_time_ns(record_time_ns(*trial.record));
  out->set_message(as_utf8(trial.record->message));
}

Result<TrialWithRecord> from_proto(const v1::TrialResult& r, std::string_view field) {
  FieldChecker check(field);
  TrialWithRecord out;
  out.record_id = check.in_range<int64_t>("record_id", r.record_id(), 1, INT64_MAX);
  out.trial.id = check.needed("trial_id", r.trial_id());
  out.trial.job_id = check.text("job_id", r.job_id());
  out.trial.task_index = check.in_range<int32_t>("task_index", r.task_index(), 0, kMaxTasksPerJob);
  out.trial.template_name = check.text("template_name", r.template_name());
  out.trial.config = check.text("config", r.config());
  MeasureRecord& record = out.record.emplace();
  record.trial_id = out.trial.id;
  record.outcome = check.part(from_proto(r.outcome(), str(field, ".outcome")));
  record.cut = r.cut();
  record.message = check.text("message", r.message());
  if (const double time = check.at_least_zero("time_ns", r.time_ns()); time > 0) record.run_ns = {time};
  RETURN_IF_ERROR(check.status());
  return out;
}

void to_proto(const RaceRow& race, v1::StoredRace* out) {
  out->set_race_id(race.id);
  out->set_job_id(race.job_id);
  out->set_task_index(race.task_index);
  *out->mutable_finished_at() = timestamp(race.finished_at_us);
  out->set_finalists(static_cast<int32_t>(race.finalists.size()));
  out->set_time_ns(race.time_ns);
  out->set_certified(race.certified);
}

Result<RaceRow> from_proto(const v1::StoredRace& r, std::string_view field) {
  FieldChecker check(field);
  RaceRow out;
  if (r.has_result()) {
    ASSIGN_OR_RETURN(out, from_proto(r.result(), str(field, ".result")));
    out.uncertified_why = r.result().uncertified_why();  // as it is stored
  } else {
    out.finalists.resize(
        static_cast<size_t>(check.in_range<int32_t>("finalists", r.finalists(), 0, kMaxFinalists)));
    out.time_ns = check.at_least_zero("time_ns", r.time_ns());
  }
  out.certified = r.certified();
  out.id = check.in_range<int64_t>("race_id", r.race_id(), 1, INT64_MAX);
  out.job_id = check.needed("job_id", r.job_id());
  out.task_index = check.in_range<int32_t>("task_index", r.task_index(), 0, kMaxTasksPerJob);
  out.finished_at_us = microseconds(check, "finished_at", r.finished_at());
  RETURN_IF_ERROR(check.status());
  return out;
}

}  // namespace tuner
