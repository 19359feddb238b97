#include "compiler_core/codegen_cuda/sass/issue_floor.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler_core/base/int_math.h"
#include "compiler_core/codegen_cuda/device_rates.h"

namespace tuner::sass {
namespace {

constexpr int64_t kWarp = 32, kSchedulers = 4;

struct Pieces {
  double all = 0, of_kind = 0;  // instructions
  double a_piece() const { return of_kind > 0 ? all / of_kind : std::numeric_limits<double>::infinity(); }
};

// The fewest instructions that an iteration of the loop issues for one of the kind: what every iteration passes, and
// of the blocks that it may leave out those with many of the kind.
double fewest_a_piece(const KernelCode& code, int loop, Op kind) {
  Pieces sure;
  std::vector<Pieces> others;
  for (const int b : code.loops[static_cast<size_t>(loop)].blocks) {
    const Block& block = code.blocks[static_cast<size_t>(b)];
    if (code.loop_of[static_cast<size_t>(block.begin)] != loop) continue;
    Pieces pieces{.all = static_cast<double>(block.end - block.begin)};
    for (int at = block.begin; at < block.end; ++at)
      if (code.instructions[static_cast<size_t>(at)].op == kind) ++pieces.of_kind;
    if (block.sure)
      sure.all += pieces.all, sure.of_kind += pieces.of_kind;
    else if (pieces.of_kind > 0)
      others.push_back(pieces);
  }
  std::ranges::sort(others, {}, &Pieces::a_piece);
  for (const Pieces& other : others)
    if (other.a_piece() < sure.a_piece()) sure.all += other.all, sure.of_kind += other.of_kind;
  return sure.a_piece();
}

// At least so many instructions are issued in loops for `total` of one kind, of which `outside` may stand
// outside of loops: the loop that needs fewest for one of them may run them all.
double in_loops(const KernelCode& code, Op kind, double total, double outside) {
  double fewest = std::numeric_limits<double>::infinity();
  for (size_t l = 0; l < code.loops.size(); ++l)
    if (code.loops[l].own[kind] > 0)
      fewest = std::min(fewest, fewest_a_piece(code, static_cast<int>(l), kind));
  return std::isfinite(fewest) ? fewest * std::max(0.0, total - outside) : 0;
}

int outside_of_loops(const KernelCode& code, Op kind) {
  int count = code.mix[kind];
  for (const Loop& loop : code.loops) count -= loop.own[kind];
  return count;
}

double warp_instructions(const KernelCode& code, const LoweredCounts& counts) {
  double sum = 0;
  for (const Block& block : code.blocks)
    if (block.sure && code.loop_of[static_cast<size_t>(block.begin)] < 0) sum += block.end - block.begin;
  sum += in_loops(code, Op::kFfma, counts.multiply_adds, outside_of_loops(code, Op::kFfma));
  const bool apart = std::ranges::none_of(
      code.loops, [](const Loop& l) { return l.own[Op::kFfma] > 0 && l.own[Op::kBarrier] > 0; });
  if (apart) sum += in_loops(code, Op::kBarrier, counts.barriers, outside_of_loops(code, Op::kBarrier));
  return sum;
}

// Warps of the busiest scheduler, at least.
double warps_of_scheduler(const GpuKernel& kernel, const LoweredCounts& counts, int64_t multiprocessors) {
  const int64_t warps = ceil_div(kernel.block[0] * kernel.block[1] * kernel.block[2], kWarp);
  const auto all = static_cast<double>(kernel.grid[0] * kernel.grid[1] * kernel.grid[2]);
  const auto blocks = static_cast<int64_t>(std::llround(all * counts.active_blocks));
  if (!counts.blocks_differ)
    return static_cast<double>(ceil_div(ceil_div(blocks, multiprocessors) * warps, kSchedulers));
  // Spread evenly; but one block has the average or more.
  const double evenly =
      static_cast<double>(blocks * warps) / static_cast<double>(multiprocessors * kSchedulers);
  return std::max(evenly, static_cast<double>(ceil_div(warps, kSchedulers)));
}

}  // namespace

Result<IssueFloor> issue_floor(const KernelCode& code, const GpuKernel& kernel, const Target& target) {
  RETURN_IF_ERROR(code.verdict());
  if (code.indirect)
    return failed("machine code of ", code.name, ": has indirect jumps; no issue floor is given");
  const LoweredCounts counts = lowered_counts(kernel);
  const cuda::DeviceRates& rates = cuda::device_rates(target);
  IssueFloor floor{.warp_instructions = warp_instructions(code, counts)};
  const double a_lane = static_cast<double>(kWarp * kSchedulers) / static_cast<double>(rates.fp32_lanes);
  floor.ns = warps_of_scheduler(kernel, counts, rates.multiprocessors) *
             std::max(floor.warp_instructions, counts.multiply_adds * a_lane) / rates.clock_ghz;
  return floor;
}

Result<IssueFloor> issue_floor(const Artifact& artifact, const GpuProgram& program, const Target& target) {
  ASSIGN_OR_RETURN(const std::vector<KernelCode> codes, read_kernel_code(artifact.binary));
  IssueFloor sum;
  for (const GpuKernel& kernel : program.kernels) {
    const auto code = std::ranges::find(codes, kernel.name, &KernelCode::name);
    if (code == codes.end()) return failed(kernel.name, ": its machine code is not in the cubin");
    ASSIGN_OR_RETURN(const IssueFloor floor, issue_floor(*code, kernel, target));
    sum.ns += floor.ns;
    sum.warp_instructions += floor.warp_instructions;
  }
  return sum;
}

}  // namespace tuner::sass
