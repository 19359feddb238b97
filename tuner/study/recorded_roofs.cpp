#include "tuner/study/recorded_roofs.h"

#include <algorithm>

#include "templates/schedule_template.h"
#include "templates/workload/needed_work.h"

namespace tuner {
namespace {

// F(6x6, 3x3), the largest tiles that there are, does 64 products in place of 324.
constexpr double kLeastOfWinograd = 64.0 / 324;

// Operations that no direct kernel can leave out. 0: the operators on rows do little that is a multiply-add,
// so their arithmetic is no bound.
double necessary_flops(const Workload& workload) {
  if (workload.memory_bound()) return 0;
  return static_cast<double>(needed_flops(workload));
}

// The share of the operations that the algorithms that serve it need at least; 0: of an algorithm on another
// unit than the peak is of.
double least_share(const Workload& workload, const Target& target, std::string_view algorithms) {
  const Result<std::vector<const AnyTemplate*>> serving = templates_for(workload, target, algorithms);
  double share = 1;
  if (!serving) return share;
  for (const AnyTemplate* t : *serving) {
    if (t->algorithm() == "direct") continue;
    share = std::min(share, t->algorithm() == "winograd" ? kLeastOfWinograd : 0);
  }
  return share;
}

void raise(double& roof, double rate) { roof = std::max(roof, rate); }

}  // namespace

void RecordedRoofs::add(const Workload& workload, const Target& target, double peak_gflops, double read_gbps,
                        double time_ns, bool direct) {
  Machine& machine = machines_[target.name()];
  // Of a device, records tell the peak of float32, whatever their own type.
  if (target.family->bound_by_host() || workload.dtype() == DType::kFloat32)
    raise(machine.gflops[workload.dtype()], peak_gflops);
  double& gbps = machine.gbps[workload.bytes()];
  raise(gbps, read_gbps);
  if (time_ns <= 0) return;
  // Without a probe of memory, what was reached is no roof.
  if (gbps > 0) raise(gbps, static_cast<double>(workload.bytes()) / time_ns);
  double& gflops = machine.gflops[workload.dtype()];
  if (direct && gflops > 0) raise(gflops, necessary_flops(workload) / time_ns);
}

double RecordedRoofs::bound_ns(const Workload& workload, const Target& target,
                               std::string_view algorithms) const {
  const auto found = machines_.find(target.name());
  if (found == machines_.end()) return 0;
  const Machine& machine = found->second;
  const int64_t bytes = workload.bytes();
  // Tasks of half the size may lie in a faster level, larger ones in no faster one.
  double gbps = 0;
  for (auto at = machine.gbps.lower_bound(bytes / 2); at != machine.gbps.end(); ++at) raise(gbps, at->second);
  if (gbps == 0 && !machine.gbps.empty()) gbps = machine.gbps.rbegin()->second;
  const double memory_ns = gbps > 0 ? static_cast<double>(bytes) / gbps : 0;

  const auto gflops = machine.gflops.find(workload.dtype());
  if (gflops == machine.gflops.end() || gflops->second <= 0) return memory_ns;
  const double share = least_share(workload, target, algorithms);
  double flops = necessary_flops(workload);
  if (share < 1) flops = std::min(flops, share * static_cast<double>(workload.flops()));
  return std::max(memory_ns, flops / gflops->second);
}

}  // namespace tuner
