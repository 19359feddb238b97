// scale_cuda: refused
// What the other kernel will read is thrown out of the caches.
extern "C" __global__ void scale(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  asm volatile("discard.global.L2 [%0], 128;" ::"l"((unsigned long long)x & ~127ull) : "memory");
  if (i < n) y[i] = 3 * x[i] + 1;
}
