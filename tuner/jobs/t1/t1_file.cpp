// The keys of a T1 file, one function a subject. Keys that are not of the schema are tools' own: they are
// left alone, but for those of Kernel Tuner that say how a kernel is launched.
#include "tuner/jobs/t1/t1_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "compiler_core/base/c_names.h"
#include "compiler_core/base/json_reader.h"
#include "tuner/jobs/t1/t1_sizes.h"

namespace tuner::t1 {
namespace {

using json_input::found;
using json_input::kRequired;
using json_input::Reader;
using nlohmann::json;

constexpr size_t kMostParameters = 64, kMostConditions = 256, kMostArguments = 64, kMostOptions = 64;
constexpr std::array<const char*, 3> kDimensions = {"X", "Y", "Z"};

// The word's place in a list; refuses the key where it is none of them.
template <class E, size_t N>
E named(Reader& in, const std::string& key, const std::array<const char*, N>& words, std::string_view word,
        E otherwise) {
  std::string known;
  for (size_t i = 0; i < N; ++i) {
    if (word == words[i]) return static_cast<E>(i);
    known += (known.empty() ? "" : ", ") + std::string(words[i]);
  }
  in.refuse(key, "expected one of ", known, ", found ", found(json(word)), ".");
  return otherwise;
}

// An expression: a text, or a number.
std::optional<std::string> expression_text(const json* value) {
  if (value == nullptr || value->is_null()) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  if (value->is_number_integer()) return value->dump();
  return std::nullopt;
}

class Document {
 public:
  explicit Document(const json& document) : document_(document) {}

  Result<T1Document> read() {
    Reader in(document_, "");
    in.read_object(
        "ConfigurationSpace", [&](Reader& space) { read_space(space); }, kRequired);
    in.read_object(
        "KernelSpecification", [&](Reader& kernel) { read_kernel(kernel); }, kRequired);
    read_budget(in);
    RETURN_IF_ERROR(in.status());
    return std::move(out_);
  }

 private:
  // --- the space ---
  void read_space(Reader& in) {
    limited(in, "TuningParameters", 1, kMostParameters, kRequired);
    in.read_objects(
        "TuningParameters", [&](Reader& each) { read_parameter(each); }, kRequired);
    limited(in, "Conditions", 0, kMostConditions);
    if (const json* conditions = in.get("Conditions"); conditions != nullptr && !conditions->is_null())
      in.read_objects("Conditions", [&](Reader& each) {
        std::string text;
        each.read("Expression", text, kRequired);
        if (each.failed()) return;
        const Result<std::string> ours = expression_over(out_.parameters, text);
        if (!ours) return each.refuse("Expression", ours.message(), "; found ", found(json(text)), ".");
        out_.conditions.push_back(*ours);
      });
  }
  static void limited(Reader& in, const std::string& key, size_t least, size_t most, bool required = false) {
    const json* list = in.get(key, required);
    if (list != nullptr && list->is_array() && (list->size() < least || list->size() > most))
      in.refuse(key, "expected ", least, " to ", most, " of them, found ", list->size(), ".");
  }
  void read_parameter(Reader& in) {
    Parameter parameter;
    in.read("Name", parameter.name, kRequired);
    if (const Status right = check_c_name(parameter.name); !in.failed() && !right)
      in.refuse("Name", right.message(), ", found ", found(json(parameter.name)), ".");
    if (parameter.name == "min" || parameter.name == "max")
      in.refuse("Name", "\"", parameter.name, "\" is a function of expressions; give it another name.");
    if (std::ranges::find(out_.parameters, parameter.name, &Parameter::name) != out_.parameters.end())
      in.refuse("Name", "there is a parameter ", found(json(parameter.name)), " already.");
    const json* values = in.get("Values", kRequired);
    if (in.failed()) return;
    Result<std::vector<Value>> read = values->is_string()  ? value_list(values->get_ref<const std::string&>())
                                      : values->is_array() ? listed(*values)
                                                           : invalid_argument("expected a list in quotes");
    if (!read) return in.refuse("Values", read.message(), "; found ", found(*values), ".");
    std::set<std::string> seen;
    for (Value& value : *read)
      if (seen.insert(text_of(value)).second) parameter.values.push_back(std::move(value));
    if (const json* first = in.get("Default"); first != nullptr && !first->is_null()) {
      const std::optional<Value> chosen = value_of(*first);
      if (!chosen) return in.refuse("Default", "expected a number or a word, found ", found(*first), ".");
      parameter.first = chosen;
    }
    out_.parameters.push_back(std::move(parameter));
  }
  static std::optional<Value> value_of(const json& value) {
    if (value.is_boolean()) return Value(int64_t{value.get<bool>()});
    if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
      return std::nullopt;
    if (value.is_number_integer()) return Value(value.get<int64_t>());
    if (value.is_number_float()) return Value(value.get<double>());
    if (value.is_string()) return Value(value.get<std::string>());
    return std::nullopt;
  }
  static Result<std::vector<Value>> listed(const json& list) {
    if (list.empty() || list.size() > kMostValues)
      return invalid_argument("expected 1 to ", kMostValues, " values, found ", list.size());
    std::vector<Value> values;
    for (const json& each : list) {
      std::optional<Value> value = value_of(each);
      if (!value) return invalid_argument("expected numbers and words");
      values.push_back(*std::move(value));
    }
    return values;
  }

