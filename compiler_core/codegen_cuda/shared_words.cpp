#include "compiler_core/codegen_cuda/shared_words.h"

#include <algorithm>
#include <array>
#include <span>

#include "compiler_core/base/int_math.h"
#include "compiler_core/codegen_cuda/warp_access.h"
#include "compiler_core/ir/layout.h"
#include "compiler_core/ir/visitor.h"

namespace tuner::cuda {
namespace {

// Points at which offsets are evaluated in a round, at most: some 0.1 us each.
constexpr int64_t kMostPoints = int64_t{1} << 14;

}  // namespace

SharedRound::SharedRound(const GpuKernel& kernel, const std::vector<Loop>& rounds) : kernel_(&kernel) {
  const int64_t threads = kernel.block[0] * kernel.block[1] * kernel.block[2];
  for (const bool last : {false, true}) {
    Sample& sample = samples_.emplace_back();
    sample.warp = last ? ceil_div(threads, int64_t{kLanes}) - 1 : 0;
    for (size_t d = 0; d < 3; ++d) sample.values.emplace_back(kernel.thread_vars[d].get(), 0);
    for (size_t d = 0; d < 3; ++d)
      sample.values.emplace_back(kernel.block_vars[d].get(), last ? kernel.grid[d] - 1 : 0);
    for (const Loop& loop : rounds) sample.values.emplace_back(loop.var.get(), last ? loop.extent - 1 : 0);
  }
}

void SharedRound::set_lane(Sample& sample, int lane) const {
  const int64_t x = std::max<int64_t>(1, kernel_->block[0]), y = std::max<int64_t>(1, kernel_->block[1]);
  const int64_t thread = sample.warp * kLanes + lane;
  sample.values[0].second = thread % x;
  sample.values[1].second = thread / x % y;
  sample.values[2].second = thread / x / y;
}

// Whether lanes of half a warp, or more, go together in a load of 128 bits at this offset.
bool SharedRound::in_twos(Sample& sample, const Expr& offset) const {
  const int64_t threads = kernel_->block[0] * kernel_->block[1] * kernel_->block[2];
  const int64_t lanes = std::min<int64_t>(kLanes, threads - sample.warp * kLanes);
  if (lanes < kLanes) return true;
  std::vector<int64_t> words;
  for (int lane = 0; lane < kLanes; ++lane) {
    set_lane(sample, lane);
    words.push_back(index_value(offset, sample.values));
  }
  const std::span<const int64_t> all(words);
  return std::ranges::any_of(std::array{all.first(kLanes / 2), all.last(kLanes / 2)}, [](const auto& half) {
    return lanes_in_twos(half, 1) || lanes_in_twos(half, 2);
  });
}

void SharedRound::add(const Buffer& buffer, const std::vector<Expr>& indices, bool is_store,
                      const std::vector<Loop>& inside) {
  if (buffer->scope != MemoryScope::kShared || dtype_bytes(buffer->dtype) != 4) return;
  const Expr offset = storage_offset(*buffer, indices);
  std::vector<Loop> used;
  std::vector<int64_t> extents;
  int64_t points = 1;
  for (const Loop& loop : inside)
    if (uses_var(offset, loop.var)) {
      used.push_back(loop);
      extents.push_back(loop.extent);
      points = points > kMostPoints ? points : points * loop.extent;
    }
  if (points_ + points > kMostPoints) return;
  points_ += points;
  for (Sample& sample : samples_) {
    const size_t around = sample.values.size();
    for (const Loop& loop : used) sample.values.emplace_back(loop.var.get(), 0);
    Words& words = sample.words[{buffer, is_store}];
    for (const bool last : {false, true}) {
      for (size_t i = 0; i < used.size(); ++i)
        sample.values[around + i].second = last ? used[i].extent - 1 : 0;
      words.in_twos = words.in_twos || (!is_store && in_twos(sample, offset));
    }
    set_lane(sample, 0);
    for_each_point(sample.values, around, extents,
                   [&] { words.offsets.push_back(index_value(offset, sample.values)); });
    sample.values.resize(around);
  }
}

double SharedRound::least_passes() const {
  std::vector<double> passes;
  for (const Sample& sample : samples_) {
    double& sum = passes.emplace_back();
    for (const auto& [place, words] : sample.words) {
      std::vector<int64_t> offsets = words.offsets;
      std::ranges::sort(offsets);
      const auto distinct = std::unique(offsets.begin(), offsets.end()) - offsets.begin();
      sum += static_cast<double>(distinct) * (words.in_twos ? 0.5 : 1);
    }
  }
  return std::ranges::min(passes);
}

}  // namespace tuner::cuda
