#include "tuner/model/model_header.h"

#include <set>
#include <sstream>

#include "compiler_core/base/c_names.h"
#include "tuner/bundle/c_header.h"
#include "tuner/model/model_table.h"

namespace tuner {
namespace {

constexpr std::string_view kRules = R"( *
 * Memory     Inputs and outputs are the program's: row-major, aligned to 64 bytes (aligned_alloc(64, ...)), and no output overlaps
 *            anything else. What lies between them is in the context, which allocates once, when it is made.
 * Threads    A context belongs to one thread at a time. Any number of them run at once; all that come from one another by
 *            NAME_share() use one copy of the weights. A context runs on its caller's thread, or on the threads of a runtime:
 *            tuner_pool.h has a pool for programs without one.
 * Weights    The weights file is mapped and checked when a context is created: its checksum is that of this model.
 * Errors     Functions return 0, or a code below zero: tuner_model_error(code) says in words what is wrong.
)";

// The model's tensors under C names, each its own.
std::vector<ArgInfo> with_c_names(const std::vector<ArgInfo>& inputs, const std::vector<ArgInfo>& outputs) {
  std::set<std::string> taken = {"context", "INPUTS", "OUTPUTS"};
  std::vector<ArgInfo> named = inputs;
  named.insert(named.end(), outputs.begin(), outputs.end());
  for (ArgInfo& tensor : named) {
    const std::string base = as_c_name(tensor.name);
    std::string name = base;
    // Macros are names in capitals.
    for (int n = 2; taken.contains(name) || taken.contains(as_macro(name)); ++n) name = str(base, "_", n);
    taken.insert(name);
    taken.insert(as_macro(name));
    tensor.name = name;
  }
  return named;
}

// What stands in a C comment must not end it.
std::string in_comment(std::string text) {
  for (size_t at = text.find("*/"); at != std::string::npos; at = text.find("*/", at))
    text.replace(at, 2, "* /");
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  return text;
}

// Which arguments may be one memory.
void write_states(std::ostream& out, const std::vector<StatePair>& states,
                  const std::vector<ArgInfo>& tensors, size_t inputs) {
  for (const StatePair& s : states) {
    const std::string &input = tensors[s.input].name, &output = tensors[inputs + s.output].name;
    out << " * State      " << input << " and " << output << " may be the same memory: a run reads " << input
        << ", then writes " << output << " there for the next one.\n";
  }
}

std::string described(const ArgInfo& tensor, const std::string& own_name) {
  std::string shape;
  for (const int64_t extent : tensor.shape) shape += str(shape.empty() ? "" : ", ", extent);
  return str(" *   ", tensor.name, ": ", tensor.dtype, " [", shape, "], ", tensor.role,
             tensor.name == own_name ? "" : str(" \"", in_comment(own_name), "\""), ", ", tensor.bytes,
             " bytes\n");
}

void write_functions(std::ostream& out, const std::string& name, const std::vector<ArgInfo>& tensors) {
  const std::string symbol = table_symbol(name);
  const auto [parameters, inputs, outputs] = header_arguments(tensors);
  out << "/* The table: steps, places and sizes, as data. */\nextern const tuner_model " << symbol << ";\n\n"
      << "/* 1 when this CPU has the instructions that the model is compiled for. */\n"
      << "static inline int32_t " << name << "_runs_here(void) { return tuner_model_runs_here(&" << symbol
      << "); }\n\n"
      << "/* A context with weights of its own: " << name
      << ".weights of this folder. `runtime`: the threads to run on, which "
         "must outlive\n * the context; NULL: the calling thread. */\n"
      << "static inline int32_t " << name
      << "_create(const char* weights_path, const tuner_runtime* runtime, tuner_context** context) {\n"
      << "  return tuner_model_create(&" << symbol << ", weights_path, runtime, context);\n}\n\n"
      << "/* Another context, for another thread, with the weights of `other`. */\n"
      << "static inline int32_t " << name
      << "_share(const tuner_context* other, const tuner_runtime* runtime, tuner_context** context) {\n"
      << "  return tuner_context_create(&" << symbol << ", other->weights, runtime, context);\n}\n\n"
      << "static inline int32_t " << name << "_run(tuner_context* context" << parameters << ") {\n";
  out << "  const void* inputs[] = {" << (inputs.empty() ? "NULL" : inputs) << "};\n"
      << "  void* outputs[] = {" << outputs << "};\n"
      << "  return tuner_context_run(context, inputs, outputs);\n}\n\n"
      << "/* NULL is allowed. */\nstatic inline void " << name
      << "_destroy(tuner_context* context) { tuner_context_destroy(context); }\n";
}

}  // namespace

HeaderArguments header_arguments(const std::vector<ArgInfo>& tensors) {
  HeaderArguments out;
  for (const ArgInfo& t : tensors) {
    std::string& list = t.is_result() ? out.outputs : out.inputs;
    list += str(list.empty() ? "" : ", ", t.name);
    out.parameters += str(", ", t.is_result() ? "" : "const ", c_type(t.dtype), "* ", t.name);
  }
  return out;
}

std::string model_header(const ModelToPack& model, const PlacedModel& placed, const std::string& targets) {
  return model_header_as({targets, "tuner_model.h", kRules, write_functions}, model, placed);
}

std::string model_header_as(const HeaderForm& form, const ModelToPack& model, const PlacedModel& placed) {
  const std::string& name = model.name;
  const std::string guard = as_macro(name) + "_H_";
  const std::vector<ArgInfo> tensors = with_c_names(placed.inputs, placed.outputs);
  std::ostringstream out;
  out << "/* " << name << ": a model of " << placed.steps.size()
      << (placed.steps.size() == 1 ? " step" : " steps")
      << (model.source.empty() ? "" : ", from " + in_comment(model.source)) << "\n * for " << form.targets
      << ".\n * Written by `tuner compile`; link with lib" << name << ".so or lib" << name
      << ".a. C11 and C++.\n *\n * Arguments of " << name << "_run():\n";
  for (size_t i = 0; i < tensors.size(); ++i)
    out << described(tensors[i], i < placed.inputs.size() ? placed.inputs[i].name
                                                          : placed.outputs[i - placed.inputs.size()].name);
  out << form.rules;
  write_states(out, model.model.states, tensors, placed.inputs.size());
  out << " */\n#ifndef " << guard << "\n#define " << guard << "\n\n#include \"" << form.runtime << "\"\n\n"
      << "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n";
  for (const ArgInfo& t : tensors)
    out << "#define " << as_macro(name) << "_" << as_macro(t.name) << "_BYTES " << t.bytes << "\n";
  out << "\n";
  form.functions(out, name, tensors);
  out << "\n#ifdef __cplusplus\n} /* extern \"C\" */\n#endif\n\n#endif\n";
  return out.str();
}

}  // namespace tuner
