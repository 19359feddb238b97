#include "tuner/jobs/kernel_draft.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "compiler_core/base/printable.h"
#include "templates/source_kernel/macro_defaults.h"
#include "templates/source_kernel/prototype.h"
#include "templates/source_kernel/range_comments.h"
#include "tuner/jobs/kernel_text.h"

namespace tuner {
namespace {

using Json = nlohmann::ordered_json;

bool ends_with_one_of(std::string_view name, std::initializer_list<std::string_view> ends) {
  return std::ranges::any_of(ends, [&](std::string_view end) { return name.ends_with(end); });
}

struct Language {
  std::string_view name;  // in job files
  bool on_device = false;
};
Result<Language> language_of(const std::string& source) {
  if (ends_with_one_of(source, {".c"})) return Language{"c"};
  if (ends_with_one_of(source, {".cpp", ".cc", ".cxx", ".C", ".c++"})) return Language{"c++"};
  if (ends_with_one_of(source, {".cu"})) return Language{"cuda", /*on_device=*/true};
  return invalid_argument(source, ": expected a C, C++ or CUDA source: .c, .cpp, .cc, .cxx or .cu");
}

bool could_be_kernel(const Prototype& p, const Language& language) {
  return !p.is_template && p.on_device == language.on_device &&
         std::ranges::any_of(p.parameters, [](const Parameter& a) { return a.pointers == 1; });
}

std::string list_of(const std::vector<Prototype>& functions) {
  std::string names;
  size_t count = 0;
  for (const Prototype& p : functions)
    if (++count <= 10) names += (names.empty() ? "" : ", ") + printable(p.name.substr(0, 100));
  return names.empty() ? "none" : names + (count > 10 ? str(" and ", count - 10, " more") : "");
}

Result<Prototype> chosen(const DraftWish& wish, const Language& language, const std::vector<Prototype>& all) {
  std::vector<Prototype> fit;
  for (const Prototype& p : all) {
    const bool named = p.name == wish.function || p.name.ends_with("::" + wish.function);
    if (wish.function.empty() ? could_be_kernel(p, language) : named) fit.push_back(p);
  }
  if (fit.empty() && wish.function.empty())
    return invalid_argument(wish.source, ": it defines no ", language.on_device ? "__global__ " : "",
                            "function with a pointer among its arguments; found ", list_of(all));
  if (fit.empty())
    return invalid_argument(wish.source, ": it defines no function ", printable(wish.function), "; found ",
                            list_of(all));
  if (fit.size() > 1 && wish.function.empty())
    return invalid_argument(wish.source, ": which function? Name one by --function: ", list_of(fit));
  if (fit.size() > 1)
    return invalid_argument(wish.source, ": it defines ", printable(wish.function), " in lines ", fit[0].line,
                            " and ", fit[1].line, "; tune one function with a name of its own");
  if (fit[0].is_template)
    return invalid_argument(wish.source, ":", fit[0].line, ": ", printable(fit[0].name),
                            " is a template; write a function that calls it with the types you want");
  if (fit[0].on_device != language.on_device)
    return invalid_argument(wish.source, ":", fit[0].line, ": ", printable(fit[0].name),
                            language.on_device
                                ? " is not __global__; a host launches __global__ functions of CUDA only"
                                : " is __global__; give the file the ending .cu");
  return fit[0];
}

// The type of a buffer's elements; nothing: no buffer has it.
std::optional<std::string> element_type(std::string type) {
  if (type.starts_with("std::")) type = type.substr(5);
  static const std::pair<const char*, const char*> kTypes[] = {
      {"float", "float32"},       {"double", "float64"},    {"_Float16", "float16"},
      {"__fp16", "float16"},      {"uint16_t", "bfloat16"}, {"__bf16", "bfloat16"},
      {"bool", "bool"},           {"_Bool", "bool"},        {"int8_t", "int8"},
      {"signed char", "int8"},    {"char", "int8"},         {"uint8_t", "uint8"},
      {"unsigned char", "uint8"}, {"int32_t", "int32"},     {"int", "int32"},
      {"signed int", "int32"},    {"signed", "int32"},      {"int64_t", "int64"},
      {"long", "int64"},          {"long long", "int64"},   {"long int", "int64"},
      {"long long int", "int64"}, {"ptrdiff_t", "int64"},   {"ssize_t", "int64"}};
  for (const auto& [c, ours] : kTypes)
    if (type == c) return ours;
  return std::nullopt;
}

// Of a number that is passed by value to a kernel of a GPU, which takes its bytes as they are.
std::optional<std::string> device_scalar_type(const std::string& type) {
  for (const char* four : {"unsigned", "unsigned int", "uint32_t", "std::uint32_t"})
    if (type == four) return "int32";
  for (const char* eight : {"size_t", "std::size_t", "uint64_t", "std::uint64_t", "unsigned long",
                            "unsigned long int", "unsigned long long"})
    if (type == eight) return "int64";
  const std::optional<std::string> same = element_type(type);
  return same && same->ends_with("float16") ? std::nullopt : same;
}

// Of one for a function of the host: a wider integer does as well, as C converts it.
std::optional<std::string> scalar_type(const std::string& type) {
  for (const char* wide :
       {"unsigned", "unsigned int", "uint32_t", "std::uint32_t", "size_t", "std::size_t", "uint64_t",
        "std::uint64_t", "unsigned long", "unsigned long int", "unsigned long long"})
    if (type == wide) return "int64";
  for (const char* narrow : {"short", "short int", "int16_t", "std::int16_t", "unsigned short", "uint16_t"})
    if (type == narrow) return "int32";
  return element_type(type);
}

class Drafting {
 public:
  Drafting(const DraftWish& wish, std::string_view text, const Language& language, const Prototype& function)
      : wish_(wish), text_(text), language_(language), f_(function) {}

