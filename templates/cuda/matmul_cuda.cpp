// matmul_cuda: matrix product with float32 sums on the ordinary cores of any NVIDIA GPU.
//
//   out[i, j] = act(sum over k of a[i, k] * b[k, j] + bias[j])        [batch in blockIdx.z]
//
// The schedule is that of product_schedule.h. Serves batches, transposed operands, any sizes. Constant
// operands are packed ahead, in blocks of k and of rows or columns. Takes float32, and of float16 and
// bfloat16 what tensor cores do not: GPUs before sm_80, one row, one column, one term, sums that are too long
// for their rounding. Such elements are moved as they are and become float32 when a thread reads them to
// multiply. Declines other types.
#include "templates/cuda/cuda_templates.h"
#include "templates/cuda/product_schedule.h"

namespace tuner {
namespace {

using cuda::Product;
using cuda::ProductKnobs;

class MatmulCuda final : public ScheduleTemplate<MatmulWorkload, ProductKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "matmul_cuda"; }
  int version() const override { return 4; }

  Support supports(const MatmulWorkload& w, const Target& t) const override {
    if (!t.is_cuda()) return needs_target("a CUDA", t);
    if (sum_dtype(w.dtype) != DType::kFloat32)
      return declined("needs float32, float16 or bfloat16, got ", w.dtype);
    if (w.dtype != DType::kFloat32 && matmul_mma_cuda().supports(w, t).yes)
      return declined("leaves ", w.dtype, " to matmul_mma_cuda");
    if (w.accumulate) return declined("has no accumulate yet: give the residual apart (\"residual\")");
    return supported();
  }

  ProductKnobs declare(ConfigSpace& space, const MatmulWorkload& w, const Target& t) const override {
    return cuda::declare_product(space, product_of(w), t);
  }

  Program compute(const MatmulWorkload& w) const override { return Workload(w).compute(); }

  void schedule(Schedule& s, const MatmulWorkload& w, const Target&, const ProductKnobs& k,
                const Config& c) const override {
    const Product p = product_of(w);
    const auto [a, b] = cuda::pack_product(s, w, cuda::product_tile(p, k, c));
    cuda::schedule_product(s, p, k, c, {a, b, s.tensor("acc"), s.axes(s.tensor("out"))});
  }

 private:
  static Product product_of(const MatmulWorkload& w) {
    const bool packed_a = Workload(w).is_constant("a"), packed_b = Workload(w).is_constant("b");
    return {.batch = w.batch,
            .m = w.m,
            .n = w.n,
            .k = w.k,
            .packed_a = packed_a,
            .packed_b = packed_b,
            .transposes_a = !packed_a && !w.transpose_a,
            .transposes_b = !packed_b && w.transpose_b,
            // Rows of the stored operands: a vector must not reach from one into the next.
            .vector_a = packed_a ? 4 : cuda::vector_width({w.transpose_a ? w.m : w.k}),
            .vector_b = packed_b ? 4 : cuda::vector_width({w.transpose_b ? w.k : w.n}),
            .vector_out = cuda::vector_width({w.n})};
  }
};

}  // namespace

const AnyTemplate& matmul_cuda() {
  static const MatmulCuda instance;
  return instance;
}

}  // namespace tuner
