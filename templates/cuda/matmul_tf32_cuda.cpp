// matmul_tf32_cuda: float32 matrix product on the tensor cores of NVIDIA GPUs, sm_80 and later, for tasks
// that allow TF32.
//
// What it serves and its schedule: matmul_mma.h. Of each number the tensor cores take the first 11 bits, as
// they lie in memory: nothing is rounded on the way. The tolerance of such tasks has room for that
// (workload/tolerance.cpp). It stands before matmul_cuda in the list: who allows TF32 wants it by default.
#include "templates/cuda/matmul_mma.h"

namespace tuner {
namespace {

class MatmulTf32Cuda final : public cuda::MatmulMma {
 public:
  using ScheduleTemplate::supports;
  MatmulTf32Cuda() : MatmulMma(/*tf32_terms=*/1) {}
  std::string_view name() const override { return "matmul_tf32_cuda"; }
  int version() const override { return 3; }
  std::string_view algorithm() const override { return "tf32"; }

  Support supports(const MatmulWorkload& w, const Target& t) const override {
    if (!t.is_cuda()) return needs_target("a CUDA", t);
    if (w.dtype != DType::kFloat32) return declined("needs float32, got ", w.dtype);
    if (!w.allow_tf32) return declined("needs \"allow_tf32\": it takes 11 bits of each number");
    return supports_form(w, t);
  }
};

}  // namespace

const AnyTemplate& matmul_tf32_cuda() {
  static const MatmulTf32Cuda instance;
  return instance;
}

}  // namespace tuner
