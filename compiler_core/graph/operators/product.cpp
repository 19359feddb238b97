// Matrix products, and sums of products written as an equation.
#include <algorithm>
#include <map>

#include "compiler_core/graph/operators/matrices.h"

namespace tuner::graph {
namespace product_ops {
namespace {

// --- MatMul ---
Result<std::vector<TensorType>> matmul_types(const Use& use) {
  ASSIGN_OR_RETURN(const Matrices m, matrices_of(use.shape(0), use.shape(1)));
  return one({use.dtype(0), m.result});
}
void matmul(const Use& use, MathWriter& m) {
  m.reduced_result({use.shape(0).back()}, ReduceOp::kSum, [&](const te::Indices& i, const te::Indices& r) {
    return element_a(use, m, 0, 1, i, r[0]) * element_b(use, m, 0, 1, i, r[0]);
  });
}

// --- Gemm: alpha * a * b + beta * c ---
Result<std::vector<TensorType>> gemm_types(const Use& use) {
  if (use.rank(0) != 2 || use.rank(1) != 2)
    return invalid_argument("needs two matrices, got ", to_text(use.type(0)), " and ", to_text(use.type(1)));
  const size_t ta = use.integer("transA", 0) != 0 ? 1 : 0, tb = use.integer("transB", 0) != 0 ? 1 : 0;
  if (use.shape(0)[1 - ta] != use.shape(1)[tb])
    return invalid_argument("sums over ", use.shape(0)[1 - ta], " and ", use.shape(1)[tb], " terms");
  const Shape shape{use.shape(0)[ta], use.shape(1)[1 - tb]};
  if (use.has(2)) {
    ASSIGN_OR_RETURN(const Shape whole, broadcast(shape, use.shape(2)));
    if (whole != shape) return invalid_argument("c is ", to_text(use.type(2)));
  }
  return one({use.dtype(0), shape});
}
void gemm(const Use& use, MathWriter& m) {
  const bool ta = use.integer("transA", 0) != 0, tb = use.integer("transB", 0) != 0;
  const double alpha = use.number("alpha", 1), beta = use.number("beta", 1);
  const auto term = [&](const te::Indices& i, const te::Indices& r) {
    return load(m.in(0), ta ? te::Indices{r[0], i[0]} : te::Indices{i[0], r[0]}) *
           load(m.in(1), tb ? te::Indices{i[1], r[0]} : te::Indices{r[0], i[1]});
  };
  const Shape over{use.shape(0)[ta ? 0 : 1]};
  if (!use.has(2) && alpha == 1) return m.reduced_result(over, ReduceOp::kSum, term);
  const Buffer sum = m.reduced("sum", m.type().shape, over, ReduceOp::kSum, term);
  m.result([&](const te::Indices& i) {
    const DType dtype = use.dtype(0);
    Expr x = load(sum, i);
    if (alpha != 1) x = x * number(dtype, alpha);
    if (use.has(2)) x = x + (beta == 1 ? at(m.in(2), i) : at(m.in(2), i) * number(dtype, beta));
    return x;
  });
}

// --- Einsum ---
// Letters of each operand and of the result; an ellipsis is upper-case letters of its own, right-aligned.
struct Equation {
  std::vector<std::string> operands;
  std::string result, summed;
  std::map<char, int64_t> extents;
};
Result<std::string> letters_of(std::string_view term, size_t rank, size_t& most_dots) {
  std::string letters;
  const size_t dots = term.find("...");
  const size_t named = term.size() - (dots == std::string_view::npos ? 0 : 3);
  if (named > rank || (dots == std::string_view::npos && named != rank))
    return invalid_argument("\"", term, "\" does not fit ", rank, " dimensions");
  for (size_t c = 0; c < term.size(); ++c) {
    if (c == dots) {
      const size_t free = rank - named;
      most_dots = std::max(most_dots, free);
      for (size_t d = free; d-- > 0;) letters += static_cast<char>('A' + d);
      c += 2;
    } else if (term[c] >= 'a' && term[c] <= 'z') {
      letters += term[c];
    } else {
      return invalid_argument("the equation holds '", term[c], "', expected letters a to z");
    }
  }
  return letters;
}
Result<Equation> equation_of(const Use& use) {
  std::string text = use.word("equation", "");
  std::erase(text, ' ');
  const size_t arrow = text.find("->");
  std::string_view left = std::string_view(text).substr(0, arrow);
  Equation e;
  size_t dots = 0;
  for (size_t k = 0; k < use.inputs(); ++k) {
    const size_t comma = left.find(',');
    ASSIGN_OR_RETURN(std::string letters, letters_of(left.substr(0, comma), use.shape(k).size(), dots));
    for (size_t d = 0; d < letters.size(); ++d) {
      int64_t& extent = e.extents.emplace(letters[d], 1).first->second;
      if (extent != 1 && use.shape(k)[d] != 1 && extent != use.shape(k)[d])
        return invalid_argument("'", letters[d], "' is ", extent, " and ", use.shape(k)[d]);
      if (use.shape(k)[d] != 1) extent = use.shape(k)[d];
    }
    e.operands.push_back(std::move(letters));
    if ((comma == std::string_view::npos) != (k + 1 == use.inputs()))
      return invalid_argument("the equation has not ", use.inputs(), " operands");
    left.remove_prefix(comma == std::string_view::npos ? left.size() : comma + 1);
  }
  std::map<char, int> count;
  for (const std::string& letters : e.operands)
    for (const char c : letters) ++count[c];
  if (arrow != std::string::npos) {
    const std::string_view right = std::string_view(text).substr(arrow + 2);
    ASSIGN_OR_RETURN(
        e.result,
        letters_of(right,
                   right.find("...") != std::string_view::npos ? right.size() - 3 + dots : right.size(),
                   dots));
  } else {  // what stands once, by name
    for (size_t d = dots; d-- > 0;) e.result += static_cast<char>('A' + d);
    for (const auto& [c, times] : count)
      if (c >= 'a' && times == 1) e.result += c;
  }
  for (size_t k = 0; k < e.result.size(); ++k)
    if (e.result.find(e.result[k], k + 1) != std::string::npos)
      return invalid_argument("'", e.result[k], "' stands twice in the result");
  for (const char c : e.result)
    if (!count.contains(c)) return invalid_argument("'", c, "' of the result is in no operand");
  for (const auto& [c, times] : count)
    if (e.result.find(c) == std::string::npos) e.summed += c;
  return e;
}
Result<std::vector<TensorType>> einsum_types(const Use& use) {
  ASSIGN_OR_RETURN(const Equation e, equation_of(use));
  Shape shape;
  for (const char c : e.result) shape.push_back(e.extents.at(c));
  return one({use.dtype(0), shape});
}
void einsum(const Use& use, MathWriter& m) {
  const Equation e = *equation_of(use);
  Shape over;
  for (const char c : e.summed) over.push_back(e.extents.at(c));
  m.reduced_result(over, ReduceOp::kSum, [&](const te::Indices& i, const te::Indices& r) {
    Expr product;
    for (size_t k = 0; k < use.inputs(); ++k) {
      te::Indices from;
      for (const char c : e.operands[k]) {
        const size_t in_result = e.result.find(c);
        from.push_back(in_result != std::string::npos ? i[in_result] : r[e.summed.find(c)]);
      }
      const Expr x = at(m.in(k), from);
      product = product.defined() ? product * x : x;
    }
    return product;
  });
}

constexpr auto kKind = OperatorKind::kProduct;
constexpr Operator kRows[] = {
    {"MatMul", kKind, 2, 2, 1, matmul_types, matmul},
    {"Gemm", kKind, 2, 3, 1, gemm_types, gemm},
    {"Einsum", kKind, 1, kAnyNumber, 1, einsum_types, einsum},
};

}  // namespace
}  // namespace product_ops

std::span<const Operator> product_operators() { return product_ops::kRows; }

}  // namespace tuner::graph
