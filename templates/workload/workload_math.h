// The math of each operator as an unscheduled Program, which Workload::compute() returns. Private to this
// folder.
#pragma once

#include "compiler_core/ir/stmt.h"
#include "templates/workload/workload.h"

namespace tuner {

// product_math.cpp
Program math_of(const MatmulWorkload& w);
Program math_of(const Conv2dWorkload& w);
// pooling_math.cpp
Program math_of(const Pool2dWorkload& w);
// row_math.cpp
Program math_of(const SoftmaxWorkload& w);
// The same with one division per row: row_scale = 1 / row_sum, out = exps * row_scale.
Program softmax_by_reciprocals(const SoftmaxWorkload& w);
Program math_of(const LayerNormWorkload& w);
Program math_of(const ReduceWorkload& w);
Program math_of(const TransposeWorkload& w);
Program math_of(const ElementwiseWorkload& w);

// Applies the activation to a value.
Expr activated(Activation activation, Expr x);

}  // namespace tuner
