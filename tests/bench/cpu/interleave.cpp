#include "tests/bench/cpu/interleave.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <thread>

namespace tuner {
namespace {

double now_ns(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
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
    // Libraries' threads spin for up to 4 ms after a call (libgomp; OpenBLAS as blas.cpp sets it).
    if (options_.threads > 1) std::this_thread::sleep_for(std::chrono::milliseconds(6));
    int set = 0;
    if (options_.sets == 1) c.call(0);
    const double begin = now_ns(clock_);
    for (int64_t i = 0; i < c.calls; ++i) {
      c.call(set);
      set = set + 1 == options_.sets ? 0 : set + 1;
    }
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
