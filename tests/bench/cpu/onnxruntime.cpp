#include "tests/bench/cpu/onnxruntime.h"

#include <cstdio>
#include <cstring>
#include <type_traits>

#include "compiler_core/base/elements.h"
#include "compiler_core/runtime/flush.h"
#include "compiler_core/runtime/kernel.h"
#include "tests/bench/cpu/library.h"
#include "tests/bench/cpu/onnx_graph.h"
#include "tests/bench/cpu/onnx_model.h"

namespace tuner {

// Objects of the library.
struct OrtEnv;
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

// Lives as long as the process: the library is never unloaded.
class OnnxRuntimeApi {
 public:
#define BENCH_ORT_MEMBER(position, name, ...) std::add_pointer_t<__VA_ARGS__> name = nullptr;
  BENCH_ORT_FUNCTIONS(BENCH_ORT_MEMBER)
#undef BENCH_ORT_MEMBER
  std::string version;
  int threads = 1;
  OrtEnv* env = nullptr;
  OrtMemory* memory = nullptr;

  // Takes the status.
  Status ok(OrtStatus* status, const char* what) const {
    if (status == nullptr) return Status::ok();
    std::string message = error_message(status);
    release_status(status);
    message = message.substr(0, message.find('\n'));
    return failed("ONNX Runtime: ", what, ": ", message);
  }
};

namespace {

constexpr uint32_t kApiVersion = 5;  // the first with all of the above
constexpr int kWarnings = 2, kSequential = 0, kAllOptimizations = 99, kArena = 1, kDefaultMemory = 0;
// Each set of operands that has weights has a session of its own; that many start in seconds.
constexpr int kMostSessions = 256;

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

// A session and its tensors, for each set of operands. Sets without weights share the session of the first.
class OnnxCall {
 public:
  OnnxCall(const OnnxRuntimeApi& api, OnnxGraph graph, HostTensor out)
      : api_(api), graph_(std::move(graph)), out_(std::move(out)) {
    for (const std::string& name : graph_.inputs) names_.push_back(name.c_str());
  }
  ~OnnxCall() {
    for (Set& set : sets_) {
      for (OrtValue* value : set.inputs) api_.release_value(value);
      if (set.out != nullptr) api_.release_value(set.out);
    }
    for (OrtSession* session : sessions_) api_.release_session(session);
  }
  OnnxCall(const OnnxCall&) = delete;
  OnnxCall& operator=(const OnnxCall&) = delete;

  Status add_set(const BenchCase& bench_case, bool spinning) {
    if (sessions_.empty() || graph_.has_weights) RETURN_IF_ERROR(add_session(spinning));
    Set& set = sets_.emplace_back();
    set.session = sessions_.back();
    for (const std::string& name : graph_.inputs) {
      const HostTensor& t = bench_case.operand(name);
      RETURN_IF_ERROR(tensor(t, set, &set.inputs.emplace_back()));
      store_elements(t.values.data(), t.count(), t.dtype, set.memory.back().data());
    }
    return tensor(out_, set, &set.out);
  }

  void run(int index) {
    Set& set = sets_[static_cast<size_t>(index)];
    const char* const out_name = "out";
    const Status status = api_.ok(api_.run(set.session, nullptr, names_.data(), set.inputs.data(),
                                           set.inputs.size(), &out_name, 1, &set.out),
                                  "run");
    CHECK(status.is_ok()) << status.message();
  }
  void poison() {
    const AlignedBuffer& out = sets_.front().memory.back();
    std::memset(out.data(), 0xff, static_cast<size_t>(out.bytes()));
  }
  std::vector<double> answer() const {
    return load_elements(sets_.front().memory.back().data(), out_.count(), out_.dtype);
  }
  const std::string& operators() const { return graph_.operators; }
  // Of a model without weights: those are in sessions, where nobody else reaches them.
  void flush() const {
    for (const AlignedBuffer& operand : sets_.front().memory) flush_lines(operand.data(), operand.bytes());
  }
  // When all sets are made: its weights are large.
  void drop_model() { graph_.model = std::string(); }

 private:
  struct Set {
    OrtSession* session = nullptr;      // of sessions_
    std::vector<AlignedBuffer> memory;  // of the inputs, then of the output
    std::vector<OrtValue*> inputs;
    OrtValue* out = nullptr;
  };

