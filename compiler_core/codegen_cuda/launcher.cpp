// The host side of a cubin for an application: C on the driver API.
#include <algorithm>
#include <cctype>

#include "compiler_core/codegen_cuda/cuda.h"
#include "compiler_core/codegen_cuda/names.h"

namespace tuner {
namespace {

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t d : shape) text += str(text.empty() ? "" : ", ", d);
  return "[" + text + "]";
}

int64_t workspace_bytes(const Manifest& m) {
  int64_t total = 0;
  for (const int64_t bytes : m.workspaces) total += (bytes + 255) / 256 * 256;
  return total;
}

// Maps of all launches of a call, in their order. What packs constants has none.
size_t count_maps(const Manifest& m) {
  size_t count = 0;
  for (const LaunchInfo& l : m.launches) count += l.tensor_maps.size();
  return count;
}

// "CUdeviceptr a, CUdeviceptr out": names that differ, none of them one of ours.
std::vector<std::string> argument_names(const std::vector<ArgInfo>& args) {
  cuda::Names names;
  for (const char* ours :
       {"kernel", "stream", "workspace", "operands", "pointers", "image", "result", "map", "room"})
    names.reserve(ours);
  std::vector<std::string> result;
  for (const ArgInfo& arg : args) result.push_back(names.declare(arg.name));
  return result;
}

std::string parameters(const std::vector<ArgInfo>& args) {
  std::string text;
  for (const std::string& name : argument_names(args)) text += str("CUdeviceptr ", name, ", ");
  return text;
}

std::string described_arguments(const std::vector<ArgInfo>& args) {
  std::string text;
  const std::vector<std::string> names = argument_names(args);
  for (size_t i = 0; i < args.size(); ++i) {
    const ArgInfo& a = args[i];
    text += str(" *   ", names[i], ": ", a.dtype, " ", shape_text(a.shape),
                a.layout.empty() ? "" : ", " + a.layout, ", ", a.role, ", ", a.bytes, " bytes\n");
  }
  return text;
}

// What stands in the middle of a C comment must not end it.
std::string comment_text(std::string text) {
  for (size_t at = text.find("*/"); at != std::string::npos; at = text.find("*/")) text.replace(at, 2, "* /");
  return text;
}

