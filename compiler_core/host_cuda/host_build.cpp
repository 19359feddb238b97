#include "compiler_core/host_cuda/host_build.h"

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "compiler_core/base/child_process.h"
#include "compiler_core/base/input_file.h"
#include "compiler_core/base/output_file.h"
#include "compiler_core/foreign/compilers.h"
#include "compiler_core/foreign/confined_program.h"
#include "compiler_core/foreign/source_build.h"
#include "compiler_core/host_cuda/kernel_text.h"
#include "compiler_core/host_cuda/static_shared.h"
#include "host_cuda/device_text.h"

namespace tuner {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostAssembly = size_t{64} << 20, kMostObject = size_t{16} << 20;

Status write_runtime(const ScratchFolder& folder) {
  RETURN_IF_ERROR(make_folders(folder.file("tuner_host_cuda")));
  const std::pair<const char*, const char*> kOurs[] = {{"device.h", kHostCudaDevice},
                                                       {"runtime.h", kHostCudaRuntimeHeader},
                                                       {"state.h", kHostCudaState},
                                                       {"runtime.cpp", kHostCudaRuntime},
                                                       {"watch.cpp", kHostCudaWatch}};
  for (const auto& [name, text] : kOurs)
    RETURN_IF_ERROR(replace_file(folder.file(str("tuner_host_cuda/", name)), text));
  return Status::ok();
}

Status write_files(const ScratchFolder& folder, const HostCudaKernel& kernel) {
  RETURN_IF_ERROR(write_runtime(folder));
  // What CUDA's own header says is in device.h.
  RETURN_IF_ERROR(make_folders(folder.file("tuner_headers")));
  for (const char* header : {"cuda_runtime.h", "cuda.h", "device_launch_parameters.h"})
    RETURN_IF_ERROR(replace_file(folder.file(str("tuner_headers/", header)), ""));
  for (const ForeignCode::File& file : kernel.files) {
    RETURN_IF_ERROR(make_folders(fs::path(folder.file(file.name)).parent_path()));
    RETURN_IF_ERROR(replace_file(folder.file(file.name), for_host_compiler(file.text)));
  }
  return replace_file(folder.file("tuner_main.cpp"), host_program_text(kernel));
}

// One call of the compiler, in the folder.
Status compile(const Compiler& compiler, const ScratchFolder& folder, std::vector<std::string> words) {
  ConfinedProgram run{.path = compiler.path, .words = {compiler.name}, .folder = folder.path()};
  run.words.insert(run.words.end(), words.begin(), words.end());
  ASSIGN_OR_RETURN(const ConfinedEnd end, run_confined(run));
  if (end.timed_out) return invalid_config(compiler.name, " did not end in time on the kernel for this host");
  if (end.status == 0) return Status::ok();
  return invalid_config(compiler.name, " refuses the kernel for this host:\n",
                        said_by(end.output, folder.path()));
}

// The runtime's two objects, compiled once for each compiler that this process uses.
struct RuntimeObjects {
  std::string runtime, watch;
};
Result<std::shared_ptr<const RuntimeObjects>> runtime_objects(const Compiler& compiler) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const RuntimeObjects>> known;
  const std::lock_guard lock(mutex);
  std::shared_ptr<const RuntimeObjects>& kept = known[compiler.path + "\n" + compiler.version];
  if (kept != nullptr) return kept;
  ASSIGN_OR_RETURN(const auto folder, ScratchFolder::make("tuner-host-cuda"));
  RETURN_IF_ERROR(write_runtime(*folder));
  auto made = std::make_shared<RuntimeObjects>();
  const std::pair<const char*, std::string*> objects[] = {{"runtime", &made->runtime},
                                                          {"watch", &made->watch}};
  for (const auto& [name, object] : objects) {
    RETURN_IF_ERROR(compile(compiler, *folder,
                            {"-std=c++20", "-O2", "-w", "-fno-pie", "-c",
                             str("tuner_host_cuda/", name, ".cpp"), "-o", str(name, ".o")}));
    ASSIGN_OR_RETURN(*object, read_whole(folder->file(str(name, ".o")), kMostObject));
  }
  kept = std::move(made);
  return kept;
}

}  // namespace

Result<HostCudaProgram> build_host_cuda(const HostCudaKernel& kernel) {
  ASSIGN_OR_RETURN(const Compiler compiler, find_compiler(kernel.compiler));
  ASSIGN_OR_RETURN(auto folder, ScratchFolder::make("tuner-host-cuda"));
  RETURN_IF_ERROR(write_files(*folder, kernel));
  // A program at a fixed address below 4 GiB: findings name addresses of code. Merging stores would hide
  // whose bytes a thread writes, and -O1 does not.
  std::vector<std::string> words{"-std=c++20",
                                 "-O1",
                                 "-g1",
                                 "-gdwarf-4",
                                 "-w",
                                 "-fno-pie",
                                 "-fno-strict-aliasing",
                                 "-fno-exceptions",
                                 "-fsanitize=thread",
                                 "-Ituner_headers",
                                 "-x",
                                 "c++"};
  words.insert(words.end(), kernel.words.begin(), kernel.words.end());
  for (const char* word : {"-S", "tuner_main.cpp", "-o", "tuner_main.s"}) words.emplace_back(word);
  RETURN_IF_ERROR(compile(compiler, *folder, std::move(words)));
  ASSIGN_OR_RETURN(const std::string assembly, read_whole(folder->file("tuner_main.s"), kMostAssembly));
  RETURN_IF_ERROR(replace_file(folder->file("tuner_main.s"), with_shared_table(assembly)));
  ASSIGN_OR_RETURN(const std::shared_ptr<const RuntimeObjects> runtime, runtime_objects(compiler));
  RETURN_IF_ERROR(replace_file(folder->file("runtime.o"), runtime->runtime));
  RETURN_IF_ERROR(replace_file(folder->file("watch.o"), runtime->watch));
  RETURN_IF_ERROR(compile(compiler, *folder,
                          {"-no-pie", "tuner_main.s", "runtime.o", "watch.o", "-o", "tuner_program", "-lm"}));
  std::string path = folder->file("tuner_program");
  return HostCudaProgram{std::move(folder), std::move(path)};
}

}  // namespace tuner
