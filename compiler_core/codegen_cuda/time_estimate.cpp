#include "compiler_core/codegen_cuda/time_estimate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "compiler_core/base/int_math.h"
#include "compiler_core/codegen_cuda/cuda.h"
#include "compiler_core/codegen_cuda/device_rates.h"
#include "compiler_core/codegen_cuda/warp_work.h"

namespace tuner {
namespace {

using cuda::DeviceRates;
using cuda::GlobalTraffic;
using cuda::WarpCounts;
using cuda::WarpStep;
using cuda::WarpWork;

// Clocks, rounded from published microbenchmarks; the same for all architectures here.
constexpr double kArithmeticLatency = 4, kSharedLatency = 30, kShuffleLatency = 25, kBarrierLatency = 20,
                 kMmaLatency = 33, kL2Latency = 280, kDramLatency = 650;
// Of shared memory, that the compiler lets run ahead of what uses them.
constexpr double kLoadsAtOnce = 6;
constexpr double kSchedulers = 4;  // of a multiprocessor, an instruction each and clock
// Clocks in which a scheduler issues when nothing else holds it up: the best hand-written kernels reach that.
constexpr double kIssueShare = 0.93;
constexpr double kSectorBytes = 32;
constexpr double kFetchLatency = 250;  // clocks of a copy by TMA, beyond those of memory
constexpr double kL2PortBytes = 64;    // a clock, of one multiprocessor
constexpr double kL2SharedBytes = 24;  // a clock and multiprocessor when all of them ask
// Units that work at the same time are in each other's way: the norm of their times, nearly the largest.
constexpr double kNorm = 4;
// Share of L2 that the buffers of a kernel can count on from call to call.
constexpr double kL2Share = 0.8;
constexpr double kNever = std::numeric_limits<double>::infinity();

double norm(std::initializer_list<double> times) {
  double sum = 0;
  for (const double t : times) sum += std::pow(t, kNorm);
  return std::pow(sum, 1 / kNorm);
}

// Of the tensor cores of one scheduler.
double clocks_of_tiles(const WarpCounts& counts, const DeviceRates::TileClocks& clocks) {
  return counts.halves * clocks.halves + counts.bytes * clocks.bytes + counts.grouped * clocks.grouped;
}

// One block alone, all its warps step by step together: how long it takes, waiting included.
//
// In-order issue: a step begins when the registers it reads have arrived. While the last warp still issues a
// step, the first one's loads are under way.
class BlockAlone {
 public:
  BlockAlone(const DeviceRates& rates, double warps, double global_latency)
      : float_share_(128.0 / static_cast<double>(rates.fp32_lanes)),
        mma_(rates.mma),
        warps_(warps),
        global_latency_(global_latency) {}

  double clocks(const std::vector<WarpStep>& steps) {
    run(steps, 0);
    return now_;
  }

 private:
  static constexpr double kDotShare = 128.0 / static_cast<double>(cuda::kDotLanes);
  // Deeper loops count their first iteration for every one: each level doubles the work here.
  static constexpr int kMostDepth = 5;

  void run(const std::vector<WarpStep>& steps, int depth) {
    for (const WarpStep& s : steps) {
      if (s.kind == WarpStep::Kind::kLoop) {
        loop(s, depth);
        continue;
      }
      if (s.kind == WarpStep::Kind::kExpect) groups_.push_back(0);
      step(s);
      if (s.kind == WarpStep::Kind::kCommit) groups_.push_back(std::exchange(arriving_, 0));
      const auto committed = static_cast<int64_t>(groups_.size());
      if (s.kind == WarpStep::Kind::kWait && committed > s.in_flight)
        now_ = std::max(now_, groups_[static_cast<size_t>(committed - s.in_flight - 1)]);
    }
  }

  // The first iteration, and the second for all others: by then what goes on from one to the next does.
  void loop(const WarpStep& s, int depth) {
    double begin = now_;
    run(s.steps, depth + 1);
    if (s.extent < 2) return;
    if (depth < kMostDepth) {
      begin = now_;
      run(s.steps, depth + 1);
      skip((now_ - begin) * static_cast<double>(s.extent - 2));
    } else {
      skip((now_ - begin) * static_cast<double>(s.extent - 1));
    }
  }

  void skip(double clocks) {
    now_ += clocks;
    for (auto& [buffer, at] : ready_) at += clocks;
    for (double& at : groups_) at += clocks;
    engine_ += clocks;
  }

  // The device copies box after box while threads go on.
  void fetch(const WarpStep& s) {
    engine_ = std::max(engine_, now_) + s.fetched_bytes / kL2PortBytes;
    if (!groups_.empty())
      groups_.back() = std::max(groups_.back(), engine_ + kFetchLatency + global_latency_);
  }