std::string header_text(const Manifest& m, const std::string& name, const std::string& about) {
  const std::string macro = upper(name);
  std::string text =
      str("/* ", comment_text(about), "\n * on ", m.target, ", by ", m.toolchain, "\n *\n",
          " * Written by `tuner build`: ", name, binary_ending(m.kind), " holds the kernels, ", name,
          ".c launches them through the driver API\n", " * (link with -lcuda). C99 and C++.\n *\n",
          " * Arguments are device pointers, row-major, in this order, each aligned to 16 bytes (what "
          "cuMemAlloc gives is);\n",
          " * no output may overlap another argument:\n", described_arguments(m.args),
          m.pack_launches.empty()
              ? std::string()
              : str(" * Constants are packed once, before the first launch; its packed arguments come from ",
                    name, "_pack():\n", described_arguments(m.pack_args)),
          " *\n",
          " * Every function returns CUDA_SUCCESS or the driver's error. A context must be current.\n */\n");
  text += str("#ifndef ", macro, "_H_\n#define ", macro, "_H_\n\n#include <cuda.h>\n\n",
              "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
  const std::vector<std::string> names = argument_names(m.args);
  for (size_t i = 0; i < m.args.size(); ++i)
    text += str("#define ", macro, "_", upper(names[i]), "_BYTES ", m.args[i].bytes, "\n");
  text += str(
      "/* Device memory between the kernels, uninitialised, aligned to 256 bytes; 0: pass 0. */\n#define ",
      macro, "_WORKSPACE_BYTES ", workspace_bytes(m), "\n\n");
  text += str("/* A loaded cubin: of the context that was current then. */\ntypedef struct ", name,
              "_kernel {\n  CUmodule module;\n  CUfunction functions[",
              m.launches.size() + m.pack_launches.size(), "];\n} ", name, "_kernel;\n\n");
  text += str("/* What launches take: written by ", name, "_bind(), may be copied. */\ntypedef struct ", name,
              "_operands {\n  CUdeviceptr pointers[",
              std::max<size_t>(1, m.args.size() + m.workspaces.size()), "];\n");
  if (const size_t maps = count_maps(m); maps > 0)
    text += str("  cuuint64_t maps[", maps,
                "][CU_TENSOR_MAP_NUM_QWORDS];  /* how the device's copy engine sees them */\n");
  text += str("} ", name, "_operands;\n\n");
  text += str("/* `image`: the bytes of ", name, binary_ending(m.kind),
              m.kind == binary_kind::kPtx ? ", with a byte 0 behind them" : "",
              ". On an error nothing stays loaded. */\nCUresult ", name, "_load(", name,
              "_kernel* kernel, const void* image);\n");
  text +=
      str("/* Once for each set of operands, before its first launch. Calls that run at the same time need "
          "workspaces of "
          "their own. */\nCUresult ",
          name, "_bind(", name, "_operands* operands, ", parameters(m.args), "CUdeviceptr workspace);\n");
  text +=
      str("/* Puts the launches on `stream` and returns at once; may be captured into a graph. */\nCUresult ",
          name, "_launch(const ", name, "_kernel* kernel, const ", name,
          "_operands* operands, CUstream stream);\n");
  if (!m.pack_launches.empty())
    text +=
        str("/* Puts on `stream` what packs the constants; once, they may be freed when it is done. "
            "*/\nCUresult ",
            name, "_pack(const ", name, "_kernel* kernel, ", parameters(m.pack_args), "CUstream stream);\n");
  text += str("CUresult ", name, "_unload(", name,
              "_kernel* kernel);\n\n#ifdef __cplusplus\n}  /* extern \"C\" */\n#endif\n\n#endif\n");
  return text;
}

std::string load_text(const Manifest& m, const std::string& name) {
  std::string text = str("CUresult ", name, "_load(", name, "_kernel* kernel, const void* image) {\n",
                         "  CUresult result = cuModuleLoadData(&kernel->module, image);\n",
                         "  if (result != CUDA_SUCCESS) return result;\n");
  const auto step = [&](const std::string& call) {
    text += str("  if (result == CUDA_SUCCESS)\n    result = ", call, ";\n");
  };
  std::vector<LaunchInfo> launches = m.launches;
  launches.insert(launches.end(), m.pack_launches.begin(), m.pack_launches.end());
  for (size_t i = 0; i < launches.size(); ++i) {
    const LaunchInfo& l = launches[i];
    step(str("cuModuleGetFunction(&kernel->functions[", i, "], kernel->module, \"", l.kernel, "\")"));
    // Above 48 KB shared memory must be asked for.
    if (l.shared_bytes > 48 << 10)
      step(str("cuFuncSetAttribute(kernel->functions[", i,
               "], CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, ", l.shared_bytes, ")"));
  }
  return text + "  if (result != CUDA_SUCCESS) cuModuleUnload(kernel->module);\n  return result;\n}\n";
}

// Nothing of PTX, which the driver compiles.
std::string resources_text(const LaunchInfo& l) {
  if (l.registers == 0) return {};
  return str(": ", l.registers, " registers a thread, ", l.blocks_per_sm, " blocks a multiprocessor");
}

// The numbers among the parameters, as they lie in memory.
std::string scalars_text(const LaunchInfo& l) {
  std::string text;
  for (const LaunchScalar& scalar : l.scalars) {
    std::string bytes;
    for (const char c : scalar.bytes)
      bytes += str(bytes.empty() ? "" : ", ", static_cast<int>(static_cast<unsigned char>(c)));
    text += str("    static const unsigned char scalar", scalar.place, "[] = {", bytes, "};\n");
  }
  return text;
}

// The launches of one function, whose parameters are places in `pointers`, then `operands->maps`; the first
// is function `first`.
std::string launches_text(const std::vector<LaunchInfo>& launches, size_t first, const char* pointers) {
  std::string text = "  CUresult result = CUDA_SUCCESS;\n";
  size_t map = 0;
  for (size_t i = 0; i < launches.size(); ++i) {
    const LaunchInfo& l = launches[i];
    text += str("  if (result == CUDA_SUCCESS) { /* ", l.kernel, resources_text(l), " */\n", scalars_text(l),
                "    void* parameters[] = {");
    // What the driver only reads is not const in its types.
    size_t count = 0;
    l.for_each_parameter([&](int pointer, const LaunchScalar* scalar) {
      text += count++ == 0 ? "" : ", ";
      text += scalar != nullptr ? str("(void*)scalar", scalar->place)
                                : str("(void*)&", pointers, "[", l.params[static_cast<size_t>(pointer)], "]");
    });
    for (size_t p = 0; p < l.tensor_maps.size(); ++p)
      text += str(count++ == 0 ? "" : ", ", "(void*)operands->maps[", map++, "]");
    text += str("};\n    result = cuLaunchKernel(kernel->functions[", first + i, "], ", l.grid[0], ", ",
                l.grid[1], ", ", l.grid[2], ", ", l.block[0], ", ", l.block[1], ", ", l.block[2], ", ",
                l.shared_bytes, ",\n                            stream, parameters, NULL);\n  }\n");
  }
  return text + "  return result;\n}\n";
}

// The name in cuda.h of a number of bytes, of a type.
const char* swizzle_text(int64_t bytes) {
  return bytes == 128  ? "CU_TENSOR_MAP_SWIZZLE_128B"
         : bytes == 64 ? "CU_TENSOR_MAP_SWIZZLE_64B"
         : bytes == 32 ? "CU_TENSOR_MAP_SWIZZLE_32B"
                       : "CU_TENSOR_MAP_SWIZZLE_NONE";
}
const char* l2_text(int64_t bytes) {
  return bytes == 256   ? "CU_TENSOR_MAP_L2_PROMOTION_L2_256B"
         : bytes == 128 ? "CU_TENSOR_MAP_L2_PROMOTION_L2_128B"
         : bytes == 64  ? "CU_TENSOR_MAP_L2_PROMOTION_L2_64B"
                        : "CU_TENSOR_MAP_L2_PROMOTION_NONE";
}
const char* type_text(DType dtype) {
  switch (dtype) {
    case DType::kBool:
    case DType::kInt8:
    case DType::kUInt8:
      return "CU_TENSOR_MAP_DATA_TYPE_UINT8";
    case DType::kInt16:  // moved as they are
    case DType::kUInt16:
      return "CU_TENSOR_MAP_DATA_TYPE_UINT16";
    case DType::kInt32:
      return "CU_TENSOR_MAP_DATA_TYPE_INT32";
    case DType::kUInt32:
      return "CU_TENSOR_MAP_DATA_TYPE_UINT32";
    case DType::kInt64:
      return "CU_TENSOR_MAP_DATA_TYPE_INT64";
    case DType::kUInt64:
      return "CU_TENSOR_MAP_DATA_TYPE_UINT64";
    case DType::kFloat16:
      return "CU_TENSOR_MAP_DATA_TYPE_FLOAT16";
    case DType::kBFloat16:
      return "CU_TENSOR_MAP_DATA_TYPE_BFLOAT16";
    case DType::kFloat32:
      return "CU_TENSOR_MAP_DATA_TYPE_FLOAT32";
    case DType::kFloat64:
      return "CU_TENSOR_MAP_DATA_TYPE_FLOAT64";
  }
  return "";
}

std::string list_text(const std::vector<int64_t>& numbers) {
  std::string text;
  for (const int64_t n : numbers) text += str(text.empty() ? "" : ", ", n);
  return text;
}

// Encodes one map; the driver wants an aligned place for it, which a struct in C99 is not.
std::string encode_text(const LaunchTensorMap& m, size_t number) {
  const TensorMap& map = m.map;
  const size_t rank = map.rank();
  const std::vector<int64_t> steps = map.steps.empty() ? std::vector<int64_t>(rank, 1) : map.steps;
  const bool tiled = map.kind == TensorMap::Kind::kTiled;
  std::string text =
      str("  if (result == CUDA_SUCCESS) { /* ", to_text(map), " */\n    const cuuint64_t extents[] = {",
          list_text(map.extents), "}, strides[] = {",
          map.strides.empty() ? std::string("0") : list_text(map.strides), "};\n");
  if (tiled)
    text +=
        str("    const cuuint32_t box[] = {", list_text(map.box), "}, steps[] = {", list_text(steps), "};\n");
  else
    text += str("    const int lower[] = {", list_text(map.lower), "}, upper[] = {", list_text(map.upper),
                "};\n    const cuuint32_t steps[] = {", list_text(steps), "};\n");
  text +=
      str("    result = ", tiled ? "cuTensorMapEncodeTiled" : "cuTensorMapEncodeIm2col", "(map, ",
          type_text(map.dtype), ", ", rank, ", (void*)(size_t)operands->pointers[", m.operand,
          "], extents, strides,\n        ",
          tiled ? std::string("box") : str("lower, upper, ", map.channels, ", ", map.pixels),
          ", steps, CU_TENSOR_MAP_INTERLEAVE_NONE, ", swizzle_text(map.swizzle_bytes), ",\n        ",
          l2_text(map.l2_bytes), ", ",
          map.fills_nan ? "CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA"
                        : "CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE",
          ");\n    memcpy(operands->maps[", number, "], map, sizeof operands->maps[", number, "]);\n  }\n");
  return text;
}

// Arguments, then the parts of the workspace; then what the driver encodes of them.
std::string bind_text(const Manifest& m, const std::string& name) {
  std::string text = str("CUresult ", name, "_bind(", name, "_operands* operands, ", parameters(m.args),
                         "CUdeviceptr workspace) {\n");
  const size_t maps = count_maps(m);
  text += "  CUresult result = CUDA_SUCCESS;\n";
  if (maps > 0)
    text +=
        "  unsigned char room[CU_TENSOR_MAP_NUM_QWORDS * 8 + 63];\n"
        "  CUtensorMap* map = (CUtensorMap*)(((size_t)room + 63) / 64 * 64);\n";
  const std::vector<std::string> names = argument_names(m.args);
  for (size_t i = 0; i < names.size(); ++i) text += str("  operands->pointers[", i, "] = ", names[i], ";\n");
  int64_t offset = 0;
  for (size_t i = 0; i < m.workspaces.size(); ++i) {
    text += str("  operands->pointers[", names.size() + i, "] = workspace + ", offset, ";\n");
    offset += (m.workspaces[i] + 255) / 256 * 256;
  }
  if (m.workspaces.empty()) text += "  (void)workspace;\n";
  size_t number = 0;
  for (const LaunchInfo& l : m.launches)
    for (const LaunchTensorMap& map : l.tensor_maps) text += encode_text(map, number++);
  return text + "  return result;\n}\n";
}

std::string launch_text(const Manifest& m, const std::string& name) {
  return str("CUresult ", name, "_launch(const ", name, "_kernel* kernel, const ", name,
             "_operands* operands, CUstream stream) {\n", launches_text(m.launches, 0, "operands->pointers"));
}

std::string pack_text(const Manifest& m, const std::string& name) {
  if (m.pack_launches.empty()) return {};
  std::string text = str("CUresult ", name, "_pack(const ", name, "_kernel* kernel, ",
                         parameters(m.pack_args), "CUstream stream) {\n  CUdeviceptr pointers[] = {");
  const std::vector<std::string> names = argument_names(m.pack_args);
  for (size_t i = 0; i < names.size(); ++i) text += str(i == 0 ? "" : ", ", names[i]);
  return text + "};\n" + launches_text(m.pack_launches, m.launches.size(), "pointers") + "\n";
}

}  // namespace

CudaLauncher cuda_launcher(const Manifest& manifest, const std::string& name, const std::string& about) {
  CudaLauncher launcher;
  launcher.header = header_text(manifest, name, about);
  launcher.source =
      str("/* Launches ", name, binary_ending(manifest.kind), "; see ", name, ".h. */\n#include \"", name,
          ".h\"\n\n#include <stddef.h>\n#include <string.h>\n\n", load_text(manifest, name), "\n",
          bind_text(manifest, name), "\n", launch_text(manifest, name), "\n", pack_text(manifest, name),
          "CUresult ", name, "_unload(", name,
          "_kernel* kernel) {\n  return cuModuleUnload(kernel->module);\n}\n");
  return launcher;
}

}  // namespace tuner
