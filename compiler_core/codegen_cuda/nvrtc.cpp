// The few declarations stand here, after the documented interface of NVRTC, which has been the same
// since 11.2.
#include "compiler_core/codegen_cuda/nvrtc.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace tuner::cuda {
namespace {

namespace fs = std::filesystem;

constexpr int kSuccess = 0;
constexpr int kFirstWithCache = 13;
constexpr int kOldestMajor = 12, kOldestMinor = 3;

using NvrtcProgram = struct OpaqueProgram*;

struct Functions {
  int (*version)(int* major, int* minor) = nullptr;
  int (*create)(NvrtcProgram* program, const char* source, const char* name, int headers,
                const char* const* header_texts, const char* const* header_names) = nullptr;
  int (*destroy)(NvrtcProgram* program) = nullptr;
  int (*compile)(NvrtcProgram program, int options, const char* const* option_texts) = nullptr;
  int (*log_size)(NvrtcProgram program, size_t* size) = nullptr;
  int (*log)(NvrtcProgram program, char* text) = nullptr;
  int (*cubin_size)(NvrtcProgram program, size_t* size) = nullptr;
  int (*cubin)(NvrtcProgram program, char* bytes) = nullptr;
  int (*ptx_size)(NvrtcProgram program, size_t* size) = nullptr;
  int (*ptx)(NvrtcProgram program, char* text) = nullptr;
  int (*add_name)(NvrtcProgram program, const char* name) = nullptr;
  int (*symbol)(NvrtcProgram program, const char* name, const char** symbol) = nullptr;
  const char* (*error_text)(int result) = nullptr;
};

struct Library {
  Functions f;
  NvrtcVersion version;
};

// Where an installed toolkit has it, newest first.
std::vector<std::string> toolkit_folders() {
  std::vector<std::string> folders;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* value = std::getenv(variable); value != nullptr && *value != '\0')
      folders.push_back(str(value, "/lib64"));
  std::vector<std::string> installed;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/usr/local", ignored))
    if (entry.path().filename().string().starts_with("cuda"))
      installed.push_back(entry.path().string() + "/lib64");
  std::sort(installed.rbegin(), installed.rend());
  folders.insert(folders.end(), installed.begin(), installed.end());
  return folders;
}

std::vector<std::string> candidates() {
  // A file named by the user is the only one looked at.
  if (const char* file = std::getenv("TUNER_NVRTC"); file != nullptr && *file != '\0') return {file};
  constexpr const char* kNames[] = {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"};
  std::vector<std::string> files(std::begin(kNames), std::end(kNames));
  std::error_code ignored;
  for (const std::string& folder : toolkit_folders())
    for (const char* name : kNames)
      if (fs::exists(folder + "/" + name, ignored)) files.push_back(folder + "/" + name);
  return files;
}

template <class F>
bool find(void* handle, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(handle, name));
  return function != nullptr;
}

// Why this file cannot be used, or nothing; fills `library`.
std::string try_file(const std::string& file, Library& library) {
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return "not there or not loadable";
  Functions& f = library.f;
  const bool complete =
      find(handle, "nvrtcVersion", f.version) && find(handle, "nvrtcCreateProgram", f.create) &&
      find(handle, "nvrtcDestroyProgram", f.destroy) && find(handle, "nvrtcCompileProgram", f.compile) &&
      find(handle, "nvrtcGetProgramLogSize", f.log_size) && find(handle, "nvrtcGetProgramLog", f.log) &&
      find(handle, "nvrtcGetCUBINSize", f.cubin_size) && find(handle, "nvrtcGetCUBIN", f.cubin) &&
      find(handle, "nvrtcGetPTXSize", f.ptx_size) && find(handle, "nvrtcGetPTX", f.ptx) &&
      find(handle, "nvrtcAddNameExpression", f.add_name) && find(handle, "nvrtcGetLoweredName", f.symbol) &&
      find(handle, "nvrtcGetErrorString", f.error_text);
  std::string problem;
  if (!complete)
    problem = "is no NVRTC, or one before 11.2";
  else if (f.version(&library.version.major, &library.version.minor) != kSuccess)
    problem = "does not tell its version";
  else if (std::pair(library.version.major, library.version.minor) < std::pair(kOldestMajor, kOldestMinor))
    problem = str("is version ", library.version.major, ".", library.version.minor);
  if (!problem.empty()) dlclose(handle);  // one that is used stays loaded for the life of the process
  return problem;
}

Result<Library> load_nvrtc() {
  std::string looked;
  for (const std::string& file : candidates()) {
    Library library;
    const std::string problem = try_file(file, library);
    if (problem.empty()) return library;
    looked += str(looked.empty() ? "" : "; ", file, ": ", problem);
  }
  return unavailable("no NVRTC ", kOldestMajor, ".", kOldestMinor, " or newer (", looked,
                     "). Set TUNER_NVRTC to a libnvrtc.so, or CUDA_HOME to a toolkit");
}

const Result<Library>& library() {
  static const Result<Library> kLibrary = load_nvrtc();
  return kLibrary;
}

