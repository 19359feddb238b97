#include "tuner/daemon/tables/machine_bound.h"

#include <algorithm>
#include <type_traits>
#include <variant>

#include "compiler_core/target.h"

namespace tuner {
namespace {

// No clock runs at 20 GHz, and no call takes less than a cycle.
constexpr double kLeastPossibleNs = 0.05;

// Output positions along one axis whose window has at least one element of the image: others are only padding.
int64_t positions_with_work(int64_t out, int64_t in, int64_t kernel, int64_t stride, int64_t before,
                            int64_t dilation) {
  int64_t n = 0;
  for (int64_t o = 0; o < out; ++o) {
    const int64_t first = o * stride - before;
    // The first tap that is not before the image, if there is one, lies in it or behind it.
    const int64_t tap = first >= 0 ? 0 : (-first + dilation - 1) / dilation;
    n += tap < kernel && first + tap * dilation < in ? 1 : 0;
  }
  return n;
}

double product(std::initializer_list<int64_t> factors) {
  double p = 1;
  for (const int64_t f : factors) p *= static_cast<double>(f);
  return p;
}

}  // namespace

double least_operations(const Workload& workload) {
  const auto* const conv = workload.get_if<Conv2dWorkload>();
  if (conv == nullptr) return workload.memory_bound() ? 0 : static_cast<double>(workload.flops());
  const int64_t rows = positions_with_work(conv->out_height(), conv->in_height, conv->kernel_height,
                                           conv->stride[0], conv->padding[0], conv->dilation[0]);
  const int64_t columns = positions_with_work(conv->out_width(), conv->in_width, conv->kernel_width,
                                              conv->stride[1], conv->padding[1], conv->dilation[1]);
  return 2 * product({conv->batch, conv->out_channels, rows, columns, conv->in_channels / conv->groups});
}

double least_bytes(const Workload& workload) {
  const auto element = static_cast<double>(dtype_bytes(workload.dtype()));
  // Windows may leave out elements of the image, but every output is written.
  if (const auto* conv = workload.get_if<Conv2dWorkload>())
    return element * product({conv->batch, conv->out_channels, conv->out_height(), conv->out_width()});
  if (const auto* pool = workload.get_if<Pool2dWorkload>())
    return element * product({pool->batch, pool->channels, pool->out_height(), pool->out_width()});
  return static_cast<double>(workload.bytes());
}

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
    bound.least_ns = std::max({bound.least_ns, least_operations(*workload) / limits->ops_per_ns,
                               least_bytes(*workload) / limits->bytes_per_ns});
  return bound;
}

}  // namespace tuner
