#include "compiler_core/graph/operators/sampling.h"

#include <algorithm>

namespace tuner::graph {

Expr interpolated(std::span<const Taps> taps, std::span<const te::Indices> samples, DType dtype,
                  const std::function<Expr(const te::Indices&)>& element) {
  const auto along = [&](const auto& self, const te::Indices& places) -> Expr {
    const size_t d = places.size();
    if (d == taps.size()) {
      Expr there = bool_imm(true);
      for (const Expr& place : places) there = there && place >= Expr(0);
      return select(there, element(places), number(dtype, 0));
    }
    Expr sum;
    for (int64_t t = 0; t < taps[d].count; ++t) {
      te::Indices at = samples[d], next = places;
      at.emplace_back(t);
      next.push_back(load(taps[d].places, at));
      Expr term = self(self, next);
      if (taps[d].count > 1) term = term * as(dtype, load(taps[d].weights, at));
      sum = sum.defined() ? sum + term : term;
    }
    return sum;
  };
  return along(along, te::Indices());
}

Expr whole_place(const Expr& x) {
  constexpr double kMost = 0x1p30;
  return cast(DType::kInt64, min(at_least(x, number(x->dtype, -kMost)), number(x->dtype, kMost)));
}

DType coordinate_type(DType dtype) { return dtype == DType::kFloat64 ? dtype : DType::kFloat32; }

namespace sampling_ops {
namespace {

Expr floor(const Expr& x) { return unary(UnaryOp::kFloor, x); }

// --- GridSample: an image at coordinates from -1 to 1, which a grid gives ---
enum class Padding : uint8_t { kZeros, kBorder, kReflection };
struct Grid {
  int64_t taps;  // 1 nearest, 2 linear, 4 cubic, in each dimension
  Padding padding;
  bool aligned;  // -1 and 1 are the middles of the outer pixels, not their edges
};
Result<Grid> grid_of(const Use& use) {
  const Shape &image = use.shape(0), &grid = use.shape(1);
  const int64_t rank = use.rank(0) - 2;
  if (rank < 1 || grid.size() != image.size() || grid.back() != rank || grid[0] != image[0])
    return invalid_argument("a grid ", to_text(use.type(1)), " for images ", to_text(use.type(0)),
                            ", expected [N, D1, ..., ", rank, "]");
  const std::string mode = use.word("mode", "linear"), padding = use.word("padding_mode", "zeros");
  const bool is_cubic = mode == "cubic" || mode == "bicubic";
  if (is_cubic && rank != 2)
    return invalid_argument("mode \"", mode, "\" needs images of 2 dimensions, got ", rank);
  if (mode != "nearest" && !is_float(use.dtype(0)))
    return invalid_argument("mode \"", mode, "\" needs a float type, got ", use.dtype(0));
  return Grid{mode == "nearest" ? 1
              : is_cubic        ? 4
                                : 2,
              padding == "zeros"    ? Padding::kZeros
              : padding == "border" ? Padding::kBorder
                                    : Padding::kReflection,
              use.integer("align_corners", 0) != 0};
}
Result<std::vector<TensorType>> grid_sample_types(const Use& use) {
  RETURN_IF_ERROR(grid_of(use).status());
  Shape shape{use.shape(0)[0], use.shape(0)[1]};
  shape.insert(shape.end(), use.shape(1).begin() + 1, use.shape(1).end() - 1);
  return one({use.dtype(0), shape});
}

// The borders of a dimension, and what lies beyond them.
struct Side {
  const Grid& grid;
  int64_t extent;

