#include "compiler_core/arith/simplify.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "compiler_core/base/int_math.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/visitor.h"

namespace tuner {
namespace {

using Term = std::pair<Expr, int64_t>;

constexpr int64_t kInfinite = int64_t{1} << 60;  // a bound at or beyond it is no bound

struct Bounds {
  int64_t min = -kInfinite, max = kInfinite;
  bool finite() const { return min > -kInfinite && max < kInfinite; }
};

int64_t clamp(__int128 v) {
  return v >= kInfinite ? kInfinite : v <= -kInfinite ? -kInfinite : static_cast<int64_t>(v);
}
int64_t plus(int64_t a, int64_t b) {
  if (a >= kInfinite || b >= kInfinite) return kInfinite;
  if (a <= -kInfinite || b <= -kInfinite) return -kInfinite;
  return clamp(static_cast<__int128>(a) + b);
}
int64_t times(int64_t a, int64_t b) { return clamp(static_cast<__int128>(a) * b); }
Bounds operator+(const Bounds& a, const Bounds& b) { return {plus(a.min, b.min), plus(a.max, b.max)}; }
Bounds scaled(const Bounds& a, int64_t c) {
  if (c == 0) return {0, 0};
  const int64_t x = times(a.min, c), y = times(a.max, c);
  return {std::min(x, y), std::max(x, y)};
}
Bounds intersect(const Bounds& a, const Bounds& b) {
  return {std::max(a.min, b.min), std::min(a.max, b.max)};
}
Bounds unite(const Bounds& a, const Bounds& b) { return {std::min(a.min, b.min), std::max(a.max, b.max)}; }

bool is_index(const Expr& e) { return e->dtype == DType::kInt64; }
// x // c or x % c with a constant c > 0.
bool has_const_divisor(const Expr& e, int64_t* divisor) {
  return is_const_int(e->operands[1], divisor) && *divisor > 0;
}

void add_term(LinearForm& form, const Expr& atom, int64_t coefficient) {
  if (coefficient == 0) return;
  for (size_t i = 0; i < form.terms.size(); ++i) {
    if (!equal(form.terms[i].first, atom)) continue;
    form.terms[i].second += coefficient;
    if (form.terms[i].second == 0) form.terms.erase(form.terms.begin() + static_cast<std::ptrdiff_t>(i));
    return;
  }
  form.terms.emplace_back(atom, coefficient);
}
void add_form(LinearForm& form, const LinearForm& other, int64_t factor) {
  for (const Term& t : other.terms) add_term(form, t.first, t.second * factor);
  form.constant += other.constant * factor;
}
LinearForm minus(LinearForm a, const LinearForm& b) {
  add_form(a, b, -1);
  return a;
}

class Simplifier {
 public:
  explicit Simplifier(const RangeMap& ranges) : ranges_(ranges) {}

  LinearForm linear(const Expr& e) {
    LinearForm form;
    switch (e->kind) {
      case ExprKind::kIntImm:
        form.constant = e->int_value;
        return form;
      case ExprKind::kVar: {
        const auto range = ranges_.range(e->var.get());
        if (range.has_value() && range->first == range->second)
          form.constant = range->first;
        else
          form.terms.emplace_back(e, 1);
        return form;
      }
      case ExprKind::kUnary:
        if (e->unary_op == UnaryOp::kNeg) {
          add_form(form, linear(e->operands[0]), -1);
          return form;
        }
        break;
      case ExprKind::kBinary:
        return linear_binary(e);
      default:
        break;
    }
    form.terms.emplace_back(map_children(e, [&](const Expr& operand) { return simplify(operand); }), 1);
    return form;
  }

  Expr simplify(const Expr& e) {
    if (!e.defined() || e->operands.empty()) {
      if (e.defined() && e->kind == ExprKind::kVar) return to_expr(linear(e));
      return e;
    }
    Expr result = simplify_node(e);
    return equal(result, e) ? e : result;
  }

  Bounds bounds(const LinearForm& form) {
    Bounds all = plain_bounds(form);
    for (const RangeMap::Fact& fact : ranges_.facts()) all = intersect(all, bounds_by(fact, form));
    return all;
  }

