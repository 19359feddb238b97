#include "tuner/cli/c_header.h"

#include <cctype>
#include <sstream>

#include "tuner/cli/c_names.h"

namespace tuner::cli {

namespace {

// A buffer's name as a C identifier that is no keyword: "weight.packed" -> "weight_packed".
std::string identifier(const std::string& name) {
  const std::string c_name = as_c_name(name);
  return c_name == "runtime" || c_name == "workspace" || c_name == "pointers" ? c_name + "_" : c_name;
}

const char* c_type(DType dtype) {
  switch (dtype) {
    case DType::kBool:
    case DType::kUInt8:
      return "uint8_t";
    case DType::kInt8:
      return "int8_t";
    case DType::kInt32:
      return "int32_t";
    case DType::kInt64:
      return "int64_t";
    case DType::kFloat16:
    case DType::kBFloat16:
      return "uint16_t";  // C has no such types: their bits
    case DType::kFloat32:
      return "float";
    case DType::kFloat64:
      return "double";
  }
  return "void";
}

bool is_written(const ArgInfo& arg, bool by_packing) {
  return arg.role == "output" || (by_packing && arg.role == "packed");
}

std::string parameters(const std::vector<ArgInfo>& args, bool packing) {
  std::string out;
  for (const ArgInfo& arg : args)
    out += str(out.empty() ? "" : ", ", is_written(arg, packing) ? "" : "const ", c_type(arg.dtype), "* ",
               identifier(arg.name));
  return out;
}

std::string names(const std::vector<ArgInfo>& args) {
  std::string out;
  for (const ArgInfo& arg : args) out += str(out.empty() ? "" : ", ", identifier(arg.name));
  return out;
}

std::string shape_text(const ArgInfo& arg) {
  std::string shape;
  for (const int64_t d : arg.shape) shape += str(shape.empty() ? "" : ", ", d);
  return shape;
}

// One line an argument: "   data: float32 [1, 512, 7, 7], NCHW, input, 100352 bytes".
std::string described(const std::vector<ArgInfo>& args) {
  std::string out;
  for (const ArgInfo& arg : args)
    out += str(" *   ", identifier(arg.name), ": ", arg.dtype, " [", shape_text(arg), "]",
               arg.layout.empty() ? "" : ", " + arg.layout, ", ", arg.role, ", ", arg.bytes, " bytes\n");
  return out;
}

std::string pointer_array(const std::vector<ArgInfo>& args) {
  std::string out = "  void* pointers[] = {";
  for (size_t i = 0; i < args.size(); ++i)
    out += str(i == 0 ? "" : ", ", "(void*)", identifier(args[i].name));
  return out + "};\n";
}

void write_sizes(std::ostream& out, const std::string& prefix, const std::vector<ArgInfo>& args) {
  for (const ArgInfo& arg : args)
    out << "#define " << prefix << as_macro(identifier(arg.name)) << "_BYTES " << arg.bytes << "\n";
}

// What is the same for every kernel, once.
constexpr std::string_view kRules = R"( *
 * Memory     Every pointer must be aligned to 64 bytes (aligned_alloc(64, ...)), and no output may overlap
 *            another argument. Arrays are row-major. A kernel allocates nothing: scratch memory is the
 *            caller's `workspace`, aligned to 64 bytes, whose contents need not be kept between calls.
 * Threads    Any number of threads may call any kernels at once, if each call has its own workspace and
 *            outputs; constants and packed constants may be shared. NAME() runs on the calling thread;
 *            NAME_with() on those of a runtime: tuner_pool.h has a pool for programs without one.
 * Packing    Kernels that take a packed argument want it made once by NAME_prepack(), before the first call
 *            and again whenever the constant changes. It needs no workspace.
 * Result     0; negative when the runtime does not fit the kernel (-1: another ABI version, -2: workspace
 *            missing, -3: no threads).
 * CPU        A CPU without the instructions that a kernel is compiled for would stop the program:
 *            NAME_runs_here() asks before.
 */
)";

void write_kernel_comment(std::ostream& out, const BundleKernel& k) {
  const Manifest& m = k.code.manifest;
  out << "/* ---- " << k.function << "\n * " << k.task.key << "\n * on " << m.target << "\n * " << k.origin
      << "\n *\n * Arguments:\n"
      << described(m.args);
  if (!m.pack_entry.empty()) out << " * Of " << k.function << "_prepack():\n" << described(m.pack_args);
  out << " */\n";
}

void write_runs_here(std::ostream& out, const BundleKernel& k) {
  out << "\n/* 1 when this CPU has the instructions that the kernel is compiled for. */\n"
      << "static inline int32_t " << k.function << "_runs_here(void) {\n";
  if (k.task.target.is_x86()) {
    out << "#if defined(__x86_64__)\n  return ";
    for (size_t i = 0; i < k.instruction_sets.size(); ++i)
      out << (i == 0       ? ""
              : i % 3 == 0 ? " &&\n         "
                           : " && ")
          << "__builtin_cpu_supports(\"" << k.instruction_sets[i] << "\")";
    if (k.instruction_sets.empty()) out << "1";
    out << ";\n#else\n  return 0;\n#endif\n}\n";
  } else {
    out << "#if defined(__aarch64__)\n  return 1;\n#else\n  return 0;\n#endif\n}\n";
  }
}

void write_kernel(std::ostream& out, const BundleKernel& k) {
  const Manifest& m = k.code.manifest;
  const std::string &name = k.function, macro = as_macro(name) + "_";
  write_kernel_comment(out, k);
  write_sizes(out, macro, m.args);
  out << "/* " << name << "() on one thread; " << name
      << "_with() on n threads needs WORKSPACE + n * WORKSPACE_PER_THREAD. */\n"
      << "#define " << macro << "WORKSPACE " << m.workspace_bytes << "\n"
      << "#define " << macro << "WORKSPACE_PER_THREAD " << m.workspace_bytes_per_thread << "\n"
      << "#define " << macro << "WORKSPACE_BYTES " << m.workspace_bytes + m.workspace_bytes_per_thread << "\n"
      << "#define " << macro << "THREADS " << m.threads << " /* it is made for; right on any number */\n\n"
      << "int32_t " << m.entry << "(void* const* args, const tuner_runtime* rt);\n";
  if (!m.pack_entry.empty())
    out << "int32_t " << m.pack_entry << "(void* const* args, const tuner_runtime* rt);\n";

  out << "\n/* On the threads of `runtime`, whose workspace must be as large as said above. */\n"
      << "static inline int32_t " << name << "_with(const tuner_runtime* runtime, "
      << parameters(m.args, false) << ") {\n"
      << pointer_array(m.args) << "  return " << m.entry << "(pointers, runtime);\n}\n\n"
      << "/* On the calling thread. `workspace`: " << macro
      << "WORKSPACE_BYTES bytes, NULL when that is 0. */\n"
      << "static inline int32_t " << name << "(" << parameters(m.args, false) << ", void* workspace) {\n"
      << "  tuner_runtime runtime = tuner_serial_runtime(workspace);\n"
      << "  return " << name << "_with(&runtime, " << names(m.args) << ");\n}\n";
  if (!m.pack_entry.empty())
    out << "\n/* Once, before the first call and whenever a constant changes. */\n"
        << "static inline int32_t " << name << "_prepack(" << parameters(m.pack_args, true) << ") {\n"
        << "  tuner_runtime runtime = tuner_serial_runtime(NULL);\n"
        << pointer_array(m.pack_args) << "  return " << m.pack_entry << "(pointers, &runtime);\n}\n";
  write_runs_here(out, k);
  out << "\n";
}

// A list of arguments as a C array, `name`.
void write_arg_table(std::ostream& out, const std::string& name, const std::vector<ArgInfo>& args) {
  if (args.empty()) return;
  out << "  static const tuner_arg " << name << "[] = {\n";
  for (const ArgInfo& arg : args) {
    CHECK(arg.shape.size() <= 12) << arg.name << " has more than TUNER_MAX_RANK dimensions";
    out << "      {\"" << arg.name << "\", \"" << arg.role << "\", \"" << dtype_name(arg.dtype) << "\", \""
        << arg.layout << "\", " << arg.shape.size() << ", {" << (arg.shape.empty() ? "0" : shape_text(arg))
        << "}, " << arg.bytes << "},\n";
  }
  out << "  };\n";
}

void write_table(std::ostream& out, const std::string& library,
                 const std::vector<const BundleKernel*>& kernels) {
  out << "/* ---- the table */\n"
      << "/* All kernels, in the order of the job files; *count of them. */\n"
      << "static inline const tuner_kernel* " << library << "_kernels(int32_t* count) {\n";
  for (const BundleKernel* k : kernels) {
    write_arg_table(out, k->function + "_args", k->code.manifest.args);
    write_arg_table(out, k->function + "_pack_args", k->code.manifest.pack_args);
  }
  out << "  static const tuner_kernel kernels[] = {\n";
  for (const BundleKernel* k : kernels) {
    const Manifest& m = k->code.manifest;
    const bool packs = !m.pack_entry.empty();
    out << "      {\"" << k->function << "\",\n       \"" << k->task.key << "\",\n       \"" << m.target
        << "\", " << m.threads << ", " << (k->kind == AnswerKind::kExact ? 1 : 0) << ", " << m.args.size()
        << ", " << m.pack_args.size() << ", " << k->function << "_args, "
        << (packs ? k->function + "_pack_args" : "NULL") << ",\n       " << m.workspace_bytes << ", "
        << m.workspace_bytes_per_thread << ", " << m.entry << ", " << (packs ? m.pack_entry : "NULL") << ", "
        << k->function << "_runs_here},\n";
  }
  out << "  };\n  *count = " << kernels.size() << ";\n  return kernels;\n}\n\n"
      << "/* The first kernel for a workload (\"v1 matmul ...\", the key in manifest.json and above) that "
         "this\n"
      << " * CPU can run, made for this number of threads, 0: any. NULL: there is none. */\n"
      << "static inline const tuner_kernel* " << library << "_find(const char* workload, int32_t threads) {\n"
      << "  int32_t count = 0, i;\n"
      << "  const tuner_kernel* kernels = " << library << "_kernels(&count);\n"
      << "  for (i = 0; i < count; ++i)\n"
      << "    if (strcmp(kernels[i].workload, workload) == 0 && (threads == 0 || kernels[i].threads == "
         "threads) "
         "&&\n        kernels[i].runs_here())\n"
      << "      return &kernels[i];\n"
      << "  return NULL;\n}\n";
}

}  // namespace

std::string c_header(const std::string& library, const std::vector<const BundleKernel*>& kernels) {
  const std::string guard = as_macro(library) + "_H_";
  std::ostringstream out;
  out << "/* " << library << ": " << kernels.size() << (kernels.size() == 1 ? " kernel" : " kernels")
      << ", compiled by " << kernels.front()->code.manifest.toolchain
      << ".\n * Written by `tuner build`; link with lib" << library << ".so or lib" << library
      << ".a. C11 and C++.\n"
      << kRules << "#ifndef " << guard << "\n#define " << guard << "\n\n"
      << "#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n\n"
      << "#include \"tuner_kernel.h\"\n#include \"tuner_runtime.h\"\n\n"
      << "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n";
  for (const BundleKernel* k : kernels) write_kernel(out, *k);
  write_table(out, library, kernels);
  out << "\n#ifdef __cplusplus\n} /* extern \"C\" */\n#endif\n\n#endif\n";
  return out.str();
}

}  // namespace tuner::cli
