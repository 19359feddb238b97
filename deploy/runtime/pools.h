// Thread pools that kernels run on: one for each thread count that a kernel asks for, made at first need. A
// call runs on its own thread alone if the pool is busy, or if the process was forked from the one that made
// it.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "compiler_core/runtime/kernel.h"
#include "compiler_core/runtime/thread_pool.h"

namespace tuner::runtime {

// One pool, used by one call at a time. Any thread may use it.
class Pool {
 public:
  explicit Pool(int threads);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Calls the kernel (`packing`: its packing entry) with workspace, on the pool's threads or on this thread
  // alone.
  Status call(const Kernel& kernel, bool packing, void* const* args);

 private:
  AlignedBuffer take_workspace(int64_t bytes);
  void give_workspace(AlignedBuffer buffer);
  Status call_with(const Kernel& kernel, bool packing, void* const* args, int threads, tuner_runtime rt);

  const int threads_;
  const unsigned forks_;  // forks() when the pool was made
  std::mutex running_;    // held by the call that has the threads
  std::unique_ptr<ThreadPool> pool_;
  std::mutex mutex_;  // guards the idle workspaces
  std::vector<AlignedBuffer> workspaces_;
};

// The pools of one source. Any thread may use it.
class Pools {
 public:
  std::shared_ptr<Pool> of(int threads);

 private:
  std::mutex mutex_;
  std::map<int, std::shared_ptr<Pool>> pools_;
};

// Returns how many fork() calls lie between the first process and this one; it grows in the child.
unsigned forks();

}  // namespace tuner::runtime
