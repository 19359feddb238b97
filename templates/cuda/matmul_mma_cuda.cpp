// matmul_mma_cuda: matrix product of bfloat16, float16 (float32 sums) or int8 (int32 sums) on the tensor
// cores of NVIDIA GPUs, sm_80 and later.
//
// What it serves and its schedule: matmul_mma.h. Outputs are float32, 16 bits, or requantised. Of int8 k lies
// along the rows of both operands in memory, unless they are constants: bytes cannot be transposed on their
// way. What is declined of int8 matmul_dp4a_cuda serves.
#include "templates/cuda/matmul_mma.h"

namespace tuner {
namespace {

class MatmulMmaCuda final : public cuda::MatmulMma {
 public:
  using ScheduleTemplate::supports;
  MatmulMmaCuda() : MatmulMma(/*tf32_terms=*/0) {}
  std::string_view name() const override { return "matmul_mma_cuda"; }
  int version() const override { return 3; }

  Support supports(const MatmulWorkload& w, const Target& t) const override {
    if (!t.is_cuda()) return needs_target("a CUDA", t);
    if (w.dtype != DType::kBFloat16 && w.dtype != DType::kFloat16 && w.dtype != DType::kInt8)
      return declined("needs bfloat16, float16 or int8, got ", w.dtype);
    if (Support form = supports_form(w, t); !form.yes) return form;
    const cuda::MmaProduct p = product_of(w);
    if (w.dtype == DType::kInt8 && !(p.a_along_k && p.b_along_k))
      return declined("needs k along the rows of ",
                      p.a_along_k ? "b (\"transpose_b\")" : "a (no \"transpose_a\")",
                      " for int8, or a constant");
    return supported();
  }
};

}  // namespace

const AnyTemplate& matmul_mma_cuda() {
  static const MatmulMmaCuda instance;
  return instance;
}

}  // namespace tuner
