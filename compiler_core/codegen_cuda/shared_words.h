// Passes of shared memory that a warp cannot do without, from the statements of a lowered kernel.
//
// What other threads may write is loaded again after a barrier, so that a thread loads each word that it
// reads between two barriers once at least, however the compiler orders, merges or hoists its loads. A pass
// gives a word to each of 32 lanes; but in loads of 128 bits lanes that ask in twos for the same, i and i ^ 1
// or i and i ^ 2, go together, and a word takes half a pass (shared_passes, warp_access.h). A pass takes a
// word of each of 32 lanes, which write to different ones. Bank conflicts come on top of that.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "compiler_core/codegen_cuda/index_value.h"
#include "compiler_core/lower/gpu.h"

namespace tuner::cuda {

// One turn of a loop with a barrier, without such loops inside: what a thread loads and stores there of
// 4-byte elements. Two samples of it are looked at, the first block, warp and turn and the last ones; the
// fewer passes count.
class SharedRound {
 public:
  struct Loop {
    Var var;
    int64_t extent;
  };

  // `rounds`: loops with barriers around, the round's own innermost.
  SharedRound(const GpuKernel& kernel, const std::vector<Loop>& rounds);
  // A load or store in all iterations of the loops `inside` the round that its indices use. Beyond a number
  // of points in all it is left out.
  void add(const Buffer& buffer, const std::vector<Expr>& indices, bool is_store,
           const std::vector<Loop>& inside);
  double least_passes() const;

 private:
  static constexpr int kLanes = 32;
  struct Words {
    std::vector<int64_t> offsets;  // with repetitions
    bool in_twos = false;          // some load
  };
  struct Sample {
    VarValues values;
    int64_t warp = 0;
    std::map<std::pair<Buffer, bool>, Words> words;  // loaded; stored (true)
  };

  void set_lane(Sample& sample, int lane) const;
  bool in_twos(Sample& sample, const Expr& offset) const;

  const GpuKernel* kernel_;
  int64_t points_ = 0;
  std::vector<Sample> samples_;
};

}  // namespace tuner::cuda
