// Kernels of a bundle: the library that `tuner build` wrote, and its manifest.json, which says what is in it.
#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "compiler_core/base/input_file.h"
#include "compiler_core/runtime/cpu_instructions.h"
#include "compiler_core/runtime/tuner_runtime.h"
#include "deploy/runtime/builder.h"
#include "deploy/runtime/source.h"

namespace tuner::runtime {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct BundleKernel {
  std::string workload;
  Choice choice;  // without its kernel, which is loaded when it is chosen
  Manifest manifest;
  std::vector<std::string> missing;  // instruction sets that this CPU lacks
};

// Of the names that `tuner build` writes, those this CPU has; a name that is not known here counts as
// missing.
bool cpu_has(std::string_view set) {
#if defined(__x86_64__)
  const std::array<std::pair<std::string_view, bool>, 16> known = {{
      {"sse4.2", __builtin_cpu_supports("sse4.2")},
      {"avx", __builtin_cpu_supports("avx")},
      {"f16c", cpu_has_f16c()},
      {"avx2", __builtin_cpu_supports("avx2")},
      {"fma", __builtin_cpu_supports("fma")},
      {"bmi2", __builtin_cpu_supports("bmi2")},
      {"avxvnni", cpu_has_avx_vnni()},
      {"avx512f", __builtin_cpu_supports("avx512f")},
      {"avx512bw", __builtin_cpu_supports("avx512bw")},
      {"avx512dq", __builtin_cpu_supports("avx512dq")},
      {"avx512vl", __builtin_cpu_supports("avx512vl")},
      {"avx512vnni", __builtin_cpu_supports("avx512vnni")},
      {"avx512bf16", __builtin_cpu_supports("avx512bf16")},
      {"amx-bf16", (tuner_tiles() & TUNER_TILES_BFLOAT16) != 0},
      {"amx-int8", (tuner_tiles() & TUNER_TILES_INT8) != 0},
      {"amx-fp16", (tuner_tiles() & TUNER_TILES_FLOAT16) != 0},
  }};
  const auto found = std::ranges::find(known, set, &std::pair<std::string_view, bool>::first);
  return found != known.end() && found->second;
#elif defined(__aarch64__)
  constexpr std::array<std::pair<std::string_view, int32_t>, 6> kUnits = {{{"bf16", TUNER_UNITS_BF16},
                                                                           {"dotprod", TUNER_UNITS_DOTPROD},
                                                                           {"fullfp16", TUNER_UNITS_FULLFP16},
                                                                           {"i8mm", TUNER_UNITS_I8MM},
                                                                           {"sve", TUNER_UNITS_SVE},
                                                                           {"sve2", TUNER_UNITS_SVE2}}};
  const auto* const found = std::ranges::find(kUnits, set, &std::pair<std::string_view, int32_t>::first);
  return found != kUnits.end() && (tuner_units() & found->second) != 0;
#else
  return false;
#endif
}

std::string text_at(const json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

Result<BundleKernel> read_kernel(json object, const std::string& digest) {
  if (!object.is_object()) return failed("expected an object");
  object["digest"] = digest;  // of the library, which all share
  BundleKernel kernel{.workload = text_at(object, "workload")};
  ASSIGN_OR_RETURN(kernel.manifest, parse_manifest(object.dump()));
  if (kernel.workload.empty()) return failed("workload: expected a key, found none");
  kernel.choice.target = kernel.manifest.target;
  kernel.choice.template_name = text_at(object, "template");
  kernel.choice.algorithm = text_at(object, "algorithm");
  if (const auto config = object.find("config"); config != object.end() && config->is_object())
    for (const auto& [knob, value] : config->items())
      kernel.choice.config += str(kernel.choice.config.empty() ? "" : " ", knob, "=",
                                  value.is_string() ? value.get<std::string>() : value.dump());
  kernel.choice.kind = "exact";
  if (const auto answer = object.find("answer"); answer != object.end() && answer->is_object()) {
    kernel.choice.kind = text_at(*answer, "kind");
    kernel.choice.note = text_at(*answer, "note");
  }
  if (const auto sets = object.find("instruction_sets"); sets != object.end() && sets->is_array())
    for (const json& set : *sets)
      if (!set.is_string() || !cpu_has(set.get<std::string>()))
        kernel.missing.push_back(set.is_string() ? set.get<std::string>() : set.dump());
  return kernel;
}

class BundleSource final : public Source {
 public:
  BundleSource(std::string path, std::string library, std::vector<BundleKernel> kernels,
               const SourceOptions& options, std::string target)
      : path_(std::move(path)),
        library_(std::move(library)),
        kernels_(std::move(kernels)),
        fix_(options.fix),
        algorithms_(options.algorithms),
        target_(std::move(target)) {}

  std::string target() const override { return target_; }

  Result<Choice> choose(const Workload& workload) const override {
    const std::string key = workload.key();
    std::string why;
    for (const BundleKernel& kernel : kernels_) {
      if (kernel.workload != key) continue;
      if (!allowed(kernel.choice)) {
        why = str("; it is there by ", kernel.choice.algorithm, ", and allowed is ", algorithms_);
      } else if (!target_.empty() && kernel.choice.target != target_) {
        why = str("; it is there for \"", kernel.choice.target, "\"");
      } else if (!kernel.missing.empty()) {
        why = str("; it is there for \"", kernel.choice.target, "\", and this CPU lacks ",
                  kernel.missing.front());
      } else {
        Choice choice = kernel.choice;
        ASSIGN_OR_RETURN(choice.kernel, Kernel::load_file(library_, kernel.manifest));
        return choice;
      }
    }
    return not_found(path_, " has no kernel for ", key, target_.empty() ? "" : str(" on \"", target_, "\""),
                     why, " (", kernels_.size(), " kernels). To add it: ", fix_, ", then tuner build");
  }

 private:
  bool allowed(const Choice& choice) const {
    return algorithms_.empty() ||
           str(",", algorithms_, ",").find(str(",", choice.algorithm, ",")) != std::string::npos;
  }

  const std::string path_, library_;
  const std::vector<BundleKernel> kernels_;
  const std::string fix_, algorithms_, target_;
};

}  // namespace

Result<std::unique_ptr<Source>> open_bundle(const std::string& path, const SourceOptions& options) {
  constexpr size_t kMostManifest = 64 << 20, kMostLibrary = size_t{1} << 30;
  ASSIGN_OR_RETURN(const std::string text, read_whole(path, kMostManifest));
  const auto damaged = [&](const auto&... what) {
    return failed(path, ": is no manifest of a bundle: ", what...,
                  ". Build it again: tuner build FILE -o DIR");
  };
  const json manifest = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (manifest.is_discarded()) return damaged("expected JSON");
  if (!manifest.is_object() || !manifest.contains("kernels") || !manifest["kernels"].is_array())
    return damaged("expected an object with \"kernels\"");
  constexpr int kFormat = 1;
  if (const auto format = manifest.find("format"); format == manifest.end() || *format != kFormat)
    return failed(path, ": format: expected ", kFormat, ", found ",
                  format == manifest.end() ? "nothing" : format->dump(),
                  "; the bundle is of another release. Build it again: tuner build FILE -o DIR");
  const std::string relative = text_at(manifest, "library"), digest = text_at(manifest, "digest");
  if (relative.empty()) return damaged("expected \"library\", a shared object (tuner build --emit so)");
  const std::string library = (fs::path(path).parent_path() / relative).string();
  ASSIGN_OR_RETURN(const std::string bytes, read_whole(library, kMostLibrary));
  if (const std::string found = sha256_hex(bytes); found != digest)
    return failed(library, ": digest is ", found, ", ", path, " says ", digest,
                  "; the bundle is damaged or of two builds. Build it again: tuner build FILE -o DIR");
  std::vector<BundleKernel> kernels;
  for (size_t i = 0; i < manifest["kernels"].size(); ++i) {
    const json& object = manifest["kernels"][i];
    if (object.is_object() && object.contains("cubin")) continue;  // of a GPU
    Result<BundleKernel> kernel = read_kernel(object, digest);
    if (!kernel) return damaged("kernels[", i, "]: ", kernel.message());
    kernels.push_back(*std::move(kernel));
  }
  std::string target;
  if (!options.target.empty()) {
    ASSIGN_OR_RETURN(const Target asked, resolve(options.target));
    target = asked.name();
  }
  return std::unique_ptr<Source>(
      std::make_unique<BundleSource>(path, library, std::move(kernels), options, std::move(target)));
}

}  // namespace tuner::runtime
