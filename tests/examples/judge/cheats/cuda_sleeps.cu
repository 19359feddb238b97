// scale_cuda: refused
// Leaves its neighbours on the device waiting.
extern "C" __global__ void scale(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 3 * x[i] + 1;
  asm volatile("nanosleep.u32 100;");
}
