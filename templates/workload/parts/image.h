// Images: how they lie in memory, and windows that move over them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/ir/expr.h"

namespace tuner {

// Layouts: NCHW; NHWC, with the channels of a pixel side by side; or NCHW4c, NCHW8c, NCHW16c with channels in
// blocks: [N, C/16, H, W, 16]. Shapes in files and keys name the extents as NCHW.
//
// Returns the channels of a block: 1 for NCHW and NHWC, 16 for NCHW16c; 0 for an unknown layout.
int64_t channel_block(std::string_view layout);
// True if the channels of a pixel lie side by side: NHWC.
bool is_channels_last(std::string_view layout);
// True if the pixels of a channel lie side by side: NCHW.
bool is_planar(std::string_view layout);
std::string layout_names();  // "NCHW, NHWC, NCHW4c, NCHW8c or NCHW16c"
// Returns the shape in memory of an image in that layout: {N, C, H, W}, {N, H, W, C}, or {N, C/block, H, W,
// block}.
std::vector<int64_t> image_shape(std::string_view layout, int64_t n, int64_t c, int64_t h, int64_t w);
// Returns the indices of one element of that image.
std::vector<Expr> image_index(std::string_view layout, const Expr& n, const Expr& c, const Expr& h,
                              const Expr& w);
// The other way round: which element it is that lies there.
struct ImagePlace {
  Expr n, c, h, w;
};
ImagePlace image_place(std::string_view layout, std::span<const Expr> index);

// The layout is known, and its blocks divide the channels. `which` tells whose they are: " input".
Status check_layout(std::string_view name, const std::string& layout, std::string_view which,
                    int64_t channels);

// A window along one dimension: output o has element k of the kernel at o * stride + k * dilation - before.
struct ImageWindow {
  int64_t in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, before = 0;
};
// Returns the pairs of an output and an element of its kernel that meet inside the image.
int64_t pairs_inside(const ImageWindow& w);
// Returns the outputs whose window has at least one element of the image: others are only padding.
int64_t outputs_inside(const ImageWindow& w);

}  // namespace tuner
