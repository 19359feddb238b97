#include <algorithm>
#include <cmath>

#include "compiler_core/base/integer_types.h"
#include "compiler_core/graph/families.h"

namespace tuner::graph {
namespace {

std::vector<te::Builder::ReduceAxis> axes_of(const Shape& over) {
  std::vector<te::Builder::ReduceAxis> axes;
  for (size_t d = 0; d < over.size(); ++d) axes.push_back({str("r", d), over[d]});
  return axes;
}

}  // namespace

MathWriter::MathWriter(te::Builder& builder, std::vector<Buffer> in, std::vector<std::string> names,
                       std::vector<TensorType> types, BufferRole results)
    : builder_(builder),
      in_(std::move(in)),
      names_(std::move(names)),
      types_(std::move(types)),
      role_(results),
      results_(names_.size()) {}

std::string MathWriter::own_name(std::string_view name) const {
  const auto first = std::find_if(names_.begin(), names_.end(), [](const auto& n) { return !n.empty(); });
  return str(first == names_.end() ? "" : *first, ".", name);
}

Buffer MathWriter::stage(std::string_view name, const Shape& shape, const Element& f) {
  return builder_.compute(own_name(name), shape, f);
}

Buffer MathWriter::stage(std::string_view name, const Shape& shape, DType dtype, const Element& f) {
  return builder_.compute(
      own_name(name), shape, [&](const te::Indices& i) { return as(dtype, f(i)); }, BufferRole::kIntermediate,
      {}, dtype);
}

Buffer MathWriter::reduced(std::string_view name, const Shape& shape, const Shape& over, ReduceOp op,
                           const Term& f) {
  return builder_.reduce(own_name(name), shape, axes_of(over), op, f);
}

void MathWriter::result(size_t i, const Element& f) {
  if (!wants(i)) return;
  const TensorType& type = types_[i];
  results_[i] = builder_.compute(
      names_[i], type.shape, [&](const te::Indices& index) { return as(type.dtype, f(index)); }, role_, {},
      type.dtype);
}

void MathWriter::reduced_result(const Shape& over, ReduceOp op, const Term& f) {
  if (!wants(0)) return;
  const TensorType& type = types_[0];
  const auto term = [&](const te::Indices& i, const te::Indices& r) { return as(type.dtype, f(i, r)); };
  if (over.empty()) return result(0, [&](const te::Indices& i) { return f(i, {}); });
  results_[0] = builder_.reduce(names_[0], type.shape, axes_of(over), op, term, role_);
}

Buffer MathWriter::table(std::string_view name, DType dtype, const Shape& shape,
                         std::span<const double> numbers) {
  const Buffer buffer = tables_are_inputs_ ? builder_.input(own_name(name), shape, dtype)
                                           : builder_.constant(own_name(name), shape, dtype);
  tables_.push_back({buffer, Constant::of(numbers, dtype)});
  return buffer;
}

Expr sigmoid(const Expr& x) {
  const Expr one = number(x->dtype, 1);
  return one / (one + unary(UnaryOp::kExp, unary(UnaryOp::kNeg, x)));
}

Result<Shape> broadcast(const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()));
  for (size_t d = 0; d < result.size(); ++d) {  // from the last dimension on
    const int64_t x = d < a.size() ? a[a.size() - 1 - d] : 1, y = d < b.size() ? b[b.size() - 1 - d] : 1;
    if (x != y && x != 1 && y != 1)
      return invalid_argument("shapes ", to_text(TensorType{DType::kFloat32, a}).substr(7), " and ",
                              to_text(TensorType{DType::kFloat32, b}).substr(7), " do not broadcast");
    result[result.size() - 1 - d] = x == 1 ? y : x;
  }
  return result;
}

Expr at(const Buffer& b, const te::Indices& i) {
  te::Indices own;
  const size_t skipped = i.size() - b->shape.size();
  for (size_t d = 0; d < b->shape.size(); ++d) own.push_back(b->shape[d] == 1 ? Expr(0) : i[skipped + d]);
  return load(b, std::move(own));
}

Expr number(DType dtype, double value) {
  if (dtype == DType::kBool) return bool_imm(value != 0);
  if (is_float(dtype)) return float_imm(value, dtype);
  // Below 0 an unsigned number wraps around, as in a sum.
  const bool is_large = dtype == DType::kUInt64 && value >= 0x1p63;
  return int_imm(wrapped_to(dtype, nearest_of(is_large ? DType::kUInt64 : DType::kInt64, value)), dtype);
}

Expr as(DType dtype, const Expr& e) {
  if (e->dtype == dtype) return e;
  if (dtype == DType::kBool) return binary(BinaryOp::kNe, e, number(e->dtype, 0));
  if (e->dtype == DType::kBool) return select(e, number(dtype, 1), number(dtype, 0));
  return cast(dtype, e);
}

Expr saturated(const Expr& x, DType dtype) {
  const auto [least, greatest] = range_of(dtype);
  return min(at_least(x, number(x->dtype, static_cast<double>(least))),
             number(x->dtype, static_cast<double>(greatest)));
}

Expr to_integer(DType dtype, const Expr& given) {
  // float16 ends before the larger types do.
  const bool is_narrow = dtype_bytes(given->dtype) < dtype_bytes(DType::kFloat32);
  const Expr x = is_narrow ? cast(DType::kFloat32, given) : given;
  const bool is_signed = !is_unsigned(dtype);
  const int bits = static_cast<int>(8 * dtype_bytes(dtype)) - (is_signed ? 1 : 0);
  const int digits = x->dtype == DType::kFloat64 ? 53 : 24;
  const double end = std::exp2(bits), below_end = end - std::exp2(std::max(bits - digits, 0));
  const Expr inside =
      cast(dtype, min(at_least(x, number(x->dtype, is_signed ? -end : 0)), number(x->dtype, below_end)));
  if (bits <= digits) return inside;
  // The greatest integer is no number of x's type.
  return select(x < number(x->dtype, end) || is_nan(x), inside, int_imm(range_of(dtype).second, dtype));
}

Expr is_nan(const Expr& x) { return is_float(x->dtype) ? binary(BinaryOp::kNe, x, x) : bool_imm(false); }

Expr equals(const Expr& a, const Expr& b) { return binary(BinaryOp::kEq, a, b); }
Expr is_extreme(const Expr& element, const Expr& extreme) {
  return equals(element, extreme) || is_nan(element);
}
Expr logical_not(const Expr& a) { return unary(UnaryOp::kNot, a); }

int64_t elements_of(const Shape& shape) { return product_of(shape, 0, shape.size()); }

int64_t product_of(const Shape& shape, size_t first, size_t last) {
  int64_t n = 1;
  for (size_t d = first; d < last; ++d) n *= shape[d];
  return n;
}

Expr flat_index(const te::Indices& i, const Shape& shape) {
  Expr flat = 0;
  for (size_t d = 0; d < shape.size(); ++d) flat = flat * Expr(shape[d]) + i[d];
  return flat;
}

te::Indices indices_of(const Expr& flat, const Shape& shape) {
  te::Indices indices(shape.size());
  int64_t inner = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    const Expr outer = floor_div(flat, Expr(inner));
    indices[d] = d == 0 ? outer : floor_mod(outer, Expr(shape[d]));
    inner *= shape[d];
  }
  return indices;
}

Result<std::vector<TensorType>> like_first(const Use& use) { return one(use.type(0)); }

}  // namespace tuner::graph
