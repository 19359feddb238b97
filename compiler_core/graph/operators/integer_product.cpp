// Matrix products of integers with zero points: exact sums, or rounded to bytes.
#include "compiler_core/graph/operators/matrices.h"

namespace tuner::graph {
namespace integer_product_ops {
namespace {

Expr whole(const Expr& x) { return as(DType::kInt32, x); }
// The input's one number, or that of the place: a row of a, a column of b.
Expr of_place(const Use& use, const MathWriter& m, size_t input, const Expr& place) {
  const int64_t count = elements_of(use.shape(input));
  te::Indices i(use.shape(input).size(), Expr(0));
  for (size_t d = 0; d < i.size(); ++d)
    if (count > 1 && use.shape(input)[d] == count) i[d] = place;
  return load(m.in(input), i);
}
Expr zero_point(const Use& use, const MathWriter& m, size_t input, const Expr& place) {
  return use.has(input) ? whole(of_place(use, m, input, place)) : int_imm(0, DType::kInt32);
}
// One number, or `count` that lie in this dimension of the matrices.
Status check_numbers(const Use& use, size_t input, int64_t count, size_t dimension) {
  if (!use.has(input) || elements_of(use.shape(input)) == 1) return Status::ok();
  Shape whole(dimension + 1, 1);
  whole[dimension] = count;
  Shape given = use.shape(input);
  if (given == Shape{count}) return Status::ok();
  if (given.size() == whole.size() + 1 && given.back() == 1) given.pop_back();  // [.., rows, 1]
  if (given == whole) return Status::ok();
  return invalid_argument("input ", input, " is ", to_text(use.type(input)), ", expected 1 or ", count,
                          " numbers");
}
Status check_rows(const Use& use, std::initializer_list<size_t> inputs, const Matrices& m) {
  for (const size_t i : inputs) RETURN_IF_ERROR(check_numbers(use, i, m.rows(), m.a.size() - 2));
  return Status::ok();
}
Status check_columns(const Use& use, std::initializer_list<size_t> inputs, const Matrices& m) {
  for (const size_t i : inputs) RETURN_IF_ERROR(check_numbers(use, i, m.columns(), m.b.size() - 1));
  return Status::ok();
}
// A sum as bytes: times `factor`, rounded, and `zero` added.
Expr requantized(const Expr& sum, const Expr& factor, const Expr& zero, DType dtype) {
  const Expr real = as(DType::kFloat32, sum) * factor;
  return saturated(unary(UnaryOp::kRound, real) + as(DType::kFloat32, zero), dtype);
}

// --- a, b, their zero points ---
Result<std::vector<TensorType>> matmul_integer_types(const Use& use) {
  ASSIGN_OR_RETURN(const Matrices m, matrices_of(use.shape(0), use.shape(1)));
  RETURN_IF_ERROR(check_rows(use, {2}, m));
  RETURN_IF_ERROR(check_columns(use, {3}, m));
  return one({DType::kInt32, m.result});
}
void matmul_integer(const Use& use, MathWriter& m) {
  m.reduced_result({use.shape(0).back()}, ReduceOp::kSum, [&](const te::Indices& i, const te::Indices& r) {
    return (whole(element_a(use, m, 0, 1, i, r[0])) - zero_point(use, m, 2, row_of(use, 0, 1, i))) *
           (whole(element_b(use, m, 0, 1, i, r[0])) - zero_point(use, m, 3, column_of(use, 1, i)));
  });
}

// --- a, its scale and zero point, b, its scale and zero point, those of the result ---
// A scale and a zero point a row of a, a column of b, or one.
Result<std::vector<TensorType>> qlinear_matmul_types(const Use& use) {
  ASSIGN_OR_RETURN(const Matrices m, matrices_of(use.shape(0), use.shape(3)));
  RETURN_IF_ERROR(check_rows(use, {1, 2}, m));
  RETURN_IF_ERROR(check_columns(use, {4, 5}, m));
  for (const size_t i : {6, 7})
    if (elements_of(use.shape(i)) != 1)
      return invalid_argument("a result with several scales or zero points is not served");
  return one({use.dtype(7), m.result});
}
void qlinear_matmul(const Use& use, MathWriter& m) {
  const Buffer sum = m.reduced(
      "sum", m.type().shape, {use.shape(0).back()}, ReduceOp::kSum, [&](const auto& i, const auto& r) {
        return (whole(element_a(use, m, 0, 3, i, r[0])) - zero_point(use, m, 2, row_of(use, 0, 3, i))) *
               (whole(element_b(use, m, 0, 3, i, r[0])) - zero_point(use, m, 5, column_of(use, 3, i)));
      });
  m.result([&](const te::Indices& i) {
    const Expr factor = of_place(use, m, 1, row_of(use, 0, 3, i)) *
                        of_place(use, m, 4, column_of(use, 3, i)) / of_place(use, m, 6, Expr(0));
    return requantized(load(sum, i), factor, zero_point(use, m, 7, Expr(0)), m.type().dtype);
  });
}

// --- a, b, their scales, their zero points, a bias of floats: the floats that the product stands for ---
Result<std::vector<TensorType>> matmul_to_float_types(const Use& use) {
  ASSIGN_OR_RETURN(const Matrices m, matrices_of(use.shape(0), use.shape(1)));
  RETURN_IF_ERROR(check_rows(use, {2, 4}, m));
  RETURN_IF_ERROR(check_columns(use, {3, 5}, m));
  if (use.has(6) && use.shape(6) != Shape{m.columns()})
    return invalid_argument("the bias is ", to_text(use.type(6)), ", expected ", m.columns(), " numbers");
  return one({use.dtype(2), m.result});
}
void matmul_to_float(const Use& use, MathWriter& m) {
  const Buffer sum = m.reduced(
      "sum", m.type().shape, {use.shape(0).back()}, ReduceOp::kSum, [&](const auto& i, const auto& r) {
        return (whole(element_a(use, m, 0, 1, i, r[0])) - zero_point(use, m, 4, row_of(use, 0, 1, i))) *
               (whole(element_b(use, m, 0, 1, i, r[0])) - zero_point(use, m, 5, column_of(use, 1, i)));
      });
  m.result([&](const te::Indices& i) {
    const Expr factor = of_place(use, m, 2, row_of(use, 0, 1, i)) * of_place(use, m, 3, column_of(use, 1, i));
    const Expr x = as(DType::kFloat32, load(sum, i)) * factor;
    return use.has(6) ? x + load(m.in(6), {column_of(use, 1, i)}) : x;
  });
}

// --- QGemm: QLinearMatMul with either matrix transposed, and a bias of int32 behind b ---
// Without a scale of its own the result is the floats that the bytes would stand for.
bool is_transposed(const Use& use, const char* which) { return use.integer(which, 0) != 0; }
Result<std::vector<TensorType>> qgemm_types(const Use& use) {
  if (use.rank(0) != 2 || use.rank(3) != 2)
    return invalid_argument("needs two matrices, got ", to_text(use.type(0)), " and ", to_text(use.type(3)));
  Shape a = use.shape(0), b = use.shape(3);
  if (is_transposed(use, "transA")) std::swap(a[0], a[1]);
  if (is_transposed(use, "transB")) std::swap(b[0], b[1]);
  ASSIGN_OR_RETURN(const Matrices m, matrices_of(a, b));
  RETURN_IF_ERROR(check_columns(use, {4, 5}, m));
  for (const size_t i : {1, 2, 7, 8})
    if (use.has(i) && elements_of(use.shape(i)) != 1)
      return invalid_argument("input ", i, " is ", to_text(use.type(i)), ", expected 1 number");
  if (use.has(6)) {
    ASSIGN_OR_RETURN(const Shape whole, broadcast(m.result, use.shape(6)));
    if (whole != m.result) return invalid_argument("c is ", to_text(use.type(6)));
  }
  if (!use.has(7) && use.has(8)) return invalid_argument("input 8 is a zero point without a scale");
  const DType bytes = use.has(8) ? use.dtype(8) : use.dtype(0);
  return one({use.has(7) ? bytes : DType::kFloat32, m.result});
}
void qgemm(const Use& use, MathWriter& m) {
  const bool ta = is_transposed(use, "transA"), tb = is_transposed(use, "transB");
  const Buffer sum = m.reduced(
      "sum", m.type().shape, {use.shape(0)[ta ? 0 : 1]}, ReduceOp::kSum, [&](const auto& i, const auto& r) {
        const Expr a = load(m.in(0), ta ? te::Indices{r[0], i[0]} : te::Indices{i[0], r[0]}),
                   b = load(m.in(3), tb ? te::Indices{i[1], r[0]} : te::Indices{r[0], i[1]});
        return (whole(a) - zero_point(use, m, 2, Expr(0))) * (whole(b) - zero_point(use, m, 5, i[1]));
      });
  m.result([&](const te::Indices& i) {
    Expr x = load(sum, i);
    if (use.has(6)) x = x + at(m.in(6), i);
    Expr factor = of_place(use, m, 1, Expr(0)) * of_place(use, m, 4, i[1]);
    if (const double alpha = use.number("alpha", 1); alpha != 1)
      factor = float_imm(double{static_cast<float>(alpha)}) * factor;
    if (!use.has(7)) return as(DType::kFloat32, x) * factor;
    return requantized(x, factor / of_place(use, m, 7, Expr(0)), zero_point(use, m, 8, Expr(0)),
                       m.type().dtype);
  });
}

constexpr auto kKind = OperatorKind::kProduct;
constexpr Operator kRows[] = {
    {"MatMulInteger", kKind, 2, 4, 1, matmul_integer_types, matmul_integer},
    {"QLinearMatMul", kKind, 8, 8, 1, qlinear_matmul_types, qlinear_matmul},
    {"com.microsoft.MatMulIntegerToFloat", kKind, 4, 7, 1, matmul_to_float_types, matmul_to_float},
    {"com.microsoft.QGemm", kKind, 6, 9, 1, qgemm_types, qgemm},
};

}  // namespace
}  // namespace integer_product_ops

std::span<const Operator> integer_product_operators() { return integer_product_ops::kRows; }

}  // namespace tuner::graph
