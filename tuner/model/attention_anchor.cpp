#include "tuner/model/attention_anchor.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <set>

#include "tuner/model/strided_view.h"

namespace tuner {
namespace {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::Shape;
using graph::Use;
using graph::Uses;
using graph::ValueId;

int64_t elements_of(const Shape& shape, size_t first, size_t last) {
  int64_t n = 1;
  for (size_t d = first; d < last; ++d) n *= shape[d];
  return n;
}

// A value as the memory of another one shows it, and the nodes between.
struct Source {
  ValueId base = kNoValue;
  StridedView view;
  double factor = 1;
  std::vector<size_t> through;
};

class AttentionFinder {
 public:
  AttentionFinder(const Graph& graph, const Uses& uses) : graph_(graph), uses_(uses) {}

  std::optional<Anchor> find(size_t n) {
    const std::optional<size_t> product = product_before(n);
    if (!product || !weights(*product) || !scores()) return std::nullopt;
    const Node &qk = graph_.nodes[qk_], &pv = graph_.nodes[*product];
    const size_t rank = shape(qk.outputs[0]).size();
    if (!fit(qk, pv, rank)) return std::nullopt;
    // What is seen through one of these would be made for nobody, or twice: then it is read as it is.
    std::set<size_t> walls;
    while (true) {
      Anchor anchor{AttentionWorkload{}, {}, {}, false};
      std::vector<size_t> moves;
      std::optional<AttentionWorkload> w = operands(qk, pv, rank, walls, anchor.reads, moves);
      if (!w || !summands(*w, anchor.reads) || !result(*w, n, *product)) return std::nullopt;
      const size_t before = walls.size();
      anchor.before = owned(n, *product, moves, walls);
      if (walls.size() > before) continue;
      anchor.workload = *std::move(w);
      if (!validate(anchor.workload)) return std::nullopt;
      return anchor;
    }
  }

 private:
  const Shape& shape(ValueId v) const { return graph_[v].type.shape; }
  const Node* made_by(ValueId v, std::string_view op) const {
    const size_t n = uses_.maker(v);
    return n != Uses::kNoNode && graph_.nodes[n].op == op ? &graph_.nodes[n] : nullptr;
  }
  bool is_ours_alone(ValueId v) const { return uses_.readers(v) == 1; }
  std::optional<double> scalar(ValueId v) const {
    if (v == kNoValue || !graph_[v].constant || graph_[v].type.elements() != 1) return std::nullopt;
    return graph_[v].constant->numbers(graph_[v].type.dtype)[0];
  }
  // What Mul or Div by a number multiplies by, and of what.
  struct Scaled {
    ValueId of = kNoValue;
    double factor = 1;
  };
  std::optional<Scaled> scaled(const Node& node) const {
    if (node.op != "Mul" && node.op != "Div") return std::nullopt;
    std::optional<Scaled> found;
    if (const auto by = scalar(node.inputs[1]))
      found = {node.inputs[0], node.op == "Mul" ? *by : 1 / *by};
    else if (const auto first = scalar(node.inputs[0]); first && node.op == "Mul")
      found = {node.inputs[1], *first};
    if (!found || !std::isfinite(found->factor) || shape(found->of) != shape(node.outputs[0]))
      return std::nullopt;
    return found;
  }

  struct SummandAt {
    ValueId value;
    Shape scores;  // what it is added to
  };

  // --- from the result back to the products ---

