// OwnStack: where a candidate is called that shall see nothing of its caller.
//
// A function can read its caller's frames: they lie right above its own, with the times at which its call
// began. Here it gets a stack of its own, that ends at an unmapped page, arguments in a page of their own
// that is read-only, and registers without pointers of ours.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/runtime/kernel_loader.h"
#include "measure_server/runner/guarded_memory.h"
#include "measure_server/runner/placement.h"

namespace tuner {

class OwnStack {
 public:
  // 8 MiB, as a thread has. `placement` draws where it lies, and where in its last page it begins. Failed:
  // there is no memory. Elsewhere than on x86-64 calls are made as usual, but for the arguments.
  static Result<OwnStack> make(Placement& placement);

  // Pages with these arguments; valid as long as this.
  Result<void* const*> page_of(const std::vector<void*>& args);
  // Calls it with `args` and without a runtime, which only kernels of ours need. One call at a time.
  int32_t call(KernelEntry entry, void* const* args) const;

 private:
  GuardedBuffer stack_;
  size_t left_out_ = 0;  // bytes at its beginning, which is its end in memory
  std::vector<GuardedBuffer> pages_;
};

}  // namespace tuner
