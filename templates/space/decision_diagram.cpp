#include "templates/space/decision_diagram.h"

#include <algorithm>
#include <unordered_map>

#include "templates/space/knob_order.h"
#include "templates/space/residuals.h"

namespace tuner {
namespace diagram {

// Word lists, each stored once, numbered as they came.
class WordLists {
 public:
  // The number of the list, and whether it is new.
  std::pair<int, bool> insert(const std::vector<int64_t>& words) {
    if (2 * (starts_.size() + 1) > slots_.size()) grow();
    const uint64_t hash = hash_words(words.data(), words.size());
    for (size_t slot = hash & (slots_.size() - 1);; slot = (slot + 1) & (slots_.size() - 1)) {
      const int id = slots_[slot];
      if (id < 0) {
        slots_[slot] = static_cast<int>(starts_.size());
        starts_.push_back(words_.size());
        hashes_.push_back(hash);
        words_.insert(words_.end(), words.begin(), words.end());
        return {slots_[slot], true};
      }
      if (hashes_[id] == hash && length(id) == words.size() &&
          std::equal(words.begin(), words.end(), words_.begin() + static_cast<int64_t>(starts_[id])))
        return {id, false};
    }
  }

 private:
  size_t length(int id) const {
    const auto next = static_cast<size_t>(id) + 1;
    return (next < starts_.size() ? starts_[next] : words_.size()) - starts_[id];
  }
  void grow() {
    slots_.assign(std::max<size_t>(64, 2 * slots_.size()), -1);
    for (size_t id = 0; id < starts_.size(); ++id) {
      size_t slot = hashes_[id] & (slots_.size() - 1);
      while (slots_[slot] >= 0) slot = (slot + 1) & (slots_.size() - 1);
      slots_[slot] = static_cast<int>(id);
    }
  }
  std::vector<int> slots_;  // power of two; -1: empty
  std::vector<size_t> starts_;
  std::vector<uint64_t> hashes_;
  std::vector<int64_t> words_;
};

}  // namespace diagram
namespace {

constexpr uint64_t kMaxCount = uint64_t{1} << 62;

std::vector<const std::vector<int64_t>*> candidates_by_layer(const std::vector<KnobInfo>& knobs,
                                                             const std::vector<int>& order) {
  std::vector<const std::vector<int64_t>*> candidates;
  candidates.reserve(order.size());
  for (const int knob : order) candidates.push_back(&knobs[static_cast<size_t>(knob)].candidates);
  return candidates;
}

}  // namespace

// Builds one order; gives up past the limit of decisions.
class DecisionDiagram::Builder {
 public:
  Builder(const std::vector<KnobInfo>& knobs, const std::vector<int>& order,
          const std::vector<IntExpr>& constraints, int64_t max_decisions)
      : residuals_(candidates_by_layer(knobs, order)),
        max_decisions_(max_decisions),
        memo_(order.size()),
        frames_(order.size()) {
    tree_.order_ = order;
    std::vector<int> layer_of(knobs.size(), 0);
    for (size_t i = 0; i < order.size(); ++i) {
      layer_of[static_cast<size_t>(order[i])] = static_cast<int>(i);
      widths_.push_back(static_cast<int>(knobs[static_cast<size_t>(order[i])].candidates.size()));
    }
    for (const IntExpr& c : constraints) start_.push_back(residuals_.import_constraint(*c.node(), layer_of));
  }

  enum class End { kDone, kTooLarge, kNothingValid, kTooMany };

  End run() {
    tree_.nodes_.push_back({0, 0, 1});  // the end of every path
    State state;
    for (const ResidualId e : start_)
      if (!add(e, state)) return End::kNothingValid;
    tidy(state);
    tree_.root_ = visit(0, state);
    if (end_ != End::kDone) return end_;
    return tree_.root_ < 0 ? End::kNothingValid : End::kDone;
  }
  DecisionDiagram take() {
    tree_.nodes_.shrink_to_fit();
    tree_.edges_.shrink_to_fit();
    return std::move(tree_);
  }

