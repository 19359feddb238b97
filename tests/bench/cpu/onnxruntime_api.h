// ONNX Runtime's C interface, found at run time: no header of the library is needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner {

// Objects of the library.
struct OrtEnv;
struct OrtEpDevice;
struct OrtMemory;
struct OrtOptions;
struct OrtRunOptions;
struct OrtSession;
struct OrtStatus;  // null: success
struct OrtValue;

// The C interface is a table of functions that OrtGetApiBase()->GetApi(version) returns: struct OrtApi of
// include/onnxruntime/core/session/onnxruntime_c_api.h in github.com/microsoft/onnxruntime. Positions in it
// never change (the library asserts the last one of each version when it is built: 101, 118, 124, 126, 149
// of versions 1 to 5). Position, name, type.
#define BENCH_ORT_FUNCTIONS(X)                                                                          \
  X(0, create_status, OrtStatus*(int code, const char* message))                                        \
  X(1, error_code, int(const OrtStatus*))                                                               \
  X(2, error_message, const char*(const OrtStatus*))                                                    \
  X(3, create_env, OrtStatus*(int severity, const char* name, OrtEnv**))                                \
  X(8, create_session,                                                                                  \
    OrtStatus*(const OrtEnv*, const void* model, size_t bytes, const OrtOptions*, OrtSession**))        \
  X(9, run,                                                                                             \
    OrtStatus*(OrtSession*, const OrtRunOptions*, const char* const* input_names,                       \
               const OrtValue* const* inputs, size_t input_count, const char* const* output_names,      \
               size_t output_count, OrtValue** outputs))                                                \
  X(10, create_options, OrtStatus*(OrtOptions**))                                                       \
  X(13, set_execution_mode, OrtStatus*(OrtOptions*, int mode))                                          \
  X(23, set_optimization_level, OrtStatus*(OrtOptions*, int level))                                     \
  X(24, set_intra_op_threads, OrtStatus*(OrtOptions*, int threads))                                     \
  X(25, set_inter_op_threads, OrtStatus*(OrtOptions*, int threads))                                     \
  X(49, create_tensor,                                                                                  \
    OrtStatus*(const OrtMemory*, void* data, size_t bytes, const int64_t* shape, size_t rank, int type, \
               OrtValue**))                                                                             \
  X(51, tensor_data, OrtStatus*(OrtValue*, void** data))                                                \
  X(69, create_cpu_memory, OrtStatus*(int allocator, int kind, OrtMemory**))                            \
  X(93, release_status, void(OrtStatus*))                                                               \
  X(95, release_session, void(OrtSession*))                                                             \
  X(96, release_value, void(OrtValue*))                                                                 \
  X(100, release_options, void(OrtOptions*))                                                            \
  X(130, add_config_entry, OrtStatus*(OrtOptions*, const char* key, const char* value))

// What a session with an execution provider of a plugin needs, from version 22 on.
#define BENCH_ORT_PLUGIN_FUNCTIONS(X)                                                                  \
  X(301, register_plugin, OrtStatus*(OrtEnv*, const char* name, const char* path))                     \
  X(303, list_devices, OrtStatus*(const OrtEnv*, const OrtEpDevice* const**, size_t* count))           \
  X(304, append_provider,                                                                              \
    OrtStatus*(OrtOptions*, OrtEnv*, const OrtEpDevice* const*, size_t count, const char* const* keys, \
               const char* const* values, size_t options))                                             \
  X(312, provider_of, const char*(const OrtEpDevice*))

// Lives as long as the process: the library is never unloaded.
class OnnxRuntimeApi {
 public:
#define BENCH_ORT_MEMBER(position, name, ...) std::add_pointer_t<__VA_ARGS__> name = nullptr;
  BENCH_ORT_FUNCTIONS(BENCH_ORT_MEMBER)
  BENCH_ORT_PLUGIN_FUNCTIONS(BENCH_ORT_MEMBER)
#undef BENCH_ORT_MEMBER
  std::string version;
  int threads = 1;
  OrtEnv* env = nullptr;
  OrtMemory* memory = nullptr;

  // By BENCH_LIBONNXRUNTIME or by the loader; `threads`: of each call. NotFound: not here; Failed: it is not
  // what it should be.
  static Result<std::unique_ptr<OnnxRuntimeApi>> open(int threads);
  struct SessionOptions {
    bool all_optimizations = true;  // false: what it does when nothing is said
    bool no_optimizations = false;  // runs the model as it is written
    bool spinning = false;          // idle threads wait for work awake
    // An execution provider of a plugin, by its name, and its options; empty: none.
    std::string provider;
    std::vector<std::pair<std::string, std::string>> provider_options;
  };
  // Loads a plugin. Failed: it is none, or the library is older than 1.22.
  Status load_plugin(const std::string& path);
  // A session of the model's bytes, to be released.
  Result<OrtSession*> session(const std::string& model, const SessionOptions& options) const;
  // Takes the status.
  Status ok(OrtStatus* status, const char* what) const {
    if (status == nullptr) return Status::ok();
    std::string message = error_message(status);
    release_status(status);
    message = message.substr(0, message.find('\n'));
    return failed("ONNX Runtime: ", what, ": ", message);
  }

 private:
  Status set_up(OrtOptions* made, const SessionOptions& options) const;
  Status set_provider(OrtOptions* made, const SessionOptions& options) const;
  const void* const* (*tables_)(uint32_t version) = nullptr;
};

}  // namespace tuner