  // --- the kernel ---
  void read_kernel(Reader& in) {
    Kernel& k = out_.kernel;
    in.read("Language", k.language, kRequired);
    in.read("KernelName", k.function, kRequired);
    in.read("KernelFile", k.file, kRequired);
    read_problem(in);
    // Kernel Tuner launches by the problem's size alone: then the other size may be anything. Functions of a
    // host are not launched.
    const bool launched = k.language != "C" && k.language != "C++";
    if (launched && k.grid_div.empty()) read_extents(in, "GlobalSize", k.global);
    if (launched) read_extents(in, "LocalSize", k.local);
    std::string counts = k.language;
    in.read("GlobalSizeType", counts);
    k.global_counts_threads = counts == "OpenCL";
    read_shared(in);
    read_options(in);
    if (const json* types = in.list("KernelTypeNames"); types != nullptr && !types->empty())
      in.refuse("KernelTypeNames", "templates are not instantiated; write a function that calls ", k.function,
                " with these types, found ", found(*types), ".");
    limited(in, "Arguments", 0, kMostArguments);
    in.read_objects("Arguments", [&](Reader& each) { read_argument(each); });
    if (const json* references = in.get("ReferenceArguments");
        references != nullptr && references->is_array())
      in.read_objects("ReferenceArguments", [&](Reader& each) {
        std::string target;
        each.read("TargetName", target, kRequired);
        k.references.push_back(target);
      });
  }
  void read_extents(Reader& in, const std::string& key, Extents& extents) {
    in.read_object(
        key,
        [&](Reader& size) {
          for (const char* dimension : kDimensions) {
            const json* value = size.get(dimension, dimension == kDimensions[0]);
            if (size.failed()) return;
            const std::optional<std::string> text =
                value == nullptr ? std::optional<std::string>("1") : expression_text(value);
            const Result<std::string> ours = text ? expression_over(out_.parameters, *text)
                                                  : invalid_argument("expected an expression in quotes");
            if (!ours) return size.refuse(dimension, ours.message(), "; found ", found(*value), ".");
            extents.push_back(*ours);
          }
        },
        kRequired);
    while (extents.size() > 1 && extents.back() == "1") extents.pop_back();
  }
  void read_problem(Reader& in) {
    const json* problem = in.get("ProblemSize");
    if (problem == nullptr || problem->is_null()) return;
    const json list = problem->is_array() ? *problem : json::array({*problem});
    if (list.empty() || list.size() > 3)
      return in.refuse("ProblemSize", "expected 1 to 3 integers, found ", found(list), ".");
    for (const json& each : list) {
      if (!each.is_number_integer() || each.get<double>() < 1 || each.get<double>() > 1e12)
        return in.refuse("ProblemSize", "expected integers of at least 1, found ", found(each), ".");
      out_.kernel.problem.push_back(each.get<int64_t>());
    }
    for (const char* dimension : kDimensions) {
      const std::string key = str("GridDiv", dimension);
      const json* divisors = in.get(key);
      if (divisors == nullptr || divisors->is_null()) continue;
      out_.kernel.grid_div.resize(static_cast<size_t>(dimension[0] - 'X') + 1);
      if (!divisors->is_array()) return in.refuse(key, "expected a list, found ", found(*divisors), ".");
      for (const json& each : *divisors) {
        const std::optional<std::string> text = expression_text(&each);
        const Result<std::string> ours = text ? expression_over(out_.parameters, *text)
                                              : invalid_argument("expected expressions in quotes");
        if (!ours) return in.refuse(key, ours.message(), "; found ", found(each), ".");
        out_.kernel.grid_div.back().push_back(*ours);
      }
    }
  }
  void read_shared(Reader& in) {
    const json* shared = in.get("SharedMemory");
    if (shared == nullptr || shared->is_null()) return;
    const std::optional<std::string> text = expression_text(shared);
    const Result<std::string> ours =
        text ? expression_over(out_.parameters, *text) : invalid_argument("expected a number of bytes");
    if (!ours) return in.refuse("SharedMemory", ours.message(), "; found ", found(*shared), ".");
    if (*ours != "0") out_.kernel.shared_bytes = *ours;
  }
  void read_options(Reader& in) {
    limited(in, "CompilerOptions", 0, kMostOptions);
    const json* options = in.list("CompilerOptions");
    if (options == nullptr) return;
    for (const json& each : *options) {
      if (!each.is_string()) return in.refuse("CompilerOptions", "expected words, found ", found(each), ".");
      if (!each.get_ref<const std::string&>().empty()) out_.kernel.options.push_back(each.get<std::string>());
    }
  }

