#include "tests/bench/gpu/device_case.h"

#include <algorithm>
#include <cmath>

#include "compiler_core/base/elements.h"

namespace tuner {

namespace {

int64_t count(const std::vector<int64_t>& shape) {
  int64_t elements = 1;
  for (const int64_t d : shape) elements *= d;
  return elements;
}

}  // namespace

Status driver_status(const cuda::CallStatus& status) {
  if (status.code() >= cuda::kCaptureUnsupported && status.code() <= cuda::kCaptureWrongThread)
    return failed(status.message());
  switch (status.code()) {
    case cuda::kOutOfMemory:
    case cuda::kInvalidValue:
    case cuda::kLaunchOutOfResources:
    case cuda::kNotSupported:
      return failed(status.message());
    default:
      return status.status();
  }
}

Result<std::unique_ptr<DeviceCase>> DeviceCase::open(DeviceBench& bench, const PackFile& pack, size_t task,
                                                     size_t candidate, Caches caches) {
  const PackTask& t = pack.pack().tasks[task];
  std::unique_ptr<DeviceCase> made(new DeviceCase(bench));
  ASSIGN_OR_RETURN(made->workload_, workload_from_key(t.workload_key));
  made->spec_ = t.check;
  RETURN_IF_ERROR(made->load(pack, task, candidate));
  const Manifest& manifest = made->artifact_.manifest;
  const int64_t limit_bytes = pack.pack().limits_of(t).memory_limit_bytes;
  const int64_t bytes = DeviceOperands::bytes_of_set(manifest);
  if (bytes < 0 || bytes > limit_bytes)
    return failed("operands and workspaces take ", bytes, " bytes, the pack's limit is ", limit_bytes);
  const int sets = caches == Caches::kRotate
                       ? DeviceOperands::sets_for_rotation(manifest, bench.device().l2_bytes, limit_bytes)
                       : 1;
  RETURN_IF_ERROR(driver_status(DeviceOperands::create(manifest, sets, bench.stream(), made->operands_)));
  RETURN_IF_ERROR(made->upload_inputs(t));
  RETURN_IF_ERROR(driver_status(made->kernel_.bind(made->operands_)));
  for (int set = 0; set < sets; ++set)
    RETURN_IF_ERROR(driver_status(made->kernel_.pack(set, bench.stream())));
  RETURN_IF_ERROR(driver_status(bench.stream().synchronize()));
  return made;
}

Status DeviceCase::load(const PackFile& pack, size_t task, size_t candidate) {
  ASSIGN_OR_RETURN(artifact_, pack.artifact(task, candidate));
  if (artifact_.manifest.kind != binary_kind::kCubin)
    return failed(
        "a kernel for this CPU (tuner pack --emulate makes them): there is nothing to run on a GPU");
  RETURN_IF_ERROR(read_references(pack, task));
  // A cubin for another architecture is refused here, and does no harm to the context.
  const cuda::CallStatus loaded = DeviceKernel::load(artifact_, kernel_);
  if (!loaded && !loaded.is_of_device()) return failed("cannot be loaded: ", loaded.message());
  return driver_status(loaded);
}

Status DeviceCase::read_references(const PackFile& pack, size_t task) {
  const PackTask& t = pack.pack().tasks[task];
  const std::vector<ArgInfo>& args = artifact_.manifest.args;
  references_.resize(args.size());
  reference_bytes_.reserve(t.references.size());
  size_t outputs = 0;
  for (size_t i = 0; i < t.references.size(); ++i) {
    ASSIGN_OR_RETURN(std::string bytes, pack.reference(task, i));
    reference_bytes_.push_back(std::move(bytes));
    ASSIGN_OR_RETURN(ReferenceView view, parse_reference(reference_bytes_.back()));
    for (size_t a = 0; a < args.size(); ++a) {
      if (args[a].name != t.references[i].arg || args[a].role != BufferRole::kOutput) continue;
      // The runner's rule: a schedule may see a tensor as a matrix, whose elements lie in the same order.
      const int64_t elements = count(view.shape);
      if (elements != count(args[a].shape) || args[a].bytes != elements * dtype_bytes(args[a].dtype))
        return failed("output ", args[a].name, " has ", args[a].bytes, " bytes of ",
                      dtype_name(args[a].dtype), " in the manifest, the reference ", elements, " elements");
      references_[a] = std::move(view);
      ++outputs;
      break;
    }
  }
  const auto wanted =
      std::count_if(args.begin(), args.end(), [](const ArgInfo& a) { return a.role == BufferRole::kOutput; });
  if (outputs != static_cast<size_t>(wanted)) return failed("the pack has no reference for every output");
  return Status::ok();
}

Status DeviceCase::upload_inputs(const PackTask& task) {
  for (const auto& [operand, info] : DeviceOperands::inputs_of(artifact_.manifest)) {
    const auto input = std::ranges::find(task.inputs, info.name, &PackTask::Input::arg);
    if (input == task.inputs.end() || input->dtype != info.dtype ||
        input->count * dtype_bytes(input->dtype) != info.bytes)
      return failed("the pack has no input for ", info.role, " ", info.name, ", ", info.bytes, " bytes of ",
                    info.dtype);
    RETURN_IF_ERROR(driver_status(operands_.upload(operand, task.input_bytes(*input), bench_.stream())));
  }
  return driver_status(bench_.stream().synchronize());
}

int DeviceCase::index_of(std::string_view arg) const {
  for (const auto& [operand, info] : DeviceOperands::inputs_of(artifact_.manifest))
    if (info.name == arg) return operand;
  const std::vector<ArgInfo>& args = artifact_.manifest.args;
  const auto found = std::ranges::find(args, arg, &ArgInfo::name);
  CHECK(found != args.end()) << "no argument " << arg;
  return static_cast<int>(found - args.begin());
}

Result<double> DeviceCase::check(const std::function<Status(int set)>& call, const PeerAnswer& answer) {
  RETURN_IF_ERROR(driver_status(operands_.poison(bench_.stream())));
  RETURN_IF_ERROR(driver_status(bench_.stream().synchronize()));
  RETURN_IF_ERROR(call(0));
  RETURN_IF_ERROR(driver_status(bench_.stream().synchronize()));
  std::string damaged;
  RETURN_IF_ERROR(driver_status(operands_.check_guards(damaged)));
  if (!damaged.empty()) return failed("wrote outside ", damaged);
  double max_error = 0;
  std::string bytes;
  const std::vector<ArgInfo>& args = artifact_.manifest.args;
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].role != BufferRole::kOutput) continue;
    RETURN_IF_ERROR(driver_status(operands_.download(static_cast<int>(i), bytes)));
    CheckResult result;
    if (answer.is_whole()) {
      result = check_output(references_[i], bytes.data(), args[i].dtype, spec_, args[i].name);
    } else {
      ASSIGN_OR_RETURN(result, check_finished(i, bytes, answer));
    }
    if (!result.ok) return failed("wrong answer: ", result.message);
    max_error = std::max(max_error, result.max_error);
  }
  return max_error;
}

