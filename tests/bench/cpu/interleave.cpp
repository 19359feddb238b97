#include "tests/bench/cpu/interleave.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace tuner {
namespace {

namespace fs = std::filesystem;

constexpr double kSpreadNs = 8e6;    // two ticks of 4 ms
constexpr double kSettleNs = 200e6;  // at most, of a turn

double now_ns(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

// Whether any other thread of this process runs or wants to.
bool others_run() {
  const std::string self = std::to_string(::gettid());
  std::error_code error;
  for (const auto& task : fs::directory_iterator("/proc/self/task", error)) {
    if (task.path().filename() == self) continue;
    std::ifstream in(task.path() / "stat");
    std::string stat;
    std::getline(in, stat);
    const size_t name_end = stat.rfind(") ");  // "7 (name) S ...": the name may hold anything
    if (name_end != std::string::npos && stat[name_end + 2] == 'R') return true;
  }
  return false;
}

// Libraries' threads spin for some milliseconds after a call (libgomp about 5) and would take the next
// contestant's second core. Waits until all are asleep, 100 ms at most.
void wait_until_alone() {
  for (int i = 0; i < 200 && others_run(); ++i) std::this_thread::sleep_for(std::chrono::microseconds(500));
}

class Turns {
 public:
  explicit Turns(const TurnOptions& options)
      : options_(options), clock_(options.threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC) {}

  // As many calls as fill the time: doubled until a batch takes a quarter of it, then by rule of three.
  void calibrate(Contestant& c) const {
    constexpr int64_t kMostCalls = 1 << 20;
    c.calls = 1;
    next(c);  // the first call ever: pages, wide units
    begin_turn(c);
    double ns = timed(c, c.calls);
    while (ns < options_.fill_ns / 4 && c.calls < kMostCalls) {
      c.calls *= 2;
      ns = timed(c, c.calls);
    }
    const double per_call = std::max(ns / static_cast<double>(c.calls), 1.0);
    c.calls = std::clamp<int64_t>(std::llround(options_.fill_ns / per_call), 1, kMostCalls);
  }

  // Nanoseconds of a whole batch.
  double batch(Contestant& c) const {
    begin_turn(c);
    return timed(c, c.calls);
  }

 private:
  void next(Contestant& c) const {
    c.call(c.next_set);
    c.next_set = c.next_set + 1 == options_.sets ? 0 : c.next_set + 1;
  }

  // What is not timed.
  void begin_turn(Contestant& c) const {
    if (options_.threads > 1) {
      wait_until_alone();
      // A sleeping worker is woken on its caller's core, and moved to a free one at a tick of the scheduler.
      const double until = now_ns(CLOCK_MONOTONIC) + kSpreadNs;
      while (now_ns(CLOCK_MONOTONIC) < until) next(c);
    }
    if (options_.caches != Caches::kWarm) return;
    settle(options_.fill_ns / 2, kSettleNs, [&](int64_t calls, Sample& sample) {
      sample.run_ns = timed(c, calls);
      return true;
    });
  }

  double timed(Contestant& c, int64_t calls) const {
    if (options_.caches == Caches::kFlush) return timed_one_by_one(c, calls);
    const double begin = now_ns(clock_);
    for (int64_t i = 0; i < calls; ++i) next(c);
    return now_ns(clock_) - begin;
  }
  double timed_one_by_one(Contestant& c, int64_t calls) const {
    double ns = 0;
    for (int64_t i = 0; i < calls; ++i) {
      if (c.flush) c.flush();
      const double begin = now_ns(clock_);
      next(c);
      ns += now_ns(clock_) - begin;
    }
    return ns;
  }

  const TurnOptions& options_;
  clockid_t clock_;
};

}  // namespace

bool settle(double step_ns, double limit_ns, const std::function<bool(int64_t calls, Sample&)>& take) {
  constexpr size_t kLast = 3;
  std::vector<double> steps;  // nanoseconds of a call
  double taken_ns = 0;
  for (int64_t calls = 1;;) {
    Sample sample;
    if (!take(calls, sample)) return false;
    steps.push_back(sample.run_ns / static_cast<double>(calls));
    taken_ns += sample.run_ns;
    if (taken_ns >= limit_ns) return true;
    const auto last = steps.end() - static_cast<std::ptrdiff_t>(std::min(kLast, steps.size()));
    if (last != steps.begin() &&
        *std::min_element(last, steps.end()) >= 0.99 * *std::min_element(steps.begin(), last))
      return true;
    const double per_call = std::max(steps.back(), 1.0);
    calls = std::max<int64_t>(1, std::llround(std::min(step_ns / per_call, 1e6)));
  }
}

void take_turns(const TurnOptions& options, std::vector<Contestant>& contestants) {
  const Turns turns(options);
  for (Contestant& c : contestants) turns.calibrate(c);
  for (int round = 0; round < options.rounds && std::chrono::steady_clock::now() < options.stop_at; ++round) {
    // Every other round backwards: nobody always follows the same neighbour's caches.
    for (size_t i = 0; i < contestants.size(); ++i) {
      Contestant& c = contestants[round % 2 == 0 ? i : contestants.size() - 1 - i];
      c.ns.push_back(turns.batch(c) / static_cast<double>(c.calls));
    }
  }
}

}  // namespace tuner
