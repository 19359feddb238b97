// Operands of a task as a peer wants them: the task's own where they fit, else copies on the device that are
// stored otherwise.
#pragma once

#include <functional>

#include "tests/bench/gpu/device_case.h"

namespace tuner {

using Address = std::function<cuda::DevicePtr(int set)>;

struct ProductOperands {
  Address a, b, out;
  Address bias, residual;  // empty: the product has none
  PeerAnswer answer;       // what these operands make of the answer
};
// The task's own, with a bias of out's type.
Result<ProductOperands> product_operands(const DeviceCase& ours, const MatmulWorkload& w);
// As cuBLASLt takes bytes: a less 128 as int8 [M, K], b as [N, K]; without bias and residual.
Result<ProductOperands> byte_operands(const DeviceCase& ours, const MatmulWorkload& w);
// Of a convolution that is a product of its pixels by its weight, likewise.
Result<ProductOperands> pixel_operands(const DeviceCase& ours, const Conv2dWorkload& w);

struct ConvolutionOperands {
  Address data, weight, out;
  Address bias, residual;
  PeerAnswer answer;
};
// `channels_last`: images as NHWC, whatever the task says, and weights as [OC, KH, KW, IC]; a task with a
// residual must say so itself. The bias has elements of type `bias`.
Result<ConvolutionOperands> convolution_operands(const DeviceCase& ours, const Conv2dWorkload& w,
                                                 bool channels_last, DType bias);

}  // namespace tuner
