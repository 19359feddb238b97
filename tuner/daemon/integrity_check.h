// IntegrityCheck: reads the whole database in the background, soon after the start and once a day, so that
// damage is found while a copy of the file is still at hand, and not when somebody asks for the row.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "db/store.h"

namespace tuner {

class IntegrityCheck {
 public:
  struct Pace {
    std::chrono::milliseconds first = std::chrono::seconds(30), every = std::chrono::hours(24);
    double share = 0.1;  // of a core, while it reads
  };
  struct Found {
    int64_t checks = 0;            // that read everything
    int64_t rows = 0, faults = 0;  // of the last of them
  };

  explicit IntegrityCheck(const Store& store) : IntegrityCheck(store, Pace()) {}
  IntegrityCheck(const Store& store, Pace pace);  // `store` outlives this
  ~IntegrityCheck();                              // ends a check under way
  IntegrityCheck(const IntegrityCheck&) = delete;
  IntegrityCheck& operator=(const IntegrityCheck&) = delete;

  Found found() const;  // any thread

 private:
  void run(const std::stop_token& stop);
  void check(const std::stop_token& stop);
  void wait(const std::stop_token& stop, std::chrono::steady_clock::duration time);

  const Store& store_;
  const Pace pace_;
  mutable std::mutex mutex_;
  std::condition_variable_any stopped_;
  Found found_;
  std::jthread thread_;
};

}  // namespace tuner
