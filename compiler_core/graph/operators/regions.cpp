// Operators on regions of images: pooling of boxes, convolution at moved places.
#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler_core/graph/operators/sampling.h"
#include "compiler_core/graph/operators/window.h"

namespace tuner::graph {
namespace region_ops {
namespace {

constexpr int64_t kMostWork = int64_t{1} << 32;  // steps of what looks at whole images

Expr like(const Expr& x, double value) { return number(x->dtype, value); }

// --- RoiAlign: boxes [R, 4] as images of one size, of samples between pixels ---
struct RoiAlign {
  int64_t height, width;
  double scale, shift;  // of the boxes; half a pixel or none
  bool is_max;
  std::vector<double> rows, columns;  // samples of each bin, for each box
  int64_t most_rows = 1, most_columns = 1;
};
// How many samples a bin has where the box says it.
double samples_of(double size, int64_t bins, double least) {
  return std::max(1.0, std::ceil(std::max(size, least) / static_cast<double>(bins)));
}
Status find_samples(const Use& use, int64_t ratio, RoiAlign& r) {
  constexpr int64_t kMostBoxes = int64_t{1} << 20;
  const int64_t boxes = use.shape(1)[0];
  if (boxes > kMostBoxes) return invalid_argument(boxes, " boxes, expected at most 2^20");
  r.rows.assign(static_cast<size_t>(boxes), static_cast<double>(ratio));
  r.columns = r.rows;
  if (ratio == 0) {
    ASSIGN_OR_RETURN(const std::vector<double> given, use.numbers(1));
    const double least = r.shift == 0 ? 1 : 0;
    for (size_t b = 0; b < r.rows.size(); ++b) {
      r.columns[b] = samples_of((given[4 * b + 2] - given[4 * b]) * r.scale, r.width, least);
      r.rows[b] = samples_of((given[4 * b + 3] - given[4 * b + 1]) * r.scale, r.height, least);
    }
  }
  constexpr double kMostSamples = 4096;
  const double most = std::max(*std::ranges::max_element(r.rows), *std::ranges::max_element(r.columns));
  if (!(most <= kMostSamples)) return invalid_argument(most, " samples in a bin, expected at most 4096");
  r.most_rows = static_cast<int64_t>(*std::ranges::max_element(r.rows));
  r.most_columns = static_cast<int64_t>(*std::ranges::max_element(r.columns));
  return Status::ok();
}
Result<RoiAlign> roi_align_of(const Use& use) {
  constexpr int64_t kHasHalfPixel = 16;
  if (use.rank(0) != 4 || use.shape(1)[1] != 4 || use.shape(2)[0] != use.shape(1)[0])
    return invalid_argument("boxes are ", to_text(use.type(1)), ", their images ", to_text(use.type(2)),
                            " for ", to_text(use.type(0)), ", expected [R, 4], [R] and images");
  const std::string way = use.word("coordinate_transformation_mode",
                                   use.operator_set() < kHasHalfPixel ? "output_half_pixel" : "half_pixel");
  RoiAlign r{.height = use.integer("output_height", 1),
             .width = use.integer("output_width", 1),
             .scale = use.number("spatial_scale", 1),
             .shift = way == "half_pixel" ? 0.5 : 0,
             .is_max = use.word("mode", "avg") == "max"};
  const int64_t ratio = use.integer("sampling_ratio", 0);
  if (r.height < 1 || r.width < 1 || r.height > 4096 || r.width > 4096 || ratio < 0)
    return invalid_argument("output_height, output_width or sampling_ratio are ", r.height, ", ", r.width,
                            " and ", ratio);
  RETURN_IF_ERROR(find_samples(use, ratio, r).with_context(ratio == 0 ? "sampling_ratio = 0: " : ""));
  return r;
}
Result<std::vector<TensorType>> roi_align_types(const Use& use) {
  ASSIGN_OR_RETURN(const RoiAlign r, roi_align_of(use));
  return one({use.dtype(0), {use.shape(1)[0], use.shape(0)[1], r.height, r.width}});
}
// Of one dimension: [box, bin, sample, 2], the pixels around each sample.
struct RoiSide {
  int64_t extent, bins, samples, low;  // low: the box's number of its first edge; the last is low + 2
  Buffer counts;
};
Taps roi_taps(const Use& use, MathWriter& m, const RoiAlign& r, const RoiSide& side, const char* name) {
  const DType real = coordinate_type(use.dtype(1));
  const auto size = static_cast<double>(side.extent);
  const Shape bins{use.shape(1)[0], side.bins, side.samples};
  const Buffer coordinate = m.stage(str(name, "_at"), bins, real, [&](const te::Indices& i) {
    const auto edge = [&](int64_t k) {
      const Expr x = as(real, load(m.in(1), {i[0], Expr(k)}));
      return x * like(x, r.scale) - like(x, r.shift);
    };
    const Expr first = edge(side.low);
    Expr length = edge(side.low + 2) - first;
    if (r.shift == 0) length = max(length, like(length, 1));
    const Expr bin = length / like(length, static_cast<double>(side.bins));
    return first + as(real, i[1]) * bin + (as(real, i[2]) + like(bin, 0.5)) * bin / load(side.counts, {i[0]});
  });
  Shape samples = bins;
  samples.push_back(2);
  const auto found = [&](const te::Indices& i) { return load(coordinate, {i[0], i[1], i[2]}); };
  const auto held = [&](const Expr& x) {  // the place within the image
    return min(max(x, like(x, 0)), like(x, size - 1));
  };
  Taps taps{.count = 2};
  taps.places = m.stage(str(name, "_place"), samples, DType::kInt64, [&](const te::Indices& i) {
    const Expr x = found(i);
    const Expr there = x >= like(x, -1) && x <= like(x, size);
    const Expr place = min(max(whole_place(unary(UnaryOp::kFloor, held(x))), Expr(0)), Expr(side.extent - 1));
    return select(there, min(place + i[3], Expr(side.extent - 1)), Expr(-1));
  });
  taps.weights = m.stage(str(name, "_weight"), samples, real, [&](const te::Indices& i) {
    const Expr x = held(found(i)), t = x - unary(UnaryOp::kFloor, x);
    return select(equals(i[3], Expr(0)), like(t, 1) - t, t);
  });
  return taps;
}
void roi_align(const Use& use, MathWriter& m) {
  const RoiAlign r = *roi_align_of(use);
  const DType dtype = use.dtype(0), real = coordinate_type(use.dtype(1));
  const Shape& image = use.shape(0);
  const auto boxes = static_cast<int64_t>(r.rows.size());
  const RoiSide sides[] = {
      {image[2], r.height, r.most_rows, 1, m.table("rows", real, {boxes}, r.rows)},
      {image[3], r.width, r.most_columns, 0, m.table("columns", real, {boxes}, r.columns)}};
  const Taps taps[] = {roi_taps(use, m, r, sides[0], "y"), roi_taps(use, m, r, sides[1], "x")};
  const auto pixel = [&](const te::Indices& i, const Expr& y, const Expr& x) {
    const Expr batch = min(max(as(DType::kInt64, load(m.in(2), {i[0]})), Expr(0)), Expr(image[0] - 1));
    return load(m.in(0), {batch, i[1], y, x});
  };
  // Samples that this box does not have: others have more.
  const auto counts = [&](const te::Indices& i, const te::Indices& s, const Expr& value, double otherwise) {
    if (r.most_rows == 1 && r.most_columns == 1) return value;
    const Expr there =
        as(real, s[0]) < load(sides[0].counts, {i[0]}) && as(real, s[1]) < load(sides[1].counts, {i[0]});
    return select(there, value, number(dtype, otherwise));
  };
  const Shape over{r.most_rows, r.most_columns};
  const auto samples = [](const te::Indices& i, const te::Indices& s) {
    return std::vector<te::Indices>{{i[0], i[2], s[0]}, {i[0], i[3], s[1]}};
  };
  if (r.is_max)  // of the four products of each sample, as the standard's reference has it
    return m.reduced_result(
        {r.most_rows, r.most_columns, 2, 2}, ReduceOp::kMax, [&](const auto& i, const auto& s) {
          const std::vector<te::Indices> at = samples(i, s);
          te::Indices row = at[0], column = at[1];
          row.push_back(s[2]);
          column.push_back(s[3]);
          const Expr y = load(taps[0].places, row), x = load(taps[1].places, column);
          const Expr weight = as(dtype, load(taps[0].weights, row) * load(taps[1].weights, column));
          const Expr value = select(y >= Expr(0) && x >= Expr(0), pixel(i, y, x) * weight, number(dtype, 0));
          return counts(i, s, value, -std::numeric_limits<double>::infinity());
        });
  const Buffer sum =
      m.reduced("sum", m.type().shape, over, ReduceOp::kSum, [&](const auto& i, const auto& s) {
        const std::vector<te::Indices> at = samples(i, s);
        const Expr value = interpolated(
            taps, at, dtype, [&](const te::Indices& places) { return pixel(i, places[0], places[1]); });
        return counts(i, s, value, 0);
      });
  m.result([&](const te::Indices& i) {
    return load(sum, i) / as(dtype, load(sides[0].counts, {i[0]}) * load(sides[1].counts, {i[0]}));
  });
}

// --- MaxRoiPool: the largest pixel of each bin of a box [image, x1, y1, x2, y2] ---
Result<std::vector<TensorType>> max_roi_pool_types(const Use& use) {
  const Shape pooled = use.integers("pooled_shape");
  if (use.rank(0) != 4 || use.shape(1)[1] != 5)
    return invalid_argument("boxes are ", to_text(use.type(1)), " for ", to_text(use.type(0)),
                            ", expected [R, 5] and images");
  if (pooled.size() != 2 || std::min(pooled[0], pooled[1]) < 1 || std::max(pooled[0], pooled[1]) > 4096)
    return invalid_argument("pooled_shape is no two numbers from 1 to 4096");
  const Shape shape{use.shape(1)[0], use.shape(0)[1], pooled[0], pooled[1]};
  RETURN_IF_ERROR(check_size({use.dtype(0), shape}));
  if (elements_of(shape) > kMostWork / (use.shape(0)[2] * use.shape(0)[3]))
    return invalid_argument(elements_of(shape), " bins of images ", to_text(use.type(0)), " are too many");
  return one({use.dtype(0), shape});
}
// First and last pixel (not included) of a bin of one dimension, [box, bin].
struct BinEdges {
  Buffer first, last;
};
BinEdges bin_edges(const Use& use, MathWriter& m, const char* name, int64_t low, int64_t bins,
                   int64_t extent) {
  const DType real = coordinate_type(use.dtype(1));
  const double scale = use.number("spatial_scale", 1);
  const auto edge = [&](const char* which, bool is_last) {
    return m.stage(str(name, which), {use.shape(1)[0], bins}, DType::kInt64, [&](const te::Indices& i) {
      const auto rounded = [&](int64_t k) {  // halves away from 0
        const Expr x = as(real, load(m.in(1), {i[0], Expr(k)}));
        const Expr size = unary(UnaryOp::kFloor, unary(UnaryOp::kAbs, x * like(x, scale)) + like(x, 0.5));
        return select(x < like(x, 0), unary(UnaryOp::kNeg, size), size);
      };
      const Expr start = rounded(low),
                 length = max(rounded(low + 2) - start + like(start, 1), like(start, 1));
      const Expr bin = length / like(length, static_cast<double>(bins)), k = as(real, i[1]);
      const Expr below = unary(UnaryOp::kFloor, k * bin);
      const Expr above =
          unary(UnaryOp::kNeg, unary(UnaryOp::kFloor, unary(UnaryOp::kNeg, (k + like(k, 1)) * bin)));
      const Expr place = whole_place((is_last ? above : below) + start);
      return min(max(place, Expr(0)), Expr(extent));
    });
  };
  return {edge("_first", false), edge("_last", true)};
}
void max_roi_pool(const Use& use, MathWriter& m) {
  const Shape &image = use.shape(0), &shape = m.type().shape;
  const DType dtype = use.dtype(0);
  const BinEdges y = bin_edges(use, m, "y", 2, shape[2], image[2]),
                 x = bin_edges(use, m, "x", 1, shape[3], image[3]);
  const Expr nothing = number(dtype, -std::numeric_limits<double>::infinity());
  const auto within = [](const BinEdges& edges, const te::Indices& bin, const Expr& place) {
    return place >= load(edges.first, bin) && place < load(edges.last, bin);
  };
  const Buffer most =
      m.reduced("max", shape, {image[2], image[3]}, ReduceOp::kMax, [&](const auto& i, const auto& r) {
        const Expr batch = whole_place(as(coordinate_type(use.dtype(1)), load(m.in(1), {i[0], Expr(0)})));
        const Expr there = within(y, {i[0], i[2]}, r[0]) && within(x, {i[0], i[3]}, r[1]);
        const Expr from = min(max(batch, Expr(0)), Expr(image[0] - 1));
        return select(there, load(m.in(0), {from, i[1], r[0], r[1]}), nothing);
      });
  m.result([&](const te::Indices& i) {  // a bin without pixels is 0
    const auto is_empty = [&](const BinEdges& e, const te::Indices& bin) {
      return load(e.last, bin) <= load(e.first, bin);
    };
    return select(is_empty(y, {i[0], i[2]}) || is_empty(x, {i[0], i[3]}), number(dtype, 0), load(most, i));
  });
}

// --- DeformConv: a convolution whose taps are moved by offsets, and weighted by a mask ---
struct Deformed {
  Window window;
  int64_t groups, offset_groups, channels;  // channels: of a group of the weights
  int64_t taps() const { return elements_of(window.kernel); }
};
Result<Deformed> deformed_of(const Use& use) {
  const Shape &image = use.shape(0), &weight = use.shape(1);
  if (image.size() != 4 || weight.size() != 4)
    return invalid_argument("images of 2 dimensions are served, got ", to_text(use.type(0)), " and weights ",
                            to_text(use.type(1)));
  ASSIGN_OR_RETURN(Window w, window_of(use, image, {weight[2], weight[3]}));
  Deformed d{std::move(w), use.integer("group", 1), use.integer("offset_group", 1), weight[1]};
  if (d.window.kernel != Shape{weight[2], weight[3]})
    return invalid_argument("kernel_shape is not that of the weights");
  if (d.groups < 1 || image[1] % d.groups != 0 || weight[0] % d.groups != 0 ||
      weight[1] != image[1] / d.groups || d.offset_groups < 1 || image[1] % d.offset_groups != 0)
    return invalid_argument("weights are ", to_text(use.type(1)), " for ", image[1], " channels in ",
                            d.groups, " groups and ", d.offset_groups, " groups of offsets");
  Shape offsets{image[0], d.offset_groups * d.taps() * 2, d.window.result[0], d.window.result[1]};
  if (use.shape(2) != offsets)
    return invalid_argument("offsets are ", to_text(use.type(2)), ", expected ",
                            to_text(TensorType{use.dtype(2), offsets}));
  offsets[1] /= 2;
  if (use.has(4) && use.shape(4) != offsets)
    return invalid_argument("the mask is ", to_text(use.type(4)), ", expected ",
                            to_text(TensorType{use.dtype(4), offsets}));
  if (use.has(3) && use.shape(3) != Shape{weight[0]})
    return invalid_argument("the bias is ", to_text(use.type(3)), ", expected ", weight[0], " numbers");
  return d;
}
Result<std::vector<TensorType>> deform_conv_types(const Use& use) {
  ASSIGN_OR_RETURN(const Deformed d, deformed_of(use));
  return one({use.dtype(0), {use.shape(0)[0], use.shape(1)[0], d.window.result[0], d.window.result[1]}});
}
// Pixels around each tap: [N, group of offsets, tap, row, column, 2].
Taps deformed_taps(const Use& use, MathWriter& m, const Deformed& d, size_t dimension) {
  const DType real = coordinate_type(use.dtype(0));
  const Window& w = d.window;
  const Shape places{use.shape(0)[0], d.offset_groups, d.taps(), w.result[0], w.result[1]};
  const Expr taps(d.taps());
  const Buffer at = m.stage(str("at", dimension), places, real, [&](const te::Indices& i) {
    const Expr tap = indices_of(i[2], w.kernel)[dimension];
    const Expr channel = (i[1] * taps + i[2]) * Expr(2) + Expr(static_cast<int64_t>(dimension));
    return as(real, w.place(dimension, i[3 + dimension], tap)) +
           as(real, load(m.in(2), {i[0], channel, i[3], i[4]}));
  });
  Shape around = places;
  around.push_back(2);
  const auto found = [&](te::Indices i) {
    i.pop_back();
    return load(at, i);
  };
  Taps made{.count = 2};
  made.places = m.stage(str("place", dimension), around, DType::kInt64, [&](const te::Indices& i) {
    const Expr place = whole_place(unary(UnaryOp::kFloor, found(i))) + i.back();
    return select(place >= Expr(0) && place < Expr(use.shape(0)[dimension + 2]), place, Expr(-1));
  });
  made.weights = m.stage(str("weight", dimension), around, real, [&](const te::Indices& i) {
    const Expr x = found(i), t = x - unary(UnaryOp::kFloor, x);
    return select(equals(i.back(), Expr(0)), like(t, 1) - t, t);
  });
  return made;
}
void deform_conv(const Use& use, MathWriter& m) {
  const Deformed d = *deformed_of(use);
  const Shape &image = use.shape(0), &shape = m.type().shape;
  const DType dtype = use.dtype(0);
  const Taps taps[] = {deformed_taps(use, m, d, 0), deformed_taps(use, m, d, 1)};
  const Shape columns{image[0], image[1], d.taps(), shape[2], shape[3]};
  const Buffer column = m.stage("columns", columns, dtype, [&](const te::Indices& i) {
    const Expr group = floor_div(i[1], Expr(image[1] / d.offset_groups));
    const te::Indices sample{i[0], group, i[2], i[3], i[4]};
    const te::Indices samples[] = {sample, sample};
    const Expr x = interpolated(taps, samples, dtype, [&](const te::Indices& places) {
      return load(m.in(0), {i[0], i[1], places[0], places[1]});
    });
    return use.has(4) ? x * load(m.in(4), {i[0], group * Expr(d.taps()) + i[2], i[3], i[4]}) : x;
  });
  const Expr results(shape[1] / d.groups), channels(d.channels);
  const auto term = [&](const te::Indices& i, const te::Indices& r) {
    const te::Indices tap = indices_of(r[1], d.window.kernel);
    return load(column, {i[0], floor_div(i[1], results) * channels + r[0], r[1], i[2], i[3]}) *
           load(m.in(1), {i[1], r[0], tap[0], tap[1]});
  };
  const Shape over{d.channels, d.taps()};
  if (!use.has(3)) return m.reduced_result(over, ReduceOp::kSum, term);
  const Buffer sum = m.reduced("sum", shape, over, ReduceOp::kSum, term);
  m.result([&](const te::Indices& i) { return load(sum, i) + load(m.in(3), {i[1]}); });
}

constexpr auto kKind = OperatorKind::kReduction;
constexpr Operator kRows[] = {
    {"DeformConv", OperatorKind::kProduct, 3, 5, 1, deform_conv_types, deform_conv},
    {"MaxRoiPool", kKind, 2, 2, 1, max_roi_pool_types, max_roi_pool},
    {"RoiAlign", kKind, 3, 3, 1, roi_align_types, roi_align},
};

}  // namespace
}  // namespace region_ops

std::span<const Operator> region_operators() { return region_ops::kRows; }

}  // namespace tuner::graph
