// Operators that move elements by places found in another tensor. Places beyond the data are brought to its
// nearest end, so that no data can make a kernel read elsewhere.
#include <algorithm>

#include "compiler_core/graph/families.h"

namespace tuner::graph {
namespace gather_ops {
namespace {

// A place as it stands in data: negative ones count from the end.
Expr place(const Expr& element, int64_t extent) {
  const Expr i = element->dtype == DType::kInt64 ? element : cast(DType::kInt64, element);
  return min(max(select(i < Expr(0), i + Expr(extent), i), Expr(0)), Expr(extent - 1));
}
// Places that are known when compiling lie in the data. Number k of the input is one of dimension first + k %
// count.
Status check_places(const Use& use, size_t input, size_t first, size_t count = 1) {
  if (!use.is_constant(input)) return Status::ok();
  ASSIGN_OR_RETURN(const std::vector<int64_t> places, use.integers(input));
  for (size_t k = 0; k < places.size(); ++k) {
    const size_t dimension = first + k % count;
    const int64_t extent = use.shape(0)[dimension];
    if (extent == 0)
      return invalid_argument("index ", places[k], " (element ", k, " of input ", input,
                              ") lies outside of dimension ", dimension, ", which has no elements");
    if (places[k] < -extent || places[k] >= extent)
      return invalid_argument("index ", places[k], " (element ", k, " of input ", input,
                              ") lies outside of dimension ", dimension, ", which has ", extent,
                              ": expected ", -extent, " to ", extent - 1);
  }
  return Status::ok();
}
// Indices that stand beside the data reach no further than they do, but along the axis.
Status check_beside(const Use& use, int64_t axis) {
  bool fits = use.rank(1) == use.rank(0);
  for (size_t d = 0; fits && d < use.shape(0).size(); ++d)
    fits = static_cast<int64_t>(d) == axis || use.shape(1)[d] <= use.shape(0)[d];
  return fits ? Status::ok()
              : invalid_argument("indices are ", to_text(use.type(1)), " for data ", to_text(use.type(0)),
                                 " and axis ", axis);
}

Result<std::vector<TensorType>> gather_types(const Use& use) {
  ASSIGN_OR_RETURN(const int64_t axis, use.axis(0, use.rank(0)));
  RETURN_IF_ERROR(check_places(use, 1, static_cast<size_t>(axis)));
  Shape shape = use.shape(0);
  const auto at_axis = shape.begin() + axis;
  shape.insert(shape.erase(at_axis), use.shape(1).begin(), use.shape(1).end());
  return one({use.dtype(0), shape});
}
void gather(const Use& use, MathWriter& m) {
  const auto axis = static_cast<std::ptrdiff_t>(*use.axis(0, use.rank(0)));
  const auto places = static_cast<std::ptrdiff_t>(use.shape(1).size());
  m.result([&](const te::Indices& i) {
    te::Indices from(i.begin(), i.begin() + axis);
    from.push_back(place(load(m.in(1), te::Indices(i.begin() + axis, i.begin() + axis + places)),
                         use.shape(0)[static_cast<size_t>(axis)]));
    from.insert(from.end(), i.begin() + axis + places, i.end());
    return load(m.in(0), from);
  });
}

Result<std::vector<TensorType>> gather_elements_types(const Use& use) {
  ASSIGN_OR_RETURN(const int64_t axis, use.axis(0, use.rank(0)));
  RETURN_IF_ERROR(check_beside(use, axis));
  RETURN_IF_ERROR(check_places(use, 1, static_cast<size_t>(axis)));
  return one({use.dtype(0), use.shape(1)});
}
void gather_elements(const Use& use, MathWriter& m) {
  const auto axis = static_cast<size_t>(*use.axis(0, use.rank(0)));
  m.result([&](const te::Indices& i) {
    te::Indices from = i;
    from[axis] = place(load(m.in(1), i), use.shape(0)[axis]);
    return load(m.in(0), from);
  });
}

Result<std::vector<TensorType>> gather_nd_types(const Use& use) {
  const int64_t batch = use.integer("batch_dims", 0), depth = use.shape(1).empty() ? 0 : use.shape(1).back();
  if (batch < 0 || batch >= std::min(use.rank(0), use.rank(1)) || depth + batch > use.rank(0) || depth < 1)
    return invalid_argument("indices of ", depth, " places do not fit ", to_text(use.type(0)));
  if (!std::equal(use.shape(1).begin(), use.shape(1).begin() + batch, use.shape(0).begin()))
    return invalid_argument("indices are ", to_text(use.type(1)), " for data ", to_text(use.type(0)),
                            ", of which ", batch, " dimensions are those of the batch");
  RETURN_IF_ERROR(check_places(use, 1, static_cast<size_t>(batch), static_cast<size_t>(depth)));
  Shape shape(use.shape(1).begin(), use.shape(1).end() - 1);
  shape.insert(shape.end(), use.shape(0).begin() + batch + depth, use.shape(0).end());
  return one({use.dtype(0), shape});
}
void gather_nd(const Use& use, MathWriter& m) {
  const auto batch = static_cast<size_t>(use.integer("batch_dims", 0));
  const size_t outer = use.shape(1).size() - 1;
  m.result([&](const te::Indices& i) {
    te::Indices at_place(i.begin(), i.begin() + static_cast<std::ptrdiff_t>(outer)), from;
    for (size_t d = 0; d < batch; ++d) from.push_back(i[d]);
    at_place.emplace_back(0);
    for (int64_t k = 0; k < use.shape(1).back(); ++k) {
      at_place.back() = Expr(k);
      from.push_back(place(load(m.in(1), at_place), use.shape(0)[from.size()]));
    }
    from.insert(from.end(), i.begin() + static_cast<std::ptrdiff_t>(outer), i.end());
    return load(m.in(0), from);
  });
}

Result<std::vector<TensorType>> one_hot_types(const Use& use) {
  ASSIGN_OR_RETURN(const std::vector<double> depth, use.numbers(1));
  ASSIGN_OR_RETURN(int64_t axis, use.axis("axis", -1, use.rank(0) + 1, use.rank(0)));
  if (depth.size() != 1 || depth[0] < 1 || depth[0] > 1e9)
    return invalid_argument("depth is no number of 1 or more");
  if (elements_of(use.shape(2)) != 2) return invalid_argument("values are no two numbers");
  Shape shape = use.shape(0);
  shape.insert(shape.begin() + axis, static_cast<int64_t>(depth[0]));
  return one({use.dtype(2), shape});
}
void one_hot(const Use& use, MathWriter& m) {
  const int64_t axis = *use.axis("axis", -1, use.rank(0) + 1, use.rank(0));
  const int64_t depth = m.type().shape[static_cast<size_t>(axis)];
  m.result([&](const te::Indices& i) {
    te::Indices from = i;
    from.erase(from.begin() + axis);
    const Expr element = load(m.in(0), from);
    const Expr index =
        is_float(element->dtype) ? to_integer(DType::kInt64, element) : cast(DType::kInt64, element);
    const Expr wanted = select(index < Expr(0), index + Expr(depth), index);
    return select(equals(wanted, i[static_cast<size_t>(axis)]), load(m.in(2), {Expr(1)}),
                  load(m.in(2), {Expr(0)}));
  });
}

// Of each row so many elements stand in reverse order, the rest as they are.
Result<std::vector<TensorType>> reverse_sequence_types(const Use& use) {
  const int64_t time = use.integer("time_axis", 0), batch = use.integer("batch_axis", 1);
  if (use.rank(0) < 2 || time + batch != 1)
    return invalid_argument("time_axis and batch_axis are not 0 and 1");
  if (use.shape(1)[0] != use.shape(0)[static_cast<size_t>(batch)])
    return invalid_argument(use.shape(1)[0], " lengths, expected one for each of ",
                            use.shape(0)[static_cast<size_t>(batch)]);
  const int64_t most = use.shape(0)[static_cast<size_t>(time)];
  if (use.is_constant(1)) {
    ASSIGN_OR_RETURN(const std::vector<int64_t> lengths, use.integers(1));
    for (const int64_t length : lengths)
      if (length < 0 || length > most)
        return invalid_argument("a length of ", length, " in dimension ", time, ", which has ", most,
                                ": expected 0 to ", most);
  }
  return like_first(use);
}
void reverse_sequence(const Use& use, MathWriter& m) {
  const auto time = static_cast<size_t>(use.integer("time_axis", 0)),
             batch = static_cast<size_t>(use.integer("batch_axis", 1));
  m.result([&](const te::Indices& i) {
    const Expr length = min(cast(DType::kInt64, load(m.in(1), {i[batch]})), Expr(use.shape(0)[time]));
    te::Indices from = i;
    from[time] = select(i[time] < length, length - Expr(1) - i[time], i[time]);
    return load(m.in(0), from);
  });
}

// --- Scatter: the data with some elements replaced (or added to, ...) ---
// Written from the result's side: each element asks all updates which of them are its own, the last one wins.
// The work is elements times updates, so large ones are refused.
constexpr int64_t kMostScatterWork = int64_t{1} << 28;

constexpr int64_t kMostFactors = int64_t{1} << 24;

bool multiplies(const Use& use) { return use.word("reduction", "none") == "mul"; }
Result<ReduceOp> combination(const Use& use) {  // a product is none: multiplied()
  const std::string way = use.word("reduction", "none");
  if (way == "none" || multiplies(use)) return ReduceOp::kNone;
  if (way == "add") return ReduceOp::kSum;
  if (way == "max") return ReduceOp::kMax;
  if (way == "min") return ReduceOp::kMin;
  return invalid_argument("reduction \"", way, "\" is not served");
}
Status check_scatter(const Use& use) {
  RETURN_IF_ERROR(combination(use).status());
  const int64_t most = multiplies(use) ? kMostFactors : kMostScatterWork;
  if (use.type(0).elements() > most / std::max<int64_t>(use.type(2).elements(), 1))
    return invalid_argument(use.type(2).elements(), " updates of ", use.type(0).elements(),
                            " elements are too many");
  return Status::ok();
}

// Products have no loop of their own: halves of the updates are multiplied until one factor is left.
Buffer multiplied(MathWriter& m, DType dtype, const Shape& updates, const Term& hits, const Term& update) {
  int64_t left = elements_of(updates);
  Shape shape = m.type().shape;
  shape.push_back(left);
  Buffer factors = m.stage("factors", shape, dtype, [&](te::Indices i) {
    const te::Indices r = indices_of(i.back(), updates);
    i.pop_back();
    return select(hits(i, r), update(i, r), number(dtype, 1));
  });
  while (left > 1) {
    const int64_t half = (left + 1) / 2, paired = left - half;
    shape.back() = half;
    factors = m.stage(str("factors", half), shape, dtype, [&](const te::Indices& i) {
      te::Indices other = i;
      other.back() = i.back() + Expr(half);
      return select(i.back() < Expr(paired), load(factors, i) * load(factors, other), load(factors, i));
    });
    left = half;
  }
  return factors;
}

// `hits(i, r)`: whether update r belongs to element i.
void scatter(const Use& use, MathWriter& m, const Shape& updates, const Term& hits, const Term& update) {
  const ReduceOp way = *combination(use);
  const Shape& shape = m.type().shape;
  const DType dtype = use.dtype(0);
  if (multiplies(use)) {
    const Buffer factor = multiplied(m, dtype, updates, hits, update);
    return m.result([&](te::Indices i) {
      const Expr old = load(m.in(0), i);
      i.emplace_back(0);
      return old * load(factor, i);
    });
  }
  if (way == ReduceOp::kNone) {
    const Buffer last = m.reduced("last", shape, updates, ReduceOp::kMax, [&](const auto& i, const auto& r) {
      return select(hits(i, r), flat_index(r, updates), int_imm(-1));
    });
    return m.result([&](const te::Indices& i) {
      const Expr found = load(last, i);
      return select(found < Expr(0), load(m.in(0), i), update(i, indices_of(max(found, Expr(0)), updates)));
    });
  }
  // What is no update of an element leaves it as it is.
  const Buffer all = m.reduced("updates", shape, updates, way, [&](const auto& i, const auto& r) {
    const Expr neutral = way == ReduceOp::kSum ? number(dtype, 0) : load(m.in(0), i);
    return select(hits(i, r), update(i, r), neutral);
  });
  m.result([&](const te::Indices& i) {
    const Expr old = load(m.in(0), i), found = load(all, i);
    return way == ReduceOp::kSum ? old + found : way == ReduceOp::kMax ? max(old, found) : min(old, found);
  });
}

Result<std::vector<TensorType>> scatter_elements_types(const Use& use) {
  RETURN_IF_ERROR(check_scatter(use));
  ASSIGN_OR_RETURN(const int64_t axis, use.axis(0, use.rank(0)));
  if (use.shape(1) != use.shape(2))
    return invalid_argument("indices are ", to_text(use.type(1)), ", updates ", to_text(use.type(2)),
                            ", expected one shape");
  RETURN_IF_ERROR(check_beside(use, axis));
  RETURN_IF_ERROR(check_places(use, 1, static_cast<size_t>(axis)));
  return like_first(use);
}
void scatter_elements(const Use& use, MathWriter& m) {
  const auto axis = static_cast<size_t>(*use.axis(0, use.rank(0)));
  const auto hits = [&](const te::Indices& i, const te::Indices& r) {
    Expr all = equals(place(load(m.in(1), r), use.shape(0)[axis]), i[axis]);
    for (size_t d = 0; d < r.size(); ++d)
      if (d != axis) all = all && equals(r[d], i[d]);
    return all;
  };
  scatter(use, m, use.shape(1), hits,
          [&](const te::Indices& /*i*/, const te::Indices& r) { return load(m.in(2), r); });
}

Result<std::vector<TensorType>> scatter_nd_types(const Use& use) {
  RETURN_IF_ERROR(check_scatter(use));
  const int64_t depth = use.shape(1).empty() ? 0 : use.shape(1).back();
  if (depth < 1 || depth > use.rank(0))
    return invalid_argument("indices of ", depth, " places do not fit the data");
  Shape expected(use.shape(1).begin(), use.shape(1).end() - 1);
  expected.insert(expected.end(), use.shape(0).begin() + depth, use.shape(0).end());
  if (expected != use.shape(2))
    return invalid_argument("updates are ", to_text(use.type(2)), ", expected ",
                            to_text(TensorType{use.dtype(2), expected}));
  RETURN_IF_ERROR(check_places(use, 1, 0, static_cast<size_t>(depth)));
  return like_first(use);
}
void scatter_nd(const Use& use, MathWriter& m) {
  const auto depth = static_cast<size_t>(use.shape(1).back());
  const Shape updates(use.shape(1).begin(), use.shape(1).end() - 1);
  const auto hits = [&](const te::Indices& i, const te::Indices& r) {
    Expr all = bool_imm(true);
    for (size_t k = 0; k < depth; ++k) {
      te::Indices at_place = r;
      at_place.emplace_back(static_cast<int64_t>(k));
      all = all && equals(place(load(m.in(1), at_place), use.shape(0)[k]), i[k]);
    }
    return all;
  };
  scatter(use, m, updates, hits, [&](const te::Indices& i, const te::Indices& r) {
    te::Indices from = r;
    from.insert(from.end(), i.begin() + static_cast<std::ptrdiff_t>(depth), i.end());
    return load(m.in(2), from);
  });
}

constexpr auto kKind = OperatorKind::kMovement;
constexpr Operator kRows[] = {
    {"Gather", kKind, 2, 2, 1, gather_types, gather},
    {"GatherElements", kKind, 2, 2, 1, gather_elements_types, gather_elements},
    {"GatherND", kKind, 2, 2, 1, gather_nd_types, gather_nd},
    {"OneHot", kKind, 3, 3, 1, one_hot_types, one_hot},
    {"ReverseSequence", kKind, 2, 2, 1, reverse_sequence_types, reverse_sequence},
    {"Scatter", kKind, 3, 3, 1, scatter_elements_types, scatter_elements},
    {"ScatterElements", kKind, 3, 3, 1, scatter_elements_types, scatter_elements},
    {"ScatterND", kKind, 3, 3, 1, scatter_nd_types, scatter_nd},
};

}  // namespace
}  // namespace gather_ops

std::span<const Operator> gather_operators() { return gather_ops::kRows; }

}  // namespace tuner::graph
