#include "templates/cuda/cuda_stages.h"

#include <algorithm>
#include <set>

#include "compiler_core/ir/visitor.h"
#include "templates/fragment_stages.h"

namespace tuner::cuda {
namespace {

using fragment::attempt;
using fragment::Stage;
using fragment::stages_of;

constexpr int64_t kLongSum = 128;  // terms; shorter ones are a thread's

// How a config schedules each stage.
struct StageTile {
  int64_t threads, vector, lanes;
};

int64_t extent_of(Schedule& s, const std::vector<Axis>& axes) {
  int64_t n = 1;
  for (const Axis& axis : axes) n *= s.extent(axis);
  return n;
}

// Several threads may share it: they combine float32 by shuffles, and read side by side what lies so.
bool is_long(Schedule& s, const Stage& stage) {
  if (!stage.is_sum() || stage.buffer->dtype != DType::kFloat32) return false;
  const Tensor tensor{stage.buffer};
  const std::vector<Axis> axes = s.spatial_axes(tensor), sums = s.reduce_axis_list(tensor);
  if (s.refused() || axes.empty() || sums.empty() || extent_of(s, sums) < kLongSum) return false;
  return fragment::along(*stage.store, sums.back().var) >= fragment::along(*stage.store, axes.back().var);
}

// All axes of the stage as one loop, which blocks and threads share. Returns the loop of the threads.
Axis share(Schedule& s, const Tensor& tensor, const StageTile& tile) {
  std::vector<Axis> axes = s.spatial_axes(tensor);
  if (s.refused() || axes.empty()) return {};
  Axis lane;
  if (tile.vector > 1 && s.extent(axes.back()) % tile.vector == 0) {
    const SplitAxes parts = s.split(axes.back(), tile.vector);
    axes.back() = parts.outer;
    lane = parts.inner;
  }
  const Axis all = axes.size() > 1 ? s.fuse(axes) : axes.front();
  if (s.refused()) return {};
  const int64_t most = power_of_two_at_least(std::max<int64_t>(kWarp, s.extent(all)), tile.threads);
  const auto [block, thread] = s.split(all, most);
  s.bind(block, LoopKind::kBlockX);
  s.bind(thread, LoopKind::kThreadX);
  if (lane.var != nullptr) s.vectorize(lane);
  return thread;
}

// The sum in a register, inside `at`, begun before its terms.
void add_up_in(Schedule& s, const Tensor& sum, const Axis& at) {
  s.compute_at(sum, at);
  const std::vector<Axis> own = s.spatial_axes(sum), sums = s.reduce_axis_list(sum);
  if (s.refused() || sums.empty()) return;
  std::vector<Axis> order = sums;
  order.insert(order.end(), own.begin(), own.end());
  if (order.size() > 1) s.reorder(order);
  s.decompose_reduction(sum, sums.front());
}

void sum_by_thread(Schedule& s, const Tensor& tensor, const StageTile& tile) {
  const Tensor sum = s.cache_write(tensor, MemoryScope::kRegister);
  const Axis thread = share(s, tensor, {tile.threads, 1, 1});
  if (!s.refused()) add_up_in(s, sum, thread);
}

// Rows of a block, each shared by the threads of threadIdx.x.
void sum_by_lanes(Schedule& s, const Tensor& tensor, const StageTile& tile) {
  const Tensor sum = s.cache_write(tensor, MemoryScope::kRegister);
  const std::vector<Axis> axes = s.spatial_axes(tensor);
  if (s.refused() || axes.empty()) return;
  const Axis all = axes.size() > 1 ? s.fuse(axes) : axes.front();
  const auto [block, row] = s.split(all, std::max<int64_t>(1, tile.threads / tile.lanes));
  s.bind(block, LoopKind::kBlockX);
  s.bind(row, LoopKind::kThreadY);
  s.compute_at(sum, row);
  const std::vector<Axis> sums = s.reduce_axis_list(sum);
  if (s.refused()) return;
  const Axis terms = sums.size() > 1 ? s.fuse(sums) : sums.front();
  const auto [step, lane] = s.split(terms, tile.lanes);
  s.reorder({lane, step});
  s.bind(lane, LoopKind::kThreadX);
}

// Sums that nobody reads but this stage, each element where it is needed.
std::vector<Stage> own_sums(Schedule& s, const std::vector<Stage>& stages, const Stage& reader) {
  std::vector<Stage> sums;
  for (const Stage& stage : stages) {
    if (!stage.is_sum() || stage.buffer->role != BufferRole::kIntermediate) continue;
    if (stage.buffer->elements() != reader.buffer->elements() || is_long(s, stage)) continue;
    bool here = false, elsewhere = false;
    for (const Stage& other : stages)
      visit(other.store->value, [&](const Expr& e) {
        if (e->kind != ExprKind::kLoad || e->buffer != stage.buffer || other.buffer == stage.buffer) return;
        (other.buffer == reader.buffer ? here : elsewhere) = true;
      });
    if (here && !elsewhere) sums.push_back(stage);
  }
  return sums;
}

class StageSchedule {
 public:
  StageSchedule(Schedule& s, const StageTile& tile) : s_(s), tile_(tile), before_(s.program()) {}

