// Fitness: whether this worker can work. Trouble that is its own (a full disk, a runner that does not start,
// a GPU in quarantine, a core that somebody else keeps) makes it unfit: it takes no leases, gives back those
// it could not do, looks again every few seconds, and goes on by itself. No trial is blamed for it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "compiler_core/base/status.h"
#include "measure_server/worker/backoff.h"
#include "measure_server/worker/work_book.h"

namespace tuner {

class Fitness {
 public:
  struct Options {
    std::function<Status()> check;  // OK: nothing known stands in the way of work. May take long
    std::function<double()> random = random_fraction();
    std::function<int64_t()> now_ms;  // monotonic; default: steady_clock
  };
  // `core` must outlive this; it is told of each change.
  Fitness(WorkBook& core, Options options);

  // Makes the worker unfit, or tells another reason. Any thread.
  void unfit(const std::string& why);
  // Looks once: fit if the check is OK, unless other trouble came meanwhile. Does nothing if the worker is
  // fit.
  void look();
  // Looks now and then while the worker is unfit; returns after stop(). For a thread of its own.
  void tend();
  void stop();

 private:
  WorkBook& core_;
  const Options options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Backoff backoff_;
  std::string why_;        // empty: fit
  uint64_t troubles_ = 0;  // how often unfit() was called
  int64_t since_ms_ = 0;   // when it last became fit or unfit
  bool was_unfit_ = false, stopped_ = false;
};

}  // namespace tuner
