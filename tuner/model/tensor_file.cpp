#include "tuner/model/tensor_file.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <vector>

#include "compiler_core/base/elements.h"
#include "compiler_core/base/mapped_file.h"
#include "compiler_core/base/output_file.h"
#include "compiler_core/base/random.h"
#include "tuner/model/read_model.h"

namespace tuner {
namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";

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

// NumPy's word for a type. It has none for bfloat16: its bits.
std::string_view npy_type(DType dtype) {
  constexpr std::string_view kWords[] = {"|b1", "|i1", "|u1", "<i4", "<i8", "<f2", "<u2", "<f4", "<f8"};
  return kWords[static_cast<size_t>(dtype)];
}

// The text behind "'key':" in a header like {'descr': '<f4', 'fortran_order': False, 'shape': (1, 3), }.
std::string_view npy_value(std::string_view header, std::string_view key) {
  const size_t at = header.find(str("'", key, "':"));
  if (at == std::string_view::npos) return {};
  header.remove_prefix(at + key.size() + 3);
  while (header.starts_with(' ')) header.remove_prefix(1);
  return header;
}

std::optional<std::vector<int64_t>> npy_shape(std::string_view text) {
  constexpr size_t kMostExtents = 64;  // as NumPy has it
  std::vector<int64_t> shape;
  if (!text.starts_with('(')) return std::nullopt;
  text.remove_prefix(1);
  for (;;) {
    while (text.starts_with(' ') || text.starts_with(',')) text.remove_prefix(1);
    if (text.starts_with(')')) return shape;
    if (shape.size() == kMostExtents) return std::nullopt;
    int64_t extent = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), extent);
    if (error != std::errc() || extent < 0) return std::nullopt;
    shape.push_back(extent);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
  }
}

// "<f4" of "'<f4', ...": two or three characters that can be shown.
std::optional<std::string> npy_word(std::string_view text) {
  constexpr size_t kLongest = 8;
  const size_t end = text.find('\'', 1);
  if (!text.starts_with('\'') || end == std::string_view::npos || end > kLongest) return std::nullopt;
  const std::string word(text.substr(1, end - 1));
  const bool shown = std::ranges::all_of(word, [](char c) { return c > ' ' && c <= '~'; });
  return shown && !word.empty() ? std::optional(word) : std::nullopt;
}

struct Found {
  std::string type;
  std::vector<int64_t> shape;
  std::string_view bytes;
};

Result<Found> read_npy(std::string_view file) {
  const auto damaged = [] { return invalid_argument("is no .npy file, or a damaged one"); };
  if (file.size() < 10 || !file.starts_with(kNpyMagic)) return damaged();
  const size_t wide = file[6] == 1 ? 2 : 4, begin = 8 + wide;
  size_t length = 0;
  for (size_t i = 0; i < wide && 8 + i < file.size(); ++i)
    length |= size_t{static_cast<unsigned char>(file[8 + i])} << (8 * i);
  if (file.size() < begin || file.size() - begin < length) return damaged();
  const std::string_view header = file.substr(begin, length);
  const auto type = npy_word(npy_value(header, "descr"));
  const auto shape = npy_shape(npy_value(header, "shape"));
  if (!type || !shape) return damaged();
  if (npy_value(header, "fortran_order").starts_with("True") && shape->size() > 1)
    return invalid_argument("is in Fortran order; write it with numpy.ascontiguousarray()");
  return Found{*type, *shape, file.substr(begin + length)};
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
    ASSIGN_OR_RETURN(const Found found, read_npy(file));
    const std::string_view expected = npy_type(dtype_of_arg(tensor));
    if (found.type.starts_with('>') && dtype_bytes(dtype_of_arg(tensor)) > 1)
      return invalid_argument("has big-endian elements (", found.type, "), expected ", expected,
                              "; write it with astype('", expected, "')");
    if (found.type.substr(1) != expected.substr(1))
      return invalid_argument("has elements of type ", found.type, ", expected ", expected);
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
  ASSIGN_OR_RETURN(const MappedFile file, map_input(path, str("a tensor ", type_text(tensor))));
  graph::Value kept;
  const Result<std::string_view> bytes = elements_of(path, file.bytes(), tensor, kept);
  if (!bytes) return bytes.status().with_context(path + ": ");
  if (static_cast<int64_t>(bytes->size()) != tensor.bytes)
    return invalid_argument(path, ": has ", bytes->size(), " bytes of elements, expected ", tensor.bytes,
                            " for ", type_text(tensor));
  AlignedBuffer out(tensor.bytes);
  std::memcpy(out.data(), bytes->data(), bytes->size());
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
  std::string shape;
  for (const int64_t extent : shape_of(tensor)) shape += str(shape.empty() ? "" : " ", extent, ",");
  std::string header = str("{'descr': '", npy_type(dtype_of_arg(tensor)),
                           "', 'fortran_order': False, 'shape': (", shape, "), }");
  // The elements begin at a multiple of 64.
  constexpr size_t kBefore = 10;
  header.resize((kBefore + header.size() + 64) / 64 * 64 - kBefore - 1, ' ');
  header += '\n';
  std::string out(kNpyMagic);
  out += {1, 0, static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  out += header;
  return out.append(static_cast<const char*>(elements), static_cast<size_t>(tensor.bytes));
}

Status write_tensor_file(const std::string& path, const tuner_arg& tensor, const void* elements) {
  if (path.ends_with(".npy")) return write_file(path, npy_bytes(tensor, elements));
  return write_file(path, {static_cast<const char*>(elements), static_cast<size_t>(tensor.bytes)});
}

}  // namespace tuner
