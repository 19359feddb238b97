// %RANGE% TILE t 8:32:8
// %RANGE% ITEMS ipt 1:4:1
static __device__ float half_of(float* x) { return *x / 2; }
extern "C" __global__ void halve(float* y, int n) {
  for (int i = 0; i < ITEMS; ++i) y[(blockIdx.x * TILE + threadIdx.x) * ITEMS + i] = half_of(y);
}
