// What products (matmul, conv2d) share: their types, and what follows their sum.
//
// `dtype` is the type of b (the weights); sums are wider:
//
//   dtype      a (data)               b (weight)   sums, bias, and out unless said   out_dtype may also be
//   float32    float32                float32      float32
//   bfloat16   bfloat16               bfloat16     float32: products are exact       bfloat16
//   float16    float16                float16      float32: products are exact       float16
//   int8       uint8 (activations)    int8         int32: exact; at most 2^16        uint8, int8
//                                                  terms, so that none overflows
//
// With `allow_tf32` numbers of float32 may lose their last 13 bits before they are multiplied, to 10 bits
// behind the leading one, which is what tensor cores take. It is a permission: a template that does not use
// it serves the task as well.
//
// residual has the type of out. With `accumulate` it lies on out: out holds it before the call, and the sum
// after it,
//
//   out = act(sum + bias + old content of out)
//
// which is out += a * b where there is no activation. To bfloat16 and float16 the value is rounded at the
// end, to the nearest, ties to even. To uint8 and int8 it is requantised, by two operands more, scale
// (float32, one a channel) and zero_point (one number of out's type):
//
//   out = saturate(round(act(float32(sum + bias[c]) * scale[c])) + zero_point)
//
// in float32, rounded to the nearest integer, ties to even; the integer then goes to the nearest that out
// holds, not a number to the lowest. Those are the steps of ONNX's QLinearMatMul and QLinearConv, with scale
// = (scale of a) * (scale of b) / (scale of out) and their relu before the rounding. A zero point of a is the
// caller's to fold into bias: bias[c] - (zero point of a) * (sum of b's column c); a convolution that pads
// needs 0 there. A residual is a number of 8 bits then, too, with two operands of its own, residual_scale
// (float32, one number) and residual_zero_point (one number of out's type):
//
//   out = saturate(round(act(float32(sum + bias[c]) * scale[c]
//                            + residual_scale * float32(residual - residual_zero_point))) + zero_point)
//
// where both products are rounded before they are added.
// Such a residual lies apart, never on out. Of the activations relu and clip then can be had, the numbers of
// clip in steps of out; int32 has relu alone.
//
// Where out is not of 8 bits and sums are of floats, `scale` multiplies by one number (float32) a channel,
// and `post` says in which order the parts come that there are, if not in the usual one:
//
//   out = act((sum + bias) * scale + residual)      usual
//   out = act(sum * scale + bias)                   post = {kScale, kBias, kActivation}
//   out = act(sum + bias) + residual                post = {kBias, kActivation, kResidual}: YOLO's skips
//
// Of a bias and a residual beside each other the bias is named first: one key for one meaning.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/dtype.h"
#include "compiler_core/base/status.h"
#include "templates/workload/parts/activation.h"
#include "templates/workload/parts/epilogue_part.h"

namespace tuner {

class WorkloadFields;
struct Tolerance;

DType sum_dtype(DType dtype);
std::span<const DType> out_dtypes(DType dtype);  // what out may be; that of the sums first
DType left_dtype(DType dtype);                   // of a, of data

// The fields that all products have, by the same names. Each of their workloads has them as members, beside
// its own.
struct ProductFields {
  bool bias = false, scale = false, residual = false, accumulate = false;
  std::vector<EpiloguePart> post;
  Activation activation;
  DType dtype = DType::kFloat32;
  bool allow_tf32 = false;
  std::optional<DType> narrow_out;
  std::vector<std::string> constant;

  DType out_dtype() const { return narrow_out.value_or(sum_dtype(dtype)); }
};
template <class Product>
ProductFields product_fields(const Product& w) {
  return {w.bias,       w.scale, w.residual,   w.accumulate, w.post,
          w.activation, w.dtype, w.allow_tf32, w.narrow_out, w.constant};
}
template <class Product>
void set_product_fields(Product& w, const ProductFields& p) {
  w.bias = p.bias, w.scale = p.scale, w.residual = p.residual, w.accumulate = p.accumulate;
  w.post = p.post, w.activation = p.activation;
  w.dtype = p.dtype, w.allow_tf32 = p.allow_tf32, w.narrow_out = p.narrow_out;
  w.constant = p.constant;
}

// True if a product's sums are scaled into 8 bits.
template <class Product>
bool requantises(const Product& w) {
  return w.dtype == DType::kInt8 && w.out_dtype() != DType::kInt32;
}

// Returns the parts of its epilogue, in their order.
std::vector<EpiloguePart> epilogue_parts(const ProductFields& p);
template <class Product>
std::vector<EpiloguePart> epilogue_parts(const Product& w) {
  return epilogue_parts(product_fields(w));
}
// Returns what `post` says for parts, which must be those there are, in this order.
std::vector<EpiloguePart> post_of(std::vector<EpiloguePart> parts);
template <class Product>
void set_order(Product& w, std::vector<EpiloguePart> parts) {
  w.post = post_of(std::move(parts));
}
// True where the order is the usual one but for the residual, which is last: what `residual=last` of a key
// says.
bool adds_residual_last(const ProductFields& p);
template <class Product>
bool adds_residual_last(const Product& w) {
  return adds_residual_last(product_fields(w));
}

// --- for the operators ---

// Their fields, in two parts, since a layout stands between the two in a key. `operands` are those that may
// be constant, in alphabetical order; bias is one where there is one.
void describe_epilogue_and_types(ProductFields& p, WorkloadFields& fields);
void describe_constants(ProductFields& p, std::initializer_list<std::string_view> operands,
                        WorkloadFields& fields);
// What types and epilogue may be; `terms_name` says what of the shape the terms of a sum are.
Status check_product(const ProductFields& p, std::string_view terms_name, int64_t terms);

Tolerance product_tolerance(const ProductFields& p, int64_t terms);
// Scales of products that are requantised are drawn 2^-12 of others: a sum of n products of drawn bytes is
// about 11,000 * sqrt(n). Results then spread over what 8 bits hold, for n from 1 to 2^16, in place of being
// 0 or saturated all of them.
float product_drawn_factor(const ProductFields& p, std::string_view operand);

// For TaskShape::variant. What tf32 allows is another space: other templates serve the task. A packed bias
// makes no difference to a schedule.
std::string types_text(const ProductFields& p);
std::string packed_text(const ProductFields& p);

}  // namespace tuner