  // The product of weights and values: node n, or what the Transpose n moves.
  std::optional<size_t> product_before(size_t n) {
    if (graph_.nodes[n].op == "MatMul") return n;
    if (graph_.nodes[n].op != "Transpose") return std::nullopt;
    behind_ = {n};
    while (true) {
      const ValueId in = graph_.nodes[behind_.back()].inputs[0];
      const size_t maker = uses_.maker(in);
      if (maker == Uses::kNoNode || !is_ours_alone(in)) return std::nullopt;
      if (graph_.nodes[maker].op == "MatMul") return maker;
      if (graph_.nodes[maker].op != "tuner.View") return std::nullopt;
      behind_.push_back(maker);
    }
  }
  bool weights(size_t product) {
    const ValueId p = graph_.nodes[product].inputs[0];
    const Node* softmax = made_by(p, "Softmax");
    if (softmax == nullptr || !is_ours_alone(p)) return false;
    const Use use(graph_, *softmax);
    constexpr int64_t kOneAxis = 13;
    const auto axis = use.axis(use.operator_set() < kOneAxis ? 1 : -1, use.rank(0));
    if (!axis || *axis != use.rank(0) - 1 || use.rank(0) < 3) return false;
    inside_ = {uses_.maker(p)};
    score_ = softmax->inputs[0];
    return true;
  }
  // Walks back to the product of Q and K. What is met first was done last: summands, then what is hidden,
  // then the factor.
  bool scores() {
    enum { kSummands, kHidden, kFactor } last = kSummands;
    while (true) {
      const size_t n = uses_.maker(score_);
      if (n == Uses::kNoNode || !is_ours_alone(score_)) return false;
      const Node& node = graph_.nodes[n];
      inside_.push_back(n);
      if (node.op == "MatMul") {
        qk_ = n;
        return true;
      }
      if (node.op == "tuner.View") {
        score_ = node.inputs[0];
      } else if (node.op == "Add") {
        if (last != kSummands || !take_summand(node)) return false;
      } else if (node.op == "Where") {
        if (last != kSummands || !take_hidden(node)) return false;
        last = kHidden;
      } else if (const auto found = scaled(node)) {
        factor_ *= found->factor;
        score_ = found->of;
        last = kFactor;
      } else {
        return false;
      }
    }
  }
  bool take_summand(const Node& add) {
    if (summands_.size() == 2) return false;
    const Shape& whole = shape(add.outputs[0]);
    for (const size_t i : {size_t{0}, size_t{1}}) {
      if (shape(add.inputs[i]) != whole || graph_[add.inputs[i]].constant || !leads_to_product(add.inputs[i]))
        continue;
      summands_.push_back({add.inputs[1 - i], whole});
      score_ = add.inputs[i];
      return true;
    }
    return false;
  }
  // True if scores may be what it is: of two summands only one comes from a product by way of what scores
  // allows.
  bool leads_to_product(ValueId v, int steps = 10) const {
    const size_t n = uses_.maker(v);
    if (n == Uses::kNoNode || steps == 0) return false;
    const Node& node = graph_.nodes[n];
    if (node.op == "MatMul") return true;
    if (node.op == "tuner.View") return leads_to_product(node.inputs[0], steps - 1);
    if (node.op == "Where") return leads_to_product(node.inputs[1], steps - 1);
    if (node.op == "Add")
      return leads_to_product(node.inputs[0], steps - 1) || leads_to_product(node.inputs[1], steps - 1);
    const auto found = scaled(node);
    return found && leads_to_product(found->of, steps - 1);
  }
  // Where(key is no later than the query, scores, a number).
  bool take_hidden(const Node& where) {
    const ValueId condition = where.inputs[0], x = where.inputs[1];
    const Shape& whole = shape(where.outputs[0]);
    const auto number = scalar(where.inputs[2]);
    if (!number || !(*number < 0) || shape(x) != whole || whole.size() < 2) return false;
    if (!graph_[condition].constant || graph_[condition].type.dtype != DType::kBool) return false;
    const Shape& c = shape(condition);
    const int64_t queries = whole[whole.size() - 2], keys = whole.back();
    if (c.size() < 2 || graph_[condition].type.elements() != queries * keys || c.back() != keys ||
        c[c.size() - 2] != queries || keys < queries)
      return false;
    const std::vector<int64_t> seen = graph_[condition].constant->integers(DType::kBool);
    for (int64_t i = 0; i < queries; ++i)
      for (int64_t s = 0; s < keys; ++s)
        if ((seen[static_cast<size_t>(i * keys + s)] != 0) != (s <= i + keys - queries)) return false;
    is_causal_ = true;
    hidden_rows_ = {queries, keys};
    hidden_is_infinite_ = std::isinf(*number);
    hidden_ = std::max(*number, static_cast<double>(std::numeric_limits<float>::lowest()));
    score_ = x;
    return true;
  }

  // --- shapes ---

