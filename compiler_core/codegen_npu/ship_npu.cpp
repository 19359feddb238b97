#include "compiler_core/codegen_npu/ship_npu.h"

#include "compiler_core/base/c_names.h"
#include "npu/library_header.h"  // generated

namespace tuner {
namespace {

// "const uint8_t* a": packed constants, and types that C lacks, are bytes without a type.
std::string pointer_of(const ArgInfo& arg, const std::string& name, bool packing) {
  const bool is_packed = arg.role == BufferRole::kPacked;
  const bool is_written = arg.is_result() || (is_packed && packing);
  const bool has_type = !is_packed && !is_float(arg.dtype) && arg.dtype != DType::kBool;
  const std::string type = has_type                                     ? str(dtype_name(arg.dtype), "_t")
                           : arg.dtype == DType::kFloat32 && !is_packed ? std::string("float")
                                                                        : std::string("void");
  return str(is_written ? "" : "const ", type, "* ", name);
}

struct ArgumentTexts {
  std::string parameters, pointers, described;
};
ArgumentTexts texts_of(const std::vector<ArgInfo>& args, bool packing) {
  ArgumentTexts out;
  for (const ArgInfo& arg : args) {
    const std::string name = as_c_name(arg.name), comma = out.parameters.empty() ? "" : ", ";
    out.parameters += str(comma, pointer_of(arg, name, packing));
    out.pointers += str(comma, "(void*)", name);
    std::string shape;
    for (const int64_t extent : arg.shape) shape += str(shape.empty() ? "" : ", ", extent);
    out.described += str(" *   ", name, ": ", dtype_name(arg.dtype), " [", shape, "]",
                         arg.layout.empty() ? "" : ", " + arg.layout, ", ", buffer_role_name(arg.role), ", ",
                         arg.bytes, " bytes\n");
  }
  return out;
}

std::string without_comment_ends(std::string text) {
  for (size_t at = text.find("*/"); at != std::string::npos; at = text.find("*/")) text.replace(at, 2, "* /");
  return text;
}

std::string header_of(const Manifest& m, const std::string& name, const std::string& about) {
  const ArgumentTexts args = texts_of(m.args, false), pack = texts_of(m.pack_args, true);
  const std::string guard = as_macro(name) + "_H_";
  std::string text = str(
      "/* ", without_comment_ends(about), "\n * on ", m.target, ", by ", m.toolchain, "\n *\n",
      " * Written by `tuner build`. ", name, ".c has the program; link with -ltuner_npu, which simulates ",
      "the accelerator. C11 and C++.\n *\n * Arguments, row-major; no output may overlap another:\n",
      args.described);
  if (!m.pack_args.empty())
    text +=
        str(" * Constants are packed once, before the first call, by ", name, "_pack():\n", pack.described);
  text +=
      str(" */\n#ifndef ", guard, "\n#define ", guard, "\n\n#include <stdint.h>\n\n",
          "#include \"tuner_npu.h\"\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n",
          "/* Returns 0; else tuner_npu_error() says why. `counts`: what the call took; may be NULL. */\n",
          "int32_t ", name, "(", args.parameters, ", tuner_npu_counts* counts);\n");
  if (!m.pack_args.empty()) text += str("int32_t ", name, "_pack(", pack.parameters, ");\n");
  return text + "\n#ifdef __cplusplus\n} /* extern \"C\" */\n#endif\n\n#endif\n";
}

}  // namespace

NpuSource npu_source(const Manifest& m, const std::string& name, std::string_view kernel,
                     const std::string& about) {
  NpuSource out{.header = header_of(m, name, about), .source = {}};
  out.source = str("#include \"", name, ".h\"\n\nstatic const uint8_t program[] = {");
  constexpr size_t kBytesPerLine = 24;
  for (size_t i = 0; i < kernel.size(); ++i)
    out.source += str(i % kBytesPerLine == 0 ? "\n    " : " ", int{static_cast<uint8_t>(kernel[i])}, ",");
  const auto function = [&](const std::string& full_name, const ArgumentTexts& args,
                            const std::string& more_parameters, const std::string& call) {
    out.source += str("\nint32_t ", full_name, "(", args.parameters, more_parameters,
                      ") {\n  void* const pointers[] = {", args.pointers, "};\n  return ", call, ";\n}\n");
  };
  out.source += "\n};\n";
  function(name, texts_of(m.args, false), ", tuner_npu_counts* counts",
           "tuner_npu_run(program, (int64_t)sizeof program, pointers, counts)");
  if (!m.pack_args.empty())
    function(name + "_pack", texts_of(m.pack_args, true), "",
             "tuner_npu_pack(program, (int64_t)sizeof program, pointers)");
  return out;
}

std::string_view npu_library_header() { return kNpuLibraryHeader; }

}  // namespace tuner
