// Operators whose extents depend on what a tensor holds: served where that is known when compiling. What they
// take of it is found here, by plain loops; their math reads tables.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "compiler_core/graph/families.h"

namespace tuner::graph {
namespace selection_ops {
namespace {

using Numbers = std::vector<double>;

Buffer table_of(MathWriter& m, std::string_view name, const std::vector<int64_t>& numbers) {
  return m.table(name, DType::kInt64, {std::ssize(numbers)}, Numbers(numbers.begin(), numbers.end()));
}
// A place out of a table, within `extent`.
Expr listed(const Buffer& table, const Expr& i, int64_t extent) {
  return min(max(load(table, {i}), Expr(0)), Expr(extent - 1));
}

// --- Compress: slices of an axis (or elements) for which a condition holds ---
struct Compressed {
  std::optional<size_t> axis;
  std::vector<int64_t> places;
};
Result<Compressed> compressed_of(const Use& use) {
  Compressed c;
  int64_t extent = use.type(0).elements();
  if (use.has_attribute("axis")) {
    ASSIGN_OR_RETURN(const int64_t axis, use.axis(0, use.rank(0)));
    c.axis = static_cast<size_t>(axis);
    extent = use.shape(0)[*c.axis];
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> condition, use.integers(1));
  constexpr int64_t kMostCondition = 1024;  // what a kernel's text holds
  if (std::ssize(condition) > kMostCondition && !use.is_constant(0))
    return invalid_argument("a condition of ", condition.size(), " elements, expected at most ",
                            kMostCondition);
  for (size_t k = 0; k < condition.size(); ++k) {
    if (condition[k] == 0) continue;
    if (static_cast<int64_t>(k) >= extent)
      return invalid_argument("element ", k, " of the condition is true, and the data have ", extent);
    c.places.push_back(static_cast<int64_t>(k));
  }
  return c;
}
Result<std::vector<TensorType>> compress_types(const Use& use) {
  ASSIGN_OR_RETURN(const Compressed c, compressed_of(use));
  if (!c.axis) return one({use.dtype(0), {std::ssize(c.places)}});
  TensorType type = use.type(0);
  type.shape[*c.axis] = std::ssize(c.places);
  return one(type);
}
void compress(const Use& use, MathWriter& m) {
  const Compressed c = *compressed_of(use);
  const Buffer places = table_of(m, "places", c.places);
  m.result([&](te::Indices i) {
    const size_t axis = c.axis.value_or(0);
    const int64_t extent = c.axis ? use.shape(0)[axis] : use.type(0).elements();
    i[axis] = listed(places, i[axis], extent);
    return load(m.in(0), c.axis ? i : indices_of(i[0], use.shape(0)));
  });
}

// --- NonZero: places of the elements that are not 0, a column each ---
Result<std::vector<int64_t>> flat_non_zeros(const Use& use) {
  ASSIGN_OR_RETURN(const Numbers numbers, use.numbers(0));
  std::vector<int64_t> places;
  for (size_t k = 0; k < numbers.size(); ++k)
    if (numbers[k] != 0) places.push_back(static_cast<int64_t>(k));
  return places;
}
Result<std::vector<TensorType>> non_zero_types(const Use& use) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> places, flat_non_zeros(use));
  return one({DType::kInt64, {std::max<int64_t>(use.rank(0), 1), std::ssize(places)}});
}
void non_zero(const Use& use, MathWriter& m) {
  const std::vector<int64_t> flat = *flat_non_zeros(use);
  const Shape &shape = use.shape(0), &result = m.type().shape;
  Numbers places(static_cast<size_t>(elements_of(result)));
  for (size_t k = 0; k < flat.size(); ++k) {
    int64_t rest = flat[k];
    for (size_t d = shape.size(); d-- > 0; rest /= shape[d])
      places[d * flat.size() + k] = static_cast<double>(rest % shape[d]);
  }
  const Buffer table = m.table("places", DType::kInt64, result, places);
  m.result([&](const te::Indices& i) { return load(table, i); });
}

// --- Unique: different elements, or slices of an axis ---
struct Uniques {
  std::optional<size_t> axis;
  std::vector<int64_t> first, inverse,
      count;  // of each: where it stands first, how often; which one each slice is
};
// NaNs are equal to each other here, and larger than all numbers.
bool is_before(const Numbers& a, const Numbers& b) {
  return std::ranges::lexicographical_compare(
      a, b, [](double x, double y) { return std::isnan(y) ? !std::isnan(x) : x < y; });
}
// Slices of the axis, or elements.
std::vector<Numbers> slices_of(const Use& use, const Numbers& numbers, const std::optional<size_t>& axis) {
  const Shape& shape = use.shape(0);
  const auto extent = static_cast<size_t>(axis ? shape[*axis] : std::ssize(numbers));
  const auto inner = static_cast<size_t>(axis ? product_of(shape, *axis + 1, shape.size()) : 1);
  std::vector<Numbers> slices(extent);
  for (size_t k = 0; k < numbers.size(); ++k) slices[k / inner % extent].push_back(numbers[k]);
  return slices;
}
Result<Uniques> uniques_of(const Use& use) {
  Uniques u;
  if (use.has_attribute("axis")) {
    ASSIGN_OR_RETURN(const int64_t axis, use.axis(0, use.rank(0)));
    u.axis = static_cast<size_t>(axis);
  }
  ASSIGN_OR_RETURN(const Numbers numbers, use.numbers(0));
  const std::vector<Numbers> slices = slices_of(use, numbers, u.axis);
  std::map<Numbers, std::vector<int64_t>, decltype(&is_before)> found(&is_before);
  for (size_t k = 0; k < slices.size(); ++k) found[slices[k]].push_back(static_cast<int64_t>(k));
  std::vector<const std::vector<int64_t>*> groups;
  for (const auto& [slice, places] : found) groups.push_back(&places);
  if (use.integer("sorted", 1) == 0)
    std::ranges::sort(groups, {}, [](const auto* places) { return places->front(); });
  u.inverse.resize(slices.size());
  for (size_t g = 0; g < groups.size(); ++g) {
    u.first.push_back(groups[g]->front());
    u.count.push_back(std::ssize(*groups[g]));
    for (const int64_t place : *groups[g]) u.inverse[static_cast<size_t>(place)] = static_cast<int64_t>(g);
  }
  return u;
}
Result<std::vector<TensorType>> unique_types(const Use& use) {
  ASSIGN_OR_RETURN(const Uniques u, uniques_of(use));
  TensorType type{use.dtype(0), {std::ssize(u.first)}};
  if (u.axis) {
    type.shape = use.shape(0);
    type.shape[*u.axis] = std::ssize(u.first);
  }
  const TensorType each{DType::kInt64, {std::ssize(u.first)}};
  return std::vector<TensorType>{type, each, {DType::kInt64, {std::ssize(u.inverse)}}, each};
}
void unique(const Use& use, MathWriter& m) {
  const Uniques u = *uniques_of(use);
  const Buffer first = table_of(m, "first", u.first);
  m.result(0, [&](te::Indices i) {
    const size_t axis = u.axis.value_or(0);
    i[axis] = listed(first, i[axis], std::ssize(u.inverse));
    return load(m.in(0), u.axis ? i : indices_of(i[0], use.shape(0)));
  });
  m.result(1, [&](const te::Indices& i) { return load(first, i); });
  if (m.wants(2)) {
    const Buffer inverse = table_of(m, "inverse", u.inverse);
    m.result(2, [&](const te::Indices& i) { return load(inverse, i); });
  }
  if (!m.wants(3)) return;
  const Buffer count = table_of(m, "count", u.count);
  m.result(3, [&](const te::Indices& i) { return load(count, i); });
}

constexpr auto kKind = OperatorKind::kMovement;
constexpr Operator kRows[] = {
    {"Compress", kKind, 2, 2, 1, compress_types, compress},
    {"NonZero", kKind, 1, 1, 1, non_zero_types, non_zero},
    {"Unique", kKind, 1, 1, 4, unique_types, unique},
};

}  // namespace
}  // namespace selection_ops

std::span<const Operator> selection_operators() { return selection_ops::kRows; }

}  // namespace tuner::graph
