#include "tuner/model/compiled_model.h"

#include <dlfcn.h>

#include <cstring>
#include <filesystem>

#include "compiler_core/codegen/compile.h"
#include "compiler_core/target.h"

namespace tuner {
namespace {

// Any number of threads is right for the kernels.
Status check_cpu(const CompiledPlan& plan) {
  // Opening the library asks the device, and which of several CPUs this one is.
  if (plan.on_gpu || !plan.cpus.empty()) return Status::ok();
  ASSIGN_OR_RETURN(Target target, parse_target(plan.target));
  target.threads = 1;
  const Status runs = runs_here(target);
  return runs ? runs : invalid_argument("is compiled for \"", plan.target, "\": ", runs.message());
}

// What a plan says of a model and what its library does.
Status check_table(const tuner_model& table, const CompiledPlan& plan) {
  bool same = static_cast<size_t>(table.num_steps) == plan.steps.size() &&
              plan.weights.digest == table.weights_digest &&
              static_cast<size_t>(table.num_inputs) == plan.inputs.size() &&
              static_cast<size_t>(table.num_outputs) == plan.outputs.size();
  for (size_t s = 0; same && s < plan.steps.size(); ++s)
    same = plan.steps[s].name == table.steps[s].name &&
           plan.steps[s].guards.size() == static_cast<size_t>(table.steps[s].num_guards);
  return same ? Status::ok() : invalid_argument("plan.json tells of another model than the library has");
}

ModelFiles files_of(const CompiledPlan& plan, std::optional<size_t> cpu) {
  std::string targets;
  for (const std::string& target : plan.cpus) targets += (targets.empty() ? "" : ", ") + target;
  ModelFiles files{.model = plan.model,
                   .target = plan.cpus.empty() || cpu ? plan.target : targets,
                   .on_gpu = plan.on_gpu,
                   .cpu = cpu,
                   .weights = plan.weights.file,
                   .library = {plan.library, plan.library_digest},
                   .others = {}};
  for (const PlanKernel& kernel : plan.kernels)
    if (kernel.has_library()) files.others.push_back({kernel.used.library, kernel.used.digest});
  return files;
}

void call_hook(void* hook, int32_t step, int32_t done) {
  (*static_cast<std::function<void(size_t, bool)>*>(hook))(static_cast<size_t>(step), done != 0);
}

}  // namespace

Status ModelContext::run(const std::vector<const void*>& inputs, const std::vector<void*>& outputs) {
  const tuner_model& table = this->table();
  CHECK(std::ssize(inputs) == table.num_inputs && std::ssize(outputs) == table.num_outputs)
      << inputs.size() << " inputs and " << outputs.size() << " outputs";
  const int32_t code = gpu_ ? tuner_gpu_context_run(gpu_.get(), inputs.data(), outputs.data())
                            : tuner_context_run(context_.get(), inputs.data(), outputs.data());
  if (code == 0) return Status::ok();
  const int32_t step = gpu_ ? gpu_->failed_step : context_->failed_step;
  return failed(step < 0 ? "" : str("step ", table.steps[step].name, ": "), tuner_gpu_error(code));
}

Status ModelContext::fetch(const std::vector<void*>& outputs) {
  if (!gpu_) return Status::ok();
  if (copied_.bytes() < table().arena_bytes) copied_ = AlignedBuffer(table().arena_bytes);
  const int32_t code = tuner_gpu_context_fetch(gpu_.get(), copied_.data(), outputs.data());
  return code == 0 ? Status::ok() : failed(tuner_gpu_error(code));
}

std::optional<double> ModelContext::step_ns() const {
  return gpu_ ? std::optional(gpu_->step_ns) : std::nullopt;
}

void ModelContext::run_every_step(bool every) {
  if (context_) tuner_context_run_every_step(context_.get(), every ? 1 : 0);  // a GPU runs all anyway
}

void ModelContext::fill_arena(char byte) {
  if (gpu_) {
    // A failure shows in the run that follows.
    (void)tuner_gpu_context_fill_arena(gpu_.get(), static_cast<unsigned char>(byte));
    return;
  }
  std::memset(context_->arena, byte, static_cast<size_t>(context_->model->arena_bytes));
}

void ModelContext::watch(std::function<void(size_t, bool)> hook) {
  const bool any = hook != nullptr;
  hook_ = std::make_unique<std::function<void(size_t, bool)>>(std::move(hook));
  if (gpu_)
    tuner_gpu_context_watch(gpu_.get(), any ? call_hook : nullptr, hook_.get());
  else
    tuner_context_watch(context_.get(), any ? call_hook : nullptr, hook_.get());
}

Result<CompiledModel> CompiledModel::open(const std::string& folder, std::optional<size_t> cpu) {
  CompiledModel model;
  ASSIGN_OR_RETURN(model.plan_, read_plan(folder, cpu));
  const std::filesystem::path in(folder);
  if (const Status cpu = check_cpu(model.plan_); !cpu) return cpu.with_context(folder + ": ");
  const ModelFiles files = files_of(model.plan_, cpu);
  ASSIGN_OR_RETURN(model.library_, ModelLibrary::open(folder, files));
  if (!model.plan_.cpus.empty() && model.library_.cpu() >= model.plan_.cpus.size())
    return invalid_argument(folder, ": the plan names ", model.plan_.cpus.size(),
                            " CPUs, and the library has more: compile the model again");
  // Kernels may need less than their target has.
  if (!model.plan_.cpus.empty() && model.plan_.cpus[model.library_.cpu()] != model.plan_.target) {
    ASSIGN_OR_RETURN(model.plan_, read_plan(folder, model.library_.cpu()));
  }
  if (const Status same = check_table(model.table(), model.plan_); !same)
    return same.with_context((in / files.library.path).string() + ": ");
  return model;
}

void* CompiledModel::symbol(const std::string& name) const {
  return dlsym(const_cast<void*>(library_.code().get()), name.c_str());
}

Result<ModelContext> CompiledModel::context(const tuner_runtime* runtime) const {
  ModelContext made;
  if (library_.gpu() != nullptr) {
    tuner_gpu_context* on_device = nullptr;
    if (const int32_t code = tuner_gpu_context_create(library_.gpu(), &on_device); code != 0)
      return model_status(code).with_context(plan_.model + ": ");
    made.code_ = library_.code();
    made.gpu_.reset(on_device);
    return made;
  }
  tuner_context* context = nullptr;
  if (const int32_t code = tuner_context_create(&table(), library_.weights(), runtime, &context); code != 0)
    return model_status(code).with_context(plan_.model + ": ");
  made.code_ = library_.code();
  made.context_.reset(context);
  return made;
}

}  // namespace tuner
