// The manifest as JSON. Unknown keys are ignored; a missing or mistyped key names itself.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/base/json_reader.h"

namespace tuner {
namespace {

using json_input::found;
using json_input::kRequired;
using json_input::Reader;
using nlohmann::json;

json arg_to_json(const ArgInfo& a) {
  return {{"name", a.name},
          {"role", buffer_role_name(a.role)},
          {"dtype", std::string(dtype_name(a.dtype))},
          {"shape", a.shape},
          {"layout", a.layout},
          {"bytes", a.bytes}};
}

// Integers >= 0.
void read_counts(Reader& in, const char* key, std::vector<int64_t>& out, size_t size = 0) {
  const json* list = in.list(key, kRequired);
  if (list == nullptr) return;
  const bool right =
      (size == 0 || list->size() == size) && std::all_of(list->begin(), list->end(), [](const json& n) {
        return n.is_number_integer() && n.get<int64_t>() >= 0;
      });
  const std::string many = size == 0 ? "" : str(size, " ");
  if (!right) return in.refuse(key, "expected ", many, "integers >= 0, found ", found(*list), ".");
  out = list->get<std::vector<int64_t>>();
}

ArgInfo read_arg(Reader& in) {
  ArgInfo info;
  std::string dtype, role;
  in.read("name", info.name, kRequired);
  in.read("role", role, kRequired);
  in.read("layout", info.layout, kRequired);
  in.read("bytes", info.bytes, kRequired);
  in.read("dtype", dtype, kRequired);
  read_counts(in, "shape", info.shape);
  if (in.failed()) return info;
  const auto known = buffer_role_from_name(role);
  if (!known || *known == BufferRole::kIntermediate)
    return in.refuse("role", "argument ", info.name, " has unknown role \"", role, "\""), info;
  info.role = *known;
  const auto parsed = dtype_from_name(dtype);
  if (!parsed) return in.refuse("dtype", "unknown type ", dtype), info;
  info.dtype = *parsed;
  int64_t elements = 1;
  for (const int64_t d : info.shape)
    if (__builtin_mul_overflow(elements, d, &elements))
      return in.refuse("shape", "its product overflows"), info;
  if (info.bytes / dtype_bytes(info.dtype) != elements || info.bytes % dtype_bytes(info.dtype) != 0)
    in.refuse("bytes", "found ", info.bytes, ", expected ", elements, " elements of ", dtype);
  return info;
}

json map_to_json(const LaunchTensorMap& m) {
  const bool tiled = m.map.kind == TensorMap::Kind::kTiled;
  json j = {{"operand", m.operand},
            {"kind", tiled ? "tiled" : "im2col"},
            {"dtype", std::string(dtype_name(m.map.dtype))},
            {"extents", m.map.extents},
            {"strides", m.map.strides},
            {"swizzle", m.map.swizzle_bytes},
            {"l2_bytes", m.map.l2_bytes},
            {"fill", m.map.fills_nan ? "nan" : "zero"}};
  if (!m.map.steps.empty()) j["steps"] = m.map.steps;
  if (tiled) {
    j["box"] = m.map.box;
  } else {
    j["lower"] = m.map.lower, j["upper"] = m.map.upper;
    j["channels"] = m.map.channels, j["pixels"] = m.map.pixels;
  }
  return j;
}

std::string hex_of(const std::string& bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return text;
}

json launch_to_json(const LaunchInfo& l) {
  json j = {{"kernel", l.kernel},
            {"grid", l.grid},
            {"block", l.block},
            {"shared_bytes", l.shared_bytes},
            {"params", l.params},
            {"registers", l.registers},
            {"spill_bytes", l.spill_bytes},
            {"stack_bytes", l.stack_bytes},
            {"blocks_per_sm", l.blocks_per_sm}};
  for (const LaunchScalar& s : l.scalars)
    j["scalars"].push_back({{"place", s.place}, {"bytes", hex_of(s.bytes)}});
  for (const LaunchTensorMap& m : l.tensor_maps) j["tensor_maps"].push_back(map_to_json(m));
  return j;
}

// Of two words, as a flag: the second one.
bool read_word(Reader& in, const char* key, const char* no, const char* yes) {
  std::string word;
  in.read(key, word, kRequired);
  if (!in.failed() && word != no && word != yes)
    in.refuse(key, "expected \"", no, "\" or \"", yes, "\", found \"", word, "\"");
  return word == yes;
}

// Integers of either sign.
void read_offsets(Reader& in, const char* key, std::vector<int64_t>& out) {
  const json* list = in.list(key, kRequired);
  if (list == nullptr) return;
  if (!std::all_of(list->begin(), list->end(), [](const json& n) { return n.is_number_integer(); }))
    return in.refuse(key, "expected integers, found ", found(*list), ".");
  out = list->get<std::vector<int64_t>>();
}

// `bytes`: of every operand that it may be a map of.
LaunchTensorMap read_map(Reader& in, const std::vector<int64_t>& bytes) {
  LaunchTensorMap info;
  TensorMap& map = info.map;
  std::string dtype;
  in.read("operand", info.operand, kRequired);
  in.read("dtype", dtype, kRequired);
  map.kind = read_word(in, "kind", "tiled", "im2col") ? TensorMap::Kind::kIm2col : TensorMap::Kind::kTiled;
  map.fills_nan = read_word(in, "fill", "zero", "nan");
  read_counts(in, "extents", map.extents);
  read_counts(in, "strides", map.strides);
  if (in.get("steps") != nullptr) read_counts(in, "steps", map.steps);
  in.read("swizzle", map.swizzle_bytes, kRequired);
  in.read("l2_bytes", map.l2_bytes, kRequired);
  if (map.kind == TensorMap::Kind::kTiled) {
    read_counts(in, "box", map.box);
  } else {
    read_offsets(in, "lower", map.lower);
    read_offsets(in, "upper", map.upper);
    in.read("channels", map.channels, kRequired);
    in.read("pixels", map.pixels, kRequired);
  }
  if (in.failed()) return info;
  const auto parsed = dtype_from_name(dtype);
  if (!parsed) return in.refuse("dtype", "unknown type ", dtype), info;
  map.dtype = *parsed;
  if (info.operand < 0 || info.operand >= static_cast<int>(bytes.size()))
    return in.refuse("operand", "found ", info.operand, ", there are ", bytes.size(), " operands"), info;
  if (const Status valid = check_tensor_map(map, bytes[static_cast<size_t>(info.operand)]); !valid.is_ok())
    in.refuse("extents, strides, box", valid.message());
  return info;
}

LaunchScalar read_scalar(Reader& in) {
  LaunchScalar scalar;
  std::string hex;
  in.read("place", scalar.place, 0, 4095, kRequired);
  in.read("bytes", hex, kRequired);
  const bool is_hex =
      std::ranges::all_of(hex, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  if (!is_hex || hex.size() % 2 != 0 || hex.empty() || hex.size() > 16) {
    in.refuse("bytes", "expected 1 to 8 bytes in hex, found ", found(json(hex)), ".");
    return scalar;
  }
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  for (size_t i = 0; i < hex.size(); i += 2)
    scalar.bytes += static_cast<char>(digit(hex[i]) * 16 + digit(hex[i + 1]));
  return scalar;
}

// Each place is one of a parameter, and they ascend.
void read_scalars(Reader& in, LaunchInfo& info) {
  in.read_objects("scalars", [&](Reader& each) { info.scalars.push_back(read_scalar(each)); });
  const size_t parameters = info.params.size() + info.scalars.size();
  for (size_t i = 0; i < info.scalars.size(); ++i)
    if (info.scalars[i].place >= static_cast<int>(parameters) ||
        (i > 0 && info.scalars[i].place <= info.scalars[i - 1].place))
      in.refuse("scalars", "expected places of ", parameters, " parameters, ascending, found ",
                info.scalars[i].place, ".");
}

// What a driver would refuse, or worse, take: checked here, once.
LaunchInfo read_launch(Reader& in, const std::vector<ArgInfo>& args, const std::vector<int64_t>& workspace) {
  const size_t arguments = args.size(), workspaces = workspace.size();
  LaunchInfo info;
  in.read("kernel", info.kernel, kRequired);
  std::vector<int64_t> grid(3, 1), block(3, 1), params;
  read_counts(in, "grid", grid, 3);
  read_counts(in, "block", block, 3);
  if (std::min({grid[0], grid[1], grid[2], block[0], block[1], block[2]}) < 1 || grid[0] > INT32_MAX ||
      std::max(grid[1], grid[2]) > 65535 || std::max({block[0], block[1], block[2]}) > 1024 ||
      block[0] * block[1] * block[2] > 1024)
    in.refuse("grid, block", "found ", json(grid).dump(), ", ", json(block).dump(),
              ", beyond what a GPU launches");
  std::copy(grid.begin(), grid.end(), info.grid.begin());
  std::copy(block.begin(), block.end(), info.block.begin());
  in.read("shared_bytes", info.shared_bytes, kRequired);
  read_counts(in, "params", params);
  for (const int64_t p : params) {
    if (p >= static_cast<int64_t>(arguments + workspaces))
      in.refuse("params", "found ", p, ", there are ", arguments, " arguments and ", workspaces,
                " workspaces");
    info.params.push_back(static_cast<int>(p));
  }
  read_scalars(in, info);
  std::vector<int64_t> bytes;
  for (const ArgInfo& arg : args) bytes.push_back(arg.bytes);
  bytes.insert(bytes.end(), workspace.begin(), workspace.end());
  in.read_objects("tensor_maps", [&](Reader& each) { info.tensor_maps.push_back(read_map(each, bytes)); });
  in.read("registers", info.registers, kRequired);
  in.read("spill_bytes", info.spill_bytes, kRequired);
  in.read("stack_bytes", info.stack_bytes, kRequired);
  in.read("blocks_per_sm", info.blocks_per_sm, kRequired);
  return info;
}

// Of which kind it is, and what only cubins have.
void read_kind(Reader& in, Manifest& m) {
  in.read("kind", m.kind);
  if (in.failed()) return;
  // It becomes the ending of a file's name.
  const bool good =
      !m.kind.empty() && m.kind.size() <= 32 && std::all_of(m.kind.begin(), m.kind.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
      });
  if (!good)
    return in.refuse("kind", "expected a word such as \"shared_object\" or \"cubin\", found \"", m.kind,
                     "\".");
  if (!binary_kind::is_launched(m.kind)) return;
  if (const json* launches = in.get("launches");
      launches == nullptr || !launches->is_array() || launches->empty())
    in.refuse("launches", "expected a list of at least one launch");
  read_counts(in, "workspaces", m.workspaces);
  in.read_objects("launches",
                  [&](Reader& each) { m.launches.push_back(read_launch(each, m.args, m.workspaces)); });
  in.read_objects("pack_launches",
                  [&](Reader& each) { m.pack_launches.push_back(read_launch(each, m.pack_args, {})); });
  if (m.pack_launches.empty() != m.pack_args.empty())
    in.refuse("pack_launches", "found ", m.pack_launches.size(), " for ", m.pack_args.size(), " pack_args");
  for (const ArgInfo& packed : m.pack_args)
    if (packed.role == BufferRole::kPacked && std::ranges::none_of(m.args, [&](const ArgInfo& a) {
          return a.name == packed.name && a.role == BufferRole::kPacked && a.bytes == packed.bytes;
        }))
      in.refuse("pack_args", packed.name, " is no packed argument of the kernel");
}

}  // namespace

std::string Manifest::to_json() const {
  json j = {{"abi_version", abi_version},
            {"entry", entry},
            {"pack_entry", pack_entry},
            {"workspace_bytes", workspace_bytes},
            {"workspace_bytes_per_thread", workspace_bytes_per_thread},
            {"threads", threads},
            {"target", target},
            {"toolchain", toolchain},
            {"digest", digest},
            {"args", json::array()},
            {"pack_args", json::array()}};
  for (const ArgInfo& a : args) j["args"].push_back(arg_to_json(a));
  for (const ArgInfo& a : pack_args) j["pack_args"].push_back(arg_to_json(a));
  if (!libraries.empty()) j["libraries"] = libraries;
  if (own_threads) j["own_threads"] = true;
  if (restores_inout) j["restores_inout"] = true;
  if (kind != binary_kind::kSharedObject) j["kind"] = kind;
  if (binary_kind::is_launched(kind)) {
    j["workspaces"] = workspaces;
    for (const LaunchInfo& l : launches) j["launches"].push_back(launch_to_json(l));
    for (const LaunchInfo& l : pack_launches) j["pack_launches"].push_back(launch_to_json(l));
  }
  return j.dump();
}

bool may_be_needed(std::string_view soname) {
  static constexpr std::string_view kKnown[] = {"libc.so.6",
                                                "libm.so.6",
                                                "libmvec.so.1",
                                                "libpthread.so.0",
                                                "libstdc++.so.6",
                                                "libgcc_s.so.1",
                                                "libgomp.so.1",
                                                "libomp.so.5",
                                                "libatomic.so.1",
                                                "ld-linux-x86-64.so.2",
                                                "ld-linux-aarch64.so.1"};
  return std::ranges::find(kKnown, soname) != std::end(kKnown);
}

Result<Manifest> parse_manifest(std::string_view text) {
  const json j = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!j.is_object()) return invalid_argument("manifest: expected a JSON object, found ", text.substr(0, 40));
  Reader in(j, "manifest: ");
  Manifest m;
  in.read("abi_version", m.abi_version, kRequired);
  if (m.abi_version < 1 || m.abi_version > 4)
    in.refuse("abi_version", "expected 1 to 4, found ", m.abi_version, "; this program is older or newer");
  in.read("entry", m.entry, kRequired);
  in.read("pack_entry", m.pack_entry, kRequired);
  in.read("workspace_bytes", m.workspace_bytes, 0, INT64_MAX, kRequired);
  in.read("workspace_bytes_per_thread", m.workspace_bytes_per_thread, 0, INT64_MAX, kRequired);
  in.read("threads", m.threads, 1, INT32_MAX, kRequired);
  in.read("target", m.target, kRequired);
  in.read("toolchain", m.toolchain, kRequired);
  in.read("digest", m.digest, kRequired);
  in.read_objects(
      "args", [&](Reader& each) { m.args.push_back(read_arg(each)); }, kRequired);
  in.read_objects(
      "pack_args", [&](Reader& each) { m.pack_args.push_back(read_arg(each)); }, kRequired);
  if (const json* libraries = in.list("libraries"))
    for (const json& each : *libraries) {
      const std::string name = each.is_string() ? each.get<std::string>() : "";
      if (!may_be_needed(name)) in.refuse("libraries", "found ", found(each), ", which no kernel may need.");
      m.libraries.push_back(name);
    }
  in.read("own_threads", m.own_threads);
  in.read("restores_inout", m.restores_inout);
  read_kind(in, m);
  if (m.entry.empty()) in.refuse("entry", "expected a symbol, found nothing");
  RETURN_IF_ERROR(in.status());
  return m;
}

}  // namespace tuner
