// Determinants of matrices.
#include <algorithm>

#include "compiler_core/graph/families.h"

namespace tuner::graph {
namespace matrix_ops {
namespace {

// Every step of the elimination is a few stages of its own.
constexpr int64_t kMostRows = 32;

Result<std::vector<TensorType>> det_types(const Use& use) {
  const Shape& s = use.shape(0);
  if (s.size() < 2 || s.back() != s[s.size() - 2])
    return invalid_argument("needs square matrices, got ", to_text(use.type(0)));
  if (s.back() > kMostRows)
    return invalid_argument("matrices of ", s.back(), " rows, expected at most ", kMostRows);
  return one({use.dtype(0), {s.begin(), s.end() - 2}});
}

te::Indices with(te::Indices i, const Expr& row, const Expr& column) {
  i.push_back(row);
  i.push_back(column);
  return i;
}
// What is left of the matrices, and the product of the pivots before it.
struct Elimination {
  Buffer matrices, product;
  int64_t rows;
};
// One step: the row with the largest first element becomes the first, and is taken off the others.
Elimination eliminated(MathWriter& m, const Elimination& before, const Shape& batch, DType dtype) {
  const int64_t n = before.rows;
  const auto size = [&](const te::Indices& i, const te::Indices& r) {
    return unary(UnaryOp::kAbs, load(before.matrices, with(i, r[0], Expr(0))));
  };
  const Buffer most = m.reduced(str("most", n), batch, {n}, ReduceOp::kMax, size);
  const Buffer found =
      m.reduced(str("pivot", n), batch, {n}, ReduceOp::kMin, [&](const auto& i, const auto& r) {
        return select(is_extreme(size(i, r), load(most, i)), r[0], Expr(n - 1));
      });
  const auto row = [&](const te::Indices& i) { return min(max(load(found, i), Expr(0)), Expr(n - 1)); };
  const auto pivot = [&](const te::Indices& i) { return load(before.matrices, with(i, row(i), Expr(0))); };
  Elimination after{.rows = n - 1};
  after.product = m.stage(str("product", n), batch, dtype, [&](const te::Indices& i) {
    const Expr sign = select(equals(row(i), Expr(0)), number(dtype, 1), number(dtype, -1));
    return load(before.product, i) * pivot(i) * sign;
  });
  Shape shape = batch;
  shape.insert(shape.end(), 2, n - 1);
  after.matrices = m.stage(str("rest", n), shape, dtype, [&](const te::Indices& i) {
    const te::Indices at(i.begin(), i.end() - 2);
    const Expr own = i[i.size() - 2] + Expr(1), column = i.back() + Expr(1), chosen = row(at),
               first = pivot(at);
    const Expr from = select(equals(own, chosen), Expr(0), own);  // the rows are exchanged
    const Expr x = load(before.matrices, with(at, from, column));
    const Expr factor = load(before.matrices, with(at, from, Expr(0))) / first;
    // Without a pivot all are 0, and so is the determinant.
    return select(equals(first, number(dtype, 0)), x,
                  x - factor * load(before.matrices, with(at, chosen, column)));
  });
  return after;
}
void det(const Use& use, MathWriter& m) {
  const DType dtype = use.dtype(0);
  const Shape batch = m.type().shape;
  Elimination rest{m.in(0), nullptr, use.shape(0).back()};
  rest.product = m.stage("product", batch, dtype, [&](const te::Indices& /*i*/) { return number(dtype, 1); });
  while (rest.rows > 1) rest = eliminated(m, rest, batch, dtype);
  m.result([&](const te::Indices& i) {
    return load(rest.product, i) * load(rest.matrices, with(i, Expr(0), Expr(0)));
  });
}

constexpr Operator kRows[] = {
    {"Det", OperatorKind::kReduction, 1, 1, 1, det_types, det},
};

}  // namespace
}  // namespace matrix_ops

std::span<const Operator> matrix_operators() { return matrix_ops::kRows; }

}  // namespace tuner::graph
