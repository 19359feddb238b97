// Learner: after a job, what its records teach about other shapes is learned anew and stored, so that readers
// of the database have it at once (db/learning/knowledge.h). In a thread of its own: it takes a second or
// two, and the search of other jobs goes on.
#pragma once

#include <condition_variable>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "db/store.h"

namespace tuner {

class Learner {
 public:
  explicit Learner(Store& store);
  // Ends with what it is at; what waits is left out (the next job, or `tuner learn`, makes up for it).
  ~Learner();
  Learner(const Learner&) = delete;
  Learner& operator=(const Learner&) = delete;

  // Asks for the operators and targets of these tasks, each once. Returns at once.
  void learn_from(const std::vector<JobRow::Task>& tasks);
  // Until nothing waits, or the time is over. Whether nothing does.
  bool wait_until_idle(double limit_s);

 private:
  void loop();

  Store& store_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::pair<std::string, std::string>> waiting_;  // operator, target
  bool busy_ = false, stopping_ = false;
  std::thread thread_;
};

}  // namespace tuner
