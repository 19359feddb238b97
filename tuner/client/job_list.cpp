#include "tuner/client/job_list.h"

#include <utility>

#include "proto/convert.h"

namespace tuner {
namespace {

Status read_tuned(const v1::JobSummary& summary, const std::string& field, ListedJob& out) {
  for (const v1::TaskTuned& one : summary.tuned()) {
    if (one.task_index() < 0 || one.task_index() >= summary.tasks_size())
      return invalid_argument(field, ".tuned: expected a task of the job, found ", one.task_index());
    ASSIGN_OR_RETURN(out.tuned[static_cast<size_t>(one.task_index())],
                     from_proto(one.tuned(), field + ".tuned"));
  }
  return Status::ok();
}

// An older daemon does not tell it with the list.
Status ask_each(const DaemonClient& client, ListedJob& out) {
  for (size_t i = 0; i < out.job.tasks.size(); ++i) {
    ASSIGN_OR_RETURN(std::optional<TunedConfig> tuned, client.tuned(out.job.tasks[i]));
    if (tuned) out.tuned[i] = *std::move(tuned);
  }
  return Status::ok();
}

}  // namespace

Result<std::vector<ListedJob>> listed_jobs(const DaemonClient& client, bool counted) {
  ASSIGN_OR_RETURN(const v1::ListReply reply, client.jobs(counted));
  std::vector<ListedJob> all;
  for (int i = 0; i < reply.jobs_size(); ++i) {
    const std::string field = str("jobs[", i, "]");
    ListedJob& out = all.emplace_back();
    ASSIGN_OR_RETURN(out.job, from_proto(reply.jobs(i), field));
    out.done = reply.jobs(i).trials_done();
    RETURN_IF_ERROR(reply.with_tuned() ? read_tuned(reply.jobs(i), field, out) : ask_each(client, out));
  }
  return all;
}

}  // namespace tuner