  Status add_session(bool spinning) {
    OrtOptions* options = nullptr;
    RETURN_IF_ERROR(api_.ok(api_.create_options(&options), "session options"));
    OrtSession* session = nullptr;
    const Status made = create_session(options, spinning, &session);
    api_.release_options(options);
    if (made.is_ok()) sessions_.push_back(session);
    return made;
  }
  Status create_session(OrtOptions* options, bool spinning, OrtSession** session) const {
    RETURN_IF_ERROR(api_.ok(api_.set_execution_mode(options, kSequential), "execution mode"));
    RETURN_IF_ERROR(api_.ok(api_.set_optimization_level(options, kAllOptimizations), "optimisation"));
    RETURN_IF_ERROR(api_.ok(api_.set_intra_op_threads(options, api_.threads), "threads"));
    RETURN_IF_ERROR(api_.ok(api_.set_inter_op_threads(options, 1), "threads"));
    RETURN_IF_ERROR(api_.ok(
        api_.add_config_entry(options, "session.intra_op.allow_spinning", spinning ? "1" : "0"), "spinning"));
    return api_.ok(api_.create_session(api_.env, graph_.model.data(), graph_.model.size(), options, session),
                   "session");
  }
  // A tensor of `like`'s shape and type in memory of its own.
  Status tensor(const HostTensor& like, Set& set, OrtValue** value) const {
    const int64_t bytes = like.count() * dtype_bytes(like.dtype);
    set.memory.emplace_back(bytes);
    return api_.ok(api_.create_tensor(api_.memory, set.memory.back().data(), static_cast<size_t>(bytes),
                                      like.shape.data(), like.shape.size(), onnx_type(like.dtype), value),
                   "tensor");
  }

  const OnnxRuntimeApi& api_;
  OnnxGraph graph_;
  const HostTensor out_;
  std::vector<const char*> names_;  // of the inputs
  std::vector<OrtSession*> sessions_;
  std::vector<Set> sets_;
};

Result<Contestant> contestant(const OnnxRuntimeApi& api, const BenchCase& bench_case, int sets, bool spinning,
                              const std::string& name) {
  ASSIGN_OR_RETURN(OnnxGraph graph, onnx_graph(bench_case));
  if (graph.has_weights && sets > kMostSessions)
    return failed("rotated operands need ", sets, " sessions, at most ", kMostSessions, " are made");
  const bool has_weights = graph.has_weights;
  const auto call = std::make_shared<OnnxCall>(api, std::move(graph), bench_case.operand("out"));
  for (int i = 0; i < sets; ++i) RETURN_IF_ERROR(call->add_set(bench_case, spinning));
  call->drop_model();
  Contestant made{.name = name,
                  .detail = call->operators(),
                  .call = [call](int set) { call->run(set); },
                  .poison = [call] { call->poison(); },
                  .answer = [call] { return call->answer(); }};
  // It may round a tie's neighbour in another precision.
  if (bench_case.has("zero_point")) made.tolerance = Tolerance{1, 0};
  if (!has_weights) made.flush = [call] { call->flush(); };
  return made;
}

}  // namespace

OnnxRuntime::~OnnxRuntime() = default;

const std::string& OnnxRuntime::version() const { return api_->version; }

Result<std::unique_ptr<OnnxRuntime>> OnnxRuntime::open(int threads) {
  const Result<Library> library = Library::open({"libonnxruntime.so.1"}, "BENCH_LIBONNXRUNTIME");
  if (!library)
    return not_found(library.message(), "; BENCH_LIBONNXRUNTIME=/path/libonnxruntime.so.1 names it");
  const auto base = library->find<const ApiBase* (*)()>("OrtGetApiBase");
  if (base == nullptr) return not_found("the library has no OrtGetApiBase");
  auto api = std::make_unique<OnnxRuntimeApi>();
  api->version = base()->version();
  api->threads = threads;
  const void* const* const table = base()->table(kApiVersion);
  if (!api->version.starts_with("1.") || table == nullptr)
    return failed("ONNX Runtime: found version ", api->version, ", expected 1.5 or a later 1.x");
#define BENCH_ORT_TAKE(position, name, ...) \
  api->name = reinterpret_cast<std::add_pointer_t<__VA_ARGS__>>(const_cast<void*>(table[position]));
  BENCH_ORT_FUNCTIONS(BENCH_ORT_TAKE)
#undef BENCH_ORT_TAKE
  RETURN_IF_ERROR(api->ok(api->create_env(kWarnings, "bench_cpu", &api->env), "environment"));
  RETURN_IF_ERROR(
      api->ok(api->create_cpu_memory(kArena, kDefaultMemory, &api->memory), "description of memory"));
  RETURN_IF_ERROR(check_table(*api));
  auto runtime = std::unique_ptr<OnnxRuntime>(new OnnxRuntime);
  runtime->api_ = std::move(api);
  return runtime;
}

void OnnxRuntime::add(const BenchCase& bench_case, int sets, std::vector<Contestant>& contestants,
                      std::vector<MissingPeer>& missing) const {
  for (const char* operand : {"data", "out"})
    if (channel_block(image_layout(bench_case.workload(), operand)) > 1) return;
  const auto add = [&](const char* name, bool spinning) {
    Result<Contestant> made = contestant(*api_, bench_case, sets, spinning, name);
    if (made.is_ok())
      contestants.push_back(*std::move(made));
    else
      missing.push_back({name, made.message()});
  };
  add("ONNX Runtime", false);
  if (api_->threads > 1) add("ONNX Runtime spinning", true);
}

}  // namespace tuner
