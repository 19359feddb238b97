// matmul_mma_cuda: matrix product of bfloat16, float16 (float32 sums) or int8 (int32 sums) on the tensor cores of NVIDIA GPUs, sm_80
// and later.
//
//   out[i, j] = act(sum over k of a[i, k] * b[k, j] + bias[j] + residual[i, j])        [batch in blockIdx.z]
//
// The schedule is that of mma_schedule.h. Serves batches, transposed operands, any sizes but one row, one column, one term; float32
// and 16-bit outputs, requantised ones. Constant operands are packed ahead, in tiles. Of int8 k lies along the rows of both operands in
// memory, unless they are constants: bytes cannot be transposed on their way. What is declined of int8 matmul_dp4a_cuda serves.
#include "templates/cuda/cuda_templates.h"
#include "templates/cuda/mma_schedule.h"

namespace tuner {
namespace {

using cuda::MmaKnobs;
using cuda::MmaProduct;

class MatmulMmaCuda final : public ScheduleTemplate<MatmulWorkload, MmaKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "matmul_mma_cuda"; }
  int version() const override { return 1; }

  Support supports(const MatmulWorkload& w, const Target& t) const override {
    if (!t.is_cuda()) return needs_target("a CUDA", t);
    if (w.dtype != DType::kBFloat16 && w.dtype != DType::kFloat16 && w.dtype != DType::kInt8)
      return declined("needs bfloat16, float16 or int8, got ", w.dtype);
    if (t.compute_capability() < 80) return declined("needs sm_80 or later, got ", t.arch);
    if (w.accumulate) return declined("has no accumulate yet: give the residual apart (\"residual\")");
    for (const auto& [extent, name] : {std::pair(w.m, "m"), std::pair(w.n, "n"), std::pair(w.k, "k")})
      if (extent < 2) return declined("needs ", name, " >= 2, got ", extent);
    const MmaProduct p = product_of(w);
    if (w.dtype == DType::kInt8 && !(p.a_along_k && p.b_along_k))
      return declined("needs k along the rows of ",
                      p.a_along_k ? "b (\"transpose_b\")" : "a (no \"transpose_a\")",
                      " for int8, or a constant");
    return supported();
  }

  MmaKnobs declare(ConfigSpace& space, const MatmulWorkload& w, const Target& t) const override {
    return cuda::declare_mma(space, product_of(w), t);
  }

  Program compute(const MatmulWorkload& w) const override { return Workload(w).compute(); }

  void schedule(Schedule& s, const MatmulWorkload& w, const Target&, const MmaKnobs& k,
                const Config& c) const override {
    const MmaProduct p = product_of(w);
    const cuda::MmaTile tile = cuda::mma_tile(p, k, c);
    std::vector<int> batch;
    if (w.batch > 1) batch.push_back(0);
    const int d = static_cast<int>(batch.size());
    const Tensor a = cuda::pack_mma_operand(s, s.tensor("a"), batch, w.transpose_a ? d + 1 : d, tile.block_m,
                                            w.transpose_a ? d : d + 1, tile, p.a_along_k);
    const Tensor b = cuda::pack_mma_operand(s, s.tensor("b"), batch, w.transpose_b ? d : d + 1, tile.block_n,
                                            w.transpose_b ? d + 1 : d, tile, p.b_along_k);
    cuda::schedule_mma(s, p, k, c,
                       {.a = a,
                        .b = b,
                        .acc = s.tensor("acc"),
                        .packed_a = Workload(w).is_constant("a"),
                        .packed_b = Workload(w).is_constant("b"),
                        .out = s.axes(s.tensor("out"))});
  }

 private:
  static MmaProduct product_of(const MatmulWorkload& w) {
    const bool packed_a = Workload(w).is_constant("a"), packed_b = Workload(w).is_constant("b");
    return {.batch = w.batch,
            .m = w.m,
            .n = w.n,
            .k = w.k,
            .a_type = left_dtype(w.dtype),
            .b_type = w.dtype,
            .sum_type = sum_dtype(w.dtype),
            .a_along_k = packed_a || !w.transpose_a,
            .b_along_k = packed_b || w.transpose_b,
            .vector_a = unit_width(w, packed_a        ? 0
                                      : w.transpose_a ? w.m
                                                      : w.k),
            .vector_b = unit_width(w, packed_b        ? 0
                                      : w.transpose_b ? w.k
                                                      : w.n),
            .vector_out = cuda::vector_width({w.n})};
  }

  // Elements that one copy moves: of 16 bytes at most, as many as divide the rows in memory (0: packed ones).
  static int64_t unit_width(const MatmulWorkload& w, int64_t row) {
    int64_t width = 16 / dtype_bytes(w.dtype);
    while (row % width != 0) width /= 2;
    return width;
  }
};

}  // namespace

const AnyTemplate& matmul_mma_cuda() {
  static const MatmulMmaCuda instance;
  return instance;
}

}  // namespace tuner
