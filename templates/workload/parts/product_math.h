// The math of what follows the sum of a product, for operators and templates.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/te/te.h"
#include "templates/workload/parts/product.h"

namespace tuner {

// Declares an argument: inputs and constants are declared alike; only the role differs.
Buffer declare_operand(te::Builder& b, const std::vector<std::string>& constants, const std::string& name,
                       std::vector<int64_t> shape, std::optional<DType> dtype = {});

struct Epilogue {
  Buffer bias, residual, scale, zero_point, residual_scale, residual_zero_point;  // null where there is none
  Activation activation;
  std::vector<EpiloguePart> parts;  // in their order
  DType out;
};
// Declares its operands, behind the product's own. `out_shape` is that of residual.
Epilogue declare_epilogue(te::Builder& b, const ProductFields& p, int64_t channels,
                          const std::vector<int64_t>& out_shape);
template <class Product>
Epilogue declare_epilogue(te::Builder& b, const Product& w, int64_t channels,
                          const std::vector<int64_t>& out_shape) {
  return declare_epilogue(b, product_fields(w), channels, out_shape);
}
// Returns the element of out for this sum: of that channel, and of residual[at].
Expr finished(const Epilogue& e, Expr sum, const Expr& channel, const te::Indices& at);

Expr zero_of(DType dtype);

}  // namespace tuner
