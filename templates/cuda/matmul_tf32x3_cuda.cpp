// matmul_tf32x3_cuda: float32 matrix product on the tensor cores of NVIDIA GPUs, sm_80 and later, three
// products of tf32 numbers for one.
//
// What it serves and its schedule: matmul_mma.h. A number x is tf32(x), its first 11 bits, and a rest of 13
// bits, of which tensor cores take 11; a product is rest(a) tf32(b) + tf32(a) rest(b) + tf32(a) tf32(b).
//
// Error. Of a product are missing: the last 2 bits of the rests, at most 3 * 2^-23 of it for either number,
// and the product of both rests, at most 2^-20. That is less than 2^-19 of the product, towards zero, and
// 2^-21.9 on average of random numbers: a sum of k products loses about 2.6e-7 of itself, where the tolerance
// of float32 is 1e-5 of it; what varies from product to product grows with the root of k, the absolute
// tolerance beside it with k, from 1e-6 on (workload/tolerance.cpp). Of very few terms that one is tight:
// fewer than 16 are declined.
// Sums on tensor cores do not round but cut off, always towards zero: up to 2^-23 of the sum at hand with
// every 4 or 8 terms. Summed up so, a thousand terms would be out of tolerance. Hence 16 terms are summed
// from zero on them, small products first, where it costs at most 2^-21 of a part of the sum, and parts are
// added by ordinary additions, a sixteenth of those of matmul_cuda: their errors are smaller than its own.
// The test has a model of such tensor cores and finds less than 0.6 of the tolerance for k from 16 to 16384.
// Infinities are lost: the rest of one is no number, and so is the sum.
#include "templates/cuda/matmul_mma.h"

namespace tuner {
namespace {

class MatmulTf32x3Cuda final : public cuda::MatmulMma {
 public:
  using ScheduleTemplate::supports;
  MatmulTf32x3Cuda() : MatmulMma(/*tf32_terms=*/3) {}
  std::string_view name() const override { return "matmul_tf32x3_cuda"; }
  int version() const override { return 3; }
  std::string_view algorithm() const override { return "tf32x3"; }

  Support supports(const MatmulWorkload& w, const Target& t) const override {
    if (!t.is_cuda()) return needs_target("a CUDA", t);
    if (w.dtype != DType::kFloat32) return declined("needs float32, got ", w.dtype);
    if (w.allow_tf32) return declined("three products where one is allowed (matmul_tf32_cuda)");
    if (w.k < cuda::kLeastTermsOfThree)
      return declined("needs k >= ", cuda::kLeastTermsOfThree, ", got ", w.k);
    if (Support form = supports_form(w, t); !form.yes) return form;
    return supported_as_second();
  }
};

}  // namespace

const AnyTemplate& matmul_tf32x3_cuda() {
  static const MatmulTf32x3Cuda instance;
  return instance;
}

}  // namespace tuner
