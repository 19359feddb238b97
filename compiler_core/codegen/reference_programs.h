// Reference answers of many Programs: each distinct one is compiled once and kept, so that a network whose
// layers repeat compiles few. Any number of threads may compile ahead while one runs.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/ir/stmt.h"

namespace tuner {

class ReferencePrograms {
 public:
  // `threads`: those of a Program with much work.
  explicit ReferencePrograms(int threads);
  ~ReferencePrograms();
  ReferencePrograms(const ReferencePrograms&) = delete;

  // Runs an unscheduled Program: floats of any size as float64, integers as they are. `args`: one pointer per
  // argument in order, aligned to 64 bytes, each with as many elements as the argument. InvalidConfig: a
  // Program that cannot be compiled. One caller at a time.
  Status run(const Program& unscheduled, const std::vector<void*>& args);
  // Compiles it, if no other thread did or does. Its errors are told by run().
  void compile_ahead(const Program& unscheduled);

 private:
  struct Entry;
  std::shared_ptr<const Entry> entry_of(const Program& unscheduled);

  int threads_;
  std::mutex mutex_;
  std::condition_variable compiled_;
  std::map<std::string, std::shared_ptr<const Entry>> entries_;  // by text; null: being compiled
  std::unique_ptr<class ReferenceThreads> pool_;
};

}  // namespace tuner
