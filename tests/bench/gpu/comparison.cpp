#include "tests/bench/gpu/comparison.h"

#include <algorithm>

#include "measure_server/runner/check_kernels.h"

namespace tuner {

namespace {

constexpr size_t kFewestRounds = 5;  // below these a median says little
constexpr int kOurs = 0, kPeer = 1;  // of the contestants

// A copy on the device: `bytes` are read and written together.
Result<Contestant> copy_contestant(DeviceBench& bench, int64_t bytes, int sets) {
  const int64_t half = std::max<int64_t>(bytes / 2, 1);
  const int64_t stride = (half + 255) / 256 * 256;  // as operands are aligned
  const auto from = std::make_shared<cuda::DeviceMemory>(), to = std::make_shared<cuda::DeviceMemory>();
  for (const auto& memory : {from, to}) {
    RETURN_IF_ERROR(driver_status(cuda::DeviceMemory::allocate(stride * sets, *memory)));
    RETURN_IF_ERROR(
        driver_status(cuda::fill_bytes(memory->address(), 0x3F, memory->bytes(), bench.stream())));
  }
  return Contestant{
      .name = "copy", .call = [&bench, from, to, half, stride](int set) {
        return driver_status(cuda::copy_on_device(to->address() + set * stride,
                                                  from->address() + set * stride, half, bench.stream()));
      }};
}

}  // namespace

int fastest_candidate(const PackFile& pack, const PackResults* results, size_t task) {
  if (results == nullptr) return 0;
  int best = -1;
  bool any_known = false;
  std::pair<size_t, double> best_rank;  // rounds it took part in, more first; then time
  for (size_t c = 0; c < pack.pack().tasks[task].candidates.size(); ++c) {
    const PackOutcome* last = nullptr;
    size_t rounds = 0;
    bool failed_once = false;
    for (size_t round = 0; round < pack.pack().plan.rounds.size(); ++round) {
      const PackOutcome* outcome = results->find(task, c, round);
      if (outcome == nullptr) continue;
      failed_once = failed_once || !outcome->ok;
      last = outcome;
      ++rounds;
    }
    any_known = any_known || last != nullptr;
    if (last == nullptr || failed_once) continue;
    const bool better = best < 0 || rounds > best_rank.first ||
                        (rounds == best_rank.first && last->time_ns < best_rank.second);
    if (better) best = static_cast<int>(c), best_rank = {rounds, last->time_ns};
  }
  return any_known ? best : 0;
}

Result<double> copy_rate(DeviceBench& bench, double fill_ns) {
  constexpr int64_t kMostBytes = int64_t{2} << 30;
  const int64_t bytes = std::min(kMostBytes, bench.device().memory_bytes / 16);
  ASSIGN_OR_RETURN(Contestant copy, copy_contestant(bench, bytes, 1));
  std::vector<Contestant> contestants;
  contestants.push_back(std::move(copy));
  std::vector<std::string> states;
  RETURN_IF_ERROR(interleave(bench, {.rounds = 9, .fill_ns = fill_ns}, contestants, states));
  return static_cast<double>(bytes) / median(contestants[0].ns);
}

Result<double> ffma_rate(DeviceBench& bench, const PackFile& pack, double fill_ns) {
  ASSIGN_OR_RETURN(const std::string cubin, pack.checker(0));
  if (cubin.empty()) return failed("the pack has no kernel for it; pack again");
  cuda::DeviceModule module;
  cuda::Function function = nullptr;
  RETURN_IF_ERROR(driver_status(cuda::DeviceModule::load(cubin, module)));
  const cuda::CallStatus found = module.function(kFfmaKernel, 0, function);
  if (found.code() == cuda::kNotFound) return failed("the pack has no kernel for it; pack again");
  RETURN_IF_ERROR(driver_status(found));
  constexpr int64_t kBlocksPerMultiprocessor = 8, kRounds = 256;
  const int64_t blocks = kBlocksPerMultiprocessor * bench.device().multiprocessors;
  const LaunchInfo info{.kernel = kFfmaKernel, .grid = {blocks, 1, 1}, .block = {kCheckThreads, 1, 1}};
  cuda::DeviceMemory out;
  RETURN_IF_ERROR(driver_status(cuda::DeviceMemory::allocate(sizeof(float), out)));
  cuda::DevicePtr address = out.address();
  float x = 0.999F, y = 0.001F;
  uint64_t rounds = kRounds;
  void* params[] = {&address, &x, &y, &rounds};
  std::vector<Contestant> contestants(1);
  contestants[0].name = "ffma";
  contestants[0].call = [&](int) {
    return driver_status(cuda::launch(function, info, params, bench.stream()));
  };
  std::vector<std::string> states;
  RETURN_IF_ERROR(interleave(bench, {.rounds = 9, .fill_ns = fill_ns}, contestants, states));
  const int64_t flops = 2 * kFfmaPerRound * kRounds * kCheckThreads * blocks;
  return static_cast<double>(flops) / median(contestants[0].ns);
}

Status Comparison::run(size_t task, int candidate, TaskReport& report) {
  const PackTask& t = pack_.pack().tasks[task];
  report.workload = t.workload_key;
  report.target = t.target;
  if (candidate < 0) {
    report.error = "every candidate that was measured failed: see the results of run-pack";
    return Status::ok();
  }
  report.template_name = t.candidates[candidate].template_name;
  report.config = t.candidates[candidate].config;
  const Status status = run_checked(task, candidate, report);
  if (!status) report.error = status.message();
  return status.code() == StatusCode::kUnavailable ? status : Status::ok();
}

Status Comparison::run_checked(size_t task, int candidate, TaskReport& report) {
  auto opened = DeviceCase::open(bench_, pack_, task, static_cast<size_t>(candidate), options_.caches);
  if (!opened.is_ok()) return opened.status();
  DeviceCase& ours = **opened;
  report.artifact = ours.digest();
  report.flops = ours.workload().flops();
  report.bytes = ours.workload().bytes();
  report.memory_bound = ours.workload().memory_bound();
  report.sets = ours.sets();
  const auto call = [&ours](int set) { return ours.call(set); };
  ASSIGN_OR_RETURN(report.max_error, ours.check(call, /*bare=*/false));
  std::vector<Contestant> contestants;
  contestants.push_back({.name = "ours", .call = call});
  RETURN_IF_ERROR(add_peer(ours, report, contestants));
  InterleaveOptions interleaving = options_.interleave;
  interleaving.sets = ours.sets();
  RETURN_IF_ERROR(interleave(bench_, interleaving, contestants, report.states));
  // A race may have shown itself only in the many calls since.
  const Result<double> after = ours.check(call, /*bare=*/false);
  if (!after.is_ok()) return after.status().with_context("right before timing and not after it: ");
  report.max_error = std::max(report.max_error, *after);
  if (contestants[kOurs].ns.size() < std::min<size_t>(kFewestRounds, interleaving.rounds))
    return failed("not measured: the deadline is reached after ", contestants[kOurs].ns.size(), " rounds");
  summarise(contestants, report);
  return Status::ok();
}

Status Comparison::add_peer(DeviceCase& ours, TaskReport& report, std::vector<Contestant>& contestants) {
  if (ours.workload().get_if<MatmulWorkload>() != nullptr) return add_cublas(ours, report, contestants);
  if (ours.workload().get_if<Conv2dWorkload>() != nullptr) return add_cudnn(ours, report, contestants);
  if (ours.workload().memory_bound()) return add_copy(ours, report, contestants);
  return Status::ok();
}

// A cuBLAS that is not there or is wrong is told in its column; ours is timed all the same.
Status Comparison::add_cublas(DeviceCase& ours, TaskReport& report, std::vector<Contestant>& contestants) {
  report.peer.name = "cuBLAS";
  const MatmulWorkload w = *ours.workload().get_if<MatmulWorkload>();
  const Status serves = cublas_.is_ok() ? cublas_serves(w) : cublas_.status();
  if (!serves) {
    report.peer.missing = serves.message();
    return Status::ok();
  }
  const auto call = [this, &ours, w](int set) {
    return cublas_->multiply(w, ours.address(set, "a"), ours.address(set, "b"), ours.address(set, "out"));
  };
  const Result<double> error = ours.check(call, /*bare=*/true);
  if (!error.is_ok()) {
    report.peer.missing = error.message();
    return error.status().code() == StatusCode::kUnavailable ? error.status() : Status::ok();
  }
  report.peer.max_error = *error;
  if (w.bias || w.residual || w.activation != Activation::kNone)
    report.peer.note = "the product alone, without bias and activation";
  contestants.push_back({.name = report.peer.name, .call = call});
  return Status::ok();
}

// Like cuBLAS: one that is not there is told in its column.
Status Comparison::add_cudnn(DeviceCase& ours, TaskReport& report, std::vector<Contestant>& contestants) {
  report.peer.name = "cuDNN";
  const Conv2dWorkload w = *ours.workload().get_if<Conv2dWorkload>();
  if (!cudnn_.is_ok()) {
    report.peer.missing = cudnn_.message();
    return Status::ok();
  }
  Result<std::unique_ptr<CudnnConvolution>> described = CudnnConvolution::describe(*cudnn_, w);
  if (!described.is_ok()) {
    report.peer.missing = described.message();
    return Status::ok();
  }
  std::vector<Contestant> best;
  RETURN_IF_ERROR(fastest_convolution(ours, *std::move(described), report, best));
  if (best.empty()) return Status::ok();
  report.peer.note = best.front().name;
  if (w.bias || w.residual || w.activation != Activation::kNone)
    report.peer.note += "; the convolution alone, without bias and activation";
  contestants.push_back({.name = report.peer.name, .call = best.front().call});
  return Status::ok();
}

Status Comparison::fastest_convolution(DeviceCase& ours,
                                       const std::shared_ptr<const CudnnConvolution>& convolution,
                                       TaskReport& report, std::vector<Contestant>& best) {
  constexpr int kTrialRounds = 3;
  std::vector<Contestant> right;
  std::vector<double> errors;
  std::string refusals;
  for (const CudnnConvolution::Algorithm& algorithm : convolution->algorithms()) {
    const auto workspace = std::make_shared<cuda::DeviceMemory>();
    const auto bytes = static_cast<int64_t>(algorithm.workspace_bytes);
    Status status = bytes > 0 ? driver_status(cuda::DeviceMemory::allocate(bytes, *workspace)) : Status::ok();
    const auto call = [&ours, convolution, algorithm, workspace](int set) {
      return convolution->run(algorithm, ours.address(set, "data"), ours.address(set, "weight"),
                              workspace->address(), ours.address(set, "out"));
    };
    const Result<double> error = status ? ours.check(call, /*bare=*/true) : Result<double>(status);
    if (error.is_ok()) {
      right.push_back({.name = std::string(algorithm.name), .call = call});
      errors.push_back(*error);
    } else if (error.status().code() == StatusCode::kUnavailable) {
      return error.status();
    } else {
      refusals += str(refusals.empty() ? "" : "; ", algorithm.name, ": ", error.message());
    }
  }
  if (right.empty()) {
    report.peer.missing = refusals;
    return Status::ok();
  }
  InterleaveOptions trial = options_.interleave;
  trial.rounds = kTrialRounds;
  trial.sets = ours.sets();
  std::vector<std::string> states;
  RETURN_IF_ERROR(interleave(bench_, trial, right, states));
  size_t fastest = 0;
  for (size_t i = 1; i < right.size(); ++i)
    if (!right[i].ns.empty() && median(right[i].ns) < median(right[fastest].ns)) fastest = i;
  report.peer.max_error = errors[fastest];
  best.push_back(std::move(right[fastest]));
  return Status::ok();
}

Status Comparison::add_copy(const DeviceCase& ours, TaskReport& report,
                            std::vector<Contestant>& contestants) {
  report.peer.name = "copy";
  Result<Contestant> copy = copy_contestant(bench_, report.bytes, ours.sets());
  if (copy.is_ok()) {
    contestants.push_back(*std::move(copy));
    return Status::ok();
  }
  report.peer.missing = copy.message();
  return copy.status().code() == StatusCode::kUnavailable ? copy.status() : Status::ok();
}

void Comparison::summarise(std::vector<Contestant>& contestants, TaskReport& report) const {
  report.calls = contestants[kOurs].calls;
  report.ns = std::move(contestants[kOurs].ns);
  report.time_ns = median_interval(report.ns, options_.seed);
  if (contestants.size() <= kPeer) return;
  report.peer.ns = std::move(contestants[kPeer].ns);
  report.peer.time_ns = median_interval(report.peer.ns, options_.seed);
  report.peer.ratio = ratio_interval(report.peer.ns, report.ns, options_.seed);
}

}  // namespace tuner
