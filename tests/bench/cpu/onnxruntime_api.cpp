#include "tests/bench/cpu/onnxruntime_api.h"

#include <cstring>
#include <filesystem>

#include "compiler_core/runtime/kernel.h"
#include "tests/bench/cpu/library.h"
#include "tests/models/onnx_model.h"

namespace tuner {
namespace {

constexpr uint32_t kApiVersion = 5;  // the first with all of the above
constexpr int kWarnings = 2, kSequential = 0, kNoOptimizations = 0, kAllOptimizations = 99, kArena = 1,
              kDefaultMemory = 0;

struct ApiBase {
  const void* const* (*table)(uint32_t version);
  const char* (*version)();
};

// That the functions are where they are believed to be, as far as it can be seen from outside.
Status check_table(const OnnxRuntimeApi& api) {
  constexpr int kCode = 6;
  const char* const text = "a status of our own";
  OrtStatus* const status = api.create_status(kCode, text);
  if (status == nullptr || api.error_code(status) != kCode ||
      std::strcmp(api.error_message(status), text) != 0)
    return failed("ONNX Runtime ", api.version, ": its table of functions is not as published");
  api.release_status(status);
  AlignedBuffer buffer(64);
  const int64_t extent = 16;
  OrtValue* value = nullptr;
  RETURN_IF_ERROR(
      api.ok(api.create_tensor(api.memory, buffer.data(), 64, &extent, 1, onnx_type(DType::kFloat32), &value),
             "tensor"));
  void* data = nullptr;
  RETURN_IF_ERROR(api.ok(api.tensor_data(value, &data), "data of a tensor"));
  api.release_value(value);
  if (data != buffer.data())
    return failed("ONNX Runtime ", api.version, ": a tensor is not where it was put");
  return Status::ok();
}

}  // namespace

Status OnnxRuntimeApi::set_up(OrtOptions* made, const SessionOptions& options) const {
  RETURN_IF_ERROR(ok(set_execution_mode(made, kSequential), "execution mode"));
  if (options.all_optimizations)
    RETURN_IF_ERROR(ok(set_optimization_level(made, kAllOptimizations), "optimisation"));
  if (options.no_optimizations)
    RETURN_IF_ERROR(ok(set_optimization_level(made, kNoOptimizations), "optimisation"));
  RETURN_IF_ERROR(ok(set_intra_op_threads(made, threads), "threads"));
  RETURN_IF_ERROR(ok(set_inter_op_threads(made, 1), "threads"));
  if (!options.provider.empty()) RETURN_IF_ERROR(set_provider(made, options));
  return ok(add_config_entry(made, "session.intra_op.allow_spinning", options.spinning ? "1" : "0"),
            "spinning");
}

Status OnnxRuntimeApi::set_provider(OrtOptions* made, const SessionOptions& options) const {
  const OrtEpDevice* const* all = nullptr;
  size_t count = 0;
  RETURN_IF_ERROR(ok(list_devices(env, &all, &count), "devices"));
  std::vector<const OrtEpDevice*> devices;
  for (size_t k = 0; k < count; ++k)
    if (options.provider == provider_of(all[k])) devices.push_back(all[k]);
  if (devices.empty()) return not_found("ONNX Runtime has no provider ", options.provider);
  std::vector<const char*> keys, values;
  for (const auto& [key, value] : options.provider_options) {
    keys.push_back(key.c_str());
    values.push_back(value.c_str());
  }
  return ok(
      append_provider(made, env, devices.data(), devices.size(), keys.data(), values.data(), keys.size()),
      "provider");
}

Status OnnxRuntimeApi::load_plugin(const std::string& path) {
  constexpr uint32_t kPlugins = 22;
  const void* const* const table = tables_(kPlugins);
  if (table == nullptr) return failed("ONNX Runtime ", version, " has no plugins");
#define BENCH_ORT_TAKE(position, name, ...) \
  name = reinterpret_cast<std::add_pointer_t<__VA_ARGS__>>(const_cast<void*>(table[position]));
  BENCH_ORT_PLUGIN_FUNCTIONS(BENCH_ORT_TAKE)
#undef BENCH_ORT_TAKE
  // It takes a relative path to be beside its own library.
  const std::string whole = std::filesystem::absolute(path).string();
  return ok(register_plugin(env, "tuner", whole.c_str()), "plugin");
}

Result<OrtSession*> OnnxRuntimeApi::session(const std::string& model, const SessionOptions& options) const {
  OrtOptions* made = nullptr;
  RETURN_IF_ERROR(ok(create_options(&made), "session options"));
  OrtSession* session = nullptr;
  Status done = set_up(made, options);
  if (done.is_ok()) done = ok(create_session(env, model.data(), model.size(), made, &session), "session");
  release_options(made);
  if (!done) return done;
  return session;
}

Result<std::unique_ptr<OnnxRuntimeApi>> OnnxRuntimeApi::open(int threads) {
  const Result<Library> library = Library::open({"libonnxruntime.so.1"}, "BENCH_LIBONNXRUNTIME");
  if (!library)
    return not_found(library.message(), "; BENCH_LIBONNXRUNTIME=/path/libonnxruntime.so.1 names it");
  const auto base = library->find<const ApiBase* (*)()>("OrtGetApiBase");
  if (base == nullptr) return not_found("the library has no OrtGetApiBase");
  auto api = std::make_unique<OnnxRuntimeApi>();
  api->version = base()->version();
  api->threads = threads;
  api->tables_ = base()->table;
  const void* const* const table = base()->table(kApiVersion);
  if (!api->version.starts_with("1.") || table == nullptr)
    return failed("ONNX Runtime: found version ", api->version, ", expected 1.5 or a later 1.x");
#define BENCH_ORT_TAKE(position, name, ...) \
  api->name = reinterpret_cast<std::add_pointer_t<__VA_ARGS__>>(const_cast<void*>(table[position]));
  BENCH_ORT_FUNCTIONS(BENCH_ORT_TAKE)
#undef BENCH_ORT_TAKE
  RETURN_IF_ERROR(api->ok(api->create_env(kWarnings, "bench", &api->env), "environment"));
  RETURN_IF_ERROR(
      api->ok(api->create_cpu_memory(kArena, kDefaultMemory, &api->memory), "description of memory"));
  RETURN_IF_ERROR(check_table(*api));
  return api;
}

}  // namespace tuner