 private:
  enum class MaskId : int32_t { kNone = -1 };  // a set of candidates: its place in masks_
  // What a prefix leaves: residual constraints over several knobs, and for each knob that is restricted the
  // set of its candidates.
  struct State {
    std::vector<ResidualId> constraints;
    std::vector<std::pair<int, MaskId>> allowed;  // layer, its candidates
    void clear() {
      constraints.clear();
      allowed.clear();
    }
  };
  using Mask = std::vector<int64_t>;

  // False when `e` can no longer hold.
  bool add(ResidualId e, State& state) {
    if (residuals_.is_conjunction(e)) {
      for (const ResidualId part : residuals_.operands(e))
        if (!add(part, state)) return false;
      return true;
    }
    if (residuals_.is_constant(e)) return residuals_.constant_value(e) != 0;
    if (residuals_.is_table(e)) return restrict(residuals_.first_layer(e), mask_of_table(e), state);
    state.constraints.push_back(e);
    return true;
  }

  bool restrict(int layer, MaskId mask, State& state) {
    for (auto& [known, id] : state.allowed)
      if (known == layer) return (id = both(id, mask)) != MaskId::kNone;
    state.allowed.emplace_back(layer, mask);
    return true;
  }

  MaskId mask_of_table(ResidualId e) {
    if (static_cast<size_t>(e) >= mask_of_.size()) mask_of_.resize(residuals_.nodes(), MaskId::kNone);
    if (mask_of_[static_cast<size_t>(e)] == MaskId::kNone) {
      const auto width = static_cast<size_t>(widths_[static_cast<size_t>(residuals_.first_layer(e))]);
      Mask mask((width + 63) / 64, 0);
      for (size_t c = 0; c < width; ++c)
        if (residuals_.table(e)[c] != 0) mask[c / 64] |= int64_t{1} << (c % 64);
      mask_of_[static_cast<size_t>(e)] = mask_id(mask);
    }
    return mask_of_[static_cast<size_t>(e)];
  }
  MaskId mask_id(const Mask& mask) {
    const auto [id, fresh] = mask_ids_.insert(mask);
    if (fresh) masks_.push_back(mask);
    return static_cast<MaskId>(id);
  }
  const Mask& set_of(MaskId id) const { return masks_[static_cast<size_t>(id)]; }
  // Candidates in both sets; kNone: there are none.
  MaskId both(MaskId a, MaskId b) {
    if (a == b) return a;
    const uint64_t key = static_cast<uint64_t>(std::min(a, b)) << 32 | static_cast<uint64_t>(std::max(a, b));
    const auto [found, fresh] = both_.emplace(key, MaskId::kNone);
    if (fresh) {
      Mask common(set_of(a).size());
      bool some = false;
      for (size_t w = 0; w < common.size(); ++w)
        some = (common[w] = set_of(a)[w] & set_of(b)[w]) != 0 || some;
      if (some) found->second = mask_id(common);
    }
    return found->second;
  }

  static void tidy(State& state) {
    std::sort(state.constraints.begin(), state.constraints.end());
    state.constraints.erase(std::unique(state.constraints.begin(), state.constraints.end()),
                            state.constraints.end());
    std::sort(state.allowed.begin(), state.allowed.end());
  }

  int32_t visit(int layer, const State& state) {
    if (layer == static_cast<int>(tree_.order_.size())) return 0;
    words_.clear();
    for (const ResidualId e : state.constraints) words_.push_back(static_cast<int64_t>(e));
    for (const auto& [at, mask] : state.allowed)
      words_.push_back(-(int64_t{at} << 32) - static_cast<int64_t>(mask) - 1);
    Memo& memo = memo_[static_cast<size_t>(layer)];
    const auto [state_id, fresh] = memo.states.insert(words_);
    if (!fresh) return memo.nodes[static_cast<size_t>(state_id)];
    memo.nodes.push_back(-1);

    Frame& here = frames_[static_cast<size_t>(layer)];
    here.live.clear();
    here.rest.clear();
    for (const ResidualId e : state.constraints)
      (residuals_.first_layer(e) == layer ? here.live : here.rest.constraints).push_back(e);
    bool restricted = false;
    for (const auto& each : state.allowed) {
      if (each.first == layer) {
        here.allowed = set_of(each.second);
        restricted = true;
      } else {
        here.rest.allowed.push_back(each);
      }
    }
    here.edges.clear();
    uint64_t count = 0;
    int32_t child = -1;
    bool child_known = false;
    for (int c = 0; c < widths_[static_cast<size_t>(layer)]; ++c) {
      if (restricted && (here.allowed[static_cast<size_t>(c / 64)] >> (c % 64) & 1) == 0) continue;
      if (!child_known) {
        if (++decisions_ > max_decisions_) end_ = End::kTooLarge;
        here.next = here.rest;
        bool possible = true;
        for (size_t i = 0; i < here.live.size() && possible; ++i)
          possible = add(residuals_.substitute(here.live[i], c), here.next);
        if (possible) tidy(here.next);
        child = possible ? visit(layer + 1, here.next) : -1;
        child_known = here.live.empty();  // the same for every choice
        if (end_ != End::kDone) return -1;
      }
      if (child < 0) continue;
      here.edges.push_back({count, child, c});
      count += tree_.nodes_[static_cast<size_t>(child)].count;
      if (count > kMaxCount) {
        end_ = End::kTooMany;
        return -1;
      }
    }
    // Prefixes without completion are remembered too, but cost no edges.
    const int32_t id = here.edges.empty() ? -1 : node_of(here.edges, count);
    memo.nodes[static_cast<size_t>(state_id)] = id;
    return id;
  }

