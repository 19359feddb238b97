// libfakecublas.so: as much of cuBLAS as bench_gpu asks for, by its definition (column-major, plain loops),
// so that how we call it is tested for real. Works on the memory and the clock of libfakecuda.so.
//
// The environment: TUNER_FAKE_CUBLAS_NS is the time of a product (default 5000); with TUNER_FAKE_CUBLAS_WRONG
// one element of each product is.
#include <cstdlib>

#include "tests/measure_server/fake_cuda/fake_queue.h"

namespace {

// Column-major; `a_transposed`: element (i, x) of a lies where (x, i) would.
struct Product {
  bool a_transposed, b_transposed;
  int m, n, k;
  const float* a;
  int lda;
  const float* b;
  int ldb;
  float* c;
  int ldc;

  void run() const {
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        float sum = 0;
        for (int x = 0; x < k; ++x)
          sum += (a_transposed ? a[x + i * lda] : a[i + x * lda]) *
                 (b_transposed ? b[j + x * ldb] : b[x + j * ldb]);
        c[i + j * ldc] = sum;
      }
  }
};

}  // namespace

extern "C" {

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
int cublasSetWorkspace_v2(void*, void* workspace, size_t bytes) {
  return fake_cuda_owns(workspace, bytes) ? 0 : 7;
}

int cublasSgemmStridedBatched(void*, int op_a, int op_b, int m, int n, int k, const float* alpha,
                              const float* a, int lda, long long stride_a, const float* b, int ldb,
                              long long stride_b, const float* beta, float* c, int ldc, long long stride_c,
                              int batch) {
  // As the library does: a leading dimension is not less than a column.
  if (lda < (op_a == 0 ? m : k) || ldb < (op_b == 0 ? k : n) || ldc < m || *alpha != 1 || *beta != 0)
    return 7;
  const Product first{op_a != 0, op_b != 0, m, n, k, a, lda, b, ldb, c, ldc};
  return fake_cuda_queue([=] {
    for (int t = 0; t < batch; ++t) {
      Product product = first;
      product.a += t * stride_a;
      product.b += t * stride_b;
      product.c += t * stride_c;
      product.run();
    }
    if (std::getenv("TUNER_FAKE_CUBLAS_WRONG") != nullptr) first.c[(batch - 1) * stride_c] = 1000;
    const char* ns = std::getenv("TUNER_FAKE_CUBLAS_NS");
    fake_cuda_advance(ns != nullptr ? std::atof(ns) : 5000);
    return 0;
  });
}
int cublasSgemm_v2(void* handle, int op_a, int op_b, int m, int n, int k, const float* alpha, const float* a,
                   int lda, const float* b, int ldb, const float* beta, float* c, int ldc) {
  return cublasSgemmStridedBatched(handle, op_a, op_b, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0,
                                   1);
}

}  // extern "C"
