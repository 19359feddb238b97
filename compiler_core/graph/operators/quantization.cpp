// Numbers in 8 or 16 bits and back.
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

constexpr auto kKind = OperatorKind::kElementwise;
constexpr Operator kRows[] = {
    {"QuantizeLinear", kKind, 2, 3, 1, quantize_types, quantize},
    {"DequantizeLinear", kKind, 2, 3, 1, dequantize_types, dequantize},
    {"DynamicQuantizeLinear", OperatorKind::kReduction, 1, 1, 3, dynamic_types, dynamic},
};

}  // namespace
}  // namespace quantization_ops

std::span<const Operator> quantization_operators() { return quantization_ops::kRows; }

}  // namespace tuner::graph
