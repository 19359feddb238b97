#include "measure_server/runner/device_candidate.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "compiler_core/runtime/nvml.h"
#include "measure_server/runner/device_run.h"
#include "measure_server/runner/device_wary_run.h"
#include "measure_server/runner/pulse.h"
#include "measure_server/runner/sampling.h"

namespace tuner {

using cuda::CallStatus;

namespace {

// Samples of at least so many calls replay a graph: calls of more than 1 / 64 of a sample, 16 us as a rule,
// hide the queuing of the next.
constexpr int64_t kReplayFrom = 64, kCallsOfGraph = 64;

// A trial, or a finalist of a race.
class TimedDeviceRun final : public DeviceRun, public DeviceRacer {
 public:
  using DeviceRun::DeviceRun;

  RunReply take_turn(int samples, std::vector<double>& pulses_ns) override {
    reply_.run_ns.clear();
    reply_.cpu_ns.clear();
    reply_.disturbed = 0;
    reply_.pulse_ns = 0;
    if (calls_ > 0 ? time_turn(samples, pulses_ns) : first_turn()) verdict(Outcome::kOk, "");
    return answer();
  }
  RunReply finish() override {
    reply_.run_ns.clear();
    reply_.cpu_ns.clear();
    reply_.device_state = device_state(bench_.device().uuid);
    if (last_run("") && untouched()) verdict(Outcome::kOk, "");
    return answer();
  }
  bool poisoned() const override { return context_is_ruined(); }

 private:
  void steps() override {
    if (!prepare() || !sound(bench_.sentinel(reply_.sentinel_before_ns))) return;
    enter(Phase::kFirstRun);
    if (!run_once() || !check("")) return;
    enter(Phase::kTiming);
    if (!time()) return;
    reply_.device_state = device_state(bench_.device().uuid);
    if (!samples_.cut && !last_run(" (right in the first run, wrong in the run after timing)")) return;
    if (!untouched() || !sound(bench_.sentinel(reply_.sentinel_after_ns))) return;
    verdict(Outcome::kOk, "");
    reply_.run_ns = std::move(samples_.run_ns);
    reply_.cpu_ns = std::move(samples_.cpu_ns);
    reply_.cut = samples_.cut;
  }

  bool last_run(const char* when) {
    enter(Phase::kLastRun);
    return run_once() && check(when);
  }

  // --- turns ---

  // Its answer was right in its trial, and is compared once a heat, in the end: that takes long where it is
  // large.
  bool first_turn() {
    begin();
    if (!prepare()) return false;
    enter(Phase::kFirstRun);
    if (!run_once()) return false;
    enter(Phase::kTiming);
    double call_ns = 0;
    if (!warm_up(fill_ns() / kWarmUpSteps, kWarmUpNs, /*hopeless_ns=*/0, take(), &call_ns)) return false;
    calls_ = calls_that_fill(fill_ns(), call_ns);
    return true;
  }

  // The finalists push each other's operands out of the caches, so a turn warms up first.
  bool time_turn(int samples, std::vector<double>& pulses_ns) {
    enter(Phase::kTiming);
    double before_ns = 0;
    if (!warm_up(fill_ns() / kWarmUpSteps, kWarmUpNs, /*hopeless_ns=*/0, take()) || !pulse(before_ns))
      return false;
    reply_.pulse_ns = before_ns;
    for (int i = 0; i < samples; ++i) {
      Sample s;
      double after_ns = 0;
      if (!sample(calls_, s) || !pulse(after_ns)) return false;
      reply_.run_ns.push_back(s.run_ns / static_cast<double>(calls_));
      reply_.cpu_ns.push_back(s.cpu_ns / static_cast<double>(calls_));
      pulses_ns.push_back((before_ns + after_ns) / 2);
      reply_.disturbed += calm(before_ns) && calm(after_ns) ? 0 : 1;
      reply_.pulse_ns = std::min(reply_.pulse_ns, after_ns);
      before_ns = after_ns;
    }
    return true;
  }

  bool pulse(double& ns) { return r_.patience_ms <= 0 || sound(bench_.pulse(ns)); }

  bool calm(double pulse_ns) const {
    return r_.calm_pulse_ns <= 0 || pulse_ns <= kPulseDisturbed * r_.calm_pulse_ns;
  }

  double fill_ns() const { return r_.min_repeat_ms * 1e6; }

  TakeSample take() {
    return [this](int64_t calls, Sample& s) { return sample(calls, s); };
  }

  // --- samples ---

  bool time() {
    if (!sound(operands_.poison(bench_.stream()))) return false;
    const SamplingOptions options{.fill_ns = fill_ns(),
                                  .repeats = r_.repeats,
                                  .precision = r_.precision,
                                  // Slow kernels: the run after timing must still fit.
                                  .stop_at_ns = started_ns_ + r_.run_timeout_s * 0.5e9,
                                  .cut_above_ns = r_.cut_above_ns,
                                  .slow_above_ns = r_.slow_above_ns};
    return take_samples(options, take(), samples_);
  }

