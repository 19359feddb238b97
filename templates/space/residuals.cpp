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

int Residuals::intern(Node node, const std::vector<int64_t>& words) {
  int64_t key[4] = {static_cast<int64_t>(node.kind), node.value, node.first_layer,
                    static_cast<int64_t>(hash_words(words.data(), words.size()))};
  if (node.kind != Kind::kTable) key[2] = 0;
  const uint64_t hash = hash_words(key, 4);
  const auto [begin, end] = ids_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    const Node& known = nodes_[it->second];
    if (known.kind == node.kind && known.value == node.value &&
        known.count == static_cast<int32_t>(words.size()) &&
        (node.kind != Kind::kTable || known.first_layer == node.first_layer) &&
        std::equal(words.begin(), words.end(), words_.begin() + known.first))
      return it->second;
  }
  node.first = static_cast<int64_t>(words_.size());
  node.count = static_cast<int32_t>(words.size());
  words_.insert(words_.end(), words.begin(), words.end());
  const int id = static_cast<int>(nodes_.size());
  nodes_.push_back(node);
  ids_.emplace(hash, id);
  return id;
}

int Residuals::constant(int64_t v) { return intern({.kind = Kind::kConst, .value = v, .range = {v, v}}, {}); }

int Residuals::table_node(int layer, const std::vector<int64_t>& values) {
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

std::vector<int> Residuals::operands(int e) const {
  const Node& n = nodes_[e];
  if (n.kind == Kind::kTable) return {};
  return {words_.begin() + n.first, words_.begin() + n.first + n.count};
}

// The tables of one knob beside each other, what is no table after them.
void Residuals::sort_by_knob(std::vector<int>& nodes) const {
  const auto key = [&](int e) {
    return std::pair(nodes_[e].kind == Kind::kTable ? nodes_[e].first_layer : INT_MAX, e);
  };
  std::sort(nodes.begin(), nodes.end(), [&](int a, int b) { return key(a) < key(b); });
}

int Residuals::sum(const std::vector<int>& terms, int64_t addend) {
  // Flat: terms of sums among the terms, constants aside.
  std::vector<int> flat;
  int64_t value = addend;
  for (const int t : terms) {
    const Node& n = nodes_[t];
    if (n.kind == Kind::kConst) {
      value += n.value;
    } else if (n.kind == Kind::kSum) {
      value += n.value;
      for (const int each : operands(t)) flat.push_back(each);
    } else {
      flat.push_back(t);
    }
  }
  // The tables of one knob are one table.
  sort_by_knob(flat);
  std::vector<int> merged;
  for (size_t i = 0; i < flat.size();) {
    if (nodes_[flat[i]].kind != Kind::kTable) {
      merged.push_back(flat[i++]);
      continue;
    }
    const int layer = nodes_[flat[i]].first_layer;
    const bool only = i + 1 == flat.size() || nodes_[flat[i + 1]].first_layer != layer ||
                      nodes_[flat[i + 1]].kind != Kind::kTable;
    if (only && nodes_[flat[i]].range.lo == 0) {  // as it is to be
      merged.push_back(flat[i++]);
      continue;
    }
    std::vector<int64_t> values(candidates_[layer]->size(), 0);
    for (; i < flat.size() && nodes_[flat[i]].kind == Kind::kTable && nodes_[flat[i]].first_layer == layer;
         ++i)
      for (size_t c = 0; c < values.size(); ++c) values[c] += at(flat[i], static_cast<int>(c));
    // Its smallest value goes to the constant, so that tables that differ by a constant are one.
    const int64_t least = *std::min_element(values.begin(), values.end());
    value += least;
    for (int64_t& v : values) v -= least;
    if (const int t = table_node(layer, values); nodes_[t].kind == Kind::kTable) merged.push_back(t);
  }
  if (merged.empty()) return constant(value);
  if (merged.size() == 1 && nodes_[merged[0]].kind == Kind::kTable) {
    const int t = merged[0];
    return tabulate({t}, [&](int c) { return at(t, c) + value; });
  }
  if (merged.size() == 1 && value == 0) return merged[0];
  std::sort(merged.begin(), merged.end());
  Node n{.kind = Kind::kSum, .value = value, .range = {value, value}};
  for (const int t : merged) {
    n.range.lo += nodes_[t].range.lo;
    n.range.hi += nodes_[t].range.hi;
    n.layers |= nodes_[t].layers;
  }
  n.first_layer = __builtin_ctzll(n.layers);
  return intern(n, {merged.begin(), merged.end()});
}

int Residuals::scaled(int e, int64_t coefficient) { return product({e}, coefficient); }

int Residuals::bare(int e) {
  if (nodes_[e].bare < 0) {
    const int rest = nodes_[e].kind == Kind::kSum ? sum(operands(e), 0) : product(operands(e), 1);
    nodes_[e].bare = rest;
  }
  return nodes_[e].bare;
}

int Residuals::product(const std::vector<int>& factors, int64_t coefficient) {
  std::vector<int> flat;
  for (const int f : factors) {
    const Node& n = nodes_[f];
    if (n.kind == Kind::kConst) {
      coefficient *= n.value;
    } else if (n.kind == Kind::kProduct) {
      coefficient *= n.value;
      for (const int each : operands(f)) flat.push_back(each);
    } else {
      flat.push_back(f);
    }
  }
  if (coefficient == 0 || flat.empty()) return constant(coefficient);
  sort_by_knob(flat);
  std::vector<int> merged;
  for (size_t i = 0; i < flat.size();) {
    if (nodes_[flat[i]].kind != Kind::kTable) {
      merged.push_back(flat[i++]);
      continue;
    }
    const int layer = nodes_[flat[i]].first_layer;
    const bool only = i + 1 == flat.size() || nodes_[flat[i + 1]].first_layer != layer ||
                      nodes_[flat[i + 1]].kind != Kind::kTable;
    if (only && nodes_[flat[i]].value == 1) {  // as it is to be
      merged.push_back(flat[i++]);
      continue;
    }
    std::vector<int64_t> values(candidates_[layer]->size(), 1);
    for (; i < flat.size() && nodes_[flat[i]].kind == Kind::kTable && nodes_[flat[i]].first_layer == layer;
         ++i)
      for (size_t c = 0; c < values.size(); ++c) values[c] *= at(flat[i], static_cast<int>(c));
    int64_t divisor = 0;
    for (const int64_t v : values) divisor = std::gcd(divisor, v);
    if (divisor > 1)
      for (int64_t& v : values) v /= divisor;
    if (divisor > 1) coefficient *= divisor;
    const int t = table_node(layer, values);
    if (nodes_[t].kind == Kind::kConst)
      coefficient *= nodes_[t].value;
    else
      merged.push_back(t);
  }
  if (coefficient == 0 || merged.empty()) return constant(coefficient);
  if (merged.size() == 1) {
    const int t = merged[0];
    if (nodes_[t].kind == Kind::kTable) return tabulate({t}, [&](int c) { return at(t, c) * coefficient; });
    if (coefficient == 1) return t;
    if (nodes_[t].kind == Kind::kSum) {  // spread, so that sums meet sums
      std::vector<int> terms = operands(t);
      const int64_t by = magnitude({coefficient, coefficient}), addend = nodes_[t].value;
      bool exact = product_is_safe(magnitude({addend, addend}), by);
      for (const int each : terms) exact = exact && product_is_safe(magnitude(nodes_[each].range), by);
      if (exact) {
        for (int& each : terms) each = scaled(each, coefficient);
        return sum(terms, addend * coefficient);
      }
    }
  }
  std::sort(merged.begin(), merged.end());
  Node n{.kind = Kind::kProduct, .value = coefficient, .range = {coefficient, coefficient}};
  for (const int t : merged) {
    n.range = apply(IntOp::kMul, n.range, nodes_[t].range);
    n.layers |= nodes_[t].layers;
  }
  n.first_layer = __builtin_ctzll(n.layers);
  return intern(n, {merged.begin(), merged.end()});
}

// What is left of f % m, with f >= or < 0: floor semantics make constants and coefficients reducible.
int Residuals::modulo(int a, int b) {
  if (nodes_[b].kind != Kind::kConst || nodes_[b].value <= 1 || !safe(nodes_[a].range)) return -1;
  const int64_t m = nodes_[b].value;
  if (m > (int64_t{1} << 20)) return -1;
  const IntRange r = nodes_[a].range;
  if (r.lo >= 0 && r.hi < m) return a;
  const auto reduced = [&](int64_t v) { return apply(IntOp::kMod, v, m); };
  if (nodes_[a].kind == Kind::kProduct) {
    const int64_t g = std::gcd(nodes_[a].value, m);
    const int64_t c = apply(IntOp::kMod, nodes_[a].value / g, m / g);
    if (m / g == 1) return constant(0);
    if (g == 1 && c == nodes_[a].value) return -1;
    if (!product_is_safe(magnitude(r), m)) return -1;
    const int f = product(operands(a), c);
    return scaled(binary(IntOp::kMod, f, constant(m / g)), g);
  }
  if (nodes_[a].kind == Kind::kSum) {
    bool changed = reduced(nodes_[a].value) != nodes_[a].value;
    std::vector<int> terms;
    for (const int t : operands(a)) {
      int next = t;
      if (nodes_[t].kind == Kind::kTable)
        next = tabulate({t}, [&](int c) { return reduced(at(t, c)); });
      else if (nodes_[t].kind == Kind::kProduct && reduced(nodes_[t].value) != nodes_[t].value &&
               product_is_safe(magnitude(nodes_[t].range), 64 * m))
        next = product(operands(t), reduced(nodes_[t].value));
      changed = changed || next != t;
      terms.push_back(next);
    }
    if (!changed) return -1;
    return binary(IntOp::kMod, sum(terms, reduced(nodes_[a].value)), b);
  }
  return -1;
}

int Residuals::binary(IntOp op, int a, int b) {
  if (const int t = tabulate({a, b}, [&](int c) { return apply(op, at(a, c), at(b, c)); }); t >= 0) return t;
  const IntRange ra = nodes_[a].range, rb = nodes_[b].range, range = apply(op, ra, rb);
  if (range.is_single()) return constant(range.lo);
  if (op == IntOp::kAdd || op == IntOp::kSub) {
    if (sum_is_safe(ra, rb)) return sum({a, op == IntOp::kSub ? scaled(b, -1) : b}, 0);
  } else if (op == IntOp::kMul) {
    if (product_is_safe(magnitude(ra), magnitude(rb))) return product({a, b}, 1);
  } else if (op == IntOp::kMod) {
    if (const int e = modulo(a, b); e >= 0) return e;
  } else if (op == IntOp::kMin || op == IntOp::kMax) {
    const bool a_below = ra.hi <= rb.lo, b_below = rb.hi <= ra.lo;
    if (a_below || b_below) return a_below == (op == IntOp::kMin) ? a : b;
    if (a > b) std::swap(a, b);
  }
  Node n{.kind = kind_of(op), .layers = nodes_[a].layers | nodes_[b].layers, .range = range};
  n.first_layer = __builtin_ctzll(n.layers);
  return intern(n, {a, b});
}

int Residuals::import(const IntExprNode& e, const std::vector<int>& layer_of) {
  if (e.op == IntOp::kConst) return constant(e.value);
  if (e.op == IntOp::kKnob) {
    const int layer = layer_of[static_cast<size_t>(e.value)];
    return table_node(layer, *candidates_[layer]);
  }
  const int a = import(*e.a, layer_of), b = import(*e.b, layer_of);
  switch (e.op) {
    case IntOp::kLt:
      // a < b is not (a >= b), also where a + 1 would saturate.
      return nodes_[b].kind == Kind::kConst ? negated(compare(Kind::kGe, a, b))
                                            : negated(compare(Kind::kLe, b, a));
    case IntOp::kLe:
      return nodes_[a].kind == Kind::kConst ? compare(Kind::kGe, b, a) : compare(Kind::kLe, a, b);
    case IntOp::kEq:
      // Not of a truth, or a comparison with 0.
      if (nodes_[b].kind == Kind::kConst && nodes_[b].value == 0 && nodes_[a].kind >= Kind::kLe)
        return negated(a);
      return nodes_[a].kind == Kind::kConst ? compare(Kind::kEq, b, a) : compare(Kind::kEq, a, b);
    case IntOp::kNe:
      return nodes_[a].kind == Kind::kConst ? compare(Kind::kNe, b, a) : compare(Kind::kNe, a, b);
    case IntOp::kAnd:
      return connect(Kind::kAnd, {truth(a), truth(b)});
    case IntOp::kOr:
      return connect(Kind::kOr, {truth(a), truth(b)});
    default:
      return binary(e.op, a, b);
  }
}

int Residuals::substitute(int e, int choice) {
  const int layer = nodes_[e].first_layer;
  if (nodes_[e].kind == Kind::kTable) return constant(at(e, choice));
  if (nodes_[e].substituted < 0) {
    nodes_[e].substituted = static_cast<int64_t>(substituted_.size());
    substituted_.resize(substituted_.size() + candidates_[layer]->size(), -1);
  }
  const int64_t slot = nodes_[e].substituted + choice;
  if (substituted_[slot] >= 0) return substituted_[slot];
  const Node n = nodes_[e];
  std::vector<int> parts = operands(e);
  for (int& part : parts)
    if (nodes_[part].first_layer == layer) part = substitute(part, choice);
  int result = -1;
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
    case Kind::kPow:
    case Kind::kMin:
    case Kind::kMax:
      result = binary(op_of(n.kind), parts[0], parts[1]);
      break;
    case Kind::kAnd:
    case Kind::kOr:
      for (int& part : parts) part = truth(part);
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
      const bool turned = nodes_[parts[0]].kind == Kind::kConst;
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
