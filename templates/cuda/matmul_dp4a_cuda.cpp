// matmul_dp4a_cuda: matrix product of bytes on the ordinary cores of any NVIDIA GPU, four products in one
// instruction (dp4a).
//
//   out[i, j] = act(sum over k of a[i, k] * b[k, j] + bias[j])        [batch in blockIdx.z]
//
// The schedule is that of product_schedule.h, of words of four bytes along k. Serves uint8 by int8 with int32
// sums, batches, transposed operands, more than four terms, int32 and requantised outputs. Constant operands
// are packed ahead, in words; others are copied by words if they lie along k in memory, else by bytes, four
// rows of k at a time. A second template where tensor cores serve the task (matmul_mma_cuda); the only one
// elsewhere: before sm_80, of one row or column, and where k lies across the rows of an operand in memory.
// Declines types other than int8.
#include "compiler_core/base/int_math.h"
#include "templates/cuda/cuda_templates.h"
#include "templates/cuda/product_schedule.h"

namespace tuner {
namespace {

using cuda::Product;
using cuda::ProductKnobs;

constexpr int64_t kGroup = 4;  // products of one instruction

class MatmulDp4aCuda final : public ScheduleTemplate<MatmulWorkload, ProductKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "matmul_dp4a_cuda"; }
  int version() const override { return 2; }

  Support supports(const MatmulWorkload& w, const Target& t) const override {
    if (!t.is_cuda()) return needs_target("a CUDA", t);
    if (w.dtype != DType::kInt8) return declined("needs int8, got ", w.dtype);
    // Of one group there is no loop over groups to pad.
    if (w.k <= kGroup) return declined("needs k > ", kGroup, ", got ", w.k);
    if (w.accumulate) return declined("has no accumulate yet: give the residual apart (\"residual\")");
    return matmul_mma_cuda().supports(w, t).yes ? supported_as_second() : supported();
  }

  ProductKnobs declare(ConfigSpace& space, const MatmulWorkload& w, const Target& t) const override {
    return cuda::declare_product(space, product_of(w), t);
  }

  Program compute(const MatmulWorkload& w) const override { return Workload(w).compute(); }

  void schedule(Schedule& s, const MatmulWorkload& w, const Target&, const ProductKnobs& k,
                const Config& c) const override {
    const Product p = product_of(w);
    const auto [a, b] = cuda::pack_product(s, w, cuda::product_tile(p, k, c), kGroup);
    cuda::schedule_product(s, p, k, c, {a, b, s.tensor("acc"), s.axes(s.tensor("out"))});
  }

 private:
  static Product product_of(const MatmulWorkload& w) {
    const bool packed_a = Workload(w).is_constant("a"), packed_b = Workload(w).is_constant("b");
    // Words of the rows of an operand along k; a row that is no whole number of words is copied by bytes.
    const int64_t words = w.k % kGroup == 0 ? cuda::vector_width({w.k / kGroup}) : 1;
    return {.batch = w.batch,
            .m = w.m,
            .n = w.n,
            .k = ceil_div(w.k, kGroup),
            .group = kGroup,
            .packed_a = packed_a,
            .packed_b = packed_b,
            .transposes_a = !packed_a && !w.transpose_a,
            .transposes_b = !packed_b && w.transpose_b,
            .vector_a = packed_a        ? 4
                        : w.transpose_a ? cuda::vector_width({w.m})
                                        : words,
            .vector_b = packed_b        ? 4
                        : w.transpose_b ? words
                                        : cuda::vector_width({w.n}),
            .vector_out = cuda::vector_width({w.n})};
  }
};

}  // namespace

const AnyTemplate& matmul_dp4a_cuda() {
  static const MatmulDp4aCuda instance;
  return instance;
}

}  // namespace tuner
