// FactSource: the facts that the dashboard shows. Each answer is one JSON document; docs/dashboard.md
// lists the keys of all of them.
//
// Any thread may call any method, also several at once. Calls take milliseconds for a database and a round
// trip for a daemon: they run beside the server's own thread. Lists come in parts, so no answer is large.
// NotFound: no such job, task or race. Unavailable: the daemon does not answer, or does not tell such
// facts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "compiler_core/base/status.h"

namespace tuner::dashboard {

// Rows of a list: `count` of them from position `from`.
struct Part {
  static constexpr int64_t kMost = 1'000, kUsual = 200;
  int64_t from = 0, count = kUsual;
};
// Rows in the order in which they were stored: `count` of them behind the id `after`.
struct After {
  static constexpr int64_t kMost = 2'000;
  int64_t id = 0, count = kMost;
};
// One task, by its canonical keys.
struct TaskName {
  std::string workload, target;
  std::string constants = "warm";
};
// A file that a browser stores.
struct Download {
  std::string name, type, bytes;
};
// Whose jobs are seen; nothing: everybody's.
using Tenant = std::optional<std::string>;

class FactSource {
 public:
  virtual ~FactSource() = default;

  virtual std::string name() const = 0;  // "database /x/tuner.db"; for people

  virtual Result<std::string> jobs(const Part& part, const Tenant& tenant) const = 0;  // newest first
  virtual Result<std::string> job(const std::string& id, const Tenant& tenant) const = 0;
  // The results of a job, in the order in which they came.
  virtual Result<std::string> curve(const std::string& id, const After& after,
                                    const Tenant& tenant) const = 0;
  virtual Result<std::string> race(const std::string& job, int64_t id, const Tenant& tenant) const = 0;
  virtual Result<std::string> answers(const Part& part) const = 0;
  // Answers are for everybody; races and single results are of jobs that are seen.
  virtual Result<std::string> task(const TaskName& task, const Tenant& tenant) const = 0;
  virtual Result<std::string> records(const TaskName& task, const After& after,
                                      const Tenant& tenant) const = 0;
  virtual Result<std::string> workers(const Tenant& tenant) const = 0;
  // A short text that differs when something is new since it was asked for before.
  virtual Result<std::string> mark() const = 0;

  // Changes. `only_check`: says what is wrong with the job file and submits nothing.
  virtual Result<std::string> submit(const std::string& job_file, bool only_check) = 0;
  virtual Result<std::string> cancel(const std::string& job) = 0;
  // Goes on with a task, or with a job, for so many more trials per task: a job with the same search is
  // continued, else there is a new one. The answer is submit()'s. Aborted: that job runs.
  virtual Result<std::string> tune_on(const TaskName& task, int more) = 0;
  virtual Result<std::string> tune_job_on(const std::string& id, int more, const Tenant& tenant) = 0;

  // Work on this host, from a second to minutes (task_work.h).
  virtual Result<std::string> verify(const TaskName& task) = 0;
  virtual Result<Download> library(const TaskName& task) = 0;
};

}  // namespace tuner::dashboard
