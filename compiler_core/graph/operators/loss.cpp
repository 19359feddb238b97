// Losses of classifiers, as a model that reports them computes them: no gradients.
#include <algorithm>

#include "compiler_core/graph/families.h"

namespace tuner::graph {
namespace loss_ops {
namespace {

// Scores [N, C, d1, ...], classes [N, d1, ...], perhaps a weight per class.
Result<std::vector<TensorType>> loss_types(const Use& use) {
  const Shape &scores = use.shape(0), &classes = use.shape(1);
  Shape expected = scores;
  if (scores.size() >= 2) expected.erase(expected.begin() + 1);
  if (scores.size() < 2 || classes != expected)
    return invalid_argument("classes are ", to_text(use.type(1)), " for scores ", to_text(use.type(0)),
                            ", expected the same without dimension 1");
  if (use.has(2) && use.shape(2) != Shape{scores[1]})
    return invalid_argument("weights are ", to_text(use.type(2)), ", expected one for each of ", scores[1],
                            " classes");
  if (use.is_constant(1)) {
    ASSIGN_OR_RETURN(const std::vector<int64_t> known, use.integers(1));
    for (const int64_t c : known)
      if ((c < 0 || c >= scores[1]) &&
          !(use.has_attribute("ignore_index") && c == use.integer("ignore_index", 0)))
        return invalid_argument("class ", c, ", expected 0 to ", scores[1] - 1);
  }
  const bool is_none = use.word("reduction", "mean") == "none";
  return std::vector<TensorType>{{use.dtype(0), is_none ? classes : Shape{}}, use.type(0)};
}

// The loss of an element is -score of its class, times the class's weight. A class to be ignored weighs 0;
// others beyond the scores are brought to the nearest one.
struct Terms {
  const Use& use;
  const MathWriter& m;

  Expr given(const te::Indices& i) const { return as(DType::kInt64, load(m.in(1), i)); }
  Expr known(const te::Indices& i) const { return min(max(given(i), Expr(0)), Expr(use.shape(0)[1] - 1)); }
  Expr counts(const te::Indices& i, const Expr& value) const {
    if (!use.has_attribute("ignore_index")) return value;
    const Expr ignored = equals(given(i), Expr(use.integer("ignore_index", 0)));
    return select(ignored, number(value->dtype, 0), value);
  }
  Expr weight(const te::Indices& i) const {
    const DType dtype = use.dtype(0);
    return counts(i, use.has(2) ? load(m.in(2), {known(i)}) : number(dtype, 1));
  }
  // `score`: at [n, c, d1, ...].
  Expr loss(const te::Indices& i, const Element& score) const {
    te::Indices from = i;
    from.insert(from.begin() + 1, known(i));
    const Expr x = unary(UnaryOp::kNeg, score(from));
    return counts(i, use.has(2) ? x * load(m.in(2), {known(i)}) : x);
  }
};
void write_loss(const Use& use, MathWriter& m, const Element& score) {
  const Terms terms{use, m};
  const std::string way = use.word("reduction", "mean");
  if (way == "none") return m.result(0, [&](const te::Indices& i) { return terms.loss(i, score); });
  if (!m.wants(0)) return;
  const Shape& over = use.shape(1);
  const auto loss = [&](const te::Indices& /*i*/, const te::Indices& r) { return terms.loss(r, score); };
  if (way == "sum") return m.reduced_result(over, ReduceOp::kSum, loss);
  const Buffer sum = m.reduced("sum", {}, over, ReduceOp::kSum, loss);
  const Buffer weights = m.reduced("weights", {}, over, ReduceOp::kSum,
                                   [&](const auto& /*i*/, const auto& r) { return terms.weight(r); });
  m.result(0, [&](const te::Indices& i) { return load(sum, i) / load(weights, i); });
}

Result<std::vector<TensorType>> nll_types(const Use& use) {
  ASSIGN_OR_RETURN(std::vector<TensorType> types, loss_types(use));
  types.resize(1);
  return types;
}
void nll(const Use& use, MathWriter& m) {
  write_loss(use, m, [&](const te::Indices& i) { return load(m.in(0), i); });
}

// The same of the logarithms of a softmax over the classes, which are the second result.
void softmax_cross_entropy(const Use& use, MathWriter& m) {
  const Shape& shape = use.shape(0);
  const auto shared = [](te::Indices i) {
    i.erase(i.begin() + 1);
    return i;
  };
  const auto element = [&](te::Indices i, const te::Indices& r) {
    i.insert(i.begin() + 1, r[0]);
    return load(m.in(0), i);
  };
  const Buffer most = m.reduced("max", use.shape(1), {shape[1]}, ReduceOp::kMax, element);
  const Buffer sum = m.reduced(
      "sum_exp", use.shape(1), {shape[1]}, ReduceOp::kSum,
      [&](const auto& i, const auto& r) { return unary(UnaryOp::kExp, element(i, r) - load(most, i)); });
  const auto logarithm = [&](const te::Indices& i) {
    const te::Indices rest = shared(i);
    return load(m.in(0), i) - load(most, rest) - unary(UnaryOp::kLog, load(sum, rest));
  };
  write_loss(use, m, logarithm);
  m.result(1, logarithm);
}

constexpr auto kKind = OperatorKind::kReduction;
constexpr Operator kRows[] = {
    {"NegativeLogLikelihoodLoss", kKind, 2, 3, 1, nll_types, nll},
    {"SoftmaxCrossEntropyLoss", kKind, 2, 3, 2, loss_types, softmax_cross_entropy},
};

}  // namespace
}  // namespace loss_ops

std::span<const Operator> loss_operators() { return loss_ops::kRows; }

}  // namespace tuner::graph
