// ThreadPool: the host's threads for kernels. Persistent; a parallel loop is cut into equal contiguous
// shares, share t runs on thread t, and thread 0 is the caller. Workers spin for a moment after a loop (a
// fork and join then costs well under a microsecond) and sleep on a futex when nothing comes (waking takes
// 20-45 us).
//
// One caller at a time: parallel_for is not re-entrant. Construction and destruction belong to one thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "compiler_core/runtime/tuner_runtime.h"

namespace tuner {

class ThreadPool {
 public:
  // `threads` >= 1, the caller included. `cpus`: thread t is pinned to cpus[t % size]; empty pins nothing.
  // The caller is pinned too (in the constructor), and stays so.
  explicit ThreadPool(int threads, std::vector<int> cpus = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }
  // Runs iterations 0..extent-1 and returns when all are done.
  void parallel_for(int32_t extent, tuner_task task, void* closure);
  // What a kernel is given. Valid as long as this pool; `workspace` stays the caller's.
  tuner_runtime runtime(void* workspace);

 private:
  void work(int thread);

  int threads_;
  std::vector<int> cpus_;
  std::vector<std::thread> workers_;
  // One loop at a time: written by the caller before `generation_` grows, read by workers after they see it
  // grow.
  tuner_task task_ = nullptr;
  void* closure_ = nullptr;
  int32_t extent_ = 0;
  alignas(64) std::atomic<uint32_t> generation_{0};
  alignas(64) std::atomic<int32_t> sleepers_{0};
  alignas(64) std::atomic<int32_t> running_{0};
  std::atomic<bool> stop_{false};
};

}  // namespace tuner
