#include "tests/bench/gpu/cudnn_api.h"

#include <dlfcn.h>

#include <array>
#include <string>

#include "tests/bench/gpu/library.h"

namespace tuner::cudnn {
namespace {

Result<Api> load() {
  forget_float_overrides();
  ASSIGN_OR_RETURN(void* library,
                   load_library("cuDNN", "TUNER_LIBCUDNN", {"libcudnn.so.9", "libcudnn.so.8"}));
  Api api;
  const char* missing = nullptr;
#define TUNER_CUDNN_RESOLVE(member, result, symbol, parameters)                \
  api.member = reinterpret_cast<decltype(api.member)>(dlsym(library, symbol)); \
  if (api.member == nullptr) missing = symbol;
  TUNER_CUDNN_SYMBOLS(TUNER_CUDNN_RESOLVE)
#undef TUNER_CUDNN_RESOLVE
  if (missing != nullptr) return unavailable("no cuDNN: the library has no ", missing);
  api.last_error = reinterpret_cast<decltype(api.last_error)>(dlsym(library, "cudnnGetLastErrorString"));
  return api;
}

}  // namespace

const Result<Api>& loaded() {
  static const Result<Api> once = load();
  return once;
}

Status checked(int code, const char* call) {
  if (code == kSuccess) return Status::ok();
  std::array<char, 512> text{};
  const Result<Api>& api = loaded();
  if (api.is_ok() && api->last_error != nullptr) api->last_error(text.data(), text.size());
  // One line, whatever it says.
  std::string why(text.data());
  for (char& c : why)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  return failed("cuDNN: ", call, " answered status ", code, why.empty() ? "" : " (", why,
                why.empty() ? "" : ")");
}

}  // namespace tuner::cudnn
