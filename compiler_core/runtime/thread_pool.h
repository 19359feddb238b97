// ThreadPool: the host's threads for kernels: tuner_pool.h, which is what applications get beside a built
// library, with pinning. So what times are measured on is what is shipped.
//
// Persistent; a parallel loop is cut into equal contiguous shares, share t runs on thread t, and thread 0 is
// the caller. Workers spin for a moment after a loop (a fork and join then costs well under a microsecond)
// and sleep when nothing comes (waking takes 20-45 us). Several threads may call at once: one has the
// workers, the others run their loops by themselves. Construction and destruction belong to one thread, and a
// child of fork() has no workers: it makes a pool of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "compiler_core/runtime/tuner_pool.h"
#include "compiler_core/runtime/tuner_runtime.h"

namespace tuner {

class ThreadPool {
 public:
  // `threads` >= 1, the caller included. `cpus`: thread t is pinned to cpus[t % size]; empty pins nothing.
  // The caller is pinned too (in the constructor), and stays so.
  explicit ThreadPool(int threads, const std::vector<int>& cpus = {});
  // Fewer threads if the system does not give so many; none is pinned.
  static ThreadPool at_most(int threads);

  int threads() const { return pool_->threads; }
  // Runs iterations 0..extent-1 and returns when all are done.
  void parallel_for(int32_t extent, tuner_task task, void* closure) {
    tuner_pool_parallel_for(pool_.get(), extent, task, closure);
  }
  // What a kernel is given. Valid as long as this pool; `workspace` stays the caller's.
  tuner_runtime runtime(void* workspace) { return tuner_pool_runtime(pool_.get(), workspace); }

 private:
  struct Destroy {
    void operator()(tuner_pool* pool) const { tuner_pool_destroy(pool); }
  };
  explicit ThreadPool(tuner_pool* pool) : pool_(pool) {}

  std::unique_ptr<tuner_pool, Destroy> pool_;
};

}  // namespace tuner
