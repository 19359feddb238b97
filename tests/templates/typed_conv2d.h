// Convolutions of small types, as the tests of their templates draw them.
#pragma once

#include <optional>

#include "templates/workload/workload.h"

namespace tuner::testing {

struct Types {
  DType dtype;
  std::optional<DType> out = {};
};
inline constexpr Types kTypes[] = {{DType::kBFloat16},
                                   {DType::kInt8},
                                   {DType::kBFloat16, DType::kBFloat16},
                                   {DType::kInt8, DType::kUInt8},
                                   {DType::kInt8, DType::kInt8}};

inline Conv2dWorkload conv(const Types& types, int64_t ic, int64_t height, int64_t width, int64_t oc,
                           int64_t kernel, int64_t stride = 1, int64_t padding = 0) {
  Conv2dWorkload w;
  w.in_channels = ic;
  w.in_height = height;
  w.in_width = width;
  w.out_channels = oc;
  w.kernel_height = w.kernel_width = kernel;
  w.stride = {stride, stride};
  w.padding = {padding, padding, padding, padding};
  w.dtype = types.dtype;
  w.narrow_out = types.out;
  w.constant = {"weight"};
  return w;
}

}  // namespace tuner::testing