  double first() const { return grid.aligned ? 0 : -0.5; }
  double last() const { return static_cast<double>(extent) - (grid.aligned ? 1 : 0.5); }
  // x mirrored at the borders as often as it takes. Both borders may be one place.
  Expr reflected(const Expr& x) const {
    const Expr low = number(x->dtype, first()), high = number(x->dtype, last());
    const double span = last() - first();
    if (span == 0) return low;
    const Expr two = number(x->dtype, 2), is_low = x < low;
    const Expr beyond = select(is_low, low - x, x - high);
    const Expr times = floor(beyond / number(x->dtype, span)), rest = beyond - times * number(x->dtype, span);
    const Expr is_even = equals(times - floor(times / two) * two, number(x->dtype, 0));
    const Expr from_low = equals(is_low, is_even);
    return select(from_low, low + rest, high - rest);
  }
  Expr is_beyond(const Expr& x) const {
    return x < number(x->dtype, first()) || binary(BinaryOp::kGt, x, number(x->dtype, last()));
  }
  // Where in the image `g` of the grid lies.
  Expr coordinate(const Expr& g) const {
    const auto n = [&](double value) { return number(g->dtype, value); };
    const auto size = static_cast<double>(extent);
    Expr x = grid.aligned ? (g + n(1)) * n((size - 1) / 2) : ((g + n(1)) * n(size) - n(1)) * n(0.5);
    if (grid.taps == 1) x = unary(UnaryOp::kRound, x);
    if (grid.padding == Padding::kZeros) return x;
    const Expr inside = grid.padding == Padding::kReflection ? reflected(x) : min(max(x, n(0)), n(size - 1));
    return select(is_beyond(x), inside, x);
  }
  // The place of the pixel that a whole number means.
  Expr pixel(const Expr& x) const {
    const Expr place = whole_place(x), most = Expr(extent - 1);
    if (grid.padding == Padding::kZeros) return select(place >= Expr(0) && place <= most, place, Expr(-1));
    if (grid.padding == Padding::kBorder) return min(max(place, Expr(0)), most);
    return min(max(whole_place(select(is_beyond(x), reflected(x), x)), Expr(0)), most);
  }
};

// Weights of the elements floor(x) - 1 .. floor(x) + 2, for x of this fraction.
Expr cubic_weight(const Expr& t, const Expr& tap) {
  const auto n = [&](double value) { return number(t->dtype, value); };
  constexpr double a = -0.75;
  const auto near = [&](const Expr& d) { return (n(a + 2) * d - n(a + 3)) * d * d + n(1); };
  const auto far = [&](const Expr& d) { return ((n(a) * d - n(5 * a)) * d + n(8 * a)) * d - n(4 * a); };
  return select(
      equals(tap, Expr(0)), far(t + n(1)),
      select(equals(tap, Expr(1)), near(t), select(equals(tap, Expr(2)), near(n(1) - t), far(n(2) - t))));
}

// Of dimension d of the image.
Taps grid_taps(const Use& use, MathWriter& m, const Grid& grid, size_t d) {
  const Side side{grid, use.shape(0)[d + 2]};
  const int64_t last = use.shape(1).back() - 1;  // a grid names the last dimension first
  const DType real = coordinate_type(use.dtype(1));
  Shape samples = use.shape(1);
  samples.pop_back();
  const Buffer coordinate = m.stage(str("coordinate", d), samples, real, [&](te::Indices i) {
    i.emplace_back(last - static_cast<int64_t>(d));
    return side.coordinate(as(real, load(m.in(1), i)));
  });
  samples.push_back(grid.taps);
  const auto at_sample = [&](te::Indices i) {
    i.pop_back();
    return load(coordinate, i);
  };
  const double first = grid.taps == 4 ? -1 : 0;
  Taps taps{.count = grid.taps};
  taps.places = m.stage(str("place", d), samples, DType::kInt64, [&](const te::Indices& i) {
    return side.pixel(floor(at_sample(i)) + number(real, first) + as(real, i.back()));
  });
  if (grid.taps == 1) return taps;
  taps.weights = m.stage(str("weight", d), samples, real, [&](const te::Indices& i) {
    const Expr x = at_sample(i), t = x - floor(x);
    if (grid.taps == 4) return cubic_weight(t, i.back());
    return select(equals(i.back(), Expr(0)), number(real, 1) - t, t);
  });
  return taps;
}
void grid_sample(const Use& use, MathWriter& m) {
  const Grid grid = *grid_of(use);
  std::vector<Taps> taps;
  for (size_t d = 0; d + 2 < use.shape(0).size(); ++d) taps.push_back(grid_taps(use, m, grid, d));
  m.result([&](const te::Indices& i) {
    te::Indices sample{i[0]};
    sample.insert(sample.end(), i.begin() + 2, i.end());
    const std::vector<te::Indices> samples(taps.size(), sample);
    return interpolated(taps, samples, use.dtype(0), [&](const te::Indices& places) {
      te::Indices from{i[0], i[1]};
      from.insert(from.end(), places.begin(), places.end());
      return load(m.in(0), from);
    });
  });
}

// --- AffineGrid: such a grid, of a rotated and moved image ---
Result<std::vector<TensorType>> affine_grid_types(const Use& use) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> size, use.integers(1));
  const auto rank = std::ssize(size) - 2;
  if (rank != 2 && rank != 3) return invalid_argument("a size of ", size.size(), " numbers, expected 4 or 5");
  constexpr int64_t kMostExtent = int64_t{1} << 20;
  for (const int64_t extent : size)
    if (extent < 1 || extent > kMostExtent)
      return invalid_argument("an extent of ", extent, ", expected 1 to 2^20");
  if (use.shape(0) != Shape{size[0], rank, rank + 1})
    return invalid_argument("theta is ", to_text(use.type(0)), ", expected [", size[0], ", ", rank, ", ",
                            rank + 1, "]");
  Shape shape{size[0]};
  shape.insert(shape.end(), size.begin() + 2, size.end());
  shape.push_back(rank);
  return one({use.dtype(0), shape});
}
void affine_grid(const Use& use, MathWriter& m) {
  const Shape& shape = m.type().shape;
  const size_t rank = shape.size() - 2;
  const bool aligned = use.integer("align_corners", 0) != 0;
  const DType dtype = use.dtype(0);
  std::vector<Buffer> steps;  // coordinates from -1 to 1, of each dimension
  for (size_t d = 0; d < rank; ++d) {
    const auto extent = static_cast<double>(shape[d + 1]);
    std::vector<double> numbers;
    for (int64_t k = 0; k < shape[d + 1]; ++k) {
      const auto x = static_cast<double>(k);
      const double edge = shape[d + 1] == 1 ? 0 : 2 * x / (extent - 1) - 1;
      numbers.push_back(aligned ? edge : (2 * x + 1) / extent - 1);
    }
    steps.push_back(m.table(str("steps", d), dtype, {shape[d + 1]}, numbers));
  }
  m.result([&](const te::Indices& i) {
    const auto theta = [&](size_t k) {
      return load(m.in(0), {i[0], i.back(), Expr(static_cast<int64_t>(k))});
    };
    Expr sum = theta(rank);
    for (size_t k = 0; k < rank; ++k)  // x is the last dimension
      sum = sum + theta(k) * load(steps[rank - 1 - k], {i[rank - k]});
    return sum;
  });
}

constexpr auto kKind = OperatorKind::kMovement;
constexpr Operator kRows[] = {
    {"AffineGrid", kKind, 2, 2, 1, affine_grid_types, affine_grid},
    {"GridSample", kKind, 2, 2, 1, grid_sample_types, grid_sample},
};

}  // namespace
}  // namespace sampling_ops

std::span<const Operator> sampling_operators() { return sampling_ops::kRows; }

}  // namespace tuner::graph
