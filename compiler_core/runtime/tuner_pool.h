/* Threads for kernels, for an application that has no pool of its own: all of it is in this header, plain C11
 * and C++ on POSIX threads (link with -pthread), compilers GCC and Clang.
 *
 *   tuner_pool* pool = tuner_pool_create(4);                 once; 4 threads, the caller's included
 *   tuner_runtime rt = tuner_pool_runtime(pool, workspace);
 *   conv_with(&rt, data, weight, out);                       any number of times
 *   tuner_pool_destroy(pool);
 *
 * The threads are persistent. A parallel loop is cut into equal contiguous shares, share t runs on thread t,
 * and thread 0 is the caller. Workers spin for a moment after a loop (a fork and join then costs less than a
 * microsecond) and sleep when nothing comes.
 *
 * Any number of application threads may run kernels on one pool at once, each with its own workspace and
 * outputs: the pool serves one loop at a time, and a caller that finds it busy runs its loop by itself.
 * Creating and destroying belong to one thread; nobody may use a pool while it is destroyed, and a child of
 * fork() makes its own: threads stay with the parent.
 */
#ifndef TUNER_POOL_H_
#define TUNER_POOL_H_

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "tuner_runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Pauses before a thread that waits goes to sleep: longer than the gap between two kernels of a network,
 * shorter than a time slice. */
#ifndef TUNER_POOL_SPINS
#define TUNER_POOL_SPINS 20000
#endif

typedef struct tuner_pool {
  int32_t threads; /* the caller included */
  int32_t started; /* workers that run */
  pthread_t* workers;
  pthread_mutex_t mutex;
  pthread_cond_t wake, done; /* there is a loop; its last share is done */
  /* The loop: written by its caller before `generation` grows, read by workers after they see it grow. */
  tuner_task task;
  void* closure;
  int32_t extent;
  int32_t busy; /* 1 while a caller owns the pool */
  uint32_t generation __attribute__((aligned(64)));
  int32_t stop;
  int32_t sleepers __attribute__((aligned(64)));
  int32_t caller_sleeps;
  int32_t running __attribute__((aligned(64))); /* shares of workers not done yet */
} tuner_pool;

typedef struct tuner_pool_worker {
  tuner_pool* pool;
  int32_t thread;
} tuner_pool_worker;

static inline void tuner_pool_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ __volatile__("yield");
#endif
}

static inline void tuner_pool_share(const tuner_pool* pool, int32_t extent, tuner_task task, void* closure,
                                    int32_t thread) {
  const int32_t begin = (int32_t)((int64_t)extent * thread / pool->threads);
  const int32_t end = (int32_t)((int64_t)extent * (thread + 1) / pool->threads);
  if (begin < end) task(closure, begin, end, thread);
}

static inline void* tuner_pool_work(void* argument) {
  const tuner_pool_worker worker = *(tuner_pool_worker*)argument;
  tuner_pool* const pool = worker.pool;
  uint32_t seen = 0;
  free(argument);
  for (;;) {
    uint32_t now = __atomic_load_n(&pool->generation, __ATOMIC_ACQUIRE);
    int spin;
    for (spin = 0; now == seen && spin < TUNER_POOL_SPINS; ++spin) {
      tuner_pool_pause();
      now = __atomic_load_n(&pool->generation, __ATOMIC_ACQUIRE);
    }
    if (now == seen) {
      pthread_mutex_lock(&pool->mutex);
      /* Either the caller sees this sleeper, or the sleeper sees the caller's loop. */
      __atomic_fetch_add(&pool->sleepers, 1, __ATOMIC_SEQ_CST);
      while (__atomic_load_n(&pool->generation, __ATOMIC_SEQ_CST) == seen)
        pthread_cond_wait(&pool->wake, &pool->mutex);
      __atomic_fetch_sub(&pool->sleepers, 1, __ATOMIC_SEQ_CST);
      pthread_mutex_unlock(&pool->mutex);
      continue;
    }
    seen = now;
    if (__atomic_load_n(&pool->stop, __ATOMIC_ACQUIRE)) return 0;
    tuner_pool_share(pool, pool->extent, pool->task, pool->closure, worker.thread);
    if (__atomic_fetch_sub(&pool->running, 1, __ATOMIC_SEQ_CST) == 1 &&
        __atomic_load_n(&pool->caller_sleeps, __ATOMIC_SEQ_CST)) {
      pthread_mutex_lock(&pool->mutex);
      pthread_cond_signal(&pool->done);
      pthread_mutex_unlock(&pool->mutex);
    }
  }
}

