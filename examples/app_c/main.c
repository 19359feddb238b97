/* Calls tuned kernels from C: by name, on a pool of threads, from eight threads at once, and found by their
 * workload. Every answer is compared with plain loops in double precision. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "app_kernels.h"
#include "tuner_pool.h"

enum { IC = 8, H = 30, W = 26, OC = 16, M = 24, N = 96, K = 200, CALLERS = 8, CALLS = 50 };

/* Kernels want 64 bytes of alignment. */
static void* make(size_t bytes) {
  void* p = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
  if (!p) {
    fprintf(stderr, "out of memory\n");
    exit(1);
  }
  return p;
}

static float* make_random(size_t count, uint32_t seed) {
  float* p = make(count * sizeof(float));
  for (size_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    p[i] = (float)(seed >> 8) / (1 << 24) - 0.5f;
  }
  return p;
}

/* What all callers share, read only: inputs, constants packed once, right answers, the pool. */
static struct {
  float *data, *weight, *conv_bias, *a, *b, *dense_bias;
  void *weight_packed, *b_packed;
  double *conv_right, *dense_right;
  tuner_pool* pool;
} shared;

static void answer_plainly(void) {
  for (int o = 0; o < OC; ++o)
    for (int y = 0; y < H; ++y)
      for (int x = 0; x < W; ++x) {
        double sum = shared.conv_bias[o];
        for (int c = 0; c < IC; ++c)
          for (int r = 0; r < 3; ++r)
            for (int s = 0; s < 3; ++s) {
              const int h = y + r - 1, w = x + s - 1;
              if (h < 0 || h >= H || w < 0 || w >= W) continue;
              sum += (double)shared.data[(c * H + h) * W + w] * shared.weight[((o * IC + c) * 3 + r) * 3 + s];
            }
        shared.conv_right[(o * H + y) * W + x] = sum > 0 ? sum : 0;
      }
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < N; ++j) {
      double sum = shared.dense_bias[j];
      for (int k = 0; k < K; ++k) sum += (double)shared.a[i * K + k] * shared.b[k * N + j];
      shared.dense_right[i * N + j] = sum;
    }
}

static int same(const char* what, const float* out, const double* right, int count) {
  for (int i = 0; i < count; ++i) {
    if (fabs(out[i] - right[i]) <= 1e-4) continue;
    fprintf(stderr, "%s: element %d is %g, expected %g\n", what, i, out[i], right[i]);
    return 0;
  }
  return 1;
}

/* One caller: outputs and workspaces of its own, everything else shared. Returns NULL when all was right. */
static void* call_many_times(void* unused) {
  (void)unused;
  float* conv_out = make(CONV_OUT_BYTES);
  float* dense_out = make(DENSE_OUT_BYTES);
  void* conv_space = make(CONV_WORKSPACE_BYTES);
  void* dense_space = make(DENSE_WORKSPACE + 2 * DENSE_WORKSPACE_PER_THREAD);
  const tuner_runtime runtime = tuner_pool_runtime(shared.pool, dense_space);
  int right = 1;
  for (int i = 0; i < CALLS && right; ++i) {
    right = conv(shared.data, shared.weight_packed, shared.conv_bias, conv_out, conv_space) == 0 &&
            same("conv", conv_out, shared.conv_right, OC * H * W) &&
            dense_with(&runtime, shared.a, shared.b_packed, shared.dense_bias, dense_out) == 0 &&
            same("dense", dense_out, shared.dense_right, M * N);
  }
  free(conv_out);
  free(dense_out);
  free(conv_space);
  free(dense_space);
  return right ? NULL : "wrong";
}

/* The kernel of a workload, whatever it is called: how a program dispatches over many shapes. */
static int call_by_workload(void) {
  const char* workload = "v1 matmul b=1 m=24 n=96 k=200 ta=0 tb=0 bias=1 act=none dtype=float32 const=b";
  const tuner_kernel* kernel = app_kernels_find(workload, 0);
  if (!kernel) {
    fprintf(stderr, "no kernel for %s\n", workload);
    return 0;
  }
  void* workspace = make((size_t)tuner_workspace_bytes(kernel, 1));
  float* out = make((size_t)kernel->args[kernel->num_args - 1].bytes);
  void* args[] = {shared.a, shared.b_packed, shared.dense_bias, out};
  const tuner_runtime runtime = tuner_serial_runtime(workspace);
  const int right = kernel->entry(args, &runtime) == 0 && same(kernel->name, out, shared.dense_right, M * N);
  free(workspace);
  free(out);
  return right;
}

int main(void) {
  pthread_t callers[CALLERS];
  int right = 1;
  if (!conv_runs_here() || !dense_runs_here()) {
    fprintf(stderr, "the kernels are built for another CPU than this one\n");
    return 2;
  }
  shared.data = make_random(IC * H * W, 1);
  shared.weight = make_random(OC * IC * 9, 2);
  shared.conv_bias = make_random(OC, 3);
  shared.a = make_random(M * K, 4);
  shared.b = make_random(K * N, 5);
  shared.dense_bias = make_random(N, 6);
  shared.conv_right = make(OC * H * W * sizeof(double));
  shared.dense_right = make(M * N * sizeof(double));
  answer_plainly();
  shared.weight_packed = make(CONV_WEIGHT_PACKED_BYTES);
  shared.b_packed = make(DENSE_B_PACKED_BYTES);
  if (conv_prepack(shared.weight, shared.weight_packed) != 0) return 1;
  if (dense_prepack(shared.b, shared.b_packed) != 0) return 1;
  shared.pool = tuner_pool_create(2);
  if (!shared.pool) return 1;

  for (int i = 0; i < CALLERS; ++i)
    if (pthread_create(&callers[i], NULL, call_many_times, NULL) != 0) return 1;
  for (int i = 0; i < CALLERS; ++i) {
    void* wrong = NULL;
    pthread_join(callers[i], &wrong);
    right = right && !wrong;
  }
  right = right && call_by_workload();
  tuner_pool_destroy(shared.pool);
  free(shared.weight_packed);
  free(shared.b_packed);
  free(shared.data);
  free(shared.weight);
  free(shared.conv_bias);
  free(shared.a);
  free(shared.b);
  free(shared.dense_bias);
  free(shared.conv_right);
  free(shared.dense_right);
  if (!right) return 1;
  printf("right: conv and dense, %d calls each from %d threads at once, dense on a pool of 2\n", CALLS,
         CALLERS);
  return 0;
}
