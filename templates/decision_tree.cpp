#include "templates/decision_tree.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "templates/int_expr.h"

namespace tuner {
namespace {

constexpr uint64_t kMaxCount = uint64_t{1} << 62;

uint64_t hash_words(const int64_t* words, size_t n) {
  uint64_t h = 0x9e3779b97f4a7c15ull + n;
  for (size_t i = 0; i < n; ++i) {
    h ^= static_cast<uint64_t>(words[i]) + 0x9e3779b97f4a7c15ull + (h << 12) + (h >> 4);
    h *= 0xff51afd7ed558ccdull;
    h ^= h >> 32;
  }
  return h;
}

struct WordsHash {
  size_t operator()(const std::vector<int64_t>& w) const { return hash_words(w.data(), w.size()); }
};

// Expressions of one group, each stored once, so that equal residuals have equal ids. An expression whose
// bounds leave one value is that constant.
class Residuals {
 public:
  explicit Residuals(const std::vector<KnobInfo>& knobs) : knobs_(knobs) {}

  int constant(int64_t v) { return intern({IntOp::kConst, v, -1, -1, {v, v}, 0}); }

  int import(const IntExprNode& e, const std::vector<int>& layer_of) {
    if (e.op == IntOp::kConst) return constant(e.value);
    if (e.op == IntOp::kKnob) {
      const auto& c = knobs_[static_cast<size_t>(e.value)].candidates;
      const auto [lo, hi] = std::minmax_element(c.begin(), c.end());
      if (*lo == *hi) return constant(*lo);
      return intern(
          {IntOp::kKnob, e.value, -1, -1, {*lo, *hi}, uint64_t{1} << layer_of[static_cast<size_t>(e.value)]});
    }
    const int a = import(*e.a, layer_of), b = import(*e.b, layer_of);
    return make(e.op, a, b);
  }

  // `e` with the knob of `layer` set to `value`.
  int substitute(int e, int layer, int64_t value) {
    const Node n = nodes_[static_cast<size_t>(e)];
    if ((n.layers >> layer & 1) == 0) return e;
    if (n.op == IntOp::kKnob) return constant(value);
    const std::vector<int64_t> key = {e, layer, value};
    if (const auto found = substituted_.find(key); found != substituted_.end()) return found->second;
    const int a = substitute(n.a, layer, value), b = substitute(n.b, layer, value);
    const int result = make(n.op, a, b);
    substituted_.emplace(key, result);
    return result;
  }

  IntRange range(int e) const { return nodes_[static_cast<size_t>(e)].range; }
  void forget_substitutions() { substituted_.clear(); }

 private:
  struct Node {
    IntOp op;
    int64_t value;
    int a, b;
    IntRange range;
    uint64_t layers;  // bit i: reads the knob of layer i
  };

  int make(IntOp op, int a, int b) {
    const Node &na = nodes_[static_cast<size_t>(a)], &nb = nodes_[static_cast<size_t>(b)];
    const IntRange range = apply(op, na.range, nb.range);
    if (range.is_single()) return constant(range.lo);
    return intern({op, 0, a, b, range, na.layers | nb.layers});
  }

  int intern(const Node& n) {
    const std::vector<int64_t> key = {static_cast<int64_t>(n.op), n.value, n.a, n.b};
    const auto [it, fresh] = ids_.emplace(key, static_cast<int>(nodes_.size()));
    if (fresh) nodes_.push_back(n);
    return it->second;
  }

  const std::vector<KnobInfo>& knobs_;
  std::vector<Node> nodes_;
  std::unordered_map<std::vector<int64_t>, int, WordsHash> ids_;
  std::unordered_map<std::vector<int64_t>, int, WordsHash> substituted_;
};

}  // namespace

// Builds one order; gives up past the edge limit.
class ValidTree::Builder {
 public:
  Builder(const std::vector<KnobInfo>& knobs, const std::vector<int>& order,
          const std::vector<IntExpr>& constraints, int64_t max_edges)
      : knobs_(knobs), residuals_(knobs), max_edges_(max_edges), memo_(order.size()) {
    tree_.order_ = order;
    std::vector<int> layer_of(knobs.size(), 0);
    for (size_t i = 0; i < order.size(); ++i) {
      layer_of[static_cast<size_t>(order[i])] = static_cast<int>(i);
      tree_.widths_.push_back(static_cast<int>(knobs[static_cast<size_t>(order[i])].candidates.size()));
    }
    for (const IntExpr& c : constraints) start_.push_back(residuals_.import(*c.node(), layer_of));
  }

  enum class End { kDone, kTooLarge, kNothingValid, kTooMany };

  End run() {
    tree_.nodes_.push_back({0, 1});  // the end of every path
    std::vector<int64_t> state;
    if (!reduce(start_, state)) return End::kNothingValid;
    tree_.root_ = visit(0, state);
    if (end_ != End::kDone) return end_;
    return tree_.root_ < 0 ? End::kNothingValid : End::kDone;
  }
  ValidTree take() { return std::move(tree_); }

 private:
  // Drops what always holds, sorts, and says whether nothing is false for certain.
  template <class Ids>
  bool reduce(const Ids& ids, std::vector<int64_t>& state) {
    state.clear();
    for (const auto id : ids) {
      const IntRange r = residuals_.range(static_cast<int>(id));
      if (r.lo == 0 && r.hi == 0) return false;
      if (r.lo > 0 || r.hi < 0) continue;
      state.push_back(id);
    }
    std::sort(state.begin(), state.end());
    state.erase(std::unique(state.begin(), state.end()), state.end());
    return true;
  }

