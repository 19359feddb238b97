// Poolings: the largest, the mean, or a norm of each window of an image; and the way back.
#include <limits>

#include "compiler_core/base/integer_types.h"
#include "compiler_core/graph/operators/on_bytes.h"
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
  return int_imm(range_of(dtype).first, dtype);
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
// The sum of `element` over each window, and how many elements it counts: what `mean` is given.
void averaged(const Use& use, MathWriter& m, const std::function<Expr(const Expr&)>& element,
              const std::function<Expr(const Expr& sum, const Expr& count)>& mean) {
  const Window w = *window_of(use, use.shape(0), {});
  const Shape& image = use.shape(0);
  const bool with_padding = use.integer("count_include_pad", 0) != 0;
  const Buffer sum =
      m.reduced("sum", m.type().shape, w.kernel, ReduceOp::kSum, [&](const auto& i, const auto& r) {
        const te::Indices from = places(w, i, r);
        const Expr x = element(load(m.in(0), from));
        return select(is_inside(image, from), x, number(x->dtype, 0));
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
    return mean(load(sum, i), count);
  });
}
void average_pool(const Use& use, MathWriter& m) {
  averaged(
      use, m, [](const Expr& x) { return x; },
      [&](const Expr& sum, const Expr& count) { return sum / as(use.dtype(0), count); });
}
// x, its scale and zero point, those of the result.
Result<std::vector<TensorType>> qlinear_average_pool_types(const Use& use) {
  RETURN_IF_ERROR(check_single(use, {1, 2, 3, 4}));
  if (use.integer("channels_last", 0) != 0) return invalid_argument("channels_last is not served");
  return pool_types(use);
}
void qlinear_average_pool(const Use& use, MathWriter& m) {
  averaged(
      use, m, [&](const Expr& x) { return as(DType::kInt32, x) - single_zero(use, m, 2); },
      [&](const Expr& sum, const Expr& count) {
        const Expr units = single(use, m, 3) * as(DType::kFloat32, count);
        return quantized(use, m, as(DType::kFloat32, sum) * (single(use, m, 1) / units), 4);
      });
}
// --- norms: the p-th root of the sum of |x|^p ---
Status check_norm(const Use& use) {
  const int64_t p = use.integer("p", 2);
  return p >= 1 && p <= 1024 ? Status::ok() : invalid_argument("p is ", p, ", expected 1 to 1024");
}
Expr to_power(const Use& use, const Expr& x) {
  const int64_t p = use.integer("p", 2);
  if (p == 2) return x * x;
  const Expr size = unary(UnaryOp::kAbs, x);
  return p == 1 ? size : binary(BinaryOp::kPow, size, number(x->dtype, static_cast<double>(p)));
}
Expr root_of(const Use& use, const Expr& x) {
  const int64_t p = use.integer("p", 2);
  if (p == 1) return x;
  return p == 2 ? unary(UnaryOp::kSqrt, x)
                : binary(BinaryOp::kPow, x, number(x->dtype, 1 / static_cast<double>(p)));
}
Result<std::vector<TensorType>> lp_pool_types(const Use& use) {
  RETURN_IF_ERROR(check_norm(use));
  return pool_types(use);
}
void lp_pool(const Use& use, MathWriter& m) {
  const Window w = *window_of(use, use.shape(0), {});
  const Buffer sum =
      m.reduced("sum", m.type().shape, w.kernel, ReduceOp::kSum, [&](const auto& i, const auto& r) {
        const te::Indices from = places(w, i, r);
        const Expr x = select(is_inside(use.shape(0), from), load(m.in(0), from), number(use.dtype(0), 0));
        return to_power(use, x);
      });
  m.result([&](const te::Indices& i) { return root_of(use, load(sum, i)); });
}

