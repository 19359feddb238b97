#include "tuner/model/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "compiler_core/base/int_math.h"
#include "tuner/model/groups.h"
#include "tuner/model/in_place.h"

namespace tuner {
namespace {

using graph::kNoValue;
using graph::ValueId;
using Where = ValuePlace::Where;

// A piece of the arena: bytes that one value has from one step to another, both included.
struct Piece {
  ValueId value = kNoValue;
  int64_t bytes = 0;
  size_t first = 0, last = 0;
  int64_t offset = -1;  // -1: not placed yet

  bool meets(const Piece& other) const { return first <= other.last && other.first <= last; }
  int64_t end() const { return offset + bytes; }
};

class Planner {
 public:
  explicit Planner(const ModelSteps& model) : model_(model), aliases_(model.aliases) { find_lifetimes(); }

  MemoryPlan plan() {
    MemoryPlan out;
    out.largest_live_bytes = largest_live();
    std::vector<Piece> recent = pieces_;
    place_recent_first(recent, out.largest_live_bytes + out.largest_live_bytes / 20);
    std::vector<Piece> sized = pieces_;
    place_by_size(sized);
    const int64_t least = arena_of(sized);
    // A little more memory is worth the caches; much more is not.
    const bool by_recency = arena_of(recent) <= least + least / 20;
    const std::vector<Piece>& placed = by_recency ? recent : sized;
    out.arena_bytes = arena_of(placed);
    set_places(placed, out);
    return out;
  }

 private:
  const graph::Graph& graph() const { return model_.graph; }

  ValueId root_of(ValueId v) const {
    while (aliases_[v].source != v) v = aliases_[v].source;
    return v;
  }

  // From the first step that writes a value, or a part of it, to the last one that reads any of it.
  void find_lifetimes() {
    constexpr size_t kNever = SIZE_MAX;
    const size_t count = graph().values.size();
    std::vector<size_t> first(count, kNever), last(count, 0);
    const auto touch = [&](ValueId v, size_t step) {
      first[v] = std::min(first[v], step);
      last[v] = std::max(last[v], step);
    };
    for (size_t s = 0; s < model_.steps.size(); ++s) {
      const ModelStep& step = model_.steps[s];
      touch(root_of(step.writes), s);
      for (const ValueId in : step.reads) touch(root_of(in), s);
    }
    std::vector<bool> elsewhere(count, false);
    for (const ValueId v : graph().inputs) elsewhere[v] = true;
    for (const ValueId v : graph().outputs) elsewhere[root_of(v)] = true;
    pieces_.clear();
    for (ValueId v = 0; v < count; ++v)
      if (first[v] != kNever && !elsewhere[v] && !graph()[v].constant && aliases_[v].source == v)
        pieces_.push_back({v, round_up(graph()[v].type.bytes(), kArenaAlignment), first[v], last[v]});
  }

  int64_t largest_live() const {
    int64_t most = 0;
    for (size_t s = 0; s < model_.steps.size(); ++s) {
      int64_t live = 0;
      for (const Piece& p : pieces_)
        if (p.first <= s && s <= p.last) live += p.bytes;
      most = std::max(most, live);
    }
    return most;
  }

  static int64_t arena_of(const std::vector<Piece>& placed) {
    int64_t end = 0;
    for (const Piece& p : placed) end = std::max(end, p.end());
    return end;
  }
  static bool fits(const std::vector<Piece>& pieces, const Piece& piece, int64_t offset) {
    return std::ranges::none_of(pieces, [&](const Piece& other) {
      return other.offset >= 0 && other.meets(piece) && other.offset < offset + piece.bytes &&
             offset < other.end();
    });
  }
  // The lowest place where it meets nobody.
  static int64_t lowest(const std::vector<Piece>& pieces, const Piece& piece) {
    int64_t best = fits(pieces, piece, 0) ? 0 : INT64_MAX;
    for (const Piece& other : pieces)
      if (other.offset >= 0 && other.end() < best && other.meets(piece) && fits(pieces, piece, other.end()))
        best = other.end();
    return best;
  }

