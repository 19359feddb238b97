#include "tests/bench/gpu/library.h"

#include <dlfcn.h>

#include <cstdlib>

namespace tuner {

Result<void*> load_library(const std::string& name, const char* variable,
                           const std::vector<std::string>& files) {
  const char* given = std::getenv(variable);
  std::vector<std::string> paths;
  if (given != nullptr && *given != '\0') {
    paths = {given};
  } else {
    for (const char* folder : {"", "/usr/local/cuda/lib64/"})
      for (const std::string& file : files) paths.push_back(folder + file);
  }
  std::string why;
  for (const std::string& path : paths) {
    if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL); library != nullptr) return library;
    const char* error = dlerror();
    if (why.empty()) why = error != nullptr ? error : path;
  }
  return unavailable("no ", name, ": ", why, "; ", variable, " names the file of ", files.front());
}

void forget_float_overrides() {
  for (const char* name :
       {"NVIDIA_TF32_OVERRIDE", "CUBLAS_EMULATE_SINGLE_PRECISION", "CUBLAS_EMULATION_STRATEGY"})
    ::unsetenv(name);
}

}  // namespace tuner
