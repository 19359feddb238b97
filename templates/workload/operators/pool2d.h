#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "compiler_core/ir/stmt.h"
#include "templates/workload/parts/image.h"

namespace tuner {

template <class W>
class OperatorFacts;

enum class Pooling : uint8_t { kMax, kAverage };
std::string_view pooling_name(Pooling p);  // "max", "average"

// out[n, c, oh, ow] = max or average over kh, kw of data[n, c, oh*sh + kh - top, ow*sw + kw - left], over the
// elements inside the image; with count_include_pad an average also counts padding, as zeros. Padding is less
// than the kernel, so every window has an element of the image. Global pooling uses a kernel of the image's
// size. The layout (parts/image.h) is that of data and out. Averages are of float32, maxima of bytes, too.
struct Pool2dWorkload {
  static constexpr std::string_view kOp = "pool2d";
  static constexpr bool kMemoryBound = true;
  static const OperatorFacts<Pool2dWorkload>& facts();
  int64_t batch = 1, channels = 1, in_height = 1, in_width = 1;
  int64_t kernel_height = 1, kernel_width = 1;
  std::array<int64_t, 2> stride{1, 1};         // vertical, horizontal
  std::array<int64_t, 4> padding{0, 0, 0, 0};  // top, left, bottom, right
  Pooling pooling = Pooling::kMax;
  bool count_include_pad = false;  // only for averages
  DType dtype = DType::kFloat32;
  std::string layout = "NCHW";

  int64_t out_height() const { return (in_height + padding[0] + padding[2] - kernel_height) / stride[0] + 1; }
  int64_t out_width() const { return (in_width + padding[1] + padding[3] - kernel_width) / stride[1] + 1; }
};

// Its math in one reduction over a window, or in two: over its columns in the stage "rows", then over its
// rows.
enum class PoolOrder : uint8_t { kTogether, kColumnsThenRows };
Program pool2d_in(PoolOrder order, const Pool2dWorkload& w);

}  // namespace tuner
