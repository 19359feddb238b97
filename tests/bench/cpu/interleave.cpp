#include "tests/bench/cpu/interleave.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "measure_server/runner/calm_gate.h"
#include "measure_server/runner/pulse.h"

namespace tuner {
namespace {

namespace fs = std::filesystem;

constexpr double kSpreadNs = 8e6;        // two ticks of 4 ms
constexpr double kTurnWarmUpNs = 200e6;  // at most, of a turn
constexpr double kPatienceNs = 20e6;     // of a turn, for calls that somebody disturbed

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

class ContestantTurns {
 public:
  explicit ContestantTurns(const TurnOptions& options)
      : options_(options),
        clock_(options.threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC),
        gate_(/*calm_ns=*/0, take_pulse) {}

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
  double batch(Contestant& c) {
    begin_turn(c);
    gate_.be_patient(kPatienceNs);
    const auto take = [&](int64_t calls, Sample& s) {
      s.run_ns = timed(c, calls);
      return true;
    };
    Sample s;
    if (gated())
      gate_.take(c.calls, take, s);
    else
      take(c.calls, s);
    return s.run_ns;
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
    warm_up(options_.fill_ns / kWarmUpSteps, kTurnWarmUpNs, /*hopeless_ns=*/0,
            [&](int64_t calls, Sample& sample) {
              sample.run_ns = timed(c, calls);
              return true;
            });
  }

  double timed(Contestant& c, int64_t calls) const {
    if (options_.caches == Caches::kFlush) return timed_one_by_one(c, calls);
    const double begin = time_ns();
    for (int64_t i = 0; i < calls; ++i) next(c);
    return time_ns() - begin;
  }
  double timed_one_by_one(Contestant& c, int64_t calls) const {
    double ns = 0;
    for (int64_t i = 0; i < calls; ++i) {
      if (c.flush) c.flush();
      const double begin = time_ns();
      next(c);
      ns += time_ns() - begin;
    }
    return ns;
  }

  double time_ns() const { return options_.clock_ns ? options_.clock_ns() : now_ns(clock_); }

  // Of one thread, and not where a test plays the clock.
  bool gated() const { return options_.threads == 1 && !options_.clock_ns; }

  const TurnOptions& options_;
  clockid_t clock_;
  CalmGate gate_;
};

}  // namespace

void take_turns(const TurnOptions& options, std::vector<Contestant>& contestants) {
  ContestantTurns turns(options);
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
