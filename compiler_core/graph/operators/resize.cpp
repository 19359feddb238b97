// Images enlarged and made smaller: nearest, linear and cubic, an axis after the other.
//
// Which elements a result takes, and by which weights, is known ahead: tables of taps, an axis each.
#include <algorithm>
#include <cmath>

#include "compiler_core/graph/families.h"

namespace tuner::graph {
namespace resize_ops {
namespace {

struct Axis {
  size_t dimension;
  int64_t from, to;  // extents
  double scale;
  double start = 0, end = 1;  // the part that is taken, where coordinates say that there is one
};

// Up to operator set 10 pixels lie at the origin of their place and nearest means below; there was no roi.
constexpr int64_t kHasCoordinates = 11;

// In the model's order, which is that of the sizes and scales.
Result<std::vector<int64_t>> dimensions_of(const Use& use) {
  std::vector<int64_t> all(use.shape(0).size());
  for (size_t d = 0; d < all.size(); ++d) all[d] = static_cast<int64_t>(d);
  std::vector<int64_t> given = use.integers("axes");
  if (given.empty()) return all;
  RETURN_IF_ERROR(use.axes("axes", 1000, use.rank(0)).status());  // each is one, and stands once
  for (int64_t& d : given) d += d < 0 ? use.rank(0) : 0;
  return given;
}

// The region of interest is taken, and what lies beyond the image is extrapolation_value.
bool crops(const Use& use) { return use.word("coordinate_transformation_mode", "") == "tf_crop_and_resize"; }
// Input 1: the starts of all axes, then their ends.
Status take_parts(const Use& use, std::vector<Axis>& axes) {
  if (!use.has(1)) return invalid_argument("tf_crop_and_resize needs a region, input 1");
  ASSIGN_OR_RETURN(const std::vector<double> region, use.numbers(1));
  if (region.size() != 2 * axes.size())
    return invalid_argument("a region of ", region.size(), " numbers, expected ", 2 * axes.size());
  constexpr double kMost = 1e6;
  for (size_t k = 0; k < axes.size(); ++k) {
    axes[k].start = region[k];
    axes[k].end = region[k + axes.size()];
    if (!(std::fabs(axes[k].start) <= kMost && std::fabs(axes[k].end) <= kMost))
      return invalid_argument("a region from ", axes[k].start, " to ", axes[k].end);
  }
  return Status::ok();
}

// Sizes are what the result may not exceed, or may not fall below, where one scale is to serve all.
Status keep_aspect_ratio(const Use& use, std::span<const int64_t> dimensions, std::vector<int64_t>& sizes,
                         std::vector<double>& scales) {
  const std::string policy = use.word("keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch" || sizes.empty()) return Status::ok();
  double scale = policy == "not_larger" ? HUGE_VAL : 0;
  for (size_t k = 0; k < sizes.size(); ++k) {
    const int64_t extent = use.shape(0)[static_cast<size_t>(dimensions[k])];
    if (extent == 0) return invalid_argument("keeps the aspect ratio of ", to_text(use.type(0)));
    const double own = static_cast<double>(sizes[k]) / static_cast<double>(extent);
    scale = policy == "not_larger" ? std::min(scale, own) : std::max(scale, own);
  }
  if (!(scale > 0)) return invalid_argument("sizes hold a number below 1");
  for (size_t k = 0; k < sizes.size(); ++k) {
    const auto extent = static_cast<double>(use.shape(0)[static_cast<size_t>(dimensions[k])]);
    sizes[k] = static_cast<int64_t>(std::min(std::floor(extent * scale + 0.5), 0x1p40));
  }
  scales.assign(sizes.size(), scale);
  return Status::ok();
}

Result<std::vector<Axis>> axes_of(const Use& use) {
  const bool early = use.operator_set() < kHasCoordinates || use.node().op == "Upsample";
  const size_t at_scales = early ? 1 : 2;
  std::vector<double> scales = use.numbers("scales");
  std::vector<int64_t> sizes;
  if (use.has(at_scales)) {
    ASSIGN_OR_RETURN(scales, use.numbers(at_scales));
  }
  if (!early && use.has(3)) {
    ASSIGN_OR_RETURN(sizes, use.integers(3));
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> dimensions, dimensions_of(use));
  if (!sizes.empty() && !scales.empty())
    return invalid_argument("has scales and sizes, expected one of them");
  if (sizes.size() + scales.size() != dimensions.size())
    return invalid_argument(sizes.size() + scales.size(), " scales or sizes, expected one for each of ",
                            dimensions.size(), " dimensions");
  constexpr int64_t kMostExtent = int64_t{1} << 24;
  RETURN_IF_ERROR(keep_aspect_ratio(use, dimensions, sizes, scales));
  std::vector<Axis> axes;
  for (size_t k = 0; k < dimensions.size(); ++k) {
    Axis axis{.dimension = static_cast<size_t>(dimensions[k])};
    axis.from = axis.to = use.shape(0)[axis.dimension];
    if (axis.from == 0) {
      if (!sizes.empty() && sizes[k] != 0)
        return invalid_argument("an extent of ", sizes[k], " from one of 0 elements");
      axis.scale = 1;
      axes.push_back(axis);
      continue;
    }
    if (sizes.size() == dimensions.size()) {
      axis.to = sizes[k];
      axis.scale = static_cast<double>(axis.to) / static_cast<double>(axis.from);
      if (!scales.empty()) axis.scale = scales[k];
    } else {
      axis.scale = scales[k];
      if (!(axis.scale > 0 && axis.scale * static_cast<double>(axis.from) <= kMostExtent))
        return invalid_argument("a scale of ", axis.scale);
      axis.to = static_cast<int64_t>(std::floor(static_cast<double>(axis.from) * axis.scale));
    }
    if (axis.to < 1 || axis.to > kMostExtent) return invalid_argument("an extent of ", axis.to);
    axes.push_back(axis);
  }
  if (!early && crops(use)) RETURN_IF_ERROR(take_parts(use, axes));
  return axes;
}

std::string coordinates_of(const Use& use) {
  const bool early = use.operator_set() < kHasCoordinates || use.node().op == "Upsample";
  return use.word("coordinate_transformation_mode", early ? "asymmetric" : "half_pixel");
}
std::string rounding_of(const Use& use) {
  const bool early = use.operator_set() < kHasCoordinates || use.node().op == "Upsample";
  return use.word("nearest_mode", early ? "floor" : "round_prefer_floor");
}

Result<std::vector<TensorType>> resize_types(const Use& use) {
  constexpr std::string_view kCoordinates[] = {
      "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
      "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"};
  const std::string mode = use.word("mode", "nearest"), coordinates = coordinates_of(use);
  if (mode != "nearest" && mode != "linear" && mode != "cubic")
    return invalid_argument("mode \"", mode, "\" is not served");
  if (std::ranges::find(kCoordinates, coordinates) == std::end(kCoordinates))
    return invalid_argument("coordinate_transformation_mode \"", coordinates, "\" is not served");
  const std::string policy = use.word("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller")
    return invalid_argument("keep_aspect_ratio_policy \"", policy, "\" is not served");
  if (mode != "nearest" && !is_float(use.dtype(0)))
    return invalid_argument("mode \"", mode, "\" needs a float type, got ", use.dtype(0));
  ASSIGN_OR_RETURN(const std::vector<Axis> axes, axes_of(use));
  constexpr double kLeastScale = 1.0 / 1024;
  for (const Axis& axis : axes)
    if (use.integer("antialias", 0) != 0 && axis.scale < kLeastScale)
      return invalid_argument("antialias with a scale of ", axis.scale, ", expected 1/1024 or more");
  TensorType type = use.type(0);
  for (const Axis& axis : axes) type.shape[axis.dimension] = axis.to;
  return one(type);
}

// Where in the input the middle of output element `o` lies.
double coordinate(const std::string& way, const Axis& axis, int64_t o) {
  const auto x = static_cast<double>(o);
  if (way == "asymmetric") return x / axis.scale;
  if (way == "tf_crop_and_resize") {
    const auto last = static_cast<double>(axis.from - 1), to = static_cast<double>(axis.to - 1);
    return last * (axis.to > 1 ? axis.start + x * (axis.end - axis.start) / to : (axis.start + axis.end) / 2);
  }
  if (way == "tf_half_pixel_for_nn") return (x + 0.5) / axis.scale;
  // The extent before it is rounded down counts here.
  const double wanted = static_cast<double>(axis.from) * axis.scale;
  if (way == "align_corners") return wanted == 1 ? 0 : x * static_cast<double>(axis.from - 1) / (wanted - 1);
  if (way == "pytorch_half_pixel" && axis.to == 1) return 0;
  double shift = 0;
  if (way == "half_pixel_symmetric") {
    shift = static_cast<double>(axis.from) / 2 * (1 - static_cast<double>(axis.to) / wanted);
  }
  return shift + (x + 0.5) / axis.scale - 0.5;
}

double nearest(const std::string& way, double x) {
  if (way == "floor") return std::floor(x);
  if (way == "ceil") return std::ceil(x);
  return way == "round_prefer_ceil" ? std::floor(x + 0.5) : std::ceil(x - 0.5);
}

// Weights of the elements floor(x) - 1 .. floor(x) + 2, for x of this fraction.
std::vector<double> cubic_weights(double t, double a) {
  const auto near = [&](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
  const auto far = [&](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  return {far(t + 1), near(t), near(1 - t), far(2 - t)};
}

// The same two functions of a distance, stretched over all elements that a smaller image's one stands for.
// Gives the first element, counted from floor(x), and the weights.
struct Stretched {
  double first;
  std::vector<double> weights;
};
Stretched stretched_weights(const std::string& mode, double t, double scale, double a) {
  const double reach = mode == "linear" ? 1 : 2;
  Stretched s{std::floor(-reach / scale) + 1, {}};
  double sum = 0;
  for (double k = s.first; k <= 1 - s.first; ++k) {
    const double d = std::fabs(k - t) * scale;
    const double near = ((a + 2) * d - (a + 3)) * d * d + 1, far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
    s.weights.push_back(d >= reach ? 0 : mode == "linear" ? 1 - d : d <= 1 ? near : far);
    sum += s.weights.back();
  }
  for (double& weight : s.weights) weight /= sum;
  return s;
}

// Elements and weights of every output element, `count` each.
struct ResizeTaps {
  int64_t count = 1;
  std::vector<double> places, weights;
};
ResizeTaps taps_of(const Use& use, const Axis& axis) {
  const std::string mode = use.word("mode", "nearest"), way = coordinates_of(use),
                    rounding = rounding_of(use);
  const bool excludes = use.integer("exclude_outside", 0) != 0;
  const bool stretches = use.integer("antialias", 0) != 0 && axis.scale < 1 && mode != "nearest";
  const double cubic = use.number("cubic_coeff_a", -0.75);
  ResizeTaps taps{.count = mode == "nearest" ? 1 : mode == "linear" ? 2 : 4};
  if (stretches) taps.count = std::ssize(stretched_weights(mode, 0, axis.scale, cubic).weights);
  for (int64_t o = 0; o < axis.to; ++o) {
    const double x = coordinate(way, axis, o), floor = std::floor(x);
    double first = floor;
    std::vector<double> weights{1 - (x - floor), x - floor};
    if (mode == "nearest") {
      first = nearest(rounding, x);
      weights = {1};
    } else if (stretches) {
      Stretched s = stretched_weights(mode, x - floor, axis.scale, cubic);
      first = floor + s.first;
      weights = std::move(s.weights);
    } else if (mode == "cubic") {
      first = floor - 1;
      weights = cubic_weights(x - floor, cubic);
    }
    const auto last = static_cast<double>(axis.from - 1);
    double sum = 0;
    for (size_t t = 0; t < weights.size(); ++t) {
      const double place = first + static_cast<double>(t);
      if (excludes && (place < 0 || place > last)) weights[t] = 0;
      sum += weights[t];
      taps.places.push_back(std::clamp(place, 0.0, last));
    }
    for (const double weight : weights) taps.weights.push_back(excludes ? weight / sum : weight);
  }
  return taps;
}

// Every element `to / from` times, in order: places that need no table.
bool repeats(const ResizeTaps& taps, const Axis& axis) {
  if (taps.count != 1 || axis.to % axis.from != 0) return false;
  for (int64_t o = 0; o < axis.to; ++o) {
    const int64_t source = o / (axis.to / axis.from);
    if (taps.places[static_cast<size_t>(o)] != static_cast<double>(source)) return false;
  }
  return true;
}

// One axis: stage or result k of the chain, from `source`.
Buffer resize_axis(const Use& use, MathWriter& m, const Buffer& source, const Axis& axis, bool is_last) {
  const ResizeTaps taps = taps_of(use, axis);
  const size_t d = axis.dimension;
  const bool repeated = repeats(taps, axis);
  const Buffer places =
      repeated ? nullptr : m.table(str("places", d), DType::kInt64, {axis.to, taps.count}, taps.places);
  const auto element = [&](const te::Indices& i, const Expr& tap) {
    te::Indices from = i;
    from[d] = repeated ? floor_div(i[d], Expr(axis.to / axis.from))
                       : min(max(load(places, {i[d], tap}), Expr(0)), Expr(axis.from - 1));
    return load(source, from);
  };
  Shape shape = source->shape;
  shape[d] = axis.to;
  Element f = [&](const te::Indices& i) { return element(i, Expr(0)); };
  constexpr int64_t kMostWrittenOut = 8;
  if (taps.count > kMostWrittenOut) {
    const Buffer weights = m.table(str("weights", d), use.dtype(0), {axis.to, taps.count}, taps.weights);
    const Term term = [&](const te::Indices& i, const te::Indices& r) {
      return element(i, r[0]) * load(weights, {i[d], r[0]});
    };
    if (!is_last) return m.reduced(str("axis", d), shape, {taps.count}, ReduceOp::kSum, term);
    m.reduced_result({taps.count}, ReduceOp::kSum, term);
    return nullptr;
  }
  if (taps.count > 1) {
    const Buffer weights = m.table(str("weights", d), use.dtype(0), {axis.to, taps.count}, taps.weights);
    f = [&, weights](const te::Indices& i) {
      Expr sum = number(use.dtype(0), 0);
      for (int64_t t = 0; t < taps.count; ++t)
        sum = sum + element(i, Expr(t)) * load(weights, {i[d], Expr(t)});
      return sum;
    };
  }
  if (!is_last) return m.stage(str("axis", d), shape, use.dtype(0), f);
  m.result(f);
  return nullptr;
}
// `source` where coordinates lie in the image.
void write_cropped(const Use& use, MathWriter& m, const Buffer& source, std::span<const Axis> axes) {
  std::vector<Buffer> inside;
  for (const Axis& axis : axes) {
    std::vector<double> there;
    for (int64_t o = 0; o < axis.to; ++o) {
      const double x = coordinate("tf_crop_and_resize", axis, o);
      there.push_back(x >= 0 && x <= static_cast<double>(axis.from - 1) ? 1 : 0);
    }
    inside.push_back(m.table(str("inside", axis.dimension), DType::kInt64, {axis.to}, there));
  }
  m.result([&](const te::Indices& i) {
    Expr all = bool_imm(true);
    for (size_t k = 0; k < axes.size(); ++k) all = all && load(inside[k], {i[axes[k].dimension]}) >= Expr(1);
    return select(all, load(source, i), number(use.dtype(0), use.number("extrapolation_value", 0)));
  });
}
void resize(const Use& use, MathWriter& m) {
  std::vector<Axis> axes = *axes_of(use);
  std::erase_if(axes, [](const Axis& axis) {
    return axis.from == axis.to && axis.scale == 1 && axis.start == 0 && axis.end == 1;
  });
  if (axes.empty()) return m.result([&](const te::Indices& i) { return load(m.in(0), i); });
  Buffer source = m.in(0);
  for (size_t k = 0; k < axes.size(); ++k)
    source = resize_axis(use, m, source, axes[k], k + 1 == axes.size() && !crops(use));
  if (crops(use)) write_cropped(use, m, source, axes);
}

constexpr auto kKind = OperatorKind::kMovement;
constexpr Operator kRows[] = {
    {"Resize", kKind, 1, 4, 1, resize_types, resize},
    {"Upsample", kKind, 1, 2, 1, resize_types, resize},
};

}  // namespace
}  // namespace resize_ops

std::span<const Operator> resize_operators() { return resize_ops::kRows; }

}  // namespace tuner::graph
