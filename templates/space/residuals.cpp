// Residuals: numbers in normal form, import and substitution. Comparisons and logic: residuals_truths.cpp.
#include <climits>
#include <numeric>

#include "templates/space/residuals_impl.h"

namespace tuner {
uint64_t hash_words(const int64_t* words, size_t n) {
  uint64_t h = 0x9e3779b97f4a7c15ull + n;
  for (size_t i = 0; i < n; ++i) {
    h ^= static_cast<uint64_t>(words[i]) + 0x9e3779b97f4a7c15ull + (h << 12) + (h >> 4);
    h *= 0xff51afd7ed558ccdull;
    h ^= h >> 32;
  }
  return h;
}

ResidualId Residuals::intern(Node made, const std::vector<int64_t>& words) {
  int64_t key[4] = {static_cast<int64_t>(made.kind), made.value, made.first_layer,
                    static_cast<int64_t>(hash_words(words.data(), words.size()))};
  if (made.kind != Kind::kTable) key[2] = 0;
  const uint64_t hash = hash_words(key, 4);
  const auto [begin, end] = ids_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    const Node& known = node(it->second);
    if (known.kind == made.kind && known.value == made.value &&
        known.count == static_cast<int32_t>(words.size()) &&
        (made.kind != Kind::kTable || known.first_layer == made.first_layer) &&
        std::equal(words.begin(), words.end(), words_.begin() + known.first))
      return it->second;
  }
  made.first = static_cast<int64_t>(words_.size());
  made.count = static_cast<int32_t>(words.size());
  words_.insert(words_.end(), words.begin(), words.end());
  const auto id = static_cast<ResidualId>(nodes_.size());
  nodes_.push_back(made);
  ids_.emplace(hash, id);
  return id;
}

ResidualId Residuals::constant(int64_t v) {
  return intern({.kind = Kind::kConst, .value = v, .range = {v, v}}, {});
}

ResidualId Residuals::table_node(int layer, const std::vector<int64_t>& values) {
  const auto [lo, hi] = std::minmax_element(values.begin(), values.end());
  if (*lo == *hi) return constant(*lo);
  int64_t divisor = safe({*lo, *hi}) ? 0 : 1;
  for (size_t i = 0; i < values.size() && divisor != 1; ++i) divisor = std::gcd(divisor, values[i]);
  return intern({.kind = Kind::kTable,
                 .value = divisor,
                 .first_layer = layer,
                 .layers = uint64_t{1} << layer,
                 .range = {*lo, *hi}},
                values);
}

std::vector<int64_t> Residuals::words_of(const std::vector<ResidualId>& ids) {
  std::vector<int64_t> words;
  words.reserve(ids.size());
  for (const ResidualId id : ids) words.push_back(static_cast<int64_t>(id));
  return words;
}

std::vector<ResidualId> Residuals::operands(ResidualId e) const {
  const Node& n = node(e);
  if (n.kind == Kind::kTable) return {};
  std::vector<ResidualId> ids;
  ids.reserve(static_cast<size_t>(n.count));
  for (int32_t i = 0; i < n.count; ++i) ids.push_back(static_cast<ResidualId>(words_[n.first + i]));
  return ids;
}

// The tables of one knob beside each other, what is no table after them.
void Residuals::sort_by_knob(std::vector<ResidualId>& ids) const {
  const auto key = [&](ResidualId e) {
    return std::pair(node(e).kind == Kind::kTable ? node(e).first_layer : INT_MAX, e);
  };
  std::ranges::sort(ids, [&](ResidualId a, ResidualId b) { return key(a) < key(b); });
}

