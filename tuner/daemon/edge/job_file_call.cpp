#include "tuner/daemon/edge/job_file_call.h"

#include "compiler_core/backend.h"
#include "compiler_core/target.h"
#include "proto/convert.h"
#include "tuner/jobs/job_file.h"
#include "tuner/jobs/job_groups.h"

namespace tuner {
namespace {

// "cpu", "cpu -threads=N" or "cpu -threads=all" means the machine that measures; which that is, the workers
// present tell.
Result<std::string> resolve(const std::string& text, const std::map<std::string, int>& offered) {
  if (text != "cpu" && !text.starts_with("cpu ")) {
    ASSIGN_OR_RETURN(const Target target, parse_target(text));
    RETURN_IF_ERROR(backend_of(target).check_words(target));
    return target.name();
  }
  if (offered.empty())
    return invalid_argument("\"", text,
                            "\" is the CPU of a worker, and no worker with one is connected. Start one "
                            "(measure_server --daemon ADDRESS), or name the target as llvm -mcpu=...");
  if (offered.size() > 1) {
    std::string all;
    for (const auto& [target, threads] : offered) all += str(all.empty() ? "\"" : ", \"", target, "\"");
    return invalid_argument("\"", text, "\" could be any of ", offered.size(), " workers' CPUs; name one of ",
                            all);
  }
  const auto& [worker_target, most_threads] = *offered.begin();
  std::string rest = text.size() > 3 ? text.substr(4) : "";
  if (rest == "-threads=all") rest = str("-threads=", most_threads);
  // The options of `text` behind the CPU: parse_target() says what is wrong with them.
  Result<Target> target = parse_target(worker_target);
  if (!target) return target.status();
  if (!rest.empty()) {
    std::string name = target->name();
    const size_t threads = name.find(" -threads=");
    if (threads != std::string::npos) name.erase(threads, name.find(' ', threads + 1) - threads);
    target = parse_target(name + " " + rest);
    if (!target) return target.status();
  }
  return target->name();
}

}  // namespace

Status read_job_text(const v1::ReadJobFileRequest& request, const std::map<std::string, int>& cpus,
                     v1::ReadJobFileReply* reply) {
  const std::string name = request.name().empty() ? "job file" : request.name();
  ASSIGN_OR_RETURN(const std::vector<JobEntry> entries, parse_job_text(request.text(), name));
  std::vector<JobGroup> groups;
  for (size_t i = 0; i < entries.size(); ++i) {
    const JobEntry& entry = entries[i];
    const bool own = request.target().empty();
    const Result<std::string> target = resolve(own ? entry.target : request.target(), cpus);
    if (!target)
      return target.status().with_context(
          own ? str(name, ": ", entries.size() > 1 ? str("[", i, "].") : "", "target: ") : "target: ");
    add_task(groups,
             {.trials = entry.trials,
              .search = entry.search,
              .seed = entry.seed,
              .options = entry.measure,
              .stop = entry.stop},
             {entry.workload.key(), *target, entry.algorithms, entry.uses, constants_of(entry)},
             entry.workload);
  }
  for (const JobGroup& group : groups) {
    v1::SubmitRequest* const job = reply->add_jobs();
    to_proto(group.job, /*fresh=*/false, job);
    // A key may name what another tenant has brought; who has brought it himself need not send it again.
    job->clear_documents();
  }
  return Status::ok();
}

}  // namespace tuner
