// rows_cuda: wrong
// Sums with as many bits as bfloat16 has.
static __device__ float rounded(float x) { return __int_as_float(__float_as_int(x) & 0xffff0000); }

extern "C" __global__ void row_sums(const float* in, float* out, int rows, int columns) {
  if (threadIdx.x != 0) return;
  float sum = 0;
  for (int x = 0; x < columns; ++x) sum = rounded(sum + rounded(in[blockIdx.x * columns + x]));
  out[blockIdx.x] = sum;
}
