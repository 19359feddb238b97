// Numbers in 8 or 16 bits and back.
#include <cmath>

#include "compiler_core/base/int_math.h"
#include "compiler_core/graph/families.h"

namespace tuner::graph {
namespace quantization_ops {
namespace {

Result<size_t> quantized_axis(const Use& use) {
  ASSIGN_OR_RETURN(const int64_t axis, use.axis("axis", 1, std::max<int64_t>(use.rank(0), 2),
                                                std::max<int64_t>(use.rank(0), 2) - 1));
  return static_cast<size_t>(axis);
}
// Scales and zero points: one number, one an index of the axis, or one a block of such indices.
Status check_scales(const Use& use) {
  ASSIGN_OR_RETURN(const size_t axis, quantized_axis(use));
  const int64_t block = use.integer("block_size", 0);
  Shape of_blocks = use.shape(0);
  if (block != 0) {
    if (block < 1 || axis >= of_blocks.size() || of_blocks[axis] <= block)
      return invalid_argument("block_size is ", block, " for ", to_text(use.type(0)));
    of_blocks[axis] = ceil_div(of_blocks[axis], block);
  }
  for (const size_t i : {1, 2}) {
    if (!use.has(i)) continue;
    if (block != 0 && use.shape(i) != of_blocks)
      return invalid_argument("input ", i, " is ", to_text(use.type(i)),
                              ", expected one number for each block of ", block);
    if (block != 0) continue;
    const bool single = elements_of(use.shape(i)) == 1;
    if (!single && (axis >= use.shape(0).size() || use.shape(i) != Shape{use.shape(0)[axis]}))
      return invalid_argument("input ", i, " is ", to_text(use.type(i)), " for ", to_text(use.type(0)));
  }
  if (use.has(2) && use.shape(1) != use.shape(2) &&
      (elements_of(use.shape(1)) != 1 || elements_of(use.shape(2)) != 1))
    return invalid_argument("the scale is ", to_text(use.type(1)), ", the zero point ", to_text(use.type(2)),
                            ", expected one shape");
  return Status::ok();
}
Expr of_axis(const Use& use, const MathWriter& m, size_t input, const te::Indices& i) {
  if (elements_of(use.shape(input)) == 1)
    return at(m.in(input), te::Indices(use.shape(input).size(), Expr(0)));
  const size_t axis = *quantized_axis(use);
  const int64_t block = use.integer("block_size", 0);
  if (block == 0) return load(m.in(input), {i[axis]});
  te::Indices from = i;
  from[axis] = floor_div(i[axis], Expr(block));
  return load(m.in(input), from);
}

Result<std::vector<TensorType>> quantize_types(const Use& use) {
  RETURN_IF_ERROR(check_scales(use));
  const DType otherwise = dtype_from_name(use.word("output_dtype", "")).value_or(DType::kUInt8);
  const DType to = use.has(2) ? use.dtype(2) : otherwise;
  constexpr int64_t kHas16Bits = 21;
  const bool is_byte = to == DType::kInt8 || to == DType::kUInt8,
             is_word = to == DType::kInt16 || to == DType::kUInt16;
  if (!is_byte && !(is_word && use.operator_set() >= kHas16Bits))
    return invalid_argument("a result of ", to, " is not served");
  return one({to, use.shape(0)});
}
// Rounded to the nearest, of two the even one, and saturated.
void quantize(const Use& use, MathWriter& m) {
  m.result([&](const te::Indices& i) {
    const Expr x = as(DType::kFloat32, load(m.in(0), i)) / as(DType::kFloat32, of_axis(use, m, 1, i));
    const Expr zero = use.has(2) ? as(DType::kFloat32, of_axis(use, m, 2, i)) : float_imm(0);
    return saturated(unary(UnaryOp::kRound, x) + zero, m.type().dtype);
  });
}

Result<std::vector<TensorType>> dequantize_types(const Use& use) {
  RETURN_IF_ERROR(check_scales(use));
  const std::string name = use.word("output_dtype", "");
  const auto named = dtype_from_name(name);
  if (!name.empty() && (!named || !is_float(*named)))
    return invalid_argument("a result of ", name, " is not served");
  return one({named.value_or(use.dtype(1)), use.shape(0)});
}
void dequantize(const Use& use, MathWriter& m) {
  m.result([&](const te::Indices& i) {
    const Expr x = as(DType::kInt32, load(m.in(0), i));
    const Expr zero = use.has(2) ? as(DType::kInt32, of_axis(use, m, 2, i)) : int_imm(0, DType::kInt32);
    return as(m.type().dtype, x - zero) * as(m.type().dtype, of_axis(use, m, 1, i));
  });
}

// Quantised by the range of the data itself, which is made to hold zero.
Result<std::vector<TensorType>> dynamic_types(const Use& use) {
  return std::vector<TensorType>{{DType::kUInt8, use.shape(0)}, {DType::kFloat32, {}}, {DType::kUInt8, {}}};
}
void dynamic(const Use& use, MathWriter& m) {
  const auto element = [&](const te::Indices& /*i*/, const te::Indices& r) { return load(m.in(0), r); };
  const Buffer least = m.reduced("min", {}, use.shape(0), ReduceOp::kMin, element);
  const Buffer most = m.reduced("max", {}, use.shape(0), ReduceOp::kMax, element);
  const Buffer scale = m.stage("scale", {}, [&](const te::Indices& /*i*/) {
    return (max(load(most, {}), float_imm(0)) - min(load(least, {}), float_imm(0))) / float_imm(255);
  });
  const Buffer zero = m.stage("zero", {}, [&](const te::Indices& /*i*/) {
    return unary(
        UnaryOp::kRound,
        saturated(float_imm(0) - min(load(least, {}), float_imm(0)) / load(scale, {}), DType::kUInt8));
  });
  m.result(0, [&](const te::Indices& i) {
    return saturated(unary(UnaryOp::kRound, load(m.in(0), i) / load(scale, {})) + load(zero, {}),
                     DType::kUInt8);
  });
  m.result(1, [&](const te::Indices& /*i*/) { return load(scale, {}); });
  m.result(2, [&](const te::Indices& /*i*/) { return load(zero, {}); });
}

// --- operators of ONNX Runtime's domain, which networks in 8 bits have beside QLinearConv ---
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
Expr quantized(const Use& use, const MathWriter& m, const Expr& real, size_t zero) {
  return saturated(unary(UnaryOp::kRound, real) + as(DType::kFloat32, single_zero(use, m, zero)),
                   use.dtype(0));
}

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

// x, its scale and zero point, those of the result.
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
    {"com.microsoft.QLinearSoftmax", OperatorKind::kReduction, 4, 5, 1, qlinear_softmax_types,
     qlinear_softmax},
    {"tuner.QLinearLayerNormalization", OperatorKind::kReduction, 4, 4, 1, qlinear_norm_types, qlinear_norm},
    {"com.microsoft.QLinearAdd", kKind, 7, 8, 1, qlinear_add_types, qlinear_add},
    {"com.microsoft.QLinearGlobalAveragePool", OperatorKind::kReduction, 4, 5, 1, qlinear_average_types,
     qlinear_average},
    {"QuantizeLinear", kKind, 2, 3, 1, quantize_types, quantize},
    {"DequantizeLinear", kKind, 2, 3, 1, dequantize_types, dequantize},
    {"DynamicQuantizeLinear", OperatorKind::kReduction, 1, 1, 3, dynamic_types, dynamic},
};

}  // namespace
}  // namespace quantization_ops

std::span<const Operator> quantization_operators() { return quantization_ops::kRows; }

}  // namespace tuner::graph
