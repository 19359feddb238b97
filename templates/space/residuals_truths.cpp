// Residuals: comparisons and logic in normal form.
#include <array>
#include <bitset>

#include "templates/space/residuals_impl.h"

namespace tuner {
namespace {

// Different numbers, up to kMostValues of them.
class Distinct {
 public:
  // False: there are too many.
  bool insert(int64_t v) {
    size_t slot = (static_cast<uint64_t>(v) * 0x9e3779b97f4a7c15ull) >> (64 - kBits);
    for (; used_[slot]; slot = (slot + 1) % kSlots)
      if (slots_[slot] == v) return true;
    used_[slot] = true;
    slots_[slot] = v;
    found_.push_back(v);
    return found_.size() <= kMostValues;
  }
  std::vector<int64_t> sorted() && {
    std::sort(found_.begin(), found_.end());
    return std::move(found_);
  }

 private:
  static constexpr size_t kBits = 12, kSlots = size_t{1} << kBits;
  static_assert(kSlots >= 4 * kMostValues);
  std::bitset<kSlots> used_;
  std::array<int64_t, kSlots> slots_;
  std::vector<int64_t> found_;
};

// What `op` makes of each pair, ascending; empty: too many to list.
std::vector<int64_t> combined(IntOp op, const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  if (a.size() * b.size() > 16 * kMostValues) return {};
  Distinct values;
  for (const int64_t x : a)
    for (const int64_t y : b)
      if (!values.insert(apply(op, x, y))) return {};
  return std::move(values).sorted();
}

}  // namespace

const std::vector<int64_t>* Residuals::values_of(ResidualId e) {
  if (node(e).values == -2) return nullptr;
  if (node(e).values >= 0) return &value_sets_[node(e).values];
  node(e).values = -2;
  std::vector<int64_t> values;
  const Node n = node(e);
  if (n.kind == Kind::kTable) {
    values.assign(words_.begin() + n.first, words_.begin() + n.first + n.count);
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
  } else if (n.kind == Kind::kSum || n.kind == Kind::kProduct) {
    values = {n.value};
    const IntOp op = n.kind == Kind::kSum ? IntOp::kAdd : IntOp::kMul;
    for (const ResidualId part : operands(e)) {
      const std::vector<int64_t>* more = values_of(part);
      if (more == nullptr) return nullptr;
      values = combined(op, values, *more);
      if (values.empty()) return nullptr;
    }
  } else if (n.kind < Kind::kLe) {
    const std::vector<ResidualId> parts = operands(e);
    const IntOp op = op_of(n.kind);
    const auto listed = [&](ResidualId part) {
      if (is_constant(part)) return std::vector<int64_t>{constant_value(part)};
      const std::vector<int64_t>* found = values_of(part);
      return found == nullptr ? std::vector<int64_t>{} : *found;
    };
    const std::vector<int64_t> a = listed(parts[0]), b = listed(parts[1]);
    values = combined(op, a, b);
  } else {
    values = {0, 1};
  }
  if (values.empty() || values.size() > kMostValues) return nullptr;
  node(e).values = static_cast<int32_t>(value_sets_.size());
  value_sets_.push_back(std::move(values));
  return &value_sets_.back();
}

ResidualId Residuals::compare(Kind kind, ResidualId a, ResidualId b) {
  if (node(b).kind == Kind::kConst) return compare_with(kind, a, node(b).value);
  const IntRange ra = node(a).range, rb = node(b).range;
  if (sum_is_safe(ra, rb)) return compare_with(kind, sum({a, scaled(b, -1)}, 0), 0);
  const auto holds = [&](int64_t x, int64_t y) {
    return int64_t{kind == Kind::kLe   ? x <= y
                   : kind == Kind::kGe ? x >= y
                   : kind == Kind::kEq ? x == y
                                       : x != y};
  };
  if (const ResidualId t = tabulate({a, b}, [&](int c) { return holds(at(a, c), at(b, c)); });
      t != ResidualId::kNone)
    return t;
  // As written, between expressions that are too large to subtract.
  Node n{.kind = kind, .layers = node(a).layers | node(b).layers, .range = {0, 1}};
  n.first_layer = __builtin_ctzll(n.layers);
  return intern(n, words_of({a, b}));
}

ResidualId Residuals::compare_with(Kind kind, ResidualId f, int64_t t) {
  const IntOp op = kind == Kind::kEq ? IntOp::kEq : kind == Kind::kNe ? IntOp::kNe : IntOp::kLe;
  const auto holds = [&](int64_t v) { return kind == Kind::kGe ? int64_t{v >= t} : apply(op, v, t); };
  if (const ResidualId e = tabulate({f}, [&](int c) { return holds(at(f, c)); }); e != ResidualId::kNone)
    return e;
  const Node n = node(f);
  const bool flat = t > -kSafe && t < kSafe;
  if (n.kind == Kind::kSum && flat && n.value != 0) return compare_with(kind, bare(f), t - n.value);
  if (n.kind == Kind::kProduct && flat && n.value != 1) {
    const int64_t c = n.value;
    const ResidualId rest = bare(f);
    if (kind == Kind::kEq || kind == Kind::kNe)
      return t % c != 0 ? constant(kind == Kind::kNe ? 1 : 0) : compare_with(kind, rest, t / c);
    // c * f <= t is f <= floor(t / c), of a negative c f >= ceil(t / c).
    const bool upper = (kind == Kind::kLe) == (c > 0);
    return compare_with(upper ? Kind::kLe : Kind::kGe, rest,
                        upper ? apply(IntOp::kDiv, t, c) : -apply(IntOp::kDiv, -t, c));
  }
  const IntRange r = n.range;
  if (kind == Kind::kLe && r.hi <= t) return constant(1);
  if (kind == Kind::kLe && r.lo > t) return constant(0);
  if (kind == Kind::kGe && r.lo >= t) return constant(1);
  if (kind == Kind::kGe && r.hi < t) return constant(0);
  if ((kind == Kind::kEq || kind == Kind::kNe) && (t < r.lo || t > r.hi))
    return constant(kind == Kind::kNe ? 1 : 0);
  if (const std::vector<int64_t>* values = values_of(f); values != nullptr) {
    const auto above = std::upper_bound(values->begin(), values->end(), t);
    if (kind == Kind::kLe) {
      if (above == values->begin()) return constant(0);
      if (above == values->end()) return constant(1);
      t = *std::prev(above);
    } else if (kind == Kind::kGe) {
      const auto from = std::lower_bound(values->begin(), values->end(), t);
      if (from == values->end()) return constant(0);
      if (from == values->begin()) return constant(1);
      t = *from;
    } else if (above == values->begin() || *std::prev(above) != t) {
      return constant(kind == Kind::kNe ? 1 : 0);
    }
  }
  Node c{.kind = kind, .value = t, .layers = node(f).layers, .range = {0, 1}};
  c.first_layer = node(f).first_layer;
  return intern(c, words_of({f}));
}

ResidualId Residuals::negated(ResidualId e) {
  const Node n = node(e);
  if (n.kind == Kind::kConst) return constant(n.value == 0 ? 1 : 0);
  if (n.count == 1 && n.kind == Kind::kLe && n.value < INT64_MAX)
    return compare_with(Kind::kGe, operands(e)[0], n.value + 1);
  if (n.count == 1 && n.kind == Kind::kGe && n.value > INT64_MIN)
    return compare_with(Kind::kLe, operands(e)[0], n.value - 1);
  if (n.count == 1 && n.kind == Kind::kEq) return compare_with(Kind::kNe, operands(e)[0], n.value);
  if (n.count == 1 && n.kind == Kind::kNe) return compare_with(Kind::kEq, operands(e)[0], n.value);
  if (n.kind == Kind::kAnd || n.kind == Kind::kOr) {
    std::vector<ResidualId> parts;
    for (const ResidualId part : operands(e)) parts.push_back(negated(part));
    return connect(n.kind == Kind::kAnd ? Kind::kOr : Kind::kAnd, parts);
  }
  return compare_with(Kind::kEq, e, 0);
}

ResidualId Residuals::truth(ResidualId e) {
  const Node& n = node(e);
  if (n.kind >= Kind::kLe) return e;
  if (n.kind == Kind::kTable && n.range.lo == 0 && n.range.hi == 1) return e;
  return compare_with(Kind::kNe, e, 0);
}

// All or any of truths.
ResidualId Residuals::connect(Kind kind, const std::vector<ResidualId>& parts) {
  const int64_t decides = kind == Kind::kAnd ? 0 : 1;  // one such part says it all
  std::vector<ResidualId> flat;
  for (const ResidualId p : parts) {
    const Node& n = node(p);
    if (n.kind == Kind::kConst) {
      if (n.value == decides) return constant(decides);
    } else if (n.kind == kind) {
      for (const ResidualId each : operands(p)) flat.push_back(each);
    } else {
      flat.push_back(p);
    }
  }
  // Tables of one knob are one table.
  std::vector<ResidualId> merged;
  std::vector<bool> used(flat.size(), false);
  for (size_t i = 0; i < flat.size(); ++i) {
    if (used[i]) continue;
    ResidualId e = flat[i];
    if (node(e).kind == Kind::kTable) {
      for (size_t j = i + 1; j < flat.size(); ++j) {
        if (node(flat[j]).kind != Kind::kTable || node(flat[j]).first_layer != node(flat[i]).first_layer)
          continue;
        used[j] = true;
        const ResidualId a = e, b = flat[j];
        if (node(a).kind == Kind::kConst) continue;
        e = tabulate({a, b}, [&](int c) {
          return apply(kind == Kind::kAnd ? IntOp::kAnd : IntOp::kOr, at(a, c), at(b, c));
        });
      }
      if (node(e).kind == Kind::kConst) {
        if (node(e).value == decides) return constant(decides);
        continue;
      }
    }
    merged.push_back(e);
  }
  if (merged.empty()) return constant(1 - decides);
  std::sort(merged.begin(), merged.end());
  merged.erase(std::unique(merged.begin(), merged.end()), merged.end());
  if (merged.size() == 1) return merged[0];
  Node n{.kind = kind, .range = {0, 1}};
  for (const ResidualId e : merged) n.layers |= node(e).layers;
  n.first_layer = __builtin_ctzll(n.layers);
  return intern(n, words_of(merged));
}

}  // namespace tuner
