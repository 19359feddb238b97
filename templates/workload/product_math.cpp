// The math of products: matmul and conv2d.
#include <algorithm>

#include "compiler_core/base/int_math.h"
#include "compiler_core/ir/intrinsic.h"
#include "templates/workload/workload_math.h"

namespace tuner {
namespace {

using te::Indices;

// Inputs and constants are declared alike; only the role differs.
Buffer operand(te::Builder& b, const std::vector<std::string>& constants, const std::string& name,
               std::vector<int64_t> shape, std::optional<DType> dtype = {}) {
  const bool constant = std::find(constants.begin(), constants.end(), name) != constants.end();
  return constant ? b.constant(name, std::move(shape), dtype) : b.input(name, std::move(shape), dtype);
}

// Names of the dimensions of an image; those of a blocked one end with the channel in its block.
std::vector<std::string> axis_names(std::string_view layout, std::vector<std::string> names) {
  if (is_channels_last(layout)) return {names[0], names[2], names[3], names[1]};
  if (channel_block(layout) > 1) names.push_back(names[1] + "b");
  return names;
}

// Returns x behind one part.
Expr behind(EpiloguePart part, const Epilogue& e, Expr x, const Expr& channel, const Indices& at) {
  switch (part) {
    case EpiloguePart::kBias:
      return std::move(x) + load(e.bias, {channel});
    case EpiloguePart::kScale:
      return std::move(x) * load(e.scale, {channel});
    case EpiloguePart::kResidual:
      return x + cast(x->dtype, load(e.residual, at));
    case EpiloguePart::kActivation:
      return activated(e.activation, std::move(x));
  }
  return x;
}

}  // namespace

Expr zero_of(DType dtype) { return is_float(dtype) ? float_imm(0, dtype) : int_imm(0, dtype); }

template <class Product>
Buffer declare_residual(te::Builder& b, const Product& w, const std::vector<int64_t>& out_shape) {
  if (w.accumulate) return b.in_out("out", out_shape, w.out_dtype());
  return w.residual ? b.input("residual", out_shape, w.out_dtype()) : nullptr;
}
template Buffer declare_residual(te::Builder&, const MatmulWorkload&, const std::vector<int64_t>&);
template Buffer declare_residual(te::Builder&, const Conv2dWorkload&, const std::vector<int64_t>&);

template <class Product>
Epilogue declare_epilogue(te::Builder& b, const Product& w, int64_t channels,
                          const std::vector<int64_t>& out_shape) {
  Epilogue e{.activation = w.activation, .parts = epilogue_parts(w), .out = w.out_dtype()};
  if (w.bias) e.bias = operand(b, w.constant, "bias", {channels}, sum_dtype(w.dtype));
  e.residual = declare_residual(b, w, out_shape);
  if (w.scale || requantises(w)) e.scale = b.input("scale", {channels}, DType::kFloat32);
  if (!requantises(w)) return e;
  e.zero_point = b.input("zero_point", {1}, e.out);
  if (!w.residual) return e;
  e.residual_scale = b.input("residual_scale", {1}, DType::kFloat32);
  e.residual_zero_point = b.input("residual_zero_point", {1}, e.out);
  return e;
}
template Epilogue declare_epilogue(te::Builder&, const MatmulWorkload&, int64_t, const std::vector<int64_t>&);
template Epilogue declare_epilogue(te::Builder&, const Conv2dWorkload&, int64_t, const std::vector<int64_t>&);

Epilogue declare_unpacked_epilogue(te::Builder& b, Conv2dWorkload w) {
  w.constant.clear();
  return declare_epilogue(b, w, w.out_channels,
                          image_shape(w.out_layout, w.batch, w.out_channels, w.out_height(), w.out_width()));
}

Expr finished(const Epilogue& e, Expr sum, const Expr& channel, const Indices& at) {
  Expr x = std::move(sum);
  if (!e.zero_point) {
    for (const EpiloguePart part : e.parts) x = behind(part, e, std::move(x), channel, at);
    return cast(e.out, std::move(x));
  }
  if (e.bias) x = x + load(e.bias, {channel});
  x = cast(DType::kFloat32, x) * load(e.scale, {channel});
  // Taken away with its sign turned, which is the same number: a product that is added is fused with the addition on
  // CPUs that can, and the last bit would depend on the CPU.
  if (e.residual)
    x = x - load(e.residual_scale, {0}) *
                cast(DType::kFloat32, cast(DType::kInt32, load(e.residual_zero_point, {0})) -
                                          cast(DType::kInt32, load(e.residual, at)));
  // Saturated before it is rounded: the bounds are integers, and every number then is one of int32. A NaN becomes the
  // lower bound.
  x = activated(e.activation, std::move(x));
  const Expr zero_point = cast(DType::kInt32, load(e.zero_point, {0}));
  const auto bound = [&](int64_t value) {
    return cast(DType::kFloat32, int_imm(value, DType::kInt32) - zero_point);
  };
  const int64_t low = e.out == DType::kInt8 ? -128 : 0;
  x = min(at_least(x, bound(low)), bound(low + 255));
  return cast(e.out, cast(DType::kInt32, unary(UnaryOp::kRound, x)) + zero_point);
}

namespace {

// How a product is computed: of a widened apart, or of `tf32_terms` products of tf32 numbers (0: as it stands).
struct MatmulForm {
  bool with_wide = false;
  int tf32_terms = 0;
};

// A batch of one has no axis of its own.
Program matmul_math(const MatmulWorkload& w, const MatmulForm& form) {
  const DType sums = sum_dtype(w.dtype);
  te::Builder b("matmul", sums);
  const size_t d = w.batch > 1 ? 1 : 0;  // position of the row axis
  const auto shape = [&](int64_t rows, int64_t columns) {
    return d == 1 ? std::vector<int64_t>{w.batch, rows, columns} : std::vector<int64_t>{rows, columns};
  };
  const auto at = [&](const Indices& i, const Expr& row, const Expr& column) {
    return d == 1 ? Indices{i[0], row, column} : Indices{row, column};
  };
  Buffer lhs =
      operand(b, w.constant, "a", w.transpose_a ? shape(w.k, w.m) : shape(w.m, w.k), left_dtype(w.dtype));
  const Buffer rhs = operand(b, w.constant, "b", w.transpose_b ? shape(w.n, w.k) : shape(w.k, w.n), w.dtype);
  const Epilogue epilogue = declare_epilogue(b, w, w.n, shape(w.m, w.n));
  if (form.with_wide)
    lhs = b.compute("wide", lhs->shape, [&](const Indices& i) { return cast(sums, load(lhs, i)); });
  std::vector<std::string> names = {"i", "j"};
  if (d == 1) names.insert(names.begin(), "b");
  const Buffer acc = b.reduce(
      "acc", shape(w.m, w.n), {{"k", w.k}}, ReduceOp::kSum,
      [&](const Indices& i, const Indices& r) {
        const Expr x = cast(sums, load(lhs, w.transpose_a ? at(i, r[0], i[d]) : at(i, i[d], r[0])));
        const Expr y = cast(sums, load(rhs, w.transpose_b ? at(i, i[d + 1], r[0]) : at(i, r[0], i[d + 1])));
        return form.tf32_terms > 0 ? tf32_product(x, y, form.tf32_terms) : x * y;
      },
      BufferRole::kIntermediate, names);
  b.compute(
      "out", shape(w.m, w.n), [&](const Indices& i) { return finished(epilogue, load(acc, i), i[d + 1], i); },
      BufferRole::kOutput, names);
  return b.finish();
}

}  // namespace

Program math_of(const MatmulWorkload& w) { return matmul_math(w, {}); }
Program matmul_of_wide(const MatmulWorkload& w) { return matmul_math(w, {.with_wide = true}); }
Program matmul_of_tf32(const MatmulWorkload& w, int terms) { return matmul_math(w, {.tf32_terms = terms}); }

Program math_of(const Conv2dWorkload& w) { return conv2d_of_filled(w, 1); }

Program conv2d_of_filled(const Conv2dWorkload& w, int64_t multiple) {
  const DType sums = sum_dtype(w.dtype);
  te::Builder b("conv2d", sums);
  const int64_t top = w.padding[0], left = w.padding[1], bottom = w.padding[2], right = w.padding[3];
  const bool fills = w.groups == 1 && w.in_channels % multiple != 0;
  const int64_t in_channels = fills ? round_up(w.in_channels, multiple) : w.in_channels;
  const int64_t ic_group = in_channels / w.groups, oc_group = w.out_channels / w.groups;
  Buffer data =
      operand(b, w.constant, "data", image_shape(w.layout, w.batch, w.in_channels, w.in_height, w.in_width),
              left_dtype(w.dtype));
  Buffer weight =
      operand(b, w.constant, "weight",
              {w.out_channels, w.in_channels / w.groups, w.kernel_height, w.kernel_width}, w.dtype);
  const std::vector<int64_t> out_shape =
      image_shape(w.out_layout, w.batch, w.out_channels, w.out_height(), w.out_width());
  const Epilogue epilogue = declare_epilogue(b, w, w.out_channels, out_shape);
  const auto filled = [&](const std::string& name, const Buffer& of) {
    std::vector<int64_t> shape = of->shape;
    shape[1] = in_channels;
    return b.compute(name, shape, [&](const Indices& i) {
      return select(i[1] < w.in_channels, load(of, i), zero_of(of->dtype));
    });
  };
  if (fills) {
    data = filled("filled", data);
    weight = filled("filled_weight", weight);
  }
  if (top + left + bottom + right > 0) {
    const Buffer plain = data;
    data = b.compute(
        "padded",
        image_shape(w.layout, w.batch, in_channels, w.in_height + top + bottom, w.in_width + left + right),
        [&](const Indices& i) {
          Expr inside;  // only the sides that are padded are asked about
          const auto narrow = [&](const Expr& condition) {
            inside = inside.defined() ? inside && condition : condition;
          };
          const size_t row = is_channels_last(w.layout) ? 1 : 2, column = row + 1;
          if (top > 0) narrow(i[row] >= top);
          if (bottom > 0) narrow(i[row] < top + w.in_height);
          if (left > 0) narrow(i[column] >= left);
          if (right > 0) narrow(i[column] < left + w.in_width);
          Indices from = i;
          from[row] = from[row] - top;
          from[column] = from[column] - left;
          return select(inside, load(plain, std::move(from)), zero_of(plain->dtype));
        },
        BufferRole::kIntermediate, axis_names(w.layout, {"n", "ic", "ph", "pw"}));
  }
  // Channels innermost: a register tile of it then is vectors of channels.
  const Buffer acc =
      b.reduce("acc", {w.batch, w.out_height(), w.out_width(), w.out_channels},
               {{"ic", ic_group}, {"kh", w.kernel_height}, {"kw", w.kernel_width}}, ReduceOp::kSum,
               [&](const Indices& i, const Indices& r) {
                 const Expr ic = w.groups == 1 ? r[0] : floor_div(i[3], oc_group) * ic_group + r[0];
                 const Indices at = image_index(w.layout, i[0], ic, i[1] * w.stride[0] + r[1] * w.dilation[0],
                                                i[2] * w.stride[1] + r[2] * w.dilation[1]);
                 return cast(sums, load(data, at)) * cast(sums, load(weight, {i[3], r[0], r[1], r[2]}));
               },
               BufferRole::kIntermediate, {"n", "oh", "ow", "oc"});
  b.compute(
      "out", out_shape,
      [&](const Indices& i) {
        const ImagePlace at = image_place(w.out_layout, i);
        return finished(epilogue, load(acc, {at.n, at.h, at.w, at.c}), at.c, i);
      },
      BufferRole::kOutput, axis_names(w.out_layout, {"n", "oc", "oh", "ow"}));
  return b.finish();
}

}  // namespace tuner
