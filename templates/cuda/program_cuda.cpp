// program_cuda: any fragment of a network, on any NVIDIA GPU: what no other template computes. The schedule
// is that of cuda_stages.h.
//
// Declines recurrent layers, whose steps follow one another.
#include "compiler_core/graph/graph.h"
#include "templates/cuda/cuda_stages.h"
#include "templates/cuda/cuda_templates.h"

namespace tuner {
namespace {

class ProgramCuda final : public ScheduleTemplate<ProgramWorkload, cuda::StageKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "program_cuda"; }
  int version() const override { return 1; }

  Support supports(const ProgramWorkload& w, const Target& t) const override {
    if (!t.is_cuda()) return needs_target("a CUDA", t);
    for (const graph::Node& node : w.fragment->nodes)
      if (node.op == "tuner.Recurrence")
        return declined("has no recurrent layers: their steps follow one another, and kernels do not wait");
    return supported();
  }
  cuda::StageKnobs declare(ConfigSpace& space, const ProgramWorkload& w, const Target&) const override {
    return cuda::declare_stages(space, compute(w));
  }
  Program compute(const ProgramWorkload& w) const override { return Workload(w).compute(); }

  void schedule(Schedule& s, const ProgramWorkload&, const Target&, const cuda::StageKnobs& k,
                const Config& c) const override {
    cuda::schedule_stages(s, k, c);
  }
};

}  // namespace

const AnyTemplate& program_cuda() {
  static const ProgramCuda instance;
  return instance;
}

}  // namespace tuner
