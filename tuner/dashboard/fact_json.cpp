#include "tuner/dashboard/fact_json.h"

#include <algorithm>

#include "compiler_core/base/printable.h"
#include "db/raced_time.h"
#include "tuner/jobs/job_file.h"
#include "tuner/text/facts.h"
#include "tuner/text/format.h"
#include "tuner/text/time_words.h"

namespace tuner::dashboard {

using nlohmann::ordered_json;

ordered_json task_row(const JobRow::Task& task, const TunedConfig* best) {
  ordered_json row{{"workload", task.workload_key},
                   {"target", task.target},
                   {"constants", constants_name(task.constants)},
                   {"uses", task.uses},
                   {"algorithms", task.algorithms}};
  row["answer"] = best == nullptr ? ordered_json(nullptr) : answer_row(*best);
  return row;
}

ordered_json answer_row(const TunedConfig& best) {
  ordered_json row{{"workload", best.workload_key},
                   {"target", best.target},
                   {"constants", constants_name(best.constants)},
                   {"time_ns", best.time_ns},
                   {"certified", best.certified}};
  // One rule everywhere (time_words.h): only a certified time has an interval, and only it claims a gain.
  if (best.certified) {
    row["time_low_ns"] = best.time_low_ns;
    row["time_high_ns"] = best.time_high_ns;
  } else {
    row["uncertified_why"] = best.uncertified_why;
  }
  if (best.default_time_ns > 0) row["default_time_ns"] = best.default_time_ns;
  if (const double gain = claimed_gain(best); gain > 0) row["gain"] = gain;
  const Result<Workload> workload = workload_from_key(best.workload_key);
  if (workload && best.read_gbps > 0) {
    row["roofline_ns"] = roofline_ns(*workload, best);
    row["roofline_share"] = roofline_share(*workload, best);
  }
  row["template"] = best.template_name;
  row["config"] = best.config;
  row["trial"] = best.trial_name.empty() ? best.trial_id : best.trial_name;
  row["race"] = best.race_id;
  row["when"] = iso_utc(best.finished_at_us);
  return row;
}

ordered_json job_row(const JobRow& job, const std::string& state, const std::string& message,
                     int64_t trials_done) {
  return {{"job", job.id},
          {"state", state},
          {"message", message},
          {"search", job.search},
          {"seed", job.seed},
          {"tenant", job.tenant},
          {"workload", job.tasks.empty() ? "" : job.tasks[0].workload_key},
          {"target", job.tasks.empty() ? "" : job.tasks[0].target},
          {"task_count", job.tasks.size()},
          {"trials_done", trials_done},
          {"trials_total", static_cast<int64_t>(job.trials) * static_cast<int64_t>(job.tasks.size())},
          {"submitted", iso_utc(job.submitted_at_us)},
          {"finished", iso_utc(job.finished_at_us)}};
}

namespace {

ordered_json time_or_null(const MeasureRecord& record) {
  const double ns = record_time_ns(record);
  return record.outcome == Outcome::kOk && ns > 0 ? ordered_json(ns) : ordered_json(nullptr);
}
std::string kind_of(const MeasureRecord& record) {
  return record.outcome == Outcome::kOk && record.cut ? "cut" : std::string(outcome_name(record.outcome));
}

}  // namespace

ordered_json record_row(const TrialWithRecord& t) {
  return {{"record", t.record_id},
          {"trial", t.trial.id},
          {"job", t.trial.job_id},
          {"template", t.trial.template_name},
          {"config", config_json(t.trial.config)},
          {"time_ns", time_or_null(*t.record)},
          {"outcome", kind_of(*t.record)},
          {"message", t.record->message}};
}

ordered_json curve_point(const TrialWithRecord& t) {
  return ordered_json::array(
      {t.record_id, t.trial.task_index, time_or_null(*t.record), kind_of(*t.record), t.trial.id});
}

ordered_json races_of_job(const std::vector<RaceRow>& races) {
  ordered_json rows = ordered_json::array();
  for (size_t i = 0; i < races.size() && i < Part::kMost; ++i)
    rows.push_back({{"race", races[i].id},
                    {"task", races[i].task_index},
                    {"time_ns", races[i].time_ns},
                    {"certified", races[i].certified},
                    {"finalists", races[i].finalists.size()},
                    {"when", iso_utc(races[i].finished_at_us)}});
  return rows;
}

ordered_json races_of_task(const std::vector<RaceRow>& races) {
  ordered_json rows = ordered_json::array();
  for (const RaceRow& race : races)
    rows.push_back({{"job", race.job_id}, {"race", race.id}, {"certified", race.certified}});
  return rows;
}

ordered_json whole_race(const RaceRow& race, const std::vector<TrialRow>& trials) {
  ordered_json finalists = ordered_json::array();
  for (size_t i = 0; i < race.finalists.size(); ++i) {
    const RaceFinalist& f = race.finalists[i];
    const TrialRow trial = i < trials.size() ? trials[i] : TrialRow{};
    const Spread time = raced_time(f);
    finalists.push_back({{"trial", f.trial_id},
                         {"name", trial.id.empty() ? f.trial_id : trial.name()},
                         {"template", trial.template_name},
                         {"config", trial.config},
                         {"time_ns", time.value},
                         {"time_low_ns", time.low},
                         {"time_high_ns", time.high},
                         {"winner", f.trial_id == race.winner_trial_id},
                         {"default", f.trial_id == race.default_trial_id},
                         {"samples_ns", f.samples_ns},
                         {"process", f.process}});
  }
  return {{"race", race.id},
          {"job", race.job_id},
          {"task", race.task_index},
          {"certified", race.certified},
          {"uncertified_why", race.uncertified_why},
          {"won_by", won_by_name(race.won_by)},
          {"finalists", finalists}};
}

std::string list_text(const char* key, const std::vector<std::string>& rows, const Part& part) {
  const size_t from = std::min(static_cast<size_t>(part.from), rows.size());
  const size_t end = std::min(from + static_cast<size_t>(part.count), rows.size());
  std::string text = str("{\"", key, "\":[");
  for (size_t i = from; i < end; ++i) text += (i > from ? "," : "") + rows[i];
  return text + str("],\"from\":", from, ",\"total\":", rows.size(), "}");
}

Result<JobRow::Task> task_of_name(const TaskName& name) {
  const std::optional<Constants> constants = constants_from_name(name.constants);
  if (!constants) return invalid_argument("constants: expected warm or cold, found another word");
  return JobRow::Task{.workload_key = name.workload, .target = name.target, .constants = *constants};
}

Result<JobRow> usual_job(const TaskName& name) {
  const JobEntry usual;
  ASSIGN_OR_RETURN(JobRow::Task task, task_of_name(name));
  JobRow job;
  job.search = usual.search;
  job.seed = usual.seed;
  job.options = usual.measure;
  job.stop = usual.stop;
  job.tasks.push_back(std::move(task));
  return job;
}

JobRow job_on(const JobRow& before, int64_t done, int more) {
  const auto tasks = static_cast<int64_t>(before.tasks.size());
  JobRow job;
  job.trials = static_cast<int>((done + tasks - 1) / tasks) + more;
  job.search = before.search;
  job.seed = before.seed;
  job.options = before.options;
  job.stop = before.stop;
  job.tasks = before.tasks;
  return job;
}

bool is_same_search(const JobRow& a, const JobRow& b) {
  return a.search == b.search && a.seed == b.seed &&
         std::ranges::equal(a.tasks, b.tasks, [](const JobRow::Task& x, const JobRow::Task& y) {
           return x.workload_key == y.workload_key && x.target == y.target && x.algorithms == y.algorithms &&
                  x.constants == y.constants;
         });
}

bool sees(const Tenant& tenant, const JobRow& job) { return !tenant || *tenant == job.tenant; }

Status no_such_job(const std::string& id) {
  return not_found("job \"", printable(std::string_view(id).substr(0, 40)),
                   "\" is not here. /api/jobs lists all");
}

}  // namespace tuner::dashboard
