// The compiled library of one part, loaded, and the memory that its runs take.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/runtime/kernel.h"
#include "compiler_core/runtime/model_library.h"
#include "compiler_core/runtime/thread_pool.h"

namespace tuner::ort {

// Bytes of each input and output, in the order in which a part tells them.
struct PartOperands {
  std::vector<int64_t> inputs, outputs;
};

class PartLibrary {
 public:
  // InvalidArgument, with the path: of ModelLibrary::open(), or a library with other operands. `threads`: of
  // each run.
  static Result<std::shared_ptr<PartLibrary>> open(const std::string& folder, const PartOperands& operands,
                                                   int threads);
  ~PartLibrary();

  // A run from any thread: runs at the same time have memory of their own, which is kept for later ones.
  // Pointers may have any alignment. Failed, with the step: a kernel refused.
  Status run(const std::vector<const void*>& inputs, const std::vector<void*>& outputs);

  const PartOperands& operands() const { return operands_; }

 private:
  struct Room;  // memory and threads of one run
  PartLibrary(ModelLibrary library, PartOperands operands, int threads);
  Result<std::unique_ptr<Room>> take_room();
  Status run_in(Room& room, std::vector<const void*> inputs, std::vector<void*> outputs) const;

  ModelLibrary library_;
  PartOperands operands_;
  int threads_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Room>> free_;  // guarded by mutex_
};

}  // namespace tuner::ort