  // The node with these edges: states that differ may have the same completions.
  int32_t node_of(const std::vector<Edge>& edges, uint64_t count) {
    if (2 * (same_edges_.size() + 1) > node_slots_.size()) grow_slots();
    words_.clear();
    for (const Edge& e : edges) words_.push_back(int64_t{e.child} << 32 | e.choice);
    const uint64_t hash = hash_words(words_.data(), words_.size());
    const auto same = [](const Edge& a, const Edge& b) { return a.child == b.child && a.choice == b.choice; };
    size_t slot = hash & (node_slots_.size() - 1);
    for (; node_slots_[slot] >= 0; slot = (slot + 1) & (node_slots_.size() - 1)) {
      const auto& [known_hash, node] = same_edges_[static_cast<size_t>(node_slots_[slot])];
      const Edge* known = tree_.edges_of(node);
      if (known_hash == hash && std::equal(edges.begin(), edges.end(), known,
                                           known + tree_.nodes_[static_cast<size_t>(node)].edges, same))
        return node;
    }
    const auto node = static_cast<int32_t>(tree_.nodes_.size());
    node_slots_[slot] = static_cast<int32_t>(same_edges_.size());
    same_edges_.emplace_back(hash, node);
    tree_.nodes_.push_back(
        {static_cast<int64_t>(tree_.edges_.size()), static_cast<int32_t>(edges.size()), count});
    tree_.edges_.insert(tree_.edges_.end(), edges.begin(), edges.end());
    return node;
  }
  void grow_slots() {
    node_slots_.assign(std::max<size_t>(64, 2 * node_slots_.size()), -1);
    for (size_t i = 0; i < same_edges_.size(); ++i) {
      size_t slot = same_edges_[i].first & (node_slots_.size() - 1);
      while (node_slots_[slot] >= 0) slot = (slot + 1) & (node_slots_.size() - 1);
      node_slots_[slot] = static_cast<int32_t>(i);
    }
  }

  // What a visit of a layer works on, kept from visit to visit: there is one at a time.
  struct Frame {
    std::vector<ResidualId> live;  // constraints that this layer decides on
    State rest, next;              // what it does not decide; what a choice leaves
    Mask allowed;
    std::vector<Edge> edges;
  };
  struct Memo {
    diagram::WordLists states;
    std::vector<int32_t> nodes;  // of each state; -1: none, nothing valid below
  };

