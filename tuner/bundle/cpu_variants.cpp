#include "tuner/bundle/cpu_variants.h"

#include <algorithm>
#include <array>

#include "compiler_core/base/c_names.h"
#include "compiler_core/base/printable.h"
#include "compiler_core/codegen/cpu_features.h"

namespace tuner {
namespace {

struct Known {
  std::string_view word, mcpu;
};
// The least CPU that has them, so that the kernel runs on all that do.
constexpr std::array<Known, 3> kKnown = {Known{"avx2", "x86-64-v3"}, Known{"avx512", "x86-64-v4"},
                                         Known{"amx", "sapphirerapids"}};
constexpr size_t kMostCpus = 8;  // of one library: each has all of the code

Result<Target> target_of(const std::string& mcpu, int threads) {
  return parse_target(str("llvm -mcpu=", mcpu, " -threads=", threads));
}

// How many features of a CPU its code may use. InvalidArgument: it is no CPU of x86-64.
Result<size_t> features_of(const std::string& word, const std::string& mcpu) {
  std::string words;
  for (const Known& known : kKnown) words += str(known.word, ", ");
  const std::string expected =
      str("expected ", words, "or LLVM's name of an x86-64 CPU, as znver4; found \"", printable(word), "\"");
  const Result<Target> target = target_of(mcpu, 1);
  if (!target || !target->is_x86()) return invalid_argument(expected);
  const Result<CpuFeatures> needed = needed_features(*target);
  if (!needed) return invalid_argument(expected);
  return needed->size();
}

}  // namespace

std::vector<std::string> cpu_words() {
  std::vector<std::string> words;
  for (const Known& known : kKnown) words.emplace_back(known.word);
  return words;
}

Result<std::vector<CpuVariant>> parse_cpus(std::string_view text) {
  struct Ranked {
    CpuVariant cpu;
    size_t features = 0;
  };
  std::vector<Ranked> ranked;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string word(text.substr(begin, end - begin));
    begin = end + 1;
    const auto* const known = std::ranges::find(kKnown, word, &Known::word);
    const std::string mcpu(known != kKnown.end() ? known->mcpu : word);
    ASSIGN_OR_RETURN(const size_t features, features_of(word, mcpu));
    if (std::ranges::any_of(ranked, [&](const Ranked& r) { return r.cpu.mcpu == mcpu; }))
      return invalid_argument("expected each CPU once, found \"", word, "\" (", mcpu, ") again");
    ranked.push_back({{as_c_name(word), mcpu}, features});
  }
  if (ranked.size() > kMostCpus)
    return invalid_argument("expected at most ", kMostCpus, " CPUs, found ", ranked.size());
  std::ranges::stable_sort(ranked, std::greater(), &Ranked::features);
  std::vector<CpuVariant> cpus;
  for (Ranked& r : ranked) cpus.push_back(std::move(r.cpu));
  return cpus;
}

Result<std::vector<BundleTask>> for_each_cpu(const std::vector<BundleTask>& tasks, std::string_view words,
                                             const std::string& library) {
  const Result<std::vector<CpuVariant>> cpus = parse_cpus(words);
  if (!cpus) return cpus.status().with_context("--for: ");
  std::vector<BundleTask> variants;
  for (const BundleTask& t : tasks) {
    if (!t.task.target.is_x86() || t.task.target.emulated)
      return invalid_argument(
          "--for: ", t.task.key, " is for \"", t.task.target_name,
          "\": expected a target that is an x86-64 CPU. Build it into a library of its own");
    if (!t.task.workload.own_name().empty())
      return invalid_argument(
          "--for: ", t.task.key,
          " is a kernel of yours, which is built as it was measured, for one CPU. Build it "
          "into a library of its own");
    for (const CpuVariant& cpu : *cpus) {
      BundleTask& variant = variants.emplace_back(t);
      variant.of = t.function;
      variant.function = str(t.function, "_", cpu.word);
      ASSIGN_OR_RETURN(variant.task.target, target_of(cpu.mcpu, t.task.target.threads));
      variant.task.target_name = variant.task.target.name();
    }
  }
  RETURN_IF_ERROR(check_names(variants, library));
  return variants;
}

}  // namespace tuner