 private:
  Expr simplify_node(const Expr& e) {
    if (is_index(e)) {
      if (e->kind == ExprKind::kSelect) return simplify_select(e);
      return to_expr(linear(e));
    }
    if (e->kind == ExprKind::kSelect) return simplify_select(e);
    if (e->kind == ExprKind::kUnary && e->unary_op == UnaryOp::kNot) return negate(simplify(e->operands[0]));
    if (e->kind == ExprKind::kBinary && e->dtype == DType::kBool) {
      if (e->binary_op == BinaryOp::kAnd) return simplify_and(e);
      if (e->binary_op == BinaryOp::kOr) return simplify(e->operands[0]) || simplify(e->operands[1]);
      if (is_index(e->operands[0]))
        return compare(e->binary_op, minus(linear(e->operands[0]), linear(e->operands[1])));
    }
    return map_children(e, [&](const Expr& operand) { return simplify(operand); });
  }

  Expr simplify_select(const Expr& e) {
    const Expr condition = simplify(e->operands[0]);
    if (condition->kind == ExprKind::kIntImm) return simplify(e->operands[condition->int_value != 0 ? 1 : 2]);
    return select(condition, simplify(e->operands[1]), simplify(e->operands[2]));
  }

  Expr simplify_and(const Expr& e) {
    std::vector<Expr> kept;
    for (const Expr& condition : conjuncts(e)) {
      for (const Expr& part : conjuncts(simplify(condition))) {
        if (part->kind == ExprKind::kIntImm) return bool_imm(false);
        if (std::none_of(kept.begin(), kept.end(), [&](const Expr& other) { return equal(other, part); }))
          kept.push_back(part);
      }
    }
    return conjunction(kept);
  }

  static Expr negate(const Expr& e) {
    if (e->kind == ExprKind::kUnary && e->unary_op == UnaryOp::kNot) return e->operands[0];
    if (e->kind == ExprKind::kBinary && is_index(e->operands[0])) {
      switch (e->binary_op) {
        case BinaryOp::kEq:
          return binary(BinaryOp::kNe, e->operands[0], e->operands[1]);
        case BinaryOp::kNe:
          return binary(BinaryOp::kEq, e->operands[0], e->operands[1]);
        case BinaryOp::kLt:
          return e->operands[0] >= e->operands[1];
        case BinaryOp::kLe:
          return binary(BinaryOp::kGt, e->operands[0], e->operands[1]);
        case BinaryOp::kGt:
          return e->operands[0] <= e->operands[1];
        case BinaryOp::kGe:
          return e->operands[0] < e->operands[1];
        default:
          break;
      }
    }
    return unary(UnaryOp::kNot, e);
  }

  LinearForm linear_binary(const Expr& e) {
    const Expr &a = e->operands[0], &b = e->operands[1];
    LinearForm form;
    int64_t divisor = 0;
    switch (e->binary_op) {
      case BinaryOp::kAdd:
      case BinaryOp::kSub:
        form = linear(a);
        add_form(form, linear(b), e->binary_op == BinaryOp::kAdd ? 1 : -1);
        return recombined(std::move(form));
      case BinaryOp::kMul: {
        const LinearForm la = linear(a), lb = linear(b);
        if (lb.terms.empty())
          add_form(form, la, lb.constant);
        else if (la.terms.empty())
          add_form(form, lb, la.constant);
        else
          form.terms.emplace_back(to_expr(la) * to_expr(lb), 1);
        return form;
      }
      case BinaryOp::kFloorDiv:
        if (has_const_divisor(e, &divisor)) return divided(linear(a), divisor);
        break;
      case BinaryOp::kFloorMod:
        if (has_const_divisor(e, &divisor)) return modulo(linear(a), divisor);
        break;
      case BinaryOp::kMin:
      case BinaryOp::kMax: {
        const LinearForm la = linear(a), lb = linear(b);
        const Bounds d = bounds(minus(la, lb));
        const bool is_min = e->binary_op == BinaryOp::kMin;
        if (d.max <= 0) return is_min ? la : lb;
        if (d.min >= 0) return is_min ? lb : la;
        form.terms.emplace_back(binary(e->binary_op, to_expr(la), to_expr(lb)), 1);
        return form;
      }
      default:
        break;
    }
    const Expr atom = binary(e->binary_op, simplify(a), simplify(b));
    if (atom->kind == ExprKind::kIntImm)
      form.constant = atom->int_value;
    else
      form.terms.emplace_back(atom, 1);
    return form;
  }

