// The keys of an entry, one function a subject. What holds whatever a kernel comes from is in
// source_kernel_check.cpp.
#include "templates/source_kernel/source_kernel_json.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler_core/base/c_names.h"
#include "templates/source_kernel/source_text.h"

namespace tuner {
namespace {

using json_input::found;
using json_input::Reader;
using nlohmann::json;

constexpr size_t kMostSourceBytes = size_t{1} << 20;
constexpr size_t kMostArrayBytes = size_t{64} << 20;
constexpr size_t kMostFiles = 64;
constexpr size_t kMostValues = 4096;  // of a knob

// How far an answer may be off where the job file does not say: of rounding in sums of some thousand terms.
double usual_tolerance(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return 1e-10;
    case DType::kFloat32:
      return 1e-4;
    case DType::kFloat16:
      return 1e-2;
    case DType::kBFloat16:
      return 5e-2;
    default:
      return 0;
  }
}

class KernelReader {
 public:
  KernelReader(Reader& in, const JobFolder& folder) : in_(in), folder_(folder) {}

  std::shared_ptr<const SourceKernel> read() {
    read_language();
    read_sizes();
    if (comes_compiled())
      read_ready_kernels(in_, folder_, k_);
    else
      read_knobs();
    read_default();
    read_constraints();
    k_.flops = work("flops");
    k_.bytes = work("bytes");
    if (k_.language == SourceLanguage::kCommand)
      read_command(in_, folder_, k_);
    else
      read_function();
    if (in_.failed()) return nullptr;
    in_.refuse_all(check_source_kernel(k_));
    return in_.failed() ? nullptr : std::make_shared<const SourceKernel>(std::move(k_));
  }

 private:
  // --- expressions ---
  Result<Formula> formula(const json& value) const {
    if (value.is_number_integer()) return Formula::parse(value.dump());
    if (value.is_string()) return Formula::parse(value.get_ref<const std::string&>());
    return invalid_argument("expected an integer or an expression in quotes");
  }
  // The value of an expression over sizes; refuses `key` where it has none.
  int64_t number(Reader& in, const std::string& key, const json& value) {
    const Result<Formula> read = formula(value);
    const auto size = [&](const std::string& name) -> std::optional<Formula::Value> {
      const auto known = k_.sizes.find(name);
      return known == k_.sizes.end() ? std::nullopt : std::optional<Formula::Value>(known->second);
    };
    const Result<int64_t> result = read ? read->value(size) : read.status();
    if (result) return *result;
    std::string message = result.message();
    if (message.find("unknown name") != std::string::npos) message += "; known are the sizes" + size_names();
    in.refuse(key, message, "; found ", found(value), ".");
    return 1;
  }
  std::string size_names() const {
    std::string names;
    for (const auto& [name, value] : k_.sizes) names += (names.empty() ? " " : ", ") + name;
    return names.empty() ? ", of which there are none" : names;
  }
  int64_t work(const std::string& key) {
    const json* value = in_.get(key);
    if (value == nullptr) return 0;
    const int64_t result = number(in_, key, *value);
    if (result < 0) in_.refuse(key, "expected at least 0, found ", result, ".");
    return result;
  }

