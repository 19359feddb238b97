#include "tuner/model/memory_plan.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

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
    std::vector<Piece> placed = recent;
    if (are_few_at_once()) {
      std::vector<Piece> sized = pieces_;
      place_by_size(sized);
      const int64_t least = arena_of(sized);
      // A little more memory is worth the caches; much more is not.
      if (arena_of(recent) > least + least / 20) placed = std::move(sized);
    }
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

  // Bytes that are alive in each step.
  std::vector<int64_t> live_in_steps(const std::function<int64_t(const Piece&)>& bytes) const {
    std::vector<int64_t> live(model_.steps.size() + 1, 0);
    for (const Piece& p : pieces_) {
      live[p.first] += bytes(p);
      live[p.last + 1] -= bytes(p);
    }
    std::partial_sum(live.begin(), live.end(), live.begin());
    return live;
  }
  int64_t largest_live() const { return std::ranges::max(live_in_steps(&Piece::bytes)); }
  // Whether all pairs of values that are alive at once may be looked at.
  bool are_few_at_once() const {
    constexpr double kMostPairs = 5e7;
    double pairs = 0;
    for (const int64_t live : live_in_steps([](const Piece&) { return int64_t{1}; }))
      pairs += static_cast<double>(live) * static_cast<double>(live);
    return pairs <= kMostPairs;
  }

  static int64_t arena_of(const std::vector<Piece>& placed) {
    int64_t end = 0;
    for (const Piece& p : placed) end = std::max(end, p.end());
    return end;
  }
  // The lowest place beside these, which are sorted by offset.
  template <class Pieces>
  static int64_t lowest(const Pieces& beside, int64_t bytes) {
    int64_t end = 0;
    for (const Piece* other : beside) {
      if (other->offset >= end + bytes) break;
      end = std::max(end, other->end());
    }
    return end;
  }

  // In the order of steps, each where the latest of the values that are over was, within `bound` bytes; else
  // as low as it goes. Values that are over at one offset count as the latest of them.
  static void place_recent_first(std::vector<Piece>& pieces, int64_t bound) {
    const auto by_offset = [](const Piece* a, const Piece* b) { return a->offset < b->offset; };
    const auto by_end = [](const Piece* a, const Piece* b) {
      return std::tie(a->last, a) < std::tie(b->last, b);
    };
    const auto latest_first = [](const Piece* a, const Piece* b) {
      return a->last != b->last ? a->last > b->last : a < b;
    };
    std::set<Piece*, decltype(by_offset)> alive(by_offset);
    std::set<Piece*, decltype(by_end)> ends(by_end);
    std::map<int64_t, Piece*> over_at;
    std::set<Piece*, decltype(latest_first)> over(latest_first);
    const auto is_free = [&](const Piece& piece, int64_t offset) {
      Piece at{.offset = offset};
      const auto next = alive.lower_bound(&at);
      return (next == alive.end() || (*next)->offset >= offset + piece.bytes) &&
             (next == alive.begin() || (*std::prev(next))->end() <= offset);
    };
    const auto leave = [&](Piece* piece) {
      alive.erase(piece);
      Piece*& there = over_at[piece->offset];
      if (there != nullptr && there->last == piece->last) return;  // its place in the order is the better one
      if (there != nullptr) over.erase(there);
      there = piece;
      over.insert(piece);
    };
    std::vector<Piece*> order;
    for (Piece& piece : pieces) order.push_back(&piece);
    std::ranges::stable_sort(order, {}, &Piece::first);
    for (Piece* piece : order) {
      for (; !ends.empty() && (*ends.begin())->last < piece->first; ends.erase(ends.begin()))
        leave(*ends.begin());
      const auto place = std::ranges::find_if(over, [&](const Piece* other) {
        return other->offset + piece->bytes <= bound && is_free(*piece, other->offset);
      });
      piece->offset = place != over.end() ? (*place)->offset : lowest(alive, piece->bytes);
      alive.insert(piece);
      ends.insert(piece);
    }
  }

  // The largest first, each as low as it goes.
  static void place_by_size(std::vector<Piece>& pieces) {
    std::vector<Piece*> order;
    for (Piece& piece : pieces) order.push_back(&piece);
    std::ranges::stable_sort(order, std::greater<>(), &Piece::bytes);
    std::map<size_t, std::vector<Piece*>> placed;  // of each step, those alive in it
    for (Piece* piece : order) {
      std::vector<Piece*> beside;
      for (size_t step = piece->first; step <= piece->last; ++step) {
        std::vector<Piece*>& there = placed[step];
        beside.insert(beside.end(), there.begin(), there.end());
        there.push_back(piece);
      }
      std::ranges::sort(beside, {}, &Piece::offset);
      piece->offset = lowest(beside, piece->bytes);
    }
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
  if (step.foreign || step.nodes.size() != 1) return false;
  const graph::Node& node = model.graph.nodes[step.nodes[0]];
  // The step's program holds small constants itself, and reads what is joined twice once.
  if (!stacks(model.graph, node) || step.reads != node.inputs) return false;
  for (size_t i = 0; i < step.reads.size(); ++i) {
    const ValueId in = step.reads[i];
    const bool made = std::ranges::count(model.steps, in, &ModelStep::writes) == 1;
    // Under its own shape or another.
    const bool shown = std::ranges::any_of(model.graph.outputs, [&](ValueId v) {
      while (model.aliases[v].source != v) v = model.aliases[v].source;
      return v == in;
    });
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
