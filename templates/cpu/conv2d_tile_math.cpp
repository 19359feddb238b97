#include "templates/cpu/conv2d_tile_math.h"

#include <algorithm>

#include "compiler_core/base/int_math.h"
#include "compiler_core/te/te.h"
#include "templates/workload/parts/product_math.h"

namespace tuner::conv2d_tile {
namespace {

using te::Indices;

// Pixels that nothing sets apart are one row.
Conv2dWorkload flat(Conv2dWorkload w) {
  if (w.kernel_height == 1 && w.kernel_width == 1 && w.padding == std::array<int64_t, 4>{} &&
      w.stride == std::array<int64_t, 2>{1, 1}) {
    w.in_width *= w.in_height;
    w.in_height = 1;
  }
  return w;
}

int64_t power_of_two_from(int64_t n) {
  int64_t power = 1;
  while (power < n) power *= 2;
  return power;
}

Fold fold_of(const Conv2dWorkload& w, const cpu::TileUnit& unit) {
  const int64_t step = unit.step(w.dtype), kh = w.kernel_height;
  Fold f{};
  f.channels =
      is_planar(w.layout) && w.in_channels > 1 ? round_up(w.in_channels, unit.group(w.dtype)) : w.in_channels;
  f.taken = w.kernel_width * f.channels;
  // Short steps are full of whole windows. In long ones vectors copy a row of the window each.
  const bool whole = unit.groups == 1;
  f.slot = whole ? f.taken : f.taken <= step ? power_of_two_from(f.taken) : round_up(f.taken, step);
  f.rows = whole ? kh : std::min(kh, std::max<int64_t>(1, step / f.slot));
  // Beyond the window weights are 0, and of floats not all products with 0 are.
  if (is_float(w.dtype) && kh % f.rows != 0) f.rows = kh;
  f.blocks = ceil_div(kh, f.rows);
  return f;
}

bool pays(const Fold& f, const Conv2dWorkload& w, int64_t step) {
  if (channel_block(w.layout) != 1 || w.kernel_height * w.kernel_width == 1) return false;
  return round_up(w.in_channels, step) * w.kernel_height * w.kernel_width >=
         2 * round_up(f.rows * f.slot, step) * f.blocks;
}

// Where phases stand in the index of an image; rows and columns come behind them.
std::ptrdiff_t phase_dimension(const Conv2dWorkload& w) { return is_channels_last(w.layout) ? 1 : 2; }

Expr both(const Expr& a, const Expr& b) { return !a.defined() ? b : !b.defined() ? a : a && b; }
Expr where(const Expr& inside, const Expr& value) {
  return inside.defined() ? select(inside, value, zero_of(value->dtype)) : value;
}

Buffer phases(te::Builder& b, const Shape& shape, const Buffer& data) {
  const Conv2dWorkload& w = shape.w;
  const std::ptrdiff_t at = phase_dimension(w);
  const auto d = static_cast<size_t>(at);
  std::vector<int64_t> dims =
      image_shape(w.layout, w.batch, w.in_channels, shape.down.plane, shape.across.plane);
  dims.insert(dims.begin() + at, {shape.down.phases, shape.across.phases});
  return b.compute("phases", dims, [&](const Indices& i) {
    Indices from = i;
    from.erase(from.begin() + at, from.begin() + at + 2);
    from[d] = shape.down.at(i[d], i[d + 2]);
    from[d + 1] = shape.across.at(i[d + 1], i[d + 3]);
    const Expr inside = both(shape.down.inside(i[d], i[d + 2]), shape.across.inside(i[d + 1], i[d + 3]));
    return where(inside, load(data, std::move(from)));
  });
}

Buffer lines(te::Builder& b, const Shape& shape, const Buffer& data) {
  const Conv2dWorkload& w = shape.w;
  const Fold& f = shape.fold;
  const int64_t top = w.padding[0], left = w.padding[1];
  return b.compute("lines", {w.batch, f.lines, f.line},
                   [&](const Indices& i) {
                     const Expr row = i[1] - top;
                     Expr inside;
                     if (top > 0) inside = i[1] >= top;
                     if (f.lines > w.in_height + top) inside = both(inside, i[1] < w.in_height + top);
                     if (is_channels_last(w.layout)) {
                       if (left > 0) inside = both(inside, i[2] >= left * f.channels);
                       if (f.line > (w.in_width + left) * f.channels)
                         inside = both(inside, i[2] < (w.in_width + left) * f.channels);
                       return where(inside, load(data, {i[0], row, i[2] - left * f.channels}));
                     }
                     const Expr column = floor_div(i[2], f.channels), channel = floor_mod(i[2], f.channels);
                     if (left > 0) inside = both(inside, column >= left);
                     if (ceil_div(f.line, f.channels) > w.in_width + left)
                       inside = both(inside, column < w.in_width + left);
                     if (f.channels > w.in_channels) inside = both(inside, channel < w.in_channels);
                     return where(inside, load(data, {i[0], channel, row, column - left}));
                   },
                   BufferRole::kIntermediate, {"n", "line", "element"});
}

// pixels[n, phase, phase, term, q] out of the lines, or of the image or its phases.
Expr pixel(const Shape& shape, const Buffer& from, const Indices& i) {
  const Conv2dWorkload& w = shape.w;
  const Expr row = floor_div(i[4], shape.row), column = floor_mod(i[4], shape.row);
  if (shape.folds) {
    const Fold& f = shape.fold;
    const Expr in_slot = floor_mod(i[3], f.slot),
               line = row * shape.down.stride + i[1] + floor_div(i[3], f.slot) * w.dilation[0];
    const Expr tap = w.dilation[1] == 1 ? in_slot
                                        : floor_div(in_slot, f.channels) * (w.dilation[1] * f.channels) +
                                              floor_mod(in_slot, f.channels);
    const Expr value = load(from, {i[0], line, column * (w.stride[1] * f.channels) + tap});
    // Beyond what is taken weights are 0, and so are products of integers.
    return where(f.slot > f.taken && is_float(w.dtype) ? in_slot < f.taken : Expr(), value);
  }
  Indices at = image_index(w.layout, i[0], i[3], row, column);
  if (shape.lays_out()) at.insert(at.begin() + phase_dimension(w), {i[1], i[2]});
  return load(from, std::move(at));
}

// taps[oc, term, block, 0] of the weights.
Expr tap(const Shape& shape, const Buffer& weight, const Indices& i) {
  const Conv2dWorkload& w = shape.w;
  const Fold& f = shape.fold;
  const Expr in_slot = floor_mod(i[1], f.slot), kh = i[2] * f.rows + floor_div(i[1], f.slot),
             kw = floor_div(in_slot, f.channels), ic = floor_mod(in_slot, f.channels);
  Expr inside;
  if (f.slot > f.taken) inside = in_slot < f.taken;
  if (f.channels > w.in_channels) inside = both(inside, ic < w.in_channels);
  if (f.blocks * f.rows > w.kernel_height) inside = both(inside, kh < w.kernel_height);
  return where(inside, load(weight, {i[0], ic, kh, kw}));
}

}  // namespace

Expr Taps::inside(const Expr& phase, const Expr& i) const {
  Expr result;
  if (padding > 0) result = i * stride + phase >= padding;
  if ((plane - 1) * stride + phases - 1 - padding >= in)
    result = both(result, i * stride + phase < padding + in);
  return result;
}

Shape::Shape(const Conv2dWorkload& task, const cpu::TileUnit& of)
    : w(flat(task)),
      unit(of),
      folds(pays(fold_of(w, of), w, of.step(w.dtype))),
      fold(fold_of(w, of)),
      down(folds ? fold.blocks : w.kernel_height, w.stride[0],
           folds ? fold.rows * w.dilation[0] : w.dilation[0], w.in_height, w.padding[0], w.out_height()),
      across(folds ? 1 : w.kernel_width, w.stride[1], w.dilation[1], w.in_width, w.padding[1], w.out_width()),
      step(unit.step(w.dtype)),
      group(unit.group(w.dtype)),
      out_block(channel_block(w.out_layout)) {
  terms = folds ? fold.rows * fold.slot : w.in_channels;
  row = across.plane;
  pixels = down.plane * row;
  sums = (w.out_height() - 1) * row + w.out_width();
  const bool one_row = row == w.out_width();
  out_height = one_row ? 1 : w.out_height();
  out_width = one_row ? sums : w.out_width();
  fold.lines = (down.plane - 1) * down.stride + down.phases + (fold.rows - 1) * w.dilation[0];
  const int64_t columns = (ceil_div(fold.slot, fold.channels) - 1) * w.dilation[1] + 1;
  fold.line = ((w.out_width() - 1) * w.stride[1] + columns) * fold.channels;
}

bool Shape::pixels_are_rows() const { return out_block > 1 || is_channels_last(w.out_layout); }

bool Shape::reads_in_place() const {
  return pixels_are_rows() && is_channels_last(w.layout) && !folds && !lays_out() && pixels == row &&
         w.in_channels % step == 0;
}

std::vector<int64_t> Shape::out_shape() const {
  return image_shape(w.out_layout, w.batch, w.out_channels, out_height, out_width);
}

Program math(const Shape& shape) {
  const Conv2dWorkload& w = shape.w;
  const DType sums = sum_dtype(w.dtype);
  te::Builder b("conv2d", sums);
  const auto argument = [&](const std::string& name, std::vector<int64_t> dims, DType dtype) {
    return Workload(w).is_constant(name) ? b.constant(name, std::move(dims), dtype)
                                         : b.input(name, std::move(dims), dtype);
  };
  std::vector<int64_t> image = image_shape(w.layout, w.batch, w.in_channels, w.in_height, w.in_width);
  if (shape.folds && is_channels_last(w.layout)) image = {w.batch, w.in_height, w.in_width * w.in_channels};
  const Buffer data = argument("data", std::move(image), left_dtype(w.dtype));
  Buffer weight =
      argument("weight", {w.out_channels, w.in_channels, w.kernel_height, w.kernel_width}, w.dtype);
  const Epilogue epilogue = declare_epilogue(b, w, w.out_channels, shape.out_shape());
  const Buffer from = shape.folds ? lines(b, shape, data) : shape.lays_out() ? phases(b, shape, data) : data;
  const Buffer pixels =
      b.compute("pixels", {w.batch, shape.down.phases, shape.across.phases, shape.terms, shape.pixels},
                [&](const Indices& i) { return pixel(shape, from, i); }, BufferRole::kIntermediate,
                {"n", "fh", "fw", "ic", "q"});
  if (shape.folds) {
    const Buffer stored = weight;
    weight = b.compute("taps", {w.out_channels, shape.terms, shape.down.kernel, 1},
                       [&](const Indices& i) { return tap(shape, stored, i); }, BufferRole::kIntermediate,
                       {"oc", "ic", "kh", "kw"});
  }
  const bool by_rows = shape.pixels_are_rows();
  std::vector<int64_t> dims{w.batch, shape.sums, w.out_channels};
  std::vector<std::string> names{"n", "q", "oc"};
  if (!by_rows) std::swap(dims[1], dims[2]), std::swap(names[1], names[2]);
  const Buffer acc = b.reduce(
      "acc", dims, {{"kh", shape.down.kernel}, {"kw", shape.across.kernel}, {"ic", shape.terms}},
      ReduceOp::kSum,
      [&](const Indices& i, const Indices& r) {
        const Expr &q = i[by_rows ? 1 : 2], &oc = i[by_rows ? 2 : 1];
        const Expr at = q + shape.down.distance(r[0]) * shape.row + shape.across.distance(r[1]);
        const Expr x = cast(sums,
                            load(pixels, {i[0], shape.down.phase(r[0]), shape.across.phase(r[1]), r[2], at})),
                   y = cast(sums, load(weight, {oc, r[2], r[0], r[1]}));
        return by_rows ? x * y : y * x;
      },
      BufferRole::kIntermediate, names);
  std::vector<std::string> axes{"n", "oc", "oh", "ow", "ocb"};
  if (is_channels_last(w.out_layout)) axes = {"n", "oh", "ow", "oc"};
  axes.resize(shape.out_shape().size());
  b.compute(
      "out", shape.out_shape(),
      [&](const Indices& i) {
        const ImagePlace at = image_place(w.out_layout, i);
        const Expr q = at.h * shape.row + at.w;
        return finished(epilogue, load(acc, by_rows ? Indices{i[0], q, at.c} : Indices{i[0], at.c, q}), at.c,
                        i);
      },
      BufferRole::kOutput, axes);
  return b.finish();
}

}  // namespace tuner::conv2d_tile
