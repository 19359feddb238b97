// Operators that combine elements along axes.
#include <algorithm>
#include <numeric>

#include "compiler_core/graph/families.h"

namespace tuner::graph {
namespace reduction_ops {
namespace {

// The axes a reduction takes. Without any it takes all, or none where `noop_with_empty_axes` says so.
Result<std::vector<int64_t>> axes_of(const Use& use) {
  ASSIGN_OR_RETURN(const auto given, use.axes("axes", 1, use.rank(0)));
  if (given && !given->empty()) return *given;
  std::vector<int64_t> all(use.shape(0).size());
  if (use.integer("noop_with_empty_axes", 0) != 0) return std::vector<int64_t>();
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// How places in input and result belong together.
struct Reduction {
  Shape result, over;
  std::vector<bool> reduced;  // a dimension of the input
  bool keeps = true;          // reduced dimensions stay, as 1

  te::Indices source(const te::Indices& i, const te::Indices& r) const {
    te::Indices from;
    size_t next_i = 0, next_r = 0;
    for (const bool is_reduced : reduced) {
      from.push_back(is_reduced ? r[next_r] : i[next_i]);
      next_r += is_reduced ? 1 : 0;
      next_i += !is_reduced || keeps ? 1 : 0;
    }
    return from;
  }
};
Reduction along(const Shape& shape, const std::vector<int64_t>& axes, bool keeps) {
  Reduction found{.reduced = std::vector<bool>(shape.size()), .keeps = keeps};
  for (size_t d = 0; d < shape.size(); ++d) {
    found.reduced[d] = std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(d));
    if (found.reduced[d]) found.over.push_back(shape[d]);
    if (!found.reduced[d] || keeps) found.result.push_back(found.reduced[d] ? 1 : shape[d]);
  }
  return found;
}
Reduction reduction_of(const Use& use) {
  return along(use.shape(0), *axes_of(use), use.integer("keepdims", 1) != 0);
}

Result<std::vector<TensorType>> reduced_types(const Use& use) {
  RETURN_IF_ERROR(axes_of(use).status());
  return one({use.dtype(0), reduction_of(use).result});
}

Expr same(const Expr& x) { return x; }
Expr square(const Expr& x) { return x * x; }
Expr size(const Expr& x) {
  if (is_unsigned(x->dtype)) return x;
  return is_float(x->dtype) ? unary(UnaryOp::kAbs, x) : max(x, number(x->dtype, 0) - x);
}
Expr root(const Expr& x) { return unary(UnaryOp::kSqrt, x); }
Expr logarithm(const Expr& x) { return unary(UnaryOp::kLog, x); }

using Formula = Expr (*)(const Expr&);
// kAfter(combination over kBefore of each element)
template <ReduceOp kOp, Formula kBefore, Formula kAfter>
void combined(const Use& use, MathWriter& m) {
  const Reduction along_axes = reduction_of(use);
  const auto term = [&](const te::Indices& i, const te::Indices& r) {
    return kBefore(load(m.in(0), along_axes.source(i, r)));
  };
  if (along_axes.over.empty()) return m.result([&](const te::Indices& i) { return kAfter(term(i, {})); });
  if (kAfter == Formula(same)) return m.reduced_result(along_axes.over, kOp, term);
  const Buffer sum = m.reduced("sum", along_axes.result, along_axes.over, kOp, term);
  m.result([&](const te::Indices& i) { return kAfter(load(sum, i)); });
}

void mean(const Use& use, MathWriter& m) {
  const Reduction along_axes = reduction_of(use);
  const auto term = [&](const te::Indices& i, const te::Indices& r) {
    return load(m.in(0), along_axes.source(i, r));
  };
  if (along_axes.over.empty()) return m.result([&](const te::Indices& i) { return term(i, {}); });
  const Buffer sum = m.reduced("sum", along_axes.result, along_axes.over, ReduceOp::kSum, term);
  const auto count = static_cast<double>(elements_of(along_axes.over));
  m.result([&](const te::Indices& i) {
    const Expr x = load(sum, i);
    return is_float(x->dtype) ? x / number(x->dtype, count) : floor_div(x, number(x->dtype, count));
  });
}

// Products have no loop of their own: halves are multiplied until one element is left.
void product(const Use& use, MathWriter& m) {
  const Reduction along_axes = reduction_of(use);
  int64_t left = elements_of(along_axes.over);
  Shape shape = along_axes.result;
  shape.push_back(left);
  Buffer factors = m.stage("factors", shape, use.dtype(0), [&](te::Indices i) {
    const te::Indices r = indices_of(i.back(), along_axes.over);
    i.pop_back();
    return load(m.in(0), along_axes.source(i, r));
  });
  while (left > 1) {
    const int64_t half = (left + 1) / 2, paired = left - half;
    shape.back() = half;
    factors = m.stage(str("factors", half), shape, use.dtype(0), [&](const te::Indices& i) {
      te::Indices other = i;
      other.back() = i.back() + Expr(half);
      return select(i.back() < Expr(paired), load(factors, i) * load(factors, other), load(factors, i));
    });
    left = half;
  }
  m.result([&](te::Indices i) {
    i.emplace_back(0);
    return load(factors, i);
  });
}

// log(sum of e^x), the largest element taken out first.
void log_sum_exp(const Use& use, MathWriter& m) {
  const Reduction along_axes = reduction_of(use);
  const auto element = [&](const te::Indices& i, const te::Indices& r) {
    return load(m.in(0), along_axes.source(i, r));
  };
  if (along_axes.over.empty()) return m.result([&](const te::Indices& i) { return element(i, {}); });
  const Buffer most = m.reduced("max", along_axes.result, along_axes.over, ReduceOp::kMax, element);
  const Buffer sum = m.reduced(
      "sum", along_axes.result, along_axes.over, ReduceOp::kSum,
      [&](const auto& i, const auto& r) { return unary(UnaryOp::kExp, element(i, r) - load(most, i)); });
  m.result([&](const te::Indices& i) { return logarithm(load(sum, i)) + load(most, i); });
}

// --- ArgMax, ArgMin ---
Result<std::vector<TensorType>> arg_types(const Use& use) {
  ASSIGN_OR_RETURN(const int64_t axis, use.axis(0, use.rank(0)));
  return one({DType::kInt64, along(use.shape(0), {axis}, use.integer("keepdims", 1) != 0).result});
}
template <ReduceOp kOp>
void arg(const Use& use, MathWriter& m) {
  const int64_t axis = *use.axis(0, use.rank(0));
  const Reduction along_axis = along(use.shape(0), {axis}, use.integer("keepdims", 1) != 0);
  const bool last = use.integer("select_last_index", 0) != 0;
  const auto element = [&](const te::Indices& i, const te::Indices& r) {
    return load(m.in(0), along_axis.source(i, r));
  };
  const Buffer best = m.reduced("best", along_axis.result, along_axis.over, kOp, element);
  m.reduced_result(along_axis.over, last ? ReduceOp::kMax : ReduceOp::kMin,
                   [&](const auto& i, const auto& r) {
                     return select(is_extreme(element(i, r), load(best, i)), r[0],
                                   last ? Expr(-1) : Expr(along_axis.over[0]));
                   });
}

// --- CumSum: each element with those before it ---
Result<std::vector<TensorType>> cum_sum_types(const Use& use) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> axis, use.integers(1));
  if (axis[0] < -use.rank(0) || axis[0] >= use.rank(0))
    return invalid_argument("the axis is none of the input");
  return like_first(use);
}
void cum_sum(const Use& use, MathWriter& m) {
  const int64_t given = use.integers(1)->at(0);
  const auto axis = static_cast<size_t>(given < 0 ? given + use.rank(0) : given);
  const bool itself = use.integer("exclusive", 0) == 0, backwards = use.integer("reverse", 0) != 0;
  m.reduced_result({use.shape(0)[axis]}, ReduceOp::kSum, [&](const te::Indices& i, const te::Indices& r) {
    te::Indices from = i;
    from[axis] = r[0];
    const Expr early = backwards ? i[axis] : r[0], late = backwards ? r[0] : i[axis];
    return select(itself ? early <= late : early < late, load(m.in(0), from), number(use.dtype(0), 0));
  });
}

// --- TopK: an element's rank is how many stand before it. A NaN is larger than every number ---
Result<std::vector<TensorType>> top_k_types(const Use& use) {
  ASSIGN_OR_RETURN(const int64_t axis, use.axis(-1, use.rank(0)));
  int64_t k = use.integer("k", 0);
  if (use.has(1)) {
    ASSIGN_OR_RETURN(const std::vector<int64_t> given, use.integers(1));
    k = given.at(0);
  }
  Shape shape = use.shape(0);
  if (k < 0 || k > shape[static_cast<size_t>(axis)])
    return invalid_argument("k is ", k, " of ", shape[static_cast<size_t>(axis)]);
  shape[static_cast<size_t>(axis)] = k;
  return std::vector<TensorType>{{use.dtype(0), shape}, {DType::kInt64, shape}};
}
void top_k(const Use& use, MathWriter& m) {
  const auto axis = static_cast<size_t>(*use.axis(-1, use.rank(0)));
  const bool largest = use.integer("largest", 1) != 0;
  const Shape over{use.shape(0)[axis]};
  const auto moved = [&](te::Indices i, const Expr& to) {
    i[axis] = to;
    return i;
  };
  const Buffer rank =
      m.reduced("rank", use.shape(0), over, ReduceOp::kSum, [&](const auto& i, const auto& r) {
        const Expr own = load(m.in(0), i), other = load(m.in(0), moved(i, r[0]));
        const Expr &greater = largest ? other : own, &less = largest ? own : other;
        const Expr better =
            binary(BinaryOp::kGt, greater, less) || (is_nan(greater) && logical_not(is_nan(less)));
        const Expr alike = equals(other, own) || (is_nan(other) && is_nan(own));
        return select(better || (alike && r[0] < i[axis]), int_imm(1), int_imm(0));
      });
  const Shape& shape = m.type(m.wants(0) ? 0 : 1).shape;
  const Buffer place = m.reduced("place", shape, over, ReduceOp::kSum, [&](const auto& i, const auto& r) {
    return select(equals(load(rank, moved(i, r[0])), i[axis]), r[0], Expr(0));
  });
  m.result(0, [&](const te::Indices& i) { return load(m.in(0), moved(i, load(place, i))); });
  m.result(1, [&](const te::Indices& i) { return load(place, i); });
}

constexpr auto kKind = OperatorKind::kReduction;
constexpr auto kSum = ReduceOp::kSum;
constexpr Operator kRows[] = {
    {"ReduceSum", kKind, 1, 2, 1, reduced_types, combined<kSum, same, same>},
    {"ReduceMax", kKind, 1, 2, 1, reduced_types, combined<ReduceOp::kMax, same, same>},
    {"ReduceMin", kKind, 1, 2, 1, reduced_types, combined<ReduceOp::kMin, same, same>},
    {"ReduceMean", kKind, 1, 2, 1, reduced_types, mean},
    {"ReduceProd", kKind, 1, 2, 1, reduced_types, product},
    {"ReduceL1", kKind, 1, 2, 1, reduced_types, combined<kSum, size, same>},
    {"ReduceL2", kKind, 1, 2, 1, reduced_types, combined<kSum, square, root>},
    {"ReduceSumSquare", kKind, 1, 2, 1, reduced_types, combined<kSum, square, same>},
    {"ReduceLogSum", kKind, 1, 2, 1, reduced_types, combined<kSum, same, logarithm>},
    {"ReduceLogSumExp", kKind, 1, 2, 1, reduced_types, log_sum_exp},
    {"ArgMax", kKind, 1, 1, 1, arg_types, arg<ReduceOp::kMax>},
    {"ArgMin", kKind, 1, 1, 1, arg_types, arg<ReduceOp::kMin>},
    {"CumSum", kKind, 2, 2, 1, cum_sum_types, cum_sum},
    {"TopK", kKind, 1, 2, 2, top_k_types, top_k},
};

}  // namespace
}  // namespace reduction_ops

std::span<const Operator> reduction_operators() { return reduction_ops::kRows; }

}  // namespace tuner::graph
