#include "compiler_core/ir/layout.h"

#include <charconv>
#include <numeric>

namespace tuner {
namespace {

enum class LayoutKind { kPlain, kPad, kXor, kUnknown };
constexpr std::string_view kGroups = "groups:";
struct Layout {
  LayoutKind kind = LayoutKind::kPlain;
  int64_t a = 0, b = 0, c = 1;  // pad: elements; xor: unit, rows, rows alike
  bool groups = false;          // the last dimension is one
};

bool number(std::string_view text, int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

Layout parse(std::string_view text) {
  Layout l;
  if (text.empty()) return l;
  l.kind = LayoutKind::kUnknown;
  l.groups = text.starts_with(kGroups);
  if (l.groups) text.remove_prefix(kGroups.size());
  if (text.starts_with("pad:") && number(text.substr(4), l.a)) l.kind = LayoutKind::kPad;
  if (!text.starts_with("xor:")) return l;
  std::vector<std::string_view> parts = {text.substr(4)};
  for (size_t comma; (comma = parts.back().find(',')) != std::string_view::npos;) {
    const std::string_view last = parts.back();
    parts.back() = last.substr(0, comma);
    parts.push_back(last.substr(comma + 1));
  }
  const bool given = parts.size() == 2 || (parts.size() == 3 && number(parts[2], l.c));
  if (given && number(parts[0], l.a) && number(parts[1], l.b)) l.kind = LayoutKind::kXor;
  return l;
}

bool power_of_two(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

int64_t rows_of(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end() - 1, int64_t{1}, std::multiplies<>());
}

std::vector<int64_t> without_last(std::vector<int64_t> shape) {
  shape.pop_back();
  return shape;
}

// Of indices, which are at least 0, as of expressions.
int64_t floor_div(int64_t a, int64_t b) { return a / b; }
int64_t floor_mod(int64_t a, int64_t b) { return a % b; }
int64_t bit_xor(int64_t a, int64_t b) { return a ^ b; }

// The offset of an element, or of a group: of a row of `columns`.
template <class Number>
Number offset_in(const Layout& l, const Number& row, const Number& column, int64_t columns) {
  if (l.kind == LayoutKind::kPad) return row * (columns + l.a) + column;
  if (l.kind == LayoutKind::kPlain) return row * columns + column;
  const Number unit = bit_xor(floor_div(column, l.a), floor_mod(floor_div(row, l.c), l.b));
  return row * columns + unit * l.a + floor_mod(column, l.a);
}

template <class Number>
Number offset_of(const Layout& l, const BufferNode& buffer, const std::vector<Number>& indices) {
  if (indices.empty()) return 0;
  const size_t columns = indices.size() - (l.groups ? 2 : 1);
  Number row = 0;
  for (size_t d = 0; d < columns; ++d) row = row * buffer.shape[d] + indices[d];
  const Number offset = offset_in(l, row, indices[columns], buffer.shape[columns]);
  return l.groups ? offset * buffer.shape.back() + indices.back() : offset;
}

Layout known_layout(const BufferNode& buffer) {
  Layout l = parse(buffer.layout);
  CHECK(l.kind != LayoutKind::kUnknown) << buffer.name << " has the unknown layout " << buffer.layout;
  return l;
}

}  // namespace

Status check_layout(std::string_view text, const std::vector<int64_t>& whole) {
  const Layout l = parse(text);
  if (l.groups && whole.size() < 2)
    return invalid_config("layout ", text, ": needs two dimensions, the last of which is a group");
  const std::vector<int64_t> shape = l.groups ? without_last(whole) : whole;
  switch (l.kind) {
    case LayoutKind::kPlain:
      return Status::ok();
    case LayoutKind::kPad:
      if (shape.empty() || l.a < 0 || l.a > 1024)
        return invalid_config("layout ", text, ": needs rows, and a padding in 0..1024");
      return Status::ok();
    case LayoutKind::kXor:
      if (!power_of_two(l.a) || !power_of_two(l.b) || !power_of_two(l.c))
        return invalid_config("layout ", text, ": units and rows must be powers of two");
      if (shape.empty() || shape.back() % (l.a * l.b) != 0)
        return invalid_config("layout ", text, ": the last dimension, ", shape.empty() ? 1 : shape.back(),
                              ", is not a multiple of ", l.a * l.b);
      return Status::ok();
    case LayoutKind::kUnknown:
      break;
  }
  return invalid_config(
      "layout \"", text,
      "\" is not known; expected pad:P, xor:V,R or xor:V,R,S, or one of them behind groups:");
}

int64_t storage_elements(const BufferNode& buffer) {
  const Layout l = parse(buffer.layout);
  if (l.kind != LayoutKind::kPad) return buffer.elements();
  if (!l.groups) return rows_of(buffer.shape) * (buffer.shape.back() + l.a);
  const std::vector<int64_t> groups = without_last(buffer.shape);
  return rows_of(groups) * (groups.back() + l.a) * buffer.shape.back();
}

Expr storage_offset(const BufferNode& buffer, const std::vector<Expr>& indices) {
  return offset_of(known_layout(buffer), buffer, indices);
}
std::function<int64_t(const std::vector<int64_t>&)> storage_offsets(const BufferNode& buffer) {
  return [&buffer, layout = known_layout(buffer)](const std::vector<int64_t>& indices) {
    return offset_of(layout, buffer, indices);
  };
}

int64_t contiguous_elements(const BufferNode& buffer) {
  const Layout l = parse(buffer.layout);
  if (buffer.shape.empty()) return 1;
  const int64_t last = buffer.shape.back(), group = l.groups ? last : 1;
  if (l.kind == LayoutKind::kXor) return l.a * group;
  return l.groups ? buffer.shape[buffer.shape.size() - 2] * group : last;
}

bool reorders_rows(const BufferNode& buffer) { return parse(buffer.layout).kind == LayoutKind::kXor; }

}  // namespace tuner