  Residuals residuals_;
  int64_t max_decisions_, decisions_ = 0;
  std::vector<ResidualId> start_;
  std::vector<int> widths_;
  std::vector<Mask> masks_;
  diagram::WordLists mask_ids_;
  std::vector<MaskId> mask_of_;  // of a table; kNone: none yet
  std::unordered_map<uint64_t, MaskId> both_;
  std::vector<Memo> memo_;
  std::vector<Frame> frames_;
  std::vector<int64_t> words_;                            // a key on its way into a WordLists
  std::vector<std::pair<uint64_t, int32_t>> same_edges_;  // hash of its edges, node
  std::vector<int32_t> node_slots_;                       // hash table of them; power of two, -1: empty
  DecisionDiagram tree_;
  End end_ = End::kDone;
};

Result<DecisionDiagram> DecisionDiagram::build(const std::vector<KnobInfo>& knobs, std::vector<int> members,
                                               const std::vector<IntExpr>& constraints, int64_t max_edges) {
  const auto names = [&] {
    std::string text;
    for (const int m : members) text += (text.empty() ? "" : ", ") + knobs[static_cast<size_t>(m)].name;
    return text;
  };
  if (members.size() > 63)
    return invalid_config("knobs ", names(), ": constraints tie ", members.size(),
                          " knobs together, at most 63 are served; drop a constraint");
  // Small groups keep the order they always had, so that recorded searches play again; for large ones a
  // better order is worth its search.
  std::vector<std::vector<int>> orders{likely_order(knobs, members, constraints)};
  for (const int64_t limit : {max_edges / 400, max_edges / 10, max_edges}) {
    for (const auto& order : orders) {
      Builder builder(knobs, order, constraints, limit);
      switch (builder.run()) {
        case Builder::End::kDone:
          return builder.take();
        case Builder::End::kTooLarge:
          break;
        case Builder::End::kTooMany:
          return invalid_config("knobs ", names(), ": more than 2^62 valid configs; narrow a knob");
        case Builder::End::kNothingValid: {
          std::string text;
          for (const IntExpr& c : constraints) text += (text.empty() ? "" : "; ") + to_text(c, knobs);
          return invalid_config("knobs ", names(), ": no config satisfies ", text);
        }
      }
    }
    if (orders.size() > 1) continue;
    orders.insert(orders.begin(), cheapest_order(knobs, members, constraints));
    orders.push_back(members);  // as declared
  }
  return invalid_config("knobs ", names(), ": listing the valid configs takes more than ", max_edges,
                        " decisions; narrow a knob or write the constraint over fewer knobs");
}

void DecisionDiagram::at(uint64_t index, std::vector<int>& choices) const {
  CHECK(index < size()) << "index " << index << " of a group of " << size();
  int32_t node = root_;
  for (const int knob : order_) {
    // The last edge that starts at or before the index.
    const Edge* begin = edges_of(node);
    const Edge* edge = std::upper_bound(begin, begin + nodes_[static_cast<size_t>(node)].edges, index,
                                        [](uint64_t i, const Edge& e) { return i < e.before; }) -
                       1;
    choices[static_cast<size_t>(knob)] = edge->choice;
    index -= edge->before;
    node = edge->child;
  }
}

const DecisionDiagram::Edge* DecisionDiagram::find_edge(int32_t node, int choice) const {
  const Edge* begin = edges_of(node);
  const Edge* end = begin + nodes_[static_cast<size_t>(node)].edges;
  const Edge* edge =
      std::lower_bound(begin, end, choice, [](const Edge& e, int wanted) { return e.choice < wanted; });
  return edge != end && edge->choice == choice ? edge : nullptr;
}

bool DecisionDiagram::index_of(const std::vector<int>& choices, uint64_t& index) const {
  int32_t node = root_;
  index = 0;
  for (const int knob : order_) {
    const Edge* edge = find_edge(node, choices[static_cast<size_t>(knob)]);
    if (edge == nullptr) return false;
    index += edge->before;
    node = edge->child;
  }
  return true;
}

void DecisionDiagram::repair(std::vector<int>& choices, const std::vector<int>& second) const {
  int32_t node = root_;
  for (const int layer_knob : order_) {
    const auto knob = static_cast<size_t>(layer_knob);
    const int wish = choices[knob];
    const Edge* edge = find_edge(node, wish);
    if (edge == nullptr) edge = find_edge(node, second[knob]);
    if (edge == nullptr) {  // the closest; of two the smaller
      const Edge* begin = edges_of(node);
      const Edge* end = begin + nodes_[static_cast<size_t>(node)].edges;
      const Edge* above =
          std::lower_bound(begin, end, wish, [](const Edge& e, int wanted) { return e.choice < wanted; });
      const bool below =
          above == end || (above != begin && wish - (above - 1)->choice <= above->choice - wish);
      edge = below ? above - 1 : above;
    }
    choices[knob] = edge->choice;
    node = edge->child;
  }
}

}  // namespace tuner
