// The sum of each row, by a block: the kernel that others race with.
extern "C" __global__ void row_sums(const float* __restrict__ in, float* __restrict__ out, int rows, int columns) {
  __shared__ float sums[THREADS];
  float sum = 0;
  for (int x = threadIdx.x; x < columns; x += THREADS) sum += in[blockIdx.x * columns + x];
  sums[threadIdx.x] = sum;
  for (int half = THREADS / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  if (threadIdx.x == 0) out[blockIdx.x] = sums[0];
}
