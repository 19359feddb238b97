#include "tuner/model/compiled_model.h"

#include <dlfcn.h>

#include <filesystem>

#include "compiler_core/base/mapped_file.h"
#include "compiler_core/codegen/compile.h"
#include "compiler_core/target.h"
#include "tuner/model/model_table.h"

namespace tuner {
namespace {

// Any number of threads is right for the kernels.
Status check_cpu(const CompiledPlan& plan) {
  ASSIGN_OR_RETURN(Target target, parse_target(plan.target));
  target.threads = 1;
  const Status runs = runs_here(target);
  return runs ? runs : invalid_argument("is compiled for \"", plan.target, "\": ", runs.message());
}

Result<std::shared_ptr<const void>> load(const std::string& path, const std::string& digest) {
  ASSIGN_OR_RETURN(const MappedFile file, map_input(path, "the library of a compiled model"));
  if (sha256_hex(file.bytes()) != digest)
    return invalid_argument(path, ": is damaged, or not the library that plan.json tells of");
  void* const library = dlopen(std::filesystem::absolute(path).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return invalid_argument(path, ": cannot be loaded: ", dlerror());
  return std::shared_ptr<const void>(library, [](const void* p) { dlclose(const_cast<void*>(p)); });
}

// What a plan says of a model and what its library does.
Status check_table(const tuner_model& table, const CompiledPlan& plan) {
  if (table.version != TUNER_MODEL_VERSION) return invalid_argument(tuner_model_error(TUNER_MODEL_OTHER_ABI));
  bool same = static_cast<size_t>(table.num_steps) == plan.steps.size() &&
              plan.weights.digest == table.weights_digest &&
              static_cast<size_t>(table.num_inputs) == plan.inputs.size() &&
              static_cast<size_t>(table.num_outputs) == plan.outputs.size();
  for (size_t s = 0; same && s < plan.steps.size(); ++s) same = plan.steps[s].name == table.steps[s].name;
  return same ? Status::ok() : invalid_argument("plan.json tells of another model than the library has");
}

Status status_of(int32_t code) {
  return code == TUNER_MODEL_NO_MEMORY ? failed(tuner_model_error(code))
                                       : invalid_argument(tuner_model_error(code));
}

void call_hook(void* hook, int32_t step, int32_t done) {
  (*static_cast<std::function<void(size_t, bool)>*>(hook))(static_cast<size_t>(step), done != 0);
}

}  // namespace

Status ModelContext::run(const std::vector<const void*>& inputs, const std::vector<void*>& outputs) {
  const tuner_model& table = *context_->model;
  CHECK(std::ssize(inputs) == table.num_inputs && std::ssize(outputs) == table.num_outputs)
      << inputs.size() << " inputs and " << outputs.size() << " outputs";
  const int32_t code = tuner_context_run(context_.get(), inputs.data(), outputs.data());
  if (code == 0) return Status::ok();
  const int32_t step = context_->failed_step;
  return failed(step < 0 ? "" : str("step ", table.steps[step].name, ": "), tuner_model_error(code));
}

void ModelContext::watch(std::function<void(size_t, bool)> hook) {
  const bool any = hook != nullptr;
  hook_ = std::make_unique<std::function<void(size_t, bool)>>(std::move(hook));
  tuner_context_watch(context_.get(), any ? call_hook : nullptr, hook_.get());
}

Result<CompiledModel> CompiledModel::open(const std::string& folder) {
  CompiledModel model;
  ASSIGN_OR_RETURN(model.plan_, read_plan(folder));
  const std::filesystem::path in(folder);
  if (const Status cpu = check_cpu(model.plan_); !cpu) return cpu.with_context(folder + ": ");
  const std::string library = in / model.plan_.library, weights = in / model.plan_.weights.file;
  ASSIGN_OR_RETURN(model.code_, load(library, model.plan_.library_digest));
  const std::string symbol = table_symbol(model.plan_.model);
  model.table_ = static_cast<const tuner_model*>(dlsym(const_cast<void*>(model.code_.get()), symbol.c_str()));
  if (model.table_ == nullptr) return invalid_argument(library, ": has no symbol ", symbol);
  if (const Status same = check_table(*model.table_, model.plan_); !same)
    return same.with_context(library + ": ");
  if (!tuner_model_runs_here(model.table_))
    return status_of(TUNER_MODEL_OTHER_CPU).with_context(folder + ": ");
  tuner_weights* mapped = nullptr;
  if (const int32_t code = tuner_weights_open(model.table_, weights.c_str(), &mapped); code != 0)
    return status_of(code).with_context(weights + ": ");
  model.weights_ = std::shared_ptr<tuner_weights>(mapped, tuner_weights_close);
  return model;
}

Result<ModelContext> CompiledModel::context(const tuner_runtime* runtime) const {
  ModelContext made;
  tuner_context* context = nullptr;
  if (const int32_t code = tuner_context_create(table_, weights_.get(), runtime, &context); code != 0)
    return status_of(code).with_context(plan_.model + ": ");
  made.code_ = code_;
  made.context_.reset(context);
  return made;
}

}  // namespace tuner
