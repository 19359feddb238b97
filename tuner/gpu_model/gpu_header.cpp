#include "tuner/gpu_model/gpu_header.h"

#include "compiler_core/runtime/model_library.h"
#include "tuner/model/model_header.h"

namespace tuner {
namespace {

constexpr std::string_view kRules = R"( *
 * Memory     Inputs and outputs are the program's and row-major; no output overlaps anything else. NAME_run() takes pointers of the
 *            host, NAME_run_on() of the device, aligned to 64 bytes. What lies between them is in the context's memory on the
 *            device, which is allocated once.
 * Threads    A context belongs to one thread at a time, and its runs follow one another. Contexts that come from one another by
 *            NAME_share() use one copy of the weights and of the kernels.
 * Streams    NAME_run() returns when the outputs are there. NAME_run_on() queues the run on a CUstream (cudaStream_t) and returns.
 * Weights    The weights file is checked and uploaded when a context is created.
 * Errors     Functions return 0, or a code below zero: tuner_gpu_error(code) says in words what is wrong.
)";

void write_functions(std::ostream& out, const std::string& name, const std::vector<ArgInfo>& tensors) {
  const std::string symbol = table_symbol(name);
  const auto [parameters, inputs, outputs] = header_arguments(tensors);
  const std::string arrays = str("  const void* inputs[] = {", inputs.empty() ? "NULL" : inputs,
                                 "};\n  void* outputs[] = {", outputs, "};\n");
  out << "/* The table: cubins, launches, places and sizes, as data. */\nextern const tuner_gpu_model "
      << symbol << ";\n\n/* 1 when GPU 0 and its driver run the model. */\nstatic inline int32_t " << name
      << "_runs_here(void) { return tuner_gpu_model_runs_here(&" << symbol << ", 0); }\n\n"
      << "/* A context with weights of its own on a GPU, by its number: " << name
      << ".weights of this folder. */\nstatic inline int32_t " << name
      << "_create_on(const char* weights_path, int32_t device, tuner_gpu_context** context) {\n"
      << "  return tuner_gpu_model_create(&" << symbol << ", weights_path, device, context);\n}\n"
      << "/* The same on GPU 0. `runtime` is there because models for CPUs have it: NULL. */\n"
      << "static inline int32_t " << name
      << "_create(const char* weights_path, const tuner_runtime* runtime, tuner_gpu_context** context) {\n"
      << "  (void)runtime;\n  return " << name << "_create_on(weights_path, 0, context);\n}\n\n"
      << "/* Another context, for another thread or stream, with the weights of `other`. */\n"
      << "static inline int32_t " << name
      << "_share(const tuner_gpu_context* other, const tuner_runtime* runtime, tuner_gpu_context** context) "
         "{\n"
      << "  (void)runtime;\n  return tuner_gpu_context_create(other->shared, context);\n}\n\n"
      << "/* Pointers of the host. */\nstatic inline int32_t " << name << "_run(tuner_gpu_context* context"
      << parameters << ") {\n"
      << arrays << "  return tuner_gpu_context_run(context, inputs, outputs);\n}\n"
      << "/* Pointers of the device. */\nstatic inline int32_t " << name
      << "_run_on(tuner_gpu_context* context, void* stream" << parameters << ") {\n"
      << arrays << "  return tuner_gpu_context_run_on(context, stream, inputs, outputs);\n}\n\n"
      << "/* NULL is allowed. */\nstatic inline void " << name
      << "_destroy(tuner_gpu_context* context) { tuner_gpu_context_destroy(context); }\n";
}

}  // namespace

std::string gpu_header(std::span<const ModelToPack> variants, const PlacedModel& placed) {
  std::string targets;
  for (const ModelToPack& model : variants) targets += (targets.empty() ? "" : ", ") + model.target.name();
  return model_header_as({targets, "tuner_gpu_model.h", kRules, write_functions}, variants.front(), placed);
}

}  // namespace tuner
