#include "measure_server/runner/device_wary_run.h"

#include <optional>
#include <random>
#include <string>
#include <utility>

#include "compiler_core/runtime/nvml.h"
#include "measure_server/runner/device_wary.h"
#include "measure_server/runner/sampling.h"

namespace tuner {
namespace {

// Each call is alone between events of its own.
constexpr int kCallsOfSample = 2, kWarmUpCallsAtLeast = 2;
constexpr double kWarmUpAtLeastNs = 30e6;

class WaryDeviceRun final : public DeviceRun {
 public:
  using DeviceRun::DeviceRun;

 private:
  void steps() override {
    constexpr char kTimed[] = " (right in the first run, wrong in a timed one)",
                   kElsewhere[] = " (right before, wrong at other addresses and on other inputs)";
    if (!prepare() || !prepare_other_set()) return;
    enter(Phase::kFirstRun);
    if (!run_once() || !check("") || !untouched()) return;
    enter(Phase::kTiming);
    if (!time_warily(kTimed)) return;
    reply_.device_state = device_state(bench_.device().uuid);
    enter(Phase::kLastRun);
    if (!untouched() || !move_elsewhere() || !run_once() || !check(kElsewhere) || !untouched()) return;
    if (const std::string doubt = times_.doubt(); !doubt.empty()) {
      reply_.doubted = true;
      reply_.run_ns.clear();
      verdict(Outcome::kCrashed, "its times cannot be true: " + doubt);
      return;
    }
    reply_.input_sets = has_other_set() ? 2 : 1;
    verdict(Outcome::kOk, "");
  }

  bool has_other_set() const { return !r_.others.empty(); }

  bool prepare_other_set() {
    random_.seed(std::random_device()());
    spans_.assign(manifest().args.size(), std::nullopt);
    if (!has_other_set()) return true;
    const RunRequest::InputSet& other =
        r_.others[r_.prove_with > 0 ? static_cast<size_t>(r_.prove_with) - 1 : random_() % r_.others.size()];
    other_.inputs = &other.inputs;
    for (size_t i = 0; i < spans_.size(); ++i) {
      const ArgInfo& a = manifest().args[i];
      std::string_view bytes, other_bytes;
      if (a.role != BufferRole::kInput && a.role != BufferRole::kConstant) continue;
      if (!input_of(r_.inputs, a, bytes) || !input_of(other.inputs, a, other_bytes)) return false;
      spans_[i] = differing_span(bytes, other_bytes);
    }
    return read_references(other.references, other_.references);
  }

  // Brings the other inputs to the device, or once more those that are there: both move the same bytes.
  bool touch_inputs(bool change) {
    if (change) shown_ = shown_ == &own_ ? &other_ : &own_;
    for (size_t i = 0; i < spans_.size(); ++i) {
      std::string_view bytes;
      if (!spans_[i]) continue;
      if (!input_of(*shown_->inputs, manifest().args[i], bytes)) return false;
      const auto& [begin, end] = *spans_[i];
      if (!sound(cuda::copy_to_device(operands_.address(0, static_cast<int>(i)) + begin, bytes.data() + begin,
                                      static_cast<int64_t>(end - begin))))
        return false;
    }
    return sound(bench_.synchronize());  // a copy may end after its call has returned
  }

  // Outputs hold garbage, or the answer with some elements in wrong places.
  bool spoil_outputs() {
    if (random_() % 4 == 0) return sound(operands_.poison(bench_.stream()));
    for (size_t i = 0; i < manifest().args.size(); ++i) {
      const ArgInfo& a = manifest().args[i];
      if (a.role != BufferRole::kOutput) continue;
      const int64_t size = dtype_bytes(a.dtype);
      const cuda::DevicePtr base = operands_.address(0, static_cast<int>(i));
      for (const SpoiltElement& e : elements_to_spoil(a.bytes / size, random_))
        if (e.from != e.to && !sound(cuda::copy_on_device(base + static_cast<cuda::DevicePtr>(e.to * size),
                                                          base + static_cast<cuda::DevicePtr>(e.from * size),
                                                          size, bench_.stream())))
          return false;
    }
    return true;
  }

  bool wary_call(bool counts, const char* when, double& ns) {
    const bool change = has_other_set() && random_() % 2 == 0;
    if (!touch_inputs(change) || !spoil_outputs() || !sound(operands_.restore_inouts(bench_.stream())) ||
        !flushed_call(ns))
      return false;
    const double ended_ns = monotonic_ns();
    if (!sound(bench_.synchronize())) return false;
    if (counts) {
      times_.note_call(change, ns);
      times_.note_rest(monotonic_ns() - ended_ns);
    }
    return random_() % 2 == 0 || check(when);
  }

  bool time_warily(const char* when) {
    double ns = 0;
    const double begin_ns = monotonic_ns();
    for (int i = 0; i < kWarmUpCallsAtLeast || monotonic_ns() < begin_ns + kWarmUpAtLeastNs; ++i)
      if (!wary_call(/*counts=*/false, when, ns)) return false;
    for (int i = 0; i < r_.repeats; ++i) {
      double all_ns = 0;
      const double cpu_ns = thread_cpu_ns();
      for (int k = 0; k < kCallsOfSample; ++k) {
        if (!wary_call(/*counts=*/true, when, ns)) return false;
        all_ns += ns;
      }
      if (!(all_ns > 0)) return no_time(all_ns, kCallsOfSample);
      reply_.run_ns.push_back(all_ns / kCallsOfSample);
      reply_.cpu_ns.push_back((thread_cpu_ns() - cpu_ns) / kCallsOfSample);
    }
    return true;
  }

  // Its code is loaded anew, and its operands lie elsewhere: the old ones stay as long, where they fit twice.
  bool move_elsewhere() {
    constexpr int64_t kMostPages = 64, kPage = 64 << 10;
    cuda::DeviceMemory pad;
    DeviceOperands old = std::move(operands_);
    operands_ = {};
    if (DeviceOperands::bytes_of_set(manifest()) > bench_.device().memory_bytes / 4) old = {};
    kernel_ = {};
    if (has_other_set()) shown_ = &other_;
    if (!sound(cuda::DeviceMemory::allocate(kPage * (1 + static_cast<int64_t>(random_() % kMostPages)), pad)))
      return false;
    return load() && make_operands();
  }

  std::minstd_rand random_;
  ShownSet other_;  // one of r_.others
  std::vector<std::optional<DifferingSpan>> spans_;
  WaryTimes times_;
};

}  // namespace

std::unique_ptr<DeviceRun> wary_run_on_device(DeviceBench& bench, const RunRequest& request,
                                              const std::function<void(Phase)>& entered) {
  return std::make_unique<WaryDeviceRun>(bench, request, entered);
}

}  // namespace tuner