  void run() {
    const std::vector<Stage> stages = stages_of(before_);
    // Readers first: they take their sums with them.
    for (const Stage& stage : stages)
      if (!stage.is_sum() && !done_.contains(stage.buffer)) elements(stages, stage);
    for (const Stage& stage : stages)
      if (!done_.contains(stage.buffer)) sum(stage);
  }

 private:
  void elements(const std::vector<Stage>& stages, const Stage& stage) {
    done_.insert(stage.buffer);
    const Tensor tensor{stage.buffer};
    const std::vector<Stage> sums = own_sums(s_, stages, stage);
    if (!sums.empty() && attempt(s_, [&](Schedule& copy) {
          const Axis thread = share(copy, tensor, {tile_.threads, 1, 1});
          for (const Stage& each : sums) {
            copy.set_scope({each.buffer}, MemoryScope::kRegister);
            add_up_in(copy, {each.buffer}, thread);
          }
        })) {
      for (const Stage& each : sums) done_.insert(each.buffer);
      return;
    }
    for (const int64_t vector : {tile_.vector, int64_t{1}})
      if (attempt(s_, [&](Schedule& copy) { share(copy, tensor, {tile_.threads, vector, 1}); })) return;
  }

  void sum(const Stage& stage) {
    done_.insert(stage.buffer);
    const Tensor tensor{stage.buffer};
    if (tile_.lanes > 1 && is_long(s_, stage) &&
        attempt(s_, [&](Schedule& copy) { sum_by_lanes(copy, tensor, tile_); }))
      return;
    if (!s_.spatial_axes(tensor).empty() &&
        attempt(s_, [&](Schedule& copy) { sum_by_thread(copy, tensor, tile_); }))
      return;
    const std::vector<Axis> sums = s_.reduce_axis_list(tensor);
    if (!sums.empty()) attempt(s_, [&](Schedule& copy) { copy.decompose_reduction(tensor, sums.front()); });
  }

  Schedule& s_;
  const StageTile tile_;
  const Program before_;  // stages point into it
  std::set<Buffer> done_;
};

}  // namespace

StageKnobs declare_stages(ConfigSpace& space, const Program& math) {
  Schedule s(math);
  const std::vector<Stage> stages = stages_of(math);
  bool any_long = false;
  int64_t vector = 1;
  for (const Stage& stage : stages) {
    any_long = any_long || is_long(s, stage);
    if (!stage.is_sum() && !stage.buffer->shape.empty() && stage.buffer->elements() >= kManyElements)
      vector = std::max(vector, vector_width({stage.buffer->shape.back()}));
  }
  StageKnobs k{
      // Threads of a block.
      .threads = space.choice("threads", {64, 128, 256, 512}).try_first(256),
      // Elements of one access.
      .vector = space.choice("vector", {1, 2, 4}).at_most(4).try_first(vector),
      // Threads that share a long sum.
      .lanes = space.choice("lanes", {1, 8, 32}).at_most(any_long ? 32 : 1).try_first(any_long ? 32 : 1),
      // What is computed again for each reader is not written to memory.
      .inline_all = space.flag("inline_all").try_first(false),
  };
  if (stages.size() == 1) space.require(k.inline_all == 0);
  return k;
}

void schedule_stages(Schedule& s, const StageKnobs& k, const Config& c) {
  fragment::put_inside(s, c[k.inline_all]);
  StageSchedule(s, {c[k.threads], c[k.vector], c[k.lanes]}).run();
}

}  // namespace tuner::cuda
