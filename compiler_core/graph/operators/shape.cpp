// Operators whose results follow from types and constants alone. Their math reads no input.
#include <algorithm>
#include <cmath>

#include "compiler_core/graph/families.h"

namespace tuner::graph {
namespace shape_ops {
namespace {

constexpr int64_t kMostConstant = int64_t{1} << 28;  // elements of what a shape may ask for

// Bounds as Python's slices have them, brought into 0..rank.
std::pair<size_t, size_t> slice_of_shape(const Use& use) {
  const int64_t rank = use.rank(0);
  const auto bound = [&](int64_t x) { return std::clamp<int64_t>(x < 0 ? x + rank : x, 0, rank); };
  const int64_t start = bound(use.integer("start", 0)), end = bound(use.integer("end", rank));
  return {static_cast<size_t>(start), static_cast<size_t>(std::max(start, end))};
}
Result<std::vector<TensorType>> shape_types(const Use& use) {
  const auto [start, end] = slice_of_shape(use);
  return one({DType::kInt64, {static_cast<int64_t>(end - start)}});
}
// One of these numbers, by a chain of choices: lists are short.
Expr chosen(const Expr& i, std::span<const int64_t> numbers) {
  Expr value = int_imm(numbers.back());
  for (size_t k = numbers.size() - 1; k-- > 0;)
    value = select(equals(i, Expr(static_cast<int64_t>(k))), int_imm(numbers[k]), value);
  return value;
}
void shape(const Use& use, MathWriter& m) {
  const auto slice = slice_of_shape(use);
  const auto extents = std::span(use.shape(0)).subspan(slice.first, slice.second - slice.first);
  m.result([&](const te::Indices& i) { return chosen(i[0], extents); });
}

Result<std::vector<TensorType>> size_types(const Use& /*use*/) { return one({DType::kInt64, {}}); }
void size(const Use& use, MathWriter& m) {
  m.result([&](const te::Indices& /*i*/) { return int_imm(elements_of(use.shape(0))); });
}

// The value is a tensor of one element; readers of files give it as the attributes "value" and "value_type".
DType value_type(const Use& use) {
  return dtype_from_name(use.word("value_type", "float32")).value_or(DType::kFloat32);
}
Result<std::vector<TensorType>> constant_of_shape_types(const Use& use) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> extents, use.integers(0));
  int64_t elements = 1;
  for (const int64_t extent : extents) {
    if (extent < 0 || extent > kMostConstant / elements)
      return invalid_argument("asks for an extent of ", extent,
                              ", expected 0 or more, and at most 2^28 elements");
    elements *= std::max<int64_t>(extent, 1);
  }
  return one({value_type(use), extents});
}
void constant_of_shape(const Use& use, MathWriter& m) {
  m.result([&](const te::Indices& /*i*/) { return number(value_type(use), use.number("value", 0)); });
}

Result<int64_t> range_length(const Use& use) {
  double bounds[3];
  for (size_t i = 0; i < 3; ++i) {
    ASSIGN_OR_RETURN(const std::vector<double> numbers, use.numbers(i));
    bounds[i] = numbers[0];
  }
  const double length = std::ceil((bounds[1] - bounds[0]) / bounds[2]);
  if (bounds[2] == 0 || !(length <= static_cast<double>(kMostConstant)))
    return invalid_argument("a range of ", length, " numbers, expected at most 2^28");
  return static_cast<int64_t>(std::max(length, 0.0));  // none if it begins behind its end
}
Result<std::vector<TensorType>> range_types(const Use& use) {
  ASSIGN_OR_RETURN(const int64_t length, range_length(use));
  return one({use.dtype(0), {length}});
}
void range(const Use& use, MathWriter& m) {
  const DType dtype = use.dtype(0);
  const Expr start = number(dtype, use.numbers(0)->at(0)), delta = number(dtype, use.numbers(2)->at(0));
  m.result([&](const te::Indices& i) { return start + as(dtype, i[0]) * delta; });
}

Result<std::vector<TensorType>> eye_types(const Use& use) {
  if (use.rank(0) != 2) return invalid_argument("needs a matrix, got ", use.rank(0), " dimensions");
  const DType dtype = dtype_from_name(use.word("dtype", "")).value_or(use.dtype(0));
  return one({dtype, use.shape(0)});
}
void eye(const Use& use, MathWriter& m) {
  const DType dtype = m.type().dtype;
  m.result([&](const te::Indices& i) {
    return select(equals(i[0] + Expr(use.integer("k", 0)), i[1]), number(dtype, 1), number(dtype, 0));
  });
}

constexpr auto kKind = OperatorKind::kShape;
constexpr Operator kRows[] = {
    {"Shape", kKind, 1, 1, 1, shape_types, shape},
    {"Size", kKind, 1, 1, 1, size_types, size},
    {"ConstantOfShape", kKind, 1, 1, 1, constant_of_shape_types, constant_of_shape},
    {"Range", kKind, 3, 3, 1, range_types, range},
    {"EyeLike", kKind, 1, 1, 1, eye_types, eye},
};

}  // namespace
}  // namespace shape_ops

std::span<const Operator> shape_operators() { return shape_ops::kRows; }

}  // namespace tuner::graph
