#include "tuner/jobs/job_word.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>
#include <utility>

#include "tuner/jobs/tasks.h"

namespace tuner {
namespace {

bool is_file(const std::string& word) {
  std::error_code ignored;
  return word.ends_with(".json") || std::filesystem::is_regular_file(word, ignored);
}

}  // namespace

Result<std::string> job_of_word(const std::string& word, const Store* store) {
  if (!is_file(word)) return word;
  if (store == nullptr)
    return invalid_argument(word, ": is a job file, expected a job such as j3. `tuner jobs` lists them");
  ASSIGN_OR_RETURN(const std::vector<CliTask> tasks, read_tasks(word, ""));
  std::set<std::pair<std::string, std::string>> wanted;
  for (const CliTask& task : tasks) wanted.emplace(task.key, task.target_name);
  ASSIGN_OR_RETURN(const std::vector<JobRow> jobs, store->jobs());
  const auto of_file = [&](const JobRow& job) {
    return !job.tasks.empty() && std::ranges::all_of(job.tasks, [&](const JobRow::Task& task) {
      return wanted.contains({task.workload_key, task.target});
    });
  };
  const auto newest = std::find_if(jobs.rbegin(), jobs.rend(), of_file);
  if (newest == jobs.rend())
    return invalid_argument(word,
                            ": no job has these tasks; expected one such as j3. `tuner jobs` lists them");
  std::fprintf(stderr, "tuner: %s: job %s is the newest with its tasks\n", word.c_str(), newest->id.c_str());
  return newest->id;
}

}  // namespace tuner
