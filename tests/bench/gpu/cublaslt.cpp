#include "tests/bench/gpu/cublaslt.h"

#include <dlfcn.h>

#include <algorithm>
#include <limits>

#include "tests/bench/gpu/library.h"

namespace tuner {

namespace cublaslt {
namespace {

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

}  // namespace

const Result<Api>& loaded() {
  static const Result<Api> once = load();
  return once;
}

Status checked(int code, const char* call) {
  return code == kSuccess ? Status::ok() : failed("cuBLASLt: ", call, " answered status ", code);
}

}  // namespace cublaslt

namespace {

using namespace cublaslt;  // NOLINT: its words, throughout

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

void* pointer(cuda::DevicePtr p) { return reinterpret_cast<void*>(p); }

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
                                                                   const MatmulWorkload& w, Epilogue epilogue,
                                                                   cuda::DevicePtr bias) {
  RETURN_IF_ERROR(cublaslt_serves(w));
  std::unique_ptr<CublasLtProduct> made(new CublasLtProduct(lt));
  RETURN_IF_ERROR(made->describe(w, epilogue, bias));
  return made;
}

// As in cublas.cpp: the operands change places, and what the workload stores transposed is transposed again.
// So out has a column of ours in each of its rows, and a bias of one value per row is what we call one per
// column.
Status CublasLtProduct::describe(const MatmulWorkload& w, Epilogue epilogue, cuda::DevicePtr bias) {
  const Api& api = *loaded();
  sums_integers_ = w.dtype == DType::kInt8;
  const bool transpose_a = w.transpose_a && !sums_integers_, transpose_b = w.transpose_b || sums_integers_;
  compute_ = sums_integers_ ? kCompute32I : w.allow_tf32 ? kCompute32FFastTf32 : kCompute32F;
  scale_ = sums_integers_ ? kReal32I : kReal32F;
  type_ = code_of(w.dtype);
  out_type_ = code_of(w.out_dtype());
  RETURN_IF_ERROR(checked(api.create_product(&product_, compute_, scale_), "cublasLtMatmulDescCreate"));
  RETURN_IF_ERROR(
      set<int32_t>(api.set_product, product_, kDescTransposeA, transpose_b ? kTransposed : kNotTransposed));
  RETURN_IF_ERROR(
      set<int32_t>(api.set_product, product_, kDescTransposeB, transpose_a ? kTransposed : kNotTransposed));
  if (epilogue == Epilogue::kWhole) {
    const bool relu = w.activation == Activation::kRelu;
    adds_bias_ = w.bias;
    adds_residual_ = w.residual;
    RETURN_IF_ERROR(set<uint32_t>(
        api.set_product, product_, kDescEpilogue,
        relu || w.bias ? (relu ? kEpilogueRelu : 0) | (w.bias ? kEpilogueBias : 0) : kEpilogueNone));
    if (w.bias) RETURN_IF_ERROR(set<const void*>(api.set_product, product_, kDescBiasPointer, pointer(bias)));
  }
  const auto lay_out = [&](void** layout, int type, int64_t rows, int64_t columns) -> Status {
    RETURN_IF_ERROR(checked(api.create_layout(layout, type, static_cast<uint64_t>(rows),
                                              static_cast<uint64_t>(columns), /*leading=*/rows),
                            "cublasLtMatrixLayoutCreate"));
    if (w.batch == 1) return Status::ok();
    RETURN_IF_ERROR(set<int32_t>(api.set_layout, *layout, kLayoutBatch, static_cast<int32_t>(w.batch)));
    return set<int64_t>(api.set_layout, *layout, kLayoutBatchStride, rows * columns);
  };
  RETURN_IF_ERROR(lay_out(&left_, type_, transpose_b ? w.k : w.n, transpose_b ? w.n : w.k));
  RETURN_IF_ERROR(lay_out(&right_, type_, transpose_a ? w.m : w.k, transpose_a ? w.k : w.m));
  return lay_out(&out_, out_type_, w.n, w.m);
}

CublasLtProduct::~CublasLtProduct() {
  const Api& api = *loaded();
  for (void* layout : {left_, right_, out_})
    if (layout != nullptr) api.destroy_layout(layout);
  if (product_ != nullptr) api.destroy_product(product_);
}

Status CublasLtProduct::run(const CublasLtAlgorithm& algorithm, const Operands& operands,
                            cuda::DevicePtr workspace) const {
  const Api& api = *loaded();
  const float one = 1, zero = 0;
  const int32_t integer_one = 1, integer_zero = 0;
  const float* added = adds_residual_ ? &one : &zero;
  const void* alpha = sums_integers_ ? static_cast<const void*>(&integer_one) : &one;
  const void* beta = sums_integers_ ? static_cast<const void*>(&integer_zero) : added;
  // A word of the descriptor; nothing is queued.
  if (adds_bias_)
    RETURN_IF_ERROR(set<const void*>(api.set_product, product_, kDescBiasPointer, pointer(operands.bias)));
  const cuda::DevicePtr c = adds_residual_ ? operands.residual : operands.out;
  return checked(
      api.multiply(lt_.handle(), product_, alpha, pointer(operands.b), left_, pointer(operands.a), right_,
                   beta, pointer(c), out_, pointer(operands.out), out_, algorithm.opaque.data(),
                   pointer(workspace), algorithm.workspace_bytes, lt_.stream()),
      "cublasLtMatmul");
}

}  // namespace tuner