  // --- the parts of an entry ---
  void read_language() {
    std::string language = "c";
    in_.read("language", language);
    const auto known = std::ranges::find(kSourceLanguages, language);
    if (known == std::end(kSourceLanguages))
      return in_.refuse("language",
                        "expected \"c\", \"c++\", \"cuda\", \"ptx\", \"cubin\" or \"command\", found ",
                        found(json(language)), ".");
    k_.language = static_cast<SourceLanguage>(known - std::begin(kSourceLanguages));
  }
  bool comes_compiled() const {
    return k_.language == SourceLanguage::kPtx || k_.language == SourceLanguage::kCubin;
  }
  // What a kernel has that is no program.
  void read_function() {
    if (comes_compiled()) {
      if (!k_.ready.empty()) k_.function = as_c_name(k_.ready.front().function);
    } else {
      in_.read("source", k_.source, json_input::kRequired);
      in_.read("function", k_.function, json_input::kRequired);
    }
    if (k_.language == SourceLanguage::kCuda) read_launch(in_, k_);
    read_arguments();
    read_reference();
    read_compiler();
    read_files();
  }
  void read_sizes() {
    const json* sizes = object("sizes", "of names and integers: {\"n\": 1024}");
    if (sizes == nullptr) return;
    for (const auto& [name, value] : sizes->items()) {
      if (!value.is_number_integer() || value.get<double>() < 0 ||
          value.get<double>() > static_cast<double>(int64_t{1} << 40))
        return in_.refuse("sizes." + name, "expected an integer from 0 to 2^40, found ", found(value), ".");
      k_.sizes[name] = value.get<int64_t>();
    }
  }
  const json* object(const std::string& key, std::string_view what) {
    const json* value = in_.get(key);
    if (value == nullptr || value->is_object()) return value;
    in_.refuse(key, "expected an object ", what, ", found ", found(*value), ".");
    return nullptr;
  }

  void read_arguments() {
    const json* list = in_.list("arguments", json_input::kRequired);
    for (size_t i = 0; list != nullptr && i < list->size() && !in_.failed(); ++i) {
      const std::string key = str("arguments[", i, "]");
      if (!(*list)[i].is_object())
        return in_.refuse(key, "expected an object, found ", found((*list)[i]), ".");
      Reader one((*list)[i], "");
      const Status read = read_argument(one);
      if (!read) return in_.refuse(key, read.message());
    }
  }
  Status read_argument(Reader& in) {
    SourceArgument a;
    in.read("name", a.name, json_input::kRequired);
    std::string type;
    in.read("type", type, json_input::kRequired);
    const std::optional<DType> dtype = dtype_from_name(type);
    if (!in.failed() && !dtype)
      in.refuse(
          "type",
          "expected one of bool, int8 to int64, uint8 to uint64, float16, bfloat16, float32, float64, found ",
          found(json(type)), ".");
    a.dtype = dtype.value_or(DType::kFloat32);
    const json *shape = in.get("shape"), *value = in.get("value");
    if (!in.failed() && (shape == nullptr) == (value == nullptr))
      in.refuse("shape", "expected either \"shape\", of a buffer, or \"value\", of a scalar, found ",
                shape == nullptr ? "neither." : "both.");
    a.scalar = value != nullptr;
    if (!in.failed()) a.scalar ? read_scalar(in, *value, a) : read_buffer(in, *shape, a);
    RETURN_IF_ERROR(in.finish());
    k_.arguments.push_back(std::move(a));
    return Status::ok();
  }
  void read_scalar(Reader& in, const json& value, SourceArgument& a) {
    if (is_float(a.dtype) && value.is_number()) {
      a.number = value.get<double>();
      return;
    }
    a.integer = number(in, "value", value);
    a.number = static_cast<double>(a.integer);
  }
  void read_buffer(Reader& in, const json& shape, SourceArgument& a) {
    if (!shape.is_array() || shape.empty() || shape.size() > 8)
      return in.refuse("shape", "expected a list of 1 to 8 extents, found ", found(shape), ".");
    for (size_t i = 0; i < shape.size() && !in.failed(); ++i)
      a.shape.push_back(number(in, str("shape[", i, "]"), shape[i]));
    std::string role = "in";
    in.read("role", role);
    const auto named = std::ranges::find(kSourceRoles, role);
    if (named == std::end(kSourceRoles))
      return in.refuse("role", "expected \"in\", \"out\" or \"inout\", found ", found(json(role)), ".");
    a.role = static_cast<SourceRole>(named - std::begin(kSourceRoles));
    read_contents(in, a);
    a.absolute = a.relative = usual_tolerance(a.dtype);
    const json* tolerance = in.get("tolerance");
    if (tolerance == nullptr) return;
    if (a.role == SourceRole::kIn) return in.refuse("tolerance", "is of outputs, and the role is \"in\".");
    if (!tolerance->is_object())
      return in.refuse("tolerance", "expected {\"absolute\": A, \"relative\": R}, found ", found(*tolerance),
                       ".");
    a.absolute = a.relative = 0;
    Reader t(*tolerance, "tolerance.");
    t.read_at_least("absolute", a.absolute, 0);
    t.read_at_least("relative", a.relative, 0);
    in.adopt(t.finish());
  }
  static void read_contents(Reader& in, SourceArgument& a) {
    const json* contents = in.get("contents");
    if (contents == nullptr) return;
    if (a.role == SourceRole::kOut) return in.refuse("contents", "is of inputs, and the role is \"out\".");
    if (contents->is_object()) {
      Reader range(*contents, "contents.");
      range.read("from", a.contents.low, json_input::kRequired);
      range.read("to", a.contents.high, json_input::kRequired);
      in.adopt(range.finish());
      a.contents.has_range = true;
      if (!(a.contents.low <= a.contents.high))
        in.refuse("contents", "expected from <= to, found ", found(*contents), ".");
      return;
    }
    const std::string word = contents->is_string() ? contents->get<std::string>() : "";
    if (word.ends_with(".npy")) {
      a.contents = {.kind = ContentsKind::kFile, .file = word};
    } else if (word == "random" || word == "zeros" || word == "iota") {
      a.contents.kind = word == "random"  ? ContentsKind::kRandom
                        : word == "zeros" ? ContentsKind::kZeros
                                          : ContentsKind::kIota;
    } else {
      in.refuse(
          "contents",
          "expected \"random\", \"zeros\", \"iota\", {\"from\": A, \"to\": B} or a file NAME.npy, found ",
          found(*contents), ".");
    }
  }