  bool fit(const Node& qk, const Node& pv, size_t rank) const {
    if (rank < 3) return false;
    for (const auto& [a, b] : {std::pair(qk.inputs[0], qk.inputs[1]), {pv.inputs[0], pv.inputs[1]}}) {
      const Shape &left = shape(a), &right = shape(b);
      if (left.size() < 3 || left.size() != right.size() ||
          !std::equal(left.begin(), left.end() - 2, right.begin()))
        return false;
    }
    const Shape &x = shape(qk.outputs[0]), &p = shape(pv.inputs[0]);
    return x[rank - 2] >= kLeastQueries && p.back() == x.back() && p[p.size() - 2] == x[rank - 2] &&
           elements_of(p, 0, p.size()) == elements_of(x, 0, rank);
  }

  // The value by way of its first `depth` nodes back, those that may be looked through.
  std::vector<size_t> chain(ValueId v, bool with_factors, const std::set<size_t>& walls) const {
    std::vector<size_t> nodes;
    while (true) {
      const size_t n = uses_.maker(v);
      if (n == Uses::kNoNode || walls.contains(n)) return nodes;
      const Node& node = graph_.nodes[n];
      const auto by = with_factors ? scaled(node) : std::nullopt;
      if (!is_strided(node) && !by) return nodes;
      nodes.push_back(n);
      v = by ? by->of : node.inputs[0];
    }
  }
  std::optional<Source> source(ValueId v, const std::vector<size_t>& nodes, size_t depth) const {
    Source out{.base = v,
               .view = {},
               .through = {nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(depth)}};
    if (depth > 0) {
      const Node& first = graph_.nodes[nodes[depth - 1]];
      out.base = is_strided(first) ? first.inputs[0] : scaled(first)->of;
    }
    if (graph_[out.base].constant || graph_[out.base].type.dtype != DType::kFloat32) return std::nullopt;
    out.view = StridedView::of(shape(out.base));
    for (size_t k = depth; k-- > 0;) {
      const Node& node = graph_.nodes[nodes[k]];
      if (!is_strided(node)) {
        out.factor *= scaled(node)->factor;
        continue;
      }
      const ValueId made = k == 0 ? v : made_for(nodes[k - 1]);
      std::optional<StridedView> next = moved(graph_, node, made, out.view);
      if (!next) return std::nullopt;
      out.view = *std::move(next);
    }
    return out;
  }
  // What the node reads of the one before it in a chain.
  ValueId made_for(size_t n) const {
    const auto by = scaled(graph_.nodes[n]);
    return by ? by->of : graph_.nodes[n].inputs[0];
  }

