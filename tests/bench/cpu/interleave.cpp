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

constexpr double kSpreadNs = 8e6;  // two ticks of 4 ms

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
    batch(c);  // the first call ever: pages, caches, wide units
    double ns = batch(c);
    while (ns < options_.fill_ns / 4 && c.calls < kMostCalls) {
      c.calls *= 2;
      ns = batch(c);
    }
    const double per_call = std::max(ns / static_cast<double>(c.calls), 1.0);
    c.calls = std::clamp<int64_t>(std::llround(options_.fill_ns / per_call), 1, kMostCalls);
  }

  // Nanoseconds of a whole batch.
  double batch(Contestant& c) const {
    int set = 0;
    const auto next = [&] {
      c.call(set);
      set = set + 1 == options_.sets ? 0 : set + 1;
    };
    if (options_.threads > 1) {
      wait_until_alone();
      // A sleeping worker is woken on its caller's core, and moved to a free one at a tick of the scheduler.
      const double until = now_ns(CLOCK_MONOTONIC) + kSpreadNs;
      while (now_ns(CLOCK_MONOTONIC) < until) next();
    } else if (options_.sets == 1) {
      next();
    }
    const double begin = now_ns(clock_);
    for (int64_t i = 0; i < c.calls; ++i) next();
    return now_ns(clock_) - begin;
  }

 private:
  const TurnOptions& options_;
  clockid_t clock_;
};

}  // namespace

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
