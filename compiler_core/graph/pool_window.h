// The rule for windows of poolings, which all doors ask: job files, keys of workloads, messages and models.
#pragma once

#include <cstdint>
#include <string>

#include "compiler_core/base/status.h"

namespace tuner::graph {

// Windows along one dimension of an image. Window o has element k of its kernel at o * stride + k * dilation
// - before.
struct PoolWindow {
  int64_t extent = 1, kernel = 1, stride = 1, dilation = 1, before = 0,
          behind = 0;   // before, behind: padding
  int64_t windows = 1;  // how many there are
};
// How a message calls the padding on both sides, and what the kernel has of: "padding[0] (top)", "padding[2]
// (bottom)", "rows".
struct PoolWindowNames {
  std::string before, behind, unit;
};

// A pooling has no answer for a window without an element of the image. InvalidArgument, with the side:
// padding as wide as a window (as ONNX Runtime has it, wherever the last window ends), or a dilated window
// whose elements all miss the image.
Status check_pool_window(const PoolWindow& w, const PoolWindowNames& names);

}  // namespace tuner::graph
