// libfakenvrtc.so: the real NVRTC, whose cubins carry their source behind them, so that the CUDA driver for
// tests can run them on the host (source_module.h). Loaded through TUNER_NVRTC; finds the real one by the
// loader's own path, or through TUNER_FAKE_NVRTC_REAL. One source text: files that it includes stay behind.
#include <dlfcn.h>
#include <algorithm>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "tests/measure_server/fake_cuda/source_module.h"

namespace {

using Program = void*;

struct Text {
  std::string name, source, kernel;
  std::vector<std::string> options;
};
std::mutex mutex;
std::map<Program, Text> texts;

void* real_library() {
  static void* const library = [] {
    const char* const given = std::getenv("TUNER_FAKE_NVRTC_REAL");
    for (const char* name : {given != nullptr ? given : "libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"})
      if (void* const found = dlopen(name, RTLD_NOW | RTLD_LOCAL); found != nullptr) return found;
    return static_cast<void*>(nullptr);
  }();
  return library;
}

// Calls the real function of that name; an internal error where there is none.
template <class... Args>
int real(const char* name, Args... args) {
  constexpr int kInternalError = 11;
  auto* const function =
      real_library() == nullptr ? nullptr : reinterpret_cast<int (*)(Args...)>(dlsym(real_library(), name));
  return function == nullptr ? kInternalError : function(args...);
}

std::string behind(const Program& program) {
  const std::lock_guard lock(mutex);
  const Text& text = texts[program];
  std::string all(fake_cuda::kSourceMark);
  const auto add = [&all](const std::string& key, const std::string& bytes) {
    all += key + " " + std::to_string(bytes.size()) + "\n" + bytes;
  };
  add("name", text.name);
  add("source", text.source);
  add("kernel", text.kernel);
  for (const std::string& option : text.options) add("option", option);
  return all + "end 0\n";
}

}  // namespace

extern "C" {

int nvrtcVersion(int* major, int* minor) { return real("nvrtcVersion", major, minor); }
const char* nvrtcGetErrorString(int) { return "by the NVRTC for tests"; }
int nvrtcCreateProgram(Program* program, const char* source, const char* name, int headers,
                       const char* const* header_texts, const char* const* header_names) {
  const int code = real("nvrtcCreateProgram", program, source, name, headers, header_texts, header_names);
  const std::lock_guard lock(mutex);
  if (code == 0) texts[*program] = {.name = name, .source = source, .kernel = {}, .options = {}};
  return code;
}
int nvrtcDestroyProgram(Program* program) {
  const std::lock_guard lock(mutex);
  texts.erase(*program);
  return real("nvrtcDestroyProgram", program);
}
int nvrtcAddNameExpression(Program program, const char* name) {
  const std::lock_guard lock(mutex);
  texts[program].kernel = name;
  return real("nvrtcAddNameExpression", program, name);
}
int nvrtcGetLoweredName(Program program, const char* name, const char** symbol) {
  return real("nvrtcGetLoweredName", program, name, symbol);
}
int nvrtcCompileProgram(Program program, int count, const char* const* options) {
  {
    const std::lock_guard lock(mutex);
    for (int i = 0; i < count; ++i) texts[program].options.emplace_back(options[i]);
  }
  return real("nvrtcCompileProgram", program, count, options);
}
int nvrtcGetProgramLogSize(Program program, size_t* size) {
  return real("nvrtcGetProgramLogSize", program, size);
}
int nvrtcGetProgramLog(Program program, char* log) { return real("nvrtcGetProgramLog", program, log); }
int nvrtcGetPTXSize(Program program, size_t* size) { return real("nvrtcGetPTXSize", program, size); }
int nvrtcGetPTX(Program program, char* text) { return real("nvrtcGetPTX", program, text); }
int nvrtcGetCUBINSize(Program program, size_t* size) {
  const int code = real("nvrtcGetCUBINSize", program, size);
  if (code == 0) *size += behind(program).size();
  return code;
}
int nvrtcGetCUBIN(Program program, char* bytes) {
  size_t size = 0;
  const int code = real("nvrtcGetCUBINSize", program, &size);
  if (code != 0) return code;
  const std::string text = behind(program);
  std::ranges::copy(text, bytes + size);
  return real("nvrtcGetCUBIN", program, bytes);
}

}  // extern "C"
