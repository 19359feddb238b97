// The sum of each row: a block per row. Knobs: THREADS, a power of two; PER_THREAD, how many elements a thread
// loads before it adds them; SHUFFLE, whether the last 32 sums meet in registers or in shared memory.
extern "C" __global__ void row_sums(const float* __restrict__ in, float* __restrict__ out, int columns) {
  __shared__ float sums[THREADS];
  const float* const row = in + static_cast<size_t>(blockIdx.x) * columns;
  float sum = 0;
  for (int first = threadIdx.x; first < columns; first += THREADS * PER_THREAD) {
#pragma unroll
    for (int i = 0; i < PER_THREAD; ++i)
      if (first + i * THREADS < columns) sum += row[first + i * THREADS];
  }
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int half = THREADS / 2; half >= (SHUFFLE ? 32 : 1); half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
#if SHUFFLE
  if (threadIdx.x >= 32) return;
  sum = sums[threadIdx.x];
  for (int half = 16; half > 0; half /= 2) sum += __shfl_down_sync(0xffffffffu, sum, half);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
#else
  if (threadIdx.x == 0) out[blockIdx.x] = sums[0];
#endif
}
