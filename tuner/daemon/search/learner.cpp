#include "tuner/daemon/search/learner.h"

#include <spdlog/spdlog.h>

#include <chrono>

#include "db/learning/knowledge.h"

namespace tuner {

Learner::Learner(Store& store) : store_(store), thread_([this] { loop(); }) {}

Learner::~Learner() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Learner::learn_from(const std::vector<JobRow::Task>& tasks) {
  {
    const std::lock_guard lock(mutex_);
    for (const JobRow::Task& task : tasks)
      if (const Result<Workload> workload = workload_from_key(task.workload_key))
        waiting_.emplace(workload->op_name(), task.target);
  }
  changed_.notify_all();
}

bool Learner::wait_until_idle(double limit_s) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::duration<double>(limit_s),
                           [this] { return waiting_.empty() && !busy_; });
}

void Learner::loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    const auto [op, target] = *waiting_.begin();
    waiting_.erase(waiting_.begin());
    busy_ = true;
    lock.unlock();
    if (const Result<bool> learned = learn_and_store(store_, op, target); !learned)
      spdlog::warn("nothing was learned of {} on \"{}\": {}", op, target, learned.message());
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace tuner
