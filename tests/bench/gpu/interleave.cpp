#include "tests/bench/gpu/interleave.h"

#include <algorithm>
#include <cmath>

#include "compiler_core/runtime/nvml.h"

namespace tuner {
namespace {

constexpr int64_t kMostCalls = 100'000;  // a kernel of 10 ns does not exist: the clock would be wrong

Status queue(Contestant& c, int64_t calls, int sets) {
  for (int64_t i = 0; i < calls; ++i) RETURN_IF_ERROR(c.call(static_cast<int>(c.next_set++ % sets)));
  return Status::ok();
}

// Nanoseconds of `calls` calls together. The one before them keeps the device busy while they are queued, so
// that the way to the device is not in the time.
Result<double> batch_ns(DeviceBench& bench, Contestant& c, int64_t calls, int sets, std::string* state) {
  RETURN_IF_ERROR(queue(c, 1, sets));
  RETURN_IF_ERROR(bench.begin().status());
  RETURN_IF_ERROR(queue(c, calls, sets));
  RETURN_IF_ERROR(bench.end().status());
  if (state != nullptr) *state = device_state(bench.device().uuid);  // while they run
  double ns = 0;
  RETURN_IF_ERROR(bench.elapsed_ns(ns).status());
  if (!(ns > 0)) return unavailable("the device's clock gave ", ns, " ns for ", calls, " calls of ", c.name);
  return ns;
}

// Grows the batch until it fills its time: also the warm-up.
Status calibrate(DeviceBench& bench, Contestant& c, const InterleaveOptions& options) {
  for (c.calls = 1; c.calls < kMostCalls;) {
    ASSIGN_OR_RETURN(const double ns, batch_ns(bench, c, c.calls, options.sets, nullptr));
    if (ns >= options.fill_ns) break;
    // A little more than the time says, and no leap on the word of a first cold call.
    const double growth = std::clamp(1.2 * options.fill_ns / ns, 1.2, 10.0);
    c.calls = std::min(kMostCalls, static_cast<int64_t>(std::ceil(static_cast<double>(c.calls) * growth)));
  }
  return Status::ok();
}

}  // namespace

Status interleave(DeviceBench& bench, const InterleaveOptions& options, std::vector<Contestant>& contestants,
                  std::vector<std::string>& states) {
  for (Contestant& c : contestants) RETURN_IF_ERROR(calibrate(bench, c, options));
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
