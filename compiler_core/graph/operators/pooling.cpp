// Poolings: the largest, the mean, or a norm of each window of an image.
#include <limits>

#include "compiler_core/graph/operators/window.h"
#include "compiler_core/graph/pool_window.h"

namespace tuner::graph {
namespace pooling_ops {
namespace {

Result<std::vector<TensorType>> pool_types(const Use& use) {
  ASSIGN_OR_RETURN(const Window w, window_of(use, use.shape(0), {}));
  for (size_t d = 0; d < w.kernel.size(); ++d) {
    const PoolWindow along{.extent = use.shape(0)[d + 2],
                           .kernel = w.kernel[d],
                           .stride = w.strides[d],
                           .dilation = w.dilations[d],
                           .before = w.before[d],
                           .behind = w.behind[d],
                           .windows = w.result[d]};
    RETURN_IF_ERROR(check_pool_window(along, {str("padding before dimension ", d + 2),
                                              str("padding behind dimension ", d + 2), "elements"}));
  }
  Shape shape{use.shape(0)[0], use.shape(0)[1]};
  shape.insert(shape.end(), w.result.begin(), w.result.end());
  return one({use.dtype(0), shape});
}

te::Indices places(const Window& w, const te::Indices& i, const te::Indices& r) {
  te::Indices from{i[0], i[1]};
  for (size_t d = 0; d < r.size(); ++d) from.push_back(w.place(d, i[d + 2], r[d]));
  return from;
}
Expr is_inside(const Shape& image, const te::Indices& from) {
  Expr there = bool_imm(true);
  for (size_t d = 2; d < image.size(); ++d) there = there && from[d] >= Expr(0) && from[d] < Expr(image[d]);
  return there;
}

Expr least_of(DType dtype) {
  if (is_float(dtype)) return float_imm(-std::numeric_limits<double>::infinity(), dtype);
  return number(dtype, dtype == DType::kUInt8 ? 0 : dtype == DType::kInt8 ? -128 : -2147483648.0);
}

Result<std::vector<TensorType>> max_pool_types(const Use& use) {
  ASSIGN_OR_RETURN(std::vector<TensorType> types, pool_types(use));
  if (use.dtype(0) == DType::kInt64 || use.dtype(0) == DType::kBool)
    return invalid_argument("images of ", use.dtype(0), " are not served");
  types.push_back({DType::kInt64, types[0].shape});
  return types;
}
void max_pool(const Use& use, MathWriter& m) {
  const Window w = *window_of(use, use.shape(0), {});
  const Shape& image = use.shape(0);
  const auto term = [&](const te::Indices& i, const te::Indices& r) {
    const te::Indices from = places(w, i, r);
    return select(is_inside(image, from), load(m.in(0), from), least_of(use.dtype(0)));
  };
  m.reduced_result(w.kernel, ReduceOp::kMax, term);
  if (!m.wants(1)) return;
  // Where the largest stands, the first of equals: its place in the whole tensor, dimensions in this order or
  // (as storage_order = 1) the last two of the image swapped.
  const Shape& shape = m.type(1).shape;
  const Buffer most = m.reduced("max", shape, w.kernel, ReduceOp::kMax, term);
  const bool swapped = use.integer("storage_order", 0) != 0 && image.size() == 4;
  const Buffer first = m.reduced("first", shape, w.kernel, ReduceOp::kMin, [&](const auto& i, const auto& r) {
    te::Indices from = places(w, i, r);
    const Expr hit = is_inside(image, from) && is_extreme(load(m.in(0), from), load(most, i));
    Shape extents = image;
    if (swapped) {
      std::swap(from[2], from[3]);
      std::swap(extents[2], extents[3]);
    }
    return select(hit, flat_index(from, extents), Expr(elements_of(image)));
  });
  m.result(1, [&](const te::Indices& i) { return load(first, i); });
}

// How many elements of the window lie within bounds in dimension d: in the image, or with its padding.
Expr counted(const Window& w, size_t d, const Expr& o, int64_t extent, bool with_padding) {
  const int64_t before = with_padding ? -w.before[d] : 0, end = with_padding ? extent + w.behind[d] : extent;
  Expr count = 0;
  for (int64_t k = 0; k < w.kernel[d]; ++k) {
    const Expr place = w.place(d, o, Expr(k));
    count = count + select(place >= Expr(before) && place < Expr(end), int_imm(1), int_imm(0));
  }
  return count;
}
void average_pool(const Use& use, MathWriter& m) {
  const Window w = *window_of(use, use.shape(0), {});
  const Shape& image = use.shape(0);
  const DType dtype = use.dtype(0);
  const bool with_padding = use.integer("count_include_pad", 0) != 0;
  const Buffer sum =
      m.reduced("sum", m.type().shape, w.kernel, ReduceOp::kSum, [&](const auto& i, const auto& r) {
        const te::Indices from = places(w, i, r);
        return select(is_inside(image, from), load(m.in(0), from), number(dtype, 0));
      });
  // The counts of each dimension, tables of their own.
  std::vector<Buffer> counts;
  for (size_t d = 0; d < w.kernel.size(); ++d)
    counts.push_back(m.stage(str("count", d), {w.result[d]}, DType::kInt64, [&](const te::Indices& i) {
      return counted(w, d, i[0], image[d + 2], with_padding);
    }));
  m.result([&](const te::Indices& i) {
    Expr count = 1;
    for (size_t d = 0; d < counts.size(); ++d) count = count * load(counts[d], {i[d + 2]});
    return load(sum, i) / as(dtype, count);
  });
}
Result<std::vector<TensorType>> lp_pool_types(const Use& use) {
  const int64_t p = use.integer("p", 2);
  if (p != 1 && p != 2) return invalid_argument("p is ", p, ", expected 1 or 2");
  return pool_types(use);
}
void lp_pool(const Use& use, MathWriter& m) {
  const Window w = *window_of(use, use.shape(0), {});
  const bool squares = use.integer("p", 2) == 2;
  const Buffer sum =
      m.reduced("sum", m.type().shape, w.kernel, ReduceOp::kSum, [&](const auto& i, const auto& r) {
        const te::Indices from = places(w, i, r);
        const Expr x = select(is_inside(use.shape(0), from), load(m.in(0), from), number(use.dtype(0), 0));
        return squares ? x * x : unary(UnaryOp::kAbs, x);
      });
  m.result(
      [&](const te::Indices& i) { return squares ? unary(UnaryOp::kSqrt, load(sum, i)) : load(sum, i); });
}

// --- the whole image ---
Result<std::vector<TensorType>> global_types(const Use& use) {
  if (use.rank(0) < 3) return invalid_argument("needs images, got ", to_text(use.type(0)));
  Shape shape(use.shape(0).size(), 1);
  shape[0] = use.shape(0)[0];
  shape[1] = use.shape(0)[1];
  return one({use.dtype(0), shape});
}
Shape pixels(const Use& use) { return {use.shape(0).begin() + 2, use.shape(0).end()}; }
Expr pixel(const MathWriter& m, const te::Indices& i, const te::Indices& r) {
  te::Indices from{i[0], i[1]};
  from.insert(from.end(), r.begin(), r.end());
  return load(m.in(0), from);
}
void global_max(const Use& use, MathWriter& m) {
  m.reduced_result(pixels(use), ReduceOp::kMax, [&](const auto& i, const auto& r) { return pixel(m, i, r); });
}
void global_average(const Use& use, MathWriter& m) {
  const Shape over = pixels(use);
  const Buffer sum = m.reduced("sum", m.type().shape, over, ReduceOp::kSum,
                               [&](const auto& i, const auto& r) { return pixel(m, i, r); });
  m.result([&](const te::Indices& i) {
    return load(sum, i) / number(use.dtype(0), static_cast<double>(elements_of(over)));
  });
}

constexpr auto kKind = OperatorKind::kReduction;
constexpr Operator kRows[] = {
    {"MaxPool", kKind, 1, 1, 2, max_pool_types, max_pool},
    {"AveragePool", kKind, 1, 1, 1, pool_types, average_pool},
    {"LpPool", kKind, 1, 1, 1, lp_pool_types, lp_pool},
    {"GlobalMaxPool", kKind, 1, 1, 1, global_types, global_max},
    {"GlobalAveragePool", kKind, 1, 1, 1, global_types, global_average},
};

}  // namespace
}  // namespace pooling_ops

std::span<const Operator> pooling_operators() { return pooling_ops::kRows; }

}  // namespace tuner::graph
