#include "compiler_core/host_cuda/host_build.h"

#include <filesystem>
#include <future>
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

constexpr size_t kMostAssembly = size_t{64} << 20;

// A program at a fixed address below 4 GiB: findings name addresses of code. Merging stores would hide whose
// bytes a thread writes, and -O1 does not.
std::vector<std::string> kernel_words() {
  return {"-std=c++20",
          "-O1",
          "-g1",
          "-gdwarf-4",
          "-w",
          "-fno-pie",
          "-fno-strict-aliasing",
          "-fno-exceptions",
          "-fsanitize=thread"};
}

// One call of the compiler, in the folder.
Status compile(const Compiler& compiler, const ScratchFolder& folder, std::vector<std::string> words,
               const std::string& readable = "") {
  ConfinedProgram run{.path = compiler.path, .words = {compiler.name}, .folder = folder.path()};
  run.words.insert(run.words.end(), words.begin(), words.end());
  if (!readable.empty()) run.readable.push_back(readable);
  ASSIGN_OR_RETURN(const ConfinedEnd end, run_confined(run));
  if (end.timed_out) return invalid_config(compiler.name, " did not end in time on the kernel for this host");
  if (end.status == 0) return Status::ok();
  return invalid_config(compiler.name, " refuses the kernel for this host:\n",
                        said_by(end.output, folder.path()));
}

// What kernels of one compiler share: the device's headers and the runtime's objects, in a folder of their
// own. The header that all begin with is precompiled, which takes two thirds off a kernel's compilation.
class SharedParts {
 public:
  // One for each compiler that this process uses, made once.
  static Result<std::shared_ptr<SharedParts>> of(const Compiler& compiler) {
    static std::mutex mutex;
    static std::map<std::string, std::shared_ptr<SharedParts>> known;
    const std::lock_guard lock(mutex);
    std::shared_ptr<SharedParts>& kept = known[str(compiler.path, "\n", compiler.version)];
    if (kept != nullptr) return kept;
    ASSIGN_OR_RETURN(auto folder, ScratchFolder::make("tuner-host-cuda"));
    auto made = std::make_shared<SharedParts>(compiler, std::move(folder));
    RETURN_IF_ERROR(made->write_headers());
    std::future<Status> header = std::async(std::launch::async, [&] { return made->precompile(); });
    const Status runtime =
        made->add("runtime", {"runtime", "stacks", "numbers", "findings_file", "races", "watch"});
    RETURN_IF_ERROR(header.get());
    RETURN_IF_ERROR(runtime);
    kept = std::move(made);
    return kept;
  }
  SharedParts(Compiler compiler, std::unique_ptr<ScratchFolder> folder)
      : compiler_(std::move(compiler)), folder_(std::move(folder)) {}

  const std::string& path() const { return folder_->path(); }
  // Objects for a kernel, by their paths.
  Result<std::vector<std::string>> objects(bool with_units) {
    std::vector<std::string> paths{folder_->file("runtime.o")};
    if (!with_units) return paths;
    const std::lock_guard lock(units_);
    paths.push_back(folder_->file("units.o"));
    if (!fs::exists(paths.back()))
      RETURN_IF_ERROR(add("units", {"copies", "tiles", "group_products", "fetches"}));
    return paths;
  }

 private:
  Status write_headers() {
    RETURN_IF_ERROR(make_folders(folder_->file("tuner_host_cuda")));
    for (const HostCudaFile& file : kHostCudaFiles)
      RETURN_IF_ERROR(replace_file(folder_->file(str("tuner_host_cuda/", file.name)), file.text));
    // What CUDA's own header says is in device.h.
    for (const char* header : {"cuda_runtime.h", "cuda.h", "device_launch_parameters.h"})
      RETURN_IF_ERROR(replace_file(folder_->file(header), ""));
    for (const char* header : {"cuda_fp16.h", "cuda_bf16.h"})
      RETURN_IF_ERROR(replace_file(folder_->file(header), "#include <tuner_host_cuda/half.h>\n"));
    return Status::ok();
  }
  Status precompile() {
    std::vector<std::string> words = kernel_words();
    for (const char* word :
         {"-x", "c++-header", "tuner_host_cuda/device.h", "-o", "tuner_host_cuda/device.h.gch"})
      words.emplace_back(word);
    return compile(compiler_, *folder_, std::move(words));
  }
  // Files of device/ as one object: they have most of their headers in common.
  Status add(const std::string& name, const std::vector<std::string>& files) {
    std::string text;
    for (const std::string& file : files) text += str("#include \"tuner_host_cuda/", file, ".cpp\"\n");
    RETURN_IF_ERROR(replace_file(folder_->file(name + ".cpp"), text));
    return compile(compiler_, *folder_,
                   {"-std=c++20", "-O2", "-w", "-fno-pie", "-c", name + ".cpp", "-o", name + ".o"});
  }

  const Compiler compiler_;
  const std::unique_ptr<ScratchFolder> folder_;
  std::mutex units_;
};

Status write_files(const ScratchFolder& folder, const HostCudaKernel& kernel) {
  for (const ForeignCode::File& file : kernel.files) {
    RETURN_IF_ERROR(make_folders(fs::path(folder.file(file.name)).parent_path()));
    RETURN_IF_ERROR(replace_file(folder.file(file.name), for_host_compiler(file.text)));
  }
  return replace_file(folder.file("tuner_main.cpp"), host_program_text(kernel));
}

}  // namespace

Result<HostCudaProgram> build_host_cuda(const HostCudaKernel& kernel) {
  ASSIGN_OR_RETURN(const Compiler compiler, find_compiler(kernel.compiler));
  ASSIGN_OR_RETURN(auto folder, ScratchFolder::make("tuner-host-cuda"));
  RETURN_IF_ERROR(write_files(*folder, kernel));
  ASSIGN_OR_RETURN(const std::shared_ptr<SharedParts> parts, SharedParts::of(compiler));
  std::vector<std::string> words = kernel_words();
  words.insert(words.end(), kernel.words.begin(), kernel.words.end());
  words.push_back("-I" + parts->path());
  for (const char* word : {"-x", "c++", "-S", "tuner_main.cpp", "-o", "tuner_main.s"})
    words.emplace_back(word);
  RETURN_IF_ERROR(compile(compiler, *folder, std::move(words), parts->path()));
  ASSIGN_OR_RETURN(const std::string assembly, read_whole(folder->file("tuner_main.s"), kMostAssembly));
  RETURN_IF_ERROR(replace_file(folder->file("tuner_main.s"), with_shared_table(assembly)));
  ASSIGN_OR_RETURN(std::vector<std::string> linked, parts->objects(uses_units(kernel)));
  linked.insert(linked.begin(), {"-no-pie", "tuner_main.s"});
  linked.insert(linked.end(), {"-o", "tuner_program", "-lm"});
  RETURN_IF_ERROR(compile(compiler, *folder, std::move(linked), parts->path()));
  std::string path = folder->file("tuner_program");
  return HostCudaProgram{std::move(folder), std::move(path)};
}

}  // namespace tuner