  void step(const WarpStep& s) {
    for (const BufferNode* operand : s.operands)
      if (const auto at = ready_.find(operand); at != ready_.end()) now_ = std::max(now_, at->second);
    const double pipes = std::max({s.counts.instructions(), s.counts.arithmetic * float_share_,
                                   s.counts.dots * kDotShare, clocks_of_tiles(s.counts, mma_)});
    // A warp that has the scheduler for itself stands still between its instructions.
    const double alone = s.counts.clocks_alone() + s.counts.arithmetic * (float_share_ - 1);
    const double link = s.counts.tiles() > 0 ? kMmaLatency
                        : s.shuffles         ? kShuffleLatency
                                             : kArithmeticLatency;
    const double own = std::max({alone, pipes / kIssueShare, s.counts.wavefronts, s.chain * link});
    const double together =
        std::max({pipes / kIssueShare * std::ceil(warps_ / kSchedulers), s.counts.wavefronts * warps_,
                  s.counts.sectors * kSectorBytes / kL2PortBytes * warps_, own});
    const double latency = s.global_loads                       ? global_latency_
                           : s.shared_loads                     ? kSharedLatency
                           : s.kind == WarpStep::Kind::kBarrier ? kBarrierLatency
                                                                : 0;
    // What is loaded and used in one statement comes in parts: the compiler holds no more of it in registers.
    const double parts = s.shared_loads && !s.global_loads && !s.loads_go_on
                             ? std::max(1.0, s.counts[cuda::Issue::kAccess] / kLoadsAtOnce)
                             : 1;
    if (s.fetched_bytes > 0) fetch(s);
    const double arrived = now_ + own + parts * latency;
    now_ += together;
    if (s.is_async)
      arriving_ = std::max(arriving_, arrived);
    else if (s.loads_go_on)
      ready_[s.result] = arrived;
    else
      now_ = std::max(now_, arrived);
  }

  const double float_share_;
  const DeviceRates::TileClocks mma_;
  const double warps_, global_latency_;
  double now_ = 0;
  std::map<const BufferNode*, double> ready_;  // registers under way, when they arrive
  std::vector<double> groups_;                 // of asynchronous copies, when they arrive
  double arriving_ = 0;                        // those that are in no group yet
  double engine_ = 0;                          // when the copy engine is done
};

// A kernel on a device: the parts that do not depend on how full the device is.
class KernelModel {
 public:
  KernelModel(const GpuKernel& kernel, const Target& target)
      : rates_(cuda::device_rates(target)), resources_(estimate_resources(kernel, target)) {
    blocks_ = kernel.grid[0] * kernel.grid[1] * kernel.grid[2];
    fits_ = resources_.blocks_per_sm > 0 && blocks_ > 0;
    if (!fits_) return;
    const int64_t at_once = std::min(blocks_, rates_.multiprocessors * resources_.blocks_per_sm);
    work_ = cuda::warp_work(kernel, at_once);
    blocks_ = std::max<int64_t>(1, std::llround(static_cast<double>(blocks_) * work_.active_blocks));
    const int64_t warps = (resources_.threads + 31) / 32;
    warps_ = static_cast<double>(warps);
    waves_ = static_cast<double>(blocks_) / static_cast<double>(at_once);
    count_bytes();
    const double latency = dram_bytes_ > 0 ? kDramLatency : kL2Latency;
    // Without barriers warps go their own ways: the block is as slow as one of them.
    alone_ = BlockAlone(rates_, work_.has_barriers ? warps_ : 1, latency).clocks(work_.steps);
  }

  TimeEstimate estimate() const {
    TimeEstimate e{.ns = kNever, .launch_ns = kLaunchNs, .evaluations = work_.evaluations};
    if (!fits_) return e;
    const int64_t slots = rates_.multiprocessors * resources_.blocks_per_sm;
    const int64_t full = blocks_ / slots, rest = blocks_ % slots;
    double clocks = 0;
    const auto add_waves = [&](int64_t blocks, int64_t count) {
      if (blocks == 0 || count == 0) return;
      const Wave w = wave(blocks);
      const auto times = static_cast<double>(count);
      if (clocks == 0) e.bound = w.bound();
      clocks += times * w.clocks();
      e.issue_ns += times * w.issue, e.shared_ns += times * w.shared;
      e.l2_ns += times * w.l2, e.alone_ns += times * w.alone;
    };
    add_waves(slots, full);
    add_waves(rest, 1);
    e.dram_ns = dram_bytes_ / rates_.dram_bytes_per_clock();
    if (e.dram_ns > clocks) e.bound = TimeBound::kMemory;
    clocks = norm({clocks, e.dram_ns});
    for (double* part : {&e.issue_ns, &e.shared_ns, &e.l2_ns, &e.dram_ns, &e.alone_ns})
      *part /= rates_.clock_ghz;
    e.ns = kLaunchNs + clocks / rates_.clock_ghz;
    return e;
  }

