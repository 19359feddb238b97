// Operators that bring elements into the scale of their neighbours: softmax and normalizations.
#include <algorithm>

#include "compiler_core/graph/families.h"

namespace tuner::graph {
namespace normalization_ops {
namespace {

Expr root(const Expr& x) { return unary(UnaryOp::kSqrt, x); }

// --- Softmax and its like ---
// Dimensions of one group: up to operator set 12 all from the axis on, one since.
struct Group {
  size_t first, last;  // dimensions first .. last - 1

  Shape over(const Shape& shape) const {
    return {shape.begin() + std::ptrdiff_t(first), shape.begin() + std::ptrdiff_t(last)};
  }
  // The element of the group at r, and what all of its elements share.
  te::Indices source(const te::Indices& i, const te::Indices& r) const {
    te::Indices from = i;
    for (size_t d = first; d < last; ++d) from[d] = r[d - first];
    return from;
  }
  te::Indices shared(const te::Indices& i) const {
    te::Indices rest;
    for (size_t d = 0; d < i.size(); ++d)
      if (d < first || d >= last) rest.push_back(i[d]);
    return rest;
  }
  Shape shared(const Shape& shape) const {
    Shape rest;
    for (size_t d = 0; d < shape.size(); ++d)
      if (d < first || d >= last) rest.push_back(shape[d]);
    return rest;
  }
  // The place in the whole of what is at `rest` of the shared dimensions and r of the group's.
  te::Indices whole(const te::Indices& rest, const te::Indices& r) const {
    te::Indices from(rest.begin(), rest.begin() + std::ptrdiff_t(first));
    from.insert(from.end(), r.begin(), r.end());
    from.insert(from.end(), rest.begin() + std::ptrdiff_t(first), rest.end());
    return from;
  }
};
constexpr int64_t kSoftmaxTakesOneAxis = 13;
Result<Group> softmax_group(const Use& use) {
  const bool one_axis = use.operator_set() >= kSoftmaxTakesOneAxis;
  ASSIGN_OR_RETURN(const int64_t axis, use.axis(one_axis ? -1 : 1, use.rank(0)));
  const auto first = static_cast<size_t>(axis);
  return Group{first, one_axis ? first + 1 : use.shape(0).size()};
}
Result<std::vector<TensorType>> softmax_types(const Use& use) {
  RETURN_IF_ERROR(softmax_group(use).status());
  return like_first(use);
}
struct SoftmaxSums {
  Buffer most, sum;
};
SoftmaxSums softmax_sums(const Use& use, MathWriter& m, const Group& group) {
  const Shape rest = group.shared(use.shape(0)), over = group.over(use.shape(0));
  const auto element = [&](const te::Indices& i, const te::Indices& r) {
    return load(m.in(0), group.whole(i, r));
  };
  const Buffer most = m.reduced("max", rest, over, ReduceOp::kMax, element);
  const Buffer sum = m.reduced("sum", rest, over, ReduceOp::kSum, [&](const auto& i, const auto& r) {
    return unary(UnaryOp::kExp, element(i, r) - load(most, i));
  });
  return {most, sum};
}
void softmax(const Use& use, MathWriter& m) {
  const Group group = *softmax_group(use);
  const SoftmaxSums sums = softmax_sums(use, m, group);
  m.result([&](const te::Indices& i) {
    const te::Indices rest = group.shared(i);
    return unary(UnaryOp::kExp, load(m.in(0), i) - load(sums.most, rest)) / load(sums.sum, rest);
  });
}
void log_softmax(const Use& use, MathWriter& m) {
  const Group group = *softmax_group(use);
  const SoftmaxSums sums = softmax_sums(use, m, group);
  m.result([&](const te::Indices& i) {
    const te::Indices rest = group.shared(i);
    return load(m.in(0), i) - load(sums.most, rest) - unary(UnaryOp::kLog, load(sums.sum, rest));
  });
}
// 1 at the first largest element, 0 elsewhere.
void hardmax(const Use& use, MathWriter& m) {
  const Group group = *softmax_group(use);
  const Shape rest = group.shared(use.shape(0)), over = group.over(use.shape(0));
  const auto element = [&](const te::Indices& i, const te::Indices& r) {
    return load(m.in(0), group.whole(i, r));
  };
  const Buffer most = m.reduced("max", rest, over, ReduceOp::kMax, element);
  const Buffer first = m.reduced("first", rest, over, ReduceOp::kMin, [&](const auto& i, const auto& r) {
    return select(is_extreme(element(i, r), load(most, i)), flat_index(r, over), Expr(elements_of(over)));
  });
  m.result([&](const te::Indices& i) {
    const te::Indices own(i.begin() + std::ptrdiff_t(group.first), i.begin() + std::ptrdiff_t(group.last));
    return select(equals(flat_index(own, over), load(first, group.shared(i))), number(use.dtype(0), 1),
                  number(use.dtype(0), 0));
  });
}

// --- Normalizations by mean and variance ---
struct Moments {
  Buffer mean, variance;
};
// Of input 0 over the group; variances are means of squared differences.
Moments moments_of(const Use& use, MathWriter& m, const Group& group) {
  const Shape rest = group.shared(use.shape(0)), over = group.over(use.shape(0));
  const DType dtype = use.dtype(0);
  const Expr count = number(dtype, static_cast<double>(elements_of(over)));
  const Buffer sum = m.reduced("sum", rest, over, ReduceOp::kSum, [&](const auto& i, const auto& r) {
    return load(m.in(0), group.whole(i, r));
  });
  const Buffer mean = m.stage("mean", rest, [&](const te::Indices& i) { return load(sum, i) / count; });
  const Buffer squares = m.reduced("squares", rest, over, ReduceOp::kSum, [&](const auto& i, const auto& r) {
    const Expr difference = load(m.in(0), group.whole(i, r)) - load(mean, i);
    return difference * difference;
  });
  return {mean, m.stage("variance", rest, [&](const te::Indices& i) { return load(squares, i) / count; })};
}

// (x - mean) / sqrt(variance + epsilon) * scale + shift, each of a channel and given.
Result<std::vector<TensorType>> batch_norm_types(const Use& use) {
  if (use.integer("training_mode", 0) != 0) return invalid_argument("training is not served");
  if (use.integer("spatial", 1) != 1) return invalid_argument("spatial = 0 is not served");
  const int64_t channels = use.rank(0) < 2 ? 1 : use.shape(0)[1];
  for (size_t i = 1; i < 5; ++i)
    if (use.shape(i) != Shape{channels})
      return invalid_argument("input ", i, " is ", to_text(use.type(i)), ", expected ", channels, " numbers");
  for (size_t k = 1; k < use.node().outputs.size(); ++k)
    if (use.gives(k)) return invalid_argument("statistics of training are not served");
  return like_first(use);
}
void batch_norm(const Use& use, MathWriter& m) {
  const DType dtype = use.dtype(0);
  const double epsilon = use.number("epsilon", 1e-5);
  m.result([&](const te::Indices& i) {
    const te::Indices channel{i.size() < 2 ? Expr(0) : i[1]};
    const auto of_channel = [&](size_t input) { return as(dtype, load(m.in(input), channel)); };
    const Expr scale = of_channel(1) / root(of_channel(4) + number(dtype, epsilon));
    return (load(m.in(0), i) - of_channel(3)) * scale + of_channel(2);
  });
}

Result<std::vector<TensorType>> instance_norm_types(const Use& use) {
  if (use.rank(0) < 3) return invalid_argument("needs images, got ", use.rank(0), " dimensions");
  for (const size_t i : {1, 2})
    if (use.shape(i) != Shape{use.shape(0)[1]})
      return invalid_argument("input ", i, " is ", to_text(use.type(i)), ", expected ", use.shape(0)[1],
                              " numbers");
  return like_first(use);
}
void instance_norm(const Use& use, MathWriter& m) {
  const Group group{2, use.shape(0).size()};
  const Moments moments = moments_of(use, m, group);
  const Expr epsilon = number(use.dtype(0), use.number("epsilon", 1e-5));
  m.result([&](const te::Indices& i) {
    const te::Indices rest = group.shared(i);
    return (load(m.in(0), i) - load(moments.mean, rest)) / root(load(moments.variance, rest) + epsilon) *
               load(m.in(1), {i[1]}) +
           load(m.in(2), {i[1]});
  });
}

// Groups of channels, and all pixels. Up to operator set 20 scale and shift are of a group, since of a
// channel.
Result<std::vector<TensorType>> group_norm_types(const Use& use) {
  const int64_t groups = use.integer("num_groups", 0);
  if (use.rank(0) < 3 || groups < 1 || use.shape(0)[1] % groups != 0)
    return invalid_argument("num_groups is ", groups, " of ", to_text(use.type(0)));
  const int64_t scales = use.operator_set() < 21 ? groups : use.shape(0)[1];
  if (use.shape(1) != Shape{scales} || use.shape(2) != Shape{scales})
    return invalid_argument("scale and bias are not ", scales, " numbers");
  return like_first(use);
}
void group_norm(const Use& use, MathWriter& m) {
  const Shape& shape = use.shape(0);
  const int64_t groups = use.integer("num_groups", 0), channels = shape[1] / groups;
  const DType dtype = use.dtype(0);
  Shape over{channels};
  over.insert(over.end(), shape.begin() + 2, shape.end());
  const auto element = [&](const te::Indices& i, const te::Indices& r) {
    te::Indices from{i[0], i[1] * Expr(channels) + r[0]};
    from.insert(from.end(), r.begin() + 1, r.end());
    return load(m.in(0), from);
  };
  const Shape rest{shape[0], groups};
  const Expr count = number(dtype, static_cast<double>(elements_of(over)));
  const Buffer sum = m.reduced("sum", rest, over, ReduceOp::kSum, element);
  const Buffer mean = m.stage("mean", rest, [&](const te::Indices& i) { return load(sum, i) / count; });
  const Buffer squares = m.reduced("squares", rest, over, ReduceOp::kSum, [&](const auto& i, const auto& r) {
    const Expr difference = element(i, r) - load(mean, i);
    return difference * difference;
  });
  const Expr epsilon = number(dtype, use.number("epsilon", 1e-5));
  m.result([&](const te::Indices& i) {
    const te::Indices group{i[0], floor_div(i[1], Expr(channels))};
    const te::Indices scaled{use.operator_set() < 21 ? group[1] : i[1]};
    return (load(m.in(0), i) - load(mean, group)) / root(load(squares, group) / count + epsilon) *
               load(m.in(1), scaled) +
           load(m.in(2), scaled);
  });
}

// Over all dimensions from the axis on; scale and shift broadcast to them.
Result<std::vector<TensorType>> layer_norm_types(const Use& use) {
  ASSIGN_OR_RETURN(const int64_t axis, use.axis(-1, use.rank(0)));
  for (const size_t i : {1, 2}) {
    if (!use.has(i)) continue;
    ASSIGN_OR_RETURN(const Shape shape, broadcast(use.shape(0), use.shape(i)));
    if (shape != use.shape(0)) return invalid_argument("input ", i, " is ", to_text(use.type(i)));
  }
  Shape statistics = use.shape(0);
  std::fill(statistics.begin() + axis, statistics.end(), 1);
  ASSIGN_OR_RETURN(std::vector<TensorType> types, like_first(use));
  types.resize(3, {DType::kFloat32, statistics});
  return types;
}
void layer_norm(const Use& use, MathWriter& m) {
  const Group group{static_cast<size_t>(*use.axis(-1, use.rank(0))), use.shape(0).size()};
  const Moments moments = moments_of(use, m, group);
  const Expr epsilon = number(use.dtype(0), use.number("epsilon", 1e-5));
  m.result(0, [&](const te::Indices& i) {
    const te::Indices rest = group.shared(i);
    Expr x = (load(m.in(0), i) - load(moments.mean, rest)) / root(load(moments.variance, rest) + epsilon);
    if (use.has(1)) x = x * at(m.in(1), i);
    if (use.has(2)) x = x + at(m.in(2), i);
    return x;
  });
  m.result(1, [&](const te::Indices& i) { return load(moments.mean, group.shared(i)); });
  m.result(2, [&](const te::Indices& i) {
    return number(use.dtype(0), 1) / root(load(moments.variance, group.shared(i)) + epsilon);
  });
}
// x / sqrt(mean of squares + epsilon) * scale, over all dimensions from the axis on.
Result<std::vector<TensorType>> rms_norm_types(const Use& use) {
  ASSIGN_OR_RETURN(std::vector<TensorType> types, layer_norm_types(use));
  types.resize(1);
  return types;
}
void rms_norm(const Use& use, MathWriter& m) {
  const Group group{static_cast<size_t>(*use.axis(-1, use.rank(0))), use.shape(0).size()};
  const Shape over = group.over(use.shape(0));
  const DType dtype = use.dtype(0);
  const Buffer squares = m.reduced("squares", group.shared(use.shape(0)), over, ReduceOp::kSum,
                                   [&](const auto& i, const auto& r) {
                                     const Expr x = load(m.in(0), group.whole(i, r));
                                     return x * x;
                                   });
  m.result([&](const te::Indices& i) {
    const Expr mean = load(squares, group.shared(i)) / number(dtype, static_cast<double>(elements_of(over)));
    return load(m.in(0), i) / root(mean + number(dtype, use.number("epsilon", 1e-5))) * at(m.in(1), i);
  });
}

// Mean 0 and variance 1 over some axes (each channel's images, unless said otherwise).
Result<std::vector<TensorType>> mvn_types(const Use& use) {
  for (const int64_t axis : use.integers("axes", {0, 2, 3}))
    if (axis < -use.rank(0) || axis >= use.rank(0))
      return invalid_argument("axis ", axis, " is none of the input");
  return like_first(use);
}
void mvn(const Use& use, MathWriter& m) {
  std::vector<bool> reduced(use.shape(0).size(), false);
  for (const int64_t axis : use.integers("axes", {0, 2, 3}))
    reduced[static_cast<size_t>(axis < 0 ? axis + use.rank(0) : axis)] = true;
  Shape over, rest;
  for (size_t d = 0; d < reduced.size(); ++d) (reduced[d] ? over : rest).push_back(use.shape(0)[d]);
  const auto element = [&](const te::Indices& i, const te::Indices& r) {
    te::Indices from;
    size_t next_i = 0, next_r = 0;
    for (const bool is_reduced : reduced) from.push_back(is_reduced ? r[next_r++] : i[next_i++]);
    return load(m.in(0), from);
  };
  const DType dtype = use.dtype(0);
  const Expr count = number(dtype, static_cast<double>(elements_of(over)));
  const Buffer sum = m.reduced("sum", rest, over, ReduceOp::kSum, element);
  const Buffer mean = m.stage("mean", rest, [&](const te::Indices& i) { return load(sum, i) / count; });
  const Buffer squares = m.reduced("squares", rest, over, ReduceOp::kSum, [&](const auto& i, const auto& r) {
    const Expr difference = element(i, r) - load(mean, i);
    return difference * difference;
  });
  m.result([&](const te::Indices& i) {
    te::Indices own;
    for (size_t d = 0; d < i.size(); ++d)
      if (!reduced[d]) own.push_back(i[d]);
    // ONNX adds 1e-9 to the deviation, where others add to the variance.
    return (load(m.in(0), i) - load(mean, own)) / (root(load(squares, own) / count) + number(dtype, 1e-9));
  });
}

// x / (bias + alpha / size * sum of squares of neighbouring channels) ^ beta
Result<std::vector<TensorType>> lrn_types(const Use& use) {
  if (use.rank(0) < 3 || use.integer("size", 0) < 1) return invalid_argument("needs images and a size");
  return like_first(use);
}
void lrn(const Use& use, MathWriter& m) {
  const int64_t size = use.integer("size", 1), before = (size - 1) / 2;
  const DType dtype = use.dtype(0);
  const Buffer squares =
      m.reduced("squares", use.shape(0), {size}, ReduceOp::kSum, [&](const auto& i, const auto& r) {
        te::Indices from = i;
        from[1] = i[1] + r[0] - Expr(before);
        const Expr x = load(m.in(0), from);
        return select(from[1] >= Expr(0) && from[1] < Expr(use.shape(0)[1]), x * x, number(dtype, 0));
      });
  m.result([&](const te::Indices& i) {
    const Expr base = number(dtype, use.number("bias", 1)) +
                      load(squares, i) * number(dtype, use.number("alpha", 1e-4) / static_cast<double>(size));
    return load(m.in(0), i) *
           unary(UnaryOp::kExp, number(dtype, -use.number("beta", 0.75)) * unary(UnaryOp::kLog, base));
  });
}

// x / norm along one axis.
Result<std::vector<TensorType>> lp_norm_types(const Use& use) {
  RETURN_IF_ERROR(use.axis(-1, use.rank(0)).status());
  const int64_t p = use.integer("p", 2);
  if (p != 1 && p != 2) return invalid_argument("p is ", p, ", expected 1 or 2");
  return like_first(use);
}
void lp_norm(const Use& use, MathWriter& m) {
  const auto axis = static_cast<size_t>(*use.axis(-1, use.rank(0)));
  const Group group{axis, axis + 1};
  const bool squares = use.integer("p", 2) == 2;
  const Buffer sum = m.reduced("sum", group.shared(use.shape(0)), group.over(use.shape(0)), ReduceOp::kSum,
                               [&](const auto& i, const auto& r) {
                                 const Expr x = load(m.in(0), group.whole(i, r));
                                 return squares ? x * x : unary(UnaryOp::kAbs, x);
                               });
  m.result([&](const te::Indices& i) {
    const Expr norm = load(sum, group.shared(i));
    return load(m.in(0), i) / (squares ? root(norm) : norm);
  });
}

constexpr auto kKind = OperatorKind::kReduction;
constexpr Operator kRows[] = {
    {"Softmax", kKind, 1, 1, 1, softmax_types, softmax},
    {"LogSoftmax", kKind, 1, 1, 1, softmax_types, log_softmax},
    {"Hardmax", kKind, 1, 1, 1, softmax_types, hardmax},
    {"BatchNormalization", OperatorKind::kElementwise, 5, 5, 5, batch_norm_types, batch_norm},
    {"InstanceNormalization", kKind, 3, 3, 1, instance_norm_types, instance_norm},
    {"GroupNormalization", kKind, 3, 3, 1, group_norm_types, group_norm},
    {"LayerNormalization", kKind, 2, 3, 3, layer_norm_types, layer_norm},
    {"RMSNormalization", kKind, 2, 2, 1, rms_norm_types, rms_norm},
    {"MeanVarianceNormalization", kKind, 1, 1, 1, mvn_types, mvn},
    {"LRN", kKind, 1, 1, 1, lrn_types, lrn},
    {"LpNormalization", kKind, 1, 1, 1, lp_norm_types, lp_norm},
};

}  // namespace
}  // namespace normalization_ops

std::span<const Operator> normalization_operators() { return normalization_ops::kRows; }

}  // namespace tuner::graph
