// scale_cuda: right
// A table of constants, a function that is called, an array of a thread's own.
__constant__ float factors[2] = {3, 1};
static __device__ const int kOrder[4] = {2, 0, 3, 1};

static __device__ __noinline__ float scaled(const float* x, int i) { return factors[0] * x[i] + factors[1]; }

extern "C" __global__ void scale(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int base = i / 4 * 4, mine = base + kOrder[i % 4];
  if (mine < n) y[mine] = scaled(x, mine);
}
