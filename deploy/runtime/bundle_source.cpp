// Kernels of a bundle: the library that `tuner build` wrote, and its manifest.json, which says what is in it.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "compiler_core/base/input_file.h"
#include "compiler_core/runtime/cpu_instructions.h"
#include "db/resolve/resolve.h"
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
  std::string artifact;              // a file of its own: of a user's kernel; empty: it is in the library
  std::vector<std::string> missing;  // instruction sets that this CPU lacks
  int template_version = 1;
  Constants constants = Constants::kWarm;  // that its config was chosen for; so also the algorithms
  std::string algorithms;
  // Of tuner build --with-default. Null: the bundle has none.
  std::shared_ptr<const BundleKernel> plain;
  bool is_plain = false;  // it has the default config itself
};

std::string text_at(const json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

// `object` has the keys of a Manifest beside these.
Result<BundleKernel> read_code(json object, const std::string& workload, const std::string& digest) {
  if (!object.is_object()) return failed("expected an object");
  object["digest"] = digest;  // of the library, which all share
  BundleKernel kernel{.workload = workload};
  ASSIGN_OR_RETURN(kernel.manifest, parse_manifest(object.dump()));
  kernel.choice.target = kernel.manifest.target;
  kernel.choice.template_name = text_at(object, "template");
  kernel.choice.algorithm = text_at(object, "algorithm");
  if (const auto version = object.find("template_version");
      version != object.end() && version->is_number_integer())
    kernel.template_version = version->get<int>();
  if (const auto config = object.find("config"); config != object.end() && config->is_object())
    for (const auto& [knob, value] : config->items())
      kernel.choice.config += str(kernel.choice.config.empty() ? "" : " ", knob, "=",
                                  value.is_string() ? value.get<std::string>() : value.dump());
  if (const auto sets = object.find("instruction_sets"); sets != object.end() && sets->is_array())
    for (const json& set : *sets)  // a name that is not known here counts as missing
      if (!set.is_string() || !cpu_has(set.get<std::string>()).value_or(false))
        kernel.missing.push_back(set.is_string() ? set.get<std::string>() : set.dump());
  return kernel;
}

Result<BundleKernel> read_kernel(const json& object, const std::string& digest) {
  ASSIGN_OR_RETURN(BundleKernel kernel, read_code(object, text_at(object, "workload"), digest));
  if (kernel.workload.empty()) return failed("workload: expected a key, found none");
  kernel.choice.kind = "exact";
  if (const auto answer = object.find("answer"); answer != object.end() && answer->is_object()) {
    kernel.choice.kind = text_at(*answer, "kind");
    kernel.choice.note = text_at(*answer, "note");
  }
  kernel.constants = constants_from_name(text_at(object, "constants")).value_or(Constants::kWarm);
  kernel.algorithms = text_at(object, "algorithms");
  const auto plain = object.find("default_kernel");
  if (plain == object.end()) return kernel;
  kernel.is_plain = *plain == "same";
  if (kernel.is_plain) return kernel;
  Result<BundleKernel> code = read_code(*plain, kernel.workload, digest);
  if (!code) return code.status().with_context("default_kernel: ");
  code->choice.kind = "default";
  kernel.plain = std::make_shared<const BundleKernel>(*std::move(code));
  return kernel;
}

// The file's bytes, which have that digest.
Result<std::string> read_checked(const std::string& file, const std::string& digest,
                                 const std::string& manifest) {
  constexpr size_t kMostLibrary = size_t{1} << 30;
  ASSIGN_OR_RETURN(std::string bytes, read_whole(file, kMostLibrary));
  if (const std::string found = sha256_hex(bytes); found != digest)
    return failed(file, ": digest is ", found, ", ", manifest, " says ", digest,
                  "; the bundle is damaged or of two builds. Build it again: tuner build FILE -o DIR");
  return bytes;
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
        target_(std::move(target)),
        lock_(options.lock),
        lock_fix_(options.lock_fix) {}

  std::string target() const override { return target_; }

  Result<Choice> choose(const Workload& workload) const override {
    return choose_by(workload.key(), workload.has_constants());
  }
  Result<Choice> choose_own(std::string_view key) const override {
    return choose_by(std::string(key), /*has_constants=*/false);
  }

  Result<std::optional<Choice>> default_for(const Workload& workload, const Choice& chosen) const override {
    const std::string key = workload.key();
    const Manifest& m = chosen.kernel.manifest();
    const auto found = std::ranges::find_if(
        kernels_, [&](const BundleKernel& k) { return k.workload == key && k.manifest.entry == m.entry; });
    if (found != kernels_.end() && (found->is_plain || found->choice.kind == "default"))
      return std::optional<Choice>();
    if (found == kernels_.end() || found->plain == nullptr)
      return not_found(path_, " has no default kernel for ", key,
                       ". To add it: tuner build FILE -o DIR --with-default");
    ASSIGN_OR_RETURN(Choice plain, load(*found->plain, false));
    return std::optional(std::move(plain));
  }

 private:
  Result<Choice> choose_by(const std::string& key, bool has_constants) const {
    std::string why;
    Status refused;
    for (const BundleKernel& kernel : kernels_) {
      if (kernel.workload != key) continue;
      if (!allowed(kernel.choice)) {
        why = str("; it is there by ", kernel.choice.algorithm, ", and allowed is ", algorithms_);
      } else if (!target_.empty() && kernel.choice.target != target_) {
        why = str("; it is there for \"", kernel.choice.target, "\"");
      } else if (!kernel.missing.empty()) {
        why = str("; it is there for \"", kernel.choice.target, "\", and this CPU lacks ",
                  kernel.missing.front());
      } else if (const Status locked = check_lock(kernel, has_constants); !locked) {
        refused = locked;
      } else {
        return load(kernel, lock_ != nullptr);
      }
    }
    if (!refused) return refused;
    return not_found(path_, " has no kernel for ", key, target_.empty() ? "" : str(" on \"", target_, "\""),
                     why, " (", kernels_.size(), " kernels). To add it: ", fix_, ", then tuner build");
  }

  Result<Choice> load(const BundleKernel& kernel, bool locked) const {
    Choice choice = kernel.choice;
    if (locked) choice.kind = answer_kind_name(AnswerKind::kLocked), choice.note.clear();
    if (kernel.artifact.empty()) {
      ASSIGN_OR_RETURN(choice.kernel, Kernel::load_file(library_, kernel.manifest));
      return choice;
    }
    ASSIGN_OR_RETURN(std::string bytes, read_checked(kernel.artifact, kernel.manifest.digest, path_));
    ASSIGN_OR_RETURN(choice.kernel, Kernel::load({kernel.manifest, std::move(bytes)}));
    return choice;
  }

  // Whether the kernel is what the lock file says, if there is one.
  Status check_lock(const BundleKernel& kernel, bool has_constants) const {
    if (lock_ == nullptr) return Status::ok();
    const LockedTask task{kernel.choice.target, kernel.workload,
                          has_constants ? kernel.constants : Constants::kWarm, kernel.algorithms};
    const LockEntry* const entry = lock_->find(task);
    if (entry == nullptr) return lock_->missing(task, lock_fix_);
    const LockedChoice here{kernel.choice.template_name, kernel.template_version, kernel.choice.config};
    if (entry->choice == here) return Status::ok();
    return not_found(lock_->place(*entry), ": ", described(task), " is locked to ", described(entry->choice),
                     "; ", path_, " has ", described(here),
                     ". Build it again: tuner build FILE -o DIR --lock ", lock_->path());
  }

  bool allowed(const Choice& choice) const {
    return algorithms_.empty() ||
           str(",", algorithms_, ",").find(str(",", choice.algorithm, ",")) != std::string::npos;
  }

  const std::string path_, library_;
  const std::vector<BundleKernel> kernels_;
  const std::string fix_, algorithms_, target_;
  const std::shared_ptr<const AnswerLock> lock_;  // null: none
  const std::string lock_fix_;
};

}  // namespace

