// The math of each operator as an unscheduled Program, which Workload::compute() returns. Private to this
// folder.
#pragma once

#include "compiler_core/te/te.h"
#include "templates/workload/tolerance.h"
#include "templates/workload/workload.h"

namespace tuner {

// product_math.cpp
Program math_of(const MatmulWorkload& w);
// The same with a as float32 in a stage of its own, "wide": what a loop broadcasts is not converted each
// time.
Program matmul_of_wide(const MatmulWorkload& w);
// The same where the product of two numbers is that of tensor cores, by 1 or 3 terms (tf32_product of ir/intrinsic.h).
Program matmul_of_tf32(const MatmulWorkload& w, int terms);
Program math_of(const Conv2dWorkload& w);
// The same over a multiple of channels: where theirs are not one, zeros fill up data and weight, in the
// stages "filled" and "filled_weight". For plain images and one group.
Program conv2d_of_filled(const Conv2dWorkload& w, int64_t multiple);
// What follows the sum of a product (matmul, conv2d).
struct Epilogue {
  Buffer bias, residual, scale, zero_point, residual_scale, residual_zero_point;  // null where there is none
  Activation activation;
  std::vector<EpiloguePart> parts;  // in their order
  DType out;
};
// Declares what is added to the product: a residual apart, or the "out" that it lies on; null if there is neither.
template <class Product>
Buffer declare_residual(te::Builder& b, const Product& w, const std::vector<int64_t>& out_shape);
extern template Buffer declare_residual(te::Builder&, const MatmulWorkload&, const std::vector<int64_t>&);
extern template Buffer declare_residual(te::Builder&, const Conv2dWorkload&, const std::vector<int64_t>&);
// Declares its operands, behind the product's own. `out_shape` is that of residual.
template <class Product>
Epilogue declare_epilogue(te::Builder& b, const Product& w, int64_t channels,
                          const std::vector<int64_t>& out_shape);
extern template Epilogue declare_epilogue(te::Builder&, const MatmulWorkload&, int64_t,
                                          const std::vector<int64_t>&);
extern template Epilogue declare_epilogue(te::Builder&, const Conv2dWorkload&, int64_t,
                                          const std::vector<int64_t>&);
// The same for templates that pack none of these operands ahead: a constant bias is read as it is.
Epilogue declare_unpacked_epilogue(te::Builder& b, Conv2dWorkload w);
// Returns the element of out for this sum: of that channel, and of residual[at].
Expr finished(const Epilogue& e, Expr sum, const Expr& channel, const te::Indices& at);
// pooling_math.cpp
Program math_of(const Pool2dWorkload& w);
// The same in one reduction over a window, or in two: over its columns in the stage "rows", then over its rows.
enum class PoolOrder : uint8_t { kTogether, kColumnsThenRows };
Program pool2d_in(PoolOrder order, const Pool2dWorkload& w);
// row_math.cpp
Program math_of(const SoftmaxWorkload& w);
// The same with one division per row: row_scale = 1 / row_sum, out = exps * row_scale.
Program softmax_by_reciprocals(const SoftmaxWorkload& w);
Program math_of(const LayerNormWorkload& w);
Program math_of(const ReduceWorkload& w);
Program math_of(const TransposeWorkload& w);
Program math_of(const ElementwiseWorkload& w);
// program_workload.cpp
Program math_of(const ProgramWorkload& w);
Tolerance tolerance_of_program(const ProgramWorkload& w);
Status check_program(const ProgramWorkload& w);

Expr zero_of(DType dtype);

}  // namespace tuner