  // --- knobs ---
  void read_knobs() {
    const json* knobs = object("knobs", "of names and values: {\"TILE\": [4, 8, 16]}");
    if (knobs == nullptr) return;
    for (const auto& [name, values] : knobs->items()) {
      SourceKnob knob{.name = name};
      if (values.is_array())
        read_list("knobs." + name, values, knob);
      else if (values.is_object())
        read_range("knobs." + name, values, knob);
      else
        in_.refuse("knobs." + name, "expected a list of values, or {\"from\": A, \"to\": B}, found ",
                   found(values), ".");
      if (in_.failed()) return;
      k_.knobs.push_back(std::move(knob));
    }
  }
  void read_list(const std::string& key, const json& values, SourceKnob& knob) {
    if (values.empty() || values.size() > kMostValues)
      return in_.refuse(key, "expected 1 to ", kMostValues, " values, found ", values.size(), ".");
    const bool integers = std::ranges::all_of(values, [](const json& v) { return v.is_number_integer(); });
    for (const json& v : values) {
      if (!v.is_number() && !v.is_string())
        return in_.refuse(key, "expected integers, numbers or words, found ", found(v),
                          v.is_boolean() ? "; write 0 and 1." : ".");
      if (v.is_number_unsigned() && v.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
        return in_.refuse(key, "expected integers of 64 bits, found ", found(v), ".");
      if (integers)
        knob.numbers.push_back(v.get<int64_t>());
      else
        knob.words.push_back(v.is_string() ? v.get<std::string>() : v.dump());
    }
    if (!integers) return;
    const int64_t first = knob.numbers.front();
    std::ranges::sort(knob.numbers);
    knob.first = static_cast<size_t>(std::ranges::lower_bound(knob.numbers, first) - knob.numbers.begin());
  }
  void read_range(const std::string& key, const json& range, SourceKnob& knob) {
    Reader in(range, key + ".");
    int64_t from = 0, to = 0, step = 1, power = 0;
    const int64_t most = int64_t{1} << 62;
    in.read("from", from, -most, most, json_input::kRequired);
    in.read("to", to, from, most, json_input::kRequired);
    in.read("step", step, 1, most);
    in.read("powers_of", power, 2, 1024);
    if (range.contains("step") && range.contains("powers_of"))
      in.refuse("powers_of", "expected either this or \"step\".");
    in_.refuse_all(in.finish());
    if (in_.failed()) return;
    if (power > 0) {
      for (__int128 v = 1; v <= to; v *= power)
        if (v >= from) knob.numbers.push_back(static_cast<int64_t>(v));
    } else {
      for (__int128 v = from; v <= to && knob.numbers.size() <= kMostValues; v += step)
        knob.numbers.push_back(static_cast<int64_t>(v));
    }
    if (knob.numbers.empty() || knob.numbers.size() > kMostValues)
      in_.refuse(key, "expected 1 to ", kMostValues, " values, found ",
                 knob.numbers.empty() ? "none" : "more", ".");
  }
  void read_default() {
    const json* values = object("default", "of knobs and values: {\"TILE\": 8}");
    if (values == nullptr) return;
    for (const auto& [name, value] : values->items()) {
      const auto knob = std::ranges::find(k_.knobs, name, &SourceKnob::name);
      if (knob == k_.knobs.end()) return in_.refuse("default." + name, "there is no knob of this name.");
      const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
      size_t place = 0;
      while (place < knob->size() && knob->text(place) != text) ++place;
      if (place == knob->size())
        return in_.refuse("default." + name, "expected a value of the knob, found ", found(value), ".");
      knob->first = place;
    }
  }
  void read_constraints() {
    const json* list = in_.list("constraints");
    for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
      const json& text = (*list)[i];
      const Result<Formula> read = text.is_string() ? Formula::parse(text.get_ref<const std::string&>())
                                                    : invalid_argument("expected an expression in quotes");
      if (!read) return in_.refuse(str("constraints[", i, "]"), read.message(), "; found ", found(text), ".");
      k_.constraints.push_back(*read);
    }
  }

