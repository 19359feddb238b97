#include "tuner/daemon/tables/machine_bound.h"

#include <algorithm>

#include "compiler_core/target.h"
#include "templates/workload/workload.h"

namespace tuner {
namespace {

// No clock runs at 20 GHz, and no call takes less than a cycle.
constexpr double kLeastPossibleNs = 0.05;

}  // namespace

MachineBound machine_bound(const JobRow::Task& task) {
  MachineBound bound{.least_ns = kLeastPossibleNs};
  const Result<Target> target = parse_target(task.target);
  if (!target) return bound;
  const Result<Workload> workload = workload_from_key(task.workload_key);
  const auto limits = target->family->limits(*target, workload ? workload->dtype() : DType::kInt8);
  if (!limits) return bound;
  bound.least_ns = std::max(bound.least_ns, limits->call_ns);
  // Peaks are those of the machine, which may have wider units than the code of the target uses.
  Target widest = *target;
  widest.mcpu.clear();
  if (const auto most = target->family->limits(widest, workload ? workload->dtype() : DType::kInt8)) {
    bound.most_gflops = most->ops_per_ns;
    bound.most_gbps = most->bytes_per_ns;
  }
  if (workload)
    bound.least_ns = std::max({bound.least_ns, workload->least_operations() / limits->ops_per_ns,
                               workload->least_bytes() / limits->bytes_per_ns});
  return bound;
}

}  // namespace tuner
