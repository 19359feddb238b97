// A matrix product on tensor cores: what the templates of matmul by mma.sync share. They differ in the types
// they serve and in how a product of two numbers is computed.
//
//   out[i, j] = act(sum over k of a[i, k] * b[k, j] + bias[j] + residual[i, j])        [batch in blockIdx.z]
//
// The schedule is that of mma_schedule.h. Serves batches, transposed operands, any sizes but one row, one
// column, one term. Constant operands are packed ahead, in tiles.
#pragma once

#include "templates/cuda/cuda_templates.h"
#include "templates/cuda/mma_schedule.h"

namespace tuner::cuda {

// The product that a workload is. tf32_terms: of float32, 1 or 3 products of tf32 numbers for one
// (tf32_product of ir/intrinsic.h); 0 for other types.
MmaProduct mma_product(const MatmulWorkload& w, int tf32_terms);
// Declines devices without tensor cores, and what no type is served of.
Support supports_mma_form(const MatmulWorkload& w, const MmaProduct& p, const Target& t);

class MatmulMma : public ScheduleTemplate<MatmulWorkload, MmaKnobs> {
 public:
  using ScheduleTemplate::supports;
  explicit MatmulMma(int tf32_terms) : tf32_terms_(tf32_terms) {}

  MmaKnobs declare(ConfigSpace& space, const MatmulWorkload& w, const Target& t) const override;
  Program compute(const MatmulWorkload& w) const override;
  void schedule(Schedule& s, const MatmulWorkload& w, const Target& t, const MmaKnobs& k,
                const Config& c) const override;

 protected:
  MmaProduct product_of(const MatmulWorkload& w) const { return mma_product(w, tf32_terms_); }
  Support supports_form(const MatmulWorkload& w, const Target& t) const {
    return supports_mma_form(w, product_of(w), t);
  }

 private:
  const int tf32_terms_;
};

}  // namespace tuner::cuda
