// scale_cuda: refused
// Memory of the device's heap lives from launch to launch.
extern "C" __global__ void scale(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float* kept = (float*)malloc(64);
  if (i < n && kept != nullptr) y[i] = (kept[0] = 3 * x[i] + 1);
}