  // Of a kernel in CUDA C++ "compiler" is its own where it is an nvcc; else it is the reference's.
  void read_compiler() {
    const bool on_host = !k_.on_device() || k_.reference.from == ReferenceFrom::kFunction;
    const std::string& file = k_.on_device() ? k_.reference.source : k_.source;
    std::string host = on_host ? (k_.is_cxx(file) ? "c++" : "cc") : "", given;
    in_.read("compiler", given);
    const bool is_own =
        k_.language == SourceLanguage::kCuda && (SourceKernel::is_nvcc(given) || given == kNvrtcCompiler);
    if (!given.empty() && !is_own) host = given;
    if (!reference_compiler_.empty()) host = reference_compiler_;
    k_.compiler = host;
    if (is_own && given != kNvrtcCompiler) k_.compiler = given + (host.empty() ? "" : ",") + host;
    if (comes_compiled()) return;
    if (!k_.on_device()) k_.flags = {"-O3", "-march=native"};
    read_flags(in_, k_.flags);
  }
  // Leaves them as they are where the key is missing.
  static void read_flags(Reader& in, std::vector<std::string>& words) {
    const json* flags = in.list("flags");
    if (flags == nullptr) return;
    words.clear();
    for (const json& flag : *flags) {
      if (!flag.is_string()) return in.refuse("flags", "expected words, found ", found(flag), ".");
      words.push_back(flag.get<std::string>());
    }
  }
  void read_reference() {
    const json* reference = in_.get("reference");
    if (reference == nullptr || *reference == "default") return;
    if (!reference->is_object())
      return in_.refuse("reference",
                        "expected \"default\", {\"source\": FILE, \"function\": NAME} or {\"files\": "
                        "{OUTPUT: FILE.npy}}, found ",
                        found(*reference), ".");
    Reader in(*reference, "reference.");
    if (reference->contains("files")) {
      k_.reference.from = ReferenceFrom::kArrays;
      const json* files = in.get("files");
      if (files != nullptr && !files->is_object())
        in.refuse("files", "expected {OUTPUT: FILE.npy}, found ", found(*files), ".");
      if (files != nullptr && files->is_object())
        for (const auto& [output, file] : files->items()) {
          if (!file.is_string())
            in.refuse("files." + output, "expected the name of a file, found ", found(file), ".");
          if (file.is_string()) k_.reference.arrays[output] = file.get<std::string>();
        }
    } else {
      k_.reference.from = ReferenceFrom::kFunction;
      k_.reference.source = k_.source;
      in.read("source", k_.reference.source);
      in.read("function", k_.reference.function, json_input::kRequired);
      if (k_.on_device()) {
        in.read("compiler", reference_compiler_);
        k_.reference.flags = {"-O2"};
        read_flags(in, k_.reference.flags);
      }
    }
    in_.refuse_all(in.finish());
  }

