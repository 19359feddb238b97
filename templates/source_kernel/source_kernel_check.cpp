// What must hold of a kernel, whether a person or another program describes it.
#include <algorithm>
#include <array>
#include <cmath>
#include <regex>
#include <set>

#include "compiler_core/base/c_names.h"
#include "compiler_core/base/printable.h"
#include "templates/source_kernel/flag_rule.h"
#include "templates/source_kernel/operands.h"
#include "templates/source_kernel/source_kernel_json.h"

namespace tuner {
namespace {

constexpr int64_t kMostOperandBytes = int64_t{1} << 40;
constexpr size_t kMostArguments = 64, kMostKnobs = 64, kMostConstraints = 256, kMostFlags = 64,
                 kMostFlagForms = 4096;
constexpr size_t kMostBytes = size_t{64} << 20;

template <class... Args>
Status at(std::string_view key, const Args&... what) {
  return invalid_argument(key, ": ", what...);
}

class Checker {
 public:
  explicit Checker(const SourceKernel& kernel) : k_(kernel) {}

  Status all() const {
    if ((k_.language == SourceLanguage::kCommand) != k_.command.has_value())
      return at("language", "\"command\" has the words of a command, and no other language has");
    RETURN_IF_ERROR(names());
    if (k_.command) return command();
    RETURN_IF_ERROR(arguments());
    RETURN_IF_ERROR(knobs());
    RETURN_IF_ERROR(compiler());
    RETURN_IF_ERROR(reference());
    RETURN_IF_ERROR(files());
    RETURN_IF_ERROR(check_launch(k_));
    return space();
  }

 private:
  Status command() const {
    if (!k_.arguments.empty() || !k_.flags.empty() || !k_.source.empty() ||
        k_.reference.from != ReferenceFrom::kDefaultConfig)
      return at("language", "a command has no source, arguments, flags or reference");
    RETURN_IF_ERROR(knobs());
    RETURN_IF_ERROR(file_names());
    RETURN_IF_ERROR(check_command(k_));
    return space();
  }
  // A function's name may have namespaces before it in C++ and CUDA.
  Status function_name(std::string_view key, const std::string& name, bool cxx) const {
    std::string_view rest = name;
    for (size_t colons; cxx && (colons = rest.find("::")) != std::string_view::npos;
         rest.remove_prefix(colons + 2))
      RETURN_IF_ERROR(check_c_name(rest.substr(0, colons)).with_context(str(key, ": ")));
    if (const Status right = check_c_name(rest); !right)
      return at(key, right.message(), ", found \"", printable(name.substr(0, 80)), "\"");
    return Status::ok();
  }
  // Names that meet in expressions or in the text are different ones.
  Status names() const {
    RETURN_IF_ERROR(function_name("function", k_.function, k_.is_cxx(k_.source)));
    std::set<std::string> taken;
    const auto take = [&](const std::string& key, const std::string& name) -> Status {
      if (const Status right = check_c_name(name); !right)
        return at(key, right.message(), ", found \"", printable(name.substr(0, 80)), "\"");
      if (name == "min" || name == "max")
        return at(key, "\"", name, "\" is a function of expressions; give it another name");
      if (!taken.insert(name).second)
        return at(key, "the name is taken: sizes, knobs and arguments need names of their own");
      return Status::ok();
    };
    // An argument may be called as the size that it passes on.
    for (const SourceArgument& a : k_.arguments) RETURN_IF_ERROR(take("arguments", a.name).with_context(""));
    for (const SourceKnob& knob : k_.knobs) {
      RETURN_IF_ERROR(take("knobs." + knob.name, knob.name));
      if (knob.name == k_.function || k_.sizes.contains(knob.name))
        return at("knobs." + knob.name,
                  "the name is taken: the macro would replace the function or size of this name");
    }
    for (const auto& [name, value] : k_.sizes)
      if (const Status right = check_c_name(name); !right)
        return at("sizes." + printable(name.substr(0, 80)), right.message());
    return Status::ok();
  }

