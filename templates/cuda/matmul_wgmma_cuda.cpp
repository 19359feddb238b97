// matmul_wgmma_cuda: matrix product of bfloat16 or float16, with float32 sums, on the tensor cores of Hopper
// GPUs (sm_90a), by warpgroups that fetch both operands from shared memory.
//
//   out[i, j] = act(sum over k of a[i, k] * b[k, j] + bias[j] + residual[i, j])        [batch in blockIdx.z]
//
// The schedule is that of wgmma_schedule.h. Serves batches, transposed operands, any sizes whose rows in
// memory are even; constant operands are packed ahead. What is declined matmul_mma_cuda serves.
#include "templates/cuda/cuda_templates.h"
#include "templates/cuda/matmul_mma.h"
#include "templates/cuda/wgmma_schedule.h"

namespace tuner {
namespace {

cuda::MmaProduct product_of(const MatmulWorkload& w) {
  cuda::MmaProduct p = cuda::mma_product(w, /*tf32_terms=*/0);
  p.by_warpgroups = true;
  return p;
}

class MatmulWgmmaCuda final : public ScheduleTemplate<MatmulWorkload, cuda::WgmmaKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "matmul_wgmma_cuda"; }
  int version() const override { return 2; }

  Support supports(const MatmulWorkload& w, const Target& t) const override {
    if (!t.is_cuda()) return needs_target("a CUDA", t);
    if (t.arch != "sm_90a") return declined("needs sm_90a, got ", t.arch);
    if (w.dtype != DType::kBFloat16 && w.dtype != DType::kFloat16)
      return declined("needs bfloat16 or float16, got ", w.dtype);
    const cuda::MmaProduct p = product_of(w);
    if (Support form = cuda::supports_mma_form(w, p, t); !form.yes) return form;
    if (!cuda::serves_wgmma(p))
      return declined("needs rows of an even length, got ", p.vector_a == 1 ? "a" : "b", " with an odd one");
    return supported();
  }

  cuda::WgmmaKnobs declare(ConfigSpace& space, const MatmulWorkload& w, const Target& t) const override {
    return cuda::declare_wgmma(space, product_of(w), t);
  }
  Program compute(const MatmulWorkload& w) const override { return Workload(w).compute(); }

  void schedule(Schedule& s, const MatmulWorkload& w, const Target&, const cuda::WgmmaKnobs& k,
                const Config& c) const override {
    const cuda::MmaProduct p = product_of(w);
    const cuda::MmaTile tile = cuda::wgmma_tile(p, k, c);
    std::vector<int> batch;
    if (w.batch > 1) batch.push_back(0);
    const int d = static_cast<int>(batch.size());
    const Tensor a = cuda::pack_wgmma_operand(s, s.tensor("a"), batch, w.transpose_a ? d + 1 : d,
                                              tile.block_m, w.transpose_a ? d : d + 1, tile, p.a_along_k);
    const Tensor b = cuda::pack_wgmma_operand(s, s.tensor("b"), batch, w.transpose_b ? d : d + 1,
                                              tile.block_n, w.transpose_b ? d + 1 : d, tile, p.b_along_k);
    cuda::schedule_wgmma(s, p, k, c,
                         {.a = a,
                          .b = b,
                          .acc = s.tensor("acc"),
                          .packed_a = Workload(w).is_constant("a"),
                          .packed_b = Workload(w).is_constant("b"),
                          .out = s.axes(s.tensor("out"))});
  }
};

}  // namespace

const AnyTemplate& matmul_wgmma_cuda() {
  static const MatmulWgmmaCuda instance;
  return instance;
}

}  // namespace tuner
