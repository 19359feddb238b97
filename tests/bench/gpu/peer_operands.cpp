#include "tests/bench/gpu/peer_operands.h"

#include "compiler_core/base/elements.h"

namespace tuner {
namespace {

Address address_of(const DeviceCase& ours, const char* arg) {
  return [&ours, arg](int set) { return ours.address(set, arg); };
}

// Copies of an operand on the device.
Result<Address> uploaded(const DeviceCase& ours, const std::vector<float>& values, DType type) {
  ASSIGN_OR_RETURN(const auto own, ours.upload_own(element_bytes(values, type)));
  return Address([own](int set) { return own->address(set); });
}

// `matrices` of [rows, columns] as [columns, rows].
std::vector<float> transposed(const std::vector<double>& from, int64_t matrices, int64_t rows,
                              int64_t columns) {
  std::vector<float> to(from.size());
  for (int64_t m = 0; m < matrices; ++m)
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        to[static_cast<size_t>((m * columns + c) * rows + r)] =
            static_cast<float>(from[static_cast<size_t>((m * rows + r) * columns + c)]);
  return to;
}

float rounded(double x, DType type) {
  const auto nearest = static_cast<float>(x);
  return type == DType::kBFloat16  ? rounded_to_bfloat16(nearest)
         : type == DType::kFloat16 ? rounded_to_float16(nearest)
                                   : nearest;
}

// The bias with elements of the type, and by how much rounding made each of them more.
Result<Address> bias_of(const DeviceCase& ours, DType type, PeerAnswer& answer) {
  if (type == DType::kFloat32 || type == DType::kInt32) return address_of(ours, "bias");
  ASSIGN_OR_RETURN(const std::vector<double> bias, ours.values_of("bias"));
  std::vector<float> narrow;
  for (const double x : bias) {
    narrow.push_back(rounded(x, type));
    answer.bias_errors.push_back(narrow.back() - x);
  }
  return uploaded(ours, narrow, type);
}

}  // namespace

Result<ProductOperands> product_operands(const DeviceCase& ours, const MatmulWorkload& w) {
  ProductOperands o{.a = address_of(ours, "a"), .b = address_of(ours, "b"), .out = address_of(ours, "out")};
  if (w.residual) o.residual = address_of(ours, "residual");
  if (w.bias) {
    ASSIGN_OR_RETURN(o.bias, bias_of(ours, w.out_dtype(), o.answer));
  }
  return o;
}

Result<ProductOperands> byte_operands(const DeviceCase& ours, const MatmulWorkload& w) {
  ProductOperands o{.out = address_of(ours, "out")};
  ASSIGN_OR_RETURN(std::vector<double> left, ours.values_of("a"));
  for (double& x : left) x -= 128;
  const std::vector<float> rows =
      w.transpose_a ? transposed(left, w.batch, w.k, w.m) : std::vector<float>(left.begin(), left.end());
  ASSIGN_OR_RETURN(const std::vector<double> right, ours.values_of("b"));
  const std::vector<float> columns =
      w.transpose_b ? std::vector<float>(right.begin(), right.end()) : transposed(right, w.batch, w.k, w.n);
  ASSIGN_OR_RETURN(o.a, uploaded(ours, rows, DType::kInt8));
  ASSIGN_OR_RETURN(o.b, uploaded(ours, columns, DType::kInt8));
  o.answer.column_terms.assign(static_cast<size_t>(w.batch * w.n), 0);
  for (size_t i = 0; i < columns.size(); ++i)
    o.answer.column_terms[i / static_cast<size_t>(w.k)] += 128.0 * columns[i];
  return o;
}

Result<ProductOperands> pixel_operands(const DeviceCase& ours, const Conv2dWorkload& w) {
  ASSIGN_OR_RETURN(ConvolutionOperands c,
                   convolution_operands(ours, w, /*channels_last=*/true, w.out_dtype()));
  return ProductOperands{.a = std::move(c.data),
                         .b = std::move(c.weight),
                         .out = std::move(c.out),
                         .bias = std::move(c.bias),
                         .residual = std::move(c.residual),
                         .answer = std::move(c.answer)};
}

Result<ConvolutionOperands> convolution_operands(const DeviceCase& ours, const Conv2dWorkload& w,
                                                 bool channels_last, DType bias) {
  ConvolutionOperands o{
      .data = address_of(ours, "data"), .weight = address_of(ours, "weight"), .out = address_of(ours, "out")};
  const bool turns = channels_last && w.layout != "NHWC";
  CHECK(!turns || !w.residual) << "a residual that lies otherwise";
  const int64_t taps = w.kernel_height * w.kernel_width, channels = w.in_channels / w.groups;
  if (channels_last && taps > 1 && channels > 1) {
    ASSIGN_OR_RETURN(const std::vector<double> weight, ours.values_of("weight"));
    ASSIGN_OR_RETURN(o.weight, uploaded(ours, transposed(weight, w.out_channels, channels, taps), w.dtype));
  }
  if (turns) {
    ASSIGN_OR_RETURN(const std::vector<double> data, ours.values_of("data"));
    ASSIGN_OR_RETURN(
        o.data, uploaded(ours, transposed(data, w.batch, w.in_channels, w.in_height * w.in_width), w.dtype));
    o.answer.channels_last = true;
  }
  if (w.residual) o.residual = address_of(ours, "residual");
  if (w.bias) {
    ASSIGN_OR_RETURN(o.bias, bias_of(ours, bias, o.answer));
  }
  return o;
}

}  // namespace tuner
