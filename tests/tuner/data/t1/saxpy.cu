extern "C" __global__ void saxpy(const float* x, const float* noise, float* y, float a) {
  const int i = blockIdx.x * BLOCK + threadIdx.x;
  y[i] = a * x[i] + noise[i];
}
