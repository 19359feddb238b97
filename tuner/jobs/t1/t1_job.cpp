#include "tuner/jobs/t1/t1_job.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "compiler_core/base/printable.h"
#include "templates/source_kernel/flag_rule.h"
#include "templates/source_kernel/prototype.h"
#include "templates/source_kernel/source_pieces.h"
#include "tuner/jobs/kernel_text.h"
#include "tuner/jobs/t1/t1_arguments.h"
#include "tuner/jobs/t1/t1_space.h"

namespace tuner::t1 {
namespace {

using Json = nlohmann::ordered_json;

struct Language {
  std::string_view theirs, ours;
  bool on_device = false;
};
constexpr auto kLanguages =
    std::to_array<Language>({{"CUDA", "cuda", /*on_device=*/true}, {"C", "c"}, {"C++", "c++"}});

// "x" -> "x", "a + b" -> "(a + b)".
std::string grouped(const std::string& text) {
  const bool one = std::ranges::all_of(
      text, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; });
  return one ? text : "(" + text + ")";
}
// How many parts of that size hold so many, rounded up.
std::string quotient_up(const std::string& of, const std::string& by) {
  if (by == "1") return of;
  return str("(", grouped(of), " + ", grouped(by), " - 1) // ", grouped(by));
}

Json json_of(const Extents& extents) {
  Json list = Json::array();
  for (const std::string& each : extents) list.push_back(each);
  return list;
}

class Drafting {
 public:
  Drafting(const T1Document& document, const T1Wish& wish)
      : document_(document), k_(document.kernel), wish_(wish) {}

  Result<KernelDraft> draft() {
    RETURN_IF_ERROR(read_language());
    job_["op"] = "kernel";
    if (language_ != "c") job_["language"] = language_;
    job_["source"] = wish_.source;
    job_["function"] = k_.function;
    int64_t local_bytes = 0;
    RETURN_IF_ERROR(add_arguments(document_, on_device_, job_, out_, local_bytes));
    if (on_device_)
      add_launch(local_bytes);
    else if (local_bytes > 0)
      return invalid_argument(
          "KernelSpecification.Arguments: memory of a block (\"Local\") is of GPU kernels, and the "
          "Language is \"",
          k_.language, "\"");
    RETURN_IF_ERROR(add_space(document_, job_, out_));
    add_flags();
    add_reference();
    if (document_.trials) job_["trials"] = *document_.trials;
    if (document_.seconds) job_["time_limit_s"] = *document_.seconds;
    look_at_source();
    out_.job = kernel_job_text(job_);
    return std::move(out_);
  }

 private:
  void guess(const std::string& key, const std::string& what) { out_.guesses.push_back(key + ": " + what); }

  Status read_language() {
    const auto* const known = std::ranges::find(kLanguages, k_.language, &Language::theirs);
    if (known != kLanguages.end()) {
      language_ = known->ours;
      on_device_ = known->on_device;
      return Status::ok();
    }
    return invalid_argument(
        "KernelSpecification.Language: tuner compiles CUDA, C and C++; found \"",
        printable(k_.language.substr(0, 60)),
        "\". Port the kernel to CUDA, or write a program that runs it and prints its time "
        "(docs/own_kernels.md, \"language\": \"command\")");
  }

