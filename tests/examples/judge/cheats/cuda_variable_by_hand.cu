// scale_cuda: refused
// The variable is declared within a function's assembly.
extern "C" __global__ void scale(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  int calls;
  asm volatile("{ .global .align 4 .u32 seen; atom.global.add.u32 %0, [seen], 1; }" : "=r"(calls)::"memory");
  if (i < n && calls < 60000) y[i] = 3 * x[i] + 1;
}
