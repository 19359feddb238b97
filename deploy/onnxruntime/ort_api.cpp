#include "deploy/onnxruntime/ort_api.h"

#include "compiler_core/base/printable.h"

namespace tuner::ort {

Result<Api> Api::open(const OrtApiBase& base) {
  const void* const* const table = base.table(kApiVersion);
  if (table == nullptr)
    return invalid_argument("found ONNX Runtime ", base.version(), ", expected 1.", kApiVersion,
                            " or a later 1.x");
  Api api;
#define TUNER_ORT_TAKE(position, name, ...) \
  api.name = reinterpret_cast<std::add_pointer_t<__VA_ARGS__>>(const_cast<void*>(table[position]));
  TUNER_ORT_FUNCTIONS(TUNER_ORT_TAKE)
#undef TUNER_ORT_TAKE
  const void* const* const providers = api.provider_table();
  if (providers == nullptr)
    return invalid_argument("ONNX Runtime ", base.version(), " is built without plugins of providers");
#define TUNER_ORT_TAKE(position, name, ...) \
  api.name = reinterpret_cast<std::add_pointer_t<__VA_ARGS__>>(const_cast<void*>(providers[position]));
  TUNER_ORT_PROVIDER_FUNCTIONS(TUNER_ORT_TAKE)
#undef TUNER_ORT_TAKE
  return api;
}

Status Api::told(OrtStatus* status, const char* what) const {
  std::string message = error_message(status);
  release_status(status);
  return failed("ONNX Runtime: ", what, ": ", printable(message.substr(0, message.find('\n'))));
}

OrtStatus* Api::to_library(const Status& status) const {
  if (status.is_ok()) return nullptr;
  const bool theirs = status.code() == StatusCode::kInvalidArgument;
  return create_status(theirs ? kInvalidArgument : kProviderFailed, ("tuner: " + status.message()).c_str());
}

}  // namespace tuner::ort