// --- MaxUnpool: each element at the place it had before a pooling, zeros elsewhere ---
// Places are those of the tensor that the attributes describe; one of other extents, which may be asked for,
// begins with it. Of several elements for one place the last one counts.
struct Unpooled {
  Shape planes, result;  // [N, C, D1, ...]: what places are counted in; the result
};
Result<Unpooled> unpooled_of(const Use& use) {
  const Shape& pooled = use.shape(0);
  if (pooled.size() < 3 || use.shape(1) != pooled)
    return invalid_argument("places are ", to_text(use.type(1)), " for ", to_text(use.type(0)),
                            ", expected one shape");
  const size_t rank = pooled.size() - 2;
  const Shape kernel = use.integers("kernel_shape"), strides = use.integers("strides", Shape(rank, 1)),
              pads = use.integers("pads", Shape(2 * rank, 0));
  if (kernel.size() != rank || strides.size() != rank || pads.size() != 2 * rank)
    return invalid_argument("kernel_shape, strides or pads do not have ", rank, " dimensions");
  Unpooled u{{pooled[0], pooled[1]}, {}};
  for (size_t d = 0; d < rank; ++d) {
    constexpr int64_t kMost = int64_t{1} << 20;
    for (const int64_t x : {kernel[d] - 1, strides[d] - 1, pads[d], pads[d + rank]})
      if (x < 0 || x > kMost) return invalid_argument("kernel_shape, strides or pads hold a wrong number");
    u.planes.push_back((pooled[d + 2] - 1) * strides[d] + kernel[d] - pads[d] - pads[d + rank]);
    if (u.planes.back() < 1)
      return invalid_argument("a result of ", u.planes.back(), " in dimension ", d + 2);
  }
  u.result = u.planes;
  if (use.has(2)) {
    ASSIGN_OR_RETURN(u.result, use.integers(2));
    bool fits = u.result.size() == u.planes.size() && u.result[0] == pooled[0] && u.result[1] == pooled[1];
    for (size_t d = 2; fits && d < u.result.size(); ++d) fits = u.result[d] >= u.planes[d];
    if (!fits)
      return invalid_argument("output_shape is smaller than ", to_text(TensorType{use.dtype(0), u.planes}));
  }
  RETURN_IF_ERROR(check_size({use.dtype(0), u.planes}));
  RETURN_IF_ERROR(check_size({use.dtype(0), u.result}));
  constexpr int64_t kMostWork = int64_t{1} << 30;
  if (elements_of(u.result) > kMostWork / product_of(pooled, 2, pooled.size()))
    return invalid_argument("images ", to_text(use.type(0)), " are too large");
  return u;
}
Result<std::vector<TensorType>> max_unpool_types(const Use& use) {
  ASSIGN_OR_RETURN(const Unpooled u, unpooled_of(use));
  return one({use.dtype(0), u.result});
}
void max_unpool(const Use& use, MathWriter& m) {
  const Unpooled u = *unpooled_of(use);
  const Shape& pooled = use.shape(0);
  const Shape over(pooled.begin() + 2, pooled.end());
  const auto element = [](const te::Indices& i, const te::Indices& r) {
    te::Indices from{i[0], i[1]};
    from.insert(from.end(), r.begin(), r.end());
    return from;
  };
  const Buffer last = m.reduced("last", u.planes, over, ReduceOp::kMax, [&](const auto& i, const auto& r) {
    const Expr hit = equals(load(m.in(1), element(i, r)), flat_index(i, u.planes));
    return select(hit, flat_index(r, over), int_imm(-1));
  });
  m.result([&](const te::Indices& i) {
    Expr inside = bool_imm(true);
    for (size_t d = 2; d < i.size(); ++d)
      if (u.result[d] > u.planes[d]) inside = inside && i[d] < Expr(u.planes[d]);
    const Expr found = select(inside, load(last, i), int_imm(-1));
    const te::Indices from = indices_of(min(max(found, Expr(0)), Expr(elements_of(over) - 1)), over);
    return select(found < Expr(0), number(use.dtype(0), 0), load(m.in(0), element(i, from)));
  });
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

Result<std::vector<TensorType>> global_norm_types(const Use& use) {
  RETURN_IF_ERROR(check_norm(use));
  return global_types(use);
}
void global_norm(const Use& use, MathWriter& m) {
  const Buffer sum = m.reduced("sum", m.type().shape, pixels(use), ReduceOp::kSum,
                               [&](const auto& i, const auto& r) { return to_power(use, pixel(m, i, r)); });
  m.result([&](const te::Indices& i) { return root_of(use, load(sum, i)); });
}

constexpr auto kKind = OperatorKind::kReduction;
constexpr Operator kRows[] = {
    {"MaxPool", kKind, 1, 1, 2, max_pool_types, max_pool},
    {"AveragePool", kKind, 1, 1, 1, pool_types, average_pool},
    {"com.microsoft.QLinearAveragePool", kKind, 4, 5, 1, qlinear_average_pool_types, qlinear_average_pool},
    {"LpPool", kKind, 1, 1, 1, lp_pool_types, lp_pool},
    {"MaxUnpool", kKind, 2, 3, 1, max_unpool_types, max_unpool},
    {"GlobalLpPool", kKind, 1, 1, 1, global_norm_types, global_norm},
    {"GlobalMaxPool", kKind, 1, 1, 1, global_types, global_max},
    {"GlobalAveragePool", kKind, 1, 1, 1, global_types, global_average},
};

}  // namespace
}  // namespace pooling_ops

std::span<const Operator> pooling_operators() { return pooling_ops::kRows; }

}  // namespace tuner::graph
