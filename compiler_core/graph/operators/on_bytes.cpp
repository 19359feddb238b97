// Operators of ONNX Runtime's domain on bytes, which networks in 8 bits have beside QLinearConv.
#include "compiler_core/graph/operators/on_bytes.h"

#include <cmath>

namespace tuner::graph {

Status check_single(const Use& use, std::initializer_list<size_t> inputs) {
  for (const size_t i : inputs)
    if (use.has(i) && elements_of(use.shape(i)) != 1)
      return invalid_argument("input ", i, " is ", to_text(use.type(i)), ", expected 1 number");
  return Status::ok();
}
Expr single(const Use& use, const MathWriter& m, size_t input) {
  return at(m.in(input), te::Indices(use.shape(input).size(), Expr(0)));
}
Expr single_zero(const Use& use, const MathWriter& m, size_t input) {
  return use.has(input) ? as(DType::kInt32, single(use, m, input)) : int_imm(0, DType::kInt32);
}
Expr real_of(const Use& use, const MathWriter& m, size_t x, const Expr& byte) {
  return as(DType::kFloat32, as(DType::kInt32, byte) - single_zero(use, m, x + 2)) * single(use, m, x + 1);
}
Expr quantized(const Use& use, const MathWriter& m, const Expr& units, size_t zero) {
  return saturated(unary(UnaryOp::kRound, units) + as(DType::kFloat32, single_zero(use, m, zero)),
                   m.type().dtype);
}

namespace on_bytes_ops {
namespace {

// a, its scale and zero point, b, its scale and zero point, those of the result.
Result<std::vector<TensorType>> qlinear_add_types(const Use& use) {
  RETURN_IF_ERROR(check_single(use, {1, 2, 4, 5, 6, 7}));
  ASSIGN_OR_RETURN(const Shape shape, broadcast(use.shape(0), use.shape(3)));
  return one({use.dtype(0), shape});
}
// The second product is taken away with its sign turned, so that no CPU fuses it with the sum.
void qlinear_add(const Use& use, MathWriter& m) {
  m.result([&](const te::Indices& i) {
    const auto ratio = [&](size_t scale) { return single(use, m, scale) / single(use, m, 6); };
    const Expr a = as(DType::kInt32, at(m.in(0), i)) - single_zero(use, m, 2),
               b = single_zero(use, m, 5) - as(DType::kInt32, at(m.in(3), i));
    const Expr real = as(DType::kFloat32, a) * ratio(1) - ratio(4) * as(DType::kFloat32, b);
    return quantized(use, m, real, 7);
  });
}

// As QLinearAdd's inputs.
void qlinear_mul(const Use& use, MathWriter& m) {
  m.result([&](const te::Indices& i) {
    const Expr a = as(DType::kInt32, at(m.in(0), i)) - single_zero(use, m, 2),
               b = as(DType::kInt32, at(m.in(3), i)) - single_zero(use, m, 5);
    const Expr factor = single(use, m, 1) * single(use, m, 4) / single(use, m, 6);
    return quantized(use, m, as(DType::kFloat32, a * b) * factor, 7);
  });
}

// --- activations: x, its scale and zero point, those of the result ---
Result<std::vector<TensorType>> activation_types(const Use& use) {
  RETURN_IF_ERROR(check_single(use, {1, 2, 3, 4}));
  return like_first(use);
}
void activation(const Use& use, MathWriter& m, const std::function<Expr(const Expr&)>& f) {
  m.result([&](const te::Indices& i) {
    return quantized(use, m, f(real_of(use, m, 0, load(m.in(0), i))) / single(use, m, 3), 4);
  });
}
void qlinear_sigmoid(const Use& use, MathWriter& m) {
  activation(use, m, [](const Expr& x) { return sigmoid(x); });
}
void qlinear_leaky_relu(const Use& use, MathWriter& m) {
  const Expr slope = float_imm(double{static_cast<float>(use.number("alpha", 0.01))});
  activation(use, m, [&](const Expr& x) { return select(x < float_imm(0), x * slope, x); });
}

// --- choices and rows of tensors that stand for other numbers ---
// A condition, x, its scale and zero point, y, its scale and zero point, those of the result.
Result<std::vector<TensorType>> qlinear_where_types(const Use& use) {
  RETURN_IF_ERROR(check_single(use, {2, 3, 5, 6, 7, 8}));
  ASSIGN_OR_RETURN(const Shape chosen, broadcast(use.shape(1), use.shape(4)));
  ASSIGN_OR_RETURN(const Shape shape, broadcast(use.shape(0), chosen));
  return one({use.dtype(1), shape});
}
void qlinear_where(const Use& use, MathWriter& m) {
  m.result([&](const te::Indices& i) {
    const Expr x = real_of(use, m, 1, at(m.in(1), i)), y = real_of(use, m, 4, at(m.in(4), i));
    return quantized(use, m, select(at(m.in(0), i), x, y) / single(use, m, 7), 8);
  });
}
// Scale and zero point of the result; then each part, its scale and zero point.
constexpr size_t kOfPart = 3;
size_t part_count(const Use& use) { return (use.inputs() - 2) / kOfPart; }
size_t part_input(size_t part) { return 2 + kOfPart * part; }
Result<std::vector<TensorType>> qlinear_concat_types(const Use& use) {
  if (use.inputs() < 2 + kOfPart || (use.inputs() - 2) % kOfPart != 0)
    return invalid_argument("has ", use.inputs(), " inputs, expected 2, and 3 for each part");
  RETURN_IF_ERROR(check_single(use, {0, 1}));
  TensorType type = use.type(part_input(0));
  ASSIGN_OR_RETURN(const int64_t axis, use.axis(1, std::ssize(type.shape)));
  int64_t extent = 0;
  for (size_t k = 0; k < part_count(use); ++k) {
    const size_t x = part_input(k);
    RETURN_IF_ERROR(check_single(use, {x + 1, x + 2}));
    if (use.dtype(x) == DType::kFloat32 || use.dtype(x + 1) != DType::kFloat32 ||
        use.dtype(x + 2) != use.dtype(x))
      return invalid_argument("inputs ", x, " to ", x + 2, " are ", use.dtype(x), ", ", use.dtype(x + 1),
                              " and ", use.dtype(x + 2),
                              ", expected bytes, their scale and their zero point");
    TensorType part = use.type(x);
    const bool fits = part.dtype == type.dtype && part.shape.size() == type.shape.size();
    if (fits) {
      extent += part.shape[static_cast<size_t>(axis)];
      part.shape[static_cast<size_t>(axis)] = type.shape[static_cast<size_t>(axis)];
    }
    if (part != type)
      return invalid_argument("input ", x, " is ", to_text(use.type(x)), ", the first part ",
                              to_text(use.type(part_input(0))));
  }
  type.shape[static_cast<size_t>(axis)] = extent;
  if (use.has(1) && use.dtype(1) != type.dtype)
    return invalid_argument("the zero point is ", to_text(use.type(1)), ", the first part ", to_text(type));
  return one(type);
}
void qlinear_concat(const Use& use, MathWriter& m) {
  const auto axis = static_cast<size_t>(*use.axis(1, use.rank(part_input(0))));
  m.result([&](const te::Indices& i) {
    Expr value;
    int64_t end = m.type().shape[axis];
    for (size_t k = part_count(use); k-- > 0;) {
      const int64_t start = end - use.shape(part_input(k))[axis];
      te::Indices own = i;
      own[axis] = i[axis] - Expr(start);
      const Expr real = real_of(use, m, part_input(k), load(m.in(part_input(k)), own));
      value = value.defined() ? select(i[axis] < Expr(end), real, value) : real;
      end = start;
    }
    return quantized(use, m, value / single(use, m, 0), 1);
  });
}

// --- averages and rows: x, its scale and zero point, those of the result ---
Result<std::vector<TensorType>> qlinear_average_types(const Use& use) {
  RETURN_IF_ERROR(check_single(use, {1, 2, 3, 4}));
  if (use.integer("channels_last", 0) != 0) return invalid_argument("channels_last is not served");
  Shape shape = use.shape(0);
  if (shape.size() < 3) return invalid_argument("input 0 is ", to_text(use.type(0)), ", expected an image");
  std::fill(shape.begin() + 2, shape.end(), 1);
  return one({use.dtype(0), shape});
}
void qlinear_average(const Use& use, MathWriter& m) {
  const Shape& image = use.shape(0);
  const Shape over(image.begin() + 2, image.end());
  const int64_t count = elements_of(over);
  const Buffer sum =
      m.reduced("sum", m.type().shape, over, ReduceOp::kSum, [&](const te::Indices& i, const te::Indices& r) {
        te::Indices from{i[0], i[1]};
        from.insert(from.end(), r.begin(), r.end());
        return as(DType::kInt32, load(m.in(0), from)) - single_zero(use, m, 2);
      });
  m.result([&](const te::Indices& i) {
    const Expr divisor = single(use, m, 3) * float_imm(static_cast<double>(count));
    return quantized(use, m, as(DType::kFloat32, load(sum, i)) * (single(use, m, 1) / divisor), 4);
  });
}

// x, its scale and zero point, those of the result; along the last axis. Exponentials come from a table of
// integers, by how far a byte is below the greatest one of its row: x's zero point changes nothing.
constexpr double kExponentialOf0 = 1 << 22;
Result<std::vector<TensorType>> qlinear_softmax_types(const Use& use) {
  RETURN_IF_ERROR(check_single(use, {1, 2, 3, 4}));
  if (!use.numbers(1)) return invalid_argument("a scale of input 0 that is no constant is not served");
  if (use.rank(0) < 1) return invalid_argument("input 0 is ", to_text(use.type(0)), ", expected rows");
  ASSIGN_OR_RETURN(const int64_t axis, use.axis(-1, use.rank(0)));
  if (axis + 1 != use.rank(0)) return invalid_argument("an axis that is not the last one is not served");
  return like_first(use);
}
Shape rows_of(const Use& use) { return {use.shape(0).begin(), use.shape(0).end() - 1}; }
te::Indices row_at(const te::Indices& i, size_t rank) {
  return {i.begin(), i.begin() + static_cast<std::ptrdiff_t>(rank - 1)};
}
te::Indices element_at(te::Indices row, const Expr& column) {
  row.push_back(column);
  return row;
}
void qlinear_softmax(const Use& use, MathWriter& m) {
  const double scale = use.numbers(1)->at(0);
  std::vector<double> numbers;
  for (int below = 0; below < 256; ++below)
    numbers.push_back(std::nearbyint(kExponentialOf0 * std::exp(-below * scale)));
  const Buffer table = m.table("exponentials", DType::kInt32, {256}, numbers);
  const Shape columns{use.shape(0).back()};
  const size_t rank = use.shape(0).size();
  const Buffer most = m.reduced(
      "most", rows_of(use), columns, ReduceOp::kMax,
      [&](const auto& i, const auto& r) { return as(DType::kInt32, load(m.in(0), element_at(i, r[0]))); });
  const auto exponential = [&](const te::Indices& row, const Expr& column) {
    const Expr below = load(most, row) - as(DType::kInt32, load(m.in(0), element_at(row, column)));
    return load(table, {min(max(cast(DType::kInt64, below), Expr(0)), Expr(255))});
  };
  const Buffer total =
      m.reduced("total", rows_of(use), columns, ReduceOp::kSum,
                [&](const auto& i, const auto& r) { return as(DType::kInt64, exponential(i, r[0])); });
  m.result([&](const te::Indices& i) {
    const te::Indices row = row_at(i, rank);
    const Expr share = float_imm(1) / single(use, m, 3) / as(DType::kFloat32, load(total, row));
    return quantized(use, m, as(DType::kFloat32, exponential(row, i.back())) * share, 4);
  });
}

// x, gains and offsets along its last axis, the zero point of the result: a layer normalization whose scales
// are in its gains and offsets. `epsilon` is in units of x's bytes.
Result<std::vector<TensorType>> qlinear_norm_types(const Use& use) {
  RETURN_IF_ERROR(check_single(use, {3}));
  if (use.rank(0) < 1) return invalid_argument("input 0 is ", to_text(use.type(0)), ", expected rows");
  for (const size_t i : {1, 2})
    if (use.shape(i) != Shape{use.shape(0).back()})
      return invalid_argument("input ", i, " is ", to_text(use.type(i)), ", expected ", use.shape(0).back(),
                              " numbers");
  return like_first(use);
}
void qlinear_norm(const Use& use, MathWriter& m) {
  const int64_t n = use.shape(0).back();
  const size_t rank = use.shape(0).size();
  const auto wide = [&](const te::Indices& row, const Expr& column) {
    return as(DType::kInt64, load(m.in(0), element_at(row, column)));
  };
  const Buffer sum = m.reduced("sum", rows_of(use), {n}, ReduceOp::kSum,
                               [&](const auto& i, const auto& r) { return wide(i, r[0]); });
  const Buffer squares =
      m.reduced("squares", rows_of(use), {n}, ReduceOp::kSum,
                [&](const auto& i, const auto& r) { return wide(i, r[0]) * wide(i, r[0]); });
  const double epsilon = use.number("epsilon", 1e-5);
  m.result([&](const te::Indices& i) {
    const te::Indices row = row_at(i, rank);
    const Expr total = load(sum, row);
    const Expr variance =
        as(DType::kFloat32, int_imm(n, DType::kInt64) * load(squares, row) - total * total) /
        float_imm(static_cast<double>(n * n));
    const Expr factor =
        float_imm(1) / unary(UnaryOp::kSqrt, variance + float_imm(double{static_cast<float>(epsilon)}));
    const Expr centred = as(DType::kFloat32, as(DType::kInt32, load(m.in(0), i))) -
                         as(DType::kFloat32, total) / float_imm(static_cast<double>(n));
    const Expr value = centred * factor * load(m.in(1), {i.back()}) + load(m.in(2), {i.back()});
    return quantized(use, m, value, 3);
  });
}

constexpr auto kKind = OperatorKind::kElementwise;
constexpr Operator kRows[] = {
    {"com.microsoft.QLinearAdd", kKind, 7, 8, 1, qlinear_add_types, qlinear_add},
    {"com.microsoft.QLinearMul", kKind, 7, 8, 1, qlinear_add_types, qlinear_mul},
    {"com.microsoft.QLinearSigmoid", kKind, 4, 5, 1, activation_types, qlinear_sigmoid},
    {"com.microsoft.QLinearLeakyRelu", kKind, 4, 5, 1, activation_types, qlinear_leaky_relu},
    {"com.microsoft.QLinearWhere", kKind, 8, 9, 1, qlinear_where_types, qlinear_where},
    {"com.microsoft.QLinearConcat", OperatorKind::kMovement, 5, kAnyNumber, 1, qlinear_concat_types,
     qlinear_concat},
    {"com.microsoft.QLinearGlobalAveragePool", OperatorKind::kReduction, 4, 5, 1, qlinear_average_types,
     qlinear_average},
    {"com.microsoft.QLinearSoftmax", OperatorKind::kReduction, 4, 5, 1, qlinear_softmax_types,
     qlinear_softmax},
    {"tuner.QLinearLayerNormalization", OperatorKind::kReduction, 4, 4, 1, qlinear_norm_types, qlinear_norm},
};

}  // namespace
}  // namespace on_bytes_ops

std::span<const Operator> on_bytes_operators() { return on_bytes_ops::kRows; }

}  // namespace tuner::graph
