#include "tests/bench/gpu/peers.h"

#include <algorithm>

#include "compiler_core/base/elements.h"
#include "tests/bench/gpu/ceilings.h"

namespace tuner {
namespace {

// One way to compute the task: a function of a library, or one of its algorithms.
struct Choice {
  std::string name;
  std::function<Status(int set)> call;
  PeerAnswer answer;
  double max_error = 0;
};

template <class Product>
bool has_epilogue(const Product& w) {
  return w.bias || w.scale || w.residual || w.activation != Activation::kNone;
}

void add_note(PeerReport& report, const std::string& note) {
  report.note += str(report.note.empty() ? "" : "; ", note);
}

// `matrices` of [rows, columns] as [columns, rows].
std::vector<float> transposed(const std::vector<double>& from, int64_t matrices, int64_t rows,
                              int64_t columns) {
  std::vector<float> to(from.size());
  for (int64_t m = 0; m < matrices; ++m)
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        to[static_cast<size_t>((m * columns + c) * rows + r)] =
            static_cast<float>(from[static_cast<size_t>((m * rows + r) * columns + c)]);
  return to;
}

// Tries ways to compute a task, and keeps those that are right.
class Trial {
 public:
  Trial(DeviceBench& bench, const InterleaveOptions& options, DeviceCase& ours, PeerReport& report)
      : bench_(bench), options_(options), ours_(ours), report_(report) {
    options_.rounds = std::min(options.rounds, kRounds);
  }

  // Runs it once and compares; one that is refused or wrong is not kept. Unavailable: the device failed.
  Status add(Choice choice) {
    const Result<double> error = ours_.check(choice.call, choice.answer);
    if (error.is_ok()) {
      choice.max_error = *error;
      right_.push_back(std::move(choice));
    } else if (error.status().code() == StatusCode::kUnavailable) {
      return error.status();
    } else {
      refusals_ +=
          str(refusals_.empty() ? "" : "; ", choice.name, choice.name.empty() ? "" : ": ", error.message());
      ++refused_;
    }
    return Status::ok();
  }
  // Like add(), with memory to work in, whose address `call` gets. All choices share it: they take turns.
  Status add(Choice choice, size_t workspace_bytes,
             const std::function<Status(int set, cuda::DevicePtr workspace)>& call) {
    Status there;
    if (const auto bytes = static_cast<int64_t>(workspace_bytes); bytes > workspace_->bytes()) {
      cuda::DeviceMemory larger;
      there = driver_status(cuda::DeviceMemory::allocate(bytes, larger));
      if (there) *workspace_ = std::move(larger);
    }
    choice.call = [there, workspace = workspace_, call](int set) {
      return there ? call(set, workspace->address()) : there;
    };
    return add(std::move(choice));
  }
  std::vector<Choice>& right() { return right_; }
  int refused() const { return refused_; }

  // Adds the fastest of those that are right to the contestants, without rounds the first. None is right: the report says why.
  Status finish(std::vector<Contestant>& contestants) {
    if (right_.empty()) {
      report_.missing = refusals_;
      report_.failed = true;
      return Status::ok();
    }
    size_t fastest = 0;
    if (right_.size() > 1 && options_.rounds > 0) {
      ASSIGN_OR_RETURN(fastest, find_fastest());
    }
    Choice& best = right_[fastest];
    report_.max_error = best.max_error;
    report_.note = best.name + (report_.note.empty() ? "" : "; ") + report_.note;
    contestants.push_back({.name = report_.name, .call = std::move(best.call)});
    return Status::ok();
  }

 private:
  static constexpr int kRounds = 3;
  Result<size_t> find_fastest() {
    std::vector<Contestant> racers;
    for (const Choice& c : right_) racers.push_back({.name = c.name, .call = c.call});
    std::vector<std::string> states;
    RETURN_IF_ERROR(interleave(bench_, options_, racers, states));
    size_t fastest = 0;
    for (size_t i = 1; i < racers.size(); ++i)
      if (!racers[i].ns.empty() && median(racers[i].ns) < median(racers[fastest].ns)) fastest = i;
    return fastest;
  }

