#include "compiler_core/codegen_cuda/issue_floor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "compiler_core/base/int_math.h"
#include "compiler_core/codegen_cuda/device_rates.h"

namespace tuner::sass {
namespace {

constexpr int64_t kWarp = 32, kSchedulers = 4;

// What a block of instructions costs one warp, whoever else runs.
using CostOf = double (*)(const KernelCode&, const Block&);

double issued(const KernelCode& /*code*/, const Block& block) { return block.end - block.begin; }

// Passes of the pipe to shared and global memory, of which a multiprocessor has one: an access takes one at
// least. A load of 128 bits from shared memory takes two, whatever its lanes ask for: so it was measured on
// sm_90 (shared_passes, warp_access.h).
double passes(const KernelCode& code, const Block& block) {
  double count = 0;
  for (int at = block.begin; at < block.end; ++at) {
    const Op op = code.instructions[static_cast<size_t>(at)].op;
    count += (op >= Op::kLds32 && op <= Op::kStg) || op == Op::kLocalLoad || op == Op::kLocalStore;
    count += op == Op::kLds128;
  }
  return count;
}
double passes_beside_shared(const KernelCode& code, const Block& block) {
  double count = 0;
  for (int at = block.begin; at < block.end; ++at) {
    const Op op = code.instructions[static_cast<size_t>(at)].op;
    count += (op >= Op::kLdg32 && op <= Op::kStg) || op == Op::kLocalLoad || op == Op::kLocalStore;
  }
  return count;
}

// Clocks until what a scoreboard stands for can be there, at best: loads find what they want in L1.
int least_latency(Op op) {
  switch (op) {
    case Op::kLds32:
    case Op::kLds64:
    case Op::kLds128:
      return 20;
    case Op::kLdg32:
    case Op::kLdg64:
    case Op::kLdg128:
      return 30;
    default:
      return 4;
  }
}

// Clocks from the first instruction to the one after the last, for a warp that nobody is in the way of:
// stalls, and waiting for what the block itself has loaded.
double clocks_alone(const KernelCode& code, const Block& block) {
  std::array<int64_t, 6> free{};
  int64_t now = 0;
  for (int at = block.begin; at < block.end; ++at) {
    const Instruction& i = code.instructions[static_cast<size_t>(at)];
    for (size_t s = 0; s < free.size(); ++s)
      if ((i.waits >> s & 1) != 0) now = std::max(now, free[s]);
    if (i.write_scoreboard >= 0) {
      int64_t& until = free[static_cast<size_t>(i.write_scoreboard)];
      until = std::max(until, now + least_latency(i.op));
    }
    now += std::max<int64_t>(1, i.stall);
  }
  return static_cast<double>(now);
}

double stalls(const KernelCode& code, const Block& block) {
  double count = 0;
  for (int at = block.begin; at < block.end; ++at)
    count += std::max<int>(1, code.instructions[static_cast<size_t>(at)].stall);
  return count;
}

struct Pieces {
  double cost = 0, of_kind = 0;
  double a_piece() const { return of_kind > 0 ? cost / of_kind : std::numeric_limits<double>::infinity(); }
};

// The least that an iteration of the loop costs for one instruction of the kind: what every iteration passes,
// and of the blocks that it may leave out those with many of the kind.
double least_a_piece(const KernelCode& code, int loop, Op kind, CostOf cost) {
  Pieces sure;
  std::vector<Pieces> others;
  for (const int b : code.loops[static_cast<size_t>(loop)].blocks) {
    const Block& block = code.blocks[static_cast<size_t>(b)];
    if (code.loop_of[static_cast<size_t>(block.begin)] != loop) continue;
    Pieces pieces;
    for (int at = block.begin; at < block.end; ++at)
      if (code.instructions[static_cast<size_t>(at)].op == kind) ++pieces.of_kind;
    if (!block.sure && pieces.of_kind == 0) continue;
    pieces.cost = cost(code, block);
    if (block.sure)
      sure.cost += pieces.cost, sure.of_kind += pieces.of_kind;
    else
      others.push_back(pieces);
  }
  std::ranges::sort(others, {}, &Pieces::a_piece);
  for (const Pieces& other : others)
    if (other.a_piece() < sure.a_piece()) sure.cost += other.cost, sure.of_kind += other.of_kind;
  return sure.a_piece();
}

// What loops cost at least for `total` instructions of one kind, of which `outside` may stand outside of
// loops: the loop that is cheapest for one of them may run them all.
double in_loops(const KernelCode& code, Op kind, double total, double outside, CostOf cost) {
  double least = std::numeric_limits<double>::infinity();
  for (size_t l = 0; l < code.loops.size(); ++l)
    if (code.loops[l].own[kind] > 0)
      least = std::min(least, least_a_piece(code, static_cast<int>(l), kind, cost));
  return std::isfinite(least) ? least * std::max(0.0, total - outside) : 0;
}

int outside_of_loops(const KernelCode& code, Op kind) {
  int count = code.mix[kind];
  for (const Loop& loop : code.loops) count -= loop.own[kind];
  return count;
}

bool share_a_loop(const KernelCode& code, Op one, Op other) {
  return std::ranges::any_of(code.loops, [&](const Loop& l) { return l.own[one] > 0 && l.own[other] > 0; });
}

// Of one warp, from its first instruction to its last.
double least_cost(const KernelCode& code, const LoweredCounts& counts, CostOf cost) {
  double sum = 0;
  for (const Block& block : code.blocks)
    if (block.sure && code.loop_of[static_cast<size_t>(block.begin)] < 0) sum += cost(code, block);
  const auto work = [&](Op kind, double total) {
    return in_loops(code, kind, total, outside_of_loops(code, kind), cost);
  };
  // How fast a pipe takes dot products is assumed (device_rates.h), so a floor counts no more than their
  // issue.
  const std::pair<Op, double> kinds[] = {{Op::kFfma, work(Op::kFfma, counts.multiply_adds)},
                                         {Op::kDot, work(Op::kDot, counts.dots)},
                                         {Op::kMma, work(Op::kMma, counts.tiles)}};
  double most = 0, all = 0;
  bool together = false, apart = true;
  for (size_t i = 0; i < std::size(kinds); ++i) {
    most = std::max(most, kinds[i].second);
    all += kinds[i].second;
    apart = apart && !share_a_loop(code, kinds[i].first, Op::kBarrier);
    for (size_t j = 0; j < i; ++j) together = together || share_a_loop(code, kinds[i].first, kinds[j].first);
  }
  // One loop may do several at once: its cost counts once.
  sum += together ? most : all;
  if (apart) sum += in_loops(code, Op::kBarrier, counts.barriers, outside_of_loops(code, Op::kBarrier), cost);
  return sum;
}

// How the blocks that have work are spread, at best.
struct Spread {
  double scheduler_warps = 0, multiprocessor_warps = 0;  // of the busiest
  double rounds = 1;                                     // of blocks, one after the other
};
Spread spread_of(const GpuKernel& kernel, const LoweredCounts& counts, int64_t multiprocessors,
                 int resident) {
  const int64_t warps = ceil_div(kernel.block[0] * kernel.block[1] * kernel.block[2], kWarp);
  const auto all = static_cast<double>(kernel.grid[0] * kernel.grid[1] * kernel.grid[2]);
  const auto blocks = static_cast<int64_t>(std::llround(all * counts.active_blocks));
  if (counts.blocks_differ) {
    // Evenly; but one block has the average or more.
    const double evenly = static_cast<double>(blocks * warps) / static_cast<double>(multiprocessors);
    return {
        .scheduler_warps = std::max(evenly / kSchedulers, static_cast<double>(ceil_div(warps, kSchedulers))),
        .multiprocessor_warps = std::max(evenly, static_cast<double>(warps))};
  }
  const int64_t busiest = ceil_div(blocks, multiprocessors);
  return {.scheduler_warps = static_cast<double>(ceil_div(busiest * warps, kSchedulers)),
          .multiprocessor_warps = static_cast<double>(busiest * warps),
          .rounds = resident > 0 ? static_cast<double>(ceil_div(busiest, int64_t{resident})) : 1};
}

}  // namespace

Result<IssueFloor> issue_floor(const KernelCode& code, const GpuKernel& kernel, const Target& target,
                               int resident_blocks) {
  RETURN_IF_ERROR(code.verdict());
  if (code.indirect)
    return failed("machine code of ", code.name, ": has indirect jumps; no issue floor is given");
  const LoweredCounts counts = lowered_counts(kernel);
  const cuda::DeviceRates& rates = cuda::device_rates(target);
  const Spread spread = spread_of(kernel, counts, rates.multiprocessors, resident_blocks);
  IssueFloor floor{.warp_instructions = least_cost(code, counts, issued),
                   .warp_clocks = least_cost(code, counts, clocks_alone),
                   .warp_stalls = least_cost(code, counts, stalls)};
  const double a_lane = static_cast<double>(kWarp * kSchedulers) / static_cast<double>(rates.fp32_lanes);
  const double issue =
      spread.scheduler_warps *
      std::max({floor.warp_instructions, counts.multiply_adds * a_lane,
                counts.halves * rates.least_mma.halves + counts.bytes * rates.least_mma.bytes +
                    counts.grouped * rates.least_mma.grouped});
  const double memory = std::max(least_cost(code, counts, passes),
                                 least_cost(code, counts, passes_beside_shared) + counts.shared_passes);
  const double others = std::max(spread.multiprocessor_warps * memory, spread.rounds * floor.warp_clocks);
  floor.issue_ns = issue / rates.clock_ghz;
  floor.ns = std::max(issue, others) / rates.clock_ghz;
  return floor;
}

Result<IssueFloor> issue_floor(const Artifact& artifact, const GpuProgram& program, const Target& target) {
  ASSIGN_OR_RETURN(const std::vector<KernelCode> codes, read_kernel_code(artifact.binary));
  IssueFloor sum;
  for (const GpuKernel& kernel : program.kernels) {
    const auto code = std::ranges::find(codes, kernel.name, &KernelCode::name);
    if (code == codes.end()) return failed(kernel.name, ": its machine code is not in the cubin");
    const auto launch = std::ranges::find(artifact.manifest.launches, kernel.name, &LaunchInfo::kernel);
    const int resident = launch == artifact.manifest.launches.end() ? 0 : launch->blocks_per_sm;
    ASSIGN_OR_RETURN(const IssueFloor floor, issue_floor(*code, kernel, target, resident));
    sum.ns += floor.ns;
    sum.issue_ns += floor.issue_ns;
    sum.warp_clocks += floor.warp_clocks;
    sum.warp_stalls += floor.warp_stalls;
    sum.warp_instructions += floor.warp_instructions;
  }
  return sum;
}

}  // namespace tuner::sass
