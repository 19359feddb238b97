#include "tuner/cli/c_header.h"

#include <cctype>
#include <sstream>

namespace tuner::cli {

namespace {

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

// A buffer's name as a C identifier that is no keyword: "weight.packed" -> "weight_packed".
std::string identifier(const std::string& name) {
  std::string out;
  for (const char c : name) out += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0])) != 0) out = "arg_" + out;
  return out;
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

// One line an argument: "   data    float32 [1, 512, 7, 7], NCHW, input, 100352 bytes".
std::string described(const std::vector<ArgInfo>& args) {
  std::string out;
  for (const ArgInfo& arg : args) {
    std::string shape;
    for (const int64_t d : arg.shape) shape += str(shape.empty() ? "" : ", ", d);
    out += str(" *   ", identifier(arg.name), ": ", arg.dtype, " [", shape, "]",
               arg.layout.empty() ? "" : ", " + arg.layout, ", ", arg.role, ", ", arg.bytes, " bytes\n");
  }
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
    out << "#define " << prefix << upper(identifier(arg.name)) << "_BYTES " << arg.bytes << "\n";
}

}  // namespace

std::string c_header(const Manifest& m, const HeaderText& text) {
  const std::string &name = text.name, macro = upper(name) + "_";
  std::ostringstream out;
  out << "/* " << text.workload << "\n * on " << m.target << "\n * " << text.origin << "\n *\n"
      << " * Written by `tuner build`; link with lib" << name << ".so. C11 and C++.\n *\n"
      << " * Arguments, row-major, in this order:\n"
      << described(m.args)
      << " * Every pointer must be aligned to 64 bytes (aligned_alloc(64, ...)), and no output may overlap "
         "another argument.\n"
      << " * A function returns 0, or a negative number when the runtime does not fit the kernel.\n";
  if (!m.pack_entry.empty())
    out << " * Packed arguments are made once from the constants by " << name << "_prepack():\n"
        << described(m.pack_args);
  out << " */\n#ifndef " << macro << "H_\n#define " << macro
      << "H_\n\n#include <stddef.h>\n#include <stdint.h>\n\n"
      << "#include \"tuner_runtime.h\"\n\n";

  write_sizes(out, macro, m.args);
  out << "/* " << name << "() on one thread; " << name
      << "_with() on n threads needs WORKSPACE + n * WORKSPACE_PER_THREAD. */\n"
      << "#define " << macro << "WORKSPACE " << m.workspace_bytes << "\n"
      << "#define " << macro << "WORKSPACE_PER_THREAD " << m.workspace_bytes_per_thread << "\n"
      << "#define " << macro << "WORKSPACE_BYTES " << m.workspace_bytes + m.workspace_bytes_per_thread
      << "\n\n"
      << "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n"
      << "/* The kernel itself; see tuner_runtime.h. */\n"
      << "int32_t " << m.entry << "(void* const* args, const tuner_runtime* rt);\n";
  if (!m.pack_entry.empty())
    out << "int32_t " << m.pack_entry << "(void* const* args, const tuner_runtime* rt);\n";

  out << "\nstatic inline void " << name
      << "_serial_for(void* pool, int32_t extent, tuner_task task, void* closure) {\n"
      << "  (void)pool;\n  task(closure, 0, extent, 0);\n}\n\n"
      << "/* On the threads of `runtime`, whose workspace must be as large as said above. */\n"
      << "static inline int32_t " << name << "_with(const tuner_runtime* runtime, "
      << parameters(m.args, false) << ") {\n"
      << pointer_array(m.args) << "  return " << m.entry << "(pointers, runtime);\n}\n\n"
      << "/* On the calling thread. `workspace`: " << macro
      << "WORKSPACE_BYTES bytes, NULL when that is 0. */\n"
      << "static inline int32_t " << name << "(" << parameters(m.args, false) << ", void* workspace) {\n"
      << "  tuner_runtime runtime = {TUNER_ABI_VERSION, 1, " << name << "_serial_for, NULL, workspace};\n"
      << "  return " << name << "_with(&runtime, " << names(m.args) << ");\n}\n";
  if (!m.pack_entry.empty())
    out << "\n/* Once, before the first call and whenever a constant changes. Needs no workspace. */\n"
        << "static inline int32_t " << name << "_prepack(" << parameters(m.pack_args, true) << ") {\n"
        << "  tuner_runtime runtime = {TUNER_ABI_VERSION, 1, " << name << "_serial_for, NULL, NULL};\n"
        << pointer_array(m.pack_args) << "  return " << m.pack_entry << "(pointers, &runtime);\n}\n";
  out << "\n#ifdef __cplusplus\n} /* extern \"C\" */\n#endif\n\n#endif\n";
  return out.str();
}

}  // namespace tuner::cli
