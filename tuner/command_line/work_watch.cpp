#include "tuner/command_line/work_watch.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "compiler_core/base/printable.h"
#include "tuner/command_line/interrupt.h"
#include "tuner/command_line/work_pace.h"

namespace tuner {
namespace {

int64_t now_ms() {
  using std::chrono::steady_clock;
  return std::chrono::duration_cast<std::chrono::milliseconds>(steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

WorkWatch::WorkWatch(std::string stopped) : stopped_(std::move(stopped)), thread_([this] { watch(); }) {}

WorkWatch::~WorkWatch() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  over_.notify_all();
  thread_.join();
}

void WorkWatch::at(const std::string& what) {
  const std::lock_guard lock(mutex_);
  what_ = what;
}

void WorkWatch::guard(std::function<void()> remove) {
  const std::lock_guard lock(mutex_);
  remove_ = std::move(remove);
  is_guarded_ = true;
}

void WorkWatch::release() {
  const std::lock_guard lock(mutex_);
  is_guarded_ = false;
  what_.clear();
}

void WorkWatch::watch() {
  WorkPace pace(now_ms());
  std::unique_lock lock(mutex_);
  while (!over_.wait_for(lock, std::chrono::milliseconds(WorkPace::kTickMs), [this] { return is_over_; })) {
    const WorkPace::Now now{now_ms(), interrupted(), is_guarded_, !what_.empty()};
    const WorkPace::Act act = pace.tick(now);
    if (act == WorkPace::Act::kEnd) end_process();
    if (act == WorkPace::Act::kPrint)
      std::fprintf(stderr, "%s, %lld s\n", printable(what_).c_str(),
                   static_cast<long long>(pace.seconds(now.ms)));
  }
}

// Under the lock, so that release() waits: what must be done as a whole has not begun.
void WorkWatch::end_process() {
  if (remove_) remove_();
  std::fprintf(stderr, "%s\n", stopped_.c_str());
  std::fflush(stderr);
  _exit(1);
}

}  // namespace tuner