  Status arguments() const {
    if (k_.arguments.empty() || k_.arguments.size() > kMostArguments)
      return at("arguments", "expected 1 to ", kMostArguments, ", found ", k_.arguments.size());
    int outputs = 0;
    __int128 all = 0;
    for (size_t i = 0; i < k_.arguments.size(); ++i) {
      const SourceArgument& a = k_.arguments[i];
      const std::string key = str("arguments[", i, "] (", a.name, ")");
      if (a.scalar) {
        RETURN_IF_ERROR(scalar(key, a));
        continue;
      }
      __int128 bytes = dtype_bytes(a.dtype);
      for (const int64_t extent : a.shape) {
        if (extent < 1) return at(key, "shape: expected extents of at least 1, found ", extent);
        bytes *= extent;
        if (bytes > kMostOperandBytes) return at(key, "shape: the buffer is larger than 2^40 bytes");
      }
      all += bytes;
      RETURN_IF_ERROR(range(key, a));
      outputs += a.role == SourceRole::kIn ? 0 : 1;
    }
    if (outputs == 0)
      return at("arguments",
                "expected a buffer of role \"out\" or \"inout\", found none: nothing could be checked");
    if (all > kMostOperandBytes) return at("arguments", "the buffers are larger than 2^40 bytes together");
    return Status::ok();
  }
  // A range holds numbers of the type.
  static Status range(const std::string& key, const SourceArgument& a) {
    if (!a.contents.has_range) return Status::ok();
    const auto [least, most] = a.dtype == DType::kBool      ? std::pair(0.0, 1.0)
                               : a.dtype == DType::kInt8    ? std::pair(-128.0, 127.0)
                               : a.dtype == DType::kUInt8   ? std::pair(0.0, 255.0)
                               : a.dtype == DType::kInt16   ? std::pair(-0x1p15, 0x1p15 - 1)
                               : a.dtype == DType::kUInt16  ? std::pair(0.0, 0x1p16 - 1)
                               : a.dtype == DType::kInt32   ? std::pair(-0x1p31, 0x1p31 - 1)
                               : a.dtype == DType::kUInt32  ? std::pair(0.0, 0x1p32 - 1)
                               : a.dtype == DType::kInt64   ? std::pair(-0x1p53, 0x1p53)
                               : a.dtype == DType::kUInt64  ? std::pair(0.0, 0x1p53)
                               : a.dtype == DType::kFloat16 ? std::pair(-65504.0, 65504.0)
                               : a.dtype == DType::kFloat64 ? std::pair(-1e300, 1e300)
                                                            : std::pair(-3e38, 3e38);
    const double low = a.contents.low, high = a.contents.high;
    if (low >= least && high <= most && low <= high &&
        (is_float(a.dtype) || std::floor(high) >= std::ceil(low)))
      return Status::ok();
    return at(key, "contents: expected numbers of ", dtype_name(a.dtype), ", found ", low, " to ", high);
  }
  static Status scalar(const std::string& key, const SourceArgument& a) {
    const auto fits = [&](int64_t low, int64_t high) -> Status {
      if (a.integer >= low && a.integer <= high) return Status::ok();
      return at(key, "value: ", a.integer, " does not fit ", dtype_name(a.dtype));
    };
    switch (a.dtype) {
      case DType::kBool:
        return fits(0, 1);
      case DType::kInt8:
        return fits(-128, 127);
      case DType::kUInt8:
        return fits(0, 255);
      case DType::kInt32:
        return fits(INT32_MIN, INT32_MAX);
      case DType::kInt16:
        return fits(INT16_MIN, INT16_MAX);
      case DType::kUInt16:
        return fits(0, UINT16_MAX);
      case DType::kUInt32:
        return fits(0, UINT32_MAX);
      case DType::kUInt64:
        return fits(0, INT64_MAX);
      case DType::kFloat16:
      case DType::kBFloat16:
        return at(key, "a scalar is of bool, int8 to int64, uint8 to uint64, float32 or float64, found ",
                  dtype_name(a.dtype));
      default:
        return Status::ok();
    }
  }

  Status knobs() const {
    if (k_.knobs.size() > kMostKnobs)
      return at("knobs", "expected at most ", kMostKnobs, ", found ", k_.knobs.size());
    if (k_.constraints.size() > kMostConstraints)
      return at("constraints", "expected at most ", kMostConstraints);
    static const std::regex word(R"([A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}|-[0-9.][0-9.e+-]{0,30})");
    for (const SourceKnob& knob : k_.knobs) {
      std::set<std::string> seen;
      for (size_t i = 0; i < knob.size(); ++i) {
        const std::string text = knob.text(i);
        if (!knob.words.empty() && !std::regex_match(text, word))
          return at("knobs." + knob.name, "expected words of letters, digits, _ . + and -, found \"",
                    printable(text.substr(0, 80)), "\"");
        if (!seen.insert(text).second) return at("knobs." + knob.name, "the value ", text, " is there twice");
      }
      if (knob.size() == 0 || knob.first >= knob.size())
        return at("knobs." + knob.name, "expected at least one value");
    }
    return Status::ok();
  }