  bool sample(int64_t calls, Sample& s) {
    const double cpu_ns = thread_cpu_ns();
    const bool taken = r_.caches == Caches::kFlush ? sample_flushed(calls, s)
                       : operands_.has_inouts()    ? sample_restored(calls, s)
                                                   : sample_in_one(calls, s);
    s.cpu_ns = thread_cpu_ns() - cpu_ns;
    if (taken && !(s.run_ns > 0)) return no_time(s.run_ns, calls);
    return taken;
  }

  // All calls between two events: what a stream of calls takes, launches included where they are slower.
  bool sample_in_one(int64_t calls, Sample& s) {
    if (calls >= kReplayFrom && is_recorded()) return sample_replayed(calls, s);
    if (!sound(bench_.begin())) return false;
    for (int64_t i = 0; i < calls; ++i)
      if (!sound(call(static_cast<int>(next_set_++ % operands_.sets())))) return false;
    return sound(bench_.end()) && sound(bench_.elapsed_ns(s.run_ns));
  }

  // Short kernels: many calls are queued as one, so that the host's queuing is not in their time.
  bool sample_replayed(int64_t calls, Sample& s) {
    const int64_t replays = (calls + graph_calls_ - 1) / graph_calls_;
    // The first launch brings the graph to the device.
    if (!std::exchange(is_replayed_, true) &&
        (!sound(graph_.launch(bench_.stream())) || !sound(bench_.stream().synchronize())))
      return false;
    if (!sound(bench_.begin())) return false;
    for (int64_t i = 0; i < replays; ++i)
      if (!sound(graph_.launch(bench_.stream()))) return false;
    if (!sound(bench_.end()) || !sound(bench_.elapsed_ns(s.run_ns))) return false;
    s.run_ns *= static_cast<double>(calls) / static_cast<double>(replays * graph_calls_);
    return true;
  }

  // A graph in which every set has its turn equally often. What cannot be recorded is queued call by call.
  bool is_recorded() {
    if (graph_calls_ > 0) return graph_.recorded();
    const int64_t sets = operands_.sets();
    graph_calls_ = (kCallsOfGraph + sets - 1) / sets * sets;
    const auto queue = [this] {
      CallStatus status;
      for (int64_t i = 0; i < graph_calls_ && status; ++i)
        status = call(static_cast<int>(i % operands_.sets()));
      return status;
    };
    (void)cuda::DeviceGraph::record(bench_.stream(), queue, graph_);
    return graph_.recorded();
  }

  // What a call leaves in its inouts is not what the next one should find. So there are several sets, which
  // are restored untimed; then each has a call.
  bool sample_restored(int64_t calls, Sample& s) {
    s.run_ns = 0;
    for (int64_t done = 0; done < calls;) {
      const int64_t n = std::min<int64_t>(operands_.sets(), calls - done);
      double ns = 0;
      if (!sound(operands_.restore_inouts(bench_.stream())) || !sound(bench_.begin())) return false;
      for (int64_t i = 0; i < n; ++i)
        if (!sound(call(static_cast<int>(i)))) return false;
      if (!sound(bench_.end()) || !sound(bench_.elapsed_ns(ns))) return false;
      s.run_ns += ns;
      done += n;
    }
    return true;
  }

  // Each call between events of its own: the flush before it is not timed.
  bool sample_flushed(int64_t calls, Sample& s) {
    s.run_ns = 0;
    for (int64_t i = 0; i < calls; ++i) {
      double ns = 0;
      if (!sound(operands_.restore_inouts(bench_.stream())) || !flushed_call(ns)) return false;
      s.run_ns += ns;
    }
    return true;
  }
  cuda::DeviceGraph graph_;  // of calls
  bool is_replayed_ = false;
  int64_t calls_ = 0;        // of a sample of a turn; 0: it has had no turn
  int64_t graph_calls_ = 0;  // 0: nobody has tried to record them
  Samples samples_;
  int64_t next_set_ = 0;
};

}  // namespace

std::unique_ptr<DeviceRacer> race_on_device(DeviceBench& bench, const RunRequest& request,
                                            const std::function<void(Phase)>& entered) {
  return std::make_unique<TimedDeviceRun>(bench, request, entered);
}

RunReply run_on_device(DeviceBench& bench, const RunRequest& request,
                       const std::function<void(Phase)>& entered, bool& poisoned) {
  const std::unique_ptr<DeviceRun> run = request.wary
                                             ? wary_run_on_device(bench, request, entered)
                                             : std::make_unique<TimedDeviceRun>(bench, request, entered);
  RunReply reply = run->run();
  poisoned = run->context_is_ruined();
  return reply;
}

}  // namespace tuner
