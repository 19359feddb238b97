#include "templates/workload/parts/product.h"

#include <cmath>

#include "templates/workload/parts/checks.h"
#include "templates/workload/parts/fields.h"
#include "templates/workload/parts/operator.h"
#include "templates/workload/parts/rounding.h"

namespace tuner {
namespace {

std::string listed(const std::vector<EpiloguePart>& parts) {
  std::string text;
  for (const EpiloguePart part : parts) text += str(text.empty() ? "" : ",", epilogue_part_name(part));
  return text.empty() ? "none" : text;
}

// What residual=last says of a product whose other fields are known.
std::vector<EpiloguePart> residual_last_order(ProductFields p) {
  p.post.clear();
  std::vector<EpiloguePart> parts = epilogue_parts(p);
  std::erase(parts, EpiloguePart::kResidual);
  parts.push_back(EpiloguePart::kResidual);
  return parts;
}

void describe_epilogue(ProductFields& p, WorkloadFields& f) {
  f.flag({.word = "bias"}, p.bias);
  f.flag({.word = "scale", .may_lack = true}, p.scale);
  ResidualPlace residual = !p.residual             ? ResidualPlace::kNone
                           : adds_residual_last(p) ? ResidualPlace::kLast
                                                   : ResidualPlace::kUsual;
  f.residual({.word = "residual", .may_lack = true}, residual);
  p.residual = residual != ResidualPlace::kNone;
  f.flag({.word = "accumulate", .may_lack = true}, p.accumulate);
  if (p.residual && p.accumulate)
    f.refuse(
        "accumulate",
        "expected one of residual and accumulate, found both: with accumulate the residual lies on out.");
  f.activation({.word = "act", .json = "activation"}, p.activation);
  const bool last = residual == ResidualPlace::kLast;
  std::vector<EpiloguePart> post = last ? std::vector<EpiloguePart>() : p.post;
  // A key with residual=last has no such word; a job file is told so.
  if (!last || f.reads_shapes()) f.order({.word = "post", .may_lack = true}, post);
  if (last && p.activation == Activation::kNone)
    f.refuse("residual", R"(expected "last" only with an activation, which it follows.)");
  else if (last && !post.empty())
    f.refuse("post", R"(expected none with "residual": "last", which says the order.)");
  p.post = last ? residual_last_order(p) : post;
}

void describe_types(ProductFields& p, WorkloadFields& f) {
  static constexpr DType kServed[] = {DType::kFloat32, DType::kBFloat16, DType::kFloat16, DType::kInt8};
  f.type({.word = "dtype"}, p.dtype, kServed, DType::kFloat32);
  f.flag({.word = "allow_tf32", .may_lack = true}, p.allow_tf32);
  if (p.allow_tf32 && p.dtype != DType::kFloat32)
    f.refuse("allow_tf32",
             str("expected only with float32, whose products it is about, found ", p.dtype, "."));
  const DType usual = sum_dtype(p.dtype);
  DType out = p.out_dtype();
  f.type({.word = "out_dtype", .may_lack = true}, out, out_dtypes(p.dtype), usual);
  p.narrow_out = out == usual ? std::nullopt : std::optional(out);
}

// The order of the parts, where it is not the usual one.
Status check_order(const ProductFields& p) {
  if (p.post.empty()) return Status::ok();
  if (requantises(p))
    return invalid_argument("post: expected none with out_dtype ", p.out_dtype(), ", found ", listed(p.post));
  ProductFields usual = p;
  usual.post.clear();
  const std::vector<EpiloguePart> parts = epilogue_parts(usual);
  if (!std::ranges::is_permutation(parts, p.post))
    return invalid_argument("post: expected the parts there are, each once (", listed(parts), "), found ",
                            listed(p.post));
  set_order(usual, p.post);
  if (usual.post == p.post) return Status::ok();
  return invalid_argument("post: expected ",
                          usual.post.empty() ? str("none for what the usual order says, ", listed(parts))
                                             : str(listed(usual.post), ", which says the same"),
                          "; found ", listed(p.post));
}

Status check_epilogue(const ProductFields& p) {
  RETURN_IF_ERROR(check_activation_numbers(p.activation));
  const bool narrow = requantises(p);
  if (p.residual && p.accumulate)
    return invalid_argument("accumulate: expected one of residual and accumulate, found both");
  if (narrow && p.accumulate)
    return invalid_argument("accumulate: expected none with out_dtype ", p.out_dtype(),
                            ", where a residual lies apart (residual)");
  if (p.scale && p.dtype == DType::kInt8)
    return invalid_argument("scale: expected none for int8",
                            narrow ? ", which has one where out has 8 bits" : "");
  RETURN_IF_ERROR(check_order(p));
  const ActivationKind kind = p.activation.kind;
  if (p.dtype != DType::kInt8 || kind == ActivationKind::kNone || kind == ActivationKind::kRelu ||
      (narrow && kind == ActivationKind::kClip))
    return Status::ok();
  return invalid_argument("activation: expected none", narrow ? ", relu or clip" : " or relu",
                          " with out_dtype ", p.out_dtype(), ", found ", activation_text(p.activation));
}

// int8: integers do not round. Nor do answers differ where sums are requantised: that takes one conversion
// and one product of float32, which round alike everywhere, the reference included (te::with_float_type).
//
// bfloat16, float16: the product of two of their numbers is exact in float32, so that a product costs one
// rounding, that of the addition, as with a fused multiply-add of float32. Dot-product instructions round so
// too, product by product; that they flush denormal numbers is far below: products of numbers of 24 bits are
// no smaller than 2^-46. A result that is rounded to bfloat16 errs by half a last place more: 2^-8 of itself,
// with 8 bits. float16 has 11 bits, and below 2^-14 steps of 2^-24.
//
// allow_tf32: an operand loses between 0 and a step of 2^-10 (times its power of two), evenly. Over values
// that lie evenly, the square of what it loses is 1/7 of 2^-20 of its own square in the mean, and what it
// loses times itself 0.32 of 2^-10. So a product errs by a root mean square of 2^-10 * sqrt(2/7 + 2 * 0.32^2)
// = 0.70 * 2^-10 of its own, which is 1/3, and errors have the signs of products, which are even: the sum of
// n errs by 0.70 * 2^-10 * sqrt(n) / 3.
double tf32_error(int64_t terms) {
  return kDeviations * 0.70 * 0x1p-10 * std::sqrt(static_cast<double>(terms)) / 3;
}

}  // namespace

std::string_view epilogue_part_name(EpiloguePart p) {
  constexpr std::string_view kNames[] = {"bias", "scale", "residual", "activation"};
  return kNames[static_cast<size_t>(p)];
}

DType sum_dtype(DType dtype) {
  if (dtype == DType::kInt8) return DType::kInt32;
  return is_float(dtype) && dtype_bytes(dtype) == 2 ? DType::kFloat32 : dtype;
}

std::span<const DType> out_dtypes(DType dtype) {
  static constexpr DType kFloat[] = {DType::kFloat32}, kHalf[] = {DType::kFloat32, DType::kFloat16},
                         kBrain[] = {DType::kFloat32, DType::kBFloat16},
                         kInt[] = {DType::kInt32, DType::kUInt8, DType::kInt8};
  if (dtype == DType::kInt8) return kInt;
  if (dtype == DType::kBFloat16) return kBrain;
  if (dtype == DType::kFloat16) return kHalf;
  return kFloat;
}

DType left_dtype(DType dtype) { return dtype == DType::kInt8 ? DType::kUInt8 : dtype; }

std::vector<EpiloguePart> epilogue_parts(const ProductFields& p) {
  if (!p.post.empty()) return p.post;
  std::vector<EpiloguePart> parts;
  if (p.bias) parts.push_back(EpiloguePart::kBias);
  if (p.scale) parts.push_back(EpiloguePart::kScale);
  if (p.residual || p.accumulate) parts.push_back(EpiloguePart::kResidual);
  if (p.activation != Activation::kNone) parts.push_back(EpiloguePart::kActivation);
  return parts;
}

std::vector<EpiloguePart> post_of(std::vector<EpiloguePart> parts) {
  for (size_t i = 1; i < parts.size(); ++i)
    if (parts[i - 1] == EpiloguePart::kResidual && parts[i] == EpiloguePart::kBias)
      std::swap(parts[i - 1], parts[i]);
  return std::ranges::is_sorted(parts) ? std::vector<EpiloguePart>() : parts;
}

bool adds_residual_last(const ProductFields& p) {
  return p.residual && !p.post.empty() && p.post.back() == EpiloguePart::kResidual &&
         std::ranges::is_sorted(p.post.begin(), p.post.end() - 1);
}

void describe_epilogue_and_types(ProductFields& p, WorkloadFields& fields) {
  describe_epilogue(p, fields);
  describe_types(p, fields);
}

void describe_constants(ProductFields& p, std::initializer_list<std::string_view> operands,
                        WorkloadFields& fields) {
  std::vector<std::string> known(operands.begin(), operands.end());
  if (p.bias) known.emplace_back("bias");
  fields.operands({.word = "const", .json = "constant"}, p.constant, known);
}

// 2^16 products of a uint8 and an int8 are at most 2^16 * 255 * 128 = 2^31 - 2^23 in size: what is left to
// int32 takes a bias and a residual of 2^22 each, which the caller keeps to.
Status check_product(const ProductFields& p, std::string_view terms_name, int64_t terms) {
  constexpr int64_t kMostInt8Terms = 1 << 16;
  if (p.dtype != DType::kFloat32 && p.dtype != DType::kBFloat16 && p.dtype != DType::kInt8 &&
      p.dtype != DType::kFloat16)
    return invalid_argument("dtype: expected float32, bfloat16, float16 or int8, found ", p.dtype);
  if (p.allow_tf32 && p.dtype != DType::kFloat32)
    return invalid_argument("allow_tf32: expected only with float32, found ", p.dtype);
  if (p.dtype == DType::kInt8 && terms > kMostInt8Terms)
    return invalid_argument(terms_name, ": expected at most 65536 for int8, found ", terms,
                            "; sums of more products overflow int32");
  const std::span<const DType> allowed = out_dtypes(p.dtype);
  if (std::ranges::find(allowed, p.out_dtype()) == allowed.end()) {
    std::string names;
    for (const DType each : allowed) names += str(names.empty() ? "" : ", ", each);
    return invalid_argument("out_dtype: expected one of ", names, " for ", p.dtype, ", found ",
                            p.out_dtype());
  }
  return check_epilogue(p);
}

Tolerance product_tolerance(const ProductFields& p, int64_t terms) {
  if (p.dtype == DType::kInt8) return {0, 0};
  const double narrow = p.out_dtype() == DType::kBFloat16  ? 0x1p-8
                        : p.out_dtype() == DType::kFloat16 ? 0x1p-11
                                                           : 0;
  const double least = p.out_dtype() == DType::kFloat16 ? 0x1p-25 : 0;
  const double steep = std::max(1.0, steepest(p.activation));  // one that is flat still rounds its own result
  const double lost = p.allow_tf32 ? tf32_error(terms) : 0;
  return {(1 + narrow) * steep * (product_sum_tolerance(terms) + lost) + least, kRelativeTolerance + narrow};
}

float product_drawn_factor(const ProductFields& p, std::string_view operand) {
  return operand == "scale" && requantises(p) ? 0x1p-12F : 1;
}

std::string types_text(const ProductFields& p) {
  return str(" dtype=", dtype_name(p.dtype), p.allow_tf32 ? " tf32" : "");
}

std::string packed_text(const ProductFields& p) {
  std::string text;
  for (const std::string& operand : p.constant)
    if (operand != "bias") text += str(text.empty() ? "" : ",", operand);
  return str(" const=", text.empty() ? "none" : text);
}

}  // namespace tuner
