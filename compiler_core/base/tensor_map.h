// TensorMap: how the copy engine of a Hopper GPU (TMA) sees an array in global memory: its dimensions, the
// box that one copy takes of it, and where the elements of a box lie in shared memory.
//
// It holds what the driver's cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col are asked for, in their words
// and order: dimension 0 is the innermost one, whose elements lie side by side. Elements of a box that lie
// outside of the array arrive as zeros (or NaN), so that a kernel needs no guard.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler_core/base/dtype.h"
#include "compiler_core/base/status.h"

namespace tuner {

struct TensorMap {
  enum class Kind : uint8_t {
    kTiled,   // a box, at the coordinates of its first element
    kIm2col,  // pixels in a row, of an image with `channels` of each, as a convolution reads them
  };
  Kind kind = Kind::kTiled;
  DType dtype = DType::kFloat32;
  // Elements of each dimension: 1 to 5 of them; kIm2col 3 to 5, channels first, images last.
  std::vector<int64_t> extents;
  // Bytes from one element of dimension 1, 2... to the next: one fewer than extents.
  std::vector<int64_t> strides;
  std::vector<int64_t> box;    // kTiled: elements of a copy in each dimension
  std::vector<int64_t> steps;  // every how many elements of a dimension are copied; empty: each
  // kIm2col: the corners within which the first pixel of the filter moves, dimensions 1 to rank - 2; channels
  // and pixels of a copy.
  std::vector<int64_t> lower, upper;
  int64_t channels = 0, pixels = 0;
  // 16-byte units of a box's rows in shared memory are exchanged within so many bytes: 0 (as they come), 32,
  // 64 or 128.
  int64_t swizzle_bytes = 0;
  int64_t l2_bytes = 0;    // what L2 gets from memory at once: 0 (as asked), 64, 128 or 256
  bool fills_nan = false;  // in place of zeros, of floats

  size_t rank() const { return extents.size(); }
  int64_t box_elements() const;
  int64_t box_bytes() const { return box_elements() * dtype_bytes(dtype); }
  // Bytes of memory from its first element to behind its last.
  int64_t array_bytes() const;
  bool operator==(const TensorMap&) const = default;
};

// OK, or InvalidArgument naming what the driver's manual does not allow, with what was found and what is
// expected: "strides[0] is 74, expected a multiple of 16". The address of the array is not known here: it
// must be a multiple of 16.
Status check_tensor_map(const TensorMap& map);
// The same, and the array must not reach beyond `bytes`.
Status check_tensor_map(const TensorMap& map, int64_t bytes);

// Returns the byte, counted from a multiple of 1024, at which byte `at` of a box lies in shared memory.
int64_t swizzled_byte(int64_t at, int64_t swizzle_bytes);
// A box in shared memory begins at a multiple of so many bytes.
int64_t box_alignment(const TensorMap& map);

// "bfloat16 [4096, 4096], box [64, 128], swizzle 128", the innermost dimension first.
std::string to_text(const TensorMap& map);

}  // namespace tuner
