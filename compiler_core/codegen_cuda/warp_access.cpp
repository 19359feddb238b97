#include "compiler_core/codegen_cuda/warp_access.h"

#include <algorithm>
#include <array>
#include <bit>
#include <set>
#include <span>

#include "compiler_core/base/int_math.h"
#include "compiler_core/ir/layout.h"
#include "compiler_core/ir/visitor.h"

namespace tuner::cuda {
namespace {

constexpr int64_t kBanks = 32, kWordBytes = 4, kLineBytes = 128, kSectorBytes = 32;
constexpr int64_t kMostBlocks = 128, kMostGuardedBlocks = 512;

// Where point `point` of `points` lies in 0..extent. Each variable takes the strata in another order, so that
// two of them do not always grow together.
int64_t spread(int point, int points, size_t order, int64_t extent) {
  const int64_t stratum = point ^ static_cast<int>(order % static_cast<size_t>(points));
  return (2 * stratum + 1) * extent / (int64_t{2} * points);
}

template <class T>
int64_t distinct(std::vector<T>& values) {
  std::sort(values.begin(), values.end());
  return std::unique(values.begin(), values.end()) - values.begin();
}

// Passes of lanes that are served together: a word is read once, words of one bank follow each other.
SharedPasses passes_of(std::span<const int64_t> words, int64_t width) {
  std::set<int64_t> given;
  std::array<int64_t, kBanks> of_bank{};
  for (const int64_t first : words)
    for (int64_t w = first; w < first + width; ++w)
      if (given.insert(w).second) ++of_bank[static_cast<size_t>(w & (kBanks - 1))];
  return {.all = *std::max_element(of_bank.begin(), of_bank.end()),
          .least = ceil_div(static_cast<int64_t>(given.size()), int64_t{kBanks})};
}

}  // namespace

bool lanes_in_twos(std::span<const int64_t> words, size_t bit) {
  for (size_t i = 0; i < words.size(); ++i)
    if ((i ^ bit) < words.size() && words[i] != words[i ^ bit]) return false;
  return true;
}

SharedPasses shared_passes(const std::vector<int64_t>& words, int64_t width) {
  const std::span<const int64_t> all(words);
  const auto lanes = static_cast<size_t>(std::max<int64_t>(1, kBanks / width));
  SharedPasses passes;
  for (size_t begin = 0; begin < all.size();) {
    const auto group = [&](size_t n) { return all.subspan(begin, std::min(n, all.size() - begin)); };
    const std::span<const int64_t> two = group(2 * lanes);
    const bool together = width == 4 && (lanes_in_twos(two, 1) || lanes_in_twos(two, 2));
    const std::span<const int64_t> served = together ? two : group(lanes);
    const SharedPasses of_group = passes_of(served, width);
    passes.all += of_group.all;
    passes.least += of_group.least;
    begin += served.size();
  }
  return passes;
}

WarpSampler::WarpSampler(const GpuKernel& kernel) : kernel_(kernel) {
  const int64_t threads = kernel.block[0] * kernel.block[1] * kernel.block[2];
  const int64_t blocks = kernel.grid[0] * kernel.grid[1] * kernel.grid[2];
  warps_ = (threads + kLanes - 1) / kLanes;
  Masks masks{};
  for (int p = 0; p < kPoints; ++p) {
    for (int d = 0; d < 3; ++d) values_[p].emplace_back(kernel.thread_vars[d].get(), 0);
    for (int d = 0; d < 3; ++d) values_[p].emplace_back(kernel.block_vars[d].get(), 0);
    set_block(values_[p], spread(p, kPoints, 1, blocks));
    const int64_t lanes = std::min<int64_t>(kLanes, threads - spread(p, kPoints, 0, warps_) * kLanes);
    masks[p] = lanes >= kLanes ? ~0u : (1u << std::max<int64_t>(0, lanes)) - 1;
  }
  masks_.push_back(masks);
}

void WarpSampler::enter_loop(const Var& var, int64_t extent) {
  for (int p = 0; p < kPoints; ++p)
    values_[p].emplace_back(var.get(), spread(p, kPoints, values_[p].size(), extent));
}

void WarpSampler::leave_loop() {
  for (Values& values : values_) values.pop_back();
}

bool WarpSampler::is_of_blocks(const Expr& condition) const {
  bool only = true;
  visit(condition, [&](const Expr& e) {
    if (e->kind == ExprKind::kLoad) only = false;
    if (e->kind == ExprKind::kVar) only = only && std::ranges::count(kernel_.block_vars, e->var) > 0;
  });
  return only;
}

void WarpSampler::enter_block_guard(const Expr& condition, bool expected) {
  const int64_t blocks = kernel_.grid[0] * kernel_.grid[1] * kernel_.grid[2];
  const int64_t looked_at = std::min(blocks, kMostGuardedBlocks);
  block_guard_ = BlockGuard{.depth = masks_.size() + 1, .before = values_};
  Values values = values_[0];
  std::vector<int64_t> passing;
  for (int64_t i = 0; i < looked_at && !exhausted(); ++i) {
    const int64_t block = i * blocks / looked_at;
    set_block(values, block);
    if ((evaluate(condition, values) != 0) == expected) passing.push_back(block);
  }
  block_share_ = looked_at > 0 ? static_cast<double>(passing.size()) / static_cast<double>(looked_at) : 0;
  if (passing.empty()) return;
  for (int p = 0; p < kPoints; ++p)
    set_block(values_[p],
              passing[static_cast<size_t>(spread(p, kPoints, 1, static_cast<int64_t>(passing.size())))]);
}

void WarpSampler::leave_guard() {
  if (block_guard_.has_value() && block_guard_->depth == masks_.size()) {
    values_ = block_guard_->before;
    block_guard_.reset();
    block_share_.reset();
  }
  masks_.pop_back();
}

void WarpSampler::enter_guard(const Expr& condition, bool expected) {
  Masks masks = masks_.back();
  if (!block_guard_.has_value() && masks_.size() == 1 && is_of_blocks(condition)) {
    enter_block_guard(condition, expected);
    masks_.push_back(*block_share_ > 0 ? masks : Masks{});
    return;
  }
  for (int p = 0; p < kPoints && !exhausted(); ++p)
    for (int lane = 0; lane < kLanes; ++lane) {
      if ((masks[p] >> lane & 1) == 0) continue;
      set_lane(values_[p], p, lane);
      if ((evaluate(condition, values_[p]) != 0) != expected) masks[p] &= ~(1u << lane);
    }
  masks_.push_back(masks);
}

double WarpSampler::active_share() const {
  return static_cast<double>(std::count_if(masks_.back().begin(), masks_.back().end(),
                                           [](uint32_t mask) { return mask != 0; })) /
         kPoints;
}

AccessCost WarpSampler::access(const BufferNode& buffer, const std::vector<Expr>& indices, int64_t width) {
  AccessCost sum;
  const Expr offset = storage_offset(buffer, indices);
  for (int p = 0; p < kPoints; ++p) {
    const AccessCost cost = at_point(buffer, offset, width, p);
    sum.wavefronts += cost.wavefronts / kPoints;
    sum.sectors += cost.sectors / kPoints;
    sum.conflicts += cost.conflicts / kPoints;
  }
  return sum;
}

AccessCost WarpSampler::at_point(const BufferNode& buffer, const Expr& offset, int64_t width, int point) {
  const uint32_t mask = masks_.back()[point];
  const int64_t bytes = dtype_bytes(buffer.dtype) * width;
  AccessCost cost;
  if (exhausted()) {
    const auto together = static_cast<double>(bytes * std::popcount(mask));
    return {.wavefronts = together / kLineBytes, .sectors = together / kSectorBytes};
  }
  std::vector<int64_t> words, lines, sectors;
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    set_lane(values_[point], point, lane);
    const int64_t address = evaluate(offset, values_[point]) * dtype_bytes(buffer.dtype);
    words.push_back(floor_quotient(address, kWordBytes));
    lines.push_back(floor_quotient(address, kLineBytes));
    for (int64_t at = address; at < address + bytes; at += kSectorBytes)
      sectors.push_back(floor_quotient(at, kSectorBytes));
  }
  if (words.empty()) return cost;
  if (buffer.scope == MemoryScope::kShared) {
    const SharedPasses passes = shared_passes(words, std::max<int64_t>(1, bytes / kWordBytes));
    cost.wavefronts = static_cast<double>(passes.all);
    cost.conflicts = static_cast<double>(passes.all - passes.least);
  } else {
    cost.sectors = static_cast<double>(distinct(sectors));
    cost.wavefronts = static_cast<double>(distinct(lines));
  }
  return cost;
}

