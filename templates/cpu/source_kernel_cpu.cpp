// source_kernel_cpu: a function that its user wrote in C or C++, compiled by his compiler. Its loops are his;
// its knobs reach them as -DNAME=value. Serves `kernel` on any CPU.
#include "templates/cpu/cpu_templates.h"
#include "templates/source_kernel/source_kernel.h"
#include "templates/source_kernel_instance.h"
#include "templates/workload/operators/kernel.h"

namespace tuner {
namespace {

class SourceKernelCpu final : public AnyTemplate {
 public:
  std::string_view name() const override { return "source_kernel_cpu"; }
  int version() const override { return 1; }
  Support supports(const Workload& workload, const Target& target) const override {
    if (workload.get_if<KernelWorkload>() == nullptr) {
      Support other = declined("serves kernel, got ", workload.op_name());
      other.other_operator = true;
      return other;
    }
    if (!target.is_cpu()) return needs_target("a CPU", target);
    return workload.get_if<KernelWorkload>()->kernel->on_device() ? declined("the kernel is one of a GPU")
                                                                  : supported();
  }
  Result<std::unique_ptr<TemplateInstance>> apply(const Workload& workload, const Target&) const override {
    return source_kernel_instance(workload.get_if<KernelWorkload>()->kernel, name());
  }
};

}  // namespace

const AnyTemplate& source_kernel_cpu() {
  static const SourceKernelCpu made;
  return made;
}

}  // namespace tuner