  // In the order of steps, each where the latest of the values that are over was, within `bound` bytes; else as low as it goes.
  static void place_recent_first(std::vector<Piece>& pieces, int64_t bound) {
    std::vector<size_t> order(pieces.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&](size_t p) { return pieces[p].first; });
    for (const size_t p : order) {
      Piece& piece = pieces[p];
      const Piece* latest = nullptr;
      for (const Piece& other : pieces)
        if (other.offset >= 0 && other.last < piece.first && (!latest || other.last > latest->last) &&
            other.offset + piece.bytes <= bound && fits(pieces, piece, other.offset))
          latest = &other;
      piece.offset = latest ? latest->offset : lowest(pieces, piece);
    }
  }

  // The largest first, each as low as it goes.
  static void place_by_size(std::vector<Piece>& pieces) {
    std::vector<size_t> order(pieces.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::greater<>(), [&](size_t p) { return pieces[p].bytes; });
    for (const size_t p : order) pieces[p].offset = lowest(pieces, pieces[p]);
  }

  void set_places(const std::vector<Piece>& placed, MemoryPlan& out) const {
    out.values.resize(graph().values.size());
    for (size_t i = 0; i < graph().inputs.size(); ++i) out.values[graph().inputs[i]] = {Where::kInput, 0, i};
    for (size_t i = graph().outputs.size(); i-- > 0;)
      out.values[root_of(graph().outputs[i])] = {Where::kOutput, 0, i};
    for (const Piece& p : placed) out.values[p.value] = {Where::kArena, p.offset, 0};
    for (ValueId v = 0; v < out.values.size(); ++v)
      if (graph()[v].constant && aliases_[v].source == v) out.values[v] = {Where::kConstant, 0, v};
    // A part follows from its source, whose place is known by now or follows from its own source.
    for (ValueId v = 0; v < out.values.size(); ++v) {
      int64_t offset = 0;
      ValueId root = v;
      for (; aliases_[root].source != root; root = aliases_[root].source) offset += aliases_[root].offset;
      if (root == v || out.values[root].where == Where::kNowhere) continue;
      out.values[v] = out.values[root];
      out.values[v].offset += offset;
    }
  }

  const ModelSteps& model_;
  const std::vector<ValueAlias>& aliases_;
  std::vector<Piece> pieces_;
};

// A Concat can be left out if each input is a value of its own that one step makes for it.
bool can_stack(const ModelSteps& model, const ModelStep& step) {
  if (step.foreign || step.nodes.size() != 1 || !stacks(model.graph, model.graph.nodes[step.nodes[0]]))
    return false;
  for (size_t i = 0; i < step.reads.size(); ++i) {
    const ValueId in = step.reads[i];
    const bool made = std::ranges::count(model.steps, in, &ModelStep::writes) == 1;
    const bool shown = std::ranges::count(model.graph.outputs, in) > 0;
    if (!made || shown || std::ranges::count(step.reads, in) != 1 || model.aliases[in].source != in)
      return false;
  }
  return true;
}

}  // namespace

MemoryPlan plan_memory(ModelSteps& model, const Target& target, const std::string& algorithms) {
  MemoryPlan best = Planner(model).plan();
  for (size_t s = 0; s < model.steps.size();) {
    if (!can_stack(model, model.steps[s])) {
      ++s;
      continue;
    }
    ModelSteps without = model;
    const ModelStep concat = model.steps[s];
    int64_t offset = 0;
    for (const ValueId in : concat.reads) {
      without.aliases[in] = {concat.writes, offset};
      offset += model.graph[in].type.bytes();
    }
    without.steps.erase(without.steps.begin() + static_cast<std::ptrdiff_t>(s));
    MemoryPlan plan = Planner(without).plan();
    // Room for a result before its time may cost more than copying its parts.
    if (plan.arena_bytes > best.arena_bytes + best.arena_bytes / 10) {
      ++s;
      continue;
    }
    plan.largest_live_bytes = std::min(plan.largest_live_bytes, best.largest_live_bytes);
    best = std::move(plan);
    model = std::move(without);
  }
  ModelSteps summed = model;
  if (!lie_on_residuals(summed, target, algorithms)) return best;
  MemoryPlan plan = Planner(summed).plan();
  if (plan.arena_bytes > best.arena_bytes) return best;
  model = std::move(summed);
  return plan;
}

}  // namespace tuner
