// ResultWriter: takes results to disk in a thread of its own, while the next candidate runs.
//
// To be on disk takes a result from half a millisecond to tens of them, as long as a run of a small kernel.
// All results that came meanwhile go to disk together.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "measure_server/worker/worker_core.h"

namespace tuner {

class ResultWriter {
 public:
  using Write = std::function<void(const std::vector<WorkerCore::Finished>&)>;
  // `write` is called by that thread alone, with at least one result, in the order of put().
  explicit ResultWriter(Write write);
  ~ResultWriter();  // writes what is left
  ResultWriter(const ResultWriter&) = delete;
  ResultWriter& operator=(const ResultWriter&) = delete;

  // Waits while as many results as a disk that hangs may hold up are on their way.
  void put(WorkerCore::Finished result);

 private:
  void run();

  const Write write_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<WorkerCore::Finished> waiting_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace tuner