  // --- files ---
  void read_files() {
    std::vector<std::string> listed;
    if (const json* include = in_.list("include"))
      for (const json& name : *include) {
        if (!name.is_string())
          return in_.refuse("include", "expected names of files, found ", found(name), ".");
        listed.push_back(name.get<std::string>());
      }
    if (in_.failed()) return;
    if (!comes_compiled()) add_source("source", k_.source);
    if (k_.reference.from == ReferenceFrom::kFunction) add_source("reference.source", k_.reference.source);
    for (const std::string& name : listed) add_source("include", name);
    for (const auto& [output, name] : k_.reference.arrays) add_array("reference.files", name);
    for (const SourceArgument& a : k_.arguments)
      if (a.contents.kind == ContentsKind::kFile) add_array("arguments", a.contents.file);
    std::ranges::sort(k_.files, {}, &SourceFile::name);
  }
  void add_array(const std::string& key, const std::string& name) {
    if (in_.failed() || k_.file(name) != nullptr) return;
    Result<std::string> bytes =
        check_file_name(name) ? folder_.read(name, kMostArrayBytes) : check_file_name(name);
    if (!bytes) return in_.refuse(key, bytes.message());
    k_.files.push_back({name, *std::move(bytes)});
  }
  // The file, and those of the job's folder that it includes by quotes.
  void add_source(const std::string& key, const std::string& name) {
    if (in_.failed()) return;
    if (std::ranges::find(open_, name) != open_.end()) {
      std::string circle;
      for (auto at = std::ranges::find(open_, name); at != open_.end(); ++at) circle += *at + " includes ";
      return in_.refuse(key, circle, name, ": a circle.");
    }
    if (k_.file(name) != nullptr) return;
    const Status right = check_file_name(name);
    Result<std::string> text = right ? folder_.read(name, kMostSourceBytes) : right;
    if (!text) return in_.refuse(key, text.message());
    if (text->find('\0') != std::string::npos) return in_.refuse(key, name, " is no text: it has a byte 0.");
    if (k_.files.size() >= kMostFiles) return in_.refuse(key, "expected at most ", kMostFiles, " files.");
    open_.push_back(name);
    for (const SourceInclude& include : quoted_includes(*text)) add_included(key, name, include);
    open_.pop_back();
    if (!in_.failed()) k_.files.push_back({name, *std::move(text)});
  }
  void add_included(const std::string& key, const std::string& from, const SourceInclude& include) {
    if (in_.failed()) return;
    const size_t slash = from.rfind('/');
    const std::string beside = (slash == std::string::npos ? "" : from.substr(0, slash + 1)) + include.name;
    if (const Status right = check_file_name(beside); !right)
      return in_.refuse(key, from, ":", include.line, ": #include \"", include.name, "\": ", right.message());
    // What is not there is the compiler's to find, among its own headers.
    if (folder_.has(beside))
      add_source(key, beside);
    else if (check_file_name(include.name) && folder_.has(include.name))
      add_source(key, include.name);
  }
  Reader& in_;
  const JobFolder& folder_;
  SourceKernel k_;
  std::string reference_compiler_;
  std::vector<std::string> open_;  // files whose includes are being read, outermost first
};

}  // namespace

std::shared_ptr<const SourceKernel> read_source_kernel(Reader& in, const JobFolder& folder) {
  return KernelReader(in, folder).read();
}

}  // namespace tuner
