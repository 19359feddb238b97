// source_kernel_cpu: a function that its user wrote in C or C++, compiled by his compiler. Its loops are his;
// its knobs reach them as -DNAME=value. Serves `kernel` on any CPU.
#include "templates/cpu/cpu_templates.h"
#include "templates/source_kernel/foreign_program.h"
#include "templates/source_kernel/source_kernel.h"
#include "templates/workload/operators/kernel.h"

namespace tuner {
namespace {

class SourceKernelInstance final : public TemplateInstance {
 public:
  explicit SourceKernelInstance(std::shared_ptr<const SourceKernel> kernel)
      : kernel_(std::move(kernel)), math_(reference_program(*kernel_)) {}
  Status seal() {
    RETURN_IF_ERROR(kernel_->declare(space_));
    return space_.seal();
  }

  const ConfigSpace& space() const override { return space_; }
  const Program& math() const override { return math_; }
  Result<Program> instantiate(const Config& config) const override {
    const Result<ConfigIndex> index = space_.index_of(config);
    if (!index) return invalid_config("source_kernel_cpu: ", index.message());
    return program_of(*kernel_, config);
  }
  // Its schedule is its command line.
  Result<std::string> schedule_text(const Config& config) const override {
    ASSIGN_OR_RETURN(const Program program, instantiate(config));
    return to_text(program);
  }

 private:
  const std::shared_ptr<const SourceKernel> kernel_;
  const Program math_;
  ConfigSpace space_;
};

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
    return target.is_cpu() ? supported() : needs_target("a CPU", target);
  }
  Result<std::unique_ptr<TemplateInstance>> apply(const Workload& workload, const Target&) const override {
    auto instance = std::make_unique<SourceKernelInstance>(workload.get_if<KernelWorkload>()->kernel);
    RETURN_IF_ERROR(instance->seal().with_context("source_kernel_cpu: "));
    return std::unique_ptr<TemplateInstance>(std::move(instance));
  }
};

}  // namespace

const AnyTemplate& source_kernel_cpu() {
  static const SourceKernelCpu made;
  return made;
}

}  // namespace tuner