double WarpSampler::distinct_blocks(const BufferNode& buffer, const std::vector<Expr>& indices,
                                    int64_t blocks) {
  const int64_t looked_at = std::min(blocks, kMostBlocks);
  const Expr offset = storage_offset(buffer, indices);
  Values values = values_[0];
  for (auto& [var, value] : values) value = 0;
  std::vector<int64_t> begins;
  for (int64_t block = 0; block < looked_at && !exhausted(); ++block) {
    set_block(values, block);
    begins.push_back(evaluate(offset, values));
  }
  return static_cast<double>(distinct(begins) * blocks) /
         static_cast<double>(std::max<int64_t>(1, looked_at));
}

void WarpSampler::set_block(Values& values, int64_t block) const {
  const int64_t x = std::max<int64_t>(1, kernel_.grid[0]), y = std::max<int64_t>(1, kernel_.grid[1]);
  values[3].second = block % x;
  values[4].second = block / x % y;
  values[5].second = block / x / y;
}

void WarpSampler::set_lane(Values& values, int point, int lane) const {
  const int64_t x = std::max<int64_t>(1, kernel_.block[0]), y = std::max<int64_t>(1, kernel_.block[1]);
  const int64_t thread = spread(point, kPoints, 0, warps_) * kLanes + lane;
  values[0].second = thread % x;
  values[1].second = thread / x % y;
  values[2].second = thread / x / y;
}

// Each call from outside counts once, whatever the size of the expression.
int64_t WarpSampler::evaluate(const Expr& e, const Values& values) {
  ++evaluations_;
  return index_value(e, values);
}

}  // namespace tuner::cuda