  struct OperandForm {
    int64_t heads = 0;  // that differ: keys may be repeated
    HeadLayout layout;
  };
  // How heads lie. `elements` and `places`: dimensions of the view that are of the size and of the sequence.
  std::optional<OperandForm> form(const Source& from, size_t places, size_t elements, int64_t heads) const {
    const std::vector<StridedParts>& dims = from.view.dimensions;
    const StridedParts size = merged(dims[elements]), sequence = merged(dims[places]);
    if (size.size() > 1 || sequence.size() > 1 || (!size.empty() && size[0].stride != 1)) return std::nullopt;
    StridedParts leading;
    for (size_t d = 0; d + 2 < dims.size(); ++d)
      leading.insert(leading.end(), dims[d].begin(), dims[d].end());
    const auto two = cut_parts(leading, heads);
    if (!two) return std::nullopt;
    StridedParts head = merged(two->inner);
    const StridedParts batch = merged(two->outer);
    OperandForm out{.heads = heads, .layout = {}};
    if (!head.empty() && head.back().stride == 0) {  // heads that share keys
      out.heads /= head.back().extent;
      head.pop_back();
    }
    if (head.size() > 1 || batch.size() > 1) return std::nullopt;
    const int64_t d = size.empty() ? 1 : size[0].extent, s = sequence.empty() ? 1 : sequence[0].extent,
                  b = batch.empty() ? 1 : batch[0].extent, all = graph_[from.base].type.elements();
    const auto strides = [&](int64_t of_batch, int64_t of_head, int64_t of_place) {
      return (batch.empty() || batch[0].stride == of_batch) && (head.empty() || head[0].stride == of_head) &&
             (sequence.empty() || sequence[0].stride == of_place);
    };
    if (from.view.offset == 0 && all == b * out.heads * s * d && strides(out.heads * s * d, s * d, d))
      return out;
    const int64_t row = all / (b * s * d);
    if (all != b * s * d * row || from.view.offset % d != 0 || !strides(s * row * d, d, row * d))
      return std::nullopt;
    out.layout = {row, from.view.offset / d};
    if (out.layout.first + out.heads > row) return std::nullopt;
    return out;
  }
  struct Found {
    OperandForm form;
    Source from;
  };
  // From as far back as the form allows.
  std::optional<Found> operand(ValueId v, bool with_factors, bool is_transposed, int64_t heads,
                               const std::set<size_t>& walls) const {
    const std::vector<size_t> nodes = chain(v, with_factors, walls);
    const size_t rank = shape(v).size();
    for (size_t depth = nodes.size() + 1; depth-- > 0;) {
      const std::optional<Source> from = source(v, nodes, depth);
      if (!from) continue;
      const size_t elements = is_transposed ? rank - 2 : rank - 1,
                   places = is_transposed ? rank - 1 : rank - 2;
      if (const auto found = form(*from, places, elements, heads)) return Found{*found, *from};
    }
    return std::nullopt;
  }
  // Of three dimensions heads are with the batch; what is added to scores of four, or how Q lies, tells them
  // apart.
  int64_t heads_of(const Node& qk, size_t rank, const std::set<size_t>& walls) const {
    const Shape& x = shape(qk.outputs[0]);
    if (rank > 3) return x[rank - 3];
    for (const SummandAt& each : summands_)
      if (each.scores.size() > 3) return each.scores[each.scores.size() - 3];
    const std::vector<size_t> nodes = chain(qk.inputs[0], true, walls);
    for (size_t depth = nodes.size() + 1; depth-- > 0;) {
      const std::optional<Source> from = source(qk.inputs[0], nodes, depth);
      if (!from) continue;
      const StridedParts leading = merged(from->view.dimensions[0]);
      return leading.empty() ? 1 : leading.back().extent;
    }
    return x[0];
  }

  std::optional<AttentionWorkload> operands(const Node& qk, const Node& pv, size_t rank,
                                            const std::set<size_t>& walls, std::vector<ValueId>& reads,
                                            std::vector<size_t>& moves) const {
    const Shape& x = shape(qk.outputs[0]);
    AttentionWorkload w{.heads = heads_of(qk, rank, walls), .queries = x[rank - 2], .keys = x[rank - 1]};
    if (is_causal_ && hidden_rows_ != std::array{w.queries, w.keys}) return std::nullopt;
    // Where a mask covers all visible keys of a query, the hidden ones count if they have the least number,
    // and not if they have -inf.
    if (is_causal_ && hidden_is_infinite_ && !summands_.empty()) return std::nullopt;
    w.batch = elements_of(x, 0, rank - 2) / w.heads;
    w.size = shape(qk.inputs[0]).back();
    w.v_size = shape(pv.inputs[1]).back();
    const auto q = operand(qk.inputs[0], true, false, w.heads, walls),
               k = operand(qk.inputs[1], true, true, w.heads, walls),
               v = operand(pv.inputs[1], false, false, w.heads, walls);
    if (!q || !k || !v || q->form.heads != w.heads || k->form.heads != v->form.heads) return std::nullopt;
    w.kv_heads = k->form.heads;
    w.scale = factor_ * q->from.factor * k->from.factor;
    w.causal = is_causal_;
    if (is_causal_) w.hidden = static_cast<float>(hidden_);
    w.q_layout = head_layout_text(q->form.layout, w.heads);
    w.k_layout = head_layout_text(k->form.layout, w.kv_heads);
    w.v_layout = head_layout_text(v->form.layout, w.kv_heads);
    for (const Found* each : {&*q, &*k, &*v}) {
      reads.push_back(each->from.base);
      moves.insert(moves.end(), each->from.through.begin(), each->from.through.end());
    }
    return w;
  }

  // --- masks ---