Result<std::unique_ptr<Source>> open_bundle(const std::string& path, const SourceOptions& options) {
  constexpr size_t kMostManifest = 64 << 20;
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
  const fs::path folder = fs::path(path).parent_path();
  std::vector<BundleKernel> kernels;
  for (size_t i = 0; i < manifest["kernels"].size(); ++i) {
    const json& object = manifest["kernels"][i];
    if (object.is_object() && object.contains("launcher")) continue;  // of a GPU
    const std::string artifact = object.is_object() ? text_at(object, "artifact") : "";
    Result<BundleKernel> kernel = read_kernel(object, artifact.empty() ? digest : text_at(object, "digest"));
    if (!kernel) return damaged("kernels[", i, "]: ", kernel.message());
    if (!artifact.empty()) kernel->artifact = (folder / artifact).string();
    kernels.push_back(*std::move(kernel));
  }
  const bool all_apart =
      !kernels.empty() && std::ranges::none_of(kernels, &std::string::empty, &BundleKernel::artifact);
  if (relative.empty() && !all_apart)
    return damaged("expected \"library\", a shared object (tuner build --emit so)");
  const std::string library = (folder / relative).string();
  if (!all_apart) RETURN_IF_ERROR(read_checked(library, digest, path).status());
  std::string target;
  if (!options.target.empty()) {
    ASSIGN_OR_RETURN(const Target asked, resolve(options.target));
    target = asked.name();
  }
  return std::unique_ptr<Source>(
      std::make_unique<BundleSource>(path, library, std::move(kernels), options, std::move(target)));
}

}  // namespace tuner::runtime