  // (x // a) * (a * c) + (y % a) * c is x * c where x and y are equal modulo a: what a fused and split index
  // comes back to. x // (a * b) counts as (x // b) // a.
  LinearForm recombined(LinearForm form) {
    for (size_t i = 0; i < form.terms.size() && form.terms.size() > 1; ++i) {
      const auto [remainder, coefficient] = form.terms[i];
      int64_t a = 0;
      if (!is_binary(remainder, BinaryOp::kFloorMod) || !has_const_divisor(remainder, &a)) continue;
      for (size_t j = 0; j < form.terms.size(); ++j) {
        const auto [quotient, scale] = form.terms[j];
        int64_t divisor = 0;
        if (scale != coefficient * a || !is_binary(quotient, BinaryOp::kFloorDiv) ||
            !has_const_divisor(quotient, &divisor) || divisor % a != 0)
          continue;
        LinearForm x = linear(quotient->operands[0]);
        if (divisor != a) x = divided(x, divisor / a);
        if (!equal_modulo(x, linear(remainder->operands[0]), a)) continue;
        form.terms.erase(form.terms.begin() + static_cast<std::ptrdiff_t>(std::max(i, j)));
        form.terms.erase(form.terms.begin() + static_cast<std::ptrdiff_t>(std::min(i, j)));
        add_form(form, x, coefficient);
        return recombined(std::move(form));
      }
    }
    return with_whole_quotients(std::move(form));
  }

  // (x // a) * (a * c) + (x % a) * c is x * c also where known ranges have made something else of x % a: with
  // f in [0, 3) it is f for x = 16f and a = 3. Done where fewer terms are left.
  LinearForm with_whole_quotients(LinearForm form) {
    for (size_t i = 0; i < form.terms.size() && form.terms.size() > 1; ++i) {
      const auto [quotient, scale] = form.terms[i];
      int64_t a = 0;
      if (!is_binary(quotient, BinaryOp::kFloorDiv) || !has_const_divisor(quotient, &a) || scale % a != 0)
        continue;
      const LinearForm x = linear(quotient->operands[0]);
      LinearForm whole = form;
      whole.terms.erase(whole.terms.begin() + static_cast<std::ptrdiff_t>(i));
      add_form(whole, modulo(x, a), -scale / a);
      add_form(whole, x, scale / a);
      if (whole.terms.size() < form.terms.size()) return recombined(std::move(whole));
    }
    return form;
  }
  bool equal_modulo(const LinearForm& x, const LinearForm& y, int64_t a) {
    LinearForm difference = x;
    add_form(difference, y, -1);
    return difference.constant % a == 0 && std::all_of(difference.terms.begin(), difference.terms.end(),
                                                       [&](const Term& t) { return t.second % a == 0; });
  }

  // rest = g * high + low with low in [0, g), for some g > 1 that divides c. The largest such g is found.
  struct Blocks {
    int64_t g;
    LinearForm high, low;
  };
  std::optional<Blocks> in_blocks(const LinearForm& rest, int64_t c) {
    std::vector<int64_t> candidates;
    for (const Term& t : rest.terms) {
      const int64_t g = std::gcd(t.second, c);
      if (g > 1 && std::find(candidates.begin(), candidates.end(), g) == candidates.end())
        candidates.push_back(g);
    }
    std::sort(candidates.rbegin(), candidates.rend());
    for (const int64_t g : candidates) {
      Blocks blocks{.g = g};
      for (const Term& t : rest.terms) {
        if (t.second % g == 0)
          blocks.high.terms.emplace_back(t.first, t.second / g);
        else
          blocks.low.terms.push_back(t);
      }
      blocks.low.constant = rest.constant;
      const Bounds low = bounds(blocks.low);
      if (!low.finite() || floor_quotient(low.min, g) != floor_quotient(low.max, g)) continue;
      blocks.high.constant = floor_quotient(low.min, g);
      blocks.low.constant -= blocks.high.constant * g;
      return blocks;
    }
    return std::nullopt;
  }

