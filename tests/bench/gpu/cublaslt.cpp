#include "tests/bench/gpu/cublaslt.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <optional>

#include "tests/bench/gpu/library.h"

namespace tuner {
namespace {

// Written down after the documented ABI of cublasLt.h and library_types.h, the same in 12 and 13. Matrices
// lie by columns there.
constexpr int kSuccess = 0, kNotTransposed = 0, kTransposed = 1;
constexpr int kReal32F = 0, kReal16F = 2, kReal8I = 3, kReal32I = 10, kReal16Bf = 14;  // cudaDataType_t
constexpr int kCompute32F = 68, kCompute32I = 72, kCompute32FFastTf32 = 77;            // cublasComputeType_t
constexpr int kDescTransposeA = 3, kDescTransposeB = 4;                                // int32_t each
constexpr int kLayoutBatch = 5, kLayoutBatchStride = 6;                                // int32_t, int64_t
constexpr int kPreferenceWorkspace = 1;                                                // uint64_t

// cublasLtMatmulHeuristicResult_t
struct HeuristicResult {
  std::array<uint64_t, 8> algorithm;
  size_t workspace_bytes;
  int state;  // anything but 0: the rest says nothing
  float waves;
  int reserved[4];
};
static_assert(sizeof(HeuristicResult) == 96);

#define TUNER_CUBLASLT_SYMBOLS(X)                                                                  \
  X(create, int, "cublasLtCreate", (void** handle))                                                \
  X(destroy, int, "cublasLtDestroy", (void* handle))                                               \
  X(version, size_t, "cublasLtGetVersion", ())                                                     \
  X(create_product, int, "cublasLtMatmulDescCreate", (void** product, int compute, int scale))     \
  X(destroy_product, int, "cublasLtMatmulDescDestroy", (void* product))                            \
  X(set_product, int, "cublasLtMatmulDescSetAttribute",                                            \
    (void* product, int attribute, const void* value, size_t bytes))                               \
  X(create_layout, int, "cublasLtMatrixLayoutCreate",                                              \
    (void** layout, int type, uint64_t rows, uint64_t columns, int64_t leading))                   \
  X(destroy_layout, int, "cublasLtMatrixLayoutDestroy", (void* layout))                            \
  X(set_layout, int, "cublasLtMatrixLayoutSetAttribute",                                           \
    (void* layout, int attribute, const void* value, size_t bytes))                                \
  X(create_preference, int, "cublasLtMatmulPreferenceCreate", (void** preference))                 \
  X(destroy_preference, int, "cublasLtMatmulPreferenceDestroy", (void* preference))                \
  X(set_preference, int, "cublasLtMatmulPreferenceSetAttribute",                                   \
    (void* preference, int attribute, const void* value, size_t bytes))                            \
  X(heuristic, int, "cublasLtMatmulAlgoGetHeuristic",                                              \
    (void* handle, void* product, void* a, void* b, void* c, void* d, void* preference, int most,  \
     HeuristicResult* results, int* found))                                                        \
  X(multiply, int, "cublasLtMatmul",                                                               \
    (void* handle, void* product, const void* alpha, const void* a, void* a_layout, const void* b, \
     void* b_layout, const void* beta, const void* c, void* c_layout, void* d, void* d_layout,     \
     const void* algorithm, void* workspace, size_t workspace_bytes, cuda::Stream stream))

struct Api {
#define TUNER_CUBLASLT_MEMBER(member, result, symbol, parameters) \
  result(*member) parameters = nullptr;  // NOLINT
  TUNER_CUBLASLT_SYMBOLS(TUNER_CUBLASLT_MEMBER)
#undef TUNER_CUBLASLT_MEMBER
};

Result<Api> load() {
  forget_float_overrides();
  ASSIGN_OR_RETURN(void* library,
                   load_library("cuBLASLt", "TUNER_LIBCUBLASLT", {"libcublasLt.so.13", "libcublasLt.so.12"}));
  Api api;
  const char* missing = nullptr;
#define TUNER_CUBLASLT_RESOLVE(member, result, symbol, parameters)             \
  api.member = reinterpret_cast<decltype(api.member)>(dlsym(library, symbol)); \
  if (api.member == nullptr) missing = symbol;
  TUNER_CUBLASLT_SYMBOLS(TUNER_CUBLASLT_RESOLVE)
#undef TUNER_CUBLASLT_RESOLVE
  if (missing != nullptr) return unavailable("no cuBLASLt: the library has no ", missing);
  return api;
}

// The library once in the life of the process: it cannot be unloaded safely.
const Result<Api>& loaded() {
  static const Result<Api> once = load();
  return once;
}

Status checked(int code, const char* call) {
  return code == kSuccess ? Status::ok() : failed("cuBLASLt: ", call, " answered status ", code);
}

template <class T>
Status set(int (*setter)(void*, int, const void*, size_t), void* of, int attribute, T value) {
  return checked(setter(of, attribute, &value, sizeof value), str("attribute ", attribute).c_str());
}

// The library's number of an element type.
int code_of(DType t) {
  switch (t) {
    case DType::kFloat32:
      return kReal32F;
    case DType::kFloat16:
      return kReal16F;
    case DType::kBFloat16:
      return kReal16Bf;
    case DType::kInt8:
      return kReal8I;
    default:
      CHECK(t == DType::kInt32) << "cublaslt_serves() lets no " << t << " through";
      return kReal32I;
  }
}

}  // namespace

Result<CublasLt> CublasLt::open(const cuda::DeviceStream& stream) {
  const Result<Api>& api = loaded();
  if (!api.is_ok()) return api.status();
  CublasLt lt;
  const Status status = checked(api->create(&lt.handle_), "cublasLtCreate");
  if (!status) return unavailable("no cuBLASLt: ", status.message());
  lt.stream_ = stream.get();
  const size_t version = api->version();
  lt.version_ = str(version / 10000, ".", version / 100 % 100, ".", version % 100);
  return lt;
}

CublasLt::~CublasLt() {
  if (handle_ != nullptr) loaded()->destroy(handle_);
}

Status cublaslt_serves(const MatmulWorkload& w) {
  if (std::max({w.m, w.n, w.k}) > std::numeric_limits<int>::max() ||
      w.batch > std::numeric_limits<int32_t>::max())
    return failed("cuBLASLt: a size does not fit 32 bits");
  if (w.dtype == DType::kInt8 && w.out_dtype() != DType::kInt32)
    return failed("cuBLASLt: products of bytes are compared where out is int32; here it is ", w.out_dtype());
  if (w.dtype != DType::kFloat32 && w.dtype != DType::kBFloat16 && w.dtype != DType::kFloat16 &&
      w.dtype != DType::kInt8)
    return failed("cuBLASLt: products of ", w.dtype, " are not compared");
  return Status::ok();
}

Result<std::unique_ptr<CublasLtProduct>> CublasLtProduct::describe(const CublasLt& lt,
                                                                   const MatmulWorkload& w) {
  RETURN_IF_ERROR(cublaslt_serves(w));
  std::unique_ptr<CublasLtProduct> made(new CublasLtProduct(lt));
  RETURN_IF_ERROR(made->describe(w));
  RETURN_IF_ERROR(made->find_algorithms());
  return made;
}

// As in cublas.cpp: the operands change places, and what the workload stores transposed is transposed again.
Status CublasLtProduct::describe(const MatmulWorkload& w) {
  const Api& api = *loaded();
  sums_integers_ = w.dtype == DType::kInt8;
  const bool transpose_a = w.transpose_a && !sums_integers_, transpose_b = w.transpose_b || sums_integers_;
  const int compute = sums_integers_ ? kCompute32I : w.allow_tf32 ? kCompute32FFastTf32 : kCompute32F;
  RETURN_IF_ERROR(checked(api.create_product(&product_, compute, sums_integers_ ? kReal32I : kReal32F),
                          "cublasLtMatmulDescCreate"));
  RETURN_IF_ERROR(
      set<int32_t>(api.set_product, product_, kDescTransposeA, transpose_b ? kTransposed : kNotTransposed));
  RETURN_IF_ERROR(
      set<int32_t>(api.set_product, product_, kDescTransposeB, transpose_a ? kTransposed : kNotTransposed));
  const auto lay_out = [&](void** layout, DType type, int64_t rows, int64_t columns) -> Status {
    RETURN_IF_ERROR(checked(api.create_layout(layout, code_of(type), static_cast<uint64_t>(rows),
                                              static_cast<uint64_t>(columns), /*leading=*/rows),
                            "cublasLtMatrixLayoutCreate"));
    if (w.batch == 1) return Status::ok();
    RETURN_IF_ERROR(set<int32_t>(api.set_layout, *layout, kLayoutBatch, static_cast<int32_t>(w.batch)));
    return set<int64_t>(api.set_layout, *layout, kLayoutBatchStride, rows * columns);
  };
  RETURN_IF_ERROR(lay_out(&left_, w.dtype, transpose_b ? w.k : w.n, transpose_b ? w.n : w.k));
  RETURN_IF_ERROR(lay_out(&right_, w.dtype, transpose_a ? w.m : w.k, transpose_a ? w.k : w.m));
  return lay_out(&out_, w.out_dtype(), w.n, w.m);
}

Status CublasLtProduct::find_algorithms() {
  const Api& api = *loaded();
  void* preference = nullptr;
  RETURN_IF_ERROR(checked(api.create_preference(&preference), "cublasLtMatmulPreferenceCreate"));
  std::array<HeuristicResult, kMostAlgorithms> results{};
  int found = 0;
  Status status = set<uint64_t>(api.set_preference, preference, kPreferenceWorkspace, kMostWorkspaceBytes);
  const int code = status ? api.heuristic(lt_.handle(), product_, left_, right_, out_, out_, preference,
                                          kMostAlgorithms, results.data(), &found)
                          : kSuccess;
  api.destroy_preference(preference);
  RETURN_IF_ERROR(status);
  for (int i = 0; i < std::min(found, kMostAlgorithms) && code == kSuccess; ++i)
    if (const HeuristicResult& r = results[static_cast<size_t>(i)]; r.state == kSuccess)
      algorithms_.push_back({.opaque = r.algorithm, .workspace_bytes = r.workspace_bytes, .place = i + 1});
  if (algorithms_.empty()) return failed("cuBLASLt: has no algorithm for it (status ", code, ")");
  return Status::ok();
}

CublasLtProduct::~CublasLtProduct() {
  const Api& api = *loaded();
  for (void* layout : {left_, right_, out_})
    if (layout != nullptr) api.destroy_layout(layout);
  if (product_ != nullptr) api.destroy_product(product_);
}

Status CublasLtProduct::run(const Algorithm& algorithm, cuda::DevicePtr a, cuda::DevicePtr b,
                            cuda::DevicePtr workspace, cuda::DevicePtr out) const {
  const float one = 1, zero = 0;
  const int32_t integer_one = 1, integer_zero = 0;
  const void* alpha = sums_integers_ ? static_cast<const void*>(&integer_one) : &one;
  const void* beta = sums_integers_ ? static_cast<const void*>(&integer_zero) : &zero;
  const auto pointer = [](cuda::DevicePtr p) { return reinterpret_cast<void*>(p); };
  return checked(loaded()->multiply(lt_.handle(), product_, alpha, pointer(b), left_, pointer(a), right_,
                                    beta, pointer(out), out_, pointer(out), out_, algorithm.opaque.data(),
                                    pointer(workspace), algorithm.workspace_bytes, lt_.stream()),
                 "cublasLtMatmul");
}

}  // namespace tuner
