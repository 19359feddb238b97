// Convolutions, plain and transposed, of float and of quantised images.
#include <algorithm>

#include "compiler_core/graph/operators/window.h"

namespace tuner::graph {
namespace convolution_ops {
namespace {

// Kernel extents of weights [OC, IC / groups, K1, ...].
Shape kernel_of(const Shape& weight) {
  return {weight.begin() + std::min<std::ptrdiff_t>(2, std::ssize(weight)), weight.end()};
}

Result<Shape> convolution_shape(const Use& use, size_t image_input, size_t weight_input) {
  const Shape &image = use.shape(image_input), &weight = use.shape(weight_input);
  if (weight.size() != image.size())
    return invalid_argument("weights are ", to_text(use.type(weight_input)), " for ",
                            to_text(use.type(image_input)));
  ASSIGN_OR_RETURN(const Window w, window_of(use, image, kernel_of(weight)));
  const int64_t groups = use.integer("group", 1);
  if (w.kernel != convolution_ops::kernel_of(weight))
    return invalid_argument("kernel_shape is not that of the weights");
  if (groups < 1 || image[1] % groups != 0 || weight[0] % groups != 0 || weight[1] != image[1] / groups)
    return invalid_argument("weights are ", to_text(use.type(weight_input)), " for ", image[1],
                            " channels in ", groups, " groups");
  Shape shape{image[0], weight[0]};
  shape.insert(shape.end(), w.result.begin(), w.result.end());
  return shape;
}

// Element of the image at `from` as `read` has it, or zero in the padding.
Expr inside(const Shape& image, const te::Indices& from, const Expr& element) {
  Expr there = bool_imm(true);
  for (size_t d = 2; d < image.size(); ++d) there = there && from[d] >= Expr(0) && from[d] < Expr(image[d]);
  return select(there, element, number(element->dtype, 0));
}

// The sum of a convolution: indices of an image element and of its weight, for result i and term r = [ic,
// k...].
struct Terms {
  Window window;
  int64_t channels, results;  // of a group, in and out

