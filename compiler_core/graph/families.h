// The families of the operator table, a file each in operators/.
#pragma once

#include <span>

#include "compiler_core/graph/operator.h"

namespace tuner::graph {

std::span<const Operator> unary_operators();
std::span<const Operator> binary_operators();
std::span<const Operator> shape_operators();
std::span<const Operator> movement_operators();
std::span<const Operator> gather_operators();
std::span<const Operator> reduction_operators();
std::span<const Operator> normalization_operators();
std::span<const Operator> product_operators();
std::span<const Operator> integer_product_operators();
std::span<const Operator> convolution_operators();
std::span<const Operator> pooling_operators();
std::span<const Operator> quantization_operators();
std::span<const Operator> on_bytes_operators();
std::span<const Operator> resize_operators();
std::span<const Operator> recurrent_operators();
std::span<const Operator> attention_operators();
std::span<const Operator> box_operators();
std::span<const Operator> loss_operators();
std::span<const Operator> low_bits_operators();
std::span<const Operator> matrix_operators();
std::span<const Operator> ngram_operators();
std::span<const Operator> region_operators();
std::span<const Operator> sampling_operators();
std::span<const Operator> selection_operators();
std::span<const Operator> signal_operators();

// --- what families share ---
// The shape both broadcast to (as numpy does), or InvalidArgument with both.
Result<Shape> broadcast(const Shape& a, const Shape& b);
// The element of `b` that stands at `i` of a result it is broadcast to.
Expr at(const Buffer& b, const te::Indices& i);
// A number of this type.
Expr number(DType dtype, double value);
// `e` as a value of the type, if it is none yet.
Expr as(DType dtype, const Expr& e);
// Within the numbers of an integer type of 8 or 16 bits, for a cast to that type. A NaN becomes the least of
// them.
Expr saturated(const Expr& x, DType dtype);
// A float as an integer, toward zero. What the type does not hold becomes its nearest number, and a NaN its
// least, on every processor.
Expr to_integer(DType dtype, const Expr& x);
// False for all integers.
Expr is_nan(const Expr& x);
Expr equals(const Expr& a, const Expr& b);
// Whether an element is the extreme that a maximum or minimum found: a NaN, where there is one.
Expr is_extreme(const Expr& element, const Expr& extreme);
// 1 / (1 + e^-x), of floats.
Expr sigmoid(const Expr& x);
Expr logical_not(const Expr& a);
int64_t elements_of(const Shape& shape);
int64_t product_of(const Shape& shape, size_t first, size_t last);  // of extents first .. last - 1
// Place of an element in row-major order, and back.
Expr flat_index(const te::Indices& i, const Shape& shape);
te::Indices indices_of(const Expr& flat, const Shape& shape);
// Result types of one tensor like input 0.
Result<std::vector<TensorType>> like_first(const Use& use);
inline Result<std::vector<TensorType>> one(TensorType type) {
  return std::vector<TensorType>{std::move(type)};
}

}  // namespace tuner::graph