ResidualId Residuals::sum(const std::vector<ResidualId>& terms, int64_t addend) {
  // Flat: terms of sums among the terms, constants aside.
  std::vector<ResidualId> flat;
  int64_t value = addend;
  for (const ResidualId t : terms) {
    const Node& n = node(t);
    if (n.kind == Kind::kConst) {
      value += n.value;
    } else if (n.kind == Kind::kSum) {
      value += n.value;
      for (const ResidualId each : operands(t)) flat.push_back(each);
    } else {
      flat.push_back(t);
    }
  }
  // The tables of one knob are one table.
  sort_by_knob(flat);
  std::vector<ResidualId> merged;
  for (size_t i = 0; i < flat.size();) {
    if (node(flat[i]).kind != Kind::kTable) {
      merged.push_back(flat[i++]);
      continue;
    }
    const int layer = node(flat[i]).first_layer;
    const bool only = i + 1 == flat.size() || node(flat[i + 1]).first_layer != layer ||
                      node(flat[i + 1]).kind != Kind::kTable;
    if (only && node(flat[i]).range.lo == 0) {  // as it is to be
      merged.push_back(flat[i++]);
      continue;
    }
    std::vector<int64_t> values(candidates_[layer]->size(), 0);
    for (; i < flat.size() && node(flat[i]).kind == Kind::kTable && node(flat[i]).first_layer == layer; ++i)
      for (size_t c = 0; c < values.size(); ++c) values[c] += at(flat[i], static_cast<int>(c));
    // Its smallest value goes to the constant, so that tables that differ by a constant are one.
    const int64_t least = *std::min_element(values.begin(), values.end());
    value += least;
    for (int64_t& v : values) v -= least;
    if (const ResidualId t = table_node(layer, values); node(t).kind == Kind::kTable) merged.push_back(t);
  }
  if (merged.empty()) return constant(value);
  if (merged.size() == 1 && node(merged[0]).kind == Kind::kTable) {
    const ResidualId t = merged[0];
    return tabulate({t}, [&](int c) { return at(t, c) + value; });
  }
  if (merged.size() == 1 && value == 0) return merged[0];
  std::sort(merged.begin(), merged.end());
  Node n{.kind = Kind::kSum, .value = value, .range = {value, value}};
  for (const ResidualId t : merged) {
    n.range.lo += node(t).range.lo;
    n.range.hi += node(t).range.hi;
    n.layers |= node(t).layers;
  }
  n.first_layer = __builtin_ctzll(n.layers);
  return intern(n, words_of(merged));
}

ResidualId Residuals::scaled(ResidualId e, int64_t coefficient) { return product({e}, coefficient); }

ResidualId Residuals::bare(ResidualId e) {
  if (node(e).bare == ResidualId::kNone) {
    const ResidualId rest = node(e).kind == Kind::kSum ? sum(operands(e), 0) : product(operands(e), 1);
    node(e).bare = rest;
  }
  return node(e).bare;
}

ResidualId Residuals::product(const std::vector<ResidualId>& factors, int64_t coefficient) {
  std::vector<ResidualId> flat;
  for (const ResidualId f : factors) {
    const Node& n = node(f);
    if (n.kind == Kind::kConst) {
      coefficient *= n.value;
    } else if (n.kind == Kind::kProduct) {
      coefficient *= n.value;
      for (const ResidualId each : operands(f)) flat.push_back(each);
    } else {
      flat.push_back(f);
    }
  }
  if (coefficient == 0 || flat.empty()) return constant(coefficient);
  sort_by_knob(flat);
  std::vector<ResidualId> merged;
  for (size_t i = 0; i < flat.size();) {
    if (node(flat[i]).kind != Kind::kTable) {
      merged.push_back(flat[i++]);
      continue;
    }
    const int layer = node(flat[i]).first_layer;
    const bool only = i + 1 == flat.size() || node(flat[i + 1]).first_layer != layer ||
                      node(flat[i + 1]).kind != Kind::kTable;
    if (only && node(flat[i]).value == 1) {  // as it is to be
      merged.push_back(flat[i++]);
      continue;
    }
    std::vector<int64_t> values(candidates_[layer]->size(), 1);
    for (; i < flat.size() && node(flat[i]).kind == Kind::kTable && node(flat[i]).first_layer == layer; ++i)
      for (size_t c = 0; c < values.size(); ++c) values[c] *= at(flat[i], static_cast<int>(c));
    int64_t divisor = 0;
    for (const int64_t v : values) divisor = std::gcd(divisor, v);
    if (divisor > 1)
      for (int64_t& v : values) v /= divisor;
    if (divisor > 1) coefficient *= divisor;
    const ResidualId t = table_node(layer, values);
    if (node(t).kind == Kind::kConst)
      coefficient *= node(t).value;
    else
      merged.push_back(t);
  }
  if (coefficient == 0 || merged.empty()) return constant(coefficient);
  if (merged.size() == 1) {
    const ResidualId t = merged[0];
    if (node(t).kind == Kind::kTable) return tabulate({t}, [&](int c) { return at(t, c) * coefficient; });
    if (coefficient == 1) return t;
    if (node(t).kind == Kind::kSum) {  // spread, so that sums meet sums
      std::vector<ResidualId> terms = operands(t);
      const int64_t by = magnitude({coefficient, coefficient}), addend = node(t).value;
      bool exact = product_is_safe(magnitude({addend, addend}), by);
      for (const ResidualId each : terms) exact = exact && product_is_safe(magnitude(node(each).range), by);
      if (exact) {
        for (ResidualId& each : terms) each = scaled(each, coefficient);
        return sum(terms, addend * coefficient);
      }
    }
  }
  std::sort(merged.begin(), merged.end());
  Node n{.kind = Kind::kProduct, .value = coefficient, .range = {coefficient, coefficient}};
  for (const ResidualId t : merged) {
    n.range = apply(IntOp::kMul, n.range, node(t).range);
    n.layers |= node(t).layers;
  }
  n.first_layer = __builtin_ctzll(n.layers);
  return intern(n, words_of(merged));
}

