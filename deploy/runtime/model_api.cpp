// The part of the C API that runs compiled models: folders of `tuner compile`.
#include <memory>

#include "compiler_core/runtime/model_library.h"
#include "compiler_core/runtime/thread_pool.h"
#include "deploy/runtime/call.h"
#include "deploy/runtime/pools.h"
#include "deploy/runtime/tuner_runtime_api.h"

struct tuner_loaded_model {
  tuner::ModelLibrary library;
};

struct tuner_model_context {
  struct Destroy {
    void operator()(tuner_context* context) const { tuner_context_destroy(context); }
  };
  std::shared_ptr<const void> code;         // the model's library stays loaded
  std::unique_ptr<tuner::ThreadPool> pool;  // null: the caller's thread
  unsigned forks = 0;                       // when the pool was made
  std::unique_ptr<tuner_context, Destroy> context;

  ~tuner_model_context() {
    // In a child of fork() the threads are not there to be joined.
    if (forks != tuner::runtime::forks()) static_cast<void>(pool.release());
  }
};

namespace tuner::runtime {
namespace {

constexpr int32_t kMostThreads = 4096;

// Tensor `index` of `count`, as the API tells it. What it points to is the library's.
Status tell(const char* call, const tuner_arg* tensors, int32_t count, int32_t index,
            tuner_operand* operand) {
  if (index < 0 || index >= count)
    return invalid_argument(call, ": expected an index from 0 to ", count - 1, ", found ", index);
  const tuner_arg& t = tensors[index];
  *operand = {t.name, t.role, t.dtype, t.rank, t.shape, t.bytes};
  return Status::ok();
}

Status check_pointers(const char* kind, const void* const* pointers, int32_t count) {
  if (pointers == nullptr && count > 0) return invalid_argument("tuner_model_run: ", kind, "s is NULL");
  for (int32_t i = 0; i < count; ++i)
    if (pointers[i] == nullptr) return invalid_argument("tuner_model_run: ", kind, " ", i, " is NULL");
  return Status::ok();
}

}  // namespace
}  // namespace tuner::runtime

using tuner::invalid_argument;
using tuner::Status;
using tuner::runtime::guarded;

extern "C" {

tuner_code tuner_model_open(const char* folder, tuner_loaded_model** model) {
  return guarded([&]() -> Status {
    if (folder == nullptr || model == nullptr)
      return invalid_argument("tuner_model_open: folder or model is NULL");
    *model = nullptr;
    ASSIGN_OR_RETURN(const tuner::ModelFiles files, tuner::read_model_files(folder));
    if (files.on_gpu)
      return invalid_argument(folder, ": is compiled for \"", files.target,
                              "\", and this library runs models for CPUs; include ", files.model,
                              ".h of the folder, whose functions run it");
    ASSIGN_OR_RETURN(tuner::ModelLibrary library, tuner::ModelLibrary::open(folder, files));
    *model = new tuner_loaded_model{std::move(library)};
    return Status::ok();
  });
}

void tuner_model_close(tuner_loaded_model* model) { delete model; }

int32_t tuner_model_num_inputs(const tuner_loaded_model* model) {
  return model == nullptr ? 0 : model->library.table().num_inputs;
}
int32_t tuner_model_num_outputs(const tuner_loaded_model* model) {
  return model == nullptr ? 0 : model->library.table().num_outputs;
}

tuner_code tuner_model_get_input(const tuner_loaded_model* model, int32_t index, tuner_operand* operand) {
  return guarded([&]() -> Status {
    if (model == nullptr || operand == nullptr)
      return invalid_argument("tuner_model_get_input: model or operand is NULL");
    const tuner_model& table = model->library.table();
    return tuner::runtime::tell("tuner_model_get_input", table.inputs, table.num_inputs, index, operand);
  });
}

tuner_code tuner_model_get_output(const tuner_loaded_model* model, int32_t index, tuner_operand* operand) {
  return guarded([&]() -> Status {
    if (model == nullptr || operand == nullptr)
      return invalid_argument("tuner_model_get_output: model or operand is NULL");
    const tuner_model& table = model->library.table();
    return tuner::runtime::tell("tuner_model_get_output", table.outputs, table.num_outputs, index, operand);
  });
}

tuner_code tuner_model_new_context(const tuner_loaded_model* model, int32_t threads,
                                   tuner_model_context** context) {
  return guarded([&]() -> Status {
    if (model == nullptr || context == nullptr)
      return invalid_argument("tuner_model_new_context: model or context is NULL");
    *context = nullptr;
    if (threads < 0 || threads > tuner::runtime::kMostThreads)
      return invalid_argument("tuner_model_new_context: expected 0 to ", tuner::runtime::kMostThreads,
                              " threads, found ", threads);
    const tuner_model& table = model->library.table();
    const int32_t used = threads == 0 ? table.threads : threads;
    auto made = std::make_unique<tuner_model_context>();
    made->code = model->library.code();
    made->forks = tuner::runtime::forks();
    if (used > 1) made->pool = std::make_unique<tuner::ThreadPool>(used);
    const tuner_runtime runtime = made->pool ? made->pool->runtime(nullptr) : tuner_serial_runtime(nullptr);
    tuner_context* raw = nullptr;
    const int32_t code = tuner_context_create(&table, model->library.weights(), &runtime, &raw);
    if (code != 0) return tuner::model_status(code).with_context("tuner_model_new_context: ");
    made->context.reset(raw);
    *context = made.release();
    return Status::ok();
  });
}

void tuner_model_free_context(tuner_model_context* context) { delete context; }

tuner_code tuner_model_run(tuner_model_context* context, const void* const* inputs, void* const* outputs) {
  return guarded([&]() -> Status {
    if (context == nullptr) return invalid_argument("tuner_model_run: context is NULL");
    tuner_context* const run = context->context.get();
    RETURN_IF_ERROR(tuner::runtime::check_pointers("input", inputs, run->model->num_inputs));
    RETURN_IF_ERROR(tuner::runtime::check_pointers("output", outputs, run->model->num_outputs));
    if (context->pool != nullptr && context->forks != tuner::runtime::forks())
      return invalid_argument(
          "tuner_model_run: the context's threads are those of the process before fork(); make one here");
    const int32_t code = tuner_context_run(run, inputs, outputs);
    if (code == 0) return Status::ok();
    if (run->failed_step < 0) return tuner::model_status(code).with_context("tuner_model_run: ");
    return tuner::failed("tuner_model_run: step ", run->model->steps[run->failed_step].name, ": ",
                         tuner_model_error(code));
  });
}

}  // extern "C"
