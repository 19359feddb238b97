#include "tuner/bundle/c_header.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <span>
#include <sstream>

#include "compiler_core/base/c_names.h"
#include "tuner/bundle/c_signature.h"

namespace tuner {

const char* c_type(DType dtype) {
  switch (dtype) {
    case DType::kBool:
    case DType::kUInt8:
      return "uint8_t";
    case DType::kInt8:
      return "int8_t";
    case DType::kInt16:
      return "int16_t";
    case DType::kUInt16:
      return "uint16_t";
    case DType::kInt32:
      return "int32_t";
    case DType::kUInt32:
      return "uint32_t";
    case DType::kInt64:
      return "int64_t";
    case DType::kUInt64:
      return "uint64_t";
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

namespace {

// Of what is packed only its size is known to a program.
std::string c_pointer(const ArgInfo& arg, bool packing) {
  const bool packed = arg.role == BufferRole::kPacked, written = arg.is_result() || (packed && packing);
  return str(written ? "" : "const ", packed ? "void" : c_type(arg.dtype), "* ", arg.name);
}

std::string parameters(const std::vector<ArgInfo>& args, bool packing) {
  std::string out;
  for (const ArgInfo& arg : args) out += str(out.empty() ? "" : ", ", c_pointer(arg, packing));
  return out;
}

std::string names(const std::vector<ArgInfo>& args) {
  std::string out;
  for (const ArgInfo& arg : args) out += str(out.empty() ? "" : ", ", arg.name);
  return out;
}

std::string shape_text(const ArgInfo& arg) {
  std::string shape;
  for (const int64_t d : arg.shape) shape += str(shape.empty() ? "" : ", ", d);
  return shape;
}

constexpr std::string_view kInAndOut = "in and out: each call adds to what it holds";

// One line an argument: "   data: float32 [1, 512, 7, 7], NCHW, input, 100352 bytes".
std::string described(const std::vector<ArgInfo>& args, const std::string& function) {
  std::string out;
  for (const ArgInfo& arg : args) {
    const std::string what =
        arg.role == BufferRole::kPacked
            ? str("made by ", function, "_prepack()")
            : str(arg.dtype, " [", shape_text(arg), "]", arg.layout.empty() ? "" : ", " + arg.layout, ", ",
                  arg.role == BufferRole::kInOut ? kInAndOut : buffer_role_name(arg.role));
    out += str(" *   ", arg.name, ": ", what, ", ", arg.bytes, " bytes\n");
  }
  return out;
}

std::string pointer_array(const std::vector<ArgInfo>& args) {
  std::string out = "  void* pointers[] = {";
  for (size_t i = 0; i < args.size(); ++i) out += str(i == 0 ? "" : ", ", "(void*)", args[i].name);
  return out + "};\n";
}

void write_size(std::ostream& out, const std::string& prefix, const ArgInfo& arg) {
  out << "#define " << prefix << as_macro(arg.name) << "_BYTES " << arg.bytes << "\n";
}

std::string pointer_at(const ArgPlace& place) {
  return place.offset == 0 ? str("args[", place.arg, "]")
                           : str("(char*)args[", place.arg, "] + ", place.offset);
}

// Calls the library's symbol with its arguments out of `args`.
void write_library_call(std::ostream& out, const std::string& symbol, const std::vector<ArgPlace>& places) {
  bool in_place = true;
  for (size_t i = 0; i < places.size(); ++i)
    in_place = in_place && places[i].arg == i && places[i].offset == 0;
  // Declared where it is called: its arguments follow the config, and a program must not depend on them.
  out << "  int32_t " << symbol << "(void* const* args, const tuner_runtime* rt);\n";
  if (!in_place) {
    out << "  void* const placed[] = {";
    for (size_t i = 0; i < places.size(); ++i) out << (i == 0 ? "" : ", ") << pointer_at(places[i]);
    out << "};\n";
  }
  out << "  return " << symbol << "(" << (in_place ? "args" : "placed") << ", runtime);\n";
}

// What is the same for every kernel, once.
constexpr std::string_view kRules = R"( *
 * Memory     Every pointer must be aligned to 64 bytes (aligned_alloc(64, ...)), and no output may overlap
 *            another argument. Arrays are row-major. An argument that is in and out is read before it is
 *            written: give it its values before each call. A kernel allocates nothing: scratch memory is the
 *            caller's `workspace`, aligned to 64 bytes, whose contents need not be kept between calls.
 *            Packed constants of 2 MiB or more were measured on large pages: aligned_alloc(2 << 20, ...)
 *            and madvise(..., MADV_HUGEPAGE) give them.
 * Threads    Any number of threads may call any kernels at once, if each call has its own workspace and
 *            outputs; constants and packed constants may be shared. NAME() runs on the calling thread;
 *            NAME_with() on those of a runtime: tuner_pool.h has a pool for programs without one.
 * Names      Functions, arguments and macros follow what a kernel computes, not how: a program compiles
 *            as it is with a header of the same kernels tuned again. Only sizes change.
 * Packing    A constant X is taken as X_packed, made once by NAME_prepack() in X_PACKED_BYTES bytes, before
 *            the first call and again whenever X changes. The config decides what it holds.
 * Result     0; negative when the runtime does not fit the kernel (-1: another ABI version, -2: workspace
 *            missing, -3: no threads), or the CPU none of its variants (-4).
 * CPU        A CPU without the instructions that a kernel is compiled for would stop the program:
 *            NAME_runs_here() asks before. It also asks Linux for tile registers (AMX) where the
 *            kernel uses them: call it before the kernel.
 */
)";

void write_kernel_comment(std::ostream& out, const BundleKernel& k, const CSignature& s) {
  out << "/* ---- " << k.function << "\n * " << k.task.key << "\n * on " << k.code.manifest.target << "\n * "
      << k.origin << "\n *\n * Arguments:\n"
      << described(s.args, k.function);
  if (s.packs()) out << " * Of " << k.function << "_prepack():\n" << described(s.pack_args, k.function);
  out << " */\n";
}

// Those of one function, which stand side by side.
using Variants = std::span<const BundleKernel* const>;

constexpr size_t kMostColumns = 90;  // of a list of instruction sets

void write_runs_here(std::ostream& out, const BundleKernel& k) {
  out << "\n/* 1 when this CPU has the instructions that the kernel is compiled for. */\n"
      << "static inline int32_t " << k.function << "_runs_here(void) {\n";
  out << "#if defined(" << (k.task.target.is_x86() ? "__x86_64__" : "__aarch64__") << ")\n"
      << "  return tuner_cpu_has_sets(\n      \"";
  size_t column = 0;
  for (const std::string& set : k.code.instruction_sets) {
    const std::string word = (column == 0 ? "" : " ") + set;
    if (column + word.size() > kMostColumns) out << "\"\n      \"", column = 0;
    out << word;
    column += word.size();
  }
  out << "\");\n#else\n  return 0;\n#endif\n}\n";
}

// What a caller must provide.
struct Workspace {
  int64_t bytes = 0, per_thread = 0;
  int threads = 1;
};
Workspace workspace_of(const BundleKernel& k) {
  const Manifest& m = k.code.manifest;
  return {m.workspace_bytes, m.workspace_bytes_per_thread, m.threads};
}

void write_macros(std::ostream& out, const std::string& function, const Workspace& w, const CSignature& s) {
  const std::string macro = as_macro(function) + "_";
  for (const ArgInfo& operand : s.operands) write_size(out, macro, operand);
  for (const ArgInfo& arg : s.args)
    if (arg.role == BufferRole::kPacked) write_size(out, macro, arg);
  out << "/* " << function << "() on one thread; " << function
      << "_with() on n threads needs WORKSPACE + n * WORKSPACE_PER_THREAD. */\n"
      << "#define " << macro << "WORKSPACE " << w.bytes << "\n"
      << "#define " << macro << "WORKSPACE_PER_THREAD " << w.per_thread << "\n"
      << "#define " << macro << "WORKSPACE_BYTES " << w.bytes + w.per_thread << "\n"
      << "#define " << macro << "THREADS " << w.threads << " /* it is made for; right on any number */\n";
}

// `write_body`: the statements of NAME_call().
void write_calls(std::ostream& out, const std::string& name, const CSignature& s,
                 const std::function<void()>& write_body) {
  out << "\n/* The arguments as an array, in the order above. */\n"
      << "static inline int32_t " << name << "_call(void* const* args, const tuner_runtime* runtime) {\n";
  write_body();
  out << "}\n\n/* On the threads of `runtime`, whose workspace must be as large as said above. */\n"
      << "static inline int32_t " << name << "_with(const tuner_runtime* runtime, "
      << parameters(s.args, false) << ") {\n"
      << pointer_array(s.args) << "  return " << name << "_call(pointers, runtime);\n}\n\n"
      << "/* On the calling thread. `workspace`: " << as_macro(name)
      << "_WORKSPACE_BYTES bytes, NULL when that is 0. */\n"
      << "static inline int32_t " << name << "(" << parameters(s.args, false) << ", void* workspace) {\n"
      << "  tuner_runtime runtime = tuner_serial_runtime(workspace);\n"
      << "  return " << name << "_with(&runtime, " << names(s.args) << ");\n}\n";
}

void write_library_packing(std::ostream& out, const BundleKernel& k, const CSignature& s) {
  for (const CSignature::Copy& c : s.copies)
    out << "  memcpy(" << pointer_at(c.to) << ", args[" << c.from << "], " << s.pack_args[c.from].bytes
        << ");\n";
  if (s.pack.empty())
    out << "  (void)runtime;\n  return 0;\n";
  else
    write_library_call(out, k.code.manifest.pack_entry, s.pack);
}

// `write_body`: the statements of NAME_pack().
void write_packing(std::ostream& out, const std::string& name, const CSignature& s,
                   const std::function<void()>& write_body) {
  out << "\n/* " << name << "_prepack() by an array of its arguments. */\n"
      << "static inline int32_t " << name << "_pack(void* const* args, const tuner_runtime* runtime) {\n";
  write_body();
  out << "}\n\n/* Once, before the first call and whenever a constant changes. */\n"
      << "static inline int32_t " << name << "_prepack(" << parameters(s.pack_args, true) << ") {\n"
      << "  tuner_runtime runtime = tuner_serial_runtime(NULL);\n"
      << pointer_array(s.pack_args) << "  return " << name << "_pack(pointers, &runtime);\n}\n";
}

void write_kernel(std::ostream& out, const BundleKernel& k, const CSignature& s) {
  write_kernel_comment(out, k, s);
  write_macros(out, k.function, workspace_of(k), s);
  write_calls(out, k.function, s, [&] { write_library_call(out, k.code.manifest.entry, s.entry); });
  if (s.packs()) write_packing(out, k.function, s, [&] { write_library_packing(out, k, s); });
  write_runs_here(out, k);
  out << "\n";
}

// The most that any of the variants needs: a program allocates before it knows the CPU.
Workspace workspace_of(Variants variants) {
  Workspace most;
  for (const BundleKernel* k : variants) {
    const Workspace w = workspace_of(*k);
    most = {std::max(most.bytes, w.bytes), std::max(most.per_thread, w.per_thread), w.threads};
  }
  return most;
}
CSignature signature_of(std::span<const CSignature> variants) {
  CSignature most = variants.front();
  const auto raise = [](ArgInfo& arg, const ArgInfo& other) {
    if (other.bytes <= arg.bytes) return;
    arg.bytes = other.bytes;
    arg.shape = other.shape;
  };
  for (const CSignature& s : variants) {
    for (size_t i = 0; i < s.args.size(); ++i) raise(most.args[i], s.args[i]);
    for (size_t i = 0; i < s.pack_args.size(); ++i) raise(most.pack_args[i], s.pack_args[i]);
  }
  return most;
}

// The statements that leave the work to the variant of this CPU: its function with this ending.
void write_choice(std::ostream& out, Variants variants, const char* ending) {
  out << "  switch (" << variants.front()->of << "_variant()) {\n";
  for (size_t i = 0; i < variants.size(); ++i)
    out << "    case " << i << ": return " << variants[i]->function << ending << "(args, runtime);\n";
  out << "    default: return -4;\n  }\n";
}

// The function of which these are variants.
void write_shared(std::ostream& out, Variants variants, std::span<const CSignature> signatures) {
  const std::string& name = variants.front()->of;
  const CSignature s = signature_of(signatures);
  out << "/* ---- " << name << "\n * " << variants.front()->task.key
      << "\n * by the first of these that the CPU runs:\n";
  for (const BundleKernel* k : variants) out << " *   " << k->function << "\n";
  out << " * What is packed is packed for that one: pack where it is used.\n *\n * Arguments:\n"
      << described(s.args, name);
  if (s.packs()) out << " * Of " << name << "_prepack():\n" << described(s.pack_args, name);
  out << " */\n";
  write_macros(out, name, workspace_of(variants), s);
  out << "\n/* Which of them, from 0; -1: none. */\nstatic inline int32_t " << name
      << "_variant(void) {\n  static int32_t known = -2; /* every thread finds the same */\n"
      << "  int32_t found = __atomic_load_n(&known, __ATOMIC_RELAXED);\n  if (found != -2) return found;\n  "
         "found = ";
  for (size_t i = 0; i < variants.size(); ++i)
    out << variants[i]->function << "_runs_here() ? " << i << "\n          : ";
  out << "-1;\n  __atomic_store_n(&known, found, __ATOMIC_RELAXED);\n  return found;\n}\n";
  write_calls(out, name, s, [&] { write_choice(out, variants, "_call"); });
  if (s.packs()) write_packing(out, name, s, [&] { write_choice(out, variants, "_pack"); });
  out << "\n/* 1 when this CPU runs one of them. */\nstatic inline int32_t " << name
      << "_runs_here(void) { return " << name << "_variant() >= 0; }\n\n";
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
                 const std::vector<const BundleKernel*>& kernels, const std::vector<CSignature>& signatures) {
  out << "/* ---- the table */\n"
      << "/* All kernels, in the order of the job files; variants for several CPUs, the best first; *count "
         "of "
         "them. */\n"
      << "static inline const tuner_kernel* " << library << "_kernels(int32_t* count) {\n";
  for (size_t i = 0; i < kernels.size(); ++i) {
    write_arg_table(out, kernels[i]->function + "_args", signatures[i].args);
    write_arg_table(out, kernels[i]->function + "_pack_args", signatures[i].pack_args);
  }
  out << "  static const tuner_kernel kernels[] = {\n";
  for (size_t i = 0; i < kernels.size(); ++i) {
    const BundleKernel& k = *kernels[i];
    const CSignature& s = signatures[i];
    const Manifest& m = k.code.manifest;
    out << "      {\"" << k.function << "\",\n       \"" << k.task.key << "\",\n       \"" << m.target
        << "\", " << m.threads << ", " << (is_choice(k.kind) ? 1 : 0) << ", " << s.args.size() << ", "
        << s.pack_args.size() << ", " << k.function << "_args, "
        << (s.packs() ? k.function + "_pack_args" : "NULL") << ",\n       " << m.workspace_bytes << ", "
        << m.workspace_bytes_per_thread << ", " << k.function << "_call, "
        << (s.packs() ? k.function + "_pack" : "NULL") << ", " << k.function << "_runs_here},\n";
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
  std::vector<CSignature> signatures;
  for (size_t i = 0, first = 0; i < kernels.size(); ++i) {
    const BundleKernel& k = *kernels[i];
    signatures.push_back(c_signature(k.task.workload, k.code.manifest));
    write_kernel(out, k, signatures.back());
    if (k.of != kernels[first]->of) first = i;
    if (k.of.empty() || (i + 1 < kernels.size() && kernels[i + 1]->of == k.of)) continue;
    const size_t count = i + 1 - first;
    write_shared(out, Variants(kernels).subspan(first, count), std::span(signatures).subspan(first, count));
  }
  write_table(out, library, kernels, signatures);
  out << "\n#ifdef __cplusplus\n} /* extern \"C\" */\n#endif\n\n#endif\n";
  return out.str();
}

}  // namespace tuner
