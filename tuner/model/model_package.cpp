#include "tuner/model/model_package.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "bundle/runtime_header.h"  // generated
#include "compiler_core/base/c_names.h"
#include "compiler_core/codegen/library.h"
#include "tuner/bundle/bundle_package.h"
#include "tuner/model/model_header.h"
#include "tuner/model/model_table.h"
#include "tuner/model/placed_model.h"
#include "tuner/model/plan_file.h"
#include "tuner/text/facts.h"

namespace tuner {
namespace {

// The libraries of used functions. Returns a stub of each, to link with: the loader then looks for the file
// by the name it has here, not by that which its maker gave it, and needs nothing of its symbols but those
// that are used.
Result<std::vector<std::string>> add_used(const ModelToPack& model, std::vector<BundleFile>& files) {
  std::map<std::string, std::vector<std::string>> symbols;  // by path
  for (const UsedFunction& used : model.used) {
    const std::string path = used_path(model, used),
                      &symbol = used.step.empty() ? model.kernels[used.kernel].function : used.step;
    std::vector<std::string>& of_file = symbols[path];
    if (of_file.empty()) files.push_back({path, *used.library});
    for (const std::string& each : {symbol, used.costs, used.timeline})
      if (!each.empty() && std::ranges::find(of_file, each) == of_file.end()) of_file.push_back(each);
  }
  std::vector<std::string> stubs;
  for (const auto& [path, names] : symbols) {
    ASSIGN_OR_RETURN(std::string stub,
                     library_stub(names, model.target, std::filesystem::path(path).filename().string()));
    stubs.push_back(std::move(stub));
  }
  return stubs;
}

// Both libraries: all kernels, and the table of steps, the only symbol of the shared one. Tells whether they
// call libm.
Result<bool> add_libraries(std::span<const ModelToPack> models, std::span<const PlacedModel> placed,
                           std::vector<BundleFile>& files) {
  const ModelToPack& model = models.back();  // what has the least instructions may also make the table
  const std::string& name = model.name;
  ASSIGN_OR_RETURN(std::string table, compile_table(model_table(models, placed), model.target));
  std::vector<std::string> objects;
  std::vector<ArchiveMember> members;
  for (const ModelToPack& each : models)
    for (const BundleKernel& k : each.kernels) {
      if (k.code.object.empty()) continue;
      objects.push_back(k.code.object);
      members.push_back({k.function + ".o", k.code.object});
    }
  objects.push_back(table);
  members.push_back({name + "_model.o", std::move(table)});
  ASSIGN_OR_RETURN(const std::vector<std::string> stubs, add_used(model, files));
  ASSIGN_OR_RETURN(std::string shared, link_shared_library(objects, model.target, str("lib", name, ".so"),
                                                           table_symbol(name), stubs));
  files.push_back({str("lib/lib", name, ".so"), std::move(shared)});
  if (!stubs.empty()) return calls_math_library(objects);
  ASSIGN_OR_RETURN(std::string archive, write_archive(members));
  files.push_back({str("lib/lib", name, ".a"), std::move(archive)});
  return calls_math_library(objects);
}

void add_texts(const ModelToPack& model, const PlacedModel& placed, const std::string& targets, bool math,
               std::vector<BundleFile>& files) {
  const std::string& name = model.name;
  files.push_back({str("include/", name, ".h"), model_header(model, placed, targets)});
  files.push_back({"include/tuner_model.h", kModelHeader});
  files.push_back({"include/tuner_runtime.h", kRuntimeHeader});
  files.push_back({"include/tuner_kernel.h", kKernelHeader});
  files.push_back({"include/tuner_pool.h", kPoolHeader});
  const PackageText package{.name = name,
                            .about = str("a model of ", placed.steps.size(), " steps for ", targets),
                            .archive = model.used.empty(),
                            .x86 = model.target.is_x86(),
                            .weights = true,
                            .math = math,
                            .command = "tuner compile"};
  files.push_back({str("lib/cmake/", name, "/", name, "Config.cmake"), cmake_config(package)});
  files.push_back({str("lib/pkgconfig/", name, ".pc"), pkg_config(package)});
}

}  // namespace

std::string used_path(const ModelToPack& model, const UsedFunction& used) {
  constexpr size_t kDigits = 16;
  std::string stem = used.from.substr(0, used.from.find(".so"));
  if (stem.starts_with("lib")) stem.erase(0, 3);
  return str("lib/lib", model.name, "_", as_c_name(stem), "_", sha256_hex(*used.library).substr(0, kDigits),
             ".so");
}

Result<std::vector<BundleFile>> model_files(std::span<const ModelToPack> models, const std::string& staging) {
  CHECK(!models.empty()) << "no model";
  std::string targets;
  for (const ModelToPack& model : models) {
    CHECK(std::ranges::count_if(model.kernels, &BundleKernel::stands_alone) == std::ssize(model.used) &&
          (models.size() == 1 || model.used.empty()))
        << model.target.name();
    targets += (targets.empty() ? "" : ", ") + model.target.name();
  }
  const std::string weights = models.front().name + ".weights";
  std::vector<BundleFile> files = {{weights, "", staging + "/" + weights}};
  ASSIGN_OR_RETURN(const std::vector<PlacedModel> placed, place_models(models, files[0].made));
  ASSIGN_OR_RETURN(const bool math, add_libraries(models, placed, files));
  add_texts(models.front(), placed.front(), targets, math, files);
  nlohmann::ordered_json plan = plan_json(models.front(), placed.front());
  for (size_t m = 1; m < models.size(); ++m) plan["cpus"].push_back(cpu_plan_json(models[m], placed[m]));
  ASSIGN_OR_RETURN(plan["files"], file_digests(files));
  files.push_back({"plan.json", pretty(plan) + "\n"});
  return files;
}

}  // namespace tuner
