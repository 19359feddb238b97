#include "tuner/daemon/call_threads.h"

#include <malloc.h>

#include <system_error>
#include <utility>

namespace tuner {
namespace {

constexpr size_t kTrimmedBytes = 256 << 10;

}  // namespace

CallThreads::CallThreads(Limits limits) : limits_(limits) {
  for (int i = 0; i < limits_.short_threads; ++i) threads_.emplace_back([this] { serve(); });
}

CallThreads::~CallThreads() { join(); }

void CallThreads::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [&] { return !queue_.empty() || may_begin_heavy() || (ended_ && heavy_.empty()); });
    if (!queue_.empty()) {
      const std::function<void()> call = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      call();
      lock.lock();
    } else if (may_begin_heavy()) {
      const Heavy heavy = std::move(heavy_.front());
      heavy_.pop_front();
      ++heavy_running_;
      lock.unlock();
      heavy.call();
      // Else every arena keeps what one large text once took, in small pieces.
      if (heavy.bytes >= kTrimmedBytes) ::malloc_trim(0);
      lock.lock();
      --heavy_running_;
      heavy_bytes_ -= heavy.bytes;
      work_.notify_all();
    } else {
      return;
    }
  }
}

bool CallThreads::run_heavy(std::function<void()> call, size_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (ended_ || heavy_.size() >= limits_.most_heavy || heavy_bytes_ + bytes > limits_.heavy_bytes)
      return false;
    heavy_.push_back({std::move(call), bytes});
    heavy_bytes_ += bytes;
  }
  work_.notify_one();
  return true;
}

bool CallThreads::run_short(std::function<void()> call) {
  {
    const std::lock_guard lock(mutex_);
    if (ended_ || queue_.size() >= limits_.most_short) return false;
    queue_.push_back(std::move(call));
  }
  work_.notify_one();
  return true;
}

bool CallThreads::run_long(std::function<void()> call) {
  const std::lock_guard lock(mutex_);
  if (ended_ || long_calls_ >= limits_.most_long) return false;
  try {
    std::thread([this, call = std::move(call)] {
      call();
      const std::lock_guard done(mutex_);
      --long_calls_;
      idle_.notify_all();
    }).detach();
  } catch (const std::system_error&) {  // no thread is to be had
    return false;
  }
  ++long_calls_;
  return true;
}

void CallThreads::join() {
  std::unique_lock lock(mutex_);
  ended_ = true;
  work_.notify_all();
  idle_.wait(lock, [&] { return long_calls_ == 0; });
  lock.unlock();
  for (std::thread& thread : threads_)
    if (thread.joinable()) thread.join();
}

}  // namespace tuner