// What is left of f % m, with f >= or < 0: floor semantics make constants and coefficients reducible.
ResidualId Residuals::modulo(ResidualId a, ResidualId b) {
  if (node(b).kind != Kind::kConst || node(b).value <= 1 || !safe(node(a).range)) return ResidualId::kNone;
  const int64_t m = node(b).value;
  if (m > (int64_t{1} << 20)) return ResidualId::kNone;
  const IntRange r = node(a).range;
  if (r.lo >= 0 && r.hi < m) return a;
  const auto reduced = [&](int64_t v) { return apply(IntOp::kMod, v, m); };
  if (node(a).kind == Kind::kProduct) {
    const int64_t g = std::gcd(node(a).value, m);
    const int64_t c = apply(IntOp::kMod, node(a).value / g, m / g);
    if (m / g == 1) return constant(0);
    if (g == 1 && c == node(a).value) return ResidualId::kNone;
    if (!product_is_safe(magnitude(r), m)) return ResidualId::kNone;
    const ResidualId f = product(operands(a), c);
    return scaled(binary(IntOp::kMod, f, constant(m / g)), g);
  }
  if (node(a).kind == Kind::kSum) {
    bool changed = reduced(node(a).value) != node(a).value;
    std::vector<ResidualId> terms;
    for (const ResidualId t : operands(a)) {
      ResidualId next = t;
      if (node(t).kind == Kind::kTable)
        next = tabulate({t}, [&](int c) { return reduced(at(t, c)); });
      else if (node(t).kind == Kind::kProduct && reduced(node(t).value) != node(t).value &&
               product_is_safe(magnitude(node(t).range), 64 * m))
        next = product(operands(t), reduced(node(t).value));
      changed = changed || next != t;
      terms.push_back(next);
    }
    if (!changed) return ResidualId::kNone;
    return binary(IntOp::kMod, sum(terms, reduced(node(a).value)), b);
  }
  return ResidualId::kNone;
}

ResidualId Residuals::binary(IntOp op, ResidualId a, ResidualId b) {
  if (const ResidualId t = tabulate({a, b}, [&](int c) { return apply(op, at(a, c), at(b, c)); });
      t != ResidualId::kNone)
    return t;
  const IntRange ra = node(a).range, rb = node(b).range, range = apply(op, ra, rb);
  if (range.is_single()) return constant(range.lo);
  if (op == IntOp::kAdd || op == IntOp::kSub) {
    if (sum_is_safe(ra, rb)) return sum({a, op == IntOp::kSub ? scaled(b, -1) : b}, 0);
  } else if (op == IntOp::kMul) {
    if (product_is_safe(magnitude(ra), magnitude(rb))) return product({a, b}, 1);
  } else if (op == IntOp::kMod) {
    if (const ResidualId e = modulo(a, b); e != ResidualId::kNone) return e;
  } else if (op == IntOp::kMin || op == IntOp::kMax) {
    const bool a_below = ra.hi <= rb.lo, b_below = rb.hi <= ra.lo;
    if (a_below || b_below) return a_below == (op == IntOp::kMin) ? a : b;
    if (a > b) std::swap(a, b);
  }
  Node n{.kind = kind_of(op), .layers = node(a).layers | node(b).layers, .range = range};
  n.first_layer = __builtin_ctzll(n.layers);
  return intern(n, words_of({a, b}));
}

