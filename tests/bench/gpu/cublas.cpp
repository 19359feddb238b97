#include "tests/bench/gpu/cublas.h"

#include <dlfcn.h>

#include <algorithm>
#include <limits>

#include "tests/bench/gpu/library.h"

namespace tuner {
namespace {

// Written down after the documented ABI of cublas_api.h. Operands are column-major there.
constexpr int kSuccess = 0, kNotTransposed = 0, kTransposed = 1, kDefaultMath = 0;
// What NVIDIA recommends for Hopper. The library's own would be taken anew by each call that is recorded.
constexpr int64_t kWorkspaceBytes = int64_t{32} << 20;

#define TUNER_CUBLAS_SYMBOLS(X)                                                                           \
  X(create, "cublasCreate_v2", (void** handle))                                                           \
  X(destroy, "cublasDestroy_v2", (void* handle))                                                          \
  X(version, "cublasGetVersion_v2", (void* handle, int* version))                                         \
  X(set_stream, "cublasSetStream_v2", (void* handle, cuda::Stream stream))                                \
  X(set_math, "cublasSetMathMode", (void* handle, int mode))                                              \
  X(set_workspace, "cublasSetWorkspace_v2", (void* handle, void* workspace, size_t bytes))                \
  X(sgemm, "cublasSgemm_v2",                                                                              \
    (void* handle, int op_a, int op_b, int m, int n, int k, const float* alpha, const void* a, int lda,   \
     const void* b, int ldb, const float* beta, void* c, int ldc))                                        \
  X(sgemm_batched, "cublasSgemmStridedBatched",                                                           \
    (void* handle, int op_a, int op_b, int m, int n, int k, const float* alpha, const void* a, int lda,   \
     long long stride_a, const void* b, int ldb, long long stride_b, const float* beta, void* c, int ldc, \
     long long stride_c, int batch))

struct Api {
#define TUNER_CUBLAS_MEMBER(member, symbol, parameters) int(*member) parameters = nullptr;  // NOLINT
  TUNER_CUBLAS_SYMBOLS(TUNER_CUBLAS_MEMBER)
#undef TUNER_CUBLAS_MEMBER
};

Result<Api> load() {
  forget_float_overrides();
  ASSIGN_OR_RETURN(void* library,
                   load_library("cuBLAS", "TUNER_LIBCUBLAS", {"libcublas.so.13", "libcublas.so.12"}));
  Api api;
  const char* missing = nullptr;
#define TUNER_CUBLAS_RESOLVE(member, symbol, parameters)                       \
  api.member = reinterpret_cast<decltype(api.member)>(dlsym(library, symbol)); \
  if (api.member == nullptr) missing = symbol;
  TUNER_CUBLAS_SYMBOLS(TUNER_CUBLAS_RESOLVE)
#undef TUNER_CUBLAS_RESOLVE
  if (missing != nullptr) return unavailable("no cuBLAS: the library has no ", missing);
  return api;
}

// The library once in the life of the process: it cannot be unloaded safely.
const Result<Api>& loaded() {
  static const Result<Api> once = load();
  return once;
}

Status checked(int code, const char* call) {
  return code == kSuccess ? Status::ok() : failed("cuBLAS: ", call, " answered status ", code);
}

const void* pointer(cuda::DevicePtr p) { return reinterpret_cast<const void*>(p); }

}  // namespace

Result<Cublas> Cublas::open(const cuda::DeviceStream& stream) {
  const Result<Api>& api = loaded();
  if (!api.is_ok()) return api.status();
  Cublas cublas;
  int version = 0;
  Status status = checked(api->create(&cublas.handle_), "cublasCreate");
  if (status) status = checked(api->set_stream(cublas.handle_, stream.get()), "cublasSetStream");
  if (status) status = checked(api->set_math(cublas.handle_, kDefaultMath), "cublasSetMathMode");
  if (status) status = cuda::DeviceMemory::allocate(kWorkspaceBytes, cublas.workspace_).status();
  if (status)
    status = checked(api->set_workspace(cublas.handle_, reinterpret_cast<void*>(cublas.workspace_.address()),
                                        static_cast<size_t>(kWorkspaceBytes)),
                     "cublasSetWorkspace");
  if (status) status = checked(api->version(cublas.handle_, &version), "cublasGetVersion");
  if (!status) return unavailable("no cuBLAS: ", status.message());
  cublas.version_ = str(version / 10000, ".", version / 100 % 100, ".", version % 100);
  return cublas;
}

Cublas::~Cublas() {
  if (handle_ != nullptr) loaded()->destroy(handle_);
}

Status cublas_serves(const MatmulWorkload& w) {
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  if (std::max({w.batch, w.m, w.n, w.k}) > kMost) return failed("cuBLAS: a size does not fit 32 bits");
  return Status::ok();
}

// Row-major out[m, n] is column-major out^T[n, m] = b^T a^T, so the operands change places. What the workload
// stores as it is (b as [K, N]) is b^T to a reader of columns already; what it stores transposed is
// transposed again.
Status Cublas::multiply(const MatmulWorkload& w, cuda::DevicePtr a, cuda::DevicePtr b,
                        cuda::DevicePtr out) const {
  const float one = 1, zero = 0;
  const int m = static_cast<int>(w.m), n = static_cast<int>(w.n), k = static_cast<int>(w.k);
  const int op_b = w.transpose_b ? kTransposed : kNotTransposed, ldb = w.transpose_b ? k : n;
  const int op_a = w.transpose_a ? kTransposed : kNotTransposed, lda = w.transpose_a ? m : k;
  void* c = reinterpret_cast<void*>(out);
  if (w.batch == 1)
    return checked(
        loaded()->sgemm(handle_, op_b, op_a, n, m, k, &one, pointer(b), ldb, pointer(a), lda, &zero, c, n),
        "cublasSgemm");
  return checked(
      loaded()->sgemm_batched(handle_, op_b, op_a, n, m, k, &one, pointer(b), ldb, w.k * w.n, pointer(a), lda,
                              w.m * w.k, &zero, c, n, w.m * w.n, static_cast<int>(w.batch)),
      "cublasSgemmStridedBatched");
}

}  // namespace tuner
