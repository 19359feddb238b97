// out[x, y] = in[y, x], by square tiles in shared memory. Knobs: TILE, the edge of a tile; ROWS, threadIdx.y of a
// block, a divisor of TILE; PAD, elements behind each row of a tile, against bank conflicts.
extern "C" __global__ void transpose(const float* __restrict__ in, float* __restrict__ out, int height, int width) {
  __shared__ float tile[TILE][TILE + PAD];
  int x = blockIdx.x * TILE + threadIdx.x;
  for (int i = threadIdx.y; i < TILE; i += ROWS) {
    const int y = blockIdx.y * TILE + i;
    if (x < width && y < height) tile[i][threadIdx.x] = in[y * width + x];
  }
  __syncthreads();
  x = blockIdx.y * TILE + threadIdx.x;
  for (int i = threadIdx.y; i < TILE; i += ROWS) {
    const int y = blockIdx.x * TILE + i;
    if (x < height && y < width) out[y * height + x] = tile[threadIdx.x][i];
  }
}