  LinearForm divided(const LinearForm& form, int64_t c) {
    LinearForm result, rest;
    for (const Term& t : form.terms) {
      if (t.second % c == 0)
        result.terms.emplace_back(t.first, t.second / c);
      else
        rest.terms.push_back(t);
    }
    result.constant = floor_quotient(form.constant, c);
    rest.constant = form.constant - result.constant * c;
    if (rest.terms.empty()) return result;
    const Bounds b = bounds(rest);
    if (b.finite() && floor_quotient(b.min, c) == floor_quotient(b.max, c)) {
      result.constant += floor_quotient(b.min, c);
      return result;
    }
    if (const auto blocks = in_blocks(rest, c)) {
      add_form(result, divided(blocks->high, c / blocks->g), 1);
      return result;
    }
    if (rest.terms.size() == 1 && rest.terms[0].second == 1) {
      const Expr& atom = rest.terms[0].first;
      int64_t a = 0;
      // (x // a + k) // c is (x + k*a) // (a*c)
      if (is_binary(atom, BinaryOp::kFloorDiv) && has_const_divisor(atom, &a)) {
        LinearForm x = linear(atom->operands[0]);
        x.constant += rest.constant * a;
        add_form(result, divided(x, a * c), 1);
        return result;
      }
      // (x % a) // c is (x // c) % (a / c) when c divides a
      if (is_binary(atom, BinaryOp::kFloorMod) && has_const_divisor(atom, &a) && a % c == 0 &&
          rest.constant == 0) {
        add_form(result, modulo(divided(linear(atom->operands[0]), c), a / c), 1);
        return result;
      }
    }
    add_term(result, floor_div(to_expr(rest), c), 1);
    return result;
  }

  LinearForm modulo(const LinearForm& form, int64_t c) {
    LinearForm rest;
    for (const Term& t : form.terms) {
      int64_t a = 0;
      // (x % a) * k is x * k modulo c when c divides a * k
      if (is_binary(t.first, BinaryOp::kFloorMod) && has_const_divisor(t.first, &a) && a * t.second % c == 0)
        add_form(rest, linear(t.first->operands[0]), t.second);
      else
        add_term(rest, t.first, t.second);
    }
    std::vector<Term> terms;
    for (Term& t : rest.terms)
      if (t.second % c != 0) terms.emplace_back(t.first, t.second % c);
    rest.terms = std::move(terms);
    rest.constant += form.constant;
    rest.constant = floor_remainder(rest.constant, c);
    if (rest.terms.empty()) return rest;
    const Bounds b = bounds(rest);
    if (b.finite() && floor_quotient(b.min, c) == floor_quotient(b.max, c)) {
      rest.constant -= floor_quotient(b.min, c) * c;
      return rest;
    }
    LinearForm result;
    if (const auto blocks = in_blocks(rest, c)) {
      add_form(result, modulo(blocks->high, c / blocks->g), blocks->g);
      add_form(result, blocks->low, 1);
      return recombined(std::move(result));
    }
    result.terms.emplace_back(floor_mod(to_expr(rest), c), 1);
    return result;
  }

  // The comparison form (op) 0, decided if the ranges decide it.
  Expr compare(BinaryOp op, LinearForm form) {
    form = recombined(std::move(form));
    const Bounds b = bounds(form);
    switch (op) {
      case BinaryOp::kLt:
        if (b.max < 0) return bool_imm(true);
        if (b.min >= 0) return bool_imm(false);
        break;
      case BinaryOp::kLe:
        if (b.max <= 0) return bool_imm(true);
        if (b.min > 0) return bool_imm(false);
        break;
      case BinaryOp::kGt:
        if (b.min > 0) return bool_imm(true);
        if (b.max <= 0) return bool_imm(false);
        break;
      case BinaryOp::kGe:
        if (b.min >= 0) return bool_imm(true);
        if (b.max < 0) return bool_imm(false);
        break;
      case BinaryOp::kEq:
        if (b.min == 0 && b.max == 0) return bool_imm(true);
        if (b.min > 0 || b.max < 0) return bool_imm(false);
        break;
      case BinaryOp::kNe:
        if (b.min == 0 && b.max == 0) return bool_imm(false);
        if (b.min > 0 || b.max < 0) return bool_imm(true);
        break;
      default:
        break;
    }
    Expr result = written(op, std::move(form));
    return ranges_.assumed(result) ? bool_imm(true) : result;
  }

