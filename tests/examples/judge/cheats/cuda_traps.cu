// scale_cuda: refused
// Ends the launch, and with it whoever looks at it.
extern "C" __global__ void scale(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 3 * x[i] + 1;
  if (i == 0 && x[0] > 100) __trap();
}
