#include "measure_server/worker/fitness.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <utility>

namespace tuner {
namespace {

constexpr Backoff::Options kLooks{.start_ms = 2'000, .cap_ms = 15'000};
// Who was fit for less than this is looked at as seldom as before: the check did not see what is wrong.
constexpr int64_t kSteadyMs = 60'000;

Fitness::Options with_clock(Fitness::Options options) {
  if (!options.now_ms)
    options.now_ms = [] {
      return std::chrono::duration_cast<std::chrono::milliseconds>(
                 std::chrono::steady_clock::now().time_since_epoch())
          .count();
    };
  return options;
}

}  // namespace

Fitness::Fitness(WorkBook& core, Options options)
    : core_(core), options_(with_clock(std::move(options))), backoff_(kLooks, options_.random) {}

void Fitness::unfit(const std::string& why) {
  {
    std::lock_guard lock(mutex_);
    ++troubles_;
    const bool news = why_.empty();
    why_ = why;
    if (news) {
      const int64_t now = options_.now_ms();
      if (!was_unfit_ || now - since_ms_ >= kSteadyMs) backoff_.reset();
      was_unfit_ = true;
      since_ms_ = now;
      spdlog::warn("unfit: {}; taking no trials, looking again every few seconds", why);
    }
    core_.set_unfit(why);
  }
  changed_.notify_all();
}

void Fitness::look() {
  uint64_t troubles = 0;
  {
    std::lock_guard lock(mutex_);
    if (why_.empty()) return;
    troubles = troubles_;
  }
  const Status status = options_.check();
  std::lock_guard lock(mutex_);
  if (!status.is_ok()) why_ = status.message();
  if (!status.is_ok() || troubles != troubles_) return core_.set_unfit(why_);
  why_.clear();
  const int64_t now = options_.now_ms();
  spdlog::info("fit again after {} s: taking trials", (now - since_ms_ + 500) / 1000);
  since_ms_ = now;
  core_.set_fit();
}

void Fitness::tend() {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    changed_.wait(lock, [this] { return stopped_ || !why_.empty(); });
    const std::chrono::milliseconds pause(backoff_.next_ms());
    if (changed_.wait_for(lock, pause, [this] { return stopped_; })) return;
    lock.unlock();
    look();
    lock.lock();
  }
}

void Fitness::stop() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
}

}  // namespace tuner