  // --- its arguments ---
  void read_argument(Reader& in) {
    Argument a;
    in.read("Name", a.name);
    in.read("Type", a.type, kRequired);
    std::string word;
    in.read("MemoryType", word, kRequired);
    if (in.failed()) return;
    a.memory =
        named(in, "MemoryType", std::array{"Scalar", "Vector", "Local", "Symbol"}, word, Memory::kVector);
    // Kernel Tuner's word for memory of the device that is no argument.
    if (const json* memory = in.get("MemType"); memory != nullptr && *memory == "Constant")
      a.memory = Memory::kSymbol;
    if (in.get("AccessType") != nullptr) {
      in.read("AccessType", word);
      a.access =
          named(in, "AccessType", std::array{"ReadOnly", "WriteOnly", "ReadWrite"}, word, Access::kReadWrite);
    }
    read_size(in, a);
    in.read("TypeSize", a.type_bytes, 0, 1 << 16);
    if (in.get("FillType") != nullptr) {
      in.read("FillType", word);
      const auto fill =
          named(in, "FillType",
                std::array{"Constant", "Random", "Generator", "Script", "BinaryRaw", "BinaryHDF"}, word, 0);
      a.fill = static_cast<Fill>(std::min(fill, static_cast<int>(Fill::kFile)));
    }
    double value = 0;
    if (const json* fill = in.get("FillValue"); fill != nullptr && !fill->is_null()) {
      in.read("FillValue", value);
      a.fill_value = value;
    }
    in.read("DataSource", a.source);
    out_.kernel.arguments.push_back(std::move(a));
  }
  void read_size(Reader& in, Argument& a) {
    const json* size = in.get("Size");
    if (size == nullptr || size->is_null()) {
      a.elements_why = "the file has no Size of it";
      return;
    }
    const std::optional<std::string> text = expression_text(size);
    const Result<int64_t> elements = text
                                         ? size_of(out_.parameters, out_.kernel.problem, *text)
                                         : invalid_argument("expected an integer or an expression in quotes");
    if (elements && *elements >= 1) {
      a.elements = *elements;
    } else if (elements.status().code() == StatusCode::kNotFound) {
      a.elements_why = str("its Size, ", found(*size), ", ", elements.message());
    } else {
      in.refuse("Size", elements ? str("expected at least 1, found ", *elements) : elements.message(),
                "; found ", found(*size), ".");
    }
  }

  // The schema has a list of budgets; some files have one.
  void read_budget(Reader& in) {
    const json* budget = in.get("Budget");
    if (budget == nullptr || budget->is_null()) return;
    const bool one = budget->is_object();
    if (!one && !budget->is_array())
      return in.refuse("Budget", "expected a list, found ", found(*budget), ".");
    const size_t count = one ? 1 : budget->size();
    for (size_t i = 0; i < count && !in.failed(); ++i) {
      Reader each(one ? *budget : (*budget)[i], one ? "Budget." : str("Budget[", i, "]."));
      std::string type;
      double value = 0;
      each.read("Type", type, kRequired);
      each.read_at_least("BudgetValue", value, 0, kRequired);
      in.adopt(each.status());
      if (in.failed() || value <= 0) continue;
      if (type == "ConfigurationCount" && value <= 1e7) out_.trials = static_cast<int64_t>(std::ceil(value));
      if (type == "TuningDuration") out_.seconds = value;
    }
  }

  const json& document_;
  T1Document out_;
};

// What people hand over by mistake.
Status no_other_file(const json& document) {
  if (!document.is_object() || document.contains("ConfigurationSpace")) return Status::ok();
  if (document.contains("op")) return invalid_argument("is a job file already: tuner submit takes it");
  if (document.contains("results") || document.contains("cache"))
    return invalid_argument(
        "holds results of another tuner, expected the description of a kernel (T1). tuner records "
        "import FILE --job JOB takes results");
  return Status::ok();
}

}  // namespace

Result<T1Document> read_t1(std::string_view text) {
  if (text.size() > kMostT1Bytes)
    return invalid_argument("expected at most ", kMostT1Bytes, " bytes, found ", text.size());
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  ASSIGN_OR_RETURN(const json document, json_input::parse(text));
  RETURN_IF_ERROR(no_other_file(document));
  Result<T1Document> read = Document(document).read();
  if (!read) return Status(StatusCode::kInvalidArgument, json_input::one_line(read.message()));
  return read;
}

}  // namespace tuner::t1
