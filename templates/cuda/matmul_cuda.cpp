// matmul_cuda: float32 matrix product on the ordinary cores of any NVIDIA GPU.
//
//   out[i, j] = act(sum over k of a[i, k] * b[k, j] + bias[j])        [batch in blockIdx.z]
//
// The schedule is that of product_schedule.h. Serves batches, transposed operands, any sizes. Constant operands
// are read as they are: nothing is packed ahead on GPUs. Declines types other than float32.
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
  int version() const override { return 2; }

  Support supports(const MatmulWorkload& w, const Target& t) const override {
    if (!t.is_cuda()) return declined("needs a CUDA target, got ", t.name());
    if (w.dtype != DType::kFloat32) return declined("needs float32, got ", w.dtype);
    return supported();
  }

  ProductKnobs declare(ConfigSpace& space, const MatmulWorkload& w, const Target& t) const override {
    return cuda::declare_product(space, product_of(w), t);
  }

  Program compute(const MatmulWorkload& w) const override {
    MatmulWorkload plain = w;
    plain.constant.clear();  // packing ahead is of no use here
    return Workload(plain).compute();
  }

  void schedule(Schedule& s, const MatmulWorkload& w, const Target&, const ProductKnobs& k,
                const Config& c) const override {
    const Product p = product_of(w);
    const cuda::ProductTile tile = cuda::product_tile(p, k, c);
    const Tensor a = pack_tile(s, "a", w.batch > 1, w.transpose_a ? 1 : 0, tile.block_m, tile.chunk);
    const Tensor b = pack_tile(s, "b", w.batch > 1, w.transpose_b ? 0 : 1, tile.block_n, tile.chunk);
    const Tensor acc = s.tensor("acc");
    cuda::schedule_product(s, p, k, c, {a, b, acc, s.axes(s.tensor("out"))});
  }

 private:
  static Product product_of(const MatmulWorkload& w) {
    return {.batch = w.batch,
            .m = w.m,
            .n = w.n,
            .k = w.k,
            .transposes_a = !w.transpose_a,
            .transposes_b = w.transpose_b,
            // Rows of the stored operands: a vector must not reach from one into the next.
            .vector_a = cuda::vector_width({w.transpose_a ? w.m : w.k}),
            .vector_b = cuda::vector_width({w.transpose_b ? w.k : w.n}),
            .vector_out = cuda::vector_width({w.n})};
  }

  // The operand as [batch,] chunks of k, blocks, k, inside of the block: zeros where blocks and chunks reach
  // past it. `blocked`: its stored dimension (0, 1) that is tiled, the other is k.
  static Tensor pack_tile(Schedule& s, std::string_view operand, bool batch, int blocked, int64_t block,
                          int64_t chunk) {
    const int d = batch ? 1 : 0, tiled = d + blocked, k = d + 1 - blocked;
    std::vector<PackDim> dims = {{k, chunk}, {tiled, block}, {k, chunk, true}, {tiled, block, true}};
    if (batch) dims.insert(dims.begin(), {0});
    return s.pack(s.tensor(operand), dims);
  }
};

}  // namespace

const AnyTemplate& matmul_cuda() {
  static const MatmulCuda instance;
  return instance;
}

}  // namespace tuner
