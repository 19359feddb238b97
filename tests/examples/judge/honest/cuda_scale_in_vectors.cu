// scale_cuda: right
extern "C" __global__ void scale(const float* x, float* y, int n) {
  const int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
  if (i + 3 < n) {
    const float4 v = *reinterpret_cast<const float4*>(x + i);
    *reinterpret_cast<float4*>(y + i) = make_float4(3 * v.x + 1, 3 * v.y + 1, 3 * v.z + 1, 3 * v.w + 1);
  } else {
    for (int k = i; k < n; ++k) y[k] = 3 * x[k] + 1;
  }
}