  int32_t visit(size_t layer, const std::vector<int64_t>& state) {
    if (layer == tree_.order_.size()) return 0;
    if (const auto found = memo_[layer].find(state); found != memo_[layer].end()) return found->second;
    const auto& candidates = knobs_[static_cast<size_t>(tree_.order_[layer])].candidates;
    std::vector<Edge> edges;
    edges.reserve(candidates.size());
    uint64_t count = 0;
    std::vector<int64_t> next(state.size()), reduced;
    for (const int64_t value : candidates) {
      for (size_t i = 0; i < state.size(); ++i)
        next[i] = residuals_.substitute(static_cast<int>(state[i]), static_cast<int>(layer), value);
      int32_t child = -1;
      if (reduce(next, reduced)) child = visit(layer + 1, reduced);
      if (end_ != End::kDone) return -1;
      edges.push_back({child, count});
      if (child >= 0) count += tree_.nodes_[static_cast<size_t>(child)].count;
      if (count > kMaxCount) {
        end_ = End::kTooMany;
        return -1;
      }
    }
    // Prefixes without completion are remembered too, but cost no edges.
    int32_t id = -1;
    if (count > 0) {
      id = static_cast<int32_t>(tree_.nodes_.size());
      tree_.nodes_.push_back({static_cast<int64_t>(tree_.edges_.size()), count});
      tree_.edges_.insert(tree_.edges_.end(), edges.begin(), edges.end());
    }
    visited_edges_ += static_cast<int64_t>(edges.size());
    if (visited_edges_ > max_edges_) end_ = End::kTooLarge;
    memo_[layer].emplace(state, id);
    return id;
  }

  const std::vector<KnobInfo>& knobs_;
  Residuals residuals_;
  int64_t max_edges_, visited_edges_ = 0;
  std::vector<int> start_;
  std::vector<std::unordered_map<std::vector<int64_t>, int32_t, WordsHash>> memo_;
  ValidTree tree_;
  End end_ = End::kDone;
};

Result<ValidTree> ValidTree::build(const std::vector<KnobInfo>& knobs, std::vector<int> members,
                                   const std::vector<IntExpr>& constraints, int64_t max_edges) {
  const auto names = [&] {
    std::string text;
    for (const int m : members) text += (text.empty() ? "" : ", ") + knobs[static_cast<size_t>(m)].name;
    return text;
  };
  if (members.size() > 63)
    return invalid_config("knobs ", names(), ": constraints tie ", members.size(),
                          " knobs together, at most 63 are served; drop a constraint");
  // The order decides how many residuals differ: as declared, backwards, few candidates first, many first.
  const auto width = [&](int k) { return knobs[static_cast<size_t>(k)].candidates.size(); };
  std::vector<std::vector<int>> orders(4, members);
  std::reverse(orders[1].begin(), orders[1].end());
  std::stable_sort(orders[2].begin(), orders[2].end(), [&](int a, int b) { return width(a) < width(b); });
  std::stable_sort(orders[3].begin(), orders[3].end(), [&](int a, int b) { return width(a) > width(b); });
  for (const int64_t limit : {std::min<int64_t>(max_edges, 200'000), max_edges}) {
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
  }
  return invalid_config("knobs ", names(), ": listing the valid configs takes more than ", max_edges,
                        " decisions; narrow a knob or write the constraint over fewer knobs");
}

void ValidTree::at(uint64_t index, std::vector<int>& choices) const {
  CHECK(index < size()) << "index " << index << " of a group of " << size();
  int32_t node = root_;
  for (size_t layer = 0; layer < order_.size(); ++layer) {
    const Edge* edges = edges_of(node);
    // The last edge that starts at or before the index and is alive: dead edges start where the next one
    // does.
    int lo = 0, hi = widths_[layer] - 1;
    while (lo < hi) {
      const int mid = (lo + hi + 1) / 2;
      if (edges[mid].before <= index)
        lo = mid;
      else
        hi = mid - 1;
    }
    while (edges[lo].child < 0) --lo;
    choices[static_cast<size_t>(order_[layer])] = lo;
    index -= edges[lo].before;
    node = edges[lo].child;
  }
}

bool ValidTree::index_of(const std::vector<int>& choices, uint64_t& index) const {
  int32_t node = root_;
  index = 0;
  for (size_t layer = 0; layer < order_.size(); ++layer) {
    const Edge& e = edges_of(node)[choices[static_cast<size_t>(order_[layer])]];
    if (e.child < 0) return false;
    index += e.before;
    node = e.child;
  }
  return true;
}

void ValidTree::repair(std::vector<int>& choices, const std::vector<int>& second) const {
  int32_t node = root_;
  for (size_t layer = 0; layer < order_.size(); ++layer) {
    const auto knob = static_cast<size_t>(order_[layer]);
    const Edge* edges = edges_of(node);
    const int wish = choices[knob];
    int best = wish;
    if (edges[wish].child < 0) {
      best = second[knob];
      // A node that exists can be completed, so the scan ends.
      for (int distance = 1; edges[best].child < 0; ++distance) {
        if (wish - distance >= 0) best = wish - distance;
        if (edges[best].child < 0 && wish + distance < widths_[layer]) best = wish + distance;
      }
    }
    choices[knob] = best;
    node = edges[best].child;
  }
}

}  // namespace tuner
