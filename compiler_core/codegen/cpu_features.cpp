#include "compiler_core/codegen/cpu_features.h"

#include <algorithm>
#include <iterator>
#include <memory>

#include "compiler_core/codegen/machine.h"
#include "compiler_core/runtime/tuner_runtime.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/TargetParser/X86TargetParser.h"

namespace tuner {
namespace {

constexpr char kGeneric[] = "generic";  // LLVM's name for any CPU of an architecture

// Of all that a CPU's name implies, what instruction selection emits by itself. The rest (system
// instructions, cryptography, transactions) takes an intrinsic that no kernel of ours has, so it tells
// nothing about whether code runs, and virtual machines hide much of it.
constexpr std::string_view kEmitted[] = {"amx-bf16",     "amx-complex",
                                         "amx-fp16",     "amx-int8",
                                         "amx-tile",     "avx",
                                         "avx10.1",      "avx10.2",
                                         "avx2",         "avx512bf16",
                                         "avx512bitalg", "avx512bw",
                                         "avx512cd",     "avx512dq",
                                         "avx512f",      "avx512fp16",
                                         "avx512ifma",   "avx512vbmi",
                                         "avx512vbmi2",  "avx512vl",
                                         "avx512vnni",   "avx512vpopcntdq",
                                         "avxifma",      "avxneconvert",
                                         "avxvnni",      "avxvnniint16",
                                         "avxvnniint8",  "bmi",
                                         "bmi2",         "egpr",
                                         "f16c",         "fma",
                                         "fma4",         "gfni",
                                         "lzcnt",        "movbe",
                                         "ndd",          "popcnt",
                                         "sse3",         "sse4.1",
                                         "sse4.2",       "sse4a",
                                         "ssse3",        "tbm",
                                         "xop"};

// Of these, what makes our own kernels faster: written as "+x" where a CPU has it and its name does not say
// so.
constexpr std::string_view kDecisive[] = {"amx-bf16", "amx-fp16",   "amx-int8", "amx-tile",   "avx",
                                          "avx2",     "avx512bf16", "avx512bw", "avx512cd",   "avx512dq",
                                          "avx512f",  "avx512fp16", "avx512vl", "avx512vnni", "avxvnni",
                                          "f16c",     "fma"};

template <size_t N>
bool is_among(const std::string_view (&words)[N], std::string_view word) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

CpuFeatures emitted(const CpuFeatures& all) {
  CpuFeatures out;
  std::copy_if(all.begin(), all.end(), std::inserter(out, out.end()),
               [](const std::string& f) { return is_among(kEmitted, f); });
  return out;
}

// `mcpu`: a name that check_cpu_words() accepts.
CpuFeatures features_of_name(llvm::StringRef mcpu) {
  if (mcpu == kGeneric) mcpu = "x86-64";
  llvm::SmallVector<llvm::StringRef, 64> words;
  llvm::X86::getFeaturesForCPU(mcpu, words);
  CpuFeatures out;
  for (const llvm::StringRef word : words) out.insert(word.str());
  return emitted(out);
}

enum class Maker { kAny, kAmd, kIntel };

Maker maker_of(llvm::StringRef mcpu) {
  if (mcpu.starts_with("x86-64")) return Maker::kAny;
  for (const char* start : {"znver", "bdver", "btver", "k8", "athlon", "opteron", "amdfam", "barcelona"})
    if (mcpu.starts_with(start)) return Maker::kAmd;
  return Maker::kIntel;
}

size_t distance(const CpuFeatures& a, const CpuFeatures& b) {
  CpuFeatures apart;
  std::set_symmetric_difference(a.begin(), a.end(), b.begin(), b.end(), std::inserter(apart, apart.end()));
  return apart.size();
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += str(text.empty() ? "" : ", ", word);
  return text;
}

// `target`: one whose words check_cpu_words() accepts.
Result<CpuFeatures> units_of_aarch64(const Target& target) {
  ASSIGN_OR_RETURN(const std::unique_ptr<llvm::MCSubtargetInfo> info,
                   codegen::subtarget_of(target, /*named=*/true));
  CpuFeatures out;
  for (const char* unit : {"bf16", "dotprod", "fullfp16", "i8mm", "sve", "sve2"})
    if (info->checkFeatures(str("+", unit))) out.insert(unit);
  return out;
}

Status has_all(const CpuFeatures& has, const CpuFeatures& needed, std::string_view who) {
  std::vector<std::string> missing;
  std::set_difference(needed.begin(), needed.end(), has.begin(), has.end(), std::back_inserter(missing));
  if (missing.empty()) return Status::ok();
  return invalid_argument(who, " has no ", joined(missing), ", which its code may use");
}

}  // namespace

const CpuFeatures& host_cpu_features() {
  static const CpuFeatures found = [] {
    CpuFeatures features;
    for (const auto& feature : llvm::sys::getHostCPUFeatures())
      if (feature.second) features.insert(feature.first().str());
    // Tile registers that the system refuses are none.
    if (tuner_tiles() == 0) std::erase_if(features, [](const auto& f) { return f.starts_with("amx-"); });
    return features;
  }();
  return found;
}

std::vector<std::string> x86_cpu_names() {
  llvm::SmallVector<llvm::StringRef, 128> names;
  llvm::X86::fillValidCPUArchList(names, /*Only64Bit=*/true);
  std::vector<std::string> out;
  for (const llvm::StringRef name : names) out.push_back(name.str());
  return out;
}

Status check_cpu_words(const Target& target) {
  if (!target.is_cpu()) return Status::ok();
  const llvm::Triple triple(
      llvm::Triple::normalize(target.mtriple.empty() ? "x86_64-linux-gnu" : target.mtriple));
  ASSIGN_OR_RETURN(const std::unique_ptr<llvm::MCSubtargetInfo> known, codegen::subtarget_of(target));
  // LLVM's list for x86 has CPUs without 64 bits, too.
  const bool is_cpu = known->isCPUStringValid(target.mcpu) &&
                      (!triple.isX86() || target.mcpu == kGeneric ||
                       llvm::X86::parseArchX86(target.mcpu, /*Only64Bit=*/true) != llvm::X86::CK_None);
  if (!is_cpu)
    return invalid_argument(
        "-mcpu=", target.mcpu, " is not a CPU that LLVM knows for ", triple.getArchName().str(),
        "; expected a name such as ",
        triple.isX86() ? "haswell, sapphirerapids, znver4 or x86-64-v3" : "cortex-a72 or neoverse-n1",
        " (`llc-22 -mcpu=help` lists them), or \"cpu\" for this host");
  const auto all = known->getAllProcessorFeatures();
  for (const std::string& word : target.mattr)
    if (std::none_of(all.begin(), all.end(),
                     [&](const auto& f) { return std::string_view(word).substr(1) == f.Key; }))
      return invalid_argument("-mattr=", word, ": LLVM knows no such feature of ", triple.getArchName().str(),
                              " (`llc-22 -mattr=help` lists them)");
  return Status::ok();
}

Result<CpuFeatures> needed_features(const Target& target) {
  RETURN_IF_ERROR(check_cpu_words(target));
  if (target.mtriple.starts_with("aarch64")) return units_of_aarch64(target);
  if (!target.is_x86()) return CpuFeatures();
  llvm::StringMap<bool> features;
  const auto set = [&](llvm::StringRef feature, bool on) {
    llvm::X86::updateImpliedFeatures(feature, on, features);
    features[feature] = on;
  };
  for (const std::string& feature : features_of_name(target.mcpu)) set(feature, true);
  for (const std::string& word : target.mattr) set(llvm::StringRef(word).drop_front(), word[0] == '+');
  CpuFeatures needed;
  for (const auto& feature : features)
    if (feature.second) needed.insert(feature.first().str());
  return emitted(needed);
}

Status runs_on(const Target& target, const Target& there, const CpuFeatures& features, std::string_view who) {
  if (!target.is_x86() || !there.is_x86()) {
    if (target.mtriple != there.mtriple || target.mcpu != there.mcpu)
      return invalid_argument(who, " is \"", there.name(), "\", another architecture or another CPU of it");
    ASSIGN_OR_RETURN(const CpuFeatures needed, needed_features(target));
    ASSIGN_OR_RETURN(const CpuFeatures here, needed_features(there));
    return has_all(here, needed, who);
  }
  ASSIGN_OR_RETURN(const CpuFeatures needed, needed_features(target));
  return has_all(features, needed, who);
}

CpuName name_of_x86(std::string_view guess, const CpuFeatures& features) {
  const CpuFeatures here = emitted(features);
  CpuName best{std::string(guess), {}};
  if (llvm::X86::parseArchX86(best.mcpu, /*Only64Bit=*/true) == llvm::X86::CK_None) best.mcpu = "x86-64";
  size_t nearest = distance(features_of_name(best.mcpu), here);
  const Maker maker = maker_of(best.mcpu);
  for (const std::string& name : x86_cpu_names()) {
    if (maker_of(name) != maker) continue;
    const size_t apart = distance(features_of_name(name), here);
    if (apart < nearest) nearest = apart, best.mcpu = name;
  }
  const CpuFeatures named = features_of_name(best.mcpu);
  CpuFeatures either = named;
  either.insert(here.begin(), here.end());
  for (const std::string& feature : either) {
    if (!here.contains(feature)) best.mattr.push_back("-" + feature);
    if (!named.contains(feature) && is_among(kDecisive, feature)) best.mattr.push_back("+" + feature);
  }
  return best;
}

}  // namespace tuner