  Result<KernelDraft> draft() {
    job_["op"] = "kernel";
    if (language_.name != "c") job_["language"] = language_.name;
    job_["source"] = wish_.source;
    job_["function"] = f_.name;
    job_["sizes"] = Json::object();
    job_["arguments"] = Json::array();
    for (size_t i = 0; i < f_.parameters.size(); ++i) RETURN_IF_ERROR(add_argument(i));
    if (job_["sizes"].empty()) job_.erase("sizes");
    if (language_.on_device) add_launch();
    RETURN_IF_ERROR(add_knobs());
    if (!language_.on_device) job_["flags"] = Json::array({"-O3", "-march=native"});
    job_["reference"] = "default";
    guess("reference",
          "a plain function makes the check independent: {\"source\": FILE, \"function\": NAME}");
    if (f_.returns != "void")
      guess("function", str("what it returns, ", f_.returns, ", is not looked at: results are in buffers"));
    out_.job = kernel_job_text(job_);
    return std::move(out_);
  }

 private:
  void fill(const std::string& key, const std::string& what) { out_.to_fill.push_back(key + ": " + what); }
  void guess(const std::string& key, const std::string& what) { out_.guesses.push_back(key + ": " + what); }

  void add_launch() {
    for (const auto& [key, what] :
         {std::pair("grid", "how many blocks there are: 1 to 3 expressions over sizes and knobs"),
          std::pair("block", "how many threads a block has: 1 to 3 expressions")}) {
      job_[key] = Json::array({kFillIn});
      fill(key, what);
    }
    guess("shared_bytes", "add it if the kernel has memory that its launch gives it (extern __shared__)");
  }

  Status no_argument(size_t i, const std::string& why) const {
    const Parameter& p = f_.parameters[i];
    return invalid_argument(
        wish_.source, ":", f_.line, ": argument ", i + 1, " of ", printable(f_.name), ", ",
        printable(p.type.substr(0, 100)), std::string(static_cast<size_t>(p.pointers), '*'),
        p.name.empty() ? "" : " " + printable(p.name), ": ", why, "; write a small function around it");
  }

