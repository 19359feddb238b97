// What ONNX Runtime looks for in the library: CreateEpFactories and ReleaseEpFactory.
#include <exception>

#include "deploy/onnxruntime/provider.h"

namespace tuner::ort {
namespace {

class Factory : public OrtEpFactory {
 public:
  explicit Factory(const Api& api)
      : OrtEpFactory{.version = kApiVersion,
                     .name = [](const OrtEpFactory*) -> const char* { return kProviderName; },
                     .vendor = [](const OrtEpFactory*) -> const char* { return "tuner"; },
                     .supported_devices = devices,
                     .create_ep = create,
                     .release_ep = release,
                     .vendor_id = [](const OrtEpFactory*) -> uint32_t { return 0; },
                     .provider_version = [](const OrtEpFactory*) -> const char* { return TUNER_VERSION; },
                     .validate_compiled_model = nullptr,
                     .create_allocator = nullptr,
                     .release_allocator = nullptr,
                     .create_data_transfer = no_transfer,
                     .is_stream_aware = [](const OrtEpFactory*) { return false; },
                     .others = {}},
        api_(api) {}

 private:
  static OrtStatus* no_transfer(OrtEpFactory*, OrtDataTransferImpl** made) {
    *made = nullptr;  // operands lie in the host's memory
    return nullptr;
  }
  static OrtStatus* devices(OrtEpFactory* self, const OrtHardwareDevice* const* found, size_t count,
                            OrtEpDevice** made, size_t most, size_t* made_count) {
    const Api& api = static_cast<Factory*>(self)->api_;
    *made_count = 0;
    for (size_t k = 0; k < count && *made_count < most; ++k) {
      if (static_cast<DeviceType>(api.device_type(found[k])) != DeviceType::kCpu) continue;
      if (OrtStatus* status = api.create_device(self, found[k], nullptr, nullptr, &made[*made_count]))
        return status;
      ++*made_count;
    }
    return nullptr;
  }
  static OrtStatus* create(OrtEpFactory* self, const OrtHardwareDevice* const*,
                           const OrtKeyValuePairs* const*, size_t, const OrtSessionOptions* session,
                           const OrtLogger* logger, OrtEp** made) {
    *made = nullptr;
    const Api& api = static_cast<Factory*>(self)->api_;
    try {
      const auto options = options_of(api, session);
      if (!options) return api.to_library(options.status());
      *made = new Provider(api, *options, logger);
      return nullptr;
    } catch (const std::exception& error) {
      return api.to_library(failed("making the provider: ", error.what()));
    }
  }
  static void release(OrtEpFactory*, OrtEp* made) { delete static_cast<Provider*>(made); }

  static Result<ProviderOptions> options_of(const Api& api, const OrtSessionOptions* session) {
    OrtKeyValuePairs* entries = nullptr;
    RETURN_IF_ERROR(api.ok(api.session_entries(session, &entries), "read options"));
    const char *const *keys = nullptr, *const *values = nullptr;
    size_t count = 0;
    api.pairs(entries, &keys, &values, &count);
    std::vector<std::pair<std::string, std::string>> all;
    for (size_t k = 0; k < count; ++k) all.emplace_back(keys[k], values[k]);
    api.release_pairs(entries);
    return provider_options(all);
  }

  Api api_;
};

}  // namespace
}  // namespace tuner::ort

extern "C" {

tuner::ort::OrtStatus* CreateEpFactories(const char* /*registered as*/, const tuner::ort::OrtApiBase* base,
                                         const void* /*logger*/, tuner::ort::OrtEpFactory** factories,
                                         size_t most, size_t* count) {
  using tuner::ort::Api;
  *count = 0;
  // Every version of the table has the functions of the first.
  const void* const* const first = base->table(1);
  if (first == nullptr) return nullptr;
  Api api;
  api.create_status = reinterpret_cast<decltype(api.create_status)>(const_cast<void*>(first[0]));
  try {
    const tuner::Result<Api> opened = Api::open(*base);
    if (!opened) return api.to_library(opened.status());
    if (most < 1) return api.to_library(tuner::invalid_argument("there is no room for a provider"));
    factories[0] = new tuner::ort::Factory(*opened);
    *count = 1;
    return nullptr;
  } catch (const std::exception& error) {
    return api.to_library(tuner::failed("making the factory: ", error.what()));
  }
}

tuner::ort::OrtStatus* ReleaseEpFactory(tuner::ort::OrtEpFactory* factory) {
  delete static_cast<tuner::ort::Factory*>(factory);
  return nullptr;
}

}  // extern "C"
