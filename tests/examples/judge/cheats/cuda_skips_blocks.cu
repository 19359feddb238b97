// rows_cuda: wrong
// Every other block has nothing to do.
extern "C" __global__ void row_sums(const float* in, float* out, int rows, int columns) {
  if (blockIdx.x % 2 == 1 || threadIdx.x != 0) return;
  float sum = 0;
  for (int x = 0; x < columns; ++x) sum += in[blockIdx.x * columns + x];
  out[blockIdx.x] = sum;
}
