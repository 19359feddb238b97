#include "templates/workload/parts/product_math.h"

#include <algorithm>

namespace tuner {
namespace {

// Returns x behind one part.
Expr behind(EpiloguePart part, const Epilogue& e, Expr x, const Expr& channel, const te::Indices& at) {
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

// A residual apart, or the "out" that it lies on; null if there is neither.
Buffer declare_residual(te::Builder& b, const ProductFields& p, const std::vector<int64_t>& out_shape) {
  if (p.accumulate) return b.in_out("out", out_shape, p.out_dtype());
  return p.residual ? b.input("residual", out_shape, p.out_dtype()) : nullptr;
}

}  // namespace

Buffer declare_operand(te::Builder& b, const std::vector<std::string>& constants, const std::string& name,
                       std::vector<int64_t> shape, std::optional<DType> dtype) {
  const bool constant = std::find(constants.begin(), constants.end(), name) != constants.end();
  return constant ? b.constant(name, std::move(shape), dtype) : b.input(name, std::move(shape), dtype);
}

Epilogue declare_epilogue(te::Builder& b, const ProductFields& p, int64_t channels,
                          const std::vector<int64_t>& out_shape) {
  Epilogue e{.activation = p.activation, .parts = epilogue_parts(p), .out = p.out_dtype()};
  if (p.bias) e.bias = declare_operand(b, p.constant, "bias", {channels}, sum_dtype(p.dtype));
  e.residual = declare_residual(b, p, out_shape);
  if (p.scale || requantises(p)) e.scale = b.input("scale", {channels}, DType::kFloat32);
  if (!requantises(p)) return e;
  e.zero_point = b.input("zero_point", {1}, e.out);
  if (!p.residual) return e;
  e.residual_scale = b.input("residual_scale", {1}, DType::kFloat32);
  e.residual_zero_point = b.input("residual_zero_point", {1}, e.out);
  return e;
}

Expr finished(const Epilogue& e, Expr sum, const Expr& channel, const te::Indices& at) {
  Expr x = std::move(sum);
  if (!e.zero_point) {
    for (const EpiloguePart part : e.parts) x = behind(part, e, std::move(x), channel, at);
    return cast(e.out, std::move(x));
  }
  if (e.bias) x = x + load(e.bias, {channel});
  x = cast(DType::kFloat32, x) * load(e.scale, {channel});
  // Taken away with its sign turned, which is the same number: a product that is added is fused with the
  // addition on CPUs that can, and the last bit would depend on the CPU.
  if (e.residual)
    x = x - load(e.residual_scale, {0}) *
                cast(DType::kFloat32, cast(DType::kInt32, load(e.residual_zero_point, {0})) -
                                          cast(DType::kInt32, load(e.residual, at)));
  // Saturated before it is rounded: the bounds are integers, and every number then is one of int32. A NaN
  // becomes the lower bound.
  x = activated(e.activation, std::move(x));
  const Expr zero_point = cast(DType::kInt32, load(e.zero_point, {0}));
  const auto bound = [&](int64_t value) {
    return cast(DType::kFloat32, int_imm(value, DType::kInt32) - zero_point);
  };
  const int64_t low = e.out == DType::kInt8 ? -128 : 0;
  x = min(at_least(x, bound(low)), bound(low + 255));
  return cast(e.out, cast(DType::kInt32, unary(UnaryOp::kRound, x)) + zero_point);
}

Expr zero_of(DType dtype) { return is_float(dtype) ? float_imm(0, dtype) : int_imm(0, dtype); }

}  // namespace tuner