Result<std::string> DeviceCase::output_sha256() const {
  std::string all, bytes;
  const std::vector<ArgInfo>& args = artifact_.manifest.args;
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].role != BufferRole::kOutput) continue;
    RETURN_IF_ERROR(driver_status(operands_.download(static_cast<int>(i), bytes)));
    all += bytes;
  }
  return sha256_hex(all);
}

namespace {

// The most that rounding to the type is off, as a share of the number. 0: the tolerance of sums holds.
double rounding_of(DType t) { return t == DType::kBFloat16 ? 0x1p-8 : t == DType::kFloat16 ? 0x1p-11 : 0; }

// Images of a convolution: the elements of NHWC in the order of NCHW.
std::vector<double> channels_first(const std::vector<double>& from, const Conv2dWorkload& w) {
  std::vector<double> to(from.size());
  const int64_t pixels = w.out_height() * w.out_width();
  for (int64_t n = 0; n < w.batch; ++n)
    for (int64_t p = 0; p < pixels; ++p)
      for (int64_t c = 0; c < w.out_channels; ++c)
        to[static_cast<size_t>((n * w.out_channels + c) * pixels + p)] =
            from[static_cast<size_t>((n * pixels + p) * w.out_channels + c)];
  return to;
}

}  // namespace

Result<CheckResult> DeviceCase::check_finished(size_t arg, const std::string& bytes,
                                               const PeerAnswer& answer) const {
  const ArgInfo& info = artifact_.manifest.args[arg];
  const DType written = answer.written.value_or(info.dtype);
  CHECK(dtype_bytes(written) <= dtype_bytes(info.dtype)) << "out has no room for " << written;
  std::vector<double> values = load_elements(bytes.data(), info.bytes / dtype_bytes(info.dtype), written);
  CheckSpec spec = spec_;
  for (const double error : answer.bias_errors)
    spec.absolute = std::max(spec.absolute, spec_.absolute + std::fabs(error));
  double largest = 0;
  for (const double x : values) largest = std::max(largest, std::fabs(x));
  // What was rounded before more is done here. An image that lies otherwise is the same numbers.
  const bool is_changed_here =
      answer.bare || answer.written || !answer.column_terms.empty() || !answer.bias_errors.empty();
  if (std::isfinite(largest) && is_changed_here) spec.absolute += rounding_of(written) * largest;
  if (const size_t terms = answer.column_terms.size(); terms > 0) {
    const auto* w = workload_.get_if<MatmulWorkload>();
    CHECK(w != nullptr && terms == static_cast<size_t>(w->batch * w->n)) << "one term a column";
    const auto n = static_cast<size_t>(w->n), product = static_cast<size_t>(w->m * w->n);
    for (size_t i = 0; i < values.size(); ++i) values[i] += answer.column_terms[i / product * n + i % n];
  }
  if (answer.channels_last) {
    const auto* w = workload_.get_if<Conv2dWorkload>();
    CHECK(w != nullptr && w->out_layout == "NCHW") << "only images of NCHW lie otherwise for a peer";
    values = channels_first(values, *w);
  }
  if (!answer.bias_errors.empty()) take_back(answer.bias_errors, values);
  if (answer.bare) RETURN_IF_ERROR(finish(values));
  return check_output(references_[arg], values.data(), DType::kFloat64, spec, info.name);
}