/* Lets the workers see what was written before. */
static inline void tuner_pool_post(tuner_pool* pool) {
  __atomic_fetch_add(&pool->generation, 1, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&pool->sleepers, __ATOMIC_SEQ_CST) == 0) return;
  pthread_mutex_lock(&pool->mutex);
  pthread_cond_broadcast(&pool->wake);
  pthread_mutex_unlock(&pool->mutex);
}

static inline void tuner_pool_join(tuner_pool* pool) {
  int spin;
  for (spin = 0; spin < TUNER_POOL_SPINS; ++spin) {
    if (__atomic_load_n(&pool->running, __ATOMIC_ACQUIRE) == 0) return;
    tuner_pool_pause();
  }
  pthread_mutex_lock(&pool->mutex);
  __atomic_store_n(&pool->caller_sleeps, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&pool->running, __ATOMIC_SEQ_CST) != 0) pthread_cond_wait(&pool->done, &pool->mutex);
  __atomic_store_n(&pool->caller_sleeps, 0, __ATOMIC_SEQ_CST);
  pthread_mutex_unlock(&pool->mutex);
}

/* Runs iterations 0..extent-1 and returns when all are done; `pool` is a tuner_pool. */
static inline void tuner_pool_parallel_for(void* pool_, int32_t extent, tuner_task task, void* closure) {
  tuner_pool* const pool = (tuner_pool*)pool_;
  int32_t thread;
  if (extent <= 0) return;
  if (pool->threads == 1 || extent == 1) {
    task(closure, 0, extent, 0);
    return;
  }
  if (__atomic_exchange_n(&pool->busy, 1, __ATOMIC_ACQUIRE)) { /* another caller's loop is running */
    for (thread = 0; thread < pool->threads; ++thread) tuner_pool_share(pool, extent, task, closure, thread);
    return;
  }
  pool->task = task;
  pool->closure = closure;
  pool->extent = extent;
  __atomic_store_n(&pool->running, pool->threads - 1, __ATOMIC_RELAXED);
  tuner_pool_post(pool);
  tuner_pool_share(pool, extent, task, closure, 0);
  tuner_pool_join(pool);
  __atomic_store_n(&pool->busy, 0, __ATOMIC_RELEASE);
}

/* Ends the threads and frees the pool. NULL is allowed. */
static inline void tuner_pool_destroy(tuner_pool* pool) {
  int32_t t;
  if (!pool) return;
  __atomic_store_n(&pool->stop, 1, __ATOMIC_RELEASE);
  tuner_pool_post(pool);
  for (t = 0; t < pool->started; ++t) pthread_join(pool->workers[t], 0);
  pthread_cond_destroy(&pool->done);
  pthread_cond_destroy(&pool->wake);
  pthread_mutex_destroy(&pool->mutex);
  free(pool->workers);
  free(pool);
}

/* `threads` >= 1, the caller's included; with 1 no thread is started. NULL when `threads` is less, or the
 * system gives no memory or no threads. */
static inline tuner_pool* tuner_pool_create(int32_t threads) {
  tuner_pool* pool;
  int32_t t;
  if (threads < 1) return 0;
  pool = (tuner_pool*)aligned_alloc(64, (sizeof(tuner_pool) + 63) / 64 * 64);
  if (!pool) return 0;
  pool->threads = threads;
  pool->started = 0;
  pool->task = 0;
  pool->closure = 0;
  pool->extent = pool->busy = pool->stop = pool->sleepers = pool->caller_sleeps = pool->running = 0;
  pool->generation = 0;
  pthread_mutex_init(&pool->mutex, 0);
  pthread_cond_init(&pool->wake, 0);
  pthread_cond_init(&pool->done, 0);
  pool->workers = (pthread_t*)malloc(sizeof(pthread_t) * (size_t)threads);
  for (t = 1; pool->workers && t < threads; ++t) {
    tuner_pool_worker* worker = (tuner_pool_worker*)malloc(sizeof(tuner_pool_worker));
    if (!worker) break;
    worker->pool = pool;
    worker->thread = t;
    if (pthread_create(&pool->workers[pool->started], 0, tuner_pool_work, worker) != 0) {
      free(worker);
      break;
    }
    ++pool->started;
  }
  if (pool->started == threads - 1 && pool->workers) return pool;
  tuner_pool_destroy(pool);
  return 0;
}

/* What a kernel is given. Valid as long as the pool; `workspace` stays the caller's. */
static inline tuner_runtime tuner_pool_runtime(tuner_pool* pool, void* workspace) {
  tuner_runtime runtime = {TUNER_ABI_VERSION, pool->threads, tuner_pool_parallel_for, pool, workspace};
  return runtime;
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TUNER_POOL_H_ */
