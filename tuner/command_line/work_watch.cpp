#include "tuner/command_line/work_watch.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "compiler_core/base/printable.h"
#include "tuner/command_line/interrupt.h"

namespace tuner {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kTick = std::chrono::milliseconds(50), kPatience = std::chrono::milliseconds(500);
// With the tick, a line comes at least every 2 s.
constexpr auto kBetweenLines = std::chrono::milliseconds(1900);

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
  const Clock::time_point begin = Clock::now();
  Clock::time_point asked{}, printed = begin;
  std::unique_lock lock(mutex_);
  while (!over_.wait_for(lock, kTick, [this] { return is_over_; })) {
    const Clock::time_point now = Clock::now();
    if (interrupted() && asked == Clock::time_point()) asked = now;
    if (is_guarded_ && asked != Clock::time_point() && now - asked >= kPatience) end_process();
    if (what_.empty() || now - printed < kBetweenLines) continue;
    printed = now;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - begin).count();
    std::fprintf(stderr, "%s, %lld s\n", printable(what_).c_str(), static_cast<long long>(seconds));
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
