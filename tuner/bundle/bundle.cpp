#include "tuner/bundle/bundle.h"

#include <algorithm>

#include "bundle/runtime_header.h"  // generated
#include "compiler_core/codegen/library.h"
#include "tuner/bundle/bundle_package.h"
#include "tuner/bundle/c_header.h"
#include "tuner/text/facts.h"

namespace tuner {
namespace {

using nlohmann::ordered_json;

constexpr int kFormat = 1;  // of manifest.json

std::string architecture(const Target& target) {
  return target.mtriple.empty() ? "x86_64-linux-gnu" : target.mtriple;
}

Status one_architecture(const std::vector<const BundleKernel*>& kernels) {
  for (const BundleKernel* k : kernels)
    if (architecture(k->task.target) != architecture(kernels[0]->task.target))
      return invalid_argument("one library is of one architecture, found kernels for \"",
                              kernels[0]->task.target_name, "\" and \"", k->task.target_name,
                              "\". Build them into two");
  return Status::ok();
}

void add_texts(const std::vector<BundleKernel>& kernels, const Emit& emit, std::vector<BundleFile>& files) {
  for (const BundleKernel& k : kernels) {
    if (emit.schedule) files.push_back({"schedule/" + k.function + ".txt", k.schedule});
    for (const BundleKernel::Text& text : k.texts) files.push_back({text.path, text.text});
    if (emit.object && !k.stands_alone()) files.push_back({"obj/" + k.function + ".o", k.code.object});
  }
}

// The library of kernels that are linked, its headers and packages; `facts` gets what the manifest says of
// them.
Status add_library(const std::string& name, const std::vector<const BundleKernel*>& kernels, const Emit& emit,
                   std::vector<BundleFile>& files, ordered_json& facts) {
  RETURN_IF_ERROR(one_architecture(kernels));
  const Target& target = kernels[0]->task.target;
  std::vector<std::string> objects;
  std::vector<ArchiveMember> members;
  const auto add = [&](const std::string& name_of_member, const std::string& object) {
    objects.push_back(object);
    members.push_back({name_of_member + ".o", object});
  };
  for (const BundleKernel* k : kernels) {
    add(k->function, k->code.object);
    if (!k->default_object.empty()) add(k->function + ".default", k->default_object);
  }
  ASSIGN_OR_RETURN(const bool math, calls_math_library(objects));
  if (emit.shared) {
    ASSIGN_OR_RETURN(std::string bytes, link_shared_library(objects, target, str("lib", name, ".so")));
    facts["library"] = str("lib/lib", name, ".so");
    facts["digest"] = sha256_hex(bytes);
    files.push_back({facts["library"], std::move(bytes)});
  }
  if (emit.archive) {
    ASSIGN_OR_RETURN(std::string bytes, write_archive(members));
    facts["static_library"] = str("lib/lib", name, ".a");
    files.push_back({facts["static_library"], std::move(bytes)});
  }
  facts["header"] = str("include/", name, ".h");
  files.push_back({facts["header"], c_header(name, kernels)});
  files.push_back({"include/tuner_runtime.h", kRuntimeHeader});
  files.push_back({"include/tuner_kernel.h", kKernelHeader});
  files.push_back({"include/tuner_pool.h", kPoolHeader});
  std::vector<std::string> targets;
  for (const BundleKernel* k : kernels)
    if (std::ranges::find(targets, k->task.target.name()) == targets.end())
      targets.push_back(k->task.target.name());
  std::string all;
  for (const std::string& each : targets) all += (all.empty() ? "" : ", ") + each;
  const PackageText package{.name = name,
                            .about = str(kernels.size(), " tuned kernels for ", all),
                            .shared = emit.shared,
                            .archive = emit.archive,
                            .x86 = target.is_x86(),
                            .math = math};
  files.push_back({str("lib/cmake/", name, "/", name, "Config.cmake"), cmake_config(package)});
  files.push_back({str("lib/pkgconfig/", name, ".pc"), pkg_config(package)});
  return Status::ok();
}

}  // namespace

Result<std::vector<BundleFile>> bundle_files(const std::string& name,
                                             const std::vector<BundleKernel>& kernels, const Emit& emit) {
  ordered_json manifest{{"format", kFormat}, {"bundle", name}, {"toolchain", toolchain_fingerprint()}};
  std::vector<BundleFile> files;
  std::vector<const BundleKernel*> linked;
  for (const BundleKernel& k : kernels)
    if (!k.stands_alone()) linked.push_back(&k);
  if (!linked.empty() && emit.library()) RETURN_IF_ERROR(add_library(name, linked, emit, files, manifest));
  for (const BundleKernel& k : kernels)
    for (const ShippedKernel::File& file : k.code.files)
      if (std::ranges::find(files, file.path, &BundleFile::path) == files.end())
        files.push_back({file.path, file.bytes});
  add_texts(kernels, emit, files);
  manifest["kernels"] = ordered_json::array();
  for (const BundleKernel& k : kernels) manifest["kernels"].push_back(k.facts);
  // Path and digest of each file: how the next build knows what is its own, and a reader that all belong
  // together.
  manifest["files"] = ordered_json::object();
  for (const BundleFile& f : files) manifest["files"][f.path] = sha256_hex(f.bytes);
  files.push_back({"manifest.json", pretty(manifest) + "\n"});
  return files;
}

}  // namespace tuner