Result<std::vector<double>> DeviceCase::values_of(std::string_view arg) const {
  const int operand = index_of(arg);
  std::string bytes;
  RETURN_IF_ERROR(driver_status(operands_.download(operand, bytes)));
  for (const auto& [place, info] : DeviceOperands::inputs_of(artifact_.manifest))
    if (place == operand)
      return load_elements(bytes.data(), info.bytes / dtype_bytes(info.dtype), info.dtype);
  return failed(arg, " is no input");
}

Result<std::shared_ptr<DeviceCase::OwnOperand>> DeviceCase::upload_own(const std::string& bytes) const {
  const auto own = std::make_shared<OwnOperand>();
  const auto size = static_cast<int64_t>(bytes.size());
  own->stride = (size + 255) / 256 * 256;  // as operands are aligned
  RETURN_IF_ERROR(driver_status(cuda::DeviceMemory::allocate(own->stride * sets(), own->memory)));
  for (int set = 0; set < sets(); ++set)
    RETURN_IF_ERROR(driver_status(cuda::copy_to_device(own->address(set), bytes.data(), size)));
  return own;
}

namespace {

// What follows a product or a convolution; bias has one value a column, or a channel of `pixels`.
struct PeerEpilogue {
  bool bias = false, residual = false;
  bool other = false;  // more than these and relu, in the usual order
  Activation activation = Activation::kNone;
  int64_t channels = 1, pixels = 1;  // that lie side by side
};

template <class Product>
bool has_more(const Product& w) {
  const ActivationKind kind = w.activation.kind;
  return w.accumulate || w.scale || !w.post.empty() ||
         (kind != ActivationKind::kNone && kind != ActivationKind::kRelu);
}
PeerEpilogue epilogue_of(const Workload& workload) {
  if (const auto* w = workload.get_if<MatmulWorkload>())
    return {w->bias, w->residual, has_more(*w), w->activation, w->n, 1};
  const auto* w = workload.get_if<Conv2dWorkload>();
  CHECK(w != nullptr) << "only products and convolutions have peers that leave the epilogue away";
  const int64_t pixels = w->out_layout == "NHWC" ? 1 : w->out_height() * w->out_width();
  return {w->bias, w->residual, has_more(*w), w->activation, w->out_channels, pixels};
}

}  // namespace

Status DeviceCase::can_finish() const {
  if (epilogue_of(workload_).other)
    return failed("more follows it than bias, residual and relu in this order: not compared");
  return Status::ok();
}

// As if the task's own bias had been added. What ReLU made 0 stays so: such an element is off by the error at
// most.
void DeviceCase::take_back(const std::vector<double>& bias_errors, std::vector<double>& values) const {
  const PeerEpilogue e = epilogue_of(workload_);
  CHECK(static_cast<int64_t>(bias_errors.size()) == e.channels) << "one error a channel";
  for (size_t i = 0; i < values.size(); ++i)
    if (e.activation != Activation::kRelu || values[i] > 0)
      values[i] -= bias_errors[i / static_cast<size_t>(e.pixels) % bias_errors.size()];
}

// On the host, untimed.
Status DeviceCase::finish(std::vector<double>& values) const {
  const PeerEpilogue e = epilogue_of(workload_);
  CHECK(!e.other) << "can_finish() was not asked";
  std::vector<double> bias, residual;
  if (e.bias) {
    ASSIGN_OR_RETURN(bias, values_of("bias"));
    if (static_cast<int64_t>(bias.size()) != e.channels) return failed("bias has ", bias.size(), " values");
  }
  if (e.residual) {
    ASSIGN_OR_RETURN(residual, values_of("residual"));
    if (residual.size() != values.size()) return failed("residual has ", residual.size(), " values");
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (e.bias) values[i] += bias[i / static_cast<size_t>(e.pixels) % bias.size()];
    if (e.residual) values[i] += residual[i];
    // Written so that a NaN stays one.
    if (e.activation == Activation::kRelu && values[i] < 0) values[i] = 0;
  }
  return Status::ok();
}

}  // namespace tuner
