#include "compiler_core/runtime/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include "compiler_core/base/status.h"

namespace tuner {
namespace {

// Pinning is a wish: a CPU that is not there (or not allowed here) leaves the thread where it is.
void pin(pthread_t thread, int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  pthread_setaffinity_np(thread, sizeof set, &set);
}

}  // namespace

ThreadPool::ThreadPool(int threads, const std::vector<int>& cpus) {
  CHECK(threads >= 1) << "a pool has at least its caller, found " << threads << " threads";
  pool_.reset(tuner_pool_create(threads));
  CHECK(pool_ != nullptr) << "the system gives no " << threads << " threads";
  if (cpus.empty()) return;
  pin(pthread_self(), cpus[0]);
  for (int t = 1; t < threads; ++t) pin(pool_->workers[t - 1], cpus[static_cast<size_t>(t) % cpus.size()]);
}

ThreadPool ThreadPool::at_most(int threads) {
  for (; threads > 1; threads /= 2)
    if (tuner_pool* const pool = tuner_pool_create(threads)) return ThreadPool(pool);
  return ThreadPool(1);
}

}  // namespace tuner
