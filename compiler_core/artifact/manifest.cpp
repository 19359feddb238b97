// The manifest as JSON. Unknown keys are ignored; a missing or mistyped key names itself.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "compiler_core/artifact/artifact.h"

namespace tuner {
namespace {

using nlohmann::json;

json arg_to_json(const ArgInfo& a) {
  return {{"name", a.name},   {"role", a.role},     {"dtype", std::string(dtype_name(a.dtype))},
          {"shape", a.shape}, {"layout", a.layout}, {"bytes", a.bytes}};
}

// One value by key, of exactly the type the manifest needs.
template <class T>
Result<T> get(const json& object, const std::string& key, const std::string& where) {
  const auto it = object.find(key);
  if (it == object.end()) return invalid_argument("manifest: ", where, key, ": missing");
  constexpr bool kIsText = std::is_same_v<T, std::string>;
  if constexpr (kIsText) {
    if (!it->is_string())
      return invalid_argument("manifest: ", where, key, ": expected text, found ", it->dump());
  } else {
    if (!it->is_number_integer())
      return invalid_argument("manifest: ", where, key, ": expected an integer, found ", it->dump());
  }
  return it->get<T>();
}

Result<std::vector<ArgInfo>> args_from_json(const json& object, const std::string& key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_array()) return invalid_argument("manifest: ", key, ": expected a list");
  std::vector<ArgInfo> args;
  for (size_t i = 0; i < it->size(); ++i) {
    const json& a = (*it)[i];
    const std::string where = str(key, "[", i, "].");
    if (!a.is_object()) return invalid_argument("manifest: ", where, " expected an object, found ", a.dump());
    ArgInfo info;
    ASSIGN_OR_RETURN(info.name, get<std::string>(a, "name", where));
    ASSIGN_OR_RETURN(info.role, get<std::string>(a, "role", where));
    ASSIGN_OR_RETURN(info.layout, get<std::string>(a, "layout", where));
    ASSIGN_OR_RETURN(info.bytes, get<int64_t>(a, "bytes", where));
    ASSIGN_OR_RETURN(const std::string dtype, get<std::string>(a, "dtype", where));
    const auto parsed = dtype_from_name(dtype);
    if (!parsed) return invalid_argument("manifest: ", where, "dtype: unknown type ", dtype);
    info.dtype = *parsed;
    const auto shape = a.find("shape");
    if (shape == a.end() || !shape->is_array())
      return invalid_argument("manifest: ", where, "shape: expected a list");
    int64_t elements = 1;
    for (const json& d : *shape) {
      if (!d.is_number_integer() || d.get<int64_t>() < 0)
        return invalid_argument("manifest: ", where, "shape: expected integers >= 0, found ", shape->dump());
      info.shape.push_back(d.get<int64_t>());
      if (__builtin_mul_overflow(elements, info.shape.back(), &elements))
        return invalid_argument("manifest: ", where, "shape: ", shape->dump(), " overflows");
    }
    if (info.bytes / dtype_bytes(info.dtype) != elements || info.bytes % dtype_bytes(info.dtype) != 0)
      return invalid_argument("manifest: ", where, "bytes: found ", info.bytes, ", expected ", elements,
                              " elements of ", dtype);
    args.push_back(std::move(info));
  }
  return args;
}

// A list of integers, of `size` of them when that is not 0.
Result<std::vector<int64_t>> integers(const json& object, const std::string& key, const std::string& where,
                                      size_t size = 0) {
  const auto it = object.find(key);
  const bool right = it != object.end() && it->is_array() && (size == 0 || it->size() == size) &&
                     std::all_of(it->begin(), it->end(), [](const json& n) {
                       return n.is_number_integer() && n.get<int64_t>() >= 0;
                     });
  if (!right) return invalid_argument("manifest: ", where, key, ": expected a list of integers >= 0");
  return it->get<std::vector<int64_t>>();
}

json launch_to_json(const LaunchInfo& l) {
  return {{"kernel", l.kernel},
          {"grid", l.grid},
          {"block", l.block},
          {"shared_bytes", l.shared_bytes},
          {"params", l.params},
          {"registers", l.registers},
          {"spill_bytes", l.spill_bytes},
          {"stack_bytes", l.stack_bytes},
          {"blocks_per_sm", l.blocks_per_sm}};
}

// What a driver would refuse, or worse, take: checked here, once.
Status launches_from_json(const json& object, Manifest& m) {
  const auto it = object.find("launches");
  if (it == object.end() || !it->is_array() || it->empty())
    return invalid_argument("manifest: launches: expected a list of at least one launch");
  ASSIGN_OR_RETURN(m.workspaces, integers(object, "workspaces", ""));
  for (size_t i = 0; i < it->size(); ++i) {
    const json& l = (*it)[i];
    const std::string where = str("launches[", i, "].");
    if (!l.is_object()) return invalid_argument("manifest: ", where, " expected an object, found ", l.dump());
    LaunchInfo info;
    ASSIGN_OR_RETURN(info.kernel, get<std::string>(l, "kernel", where));
    ASSIGN_OR_RETURN(const std::vector<int64_t> grid, integers(l, "grid", where, 3));
    ASSIGN_OR_RETURN(const std::vector<int64_t> block, integers(l, "block", where, 3));
    std::copy(grid.begin(), grid.end(), info.grid.begin());
    std::copy(block.begin(), block.end(), info.block.begin());
    if (std::min({grid[0], grid[1], grid[2], block[0], block[1], block[2]}) < 1 || grid[0] > INT32_MAX ||
        std::max(grid[1], grid[2]) > 65535 || std::max({block[0], block[1], block[2]}) > 1024 ||
        block[0] * block[1] * block[2] > 1024)
      return invalid_argument("manifest: ", where, "grid, block: found ", l["grid"].dump(), ", ",
                              l["block"].dump(), ", beyond what a GPU launches");
    ASSIGN_OR_RETURN(info.shared_bytes, get<int64_t>(l, "shared_bytes", where));
    ASSIGN_OR_RETURN(const std::vector<int64_t> params, integers(l, "params", where));
    for (const int64_t p : params) {
      if (p >= static_cast<int64_t>(m.args.size() + m.workspaces.size()))
        return invalid_argument("manifest: ", where, "params: found ", p, ", there are ", m.args.size(),
                                " arguments and ", m.workspaces.size(), " workspaces");
      info.params.push_back(static_cast<int>(p));
    }
    ASSIGN_OR_RETURN(info.registers, get<int>(l, "registers", where));
    ASSIGN_OR_RETURN(info.spill_bytes, get<int>(l, "spill_bytes", where));
    ASSIGN_OR_RETURN(info.stack_bytes, get<int>(l, "stack_bytes", where));
    ASSIGN_OR_RETURN(info.blocks_per_sm, get<int>(l, "blocks_per_sm", where));
    m.launches.push_back(std::move(info));
  }
  return Status::ok();
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
  if (kind == BinaryKind::kCubin) {
    j["kind"] = "cubin";
    j["workspaces"] = workspaces;
    for (const LaunchInfo& l : launches) j["launches"].push_back(launch_to_json(l));
  }
  return j.dump();
}

Result<Manifest> parse_manifest(std::string_view text) {
  const json j = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!j.is_object()) return invalid_argument("manifest: expected a JSON object, found ", text.substr(0, 40));
  Manifest m;
  ASSIGN_OR_RETURN(m.abi_version, get<int>(j, "abi_version", ""));
  if (m.abi_version != 1)
    return invalid_argument("manifest: abi_version: expected 1, found ", m.abi_version,
                            "; this program is older or newer");
  ASSIGN_OR_RETURN(m.entry, get<std::string>(j, "entry", ""));
  ASSIGN_OR_RETURN(m.pack_entry, get<std::string>(j, "pack_entry", ""));
  ASSIGN_OR_RETURN(m.workspace_bytes, get<int64_t>(j, "workspace_bytes", ""));
  ASSIGN_OR_RETURN(m.workspace_bytes_per_thread, get<int64_t>(j, "workspace_bytes_per_thread", ""));
  ASSIGN_OR_RETURN(m.threads, get<int>(j, "threads", ""));
  ASSIGN_OR_RETURN(m.target, get<std::string>(j, "target", ""));
  ASSIGN_OR_RETURN(m.toolchain, get<std::string>(j, "toolchain", ""));
  ASSIGN_OR_RETURN(m.digest, get<std::string>(j, "digest", ""));
  ASSIGN_OR_RETURN(m.args, args_from_json(j, "args"));
  ASSIGN_OR_RETURN(m.pack_args, args_from_json(j, "pack_args"));
  if (const std::string kind = j.value("kind", json("shared_object")).dump(); kind == "\"cubin\"") {
    m.kind = BinaryKind::kCubin;
    RETURN_IF_ERROR(launches_from_json(j, m));
  } else if (kind != "\"shared_object\"") {
    return invalid_argument("manifest: kind: expected \"shared_object\" or \"cubin\", found ", kind);
  }
  if (m.entry.empty()) return invalid_argument("manifest: entry: expected a symbol, found nothing");
  if (m.workspace_bytes < 0 || m.workspace_bytes_per_thread < 0 || m.threads < 1)
    return invalid_argument("manifest: workspace_bytes, workspace_bytes_per_thread and threads: found ",
                            m.workspace_bytes, ", ", m.workspace_bytes_per_thread, ", ", m.threads,
                            ", expected >= 0, >= 0, >= 1");
  return m;
}

}  // namespace tuner
