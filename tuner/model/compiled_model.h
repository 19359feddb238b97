// CompiledModel: the output of `tuner compile`, opened and run in this process. Loading its library trusts
// it: a folder from elsewhere is a program from elsewhere.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler_core/runtime/kernel.h"
#include "compiler_core/runtime/model_library.h"
#include "tuner/model/plan_file.h"

namespace tuner {

// One caller's memory to run a model in. It keeps the model loaded.
class ModelContext {
 public:
  // One pointer of the host for each input and output of the table, aligned to 64 bytes. Failed, with the
  // step: a kernel refused, or faulted.
  Status run(const std::vector<const void*>& inputs, const std::vector<void*>& outputs);
  // Whether later runs leave no step out, so that each is checked or timed.
  void run_every_step(bool every);
  // For checks: what no step writes holds this then.
  void fill_arena(char byte);
  // Called before (done: false) and after each step of later runs that runs; empty: no more.
  void watch(std::function<void(size_t step, bool done)> hook);
  // Where values between steps lie, of table().arena_bytes; on a GPU: what fetch() copied of it.
  const char* arena() const { return gpu_ ? copied_.as<char>() : context_->arena; }
  // For checks, inside of a hook: what the steps so far have made is in arena() and in `outputs` then, those
  // of the run. Failed: the GPU.
  Status fetch(const std::vector<void*>& outputs);
  // Inside of a hook, when a step is done: how long it took on the device's clock. Nothing: there is no such
  // clock, and the caller's is as good.
  std::optional<double> step_ns() const;

 private:
  friend class CompiledModel;
  struct Destroy {
    void operator()(tuner_context* context) const { tuner_context_destroy(context); }
  };
  std::shared_ptr<const void> code_;
  std::unique_ptr<std::function<void(size_t, bool)>> hook_;  // the context points to it
  struct DestroyGpu {
    void operator()(tuner_gpu_context* context) const { tuner_gpu_context_destroy(context); }
  };
  const tuner_model& table() const { return gpu_ ? gpu_->shared->model->model : *context_->model; }

  std::unique_ptr<tuner_context, Destroy> context_;  // of a CPU
  std::unique_ptr<tuner_gpu_context, DestroyGpu> gpu_;
  AlignedBuffer copied_;
};

class CompiledModel {
 public:
  // Reads plan.json, checks library and weights against it and against each other, and maps the weights.
  // InvalidArgument: a file is missing, damaged or belongs to another model, or the CPU lacks what the model
  // is compiled for. `cpu`: which of a library for several CPUs; nothing: the first that this machine has.
  static Result<CompiledModel> open(const std::string& folder, std::optional<size_t> cpu = {});

  const CompiledPlan& plan() const { return plan_; }
  // A function or table of its libraries; null: there is none of this name.
  void* symbol(const std::string& name) const;
  const tuner_model& table() const { return library_.table(); }  // as long as this or a context lives

  // `runtime`: the threads to run on, which must outlive the context; null: the caller's alone.
  Result<ModelContext> context(const tuner_runtime* runtime = nullptr) const;

 private:
  CompiledPlan plan_;
  ModelLibrary library_;
};

}  // namespace tuner
