// OneByOne: parallel loops whose iterations go to the pool's threads one by one, not in equal shares as
// ThreadPool's own do. A thread that has its CPU for part of the time only does fewer, and nobody waits long
// for it. For loops of few long iterations; which thread has which is not known.
#pragma once

#include <atomic>
#include <cstdint>

#include "compiler_core/runtime/thread_pool.h"

namespace tuner {

class OneByOne {
 public:
  // `pool` outlives this, and has one caller.
  explicit OneByOne(ThreadPool& pool) : pool_(pool) {}
  OneByOne(const OneByOne&) = delete;
  OneByOne& operator=(const OneByOne&) = delete;

  // Runs iterations 0..extent-1 and returns when all are done; `thread` of the task is below threads() of the
  // pool.
  void parallel_for(int32_t extent, tuner_task task, void* closure) {
    Loop loop{.extent = extent, .task = task, .closure = closure};
    pool_.parallel_for(pool_.threads(), run_on_a_thread, &loop);
  }
  // What a kernel is given, as by ThreadPool::runtime(). Valid as long as this.
  tuner_runtime runtime(void* workspace) {
    tuner_runtime runtime = pool_.runtime(workspace);
    runtime.pool = this;
    runtime.parallel_for = [](void* self, int32_t extent, tuner_task task, void* closure) {
      static_cast<OneByOne*>(self)->parallel_for(extent, task, closure);
    };
    return runtime;
  }

 private:
  struct Loop {
    int32_t extent;
    tuner_task task;
    void* closure;
    std::atomic<int64_t> next{0};  // grows past the extent by one for each thread
  };
  static void run_on_a_thread(void* of, int32_t, int32_t, int32_t thread) {
    Loop& loop = *static_cast<Loop*>(of);
    for (int64_t i = loop.next++; i < loop.extent; i = loop.next++)
      loop.task(loop.closure, static_cast<int32_t>(i), static_cast<int32_t>(i + 1), thread);
  }

  ThreadPool& pool_;
};

}  // namespace tuner
