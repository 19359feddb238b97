// Arrays as NumPy stores them, .npy.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/dtype.h"
#include "compiler_core/base/status.h"

namespace tuner {

struct NpyArray {
  std::vector<int64_t> shape;
  std::string_view bytes;  // of the file given; row-major, little-endian. Its size is the caller's to check
};
// InvalidArgument: no .npy file, a damaged one, elements of another type or order, or in Fortran order.
Result<NpyArray> parse_npy(std::string_view file, DType dtype);
// The type of the file's elements, of either order; never bfloat16, which NumPy does not have: a file of its
// bits is one of uint16. InvalidArgument: as above, or a type that DType does not have.
Result<DType> npy_dtype(std::string_view file);
// A whole file. Elements of bfloat16, which NumPy does not have, are written as their 16 bits.
std::string npy_bytes(DType dtype, const std::vector<int64_t>& shape, const void* elements, int64_t bytes);

}  // namespace tuner
