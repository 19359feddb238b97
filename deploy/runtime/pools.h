// Thread pools that kernels run on: one for each number of threads that a kernel is made for, made when first
// needed. A call that finds its pool busy, or whose process was forked from the one that made it, works
// alone.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "compiler_core/runtime/kernel.h"
#include "compiler_core/runtime/thread_pool.h"

namespace tuner::runtime {

// One pool and who runs on it. Any thread.
class Pool {
 public:
  explicit Pool(int threads);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Calls one entry of a kernel, with workspace, on the pool's threads or on this one alone.
  Status call(const Kernel& kernel, bool packing, void* const* args);

 private:
  AlignedBuffer take_workspace(int64_t bytes);
  void give_workspace(AlignedBuffer buffer);
  Status call_with(const Kernel& kernel, bool packing, void* const* args, int threads, tuner_runtime rt);

  const int threads_;
  const unsigned forks_;  // at the time it was made
  std::mutex running_;    // held by the call that has the threads
  std::unique_ptr<ThreadPool> pool_;
  std::mutex mutex_;  // of the workspaces that lie ready
  std::vector<AlignedBuffer> workspaces_;
};

// The pools of a source. Any thread.
class Pools {
 public:
  std::shared_ptr<Pool> of(int threads);

 private:
  std::mutex mutex_;
  std::map<int, std::shared_ptr<Pool>> pools_;
};

// How often this process is a child of fork(): grows in the child.
unsigned forks();

}  // namespace tuner::runtime
