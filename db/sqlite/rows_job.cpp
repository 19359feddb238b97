// Rows of tasks, jobs and proposals.
#include "db/sqlite/row_codec.h"

namespace tuner::db {

using nlohmann::json;

namespace {

std::vector<JobRow::Task> tasks_from(const json& j, RowReader& reader) {
  std::vector<JobRow::Task> tasks;
  try {
    for (const json& task : j)
      tasks.push_back(
          {task.at(0).get<std::string>(), task.at(1).get<std::string>(),
           task.size() > 2 ? task.at(2).get<std::string>() : std::string(),
           task.size() > 3 ? task.at(3).get<int64_t>() : 1,
           task.size() > 4 ? constants_from_name(task.at(4).get<std::string>()).value() : Constants::kWarm});
  } catch (const std::exception&) {  // of json, or of a name that is none
    reader.mark_wrong();
  }
  return tasks;
}

// A task whose constants are cold is another task to the tables, and they tell tasks apart by key and target.
// So its row has a mark behind the target, which rows of programs that know only warm times never have.
constexpr std::string_view kColdMark = " constants=cold";

// How a job measures, when it ends and what it goes before. All but the first part is left out where it says
// nothing: jobs of programs that did not know it read alike.
constexpr char kStopBelow[] = "stop_below", kTimeLimit[] = "time_limit_s", kTimeUsed[] = "time_used_s",
               kPriority[] = "priority";
void job_options_from(const json& j, RowReader& reader, JobRow& job) {
  job.options = options_from(j, reader);
  if (!j.is_object()) return;
  try {
    job.stop.below = j.value(kStopBelow, 0.0);
    job.stop.time_limit_s = j.value(kTimeLimit, 0.0);
    job.stop.time_used_s = j.value(kTimeUsed, 0.0);
    job.priority = j.value(kPriority, 0);
  } catch (const json::exception&) {
    reader.mark_wrong();
  }
}

}  // namespace

std::string job_options_json(const JobRow& job) {
  json out = options_json(job.options);
  if (job.stop.below != 0) out[kStopBelow] = job.stop.below;
  if (job.stop.time_limit_s != 0) out[kTimeLimit] = job.stop.time_limit_s;
  if (job.stop.time_used_s != 0) out[kTimeUsed] = job.stop.time_used_s;
  if (job.priority != 0) out[kPriority] = job.priority;
  return out.dump();
}

std::string target_in_row(const JobRow::Task& task) {
  return task.constants == Constants::kCold ? str(task.target, kColdMark) : task.target;
}

SqlRow to_row(const StoredTask& t) { return sealed({t.task_id, t.task.workload_key, target_in_row(t.task)}); }

SqlRow to_row(const StoredJob& s) {
  const JobRow& j = s.job;
  return sealed({s.job_seq, j.id, j.request_id.empty() ? SqlValue{} : SqlValue{j.request_id},
                 tasks_json(j.tasks), int64_t{j.trials}, j.search, static_cast<int64_t>(j.seed),
                 job_options_json(j), std::string(job_state_name(j.state)), j.message, j.submitted_at_us,
                 j.finished_at_us, j.tenant});
}

SqlRow to_row(const StoredProposal& s) {
  const ProposalRow& p = s.proposal;
  return sealed({p.seq, s.job_seq, int64_t{p.task_index}, int64_t{p.asked}, int64_t{p.count},
                 p.first_trial_seq, p.observed_record_id, p.donor_record_id});
}

Result<StoredTask> task_from_row(const SqlRow& row) {
  RETURN_IF_ERROR(check_row(row, "task"));
  RowReader in(row);
  StoredTask out;
  out.task_id = in.integer();
  out.task.workload_key = in.text();
  out.task.target = in.text();
  if (out.task.target.ends_with(kColdMark)) {
    out.task.target.resize(out.task.target.size() - kColdMark.size());
    out.task.constants = Constants::kCold;
  }
  if (in.wrong()) return unreadable_row(row, "task");
  return out;
}

Result<StoredJob> job_from_row(const SqlRow& row) {
  RETURN_IF_ERROR(check_row(row, "job"));
  RowReader in(row);
  StoredJob out;
  out.job_seq = in.integer();
  out.job.id = in.text();
  out.job.request_id = in.text_or_null();
  out.job.tasks = tasks_from(in.parsed(), in);
  out.job.trials = in.integer32();
  out.job.search = in.text();
  out.job.seed = static_cast<uint64_t>(in.integer());
  job_options_from(in.parsed(), in, out.job);
  out.job.state = in.named(job_state_from_name);
  out.job.message = in.text();
  out.job.submitted_at_us = in.integer();
  out.job.finished_at_us = in.integer();
  out.job.tenant = in.text();
  if (in.wrong()) return unreadable_row(row, "job");
  return out;
}

Result<StoredProposal> proposal_from_row(const SqlRow& row) {
  RETURN_IF_ERROR(check_row(row, "proposal"));
  RowReader in(row);
  StoredProposal out;
  ProposalRow& p = out.proposal;
  p.seq = in.integer();
  out.job_seq = in.integer();
  p.task_index = in.integer32();
  p.asked = in.integer32();
  p.count = in.integer32();
  p.first_trial_seq = in.integer();
  p.observed_record_id = in.integer();
  p.donor_record_id = in.integer();
  if (in.wrong()) return unreadable_row(row, "proposal");
  return out;
}

}  // namespace tuner::db
