#include "tuner/model/tensor_file.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <vector>

#include "compiler_core/base/elements.h"
#include "compiler_core/base/mapped_file.h"
#include "compiler_core/base/npy.h"
#include "compiler_core/base/output_file.h"
#include "compiler_core/base/random.h"
#include "tuner/model/read_model.h"

namespace tuner {
namespace {

DType dtype_of_arg(const tuner_arg& tensor) {
  const std::optional<DType> dtype = dtype_from_name(tensor.dtype);
  CHECK(dtype.has_value()) << "a tensor of " << tensor.dtype;
  return *dtype;
}

std::vector<int64_t> shape_of(const tuner_arg& tensor) { return {tensor.shape, tensor.shape + tensor.rank}; }

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string out;
  for (const int64_t extent : shape) out += str(out.empty() ? "" : ", ", extent);
  return "[" + out + "]";
}

std::vector<int64_t> without_leading_ones(std::vector<int64_t> shape) {
  shape.erase(shape.begin(), std::ranges::find_if(shape, [](int64_t extent) { return extent != 1; }));
  return shape;
}

Status check_shape(const std::vector<int64_t>& shape, const tuner_arg& tensor) {
  if (without_leading_ones(shape) == without_leading_ones(shape_of(tensor))) return Status::ok();
  return invalid_argument("has shape ", shape_text(shape), ", expected ", shape_text(shape_of(tensor)));
}

// The elements in the file; `kept` holds them where they are not the file's own bytes.
Result<std::string_view> elements_of(const std::string& path, std::string_view file, const tuner_arg& tensor,
                                     graph::Value& kept) {
  if (path.ends_with(".npy")) {
    ASSIGN_OR_RETURN(const NpyArray found, parse_npy(file, dtype_of_arg(tensor)));
    RETURN_IF_ERROR(check_shape(found.shape, tensor));
    return found.bytes;
  }
  if (path.ends_with(".pb")) {
    ASSIGN_OR_RETURN(kept, read_tensor(file));
    if (kept.type.dtype != dtype_of_arg(tensor))
      return invalid_argument("has elements of type ", kept.type.dtype, ", expected ", tensor.dtype);
    RETURN_IF_ERROR(check_shape(kept.type.shape, tensor));
    const std::span<const std::byte> bytes = kept.constant->bytes();
    return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return file;
}

}  // namespace

std::string type_text(const tuner_arg& tensor) { return str(tensor.dtype, shape_text(shape_of(tensor))); }

Result<AlignedBuffer> read_tensor_file(const std::string& path, const tuner_arg& tensor) {
  std::error_code error;
  const bool is_raw = !path.ends_with(".npy") && !path.ends_with(".pb");
  if (tensor.bytes == 0 && is_raw && std::filesystem::is_regular_file(path, error) &&
      std::filesystem::file_size(path, error) == 0)
    return AlignedBuffer(0);
  ASSIGN_OR_RETURN(const MappedFile file, map_input(path, str("a tensor ", type_text(tensor))));
  graph::Value kept;
  const Result<std::string_view> bytes = elements_of(path, file.bytes(), tensor, kept);
  if (!bytes) return bytes.status().with_context(path + ": ");
  if (static_cast<int64_t>(bytes->size()) != tensor.bytes)
    return invalid_argument(path, ": has ", bytes->size(), " bytes of elements, expected ", tensor.bytes,
                            " for ", type_text(tensor));
  AlignedBuffer out(tensor.bytes);
  std::ranges::copy(*bytes, out.as<char>());
  return out;
}

AlignedBuffer random_tensor(const tuner_arg& tensor, uint64_t seed) {
  const DType dtype = dtype_of_arg(tensor);
  const int64_t count = tensor.bytes / dtype_bytes(dtype);
  std::vector<double> numbers(static_cast<size_t>(count));
  for (double& number : numbers) {
    const uint64_t drawn = next_random(seed) >> 40;  // 24 bits: exact in every float
    const float unit = static_cast<float>(drawn) / (1 << 23) - 1;
    if (dtype == DType::kBFloat16)
      number = rounded_to_bfloat16(unit);
    else if (dtype == DType::kFloat16)
      number = rounded_to_float16(unit);
    else if (is_float(dtype))
      number = unit;
    else if (dtype == DType::kInt8 || dtype == DType::kUInt8)
      number = static_cast<double>(drawn % 256) - (dtype == DType::kInt8 ? 128 : 0);
    else
      number = static_cast<double>(drawn % 2);
  }
  AlignedBuffer out(tensor.bytes);
  store_elements(numbers.data(), count, dtype, out.data());
  return out;
}

std::string npy_bytes(const tuner_arg& tensor, const void* elements) {
  return npy_bytes(dtype_of_arg(tensor), shape_of(tensor), elements, tensor.bytes);
}

Status write_tensor_file(const std::string& path, const tuner_arg& tensor, const void* elements) {
  if (path.ends_with(".npy")) return write_file(path, npy_bytes(tensor, elements));
  return write_file(path, {static_cast<const char*>(elements), static_cast<size_t>(tensor.bytes)});
}

}  // namespace tuner
