#include "tuner/jobs/known_names.h"

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <set>
#include <sstream>
#include <variant>

#include "compiler_core/base/status.h"
#include "db/store.h"
#include "templates/schedule_template.h"
#include "templates/workload/workload.h"
#include "tuner/search/search_strategy.h"

namespace tuner {
namespace {

using Names = std::vector<std::pair<std::string, std::string>>;

constexpr int64_t kMostJobs = 100;                    // named
constexpr size_t kJobsOfTrials = 20, kMostTasks = 8;  // whose results are named; tasks of each job

// Newest first.
std::vector<JobRow> newest_jobs(const Store& store) {
  Result<std::vector<JobRow>> jobs = store.jobs({.newest = kMostJobs});
  if (!jobs) return {};
  std::ranges::reverse(*jobs);
  return *std::move(jobs);
}

// "matmul b=1 m=64 ...": a workload's key without its version.
std::string shape(const std::string& key) {
  constexpr size_t kMost = 48;
  std::string text = key.substr(key.starts_with('v') ? std::min(key.find(' ') + 1, key.size()) : 0);
  if (text.size() > kMost) text = text.substr(0, text.rfind(' ', kMost)) + " ...";
  return text;
}

std::string told(const JobRow& job) {
  const size_t more = job.tasks.size() - 1;
  return str(job_state_name(job.state), ", ", shape(job.tasks.front().workload_key),
             more > 0 ? str(" and ", more, " more") : "");
}

Names results(const Store& store, const std::vector<JobRow>& jobs) {
  Names out;
  std::set<std::string> seen;
  for (size_t i = 0; i < std::min(jobs.size(), kJobsOfTrials); ++i)
    for (size_t t = 0; t < std::min(jobs[i].tasks.size(), kMostTasks); ++t) {
      const JobRow::Task& task = jobs[i].tasks[t];
      const Result<TunedConfig> best = store.best(task.workload_key, task.target, {}, false, task.constants);
      if (best && seen.insert(best->trial_id).second)
        out.emplace_back(best->trial_id, "the result of " + shape(task.workload_key));
    }
  return out;
}

Names of_database(const std::string& path, std::string_view kind) {
  const Result<std::unique_ptr<Store>> opened =
      Store::open(path.empty() ? default_db_path() : path, Store::Mode::kRead);
  if (!opened) return {};
  const Store& store = **opened;
  const std::vector<JobRow> jobs = newest_jobs(store);
  if (kind == "trial") return results(store, jobs);
  Names out;
  std::set<std::string> seen;
  for (const JobRow& job : jobs)
    if (kind == "job") {
      out.emplace_back(job.id, told(job));
    } else {
      for (const JobRow::Task& task : job.tasks)
        if (seen.insert(task.target).second) out.emplace_back(task.target, "of job " + job.id);
    }
  return out;
}

template <class Texts>
Names plain(const Texts& texts) {
  Names out;
  for (const auto& text : texts) out.emplace_back(text, "");
  return out;
}

template <class... Each>
Names operators(const std::variant<Each...>*) {
  return plain(std::initializer_list<std::string_view>{Each::kOp...});
}

// What needs no database to be meant: this machine, and GPUs by their architecture.
Names targets(const std::string& db) {
  Names out = {{"cpu", "this machine"}};
  for (Names::value_type& known : of_database(db, "target")) out.push_back(std::move(known));
  for (const char* arch : {"70", "75", "80", "86", "87", "89", "90a", "100", "103", "120"})
    out.emplace_back(str("cuda -arch=sm_", arch), "");
  return out;
}

// Of "NCHW, NHWC or NCHW16c".
Names in_prose(const std::string& list) {
  Names out;
  std::istringstream in(list);
  for (std::string word; in >> word;) {
    if (word.ends_with(',')) word.pop_back();
    if (word != "or") out.emplace_back(word, "");
  }
  return out;
}

}  // namespace

Names known_names(std::string_view kind, const std::string& db) {
  if (kind == "job" || kind == "trial") return of_database(db, kind);
  if (kind == "target") return targets(db);
  if (kind == "op") return operators(static_cast<const Workload::Op*>(nullptr));
  if (kind == "strategy") return plain(strategy_names());
  if (kind == "algorithm") return plain(algorithm_names());
  if (kind == "layout") return in_prose(layout_names());
  if (kind == "format") return plain(std::initializer_list<const char*>{"jsonl", "autotvm", "t4", "csv"});
  return {};
}

}  // namespace tuner