ResidualId Residuals::import(const IntExprNode& e, const std::vector<int>& layer_of) {
  if (e.op == IntOp::kConst) return constant(e.value);
  if (e.op == IntOp::kKnob) {
    const int layer = layer_of[static_cast<size_t>(e.value)];
    return table_node(layer, *candidates_[layer]);
  }
  const ResidualId a = import(*e.a, layer_of), b = import(*e.b, layer_of);
  switch (e.op) {
    case IntOp::kLt:
      // a < b is not (a >= b), also where a + 1 would saturate.
      return node(b).kind == Kind::kConst ? negated(compare(Kind::kGe, a, b))
                                          : negated(compare(Kind::kLe, b, a));
    case IntOp::kLe:
      return node(a).kind == Kind::kConst ? compare(Kind::kGe, b, a) : compare(Kind::kLe, a, b);
    case IntOp::kEq:
      // Not of a truth, or a comparison with 0.
      if (node(b).kind == Kind::kConst && node(b).value == 0 && node(a).kind >= Kind::kLe) return negated(a);
      return node(a).kind == Kind::kConst ? compare(Kind::kEq, b, a) : compare(Kind::kEq, a, b);
    case IntOp::kNe:
      return node(a).kind == Kind::kConst ? compare(Kind::kNe, b, a) : compare(Kind::kNe, a, b);
    case IntOp::kAnd:
      return connect(Kind::kAnd, {truth(a), truth(b)});
    case IntOp::kOr:
      return connect(Kind::kOr, {truth(a), truth(b)});
    default:
      return binary(e.op, a, b);
  }
}

ResidualId Residuals::substitute(ResidualId e, int choice) {
  const int layer = node(e).first_layer;
  if (node(e).kind == Kind::kTable) return constant(at(e, choice));
  if (node(e).substituted < 0) {
    node(e).substituted = static_cast<int64_t>(substituted_.size());
    substituted_.resize(substituted_.size() + candidates_[layer]->size(), ResidualId::kNone);
  }
  const int64_t slot = node(e).substituted + choice;
  if (substituted_[slot] != ResidualId::kNone) return substituted_[slot];
  const Node n = node(e);
  std::vector<ResidualId> parts = operands(e);
  for (ResidualId& part : parts)
    if (node(part).first_layer == layer) part = substitute(part, choice);
  ResidualId result = ResidualId::kNone;
  switch (n.kind) {
    case Kind::kSum:
      result = sum(parts, n.value);
      break;
    case Kind::kProduct:
      result = product(parts, n.value);
      break;
    case Kind::kAdd:
    case Kind::kSub:
    case Kind::kMul:
    case Kind::kDiv:
    case Kind::kMod:
    case Kind::kMin:
    case Kind::kMax:
      result = binary(op_of(n.kind), parts[0], parts[1]);
      break;
    case Kind::kAnd:
    case Kind::kOr:
      for (ResidualId& part : parts) part = truth(part);
      result = connect(n.kind, parts);
      break;
    case Kind::kConst:
    case Kind::kTable:
      CHECK(false) << "a leaf has no operands";
      break;
    default: {
      if (parts.size() == 1) {
        result = compare_with(n.kind, parts[0], n.value);
        break;
      }
      // Between two expressions: the constant goes to the right.
      const bool turned = node(parts[0]).kind == Kind::kConst;
      const Kind kind = !turned               ? n.kind
                        : n.kind == Kind::kLe ? Kind::kGe
                        : n.kind == Kind::kGe ? Kind::kLe
                                              : n.kind;
      result = turned ? compare(kind, parts[1], parts[0]) : compare(kind, parts[0], parts[1]);
      break;
    }
  }
  substituted_[slot] = result;
  return result;
}

}  // namespace tuner
