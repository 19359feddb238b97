// scale_cuda: timed out
extern "C" __global__ void scale(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 3 * x[i] + 1;
  while (i == 0 && *(volatile float*)y != 12345) {
  }
}
