#include "templates/workload/parts/image.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "compiler_core/base/int_math.h"

namespace tuner {
namespace {

constexpr std::pair<std::string_view, int64_t> kLayouts[] = {
    {"NCHW", 1}, {"NHWC", 1}, {"NCHW4c", 4}, {"NCHW8c", 8}, {"NCHW16c", 16}};

}  // namespace

int64_t channel_block(std::string_view layout) {
  for (const auto& [name, block] : kLayouts)
    if (name == layout) return block;
  return 0;
}

bool is_channels_last(std::string_view layout) { return layout == "NHWC"; }

bool is_planar(std::string_view layout) { return layout == "NCHW"; }

std::string layout_names() {
  std::string names;
  for (const auto& [name, block] : kLayouts)
    names += str(names.empty() ? "" : name == std::rbegin(kLayouts)->first ? " or " : ", ", name);
  return names;
}

std::vector<int64_t> image_shape(std::string_view layout, int64_t n, int64_t c, int64_t h, int64_t w) {
  if (is_channels_last(layout)) return {n, h, w, c};
  const int64_t block = channel_block(layout);
  if (block <= 1) return {n, c, h, w};
  return {n, c / block, h, w, block};
}

std::vector<Expr> image_index(std::string_view layout, const Expr& n, const Expr& c, const Expr& h,
                              const Expr& w) {
  if (is_channels_last(layout)) return {n, h, w, c};
  const int64_t block = channel_block(layout);
  if (block <= 1) return {n, c, h, w};
  return {n, floor_div(c, block), h, w, floor_mod(c, block)};
}

ImagePlace image_place(std::string_view layout, std::span<const Expr> i) {
  if (is_channels_last(layout)) return {.n = i[0], .c = i[3], .h = i[1], .w = i[2]};
  const int64_t block = channel_block(layout);
  return {.n = i[0], .c = block <= 1 ? i[1] : i[1] * block + i[4], .h = i[2], .w = i[3]};
}

Status check_layout(std::string_view name, const std::string& layout, std::string_view which,
                    int64_t channels) {
  const int64_t block = channel_block(layout);
  if (block == 0) return invalid_argument(name, ": expected ", layout_names(), ", found ", layout);
  if (channels % block == 0) return Status::ok();
  return invalid_argument(name, ": ", layout, " needs a multiple of ", block, which, " channels, found ",
                          channels);
}

int64_t pairs_inside(const ImageWindow& w) {
  int64_t pairs = 0;
  for (int64_t tap = 0; tap < w.kernel; ++tap) {
    const int64_t at = tap * w.dilation - w.before;  // where output 0 has this tap
    const int64_t first = std::max<int64_t>(0, ceil_div(-at, w.stride));
    const int64_t end = std::min(w.out, floor_quotient(w.in - 1 - at, w.stride) + 1);
    pairs += std::max<int64_t>(0, end - first);
  }
  return pairs;
}

int64_t outputs_inside(const ImageWindow& w) {
  int64_t n = 0;
  for (int64_t o = 0; o < w.out; ++o) {
    const int64_t first = o * w.stride - w.before;
    // The first tap that is not before the image, if there is one, lies in it or behind it.
    const int64_t tap = first >= 0 ? 0 : (-first + w.dilation - 1) / w.dilation;
    n += tap < w.kernel && first + tap * w.dilation < w.in ? 1 : 0;
  }
  return n;
}

}  // namespace tuner
