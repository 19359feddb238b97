// out[y, x] = sum over i, j of in[y + i, x + j] * weight[i, j]: one image, a window of WINDOW x WINDOW. A block
// copies its part of the image with the border into dynamic shared memory. Knobs: BLOCK_X, BLOCK_Y threads; TILE_Y,
// how many rows each thread computes; UNROLL of the window's columns. Bytes of dynamic shared memory:
// 4 * (BLOCK_Y * TILE_Y + WINDOW - 1) * (BLOCK_X + WINDOW - 1).
#define WINDOW 5
extern "C" __global__ void __launch_bounds__(BLOCK_X* BLOCK_Y)
    conv2d(const float* __restrict__ in, const float* __restrict__ weight, float* __restrict__ out, int height,
           int width) {
  extern __shared__ float image[];
  const int columns = BLOCK_X + WINDOW - 1, rows = BLOCK_Y * TILE_Y + WINDOW - 1;
  const int left = blockIdx.x * BLOCK_X, top = blockIdx.y * BLOCK_Y * TILE_Y, in_width = width + WINDOW - 1;
  for (int y = threadIdx.y; y < rows; y += BLOCK_Y)
    for (int x = threadIdx.x; x < columns; x += BLOCK_X) {
      const bool inside = top + y < height + WINDOW - 1 && left + x < in_width;
      image[y * columns + x] = inside ? in[(top + y) * in_width + left + x] : 0;
    }
  __syncthreads();
  for (int t = 0; t < TILE_Y; ++t) {
    const int y = t * BLOCK_Y + threadIdx.y;
    float sum = 0;
    for (int i = 0; i < WINDOW; ++i) {
#pragma unroll UNROLL
      for (int j = 0; j < WINDOW; ++j) sum += image[(y + i) * columns + threadIdx.x + j] * weight[i * WINDOW + j];
    }
    if (top + y < height && left + threadIdx.x < width) out[(top + y) * width + left + threadIdx.x] = sum;
  }
}
