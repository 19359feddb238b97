#include "tests/bench/gpu/interleave.h"

#include <algorithm>
#include <cmath>

#include "compiler_core/runtime/nvml.h"
#include "tests/bench/gpu/device_case.h"

namespace tuner {
namespace {

constexpr int64_t kMostCalls = 100'000;     // a kernel of 10 ns does not exist: the clock would be wrong
constexpr int64_t kMostGraphCalls = 4'096;  // a longer batch launches its graph several times

// Queues `calls` calls, from the set whose turn it is.
Status queue(Contestant& c, int64_t calls, int sets) {
  for (int64_t i = 0; i < calls; ++i) RETURN_IF_ERROR(c.call(static_cast<int>(c.next_set++ % sets)));
  return Status::ok();
}

// Queues a batch, by its graph if it has one.
Status queue_batch(DeviceBench& bench, Contestant& c, int64_t calls, int sets) {
  if (!c.graph.recorded()) return queue(c, calls, sets);
  for (int64_t done = 0; done < calls; done += c.graph_calls)
    RETURN_IF_ERROR(driver_status(c.graph.launch(bench.stream())));
  return Status::ok();
}

// Nanoseconds of `calls` calls together. What is queued before them keeps the device busy meanwhile, so that
// the way to the device is not in the time; the first launch of a graph also brings it to the device.
Result<double> batch_ns(DeviceBench& bench, Contestant& c, int64_t calls, int sets, std::string* state) {
  RETURN_IF_ERROR(queue_batch(bench, c, 1, sets));
  RETURN_IF_ERROR(bench.begin().status());
  RETURN_IF_ERROR(queue_batch(bench, c, calls, sets));
  RETURN_IF_ERROR(bench.end().status());
  if (state != nullptr) *state = device_state(bench.device().uuid);  // while they run
  double ns = 0;
  RETURN_IF_ERROR(bench.elapsed_ns(ns).status());
  if (!(ns > 0)) return unavailable("the device's clock gave ", ns, " ns for ", calls, " calls of ", c.name);
  return ns;
}

// How many calls fill the time, when `calls` of them took `ns`: a little more than the time says, and no leap
// on the word of a first cold call.
int64_t grown(int64_t calls, double ns, double fill_ns) {
  return static_cast<int64_t>(
      std::ceil(static_cast<double>(calls) * std::clamp(1.2 * fill_ns / ns, 1.2, 10.0)));
}

// Grows the batch until it fills its time: also the warm-up.
Status calibrate(DeviceBench& bench, Contestant& c, const InterleaveOptions& options) {
  for (c.calls = 1; c.calls < kMostCalls;) {
    ASSIGN_OR_RETURN(const double ns, batch_ns(bench, c, c.calls, options.sets, nullptr));
    if (ns >= options.fill_ns) break;
    c.calls = std::min(kMostCalls, grown(c.calls, ns, options.fill_ns));
  }
  return Status::ok();
}

Status record(DeviceBench& bench, Contestant& c, int64_t calls, int sets) {
  Status refusal;
  c.next_set = 0;
  const auto work = [&] {
    refusal = queue(c, calls, sets);
    return cuda::CallStatus(refusal ? cuda::kSuccess : cuda::kInvalidValue, "the call");
  };
  cuda::DeviceGraph graph;
  const cuda::CallStatus recorded = cuda::DeviceGraph::record(bench.stream(), work, graph);
  RETURN_IF_ERROR(refusal);
  RETURN_IF_ERROR(driver_status(recorded));
  c.graph = std::move(graph);
  c.graph_calls = calls;
  return Status::ok();
}

// A graph in which every set has its turn equally often, and which fills the time if it may be that long.
// Queued one by one calls may take longer than they run, so such a batch is only where it begins.
Status record_batch(DeviceBench& bench, const InterleaveOptions& options, Contestant& c) {
  const int64_t sets = options.sets, most = std::max((kMostGraphCalls + sets - 1) / sets * sets, sets);
  RETURN_IF_ERROR(calibrate(bench, c, options));
  for (int64_t calls = c.calls;;) {
    calls = std::min(most, (calls + sets - 1) / sets * sets);
    RETURN_IF_ERROR(record(bench, c, calls, options.sets));
    ASSIGN_OR_RETURN(const double ns, batch_ns(bench, c, calls, options.sets, nullptr));
    c.calls = calls;
    if (ns >= options.fill_ns) return Status::ok();
    if (calls == most) {
      c.calls = static_cast<int64_t>(std::ceil(options.fill_ns / ns)) * calls;
      return Status::ok();
    }
    calls = grown(calls, ns, options.fill_ns);
  }
}

}  // namespace

Status record_graphs(DeviceBench& bench, const InterleaveOptions& options,
                     std::vector<Contestant>& contestants) {
  for (Contestant& c : contestants) {
    const Status recorded = record_batch(bench, options, c);
    if (recorded) continue;
    for (Contestant& other : contestants) other.graph = {};
    return recorded.with_context(str(c.name, ": "));
  }
  return Status::ok();
}

Status interleave(DeviceBench& bench, const InterleaveOptions& options, std::vector<Contestant>& contestants,
                  std::vector<std::string>& states) {
  for (Contestant& c : contestants)
    if (!c.graph.recorded()) RETURN_IF_ERROR(calibrate(bench, c, options));
  for (int round = 0; round < options.rounds; ++round) {
    if (std::chrono::steady_clock::now() >= options.stop_at) break;
    const bool look = round == 0 || round == options.rounds / 2 || round == options.rounds - 1;
    std::string state;
    std::vector<double> ns;
    for (Contestant& c : contestants) {
      // Of the first contestant's batch: ours.
      std::string* wanted = look && ns.empty() ? &state : nullptr;
      ASSIGN_OR_RETURN(const double batch, batch_ns(bench, c, c.calls, options.sets, wanted));
      ns.push_back(batch / static_cast<double>(c.calls));
    }
    for (size_t i = 0; i < ns.size(); ++i) contestants[i].ns.push_back(ns[i]);
    if (look) states.push_back(state);
  }
  return Status::ok();
}

}  // namespace tuner
