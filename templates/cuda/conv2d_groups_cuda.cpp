// conv2d_groups_cuda: convolutions in groups, on any NVIDIA GPU: what the depthwise templates decline.
//
// A thread has one element of the result and adds up in a register (cuda_stages.h). Declines types other than
// float32, and layouts other than NCHW.
#include "templates/cuda/cuda_stages.h"
#include "templates/cuda/cuda_templates.h"

namespace tuner {
namespace {

class Conv2dGroupsCuda final : public ScheduleTemplate<Conv2dWorkload, cuda::StageKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "conv2d_groups_cuda"; }
  int version() const override { return 1; }

  Support supports(const Conv2dWorkload& w, const Target& t) const override {
    if (!t.is_cuda()) return needs_target("a CUDA", t);
    if (w.groups == 1) return declined("needs groups > 1, got 1");
    if (w.dtype != DType::kFloat32) return declined("needs float32, got ", w.dtype);
    if (w.accumulate) return declined("has no accumulate yet: give the residual apart (\"residual\")");
    if (w.layout != "NCHW") return declined("needs layout NCHW, got ", w.layout);
    if (w.out_layout != "NCHW") return declined("needs out_layout NCHW, got ", w.out_layout);
    if (depthwise_conv2d_nchw_cuda().supports(w, t).yes)
      return declined("leaves depthwise convolutions to depthwise_conv2d_nchw_cuda");
    return supported();
  }
  cuda::StageKnobs declare(ConfigSpace& space, const Conv2dWorkload& w, const Target&) const override {
    return cuda::declare_stages(space, compute(w));
  }
  Program compute(const Conv2dWorkload& w) const override { return Workload(w).compute(); }

  void schedule(Schedule& s, const Conv2dWorkload&, const Target&, const cuda::StageKnobs& k,
                const Config& c) const override {
    cuda::schedule_stages(s, k, c);
  }
};

}  // namespace

const AnyTemplate& conv2d_groups_cuda() {
  static const Conv2dGroupsCuda instance;
  return instance;
}

}  // namespace tuner