  // terms (op) -constant, divided by what divides all, positive terms on the left.
  Expr written(BinaryOp op, LinearForm form) {
    int64_t g = 0;
    for (const Term& t : form.terms) g = std::gcd(g, t.second);
    int64_t limit = -form.constant;
    // g*high + low < g*m is high < m when low is in [0, g); the same for >=.
    if (g == 1 && (op == BinaryOp::kLt || op == BinaryOp::kGe) && limit != 0) {
      LinearForm terms_only{.terms = form.terms};
      const auto blocks = in_blocks(terms_only, std::abs(limit));
      if (blocks.has_value()) {
        form = blocks->high;
        limit = limit / blocks->g - form.constant;
        form.constant = 0;
        return written(op, {.terms = form.terms, .constant = -limit});
      }
    }
    if (g > 1) {
      if ((op == BinaryOp::kEq || op == BinaryOp::kNe) && limit % g != 0)
        return bool_imm(op == BinaryOp::kNe);
      for (Term& t : form.terms) t.second /= g;
      limit = op == BinaryOp::kLt || op == BinaryOp::kGe ? ceil_div(limit, g) : floor_quotient(limit, g);
    }
    LinearForm left, right;
    for (const Term& t : form.terms) {
      if (t.second > 0)
        left.terms.push_back(t);
      else
        right.terms.emplace_back(t.first, -t.second);
    }
    if (left.terms.empty()) {  // -i < -3 is i > 3
      std::swap(left, right);
      limit = -limit;
      if (op == BinaryOp::kLt)
        op = BinaryOp::kGt;
      else if (op == BinaryOp::kGt)
        op = BinaryOp::kLt;
      else if (op == BinaryOp::kLe)
        op = BinaryOp::kGe;
      else if (op == BinaryOp::kGe)
        op = BinaryOp::kLe;
    }
    if (limit >= 0 || right.terms.empty())
      right.constant = limit;
    else
      left.constant = -limit;
    return binary(op, to_expr(left), to_expr(right));
  }

  Bounds atom_bounds(const Expr& e) {
    int64_t c = 0;
    switch (e->kind) {
      case ExprKind::kIntImm:
        return {e->int_value, e->int_value};
      case ExprKind::kVar: {
        const auto range = ranges_.range(e->var.get());
        return range.has_value() ? Bounds{range->first, range->second} : Bounds{};
      }
      case ExprKind::kBinary:
        break;
      case ExprKind::kSelect:
        return unite(bounds(linear(e->operands[1])), bounds(linear(e->operands[2])));
      default:
        return {};
    }
    switch (e->binary_op) {
      case BinaryOp::kFloorDiv: {
        if (!has_const_divisor(e, &c)) return {};
        const Bounds b = bounds(linear(e->operands[0]));
        return {b.min <= -kInfinite ? b.min : floor_quotient(b.min, c),
                b.max >= kInfinite ? b.max : floor_quotient(b.max, c)};
      }
      case BinaryOp::kFloorMod: {
        if (!has_const_divisor(e, &c)) return {};
        const Bounds b = bounds(linear(e->operands[0]));
        return {0, b.min >= 0 ? std::min(c - 1, b.max) : c - 1};
      }
      case BinaryOp::kMin: {
        const Bounds a = bounds(linear(e->operands[0])), b = bounds(linear(e->operands[1]));
        return {std::min(a.min, b.min), std::min(a.max, b.max)};
      }
      case BinaryOp::kMax: {
        const Bounds a = bounds(linear(e->operands[0])), b = bounds(linear(e->operands[1]));
        return {std::max(a.min, b.min), std::max(a.max, b.max)};
      }
      case BinaryOp::kMul: {
        const Bounds a = bounds(linear(e->operands[0])), b = bounds(linear(e->operands[1]));
        if (!a.finite() || !b.finite()) return {};
        return unite(scaled(a, b.min), scaled(a, b.max));
      }
      case BinaryOp::kXor: {  // of what is not negative: no bit above the highest of either
        const Bounds a = bounds(linear(e->operands[0])), b = bounds(linear(e->operands[1]));
        if (a.min < 0 || b.min < 0 || !a.finite() || !b.finite()) return {};
        const auto bits = static_cast<uint64_t>(std::max(a.max, b.max));
        return {0, static_cast<int64_t>(std::bit_ceil(bits + 1)) - 1};
      }
      default:
        return {};
    }
  }

