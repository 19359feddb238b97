// What a warp's accesses cost: the addresses of its 32 lanes, evaluated at a few points of the kernel's run.
//
// A point is one warp of one block in one iteration of every loop around. The points are spread over blocks,
// warps and loops, so that guards and swizzles that change with them show; they are the same for every run.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "compiler_core/codegen_cuda/index_value.h"
#include "compiler_core/lower/gpu.h"

namespace tuner::cuda {

// Averages over the points, of one access by one warp; a point where no lane takes part counts 0.
struct AccessCost {
  double wavefronts = 0;  // passes through the memory pipe, 128 bytes each at best; shared: bank conflicts
  double conflicts = 0;   // of these, more than the words would need in other banks
  double sectors = 0;     // global: different 32-byte sectors
};

struct SharedPasses {
  int64_t all = 0;
  int64_t least = 0;  // with as many words in each bank
};
// Passes of one access to shared memory: `words` are the 4-byte words the lanes ask for, `width` side by side
// for each of at most 32 lanes. Lanes go together as 128 bytes have room for; one bank gives one word a pass,
// a word that several lanes of these ask for is given once. Of loads of 128 bits twice as many go together
// where lanes ask in twos for the same: all i and i ^ 1, or all i and i ^ 2. Measured on sm_90: bench_gpu
// --calibrate (lane_patterns.cpp).
SharedPasses shared_passes(const std::vector<int64_t>& words, int64_t width);
// Whether each lane asks for what that one asks for whose number differs in `bit`.
bool lanes_in_twos(std::span<const int64_t> words, size_t bit);

class WarpSampler {
 public:
  // Evaluations of an index or a condition for one lane, all in all. Beyond, accesses are taken for the best
  // ones and guards for true: a bound on time, far above what templates need.
  static constexpr int64_t kMaxEvaluations = 1 << 14;

  explicit WarpSampler(const GpuKernel& kernel);

  // What stands around the statements asked about, innermost last.
  void enter_loop(const Var& var, int64_t extent);
  void leave_loop();
  void enter_guard(const Expr& condition, bool expected);
  void leave_guard();

  // Share of the points at which some lane takes part.
  double active_share() const;
  // Share of the blocks that pass the guard of blocks around, if there is one: what is inside is looked at in
  // blocks that do.
  std::optional<double> block_share() const { return block_share_; }
  // An access of `width` elements side by side for each lane, from this one.
  AccessCost access(const BufferNode& buffer, const std::vector<Expr>& indices, int64_t width);
  // How many of the first `blocks` blocks (at most 128 are looked at) begin at different elements.
  double distinct_blocks(const BufferNode& buffer, const std::vector<Expr>& indices, int64_t blocks);

  int64_t evaluations() const { return evaluations_; }

 private:
  static constexpr int kPoints = 4, kLanes = 32;
  using Masks = std::array<uint32_t, kPoints>;
  using Values = VarValues;

  // A guard of blocks alone, with none around: the points move to blocks that pass it.
  struct BlockGuard {
    size_t depth = 0;  // of masks_, with it
    std::array<Values, kPoints> before;
  };
  bool is_of_blocks(const Expr& condition) const;
  void enter_block_guard(const Expr& condition, bool expected);

  bool exhausted() const { return evaluations_ > kMaxEvaluations; }
  int64_t evaluate(const Expr& e, const Values& values);
  void set_block(Values& values, int64_t block) const;
  void set_lane(Values& values, int point, int lane) const;
  AccessCost at_point(const BufferNode& buffer, const Expr& offset, int64_t width, int point);

  const GpuKernel& kernel_;
  int64_t warps_ = 1;
  std::array<Values, kPoints> values_;  // threads' and blocks' first, then loops
  std::vector<Masks> masks_;            // lanes that take part, by guards
  std::optional<BlockGuard> block_guard_;
  std::optional<double> block_share_;  // of the blocks that pass it
  int64_t evaluations_ = 0;
};

}  // namespace tuner::cuda
