// A user's kernel as an instance of a template: its space is the user's, and so are its loops.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "templates/schedule_template.h"
#include "templates/source_kernel/foreign_program.h"
#include "templates/source_kernel/source_kernel.h"

namespace tuner {

class SourceKernelInstance final : public TemplateInstance {
 public:
  SourceKernelInstance(std::shared_ptr<const SourceKernel> kernel, std::string_view name)
      : name_(name), kernel_(std::move(kernel)), math_(reference_program(*kernel_)) {}
  Status seal(int64_t most_shared_bytes) {
    RETURN_IF_ERROR(kernel_->declare(space_, most_shared_bytes));
    return space_.seal();
  }

  const ConfigSpace& space() const override { return space_; }
  const Program& math() const override { return math_; }
  Result<Program> instantiate(const Config& config) const override {
    const Result<ConfigIndex> index = space_.index_of(config);
    if (!index) return invalid_config(name_, ": ", index.message());
    return program_of(*kernel_, config);
  }
  // Its schedule is its command line.
  Result<std::string> schedule_text(const Config& config) const override {
    ASSIGN_OR_RETURN(const Program program, instantiate(config));
    return to_text(program);
  }

 private:
  const std::string name_;
  const std::shared_ptr<const SourceKernel> kernel_;
  const Program math_;
  ConfigSpace space_;
};

// That of template `name`. `most_shared_bytes`: of a block of the device. InvalidConfig: no config is valid there.
inline Result<std::unique_ptr<TemplateInstance>> source_kernel_instance(
    std::shared_ptr<const SourceKernel> kernel, std::string_view name,
    int64_t most_shared_bytes = kMostBlockShared) {
  auto instance = std::make_unique<SourceKernelInstance>(std::move(kernel), name);
  RETURN_IF_ERROR(instance->seal(most_shared_bytes).with_context(str(name, ": ")));
  return std::unique_ptr<TemplateInstance>(std::move(instance));
}

}  // namespace tuner
