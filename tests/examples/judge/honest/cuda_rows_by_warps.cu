// rows_cuda: right
// Shuffles within warps, and a switch whose cases are many.
template <int width>
static __device__ float warp_sum(float sum) {
  for (int step = width / 2; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  return sum;
}
extern "C" __global__ void __launch_bounds__(THREADS)
    row_sums(const float* __restrict__ in, float* __restrict__ out, int rows, int columns) {
  __shared__ float sums[THREADS / 32];
  const float* row = in + (long long)blockIdx.x * columns;
  float sum = 0;
  for (int x = threadIdx.x; x < columns; x += THREADS) sum += row[x];
  sum = warp_sum<32>(sum);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int i = 1; i < THREADS / 32; ++i) sum += sums[i];
    out[blockIdx.x] = sum;
  }
}