  DeviceBench& bench_;
  InterleaveOptions options_;
  DeviceCase& ours_;
  PeerReport& report_;
  std::vector<Choice> right_;
  std::string refusals_;
  int refused_ = 0;
  const std::shared_ptr<cuda::DeviceMemory> workspace_ = std::make_shared<cuda::DeviceMemory>();
};

using Address = std::function<cuda::DevicePtr(int set)>;

Address address_of(const DeviceCase& ours, const char* arg) {
  return [&ours, arg](int set) { return ours.address(set, arg); };
}

// Operands of a product of bytes as cuBLASLt takes them: a less 128 as int8 [M, K], b as [N, K].
Status store_bytes(const DeviceCase& ours, const MatmulWorkload& w, Address& a, Address& b,
                   PeerAnswer& answer) {
  ASSIGN_OR_RETURN(std::vector<double> left, ours.values_of("a"));
  for (double& x : left) x -= 128;
  const std::vector<float> rows =
      w.transpose_a ? transposed(left, w.batch, w.k, w.m) : std::vector<float>(left.begin(), left.end());
  ASSIGN_OR_RETURN(const std::vector<double> right, ours.values_of("b"));
  const std::vector<float> columns =
      w.transpose_b ? std::vector<float>(right.begin(), right.end()) : transposed(right, w.batch, w.k, w.n);
  ASSIGN_OR_RETURN(const auto own_a, ours.upload_own(element_bytes(rows, DType::kInt8)));
  ASSIGN_OR_RETURN(const auto own_b, ours.upload_own(element_bytes(columns, DType::kInt8)));
  a = [own_a](int set) { return own_a->address(set); };
  b = [own_b](int set) { return own_b->address(set); };
  answer.column_terms.assign(static_cast<size_t>(w.batch * w.n), 0);
  for (size_t i = 0; i < columns.size(); ++i)
    answer.column_terms[i / static_cast<size_t>(w.k)] += 128.0 * columns[i];
  return Status::ok();
}

// Each algorithm of its heuristic.
Status try_cublaslt(const CublasLt& lt, const MatmulWorkload& w, DeviceCase& ours, Trial& trial,
                    PeerReport& report) {
  Result<std::unique_ptr<CublasLtProduct>> described = CublasLtProduct::describe(lt, w);
  if (!described.is_ok()) return described.status();
  const std::shared_ptr<const CublasLtProduct> product = *std::move(described);
  Address a = address_of(ours, "a"), b = address_of(ours, "b");
  PeerAnswer answer{.bare = has_epilogue(w)};
  if (w.dtype == DType::kInt8) {
    RETURN_IF_ERROR(store_bytes(ours, w, a, b, answer));
    add_note(report, "operands of its own: a less 128 as int8 [M, K], b as [N, K]");
  }
  const size_t before = trial.right().size();
  const int refused_before = trial.refused();
  for (const CublasLtProduct::Algorithm& algorithm : product->algorithms())
    RETURN_IF_ERROR(trial.add(
        {.name = str("#", algorithm.place, ", workspace ", algorithm.workspace_bytes, " bytes"),
         .answer = answer},
        algorithm.workspace_bytes, [&ours, product, algorithm, a, b](int set, cuda::DevicePtr workspace) {
          return product->run(algorithm, a(set), b(set), workspace, ours.address(set, "out"));
        }));
  const size_t right = trial.right().size() - before;
  const int refused = trial.refused() - refused_before;
  for (size_t i = before; i < trial.right().size(); ++i) {
    std::string& name = trial.right()[i].name;
    name = str("cuBLASLt best of ", right, ", ", name);
    if (refused > 0) name += str(", ", refused, " refused or wrong");
  }
  return Status::ok();
}

// float32: cublasSgemm, whose TF32 is off, and what cuBLASLt has. Tensor cores: cuBLASLt.
Status add_product(const Libraries& libraries, Trial& trial, DeviceCase& ours, const MatmulWorkload& w,
                   PeerReport& report) {
  const bool is_float = w.dtype == DType::kFloat32 && !w.allow_tf32;
  report.name = is_float ? "cuBLAS" : "cuBLASLt";
  Status serves = ours.can_finish();
  if (serves && is_float) serves = libraries.cublas.is_ok() ? cublas_serves(w) : libraries.cublas.status();
  if (serves && !is_float) serves = libraries.cublaslt.status();
  if (!serves) {
    report.missing = serves.message();
    return Status::ok();
  }
  if (is_float) {
    const auto call = [&cublas = *libraries.cublas, &ours, w](int set) {
      return cublas.multiply(w, ours.address(set, "a"), ours.address(set, "b"), ours.address(set, "out"));
    };
    RETURN_IF_ERROR(trial.add({.call = call, .answer = {.bare = has_epilogue(w)}}));
    if (trial.right().empty()) return Status::ok();
    trial.right().back().name = "cublasSgemm";
  }
  if (libraries.cublaslt.is_ok()) {
    const Status tried = try_cublaslt(*libraries.cublaslt, w, ours, trial, report);
    if (tried.code() == StatusCode::kUnavailable) return tried;
    if (!tried && !is_float) report.missing = tried.message();
  }
  if (has_epilogue(w)) add_note(report, "the product alone, without bias and activation");
  return Status::ok();
}

// The weight as cuDNN takes it where channels come last: [OC, KH, KW, IC].
Result<Address> weight_of(const DeviceCase& ours, const Conv2dWorkload& w, PeerReport& report) {
  if (w.layout != "NHWC") return address_of(ours, "weight");
  ASSIGN_OR_RETURN(const std::vector<double> weight, ours.values_of("weight"));
  const std::vector<float> last =
      transposed(weight, w.out_channels, w.in_channels / w.groups, w.kernel_height * w.kernel_width);
  ASSIGN_OR_RETURN(const auto own, ours.upload_own(element_bytes(last, w.dtype)));
  add_note(report, "a weight of its own: [OC, KH, KW, IC]");
  return Address([own](int set) { return own->address(set); });
}

Status add_convolution(const Libraries& libraries, Trial& trial, DeviceCase& ours, const Conv2dWorkload& w,
                       PeerReport& report) {
  report.name = "cuDNN";
  Status serves = ours.can_finish();
  if (serves) serves = libraries.cudnn.is_ok() ? cudnn_serves(w) : libraries.cudnn.status();
  if (!serves) {
    report.missing = serves.message();
    return Status::ok();
  }
  DType out = w.out_dtype();
  Result<std::unique_ptr<CudnnConvolution>> described = CudnnConvolution::describe(*libraries.cudnn, w, out);
  if (!described.is_ok() && out != w.dtype) {
    out = w.dtype;
    described = CudnnConvolution::describe(*libraries.cudnn, w, out);
    add_note(report, str("out in ", out, ": the library has no ", w.out_dtype(), " one"));
  }
  if (!described.is_ok()) {
    report.missing = described.message();
    return Status::ok();
  }
  const std::shared_ptr<const CudnnConvolution> convolution = *std::move(described);
  ASSIGN_OR_RETURN(const Address weight, weight_of(ours, w, report));
  PeerAnswer answer{.bare = has_epilogue(w)};
  if (out != w.out_dtype()) answer.written = out;
  for (const CudnnConvolution::Algorithm& algorithm : convolution->algorithms())
    RETURN_IF_ERROR(trial.add({.name = algorithm.name, .answer = answer}, algorithm.workspace_bytes,
                              [&ours, convolution, algorithm, weight](int set, cuda::DevicePtr workspace) {
                                return convolution->run(algorithm, ours.address(set, "data"), weight(set),
                                                        workspace, ours.address(set, "out"));
                              }));
  if (has_epilogue(w)) add_note(report, "the convolution alone, without bias and activation");
  return Status::ok();
}

Status add_copy(DeviceBench& bench, int64_t bytes, int sets, PeerReport& report,
                std::vector<Contestant>& contestants) {
  report.name = "copy";
  Result<Contestant> copy = copy_contestant(bench, bytes, sets);
  if (copy.is_ok()) {
    contestants.push_back(*std::move(copy));
    return Status::ok();
  }
  report.missing = copy.message();
  return copy.status().code() == StatusCode::kUnavailable ? copy.status() : Status::ok();
}

}  // namespace

Status add_peer(DeviceBench& bench, const Libraries& libraries, const InterleaveOptions& options,
                DeviceCase& ours, PeerReport& report, std::vector<Contestant>& contestants) {
  const Workload& workload = ours.workload();
  const auto* product = workload.get_if<MatmulWorkload>();
  const auto* convolution = workload.get_if<Conv2dWorkload>();
  if (product == nullptr && convolution == nullptr)
    return workload.memory_bound() ? add_copy(bench, workload.bytes(), ours.sets(), report, contestants)
                                   : Status::ok();
  Trial trial(bench, options, ours, report);
  RETURN_IF_ERROR(product != nullptr ? add_product(libraries, trial, ours, *product, report)
                                     : add_convolution(libraries, trial, ours, *convolution, report));
  return report.missing.empty() ? trial.finish(contestants) : Status::ok();
}

}  // namespace tuner
