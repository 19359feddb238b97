#include "compiler_core/base/tensor_map.h"

#include <algorithm>
#include <numeric>

namespace tuner {
namespace {

constexpr int64_t kUnit = 16;  // bytes: of addresses, strides, the inner side of a box
constexpr int64_t kMostExtent = int64_t{1} << 32, kMostStride = (int64_t{1} << 40) - 1;
constexpr int64_t kMostBox = 256, kMostPixels = 1024, kMostStep = 8;
constexpr int64_t kAtom = 8;  // rows after which a swizzle repeats

template <class... Words>
Status refused(const Words&... words) {
  return invalid_argument("tensor map: ", words...);
}

Status check_range(const char* what, size_t d, int64_t found, int64_t least, int64_t most) {
  if (found >= least && found <= most) return Status::ok();
  return refused(what, "[", d, "] is ", found, ", expected ", least, "..", most);
}

Status check_count(const char* what, size_t found, size_t expected) {
  if (found == expected) return Status::ok();
  return refused(what, " has ", found, " numbers, expected ", expected);
}

Status check_array(const TensorMap& m) {
  const size_t least = m.kind == TensorMap::Kind::kTiled ? 1 : 3;
  if (m.rank() < least || m.rank() > 5)
    return refused("it has ", m.rank(), " dimensions, expected ", least, "..5");
  RETURN_IF_ERROR(check_count("strides", m.strides.size(), m.rank() - 1));
  for (size_t d = 0; d < m.rank(); ++d)
    RETURN_IF_ERROR(check_range("extents", d, m.extents[d], 1, kMostExtent));
  for (size_t d = 0; d < m.strides.size(); ++d) {
    RETURN_IF_ERROR(check_range("strides", d, m.strides[d], 0, kMostStride));
    if (m.strides[d] % kUnit != 0)
      return refused("strides[", d, "] is ", m.strides[d], ", expected a multiple of ", kUnit);
  }
  if (m.steps.empty()) return Status::ok();
  RETURN_IF_ERROR(check_count("steps", m.steps.size(), m.rank()));
  for (size_t d = 0; d < m.steps.size(); ++d)
    RETURN_IF_ERROR(check_range("steps", d, m.steps[d], 1, kMostStep));
  return Status::ok();
}

Status check_box(const TensorMap& m) {
  RETURN_IF_ERROR(check_count("box", m.box.size(), m.rank()));
  for (size_t d = 0; d < m.box.size(); ++d) RETURN_IF_ERROR(check_range("box", d, m.box[d], 1, kMostBox));
  return Status::ok();
}

Status check_im2col(const TensorMap& m) {
  constexpr int64_t kMostOffset[] = {32768, 128, 16};  // by rank
  const size_t filters = m.rank() - 2;
  RETURN_IF_ERROR(check_count("lower", m.lower.size(), filters));
  RETURN_IF_ERROR(check_count("upper", m.upper.size(), filters));
  const int64_t most = kMostOffset[m.rank() - 3];
  for (size_t d = 0; d < filters; ++d) {
    RETURN_IF_ERROR(check_range("lower", d, m.lower[d], -most, most - 1));
    RETURN_IF_ERROR(check_range("upper", d, m.upper[d], -most, most - 1));
    if (m.extents[d + 1] + m.upper[d] - m.lower[d] < 1)
      return refused("lower[", d, "] ", m.lower[d], " and upper[", d, "] ", m.upper[d], " leave nothing of ",
                     m.extents[d + 1], " elements");
  }
  if (m.channels < 1 || m.channels > kMostBox)
    return refused("channels is ", m.channels, ", expected 1..", kMostBox);
  if (m.pixels < 1 || m.pixels > kMostPixels)
    return refused("pixels is ", m.pixels, ", expected 1..", kMostPixels);
  return Status::ok();
}

Status check_inner(const TensorMap& m) {
  const int64_t inner = (m.kind == TensorMap::Kind::kTiled ? m.box[0] : m.channels) * dtype_bytes(m.dtype);
  if (inner % kUnit != 0)
    return refused("the inner side of a box has ", inner, " bytes, expected a multiple of ", kUnit);
  if (m.swizzle_bytes != 0 && m.swizzle_bytes != 32 && m.swizzle_bytes != 64 && m.swizzle_bytes != 128)
    return refused("swizzle is ", m.swizzle_bytes, ", expected 0, 32, 64 or 128");
  if (m.swizzle_bytes != 0 && inner > m.swizzle_bytes)
    return refused("the inner side of a box has ", inner, " bytes, expected at most the swizzle of ",
                   m.swizzle_bytes);
  if (m.l2_bytes != 0 && m.l2_bytes != 64 && m.l2_bytes != 128 && m.l2_bytes != 256)
    return refused("l2_bytes is ", m.l2_bytes, ", expected 0, 64, 128 or 256");
  if (m.fills_nan && !is_float(m.dtype)) return refused("fills with NaN, which ", m.dtype, " does not have");
  return Status::ok();
}

std::string list_text(const std::vector<int64_t>& numbers) {
  std::string text;
  for (const int64_t n : numbers) text += str(text.empty() ? "" : ", ", n);
  return "[" + text + "]";
}

}  // namespace

int64_t TensorMap::box_elements() const {
  if (kind == Kind::kIm2col) return channels * pixels;
  int64_t elements = 1;
  for (size_t d = 0; d < box.size(); ++d) {
    const int64_t step = steps.empty() || d == 0 ? 1 : steps[d];
    elements *= (box[d] + step - 1) / step;
  }
  return elements;
}

int64_t TensorMap::array_bytes() const {
  int64_t last = (extents[0] - 1) * dtype_bytes(dtype);
  for (size_t d = 1; d < extents.size(); ++d) last += (extents[d] - 1) * strides[d - 1];
  return last + dtype_bytes(dtype);
}

Status check_tensor_map(const TensorMap& m) {
  if (m.dtype == DType::kBool) return refused("bool is no type of the copy engine");
  RETURN_IF_ERROR(check_array(m));
  RETURN_IF_ERROR(m.kind == TensorMap::Kind::kTiled ? check_box(m) : check_im2col(m));
  return check_inner(m);
}

Status check_tensor_map(const TensorMap& m, int64_t bytes) {
  RETURN_IF_ERROR(check_tensor_map(m));
  // Five products below 2^72 each: in floating point first, where nothing overflows.
  double last = static_cast<double>(m.extents[0]) * static_cast<double>(dtype_bytes(m.dtype));
  for (size_t d = 1; d < m.rank(); ++d)
    last += static_cast<double>(m.extents[d] - 1) * static_cast<double>(m.strides[d - 1]);
  if (last < 9e18 && m.array_bytes() <= bytes) return Status::ok();
  return refused("it reaches over ", last < 9e18 ? std::to_string(m.array_bytes()) : "more than 2^62",
                 " bytes of an array of ", bytes);
}

int64_t swizzled_byte(int64_t at, int64_t swizzle_bytes) {
  if (swizzle_bytes == 0) return at;
  // The number of a 16-byte unit within the span, exclusive or the number of the 128 bytes, as many bits of
  // it.
  const int64_t mask = swizzle_bytes / kUnit - 1;
  return at ^ ((at / 128 & mask) * kUnit);
}

int64_t box_alignment(const TensorMap& map) {
  return map.swizzle_bytes == 0 ? 128 : map.swizzle_bytes * kAtom;
}

std::string to_text(const TensorMap& m) {
  std::string text = str(m.dtype, " ", list_text(m.extents));
  text += m.kind == TensorMap::Kind::kTiled
              ? str(", box ", list_text(m.box))
              : str(", ", m.pixels, " pixels of ", m.channels, " channels between ", list_text(m.lower),
                    " and ", list_text(m.upper));
  if (!m.steps.empty()) text += str(", steps ", list_text(m.steps));
  if (m.swizzle_bytes > 0) text += str(", swizzle ", m.swizzle_bytes);
  if (m.fills_nan) text += ", filled with NaN";
  return text;
}

}  // namespace tuner
