// rms_norm_cuda: rows divided by the root of their mean square, on any NVIDIA GPU.
//
//   out[i, j] = x[i, j] / sqrt(mean of the squares of row i + epsilon) * gamma[j]
//
// Two kernels: the sums, each by `lanes` threads, then the rows (cuda_stages.h). Declines types other than
// float32.
#include "templates/cuda/cuda_stages.h"
#include "templates/cuda/cuda_templates.h"

namespace tuner {
namespace {

class RmsNormCuda final : public ScheduleTemplate<RmsNormWorkload, cuda::StageKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "rms_norm_cuda"; }
  int version() const override { return 1; }

  Support supports(const RmsNormWorkload& w, const Target& t) const override {
    if (!t.is_cuda()) return needs_target("a CUDA", t);
    if (w.dtype != DType::kFloat32) return declined("needs float32, got ", w.dtype);
    return supported();
  }
  cuda::StageKnobs declare(ConfigSpace& space, const RmsNormWorkload& w, const Target&) const override {
    return cuda::declare_stages(space, compute(w));
  }
  Program compute(const RmsNormWorkload& w) const override { return Workload(w).compute(); }

  void schedule(Schedule& s, const RmsNormWorkload&, const Target&, const cuda::StageKnobs& k,
                const Config& c) const override {
    cuda::schedule_stages(s, k, c);
  }
};

}  // namespace

const AnyTemplate& rms_norm_cuda() {
  static const RmsNormCuda instance;
  return instance;
}

}  // namespace tuner
