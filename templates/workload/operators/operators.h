// The operators: the one list of them.
#pragma once

#include <variant>

#include "templates/workload/operators/attention.h"
#include "templates/workload/operators/conv2d.h"
#include "templates/workload/operators/elementwise.h"
#include "templates/workload/operators/kernel.h"
#include "templates/workload/operators/layer_norm.h"
#include "templates/workload/operators/matmul.h"
#include "templates/workload/operators/matmul_nbits.h"
#include "templates/workload/operators/pool2d.h"
#include "templates/workload/operators/program.h"
#include "templates/workload/operators/reduce.h"
#include "templates/workload/operators/rms_norm.h"
#include "templates/workload/operators/softmax.h"
#include "templates/workload/operators/transpose.h"

namespace tuner {

// In the order in which messages name them. The first is what a Workload is before it is set.
using AnyOperator =
    std::variant<MatmulWorkload, MatmulNBitsWorkload, Conv2dWorkload, Pool2dWorkload, SoftmaxWorkload,
                 LayerNormWorkload, RmsNormWorkload, ReduceWorkload, TransposeWorkload, ElementwiseWorkload,
                 ProgramWorkload, KernelWorkload, AttentionWorkload>;

}  // namespace tuner
