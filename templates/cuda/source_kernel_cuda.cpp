// source_kernel_cuda: a kernel that its user wrote in CUDA, compiled by NVRTC, or that he brings compiled. Its loops
// are his; its knobs reach them as -DNAME=value and by its launch. Serves `kernel` on NVIDIA GPUs.
//
// A config whose launch the device does not take is not in the space.
#include "templates/cuda/cuda_templates.h"
#include "templates/source_kernel/source_kernel.h"
#include "templates/source_kernel_instance.h"
#include "templates/workload/operators/kernel.h"

namespace tuner {
namespace {

class SourceKernelCuda final : public AnyTemplate {
 public:
  std::string_view name() const override { return "source_kernel_cuda"; }
  int version() const override { return 1; }
  Support supports(const Workload& workload, const Target& target) const override {
    if (workload.get_if<KernelWorkload>() == nullptr) {
      Support other = declined("serves kernel, got ", workload.op_name());
      other.other_operator = true;
      return other;
    }
    if (!target.is_cuda()) return needs_target("a CUDA", target);
    return workload.get_if<KernelWorkload>()->kernel->on_device() ? supported()
                                                                  : declined("the kernel is one of a CPU");
  }
  Result<std::unique_ptr<TemplateInstance>> apply(const Workload& workload,
                                                  const Target& target) const override {
    return source_kernel_instance(workload.get_if<KernelWorkload>()->kernel, name(),
                                  target.shared_bytes_per_block);
  }
};

}  // namespace

const AnyTemplate& source_kernel_cuda() {
  static const SourceKernelCuda made;
  return made;
}

}  // namespace tuner