  static bool is_host_source(std::string_view name) {
    return std::ranges::any_of(std::array{".c", ".cc", ".cpp", ".cxx"},
                               [&](const char* ending) { return name.ends_with(ending); });
  }
  Status compiler() const {
    static const std::regex name(R"([A-Za-z0-9_][A-Za-z0-9_.+-]{0,63})");
    const bool needs_none = k_.on_device() && k_.reference.from != ReferenceFrom::kFunction;
    const std::string host = k_.host_compiler();
    if (needs_none && !host.empty())
      return at("compiler",
                "it compiles the reference function, and there is none; the kernel is compiled by "
                "\"nvrtc\", or by an \"nvcc\" of the worker's list");
    if (!needs_none && !std::regex_match(host, name))
      return at("compiler", "expected a name such as \"cc\", found \"", printable(host.substr(0, 80)), "\"");
    if (const std::string cuda = k_.cuda_compiler(); !std::regex_match(cuda, name))
      return at("compiler", "expected a name such as \"nvcc\", found \"", printable(cuda.substr(0, 80)),
                "\"");
    if (!k_.on_device() && !k_.reference.flags.empty())
      return at("reference.flags", "are of kernels of a GPU; else the reference has the kernel's");
    RETURN_IF_ERROR(flags("flags", k_.flags, k_.on_device() ? check_cuda_flag : check_flag));
    return flags("reference.flags", k_.reference.flags, check_flag);
  }
  using FlagRule = Status (*)(std::string_view flag);
  Status flags(std::string_view list, const std::vector<std::string>& texts, FlagRule rule) const {
    if (texts.size() > kMostFlags) return at(list, "expected at most ", kMostFlags, ", found ", texts.size());
    for (size_t i = 0; i < texts.size(); ++i) {
      const std::string key = str(list, "[", i, "]");
      const Result<std::vector<std::string>> used = names_in_flag(texts[i]);
      if (!used) return at(key, used.message());
      std::vector<const SourceKnob*> with;
      for (const std::string& each : *used) {
        const auto knob = std::ranges::find(k_.knobs, each, &SourceKnob::name);
        if (knob == k_.knobs.end() && !k_.sizes.contains(each))
          return at(key, "there is no knob and no size {", printable(each.substr(0, 80)), "}");
        if (knob != k_.knobs.end() && std::ranges::find(with, &*knob) == with.end()) with.push_back(&*knob);
      }
      RETURN_IF_ERROR(flag_forms(key, texts[i], with, rule));
    }
    return Status::ok();
  }
  // A flag is allowed in whatever form its knobs give it.
  Status flag_forms(const std::string& key, const std::string& flag,
                    const std::vector<const SourceKnob*>& with, FlagRule rule) const {
    size_t forms = 1;
    for (const SourceKnob* knob : with) forms *= std::min(knob->size(), kMostFlagForms);
    if (with.size() > 3 || forms > kMostFlagForms)
      return at(key, "its knobs give it more than ", kMostFlagForms, " forms");
    for (size_t form = 0; form < forms; ++form) {
      const std::string text = expanded_flag(flag, [&](const std::string& name) {
        size_t rest = form;
        for (const SourceKnob* knob : with) {
          if (knob->name == name) return knob->text(rest % knob->size());
          rest /= knob->size();
        }
        return std::to_string(k_.sizes.at(name));
      });
      RETURN_IF_ERROR(rule(text).with_context(key + ": "));
    }
    return Status::ok();
  }

