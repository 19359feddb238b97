#include "tuner/gpu_model/gpu_package.h"

#include "bundle/runtime_header.h"  // generated
#include "compiler_core/codegen/library.h"
#include "compiler_core/runtime/model_library.h"
#include "tuner/bundle/bundle_package.h"
#include "tuner/gpu_model/gpu_header.h"
#include "tuner/gpu_model/gpu_table.h"
#include "tuner/model/placed_model.h"
#include "tuner/model/plan_file.h"
#include "tuner/text/facts.h"

namespace tuner {
namespace {

Status add_libraries(std::span<const ModelToPack> variants, std::span<const PlacedModel> placed,
                     const Target& host, std::vector<BundleFile>& files) {
  const std::string& name = variants.front().name;
  ASSIGN_OR_RETURN(const ConstantTable made, gpu_table(variants, placed));
  ASSIGN_OR_RETURN(const std::string table, compile_table(made, host));
  ASSIGN_OR_RETURN(std::string shared,
                   link_shared_library({table}, host, str("lib", name, ".so"), table_symbol(name)));
  ASSIGN_OR_RETURN(std::string archive, write_archive({{name + "_model.o", table}}));
  files.push_back({str("lib/lib", name, ".so"), std::move(shared), ""});
  files.push_back({str("lib/lib", name, ".a"), std::move(archive), ""});
  return Status::ok();
}

void add_texts(std::span<const ModelToPack> variants, const PlacedModel& placed, const Target& host,
               std::vector<BundleFile>& files) {
  const ModelToPack& model = variants.front();
  const std::string& name = model.name;
  files.push_back({str("include/", name, ".h"), gpu_header(variants, placed), ""});
  files.push_back({"include/tuner_gpu_model.h", kGpuModelHeader, ""});
  files.push_back({"include/tuner_model.h", kModelHeader, ""});
  files.push_back({"include/tuner_runtime.h", kRuntimeHeader, ""});
  files.push_back({"include/tuner_kernel.h", kKernelHeader, ""});
  const PackageText package{
      .name = name,
      .about = str("a model of ", placed.steps.size(), " steps for ", model.target.name()),
      .x86 = host.is_x86(),
      .weights = true,
      .command = "tuner compile"};
  files.push_back({str("lib/cmake/", name, "/", name, "Config.cmake"), cmake_config(package), ""});
  files.push_back({str("lib/pkgconfig/", name, ".pc"), pkg_config(package), ""});
}

}  // namespace

Result<std::vector<BundleFile>> gpu_model_files(std::span<const ModelToPack> variants, const Target& host,
                                                const std::string& staging) {
  CHECK(!variants.empty());
  const std::string weights = variants.front().name + ".weights";
  std::vector<BundleFile> files = {{weights, "", staging + "/" + weights}};
  ASSIGN_OR_RETURN(const std::vector<PlacedModel> placed, place_models(variants, files[0].made));
  RETURN_IF_ERROR(add_libraries(variants, placed, host, files));
  add_texts(variants, placed.front(), host, files);
  nlohmann::ordered_json plan = plan_json(variants.front(), placed.front());
  for (const ModelToPack& variant : variants) plan["targets"].push_back(variant.target.name());
  int64_t workspace = 0;
  for (const BundleKernel& k : variants.front().kernels)
    workspace = std::max(workspace, gpu_workspace_bytes(k.code.manifest));
  plan["memory"]["workspace_bytes"] = workspace;
  ASSIGN_OR_RETURN(plan["files"], file_digests(files));
  files.push_back({"plan.json", pretty(plan) + "\n", ""});
  return files;
}

}  // namespace tuner