  Status add_argument(size_t i) {
    const Parameter& p = f_.parameters[i];
    if (p.reference) return no_argument(i, "references are no arguments of kernels");
    if (p.pointers > 1) return no_argument(i, "pointers to pointers are no arguments of kernels");
    const std::string key = str("arguments[", i, "]");
    const std::optional<std::string> type = p.pointers == 1       ? element_type(p.type)
                                            : language_.on_device ? device_scalar_type(p.type)
                                                                  : scalar_type(p.type);
    if (!type)
      return no_argument(i, p.pointers == 1 ? "buffers have no such type" : "scalars have no such type");
    const std::string name = p.name.empty() ? str("argument", i + 1) : p.name;
    Json argument = {{"name", name}, {"type", *type}};
    if (p.pointers == 1) {
      argument["shape"] = Json::array({kFillIn});
      fill(key + ".shape",
           str("how many elements ", name, " has: a list of numbers, or expressions over sizes"));
      if (!p.constant) {
        argument["role"] = "out";
        guess(key + ".role",
              language_.on_device
                  ? str("it must be written before it is read, as ", name, " holds garbage before each call")
                  : str("\"inout\" if ", f_.name, " reads ", name, " before it writes it"));
      }
      if (p.type == "uint16_t") guess(key + ".type", "buffers of uint16_t hold bfloat16");
    } else if (type->starts_with("int")) {
      // Most integers are extents.
      job_["sizes"][name] = kFillIn;
      fill("sizes." + name, "which number to tune for; if it is no size, write it into the argument's value");
      argument["value"] = name;
    } else {
      argument["value"] = kFillIn;
      fill(key + ".value", str("which ", p.type, " is passed"));
    }
    job_["arguments"].push_back(std::move(argument));
    return Status::ok();
  }

  Status add_knobs() {
    const Result<std::vector<RangeComment>> ranges = range_comments(text_);
    if (!ranges) return ranges.status().with_context(wish_.source + ": ");
    const std::vector<MacroDefault> defaults = macro_defaults(text_);
    Json& knobs = job_["knobs"] = Json::object();
    Json first = Json::object();
    for (const RangeComment& range : *ranges) {
      knobs[range.macro] = {{"from", range.from}, {"to", range.to}, {"step", range.step}};
      const auto known = std::ranges::find(defaults, range.macro, &MacroDefault::name);
      if (known == defaults.end()) continue;
      const bool inside = known->value >= range.from && known->value <= range.to &&
                          (known->value - range.from) % range.step == 0;
      if (inside)
        first[range.macro] = known->value;
      else
        guess("default." + range.macro, str("the source's own, ", known->value, ", is not in the range"));
    }
    for (const MacroDefault& macro : defaults) {
      if (std::ranges::find(*ranges, macro.name, &RangeComment::macro) != ranges->end()) continue;
      knobs[macro.name] = Json::array({macro.value});
      guess("knobs." + macro.name, str("add the values to try; ", macro.value, " is the source's own"));
    }
    if (knobs.empty()) {
      knobs[kFillIn] = Json::array({1});
      fill("knobs", "macros of the source, and the values to try: {\"TILE\": [8, 16, 32]}");
    }
    if (!first.empty()) job_["default"] = std::move(first);
    return Status::ok();
  }

  const DraftWish& wish_;
  const std::string_view text_;
  const Language& language_;
  const Prototype& f_;
  Json job_;
  KernelDraft out_;
};

}  // namespace

Result<KernelDraft> draft_kernel_job(const DraftWish& wish, std::string_view text) {
  ASSIGN_OR_RETURN(const Language language, language_of(wish.source));
  ASSIGN_OR_RETURN(const Prototype function, chosen(wish, language, functions_in(text)));
  return Drafting(wish, text, language, function).draft();
}

}  // namespace tuner
