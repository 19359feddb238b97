#include "tests/bench/cpu/onnxruntime.h"

#include <cmath>
#include <cstdio>
#include <cstring>

#include "compiler_core/base/elements.h"
#include "compiler_core/runtime/flush.h"
#include "compiler_core/runtime/kernel.h"
#include "tests/bench/cpu/onnx_graph.h"
#include "tests/bench/cpu/onnxruntime_api.h"
#include "tests/models/onnx_model.h"

namespace tuner {
namespace {

// Each set of operands that has weights has a session of its own; that many start in seconds.
constexpr int kMostSessions = 256;

// A session and its tensors, for each set of operands. Sets without weights share the session of the first.
class OnnxCall {
 public:
  OnnxCall(const OnnxRuntimeApi& api, SingleNodeGraph graph, HostTensor out)
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
    ASSIGN_OR_RETURN(OrtSession* const session, api_.session(graph_.model, {.spinning = spinning}));
    sessions_.push_back(session);
    return Status::ok();
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
  SingleNodeGraph graph_;
  const HostTensor out_;
  std::vector<const char*> names_;  // of the inputs
  std::vector<OrtSession*> sessions_;
  std::vector<Set> sets_;
};

// How a session of it runs.
struct Way {
  const char* name;
  bool spinning = false, rounds_left = false;
};

// What rounding a to 8 bits may cost: numbers from [-1, 1) in steps of 1/127, which err by 0.0023 (root mean
// square), times weights that are 4.6 to 6.5 times their scale, of 0.58; eight deviations.
Tolerance rounded_left_tolerance(const MatmulNBitsWorkload& w) {
  return {8 * 0.0023 * 6.5 * 0.58 * std::sqrt(static_cast<double>(w.k)), 0};
}

Result<Contestant> contestant(const OnnxRuntimeApi& api, const BenchCase& bench_case, int sets,
                              const Way& way) {
  ASSIGN_OR_RETURN(SingleNodeGraph graph, onnx_graph(bench_case, way.rounds_left));
  if (graph.has_weights && sets > kMostSessions)
    return failed("rotated operands need ", sets, " sessions, at most ", kMostSessions, " are made");
  const bool has_weights = graph.has_weights;
  const auto call = std::make_shared<OnnxCall>(api, std::move(graph), bench_case.operand("out"));
  for (int i = 0; i < sets; ++i) RETURN_IF_ERROR(call->add_set(bench_case, way.spinning));
  call->drop_model();
  Contestant made{.name = way.name,
                  .detail = call->operators(),
                  .call = [call](int set) { call->run(set); },
                  .poison = [call] { call->poison(); },
                  .answer = [call] { return call->answer(); }};
  // It may round a tie's neighbour in another precision.
  if (bench_case.has("zero_point")) made.tolerance = Tolerance{1, 0};
  if (way.rounds_left) {
    made.kind = ContestantKind::kReference;
    made.tolerance = rounded_left_tolerance(*bench_case.workload().get_if<MatmulNBitsWorkload>());
  }
  if (!has_weights) made.flush = [call] { call->flush(); };
  return made;
}

}  // namespace

OnnxRuntime::~OnnxRuntime() = default;

const std::string& OnnxRuntime::version() const { return api_->version; }

Result<std::unique_ptr<OnnxRuntime>> OnnxRuntime::open(int threads) {
  ASSIGN_OR_RETURN(std::unique_ptr<OnnxRuntimeApi> api, OnnxRuntimeApi::open(threads));
  auto runtime = std::unique_ptr<OnnxRuntime>(new OnnxRuntime);
  runtime->api_ = std::move(api);
  return runtime;
}

void OnnxRuntime::add(const BenchCase& bench_case, int sets, std::vector<Contestant>& contestants,
                      std::vector<MissingPeer>& missing) const {
  for (const char* operand : {"data", "out"})
    if (const std::string layout = image_layout(bench_case.workload(), operand);
        !layout.empty() && !is_planar(layout))
      return;
  const auto add = [&](const Way& way) {
    Result<Contestant> made = contestant(*api_, bench_case, sets, way);
    if (made.is_ok())
      contestants.push_back(*std::move(made));
    else
      missing.push_back({way.name, made.message()});
  };
  add({.name = "ONNX Runtime"});
  if (api_->threads > 1) add({.name = "ONNX Runtime spinning", .spinning = true});
  if (bench_case.workload().get_if<MatmulNBitsWorkload>() != nullptr)
    add({.name = "ONNX Runtime, a in int8", .rounds_left = true});
}

}  // namespace tuner
