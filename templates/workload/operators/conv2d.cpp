#include "templates/workload/operators/conv2d.h"

#include <algorithm>

#include "compiler_core/base/int_math.h"
#include "templates/workload/parts/checks.h"
#include "templates/workload/parts/operator.h"
#include "templates/workload/parts/product_math.h"

namespace tuner {
namespace {

using te::Indices;

// Names of the dimensions of an image; those of a blocked one end with the channel in its block.
std::vector<std::string> axis_names(std::string_view layout, std::vector<std::string> names) {
  if (is_channels_last(layout)) return {names[0], names[2], names[3], names[1]};
  if (channel_block(layout) > 1) names.push_back(names[1] + "b");
  return names;
}

// Returns the stage that has the image with its padding around it.
Buffer padded_image(te::Builder& b, const Conv2dWorkload& w, int64_t in_channels, const Buffer& plain) {
  const auto [top, left, bottom, right] = w.padding;
  return b.compute(
      "padded",
      image_shape(w.layout, w.batch, in_channels, w.in_height + top + bottom, w.in_width + left + right),
      [&, top = top, left = left, bottom = bottom, right = right](const Indices& i) {
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

ImageWindow rows_of(const Conv2dWorkload& w) {
  return {w.in_height, w.out_height(), w.kernel_height, w.stride[0], w.dilation[0], w.padding[0]};
}
ImageWindow columns_of(const Conv2dWorkload& w) {
  return {w.in_width, w.out_width(), w.kernel_width, w.stride[1], w.dilation[1], w.padding[1]};
}

// What a job file must have equal: the channels of a group. `of_group` is what weight says.
void read_groups(Conv2dWorkload& w, int64_t of_group, WorkloadFields& f) {
  f.extent({.word = "groups"}, w.groups);
  if (w.in_channels % w.groups != 0)
    f.refuse("groups",
             str("expected a divisor of the ", w.in_channels, " channels of data, found ", w.groups, "."));
  else if (w.out_channels % w.groups != 0)
    f.refuse("groups", str("expected a divisor of the ", w.out_channels, " output channels of weight, found ",
                           w.groups, "."));
  else if (of_group != w.in_channels / w.groups)
    f.refuse("weight",
             str("expected ", w.in_channels / w.groups, " channels (those of data over ", w.groups,
                 w.groups == 1 ? " group" : " groups", "), found ", of_group,
                 ". Order is [output channels, channels of a group, kernel height, kernel width]."));
}

// The padded image has room for the dilated kernel.
Status check_kernel(const Conv2dWorkload& w, int64_t height, int64_t width) {
  const int64_t tall = w.dilation[0] * (w.kernel_height - 1) + 1,
                wide = w.dilation[1] * (w.kernel_width - 1) + 1;
  if (height < tall)
    return invalid_argument("data[2] (height): ", height, " with padding, expected at least ", tall,
                            " for a kernel of ", w.kernel_height, " rows at dilation ", w.dilation[0]);
  if (width < wide)
    return invalid_argument("data[3] (width): ", width, " with padding, expected at least ", wide,
                            " for a kernel of ", w.kernel_width, " columns at dilation ", w.dilation[1]);
  return Status::ok();
}

class Conv2dFacts final : public OperatorFacts<Conv2dWorkload> {
 public:
  void describe(Conv2dWorkload& w, WorkloadFields& f) const override {
    f.shape({.json = "data", .order = "[batch, channels, height, width]"},
            {{"n", "data[0] (batch)", w.batch},
             {"ic", "data[1] (channels)", w.in_channels},
             {"ih", "data[2] (height)", w.in_height},
             {"iw", "data[3] (width)", w.in_width}});
    int64_t of_group = w.groups > 0 ? w.in_channels / w.groups : 1;
    f.shape(
        {.json = "weight", .order = "[output channels, channels of a group, kernel height, kernel width]"},
        {{"oc", "weight[0] (output channels)", w.out_channels},
         {"", "", of_group},
         {"kh", "weight[2] (kernel height)", w.kernel_height},
         {"kw", "weight[3] (kernel width)", w.kernel_width}});
    if (f.reads_shapes()) read_groups(w, of_group, f);
    f.pair({.word = "stride"}, w.stride);
    f.sides({.word = "pad", .json = "padding"}, w.padding);
    f.pair({.word = "dil", .json = "dilation"}, w.dilation);
    f.extent({.word = "groups"}, w.groups);
    ProductFields p = product_fields(w);
    describe_epilogue_and_types(p, f);
    f.layout({.word = "layout"}, w.layout, "NCHW");
    f.layout({.word = "out_layout", .may_lack = true}, w.out_layout, w.layout);
    describe_constants(p, {"data", "weight"}, f);
    set_product_fields(w, p);
  }

  Status check(const Conv2dWorkload& w) const override {
    if (w.in_channels % w.groups != 0)
      return invalid_argument("groups: expected a divisor of the ", w.in_channels, " input channels, found ",
                              w.groups);
    if (w.out_channels % w.groups != 0)
      return invalid_argument("groups: expected a divisor of the ", w.out_channels,
                              " output channels, found ", w.groups);
    const int64_t height = w.in_height + w.padding[0] + w.padding[2],
                  width = w.in_width + w.padding[1] + w.padding[3], of_group = w.in_channels / w.groups;
    RETURN_IF_ERROR(check_kernel(w, height, width));
    RETURN_IF_ERROR(check_layout("layout", w.layout, " input", w.in_channels));
    RETURN_IF_ERROR(check_layout("out_layout", w.out_layout, " output", w.out_channels));
    RETURN_IF_ERROR(shape_fits("data", {w.batch, w.in_channels, height, width}, left_dtype(w.dtype)));
    RETURN_IF_ERROR(
        shape_fits("weight", {w.out_channels, of_group, w.kernel_height, w.kernel_width}, w.dtype));
    RETURN_IF_ERROR(
        shape_fits("out", {w.batch, w.out_channels, w.out_height(), w.out_width()}, w.out_dtype()));
    RETURN_IF_ERROR(countable(
        {w.batch, w.out_channels, w.out_height(), w.out_width(), of_group, w.kernel_height, w.kernel_width}));
    return check_product(product_fields(w), "terms of a sum", terms(w));
  }

  Program math(const Conv2dWorkload& w) const override { return conv2d_of_filled(w, 1); }
  Tolerance tolerance(const Conv2dWorkload& w) const override {
    return product_tolerance(product_fields(w), terms(w));
  }
  float drawn_factor(const Conv2dWorkload& w, std::string_view operand) const override {
    return product_drawn_factor(product_fields(w), operand);
  }

  int64_t flops(const Conv2dWorkload& w) const override {
    return 2 * w.batch * w.out_channels * w.out_height() * w.out_width() * (w.in_channels / w.groups) *
           w.kernel_height * w.kernel_width;
  }
  // Products of padding may be passed over.
  int64_t needed_flops(const Conv2dWorkload& w) const override {
    return 2 * w.batch * w.out_channels * (w.in_channels / w.groups) * pairs_inside(rows_of(w)) *
           pairs_inside(columns_of(w));
  }
  // One multiply-add per output with an element of the image, and channel that it reads.
  double least_operations(const Conv2dWorkload& w) const override {
    double n = 2;
    for (const int64_t factor : {w.batch, w.out_channels, outputs_inside(rows_of(w)),
                                 outputs_inside(columns_of(w)), w.in_channels / w.groups})
      n *= static_cast<double>(factor);
    return n;
  }
  // Windows may leave out elements of the image, but every output is written.
  double least_bytes(const Conv2dWorkload& w) const override {
    double n = dtype_bytes(w.dtype);
    for (const int64_t factor : {w.batch, w.out_channels, w.out_height(), w.out_width()})
      n *= static_cast<double>(factor);
    return n;
  }

  TaskShape shape(const Conv2dWorkload& w) const override {
    const ProductFields p = product_fields(w);
    return {str(w.kOp, types_text(p), " layout=", w.layout, " out_layout=", w.out_layout, packed_text(p)),
            {{"n", w.batch},
             {"oc", w.out_channels},
             {"oh", w.out_height()},
             {"ow", w.out_width()},
             {"ic", w.in_channels / w.groups},
             {"kh", w.kernel_height},
             {"kw", w.kernel_width},
             {"sh", w.stride[0]},
             {"sw", w.stride[1]},
             {"dh", w.dilation[0]},
             {"dw", w.dilation[1]},
             {"groups", w.groups},
             {"pad", 1 + *std::ranges::max_element(w.padding)}}};
  }
  std::string shape_name(const Conv2dWorkload& w) const override {
    return str(w.batch, "x", w.in_channels, "x", w.in_height, "x", w.in_width, "_", w.out_channels, "x",
               w.kernel_height, "x", w.kernel_width);
  }

 private:
  static int64_t terms(const Conv2dWorkload& w) {
    return w.in_channels / w.groups * w.kernel_height * w.kernel_width;
  }
};

}  // namespace

const OperatorFacts<Conv2dWorkload>& Conv2dWorkload::facts() {
  static const Conv2dFacts facts;
  return facts;
}

Epilogue declare_unpacked_epilogue(te::Builder& b, Conv2dWorkload w) {
  w.constant.clear();
  return declare_epilogue(b, w, w.out_channels,
                          image_shape(w.out_layout, w.batch, w.out_channels, w.out_height(), w.out_width()));
}

Program conv2d_of_filled(const Conv2dWorkload& w, int64_t multiple) {
  const DType sums = sum_dtype(w.dtype);
  te::Builder b("conv2d", sums);
  const bool fills = w.groups == 1 && w.in_channels % multiple != 0;
  const int64_t in_channels = fills ? round_up(w.in_channels, multiple) : w.in_channels;
  const int64_t ic_group = in_channels / w.groups, oc_group = w.out_channels / w.groups;
  Buffer data = declare_operand(b, w.constant, "data",
                                image_shape(w.layout, w.batch, w.in_channels, w.in_height, w.in_width),
                                left_dtype(w.dtype));
  Buffer weight =
      declare_operand(b, w.constant, "weight",
                      {w.out_channels, w.in_channels / w.groups, w.kernel_height, w.kernel_width}, w.dtype);
  const std::vector<int64_t> out_shape =
      image_shape(w.out_layout, w.batch, w.out_channels, w.out_height(), w.out_width());
  const Epilogue epilogue = declare_epilogue(b, w, w.out_channels, out_shape);
  const auto filled = [&](const std::string& name, const Buffer& of, size_t channel) {
    std::vector<int64_t> shape = of->shape;
    shape[channel] = in_channels;
    return b.compute(name, shape, [&](const Indices& i) {
      return select(i[channel] < w.in_channels, load(of, i), zero_of(of->dtype));
    });
  };
  if (fills) {
    data = filled("filled", data, is_channels_last(w.layout) ? 3 : 1);
    weight = filled("filled_weight", weight, 1);
  }
  if (w.padding != std::array<int64_t, 4>{}) data = padded_image(b, w, in_channels, data);
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