 private:
  // Bytes between a block and L2, and of the whole kernel behind L2.
  void count_bytes() {
    double everything = 0;
    for (const GlobalTraffic& t : work_.traffic) everything += static_cast<double>(t.buffer->bytes());
    const bool stays_in_l2 = everything <= kL2Share * static_cast<double>(rates_.l2_bytes);
    const double l1_bytes = static_cast<double>(rates_.cache_bytes_per_sm) / resources_.blocks_per_sm -
                            static_cast<double>(resources_.shared_bytes);
    for (const GlobalTraffic& t : work_.traffic) {
      const double asked = t.load_sectors * kSectorBytes * warps_;
      const double loaded = t.block_bytes <= l1_bytes ? std::min(asked, t.block_bytes) : asked;
      const double stored = t.store_sectors * kSectorBytes * warps_;
      l2_bytes_ += loaded + stored;
      if (stays_in_l2) continue;
      const double of_wave = std::min({(loaded + stored) * t.wave_blocks, t.block_bytes * t.wave_blocks,
                                       static_cast<double>(t.buffer->bytes())});
      dram_bytes_ += of_wave * waves_;
    }
  }

  // Of the multiprocessor with most of `blocks` blocks that begin together, spread as evenly as they go.
  double blocks_of_sm(int64_t blocks) const {
    return static_cast<double>(ceil_div(blocks, std::min(blocks, rates_.multiprocessors)));
  }

  // Clocks in which the scheduler with most warps issues them: a block of two or three leaves others idle.
  double issue_clocks(int64_t blocks) const {
    const double warps = std::ceil(warps_ * blocks_of_sm(blocks) / kSchedulers);
    const WarpCounts& counts = work_.counts;
    return warps / kIssueShare *
           std::max({counts.instructions(),
                     counts.arithmetic * 32 * kSchedulers / static_cast<double>(rates_.fp32_lanes),
                     counts.dots * 32 * kSchedulers / static_cast<double>(cuda::kDotLanes),
                     clocks_of_tiles(counts, rates_.mma)});
  }

  // Clocks of blocks that begin together, by what holds them up.
  struct Wave {
    double issue = 0, shared = 0, l2 = 0, alone = 0;

    double clocks() const { return std::max(norm({issue, shared, l2}), alone); }
    TimeBound bound() const {
      const std::array<double, 4> times = {issue, shared, l2, alone};
      constexpr std::array kBounds = {TimeBound::kArithmetic, TimeBound::kSharedMemory, TimeBound::kMemory,
                                      TimeBound::kLatency};
      return kBounds[static_cast<size_t>(std::max_element(times.begin(), times.end()) - times.begin())];
    }
  };
  Wave wave(int64_t blocks) const {
    const int64_t busy = std::min(blocks, rates_.multiprocessors);
    const double of_sm = blocks_of_sm(blocks);
    const double l2_rate =
        std::min(kL2PortBytes,
                 kL2SharedBytes * static_cast<double>(rates_.multiprocessors) / static_cast<double>(busy));
    return {.issue = issue_clocks(blocks),
            .shared = work_.counts.wavefronts * warps_ * of_sm,
            .l2 = l2_bytes_ * of_sm / l2_rate,
            .alone = alone_};
  }

  const DeviceRates& rates_;
  const ResourceEstimate resources_;
  int64_t blocks_ = 0;
  bool fits_ = false;
  WarpWork work_;
  double warps_ = 0;  // of a block
  double waves_ = 0;
  double l2_bytes_ = 0;    // of a block
  double dram_bytes_ = 0;  // of the kernel; 0: its buffers stay in L2 from call to call
  double alone_ = 0;       // clocks of a block with nobody beside it
};

}  // namespace

std::string_view time_bound_name(TimeBound bound) {
  switch (bound) {
    case TimeBound::kArithmetic:
      return "arithmetic";
    case TimeBound::kSharedMemory:
      return "shared memory";
    case TimeBound::kMemory:
      return "memory";
    case TimeBound::kLatency:
      break;
  }
  return "latency";
}

TimeEstimate estimate_time(const GpuKernel& kernel, const Target& target) {
  return KernelModel(kernel, target).estimate();
}

TimeEstimate estimate_time(const GpuProgram& program, const Target& target) {
  TimeEstimate sum;
  double longest = -1;
  for (const GpuKernel& kernel : program.kernels) {
    const TimeEstimate e = estimate_time(kernel, target);
    sum.ns += e.ns;
    sum.launch_ns += e.launch_ns;
    sum.issue_ns += e.issue_ns, sum.shared_ns += e.shared_ns;
    sum.l2_ns += e.l2_ns, sum.dram_ns += e.dram_ns, sum.alone_ns += e.alone_ns;
    sum.evaluations += e.evaluations;
    if (e.ns > longest) longest = e.ns, sum.bound = e.bound;
  }
  return sum;
}

}  // namespace tuner