  Status reference() const {
    if (k_.reference.from == ReferenceFrom::kFunction) {
      RETURN_IF_ERROR(
          function_name("reference.function", k_.reference.function, k_.is_cxx(k_.reference.source)));
      if (k_.on_device() && !is_host_source(k_.reference.source))
        return at("reference.source", "expected a file in C or C++ (.c, .cc, .cpp, .cxx), found ",
                  printable(k_.reference.source.substr(0, 200)), "; the reference runs on the host");
      if (k_.reference.source == k_.source && k_.reference.function == k_.function)
        return at("reference",
                  "the kernel is its own reference; write \"default\" if its default config is right");
    }
    if (k_.reference.from == ReferenceFrom::kDefaultConfig && !k_.ready.empty())
      return at("reference",
                "expected a function in C or C++, or files: the right answer is computed on a host, "
                "which runs no \"ptx\" and no \"cubin\"");
    if (k_.reference.from != ReferenceFrom::kArrays) return Status::ok();
    for (const SourceArgument& a : k_.arguments)
      if (!a.scalar && a.role != SourceRole::kIn && !k_.reference.arrays.contains(a.name))
        return at("reference.files", "expected a file for each output, found none for ", a.name);
    for (const auto& [output, file] : k_.reference.arrays) {
      const auto a = std::ranges::find(k_.arguments, output, &SourceArgument::name);
      if (a == k_.arguments.end() || a->scalar || a->role == SourceRole::kIn)
        return at("reference.files", "there is no output \"", printable(output.substr(0, 80)), "\"");
    }
    return Status::ok();
  }

  Status file_names() const {
    size_t bytes = 0;
    for (const SourceFile& file : k_.files) {
      RETURN_IF_ERROR(check_file_name(file.name));
      bytes += file.text.size();
    }
    if (bytes <= kMostBytes) return Status::ok();
    return at(k_.command ? "files" : "source", "the files have more than ", kMostBytes >> 20,
              " MiB together");
  }
  Status files() const {
    RETURN_IF_ERROR(file_names());
    const auto needed = [&](std::string_view key, const std::string& name) -> Status {
      return k_.file(name) == nullptr ? at(key, "there is no file ", printable(name.substr(0, 200)))
                                      : Status::ok();
    };
    if (k_.ready.empty()) RETURN_IF_ERROR(needed("source", k_.source));
    if (k_.reference.from == ReferenceFrom::kFunction)
      RETURN_IF_ERROR(needed("reference.source", k_.reference.source));
    for (const auto& [output, name] : k_.reference.arrays) RETURN_IF_ERROR(needed("reference.files", name));
    for (const SourceArgument& a : k_.arguments)
      if (a.contents.kind == ContentsKind::kFile) RETURN_IF_ERROR(needed("arguments", a.contents.file));
    return arrays();
  }
  // Arrays have the types and shapes of their arguments.
  Status arrays() const {
    for (size_t i = 0; i < k_.arguments.size(); ++i) {
      const SourceArgument& a = k_.arguments[i];
      if (a.scalar) continue;
      if (a.role != SourceRole::kOut && a.contents.kind == ContentsKind::kFile)
        if (const Status read = operand_bytes(k_, i, /*seed=*/0).status(); !read)
          return at(str("arguments[", i, "].contents"), read.message());
      if (a.role != SourceRole::kIn && k_.reference.from == ReferenceFrom::kArrays)
        if (const Status read = given_answer(k_, i).status(); !read)
          return at(str("reference.files.", a.name), read.message());
    }
    return Status::ok();
  }

  Status space() const {
    ConfigSpace space;
    RETURN_IF_ERROR(k_.declare(space));
    const Status sealed = space.seal();
    return sealed ? sealed : invalid_argument("knobs: ", sealed.message());
  }

  const SourceKernel& k_;
};

}  // namespace

Status check_file_name(const std::string& name) {
  const auto refused = [&](std::string_view why) {
    return invalid_argument("\"", printable(name.substr(0, 200)), "\" ", why,
                            "; expected a file of the job file's folder, or below it");
  };
  if (name.empty() || name.size() > 200) return refused("is no name of 1 to 200 characters");
  if (printable(name) != name || name.find('\\') != std::string::npos)
    return refused("has characters that are no text");
  if (name.starts_with('/')) return refused("is an absolute path");
  for (size_t at = 0; at <= name.size();) {
    const size_t end = std::min(name.find('/', at), name.size());
    const std::string_view part = std::string_view(name).substr(at, end - at);
    if (part == "..") return refused("leads out of the folder");
    if (part.empty() || part == ".") return refused("has an empty part");
    at = end + 1;
  }
  return Status::ok();
}

Status check_source_kernel(const SourceKernel& kernel) { return Checker(kernel).all(); }

}  // namespace tuner