// The first line that is an error, else the first line.
std::string first_error(const std::string& log) {
  std::string first;
  for (size_t begin = 0; begin < log.size();) {
    const size_t end = std::min(log.find('\n', begin), log.size());
    const std::string line = log.substr(begin, end - begin);
    if (line.find("error") != std::string::npos) return line;
    if (first.empty()) first = line;
    begin = end + 1;
  }
  return first;
}

// An NVRTC program, destroyed with its scope.
class SourceProgram {
 public:
  SourceProgram(const Functions& f, const std::string& source, const std::string& name) : f_(f) {
    status_ = f_.create(&program_, source.c_str(), name.c_str(), 0, nullptr, nullptr);
  }
  ~SourceProgram() {
    if (program_ != nullptr) f_.destroy(&program_);
  }
  SourceProgram(const SourceProgram&) = delete;
  SourceProgram& operator=(const SourceProgram&) = delete;

  int status() const { return status_; }
  NvrtcProgram get() const { return program_; }
  std::string bytes(int (*size_of)(NvrtcProgram, size_t*), int (*read)(NvrtcProgram, char*)) const {
    size_t size = 0;
    if (size_of(program_, &size) != kSuccess) return {};
    std::string text(size, '\0');
    if (size > 0 && read(program_, text.data()) != kSuccess) return {};
    return text;
  }

 private:
  const Functions& f_;
  NvrtcProgram program_ = nullptr;
  int status_ = kSuccess;
};

}  // namespace

Result<NvrtcVersion> nvrtc_version() {
  const Result<Library>& lib = library();
  if (!lib) return lib.status();
  return lib->version;
}

Result<std::string> nvrtc_file() {
  const Result<Library>& lib = library();
  if (!lib) return lib.status();
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(lib->f.version), &info) == 0 || info.dli_fname == nullptr)
    return unavailable("the loader does not say which file NVRTC is");
  return std::string(info.dli_fname);
}

Result<Attempt> try_to_compile(const std::string& source, const std::string& name,
                               const std::vector<std::string>& options, const std::string& kernel) {
  const Result<Library>& lib = library();
  if (!lib) return lib.status();
  const Functions& f = lib->f;
  Attempt made;
  const SourceProgram program(f, source, name);
  if (program.status() != kSuccess) {
    made.error = str("NVRTC cannot begin: ", f.error_text(program.status()));
    return made;
  }
  if (!kernel.empty()) f.add_name(program.get(), kernel.c_str());
  std::vector<const char*> texts;
  for (const std::string& option : options) texts.push_back(option.c_str());
  // Where there is a driver, NVRTC 13 keeps what it compiled; what comes from there has no log, and so no
  // registers and spills. We keep kernels ourselves (cubin_cache.h).
  if (lib->version.major >= kFirstWithCache) texts.push_back("--no-cache");
  const int result = f.compile(program.get(), static_cast<int>(texts.size()), texts.data());
  Compiled& compiled = made.compiled;
  compiled.log = program.bytes(f.log_size, f.log);
  while (!compiled.log.empty() && compiled.log.back() == '\0') compiled.log.pop_back();
  // Another NVRTC knows that architecture: newer ones know newer GPUs, and forget the oldest.
  if (compiled.log.find("--gpu-architecture") != std::string::npos && result != kSuccess) {
    made.error = str("this NVRTC (CUDA ", lib->version.major, ".", lib->version.minor,
                     "): ", first_error(compiled.log));
    return made;
  }
  made.end = Attempt::End::kRefused;
  if (result != kSuccess) {
    made.error = str("NVRTC: ", f.error_text(result), ": ", first_error(compiled.log));
    return made;
  }
  const char* symbol = nullptr;
  if (!kernel.empty() &&
      (f.symbol(program.get(), kernel.c_str(), &symbol) != kSuccess || symbol == nullptr)) {
    made.error = str("it has no kernel ", kernel);
    return made;
  }
  if (symbol != nullptr) compiled.symbol = symbol;
  compiled.cubin = program.bytes(f.cubin_size, f.cubin);
  compiled.ptx = program.bytes(f.ptx_size, f.ptx);
  while (!compiled.ptx.empty() && compiled.ptx.back() == '\0') compiled.ptx.pop_back();
  made.end = compiled.cubin.empty() ? Attempt::End::kUnable : Attempt::End::kCompiled;
  if (compiled.cubin.empty()) made.error = "NVRTC made no cubin; was a virtual architecture asked for?";
  return made;
}

Result<Compiled> compile_source(const std::string& source, const std::string& name,
                                const std::vector<std::string>& options) {
  ASSIGN_OR_RETURN(Attempt made, try_to_compile(source, name, options));
  switch (made.end) {
    case Attempt::End::kUnable:
      return unavailable(name, ": ", made.error);
    case Attempt::End::kRefused:
      return Status(StatusCode::kInternal, str(name, ": ", made.error));
    case Attempt::End::kCompiled:
      break;
  }
  return std::move(made.compiled);
}

}  // namespace tuner::cuda
