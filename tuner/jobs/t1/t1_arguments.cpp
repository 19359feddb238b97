#include "tuner/jobs/t1/t1_arguments.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "compiler_core/base/c_names.h"
#include "compiler_core/base/printable.h"
#include "templates/source_kernel/source_kernel.h"

namespace tuner::t1 {
namespace {

using Json = nlohmann::ordered_json;

// A type of the schema: what an element of a buffer is here, and how many there are in one of theirs.
struct Type {
  std::string_view name, ours;  // ours: empty if buffers have no such type
  int bytes = 0;
  bool is_float = false;
};
constexpr auto kTypes = std::to_array<Type>({{"bool", "bool", 1},
                                             {"int8", "int8", 1},
                                             {"uint8", "uint8", 1},
                                             {"int16", "", 2},
                                             {"uint16", "", 2},
                                             {"int32", "int32", 4},
                                             {"uint32", "int32", 4},
                                             {"int64", "int64", 8},
                                             {"uint64", "int64", 8},
                                             {"half", "float16", 2, true},
                                             {"float", "float32", 4, true},
                                             {"double", "float64", 8, true}});

struct Typed {
  Type type;
  int lanes = 1;  // "float4" has four: the schema's float16 is sixteen floats
};
std::optional<Typed> typed(std::string_view word) {
  for (const Type& type : kTypes) {
    if (word == type.name) return Typed{type, 1};
    if (!type.is_float || !word.starts_with(type.name)) continue;
    const std::string_view lanes = word.substr(type.name.size());
    for (const int each : {2, 4, 8, 16})
      if (lanes == std::to_string(each)) return Typed{type, each};
  }
  return std::nullopt;
}

// The integer that has the bits of an unsigned one of so many bytes.
int64_t same_bits(double value, int bytes) {
  return static_cast<int64_t>(bytes == 4 && value >= 0x1p31 ? value - 0x1p32 : value);
}

class Arguments {
 public:
  Arguments(const T1Document& document, bool on_device, Json& job, KernelDraft& notes)
      : document_(document), on_device_(on_device), job_(job), notes_(notes) {
    for (const Parameter& parameter : document.parameters) taken_.insert(parameter.name);
  }

  Status add(size_t i, int64_t& local_bytes) {
    const Argument& a = document_.kernel.arguments[i];
    place_ = str("KernelSpecification.Arguments[", i, "]");
    key_ = str("arguments[", job_["arguments"].size(), "]");
    if (a.memory == Memory::kLocal) return add_local(a, local_bytes);
    Json argument = {{"name", name_of(a, i)}};
    if (a.memory == Memory::kScalar)
      RETURN_IF_ERROR(add_scalar(a, argument));
    else
      RETURN_IF_ERROR(add_buffer(a, argument));
    job_["arguments"].push_back(std::move(argument));
    return Status::ok();
  }

 private:
  void fill(const std::string& key, const std::string& what) { notes_.to_fill.push_back(key + ": " + what); }
  void guess(const std::string& key, const std::string& what) { notes_.guesses.push_back(key + ": " + what); }
  template <class... Args>
  Status refused(std::string_view key, const Args&... what) const {
    return invalid_argument(place_, ".", key, ": ", what...);
  }
  Status no_type(const Argument& a, std::string_view of) const {
    return refused("Type", of, " have no type \"", printable(a.type.substr(0, 60)),
                   "\" here; let the kernel take another type, or the values as a buffer");
  }

  std::string name_of(const Argument& a, size_t i) {
    const std::string wanted = a.name.empty() ? str("argument", i + 1) : as_c_name(a.name);
    std::string name = wanted;
    for (int again = 2; !taken_.insert(name).second; ++again) name = str(wanted, "_", again);
    return name;
  }

  Status add_local(const Argument& a, int64_t& local_bytes) {
    const std::optional<Typed> type = typed(a.type);
    const int64_t bytes = type ? int64_t{type->type.bytes} * type->lanes : a.type_bytes;
    if (!a.elements || bytes <= 0 || *a.elements > (int64_t{1} << 30))
      return refused("Size", "memory of a block needs a size of at most 2^30 elements: ",
                     a.elements ? "found more" : a.elements_why);
    local_bytes += bytes * *a.elements;
    return Status::ok();
  }

