#include "templates/cuda/matmul_mma.h"

namespace tuner::cuda {
namespace {

// Elements that one copy moves: of 16 bytes at most, as many as divide the rows in memory (0: packed ones).
int64_t unit_width(const MatmulWorkload& w, int64_t row) {
  int64_t width = 16 / dtype_bytes(w.dtype);
  while (row % width != 0) width /= 2;
  return width;
}

}  // namespace

Support supports_mma_form(const MatmulWorkload& w, const MmaProduct& p, const Target& t) {
  if (t.compute_capability() < 80) return declined("needs sm_80 or later, got ", t.arch);
  if (w.accumulate) return declined("has no accumulate yet: give the residual apart (\"residual\")");
  for (const auto& [extent, name] : {std::pair(w.m, "m"), std::pair(w.n, "n"), std::pair(w.k, "k")})
    if (extent < 2) return declined("needs ", name, " >= 2, got ", extent);
  const int64_t most = p.most_terms() * kMostParts;
  if (most > 0 && w.k > most) return declined("needs k <= ", most, ", got ", w.k);
  return supported();
}

MmaKnobs MatmulMma::declare(ConfigSpace& space, const MatmulWorkload& w, const Target& t) const {
  return declare_mma(space, product_of(w), t);
}

Program MatmulMma::compute(const MatmulWorkload& w) const {
  return tf32_terms_ > 0 ? matmul_of_tf32(w, tf32_terms_) : Workload(w).compute();
}

void MatmulMma::schedule(Schedule& s, const MatmulWorkload& w, const Target&, const MmaKnobs& k,
                         const Config& c) const {
  const MmaProduct p = product_of(w);
  const MmaTile tile = mma_tile(p, k, c);
  std::vector<int> batch;
  if (w.batch > 1) batch.push_back(0);
  const int d = static_cast<int>(batch.size());
  const Tensor a = pack_mma_operand(s, s.tensor("a"), batch, w.transpose_a ? d + 1 : d, tile.block_m,
                                    w.transpose_a ? d : d + 1, tile, p.a_along_k);
  const Tensor b = pack_mma_operand(s, s.tensor("b"), batch, w.transpose_b ? d : d + 1, tile.block_n,
                                    w.transpose_b ? d + 1 : d, tile, p.b_along_k);
  schedule_mma(s, p, k, c,
               {.a = a,
                .b = b,
                .acc = s.tensor("acc"),
                .packed_a = Workload(w).is_constant("a"),
                .packed_b = Workload(w).is_constant("b"),
                .out = s.axes(s.tensor("out"))});
}

MmaProduct mma_product(const MatmulWorkload& w, int tf32_terms) {
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
          .vector_out = vector_width({w.n}),
          .tf32_terms = tf32_terms};
}

}  // namespace tuner::cuda
