#include "compiler_core/base/npy.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace tuner {
namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";

// NumPy's words for our types, in their order. It has none for bfloat16: its bits.
constexpr std::string_view kNpyTypes[] = {"|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4",
                                          "<i8", "<u8", "<f2", "<u2", "<f4", "<f8"};

std::string_view npy_type(DType dtype) { return kNpyTypes[static_cast<size_t>(dtype)]; }

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

Status damaged() { return invalid_argument("is no .npy file, or a damaged one"); }

struct NpyHeader {
  std::string type;
  std::vector<int64_t> shape;
  bool is_fortran = false;
  size_t bytes = 0;  // all before the elements
};
Result<NpyHeader> read_header(std::string_view file) {
  if (file.size() < 10 || !file.starts_with(kNpyMagic)) return damaged();
  const size_t wide = file[6] == 1 ? 2 : 4, begin = 8 + wide;
  size_t length = 0;
  for (size_t i = 0; i < wide && 8 + i < file.size(); ++i)
    length |= size_t{static_cast<unsigned char>(file[8 + i])} << (8 * i);
  if (file.size() < begin || file.size() - begin < length) return damaged();
  const std::string_view text = file.substr(begin, length);
  const auto type = npy_word(npy_value(text, "descr"));
  const auto shape = npy_shape(npy_value(text, "shape"));
  if (!type || !shape) return damaged();
  return NpyHeader{*type, *shape, npy_value(text, "fortran_order").starts_with("True"), begin + length};
}

}  // namespace

Result<DType> npy_dtype(std::string_view file) {
  ASSIGN_OR_RETURN(const NpyHeader header, read_header(file));
  std::string list;
  for (size_t k = 0; k < std::size(kNpyTypes); ++k) {
    if (static_cast<DType>(k) == DType::kBFloat16) continue;
    if (kNpyTypes[k].substr(1) == std::string_view(header.type).substr(1)) return static_cast<DType>(k);
    list += str(k == 0 ? "" : ", ", kNpyTypes[k]);
  }
  return invalid_argument("has elements of type ", header.type, ", expected one of ", list,
                          "; write it with astype()");
}

Result<NpyArray> parse_npy(std::string_view file, DType dtype) {
  ASSIGN_OR_RETURN(const NpyHeader header, read_header(file));
  if (header.is_fortran && header.shape.size() > 1)
    return invalid_argument("is in Fortran order; write it with numpy.ascontiguousarray()");
  const std::string_view expected = npy_type(dtype);
  if (header.type.starts_with('>') && dtype_bytes(dtype) > 1)
    return invalid_argument("has big-endian elements (", header.type, "), expected ", expected,
                            "; write it with astype('", expected, "')");
  if (std::string_view(header.type).substr(1) != expected.substr(1))
    return invalid_argument("has elements of type ", header.type, ", expected ", expected);
  return NpyArray{header.shape, file.substr(header.bytes)};
}

std::string npy_bytes(DType dtype, const std::vector<int64_t>& shape, const void* elements, int64_t bytes) {
  std::string extents;
  for (const int64_t extent : shape) extents += str(extents.empty() ? "" : " ", extent, ",");
  std::string header =
      str("{'descr': '", npy_type(dtype), "', 'fortran_order': False, 'shape': (", extents, "), }");
  // The elements begin at a multiple of 64.
  constexpr size_t kBefore = 10;
  header.resize((kBefore + header.size() + 64) / 64 * 64 - kBefore - 1, ' ');
  header += '\n';
  std::string out(kNpyMagic);
  out += {1, 0, static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  out += header;
  return out.append(static_cast<const char*>(elements), static_cast<size_t>(bytes));
}

}  // namespace tuner