  void add_launch(int64_t local_bytes) {
    job_["grid"] = json_of(grid());
    job_["block"] = json_of(k_.local);
    if (local_bytes > 0 && !k_.shared_bytes.empty())
      job_["shared_bytes"] = str(grouped(k_.shared_bytes), " + ", local_bytes);
    else if (local_bytes > 0)
      job_["shared_bytes"] = local_bytes;
    else if (!k_.shared_bytes.empty())
      job_["shared_bytes"] = k_.shared_bytes;
  }
  Extents grid() {
    if (!k_.grid_div.empty()) return grid_of_problem();
    if (!k_.global_counts_threads) return k_.global;
    Extents blocks;
    for (size_t i = 0; i < k_.global.size(); ++i)
      blocks.push_back(quotient_up(k_.global[i], i < k_.local.size() ? k_.local[i] : "1"));
    return blocks;
  }
  // As Kernel Tuner launches: the problem's size over its divisors, rounded up.
  Extents grid_of_problem() {
    guess("grid",
          "it is ProblemSize over GridDiv, as Kernel Tuner launches; the file's GlobalSize is not used");
    Extents blocks;
    for (size_t i = 0; i < k_.problem.size(); ++i) {
      std::string divisor = "1";
      if (i < k_.grid_div.size())
        for (const std::string& each : k_.grid_div[i])
          divisor = divisor == "1" ? each : str(grouped(divisor), " * ", grouped(each));
      blocks.push_back(quotient_up(std::to_string(k_.problem[i]), divisor));
    }
    while (blocks.size() > 1 && blocks.back() == "1") blocks.pop_back();
    return blocks;
  }

  void add_flags() {
    Json flags = Json::array();
    if (!on_device_) flags = {"-O3", "-march=native"};
    for (const std::string& option : k_.options) {
      const Status allowed = on_device_ ? check_cuda_flag(option) : check_flag(option);
      const bool braces = option.find_first_of("{}") != std::string::npos;
      if (allowed && !braces)
        flags.push_back(option);
      else
        guess("flags", str("the file's option ", printable(option.substr(0, 100)),
                           " is left out: jobs may not have it"));
    }
    if (!flags.empty()) job_["flags"] = std::move(flags);
  }

  void add_reference() {
    job_["reference"] = "default";
    if (k_.references.empty())
      return guess(
          "reference",
          "a plain function in C or C++ makes the check independent: {\"source\": FILE, \"function\": NAME}");
    std::string names;
    for (const std::string& name : k_.references)
      names += (names.empty() ? "" : ", ") + printable(name.substr(0, 60));
    guess("reference", str("the file has right answers for ", names,
                           "; write them as NAME.npy and name them: {\"files\": {OUTPUT: NAME.npy}}"));
  }

  // What the source tells, if it is there.
  void look_at_source() {
    if (!wish_.text) {
      out_.to_fill.push_back(str("source: there is no file ", printable(wish_.source), "; copy it there"));
      return;
    }
    const std::vector<Prototype> functions = functions_in(*wish_.text);
    const auto function = std::ranges::find_if(functions, [this](const Prototype& p) {
      return p.name == k_.function || p.name.ends_with("::" + k_.function);
    });
    size_t arguments = 0;
    for (const Argument& a : k_.arguments)
      arguments += a.memory == Memory::kScalar || a.memory == Memory::kVector ? 1 : 0;
    if (function == functions.end())
      guess("function", str("no function ", printable(k_.function), " is seen in ", printable(wish_.source)));
    else if (function->parameters.size() != arguments && arguments > 0)
      guess("arguments", str("the file lists ", arguments, ", and the function in line ", function->line,
                             " of ", printable(wish_.source), " has ", function->parameters.size()));
    std::set<std::string> words;
    Pieces pieces(*wish_.text);
    for (Piece piece; pieces.next(piece);)
      if (piece.kind == PieceKind::kWord) words.insert(piece.text);
    std::string unused;
    for (const Parameter& parameter : document_.parameters)
      if (parameter.values.size() > 1 && !words.contains(parameter.name))
        unused += (unused.empty() ? "" : ", ") + parameter.name;
    if (!unused.empty()) guess("knobs", str(printable(wish_.source), " does not mention ", unused));
  }

  const T1Document& document_;
  const Kernel& k_;
  const T1Wish& wish_;
  std::string_view language_;  // as in job files
  bool on_device_ = false;
  Json job_;
  KernelDraft out_;
};

}  // namespace

Result<KernelDraft> draft_t1_job(const T1Document& document, const T1Wish& wish) {
  return Drafting(document, wish).draft();
}

}  // namespace tuner::t1