  bool summands(AttentionWorkload& w, std::vector<ValueId>& reads) const {
    std::string* texts[] = {&w.mask, &w.bias};
    // Those met first were added last.
    for (size_t k = 0; k < summands_.size(); ++k) {
      const SummandAt& each = summands_[summands_.size() - 1 - k];
      const auto extents = summand_extents(each, w);
      if (!extents || graph_[each.value].type.dtype != DType::kFloat32) return false;
      *texts[k] = str((*extents)[0], "x", (*extents)[1], "x", (*extents)[2]);
      reads.push_back(each.value);
    }
    return true;
  }
  std::optional<std::array<int64_t, 3>> summand_extents(const SummandAt& at,
                                                        const AttentionWorkload& w) const {
    const Shape& x = at.scores;
    Shape m = shape(at.value);
    const size_t rank = x.size();
    if (m.size() > rank || rank < 3) return std::nullopt;
    m.insert(m.begin(), rank - m.size(), 1);
    if (m.back() != w.keys || x.back() != w.keys || x[rank - 2] != w.queries) return std::nullopt;
    const int64_t queries = m[rank - 2];
    if (rank == 3) {  // batch and heads are one
      if (m[0] == 1) return std::array{int64_t{1}, int64_t{1}, queries};
      return std::array{w.batch, w.heads, queries};
    }
    if (x[rank - 3] != w.heads) return std::nullopt;
    int64_t images = 1;
    size_t d = rank - 3;
    while (d > 0 && m[d - 1] == x[d - 1]) images *= m[--d];
    while (d > 0 && m[d - 1] == 1) --d;
    if (d > 0) return std::nullopt;
    return std::array{images, m[rank - 3], queries};
  }

  // --- the result ---

  bool result(AttentionWorkload& w, size_t n, size_t product) const {
    if (n == product) return true;
    StridedView view = StridedView::of(shape(graph_.nodes[product].outputs[0]));
    for (size_t k = behind_.size(); k-- > 0;) {
      const Node& node = graph_.nodes[behind_[k]];
      std::optional<StridedView> next = moved(graph_, node, node.outputs[0], view);
      if (!next) return false;
      view = *std::move(next);
    }
    StridedParts found;
    for (const StridedParts& dimension : view.dimensions)
      found.insert(found.end(), dimension.begin(), dimension.end());
    const int64_t e = w.v_size, i = w.queries, h = w.heads;
    if (merged(found) != merged({{w.batch, h * i * e}, {i, e}, {h, i * e}, {e, 1}})) return false;
    w.out_layout = "BSHD";
    return true;
  }

  // The nodes that nobody else needs, but for n. Moves that others need, too, and that would still be a step
  // of their own, become walls.
  std::vector<size_t> owned(size_t n, size_t product, const std::vector<size_t>& moves,
                            std::set<size_t>& walls) const {
    std::set<size_t> all(inside_.begin(), inside_.end());
    all.insert(behind_.begin(), behind_.end());
    all.insert({n, product});
    const std::set<size_t, std::greater<>> latest_first(moves.begin(), moves.end());
    for (const size_t move : latest_first) {
      int reads = 0, of_ours = 0;
      for (const ValueId out : graph_.nodes[move].outputs) {
        if (out == kNoValue) continue;
        reads += uses_.readers(out);
        for (const size_t reader : all)
          of_ours += static_cast<int>(std::ranges::count(graph_.nodes[reader].inputs, out));
      }
      if (reads == of_ours)
        all.insert(move);
      else if (graph_.nodes[move].op == "Transpose" || !is_strided(graph_.nodes[move]))
        walls.insert(move);
    }
    all.erase(n);
    return {all.begin(), all.end()};
  }

  const Graph& graph_;
  const Uses& uses_;
  std::vector<size_t> inside_,
      behind_;  // softmax to the product of Q and K; the moves of the result, last first
  ValueId score_ = kNoValue;
  size_t qk_ = 0;
  double factor_ = 1, hidden_ = 0;
  bool is_causal_ = false;
  bool hidden_is_infinite_ = false;
  std::array<int64_t, 2> hidden_rows_{};  // queries and keys of the scores where later keys are hidden
  std::vector<SummandAt> summands_;
};

}  // namespace

std::optional<Anchor> attention_anchor(const Graph& graph, const Uses& uses, size_t n) {
  return AttentionFinder(graph, uses).find(n);
}

}  // namespace tuner
