// pool2d_cuda: maximum or average of windows, on any NVIDIA GPU.
//
//   out[n, c, oh, ow] = max (average) over kh, kw of data[n, c, oh*sh + kh - top, ow*sw + kw - left]
//
// A thread has one window, or, of windows as large as an image, `lanes` threads do (cuda_stages.h). Declines
// types other than float32 and images in blocks of channels. In NHWC threads side by side have channels side
// by side.
#include "templates/cuda/cuda_stages.h"
#include "templates/cuda/cuda_templates.h"

namespace tuner {
namespace {

class Pool2dCuda final : public ScheduleTemplate<Pool2dWorkload, cuda::StageKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "pool2d_cuda"; }
  int version() const override { return 1; }
  bool serves_channels_last() const override { return true; }

  Support supports(const Pool2dWorkload& w, const Target& t) const override {
    if (!t.is_cuda()) return needs_target("a CUDA", t);
    if (w.dtype != DType::kFloat32) return declined("needs float32, got ", w.dtype);
    if (channel_block(w.layout) != 1) return declined("needs layout NCHW or NHWC, got ", w.layout);
    return supported();
  }
  cuda::StageKnobs declare(ConfigSpace& space, const Pool2dWorkload& w, const Target&) const override {
    return cuda::declare_stages(space, compute(w));
  }
  Program compute(const Pool2dWorkload& w) const override { return Workload(w).compute(); }

  void schedule(Schedule& s, const Pool2dWorkload&, const Target&, const cuda::StageKnobs& k,
                const Config& c) const override {
    cuda::schedule_stages(s, k, c);
  }
};

}  // namespace

const AnyTemplate& pool2d_cuda() {
  static const Pool2dCuda instance;
  return instance;
}

}  // namespace tuner
