#include "compiler_core/runtime/model_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/base/input_file.h"
#include "compiler_core/base/json_reader.h"
#include "compiler_core/base/mapped_file.h"
#include "compiler_core/runtime/cuda_driver.h"
#include "compiler_core/runtime/cuda_fit.h"

namespace tuner {
namespace {

namespace fs = std::filesystem;
using json_input::kRequired;
using json_input::Reader;

constexpr size_t kMostPlanBytes = 256 << 20;

Status check_digest(const fs::path& folder, const ModelFiles::File& file) {
  const std::string path = folder / file.path;
  ASSIGN_OR_RETURN(const MappedFile mapped, map_input(path, "a library of a compiled model"));
  if (sha256_hex(mapped.bytes()) == file.digest) return Status::ok();
  return invalid_argument(path, ": is damaged, or not the library that plan.json tells of");
}

Result<std::shared_ptr<const void>> load(const std::string& path, const std::string& target) {
  void* const library = dlopen(fs::absolute(path).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return invalid_argument(path, ": cannot be loaded; it is for \"", target, "\": ", dlerror());
  return std::shared_ptr<const void>(library, [](const void* p) { dlclose(const_cast<void*>(p)); });
}

// The loader resolves the names of used functions, and a function of that name that the program has comes
// first. Every step's code must be in one of the model's own libraries. Their names tell their content.
Status check_entries(const tuner_model& table, const ModelFiles& files) {
  std::vector<std::string> own = {fs::path(files.library.path).filename()};
  for (const ModelFiles::File& other : files.others) own.push_back(fs::path(other.path).filename());
  for (int32_t s = 0; s < table.num_steps; ++s) {
    Dl_info info{};
    if (dladdr(reinterpret_cast<void*>(table.steps[s].entry), &info) == 0 || info.dli_fname == nullptr)
      return invalid_argument("step ", table.steps[s].name, ": its function is in no library");
    if (std::ranges::find(own, fs::path(info.dli_fname).filename().string()) == own.end())
      return invalid_argument("step ", table.steps[s].name, ": its function ",
                              info.dli_sname == nullptr ? "" : info.dli_sname, " was taken from ",
                              info.dli_fname, ", which has one of the same name; rename one of them");
  }
  return Status::ok();
}

void read_files(Reader& in, ModelFiles& files) {
  int format = 0;
  in.read("format", format, kRequired);
  if (!in.failed() && format != kPlanFormat)
    in.refuse("format", "expected ", kPlanFormat, ", found ", format,
              "; compile the model again with this program");
  in.read("model", files.model, kRequired);
  // It becomes a part of paths.
  if (!in.failed() && (files.model.empty() || !std::ranges::all_of(files.model, [](unsigned char c) {
                         return std::isalnum(c) != 0 || c == '_';
                       })))
    in.refuse("model", "expected letters, digits and underscores, found \"", files.model, "\"");
  in.read("target", files.target, kRequired);
  files.on_gpu = in.list("targets") != nullptr;
  in.read_objects("cpus", [&](Reader& cpu) {
    std::string target;
    cpu.read("target", target, kRequired);
    files.target += ", " + target;
  });
  files.library.path = str("lib/lib", files.model, ".so");
  files.weights = files.model + ".weights";
  in.read_objects("kernels", [&](Reader& kernel) {
    kernel.read_object("used", [&](Reader& used) {
      std::string path;
      used.read("library", path, kRequired);
      if (std::ranges::find(files.others, path, &ModelFiles::File::path) == files.others.end())
        files.others.push_back({path, ""});
    });
  });
  in.read_object(
      "files",
      [&](Reader& digests) {
        digests.read(files.library.path, files.library.digest, kRequired);
        for (ModelFiles::File& other : files.others) digests.read(other.path, other.digest, kRequired);
      },
      kRequired);
}

}  // namespace

std::string table_symbol(std::string_view model) { return str("tuner_", model, "_model"); }

Result<ModelFiles> read_model_files(const std::string& folder) {
  const std::string path = fs::path(folder) / kPlanFile;
  ASSIGN_OR_RETURN(const std::string text, read_file(path, "the plan of a compiled model", kMostPlanBytes));
  const Result<nlohmann::json> document = json_input::parse(text);
  if (!document) return document.status().with_context(path + ": ");
  ModelFiles files;
  Reader in(*document, "");
  read_files(in, files);
  if (in.failed()) return invalid_argument(path, ": ", json_input::one_line(in.status().message()));
  return files;
}

Status model_status(int32_t code) {
  switch (code) {
    case 0:
      return Status::ok();
    case TUNER_MODEL_NO_MEMORY:
    case TUNER_GPU_NO_MEMORY:
    case TUNER_GPU_LOST:
    case TUNER_GPU_FAULT:
    case TUNER_GPU_DRIVER_ERROR:
      return failed(tuner_gpu_error(code));
    default:
      return invalid_argument(tuner_gpu_error(code));
  }
}

namespace {

// The same with what was found here.
Status gpu_status(int32_t code, const ModelFiles& files, const tuner_gpu_model& model) {
  const Status status = model_status(code);
  if (code == 0 || (code <= TUNER_WEIGHTS_NO_FILE && code >= TUNER_WEIGHTS_DAMAGED)) return status;
  if (const Status driver = cuda_available(); code == TUNER_GPU_NO_DRIVER && !driver)
    return invalid_argument("is compiled for \"", files.target, "\": ", driver.message());
  const Result<std::vector<CudaDevice>> devices = cuda_devices();
  if (!devices || devices->empty()) return status;
  const CudaDevice& device = devices->front();
  if (code == TUNER_GPU_OLD_DRIVER) {
    const Status old = check_driver_takes(model.variants[0].toolkit, device.driver_version);
    if (!old) return invalid_argument(old.message());
  }
  std::string made_for;
  for (int32_t v = 0; v < model.num_variants; ++v)
    made_for += str(v == 0 ? "" : ", ", model.variants[v].arch);
  if (code == TUNER_GPU_OTHER_GPU)
    return invalid_argument("is compiled for ", made_for, ", and GPU 0 here is ", device.name, ", ",
                            device.arch, "; compile it with --target \"cuda -arch=", device.arch, "\" too");
  return status.with_context(str(device.name, ": "));
}

}  // namespace

Status ModelLibrary::open_gpu(const std::string& folder, const ModelFiles& files) {
  const auto* const model = reinterpret_cast<const tuner_gpu_model*>(table_);
  const std::string weights = fs::path(folder) / files.weights;
  tuner_gpu_shared* shared = nullptr;
  const int32_t code = tuner_gpu_model_open(model, weights.c_str(), 0, &shared);
  const bool of_file = code <= TUNER_WEIGHTS_NO_FILE && code >= TUNER_WEIGHTS_DAMAGED;
  RETURN_IF_ERROR(gpu_status(code, files, *model).with_context((of_file ? weights : folder) + ": "));
  // The code outlives what is loaded of it.
  gpu_ = std::shared_ptr<tuner_gpu_shared>(shared,
                                           [code = code_](tuner_gpu_shared* s) { tuner_gpu_model_close(s); });
  return Status::ok();
}

// Of a library for several CPUs, the table of one.
Status ModelLibrary::choose_cpu(const ModelFiles& files) {
  const tuner_model* chosen = tuner_model_here(table_);
  if (table_->version == TUNER_MODEL_CPUS_VERSION) {
    const auto* const all = reinterpret_cast<const tuner_model_cpus*>(table_);
    if (files.cpu) {
      if (*files.cpu >= static_cast<size_t>(all->num_cpus))
        return invalid_argument("is for ", all->num_cpus, " CPUs, and has no number ", *files.cpu);
      chosen = &all->cpus[*files.cpu];
      if (tuner_cpu_has_all(chosen) == 0) chosen = nullptr;
    }
    if (chosen != nullptr) cpu_ = static_cast<size_t>(chosen - all->cpus);
  }
  if (chosen == nullptr)
    return model_status(TUNER_MODEL_OTHER_CPU).with_context(str("is compiled for \"", files.target, "\": "));
  table_ = chosen;
  return Status::ok();
}

Result<ModelLibrary> ModelLibrary::open(const std::string& folder, const ModelFiles& files) {
  ModelLibrary model;
  const std::string library = fs::path(folder) / files.library.path,
                    weights = fs::path(folder) / files.weights;
  RETURN_IF_ERROR(check_digest(folder, files.library));
  for (const ModelFiles::File& other : files.others) RETURN_IF_ERROR(check_digest(folder, other));
  ASSIGN_OR_RETURN(model.code_, load(library, files.target));
  const std::string symbol = table_symbol(files.model);
  model.table_ = static_cast<const tuner_model*>(dlsym(const_cast<void*>(model.code_.get()), symbol.c_str()));
  if (model.table_ == nullptr) return invalid_argument(library, ": has no symbol ", symbol);
  if (model.table_->version == TUNER_GPU_MODEL_VERSION) {
    RETURN_IF_ERROR(model.open_gpu(folder, files));
    return model;
  }
  if (tuner_model_is_known(model.table_) == 0)
    return model_status(TUNER_MODEL_OTHER_ABI).with_context(library + ": ");
  RETURN_IF_ERROR(model.choose_cpu(files).with_context(folder + ": "));
  if (const Status own = check_entries(*model.table_, files); !own) return own.with_context(library + ": ");
  tuner_weights* mapped = nullptr;
  if (const int32_t code = tuner_weights_open(model.table_, weights.c_str(), &mapped); code != 0)
    return model_status(code).with_context(weights + ": ");
  model.weights_ = std::shared_ptr<tuner_weights>(mapped, tuner_weights_close);
  return model;
}

}  // namespace tuner
