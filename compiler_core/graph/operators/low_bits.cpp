// ONNX Runtime's products with weights of less than a byte.
#include "compiler_core/graph/families.h"

namespace tuner::graph {
namespace low_bits_ops {
namespace {

constexpr int64_t kUsualZero = 8;

// --- com.microsoft.MatMulNBits: a, b, scales, zero points, g_idx, bias ---
struct Sizes {
  int64_t k, columns, group, groups;
};
Sizes sizes_of(const Use& use) {
  Sizes s{use.integer("K", 0), use.integer("N", 0), use.integer("block_size", 0), 0};
  if (s.group > 0) s.groups = (s.k + s.group - 1) / s.group;
  return s;
}
// An operand that stands in one list or in a row for each column.
Status check_rows(const Use& use, size_t input, int64_t columns, int64_t length) {
  if (!use.has(input)) return Status::ok();
  const Shape& given = use.shape(input);
  if (given == Shape{columns, length} || given == Shape{columns * length}) return Status::ok();
  return invalid_argument("input ", input, " is ", to_text(use.type(input)), ", expected [", columns, ",",
                          length, "]");
}
Expr element_of(const MathWriter& m, const Use& use, size_t input, const Expr& column, const Expr& place,
                int64_t length) {
  if (use.rank(input) == 1) return load(m.in(input), {column * length + place});
  return load(m.in(input), {column, place});
}

Result<std::vector<TensorType>> nbits_types(const Use& use) {
  const Sizes s = sizes_of(use);
  if (use.integer("bits", 4) != 4)
    return invalid_argument("bits = ", use.integer("bits", 4), " is not served, expected 4");
  if (use.integer("weight_prepacked", 0) != 0)
    return invalid_argument("weight_prepacked = ", use.integer("weight_prepacked", 0),
                            " is not served, expected 0: weights as the model's format has them");
  if (s.group < 16 || s.group > 256 || (s.group & (s.group - 1)) != 0)
    return invalid_argument("block_size = ", s.group, ", expected a power of two from 16 to 256");
  if (use.rank(0) == 0 || use.shape(0).back() != s.k)
    return invalid_argument("K = ", s.k, ", and a is ", to_text(use.type(0)));
  if (use.shape(1) != Shape{s.columns, s.groups, s.group / 2} || use.dtype(1) != DType::kUInt8)
    return invalid_argument("b is ", to_text(use.type(1)), ", expected uint8[", s.columns, ",", s.groups, ",",
                            s.group / 2, "]");
  RETURN_IF_ERROR(check_rows(use, 2, s.columns, s.groups));
  if (use.has(3) && use.dtype(3) != DType::kUInt8)
    return invalid_argument("zero points of ", use.dtype(3), " are not served, expected uint8");
  RETURN_IF_ERROR(check_rows(use, 3, s.columns, (s.groups + 1) / 2));
  if (use.has(4)) return invalid_argument("input 4 (g_idx) is not served");
  if (use.has(5) && use.shape(5) != Shape{s.columns})
    return invalid_argument("bias is ", to_text(use.type(5)), ", expected [", s.columns, "]");
  Shape shape = use.shape(0);
  shape.back() = s.columns;
  return one({use.dtype(0), shape});
}

// Of the two weights in a byte the first is the remainder, the second the quotient.
Expr half_of(const Expr& byte, const Expr& place) {
  const Expr whole = as(DType::kInt32, byte), sixteen = int_imm(16, DType::kInt32);
  return select(equals(floor_mod(place, 2), Expr(0)), floor_mod(whole, sixteen), floor_div(whole, sixteen));
}

void nbits(const Use& use, MathWriter& m) {
  const Sizes s = sizes_of(use);
  const DType dtype = use.dtype(0);
  const Shape over{s.k};
  const auto term = [&](const te::Indices& i, const te::Indices& r) {
    te::Indices row = i;
    row.back() = r[0];
    const Expr& column = i.back();
    const Expr group = floor_div(r[0], s.group), inside = floor_mod(r[0], s.group);
    const Expr weight = half_of(load(m.in(1), {column, group, floor_div(inside, 2)}), inside);
    Expr zero = int_imm(kUsualZero, DType::kInt32);
    if (use.has(3))
      zero = half_of(element_of(m, use, 3, column, floor_div(group, 2), (s.groups + 1) / 2), group);
    const Expr scale = element_of(m, use, 2, column, group, s.groups);
    return load(m.in(0), row) * (as(dtype, weight - zero) * scale);
  };
  if (!use.has(5)) return m.reduced_result(over, ReduceOp::kSum, term);
  const Buffer sum = m.reduced("sum", m.type().shape, over, ReduceOp::kSum, term);
  m.result([&](const te::Indices& i) { return load(sum, i) + load(m.in(5), {i.back()}); });
}

constexpr Operator kRows[] = {
    {"com.microsoft.MatMulNBits", OperatorKind::kProduct, 3, 6, 1, nbits_types, nbits},
};

}  // namespace
}  // namespace low_bits_ops

std::span<const Operator> low_bits_operators() { return low_bits_ops::kRows; }

}  // namespace tuner::graph
