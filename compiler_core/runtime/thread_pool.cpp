#include "compiler_core/runtime/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include "compiler_core/base/status.h"

namespace tuner {
namespace {

// About 20,000 pauses before sleeping: longer than the gap between two kernels of a graph, shorter than a
// time slice.
constexpr int kSpins = 20000;

void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Pinning is a wish: a CPU that is not there (or not allowed here) leaves the thread where it is.
void pin_this_thread(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

void run_share(tuner_task task, void* closure, int32_t extent, int thread, int threads) {
  const int64_t begin = int64_t{extent} * thread / threads, end = int64_t{extent} * (thread + 1) / threads;
  if (begin < end) task(closure, static_cast<int32_t>(begin), static_cast<int32_t>(end), thread);
}

void parallel_for_of(void* pool, int32_t extent, tuner_task task, void* closure) {
  static_cast<ThreadPool*>(pool)->parallel_for(extent, task, closure);
}

}  // namespace

ThreadPool::ThreadPool(int threads, std::vector<int> cpus) : threads_(threads), cpus_(std::move(cpus)) {
  CHECK(threads >= 1) << "a pool has at least its caller, found " << threads << " threads";
  if (!cpus_.empty()) pin_this_thread(cpus_[0]);
  for (int t = 1; t < threads_; ++t) workers_.emplace_back([this, t] { work(t); });
}

ThreadPool::~ThreadPool() {
  stop_.store(true, std::memory_order_release);
  generation_.fetch_add(1, std::memory_order_seq_cst);
  generation_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::parallel_for(int32_t extent, tuner_task task, void* closure) {
  if (threads_ == 1 || extent <= 1) {
    if (extent > 0) task(closure, 0, extent, 0);
    return;
  }
  task_ = task;
  closure_ = closure;
  extent_ = extent;
  running_.store(threads_ - 1, std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) > 0) generation_.notify_all();
  run_share(task, closure, extent, 0, threads_);
  for (int spin = 0;; ++spin) {
    const int32_t left = running_.load(std::memory_order_acquire);
    if (left == 0) return;
    if (spin < kSpins) {
      pause_cpu();
    } else {
      running_.wait(left, std::memory_order_acquire);
    }
  }
}

void ThreadPool::work(int thread) {
  if (!cpus_.empty()) pin_this_thread(cpus_[static_cast<size_t>(thread) % cpus_.size()]);
  uint32_t seen = 0;
  for (;;) {
    uint32_t now = generation_.load(std::memory_order_acquire);
    for (int spin = 0; now == seen && spin < kSpins; ++spin) {
      pause_cpu();
      now = generation_.load(std::memory_order_acquire);
    }
    if (now == seen) {
      sleepers_.fetch_add(1, std::memory_order_seq_cst);
      generation_.wait(seen, std::memory_order_seq_cst);
      sleepers_.fetch_sub(1, std::memory_order_seq_cst);
      continue;
    }
    seen = now;
    if (stop_.load(std::memory_order_acquire)) return;
    run_share(task_, closure_, extent_, thread, threads_);
    if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) running_.notify_one();
  }
}

tuner_runtime ThreadPool::runtime(void* workspace) {
  return {.abi_version = TUNER_ABI_VERSION,
          .num_threads = threads_,
          .parallel_for = parallel_for_of,
          .pool = this,
          .workspace = workspace};
}

}  // namespace tuner