  Shape over() const {
    Shape all{channels};
    all.insert(all.end(), window.kernel.begin(), window.kernel.end());
    return all;
  }
  te::Indices image(const te::Indices& i, const te::Indices& r) const {
    te::Indices from{i[0], floor_div(i[1], Expr(results)) * Expr(channels) + r[0]};
    for (size_t d = 0; d < window.kernel.size(); ++d) from.push_back(window.place(d, i[d + 2], r[d + 1]));
    return from;
  }
  static te::Indices weight(const te::Indices& i, const te::Indices& r) {
    te::Indices from{i[1]};
    from.insert(from.end(), r.begin(), r.end());
    return from;
  }
};
Terms terms_of(const Use& use, size_t image_input, size_t weight_input) {
  const Shape &image = use.shape(image_input), &weight = use.shape(weight_input);
  return {*window_of(use, image, kernel_of(weight)), weight[1], weight[0] / use.integer("group", 1)};
}

Result<std::vector<TensorType>> conv_types(const Use& use) {
  ASSIGN_OR_RETURN(const Shape shape, convolution_shape(use, 0, 1));
  if (use.has(2) && use.shape(2) != Shape{shape[1]})
    return invalid_argument("the bias is ", to_text(use.type(2)));
  return one({use.dtype(0), shape});
}
void conv(const Use& use, MathWriter& m) {
  const Terms terms = terms_of(use, 0, 1);
  const auto term = [&](const te::Indices& i, const te::Indices& r) {
    const te::Indices from = terms.image(i, r);
    return inside(use.shape(0), from, load(m.in(0), from)) * load(m.in(1), Terms::weight(i, r));
  };
  if (!use.has(2)) return m.reduced_result(terms.over(), ReduceOp::kSum, term);
  const Buffer sum = m.reduced("sum", m.type().shape, terms.over(), ReduceOp::kSum, term);
  m.result([&](const te::Indices& i) { return load(sum, i) + load(m.in(2), {i[1]}); });
}

// --- transposed: each element of the image adds the kernel, times itself, to the result ---
}  // namespace
}  // namespace convolution_ops

Result<Transposed> transposed_of(const Use& use) {
  const Shape &image = use.shape(0), &weight = use.shape(1);
  if (image.size() < 3 || weight.size() != image.size() || weight[0] != image[1])
    return invalid_argument("weights are ", to_text(use.type(1)), " for ", to_text(use.type(0)));
  const size_t rank = image.size() - 2;
  const Shape ones(rank, 1), zeros(rank, 0);
  Transposed t{.kernel = convolution_ops::kernel_of(weight),
               .strides = use.integers("strides", ones),
               .dilations = use.integers("dilations", ones)};
  if (use.integers("kernel_shape", t.kernel) != t.kernel)
    return invalid_argument("kernel_shape is not that of the weights, ", to_text(use.type(1)));
  const Shape pads = use.integers("pads", Shape(2 * rank, 0)), more = use.integers("output_padding", zeros);
  Shape wanted = use.integers("output_shape");
  if (wanted.size() == rank + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
  if (t.strides.size() != rank || t.dilations.size() != rank || pads.size() != 2 * rank ||
      more.size() != rank || (!wanted.empty() && wanted.size() != rank))
    return invalid_argument("strides, dilations, pads or output_shape do not have ", rank, " dimensions");
  const std::string auto_pad = use.word("auto_pad", "NOTSET");
  const bool same = auto_pad.starts_with("SAME");
  for (size_t d = 0; d < rank; ++d) {
    constexpr int64_t kMost = int64_t{1} << 20;
    for (const int64_t x : {t.strides[d] - 1, t.dilations[d] - 1, more[d], pads[d], pads[d + rank]})
      if (x < 0 || x > kMost) return invalid_argument("strides, dilations, pads or output_padding hold ", x);
    const int64_t full = t.strides[d] * (image[d + 2] - 1) + more[d] + (t.kernel[d] - 1) * t.dilations[d] + 1;
    int64_t result = full - pads[d] - pads[d + rank], before = pads[d];
    if (same || !wanted.empty()) {
      result = wanted.empty() ? image[d + 2] * t.strides[d] : wanted[d];
      const int64_t all = std::max<int64_t>(0, full - result);
      before = auto_pad == "SAME_UPPER" ? all / 2 : all - all / 2;
    }
    if (result < 1) return invalid_argument("a result of ", result, " pixels in dimension ", d);
    t.before.push_back(before);
    t.result.push_back(result);
  }
  return t;
}

namespace convolution_ops {
namespace {

Result<std::vector<TensorType>> conv_transpose_types(const Use& use) {
  ASSIGN_OR_RETURN(const Transposed t, transposed_of(use));
  const int64_t groups = use.integer("group", 1);
  if (groups < 1 || use.shape(0)[1] % groups != 0)
    return invalid_argument(use.shape(0)[1], " channels in ", groups, " groups");
  Shape shape{use.shape(0)[0], use.shape(1)[1] * groups};
  if (use.has(2) && use.shape(2) != Shape{shape[1]})
    return invalid_argument("the bias is ", to_text(use.type(2)));
  shape.insert(shape.end(), t.result.begin(), t.result.end());
  return one({use.dtype(0), shape});
}
void conv_transpose(const Use& use, MathWriter& m) {
  const Transposed t = *transposed_of(use);
  const int64_t channels = use.shape(0)[1] / use.integer("group", 1), results = use.shape(1)[1];
  Shape over{channels};
  over.insert(over.end(), t.kernel.begin(), t.kernel.end());
  const auto term = [&](const te::Indices& i, const te::Indices& r) {
    const Expr channel = floor_div(i[1], Expr(results)) * Expr(channels) + r[0];
    te::Indices from{i[0], channel}, weight{channel, floor_mod(i[1], Expr(results))};
    Expr hit = bool_imm(true);
    for (size_t d = 0; d < t.kernel.size(); ++d) {
      const Expr far = i[d + 2] + Expr(t.before[d]) - r[d + 1] * Expr(t.dilations[d]);
      from.push_back(floor_div(far, Expr(t.strides[d])));
      weight.push_back(r[d + 1]);
      if (t.strides[d] > 1) hit = hit && equals(floor_mod(far, Expr(t.strides[d])), Expr(0));
    }
    return select(hit, inside(use.shape(0), from, load(m.in(0), from)), number(use.dtype(0), 0)) *
           load(m.in(1), weight);
  };
  if (!use.has(2)) return m.reduced_result(over, ReduceOp::kSum, term);
  const Buffer sum = m.reduced("sum", m.type().shape, over, ReduceOp::kSum, term);
  m.result([&](const te::Indices& i) { return load(sum, i) + load(m.in(2), {i[1]}); });
}

// --- of integers ---
Expr whole(const Expr& x) { return as(DType::kInt32, x); }
// A zero point: one number, or one a result channel.
Expr zero_point(const Use& use, const MathWriter& m, size_t input, const Expr& channel) {
  if (!use.has(input)) return int_imm(0, DType::kInt32);
  if (elements_of(use.shape(input)) == 1)
    return whole(at(m.in(input), te::Indices(use.shape(input).size(), Expr(0))));
  return whole(load(m.in(input), {channel}));
}
// Scales and zero points of weights: one number, or one for each result channel.
Status check_of_channels(const Use& use, std::initializer_list<size_t> inputs, int64_t channels) {
  for (const size_t i : inputs)
    if (use.has(i) && elements_of(use.shape(i)) != 1 && use.shape(i) != Shape{channels})
      return invalid_argument("input ", i, " is ", to_text(use.type(i)), ", expected 1 or ", channels,
                              " numbers");
  return Status::ok();
}
Result<std::vector<TensorType>> conv_integer_types(const Use& use) {
  ASSIGN_OR_RETURN(const Shape shape, convolution_shape(use, 0, 1));
  RETURN_IF_ERROR(check_of_channels(use, {3}, shape[1]));
  return one({DType::kInt32, shape});
}
// Sum of (x - its zero point) * (w - its zero point); the padding is the zero point.
Term integer_term(const Use& use, const MathWriter& m, const Terms& terms, size_t x, size_t w, size_t x_zero,
                  size_t w_zero) {
  return [&use, &m, terms, x, w, x_zero, w_zero](const te::Indices& i, const te::Indices& r) {
    const te::Indices from = terms.image(i, r);
    const Expr element = whole(load(m.in(x), from)) - zero_point(use, m, x_zero, i[1]);
    return inside(use.shape(x), from, element) *
           (whole(load(m.in(w), Terms::weight(i, r))) - zero_point(use, m, w_zero, i[1]));
  };
}
void conv_integer(const Use& use, MathWriter& m) {
  const Terms terms = terms_of(use, 0, 1);
  m.reduced_result(terms.over(), ReduceOp::kSum, integer_term(use, m, terms, 0, 1, 2, 3));
}

// x, its scale and zero point, w, its scale and zero point, those of the result, bias.
Result<std::vector<TensorType>> qlinear_conv_types(const Use& use) {
  ASSIGN_OR_RETURN(const Shape shape, convolution_shape(use, 0, 3));
  RETURN_IF_ERROR(check_of_channels(use, {4, 5}, shape[1]));
  if (use.has(8) && use.shape(8) != Shape{shape[1]})
    return invalid_argument("the bias is ", to_text(use.type(8)), ", expected ", shape[1], " numbers");
  return one({use.dtype(7), shape});
}
void qlinear_conv(const Use& use, MathWriter& m) {
  const Terms terms = terms_of(use, 0, 3);
  const Buffer sum =
      m.reduced("sum", m.type().shape, terms.over(), ReduceOp::kSum, integer_term(use, m, terms, 0, 3, 2, 5));
  const DType dtype = m.type().dtype;
  m.result([&](const te::Indices& i) {
    const auto scale = [&](size_t input) {
      const bool single = elements_of(use.shape(input)) == 1;
      return single ? at(m.in(input), te::Indices(use.shape(input).size(), Expr(0)))
                    : load(m.in(input), {i[1]});
    };
    Expr x = load(sum, i);
    if (use.has(8)) x = x + load(m.in(8), {i[1]});
    const Expr real = as(DType::kFloat32, x) * (scale(1) * scale(4) / scale(6));
    const Expr shifted = unary(UnaryOp::kRound, real) + as(DType::kFloat32, zero_point(use, m, 7, i[1]));
    return saturated(shifted, dtype);
  });
}

// --- Col2Im: blocks, a column each, added up to the image they were cut from ---
struct Blocks {
  Shape image, block, strides, dilations, before, count;  // one number an image dimension
};
Result<Blocks> blocks_of(const Use& use) {
  Blocks b;
  ASSIGN_OR_RETURN(b.image, use.integers(1));
  ASSIGN_OR_RETURN(b.block, use.integers(2));
  const size_t rank = b.image.size();
  const Shape ones(rank, 1), pads = use.integers("pads", Shape(2 * rank, 0));
  b.strides = use.integers("strides", ones);
  b.dilations = use.integers("dilations", ones);
  if (rank < 1 || b.block.size() != rank || b.strides.size() != rank || b.dilations.size() != rank ||
      pads.size() != 2 * rank)
    return invalid_argument("image_shape, block_shape, strides, dilations or pads do not have ", rank,
                            " dimensions");
  int64_t elements = 1, blocks = 1;
  for (size_t d = 0; d < rank; ++d) {
    constexpr int64_t kMost = int64_t{1} << 20;
    for (const int64_t x :
         {b.image[d] - 1, b.block[d] - 1, b.strides[d] - 1, b.dilations[d] - 1, pads[d], pads[d + rank]})
      if (x < 0 || x > kMost)
        return invalid_argument("image_shape, block_shape, strides, dilations or pads hold a wrong number");
    const int64_t room = b.image[d] + pads[d] + pads[d + rank] - (b.block[d] - 1) * b.dilations[d] - 1;
    if (room < 0) return invalid_argument("a block larger than the image in dimension ", d);
    b.before.push_back(pads[d]);
    b.count.push_back(room / b.strides[d] + 1);
    elements = std::min(elements, kMost) * b.block[d];
    blocks = std::min(blocks, kMost) * b.count[d];
  }
  if (use.rank(0) != 3 || use.shape(0)[1] % elements != 0 || use.shape(0)[2] != blocks)
    return invalid_argument("blocks are ", to_text(use.type(0)), ", expected [N, C * ", elements, ", ",
                            blocks, "]");
  return b;
}
Result<std::vector<TensorType>> col2im_types(const Use& use) {
  ASSIGN_OR_RETURN(const Blocks b, blocks_of(use));
  Shape shape{use.shape(0)[0], use.shape(0)[1] / elements_of(b.block)};
  shape.insert(shape.end(), b.image.begin(), b.image.end());
  return one({use.dtype(0), shape});
}
void col2im(const Use& use, MathWriter& m) {
  const Blocks b = *blocks_of(use);
  m.reduced_result(b.block, ReduceOp::kSum, [&](const te::Indices& i, const te::Indices& r) {
    te::Indices at;
    Expr hit = bool_imm(true);
    for (size_t d = 0; d < b.block.size(); ++d) {
      const Expr far = i[d + 2] + Expr(b.before[d]) - r[d] * Expr(b.dilations[d]), stride(b.strides[d]);
      at.push_back(floor_div(far, stride));
      hit = hit && far >= Expr(0) && at.back() < Expr(b.count[d]);
      if (b.strides[d] > 1) hit = hit && equals(floor_mod(far, stride), Expr(0));
    }
    const Expr row = i[1] * Expr(elements_of(b.block)) + flat_index(r, b.block);
    return select(hit, load(m.in(0), {i[0], row, flat_index(at, b.count)}), number(use.dtype(0), 0));
  });
}

constexpr auto kKind = OperatorKind::kProduct;
constexpr Operator kRows[] = {
    {"Col2Im", OperatorKind::kReduction, 3, 3, 1, col2im_types, col2im},
    {"Conv", kKind, 2, 3, 1, conv_types, conv},
    {"ConvTranspose", kKind, 2, 3, 1, conv_transpose_types, conv_transpose},
    {"ConvInteger", kKind, 2, 4, 1, conv_integer_types, conv_integer},
    {"QLinearConv", kKind, 8, 9, 1, qlinear_conv_types, qlinear_conv},
};

}  // namespace
}  // namespace convolution_ops

std::span<const Operator> convolution_operators() { return convolution_ops::kRows; }

}  // namespace tuner::graph