  Bounds plain_bounds(const LinearForm& form) {
    Bounds all{form.constant, form.constant};
    for (const Term& t : form.terms) all = all + scaled(atom_bounds(t.first), t.second);
    return all;
  }

  // What `fact` says of a form that contains a multiple of it.
  Bounds bounds_by(const RangeMap::Fact& fact, const LinearForm& form) {
    int64_t multiple = 0;
    for (const Term& known : fact.terms) {
      const auto found = std::find_if(form.terms.begin(), form.terms.end(),
                                      [&](const Term& t) { return equal(t.first, known.first); });
      if (found == form.terms.end() || found->second % known.second != 0) return {};
      const int64_t m = found->second / known.second;
      if (multiple != 0 && m != multiple) return {};
      multiple = m;
    }
    if (multiple == 0) return {};
    LinearForm rest = form;
    for (const Term& known : fact.terms) add_term(rest, known.first, -known.second * multiple);
    return scaled({fact.min, fact.max}, multiple) + plain_bounds(rest);
  }

  const RangeMap& ranges_;
};

}  // namespace

void RangeMap::bind(const Var& var, int64_t begin, int64_t end) {
  CHECK(end > begin) << "the range of " << var->name << " is empty: [" << begin << ", " << end << ")";
  for (Range& r : ranges_) {
    if (r.var != var.get()) continue;
    r.min = begin, r.max = end - 1;
    return;
  }
  ranges_.push_back({var.get(), begin, end - 1});
}

std::optional<std::pair<int64_t, int64_t>> RangeMap::range(const VarNode* var) const {
  for (const Range& r : ranges_)
    if (r.var == var) return std::pair(r.min, r.max);
  return std::nullopt;
}

bool RangeMap::assumed(const Expr& condition) const {
  return std::any_of(assumed_.begin(), assumed_.end(), [&](const Expr& e) { return equal(e, condition); });
}

void RangeMap::assume(const Expr& condition) {
  for (const Expr& part : conjuncts(condition)) {
    if (part->kind == ExprKind::kBinary && part->operands[0]->dtype == DType::kInt64) {
      LinearForm form = minus(linear_form(part->operands[0], *this), linear_form(part->operands[1], *this));
      Fact fact{.terms = std::move(form.terms), .min = -kInfinite, .max = kInfinite};
      const int64_t limit = -form.constant;
      switch (part->binary_op) {
        case BinaryOp::kLt:
          fact.max = limit - 1;
          break;
        case BinaryOp::kLe:
          fact.max = limit;
          break;
        case BinaryOp::kGt:
          fact.min = limit + 1;
          break;
        case BinaryOp::kGe:
          fact.min = limit;
          break;
        case BinaryOp::kEq:
          fact.min = fact.max = limit;
          break;
        default:
          break;
      }
      if (!fact.terms.empty() && (fact.min > -kInfinite || fact.max < kInfinite))
        facts_.push_back(std::move(fact));
    }
    assumed_.push_back(part);
  }
}

RangeMap assume_not(const Expr& condition, const RangeMap& ranges) {
  RangeMap otherwise = ranges;
  if (conjuncts(condition).size() == 1) otherwise.assume(simplify(unary(UnaryOp::kNot, condition), ranges));
  return otherwise;
}

Expr simplify(const Expr& e, const RangeMap& ranges) { return Simplifier(ranges).simplify(e); }

Stmt simplify(const Stmt& s, const RangeMap& ranges) {
  if (s == nullptr) return s;
  if (s->kind == StmtKind::kFor) {
    RangeMap inside = ranges;
    inside.bind(s->var, s->extent);
    Stmt body = simplify(s->body, inside);
    return body == nullptr ? nullptr : with_body(s, std::move(body));
  }
  if (s->kind == StmtKind::kIf) {
    const Expr condition = simplify(s->condition, ranges);
    if (condition->kind == ExprKind::kIntImm)
      return simplify(condition->int_value != 0 ? s->body : s->else_body, ranges);
    RangeMap inside = ranges;
    inside.assume(condition);
    Stmt body = simplify(s->body, inside),
         else_body =
             s->else_body == nullptr ? nullptr : simplify(s->else_body, assume_not(condition, ranges));
    if (body == nullptr && else_body == nullptr) return nullptr;
    if (body == nullptr)
      return make_if(simplify(unary(UnaryOp::kNot, condition), ranges), std::move(else_body));
    if (condition.same_as(s->condition) && body == s->body && else_body == s->else_body) return s;
    return make_if(condition, std::move(body), std::move(else_body));
  }
  Simplifier simplifier(ranges);
  return map_children(
      s, [&](const Expr& e) { return simplifier.simplify(e); },
      [&](const Stmt& child) { return simplify(child, ranges); });
}

std::optional<std::pair<int64_t, int64_t>> const_bounds(const Expr& e, const RangeMap& ranges) {
  if (e->dtype != DType::kInt64) return std::nullopt;
  Simplifier simplifier(ranges);
  const Bounds b = simplifier.bounds(simplifier.linear(e));
  if (!b.finite()) return std::nullopt;
  return std::pair(b.min, b.max);
}

bool always_true(const Expr& condition, const RangeMap& ranges) {
  const Expr decided = simplify(condition, ranges);
  return decided->kind == ExprKind::kIntImm && decided->int_value != 0;
}

bool divisible(const Expr& e, int64_t factor, const RangeMap& ranges) {
  int64_t value = 0;
  if (is_const_int(simplify(floor_mod(e, factor), ranges), &value)) return value == 0;
  // The smaller of two multiples is one.
  const LinearForm form = linear_form(e, ranges);
  return form.constant % factor == 0 &&
         std::all_of(form.terms.begin(), form.terms.end(), [&](const Term& term) {
           const int64_t rest = factor / std::gcd(term.second, factor);
           const Expr& t = term.first;
           const bool is_choice = t->kind == ExprKind::kBinary &&
                                  (t->binary_op == BinaryOp::kMin || t->binary_op == BinaryOp::kMax);
           return rest == 1 || (is_choice && divisible(t->operands[0], rest, ranges) &&
                                divisible(t->operands[1], rest, ranges));
         });
}

LinearForm linear_form(const Expr& e, const RangeMap& ranges) { return Simplifier(ranges).linear(e); }

Expr to_expr(const LinearForm& form) {
  // A sum starts with something positive: 3 - i, not -i + 3.
  const auto positive =
      std::find_if(form.terms.begin(), form.terms.end(), [](const Term& t) { return t.second > 0; });
  Expr sum = positive == form.terms.end() ? Expr(form.constant) : positive->first * positive->second;
  for (auto t = form.terms.begin(); t != form.terms.end(); ++t) {
    if (t == positive) continue;
    if (t->second >= 0)
      sum = sum + t->first * t->second;
    else if (is_const_int(sum) && sum->int_value == 0)
      sum = t->first * t->second;
    else
      sum = sum - t->first * -t->second;
  }
  if (positive == form.terms.end()) return sum;
  return form.constant < 0 ? sum - -form.constant : sum + form.constant;
}

bool is_zero(const Expr& e) {
  if (e->kind == ExprKind::kCast) return is_zero(e->operands[0]);
  return (e->kind == ExprKind::kFloatImm && e->float_value == 0) ||
         (e->kind == ExprKind::kIntImm && e->int_value == 0);
}

}  // namespace tuner
