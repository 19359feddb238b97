// C = A * B of float32 matrices with 96 rows and columns, plainly.
enum { N = 96 };

void gemm_plain(const float* a, const float* b, float* c) {
  for (int i = 0; i < N; ++i) {
    for (int j = 0; j < N; ++j) c[i * N + j] = 0;
    for (int k = 0; k < N; ++k)
      for (int j = 0; j < N; ++j) c[i * N + j] += a[i * N + k] * b[k * N + j];
  }
}

void gemm(const float* a, const float* b, float* c) { gemm_plain(a, b, c); }
