// Tensors of a compiled model from and to files: .npy of NumPy, .pb of ONNX's test data (a TensorProto), else
// raw elements, row-major and little-endian.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "compiler_core/runtime/kernel.h"
#include "compiler_core/runtime/tuner_model.h"

namespace tuner {

// "float32[1, 784]".
std::string type_text(const tuner_arg& tensor);

// The elements of a file that has just this type and shape; a shape may leave out, or add, leading extents of
// 1. InvalidArgument: it cannot be read, is damaged, or another tensor.
Result<AlignedBuffer> read_tensor_file(const std::string& path, const tuner_arg& tensor);
// Elements drawn from a seed: floats from -1 to 1, integers of 8 bits of all values, others 0 and 1.
AlignedBuffer random_tensor(const tuner_arg& tensor, uint64_t seed);

// As .npy where the name ends so, else raw. Elements of bfloat16 are written as their 16 bits.
Status write_tensor_file(const std::string& path, const tuner_arg& tensor, const void* elements);
// The bytes of a .npy file.
std::string npy_bytes(const tuner_arg& tensor, const void* elements);

}  // namespace tuner