  Status add_scalar(const Argument& a, Json& argument) {
    const std::optional<Typed> type = typed(a.type);
    const bool fits = type && type->lanes == 1 && type->type.bytes != 2;
    if (!fits) return no_type(a, "scalars");
    argument["type"] = type->type.ours;
    argument["value"] = kFillIn;
    if (!a.fill_value) {
      fill(key_ + ".value", str("which ", a.type, " is passed; the file has no FillValue of it"));
    } else if (type->type.is_float) {
      argument["value"] = *a.fill_value;
    } else if (std::floor(*a.fill_value) != *a.fill_value) {
      return refused("FillValue", "expected an integer, found ", *a.fill_value);
    } else if (std::abs(*a.fill_value) > 0x1p53) {
      fill(key_ + ".value",
           "which integer is passed; the file's is beyond 2^53, where a number of JSON loses digits");
    } else {
      argument["value"] = same_bits(*a.fill_value, type->type.bytes);
    }
    return Status::ok();
  }

  Status add_buffer(const Argument& a, Json& argument) {
    const bool custom = a.type == "custom" && a.type_bytes > 0;
    const std::optional<Typed> type =
        custom ? Typed{{"custom", "uint8", 1}, static_cast<int>(a.type_bytes)} : typed(a.type);
    if (!type || type->type.ours.empty()) return no_type(a, "buffers");
    argument["type"] = type->type.ours;
    if (custom) guess(key_ + ".type", "the file has a type of its own; here it is bytes");
    if (type->type.name.starts_with("uint") && type->type.ours.starts_with("int"))
      guess(key_ + ".type", str(a.type, " is taken as ", type->type.ours, ": the same bits"));
    Json shape = Json::array({a.elements ? Json(*a.elements) : Json(kFillIn)});
    if (!a.elements) fill(key_ + ".shape", str("how many elements it has: ", a.elements_why));
    if (type->lanes > 1) shape.push_back(type->lanes);
    argument["shape"] = std::move(shape);
    add_role(a, argument);
    const bool read = argument.value("role", "in") != "out";
    if (read || a.memory == Memory::kSymbol) add_contents(a, argument);
    return Status::ok();
  }
  void add_role(const Argument& a, Json& argument) {
    if (a.access == Access::kReadOnly) return;
    if (a.access == Access::kWriteOnly) {
      argument["role"] = "out";
    } else if (!on_device_) {
      argument["role"] = kSourceRoles[static_cast<size_t>(SourceRole::kInOut)];
      if (!a.access) guess(key_ + ".role", "the file does not say whether it is read or written");
    } else if (a.access) {
      argument["role"] = "out";
      guess(key_ + ".role",
            "the file says that it is read, too; here it holds garbage before each call, and must be written "
            "first");
    } else {
      argument["role"] = kFillIn;
      fill(key_ + ".role", "\"in\" or \"out\"; the file does not say whether it is read or written");
    }
  }
  void add_contents(const Argument& a, Json& argument) {
    if (a.memory == Memory::kSymbol) {
      argument["contents"] = kFillIn;
      return fill(
          key_,
          "it is memory of the device that the source names (__constant__), which tuner does not fill; make "
          "it an argument of the kernel, or give it its values in the source and delete this entry");
    }
    const double value = a.fill_value.value_or(0);
    switch (a.fill) {
      case Fill::kConstant:
        if (a.fill_value && value == 0) argument["contents"] = "zeros";
        if (value != 0) argument["contents"] = {{"from", value}, {"to", value}};
        return;
      case Fill::kRandom:
        if (value != 0) argument["contents"] = {{"from", std::min(0.0, value)}, {"to", std::max(0.0, value)}};
        return;
      case Fill::kGenerator:
        if (a.source == "i")
          argument["contents"] = "iota";
        else
          guess(key_ + ".contents", str("the file computes it as ", printable(a.source.substr(0, 100)),
                                        "; here it is random. Another text: a file NAME.npy"));
        return;
      case Fill::kFile:
        argument["contents"] = kFillIn;
        fill(key_ + ".contents", str("write what ", printable(a.source.substr(0, 100)),
                                     " has as a file NAME.npy beside the job file, and name it"));
    }
  }

  const T1Document& document_;
  const bool on_device_;
  Json& job_;
  KernelDraft& notes_;
  std::set<std::string> taken_;  // names of parameters and arguments
  std::string place_, key_;      // of the argument at hand: in the file, and in the job
};

}  // namespace

Status add_arguments(const T1Document& document, bool on_device, Json& job, KernelDraft& notes,
                     int64_t& local_bytes) {
  job["arguments"] = Json::array();
  Arguments arguments(document, on_device, job, notes);
  for (size_t i = 0; i < document.kernel.arguments.size(); ++i)
    RETURN_IF_ERROR(arguments.add(i, local_bytes));
  if (!job["arguments"].empty()) return Status::ok();
  job["arguments"].push_back(kFillIn);
  notes.to_fill.push_back(
      "arguments: those of the kernel, in its order; the file lists none. tuner kernel new SOURCE drafts "
      "them");
  return Status::ok();
}

}  // namespace tuner::t1
