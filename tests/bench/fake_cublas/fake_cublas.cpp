// libfakecublas.so: as much of cuBLAS as bench_gpu asks for, by its definition (column-major, plain loops),
// so that how we call it is tested for real. Works on the memory and the clock of libfakecuda.so.
//
// The environment: TUNER_FAKE_CUBLAS_NS is the time of a product (default 5000); with TUNER_FAKE_CUBLAS_WRONG
// one element of each product is.
#include <cstdlib>

extern "C" {

void fake_cuda_advance(double ns);  // libfakecuda.so

int cublasCreate_v2(void** handle) {
  *handle = new char;
  return 0;
}
int cublasDestroy_v2(void* handle) {
  delete static_cast<char*>(handle);
  return 0;
}
int cublasGetVersion_v2(void*, int* version) {
  *version = 130100;
  return 0;
}
int cublasSetStream_v2(void*, void*) { return 0; }
// Refuses what is not plain float32 arithmetic.
int cublasSetMathMode(void*, int mode) {
  return mode == 0 && std::getenv("NVIDIA_TF32_OVERRIDE") == nullptr ? 0 : 7;
}

int cublasSgemmStridedBatched(void*, int op_a, int op_b, int m, int n, int k, const float* alpha,
                              const float* a, int lda, long long stride_a, const float* b, int ldb,
                              long long stride_b, const float* beta, float* c, int ldc, long long stride_c,
                              int batch) {
  // As the library does: a leading dimension is not less than a column.
  if (lda < (op_a == 0 ? m : k) || ldb < (op_b == 0 ? k : n) || ldc < m) return 7;
  for (int t = 0; t < batch; ++t, a += stride_a, b += stride_b, c += stride_c)
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        float sum = 0;
        for (int x = 0; x < k; ++x)
          sum +=
              (op_a == 0 ? a[i + x * lda] : a[x + i * lda]) * (op_b == 0 ? b[x + j * ldb] : b[j + x * ldb]);
        float& out = c[i + j * ldc];
        out = *alpha * sum + (*beta == 0 ? 0 : *beta * out);
      }
  if (std::getenv("TUNER_FAKE_CUBLAS_WRONG") != nullptr) *(c - stride_c) = 1000;
  const char* ns = std::getenv("TUNER_FAKE_CUBLAS_NS");
  fake_cuda_advance(ns != nullptr ? std::atof(ns) : 5000);
  return 0;
}
int cublasSgemm_v2(void* handle, int op_a, int op_b, int m, int n, int k, const float* alpha, const float* a,
                   int lda, const float* b, int ldb, const float* beta, float* c, int ldc) {
  return cublasSgemmStridedBatched(handle, op_a, op_b, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0,
                                   1);
}

}  // extern "C"
