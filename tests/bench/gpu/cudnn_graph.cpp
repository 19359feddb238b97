#include "tests/bench/gpu/cudnn_graph.h"

#include <algorithm>
#include <array>

namespace tuner {

using namespace cudnn;  // NOLINT: its words, throughout

namespace {

// Of operands; the numbers between the steps follow.
constexpr int64_t kDataId = 1, kWeightId = 2, kBiasId = 3, kResidualId = 4, kOutId = 5, kFirstVirtualId = 10;
constexpr int64_t kAlignmentBytes = 16;
constexpr int kAdd = 0, kRelu = 100;                      // cudnnPointwiseMode_t
constexpr int kModeB = 1, kModeFallback = 2, kModeA = 3;  // cudnnBackendHeurMode_t

int code_of(DType t) { return t == DType::kBFloat16 ? kBFloat16 : t == DType::kFloat16 ? kHalf : kFloat; }

// Of a shape named as [N, C, H, W].
std::vector<int64_t> strides_of(const std::vector<int64_t>& shape, bool channels_last) {
  const int64_t c = shape[1], h = shape[2], w = shape[3];
  return channels_last ? std::vector<int64_t>{c * h * w, 1, w * c, c}
                       : std::vector<int64_t>{c * h * w, h * w, w, 1};
}

}  // namespace

Result<std::string> cudnn_device_properties(void* handle) {
  ASSIGN_OR_RETURN(CudnnDescriptor device, CudnnDescriptor::make(Object::kDevice));
  RETURN_IF_ERROR(device.set(Attribute::kDeviceHandle, Type::kHandle, handle));
  RETURN_IF_ERROR(device.finalize());
  ASSIGN_OR_RETURN(const int64_t bytes, device.count(Attribute::kDeviceJson, Type::kChar));
  ASSIGN_OR_RETURN(const std::vector<char> text,
                   device.get<char>(Attribute::kDeviceJson, Type::kChar, bytes));
  const std::string json(text.begin(), text.end());
  return json.substr(0, json.find('\0'));
}

Result<CudnnDescriptor> cudnn_described_device(const std::string& json) {
  ASSIGN_OR_RETURN(CudnnDescriptor device, CudnnDescriptor::make(Object::kDevice));
  RETURN_IF_ERROR(
      device.set(Attribute::kDeviceJson, Type::kChar, static_cast<int64_t>(json.size()), json.data()));
  RETURN_IF_ERROR(device.finalize());
  return device;
}

// --- the graph ---

Result<std::unique_ptr<CudnnGraph>> CudnnGraph::describe(const CudnnDevice& device, const Conv2dWorkload& w,
                                                         const CudnnAsked& asked) {
  std::unique_ptr<CudnnGraph> made(new CudnnGraph(device));
  RETURN_IF_ERROR(made->describe(w, asked));
  return made;
}

Result<CudnnDescriptor*> CudnnGraph::keep(Result<CudnnDescriptor> made) {
  if (!made.is_ok()) return made.status();
  kept_.push_back(*std::move(made));
  return &kept_.back();
}

Result<CudnnDescriptor*> CudnnGraph::tensor(int64_t id, const std::vector<int64_t>& shape, DType type,
                                            bool is_virtual) {
  ASSIGN_OR_RETURN(CudnnDescriptor * made, keep(CudnnDescriptor::make(Object::kTensor)));
  RETURN_IF_ERROR(made->set(Attribute::kTensorId, Type::kInt64, id));
  RETURN_IF_ERROR(made->set(Attribute::kTensorType, Type::kDataType, code_of(type)));
  RETURN_IF_ERROR(made->set(Attribute::kTensorDimensions, shape));
  RETURN_IF_ERROR(made->set(Attribute::kTensorStrides, strides_of(shape, channels_last_)));
  RETURN_IF_ERROR(made->set(Attribute::kTensorAlignment, Type::kInt64, kAlignmentBytes));
  if (is_virtual) RETURN_IF_ERROR(made->set(Attribute::kTensorIsVirtual, Type::kBoolean, true));
  RETURN_IF_ERROR(made->finalize());
  return made;
}

Status CudnnGraph::add_convolution(const Conv2dWorkload& w, const CudnnDescriptor& data,
                                   const CudnnDescriptor& weight, const CudnnDescriptor& out) {
  ASSIGN_OR_RETURN(CudnnDescriptor * convolution, keep(CudnnDescriptor::make(Object::kConvolution)));
  RETURN_IF_ERROR(convolution->set(Attribute::kSpatialDimensions, Type::kInt64, int64_t{2}));
  RETURN_IF_ERROR(convolution->set(Attribute::kConvolutionType, Type::kDataType, kFloat));
  RETURN_IF_ERROR(convolution->set(Attribute::kConvolutionMode, Type::kConvolutionMode, kCrossCorrelation));
  RETURN_IF_ERROR(convolution->set(Attribute::kPrePaddings, {w.padding[0], w.padding[1]}));
  RETURN_IF_ERROR(convolution->set(Attribute::kPostPaddings, {w.padding[2], w.padding[3]}));
  RETURN_IF_ERROR(convolution->set(Attribute::kDilations, {w.dilation[0], w.dilation[1]}));
  RETURN_IF_ERROR(convolution->set(Attribute::kStrides, {w.stride[0], w.stride[1]}));
  RETURN_IF_ERROR(convolution->finalize());
  ASSIGN_OR_RETURN(CudnnDescriptor * operation, keep(CudnnDescriptor::make(Object::kForward)));
  RETURN_IF_ERROR(operation->set(Attribute::kForwardData, data));
  RETURN_IF_ERROR(operation->set(Attribute::kForwardWeight, weight));
  RETURN_IF_ERROR(operation->set(Attribute::kForwardOut, out));
  RETURN_IF_ERROR(operation->set(Attribute::kForwardConvolution, *convolution));
  RETURN_IF_ERROR(operation->set(Attribute::kForwardAlpha, Type::kFloat, 1.0F));
  RETURN_IF_ERROR(operation->set(Attribute::kForwardBeta, Type::kFloat, 0.0F));
  RETURN_IF_ERROR(operation->finalize());
  operations_.push_back(operation->get());
  return Status::ok();
}

Status CudnnGraph::add_pointwise(int mode, const CudnnDescriptor& x, const CudnnDescriptor* b,
                                 const CudnnDescriptor& y) {
  ASSIGN_OR_RETURN(CudnnDescriptor * pointwise, keep(CudnnDescriptor::make(Object::kPointwise)));
  RETURN_IF_ERROR(pointwise->set(Attribute::kPointwiseMode, Type::kPointwiseMode, mode));
  RETURN_IF_ERROR(pointwise->set(Attribute::kPointwiseType, Type::kDataType, kFloat));
  RETURN_IF_ERROR(pointwise->finalize());
  ASSIGN_OR_RETURN(CudnnDescriptor * operation, keep(CudnnDescriptor::make(Object::kPointwiseOperation)));
  RETURN_IF_ERROR(operation->set(Attribute::kPointwiseOf, *pointwise));
  RETURN_IF_ERROR(operation->set(Attribute::kPointwiseX, x));
  if (b != nullptr) RETURN_IF_ERROR(operation->set(Attribute::kPointwiseB, *b));
  RETURN_IF_ERROR(operation->set(Attribute::kPointwiseY, y));
  RETURN_IF_ERROR(operation->finalize());
  operations_.push_back(operation->get());
  return Status::ok();
}

Status CudnnGraph::describe(const Conv2dWorkload& w, const CudnnAsked& asked) {
  kept_.reserve(32);  // others point at them
  channels_last_ = asked.channels_last;
  may_use_tensor_cores_ = w.dtype != DType::kFloat32 || w.allow_tf32;
  has_bias_ = asked.epilogue && w.bias;
  has_residual_ = asked.epilogue && w.residual;
  const bool relu = asked.epilogue && w.activation == Activation::kRelu;
  const std::vector<int64_t> image = {w.batch, w.out_channels, w.out_height(), w.out_width()};
  ASSIGN_OR_RETURN(const CudnnDescriptor* data,
                   tensor(kDataId, {w.batch, w.in_channels, w.in_height, w.in_width}, w.dtype, false));
  ASSIGN_OR_RETURN(
      const CudnnDescriptor* weight,
      tensor(kWeightId, {w.out_channels, w.in_channels / w.groups, w.kernel_height, w.kernel_width}, w.dtype,
             false));
  // The numbers after each step; after the last one they are out.
  int64_t steps_left = int64_t{has_bias_} + int64_t{has_residual_} + int64_t{relu};
  const auto result = [&] {
    return steps_left == 0 ? tensor(kOutId, image, asked.out, false)
                           : tensor(kFirstVirtualId + steps_left, image, DType::kFloat32, true);
  };
  ASSIGN_OR_RETURN(const CudnnDescriptor* before, result());
  RETURN_IF_ERROR(add_convolution(w, *data, *weight, *before));
  const auto step = [&](int mode, const CudnnDescriptor* other) -> Status {
    --steps_left;
    ASSIGN_OR_RETURN(const CudnnDescriptor* after, result());
    RETURN_IF_ERROR(add_pointwise(mode, *before, other, *after));
    before = after;
    return Status::ok();
  };
  if (has_bias_) {
    ASSIGN_OR_RETURN(const CudnnDescriptor* bias,
                     tensor(kBiasId, {1, w.out_channels, 1, 1}, asked.bias, false));
    RETURN_IF_ERROR(step(kAdd, bias));
  }
  if (has_residual_) {
    ASSIGN_OR_RETURN(const CudnnDescriptor* residual, tensor(kResidualId, image, w.out_dtype(), false));
    RETURN_IF_ERROR(step(kAdd, residual));
  }
  if (relu) RETURN_IF_ERROR(step(kRelu, nullptr));
  ASSIGN_OR_RETURN(graph_, CudnnDescriptor::make(Object::kGraph));
  if (device_.handle != nullptr)
    RETURN_IF_ERROR(graph_.set(Attribute::kGraphHandle, Type::kHandle, device_.handle));
  RETURN_IF_ERROR(graph_.set(Attribute::kGraphOperations, Type::kObject,
                             static_cast<int64_t>(operations_.size()), operations_.data()));
  return graph_.finalize();
}

// --- its plans ---

// What a heuristic has nothing for is no error: others follow.
void CudnnGraph::ask_heuristic(int mode, const std::string& name, int64_t& count) {
  const auto ask = [&]() -> Result<std::vector<CudnnDescriptor>> {
    ASSIGN_OR_RETURN(CudnnDescriptor heuristic, CudnnDescriptor::make(Object::kHeuristic));
    RETURN_IF_ERROR(heuristic.set(Attribute::kHeuristicGraph, graph_));
    RETURN_IF_ERROR(heuristic.set(Attribute::kHeuristicMode, Type::kHeuristicMode, mode));
    if (device_.properties != nullptr)
      RETURN_IF_ERROR(heuristic.set(Attribute::kHeuristicDevice, *device_.properties));
    RETURN_IF_ERROR(heuristic.finalize());
    ASSIGN_OR_RETURN(const int64_t most, heuristic.count(Attribute::kHeuristicResults, Type::kObject));
    return heuristic.get_objects(Attribute::kHeuristicResults, Object::kEngineConfig, most);
  };
  Result<std::vector<CudnnDescriptor>> found = ask();
  if (!found.is_ok()) return;
  count = static_cast<int64_t>(found->size());
  for (int64_t i = count - 1; i >= 0; --i)
    queue_.push_back(
        {.descriptor = std::move((*found)[static_cast<size_t>(i)]), .origin = str(name, " #", i + 1)});
}

std::optional<CudnnGraph::Config> CudnnGraph::next_config() {
  while (queue_.empty() && stage_ < 3) {
    if (stage_ == 0) ask_heuristic(kModeA, "heuristic A", offered_.mode_a);
    if (stage_ == 1) ask_heuristic(kModeB, "heuristic B", offered_.mode_b);
    if (stage_ == 2) ask_heuristic(kModeFallback, "fallback", offered_.fallback);
    ++stage_;
  }
  if (!queue_.empty()) {
    Config config = std::move(queue_.back());
    queue_.pop_back();
    return config;
  }
  // Each engine in turn; most do not serve this graph or this device.
  const Result<int64_t> engines = graph_.get_number(Attribute::kGraphEngines);
  while (engines.is_ok() && engine_ < *engines) {
    const int64_t index = engine_++;
    const auto by_defaults = [&]() -> Result<CudnnDescriptor> {
      ASSIGN_OR_RETURN(CudnnDescriptor * engine, keep(CudnnDescriptor::make(Object::kEngine)));
      RETURN_IF_ERROR(engine->set(Attribute::kEngineGraph, graph_));
      RETURN_IF_ERROR(engine->set(Attribute::kEngineIndex, Type::kInt64, index));
      if (device_.properties != nullptr)
        RETURN_IF_ERROR(engine->set(Attribute::kEngineDevice, *device_.properties));
      RETURN_IF_ERROR(engine->finalize());
      ASSIGN_OR_RETURN(CudnnDescriptor config, CudnnDescriptor::make(Object::kEngineConfig));
      RETURN_IF_ERROR(config.set(Attribute::kConfigEngine, *engine));
      RETURN_IF_ERROR(config.finalize());
      return config;
    };
    Result<CudnnDescriptor> config = by_defaults();
    if (!config.is_ok()) continue;
    ++offered_.engines;
    return Config{.descriptor = *std::move(config), .origin = "engine's defaults"};
  }
  return std::nullopt;
}

Result<std::unique_ptr<CudnnPlan>> CudnnGraph::plan_of(Config config) {
  auto plan = std::make_unique<CudnnPlan>();
  plan->handle_ = device_.handle;
  plan->has_bias_ = has_bias_;
  plan->has_residual_ = has_residual_;
  plan->origin = std::move(config.origin);
  ASSIGN_OR_RETURN(const std::vector<CudnnDescriptor> engines,
                   config.descriptor.get_objects(Attribute::kConfigEngine, Object::kEngine, 1));
  if (engines.empty()) return failed("cuDNN: a config without an engine");
  ASSIGN_OR_RETURN(plan->engine, engines[0].get_number(Attribute::kEngineIndex));
  ASSIGN_OR_RETURN(const std::vector<int> notes,
                   engines[0].get<int>(Attribute::kEngineNotes, Type::kNumericalNote, kMostNotes));
  const auto has = [&notes](int note) { return std::ranges::find(notes, note) != notes.end(); };
  plan->on_tensor_cores = has(kNoteTensorCores);
  plan->by_fft = has(kNoteFft);
  plan->by_winograd = has(kNoteWinograd);
  const bool computes_otherwise = !may_use_tensor_cores_ && (has(kNoteTensorCores) || has(kNoteDownConverts));
  ASSIGN_OR_RETURN(const std::vector<CudnnDescriptor> choices,
                   config.descriptor.get_objects(Attribute::kConfigKnobs, Object::kKnobChoice, kMostKnobs));
  for (const CudnnDescriptor& choice : choices) {
    ASSIGN_OR_RETURN(const std::vector<int> knob, choice.get<int>(Attribute::kKnobType, Type::kKnob, 1));
    ASSIGN_OR_RETURN(const int64_t value, choice.get_number(Attribute::kKnobValue));
    if (!knob.empty()) plan->knobs.emplace_back(knob[0], value);
  }
  if (!given_.emplace(plan->engine, plan->knobs).second) return std::unique_ptr<CudnnPlan>();
  if (computes_otherwise) {
    ++offered_.left_out;
    return std::unique_ptr<CudnnPlan>();
  }
  ASSIGN_OR_RETURN(plan->plan_, CudnnDescriptor::make(Object::kPlan));
  if (device_.handle != nullptr)
    RETURN_IF_ERROR(plan->plan_.set(Attribute::kPlanHandle, Type::kHandle, device_.handle));
  if (device_.properties != nullptr)
    RETURN_IF_ERROR(plan->plan_.set(Attribute::kPlanDevice, *device_.properties));
  RETURN_IF_ERROR(plan->plan_.set(Attribute::kPlanConfig, config.descriptor));
  RETURN_IF_ERROR(plan->plan_.finalize().with_context(str("engine ", plan->engine, ": ")));
  ASSIGN_OR_RETURN(const int64_t bytes, plan->plan_.get_number(Attribute::kPlanWorkspaceBytes));
  if (bytes > kMostWorkspaceBytes)
    return failed("engine ", plan->engine, " wants a workspace of ", bytes, " bytes");
  plan->workspace_bytes = static_cast<size_t>(std::max<int64_t>(bytes, 0));
  return plan;
}

std::optional<Result<std::unique_ptr<CudnnPlan>>> CudnnGraph::next(const std::function<bool()>& over) {
  while (!over()) {
    std::optional<Config> config = next_config();
    if (!config) return std::nullopt;
    Result<std::unique_ptr<CudnnPlan>> plan = plan_of(*std::move(config));
    if (!plan.is_ok() || *plan != nullptr) return plan;
  }
  return std::nullopt;
}

// --- running one ---

Result<void*> CudnnPlan::pack_of(const Operands& o) {
  for (const Pack& pack : packs_)
    if (pack.operands.data == o.data && pack.operands.out == o.out && pack.operands.workspace == o.workspace)
      return pack.descriptor.get();
  std::vector<int64_t> ids = {kDataId, kWeightId, kOutId};
  std::vector<cuda::DevicePtr> pointers = {o.data, o.weight, o.out};
  if (has_bias_) ids.push_back(kBiasId), pointers.push_back(o.bias);
  if (has_residual_) ids.push_back(kResidualId), pointers.push_back(o.residual);
  Pack pack{.operands = o};
  ASSIGN_OR_RETURN(pack.descriptor, CudnnDescriptor::make(Object::kOperands));
  RETURN_IF_ERROR(pack.descriptor.set(Attribute::kOperandIds, ids));
  RETURN_IF_ERROR(pack.descriptor.set(Attribute::kOperandPointers, Type::kPointer,
                                      static_cast<int64_t>(pointers.size()), pointers.data()));
  RETURN_IF_ERROR(pack.descriptor.set(Attribute::kOperandWorkspace, Type::kPointer, o.workspace));
  RETURN_IF_ERROR(pack.descriptor.finalize());
  packs_.push_back(std::move(pack));
  return packs_.back().descriptor.get();
}

Status CudnnPlan::run(const Operands& operands) {
  ASSIGN_OR_RETURN(void* pack, pack_of(operands));
  return checked(loaded()->execute(handle_, plan_.get(), pack), "cudnnBackendExecute");
}

std::string cudnn_knob_name(int knob) {
  static constexpr std::array<const char*, kMostKnobs> kNames = {
      "split k",       "swizzle",    "tile",        "use tex",     "edge",        "k block",     "ldga",
      "ldgb",          "chunk k",    "split h",     "wino tile",   "multiply",    "split k buf", "tile k",
      "stages",        "reduction",  "cta split k", "split k slc", "idx mode",    "sliced",      "split rs",
      "single buffer", "ldgc",       "specfilt",    "kernel cfg",  "workspace",   "tile cga",    "cluster m",
      "cluster n",     "block size", "occupancy",   "array size",  "num c",       "split cols",  "tile rows",
      "tile cols",     "load size",  "cta count",   "stream k",    "split p slc", "tile m",      "tile n",
      "warp spec",     "swap ab"};
  return knob >= 0 && knob < kMostKnobs ? kNames[static_cast<size_t>(knob)] : str("knob ", knob);
}

}  // namespace tuner
