// What a formula is worth: as a number, and as an expression over the knobs of a space.
#include <algorithm>

#include "compiler_core/base/int_math.h"
#include "templates/space/formula.h"
#include "templates/space/formula_node.h"
#include "templates/space/int_expr.h"

namespace tuner {
namespace {

template <class... Args>
Status at(const FormulaNode& node, const Args&... what) {
  return invalid_argument("column ", node.column, ": ", what...);
}

Status unknown(const FormulaNode& node) { return at(node, "unknown name ", node.text); }

// --- numbers ---

// The value of an operation, with more bits than a result may have.
Result<__int128> exact(const FormulaNode& node, int64_t a, int64_t b) {
  const __int128 wide = a;
  switch (node.op) {
    case IntOp::kAdd:
      return wide + b;
    case IntOp::kSub:
      return wide - b;
    case IntOp::kMul:
      return wide * b;
    case IntOp::kDiv:
    case IntOp::kMod:
      if (b == 0) return at(node, "division by zero");
      if (b == -1) return node.op == IntOp::kDiv ? -wide : __int128{0};
      return __int128{node.op == IntOp::kDiv ? floor_quotient(a, b) : floor_remainder(a, b)};
    case IntOp::kPow: {
      if (b < 0) return at(node, "expected a power of at least 0, found ", b);
      if (a >= -1 && a <= 1) return __int128{b == 0 ? 1 : a == -1 && b % 2 == 0 ? 1 : a};
      __int128 power = 1;
      for (int64_t i = 0; i < b && power <= INT64_MAX && power >= INT64_MIN; ++i) power *= a;
      return power;
    }
    default:
      return __int128{apply(node.op, a, b)};
  }
}

class Evaluation {
 public:
  explicit Evaluation(const Formula::Values& values) : values_(values) {}

  Result<Formula::Value> of(const FormulaNode& node) const {
    switch (node.kind) {
      case FormulaKind::kNumber:
        return Formula::Value(node.number);
      case FormulaKind::kWord:
        return Formula::Value(node.text);
      case FormulaKind::kName: {
        std::optional<Formula::Value> value = values_(node.text);
        if (!value) return unknown(node);
        return std::move(*value);
      }
      case FormulaKind::kApply:
        return applied(node);
      case FormulaKind::kNegate: {
        ASSIGN_OR_RETURN(const int64_t value, number(*node.operands[0]));
        if (value == INT64_MIN) return at(node, "the value does not fit 64 bits");
        return Formula::Value(-value);
      }
      case FormulaKind::kNot: {
        ASSIGN_OR_RETURN(const int64_t value, number(*node.operands[0]));
        return Formula::Value(int64_t{value == 0});
      }
      case FormulaKind::kAnd:
      case FormulaKind::kOr: {
        ASSIGN_OR_RETURN(const int64_t left, number(*node.operands[0]));
        if ((left != 0) == (node.kind == FormulaKind::kOr)) return Formula::Value(int64_t{left != 0});
        ASSIGN_OR_RETURN(const int64_t right, number(*node.operands[1]));
        return Formula::Value(int64_t{right != 0});
      }
    }
    return at(node, "an operation that this program does not know");
  }
  Result<int64_t> number(const FormulaNode& node) const {
    ASSIGN_OR_RETURN(const Formula::Value value, of(node));
    if (const auto* word = std::get_if<std::string>(&value))
      return at(node, "expected a number, found the word \"", *word, "\"");
    return std::get<int64_t>(value);
  }

 private:
  Result<Formula::Value> applied(const FormulaNode& node) const {
    if (node.op == IntOp::kEq || node.op == IntOp::kNe) {
      ASSIGN_OR_RETURN(const Formula::Value a, of(*node.operands[0]));
      ASSIGN_OR_RETURN(const Formula::Value b, of(*node.operands[1]));
      if (a.index() != b.index()) return at(node, "a word is compared with a number");
      return Formula::Value(int64_t{(a == b) == (node.op == IntOp::kEq)});
    }
    ASSIGN_OR_RETURN(const int64_t a, number(*node.operands[0]));
    ASSIGN_OR_RETURN(const int64_t b, number(*node.operands[1]));
    ASSIGN_OR_RETURN(const __int128 value, exact(node, a, b));
    if (value > INT64_MAX || value < INT64_MIN) return at(node, "the value does not fit 64 bits");
    return Formula::Value(static_cast<int64_t>(value));
  }

  const Formula::Values& values_;
};

// --- over knobs ---

class Translation {
 public:
  explicit Translation(const Formula::Space& space) : space_(space) {}

  struct Part {
    IntExpr expr;
    IntRange range;
  };

  // `guarded`: what stands left of it may have excluded the candidates for which it divides by zero.
  Result<Part> of(const FormulaNode& node, bool guarded) const {
    switch (node.kind) {
      case FormulaKind::kNumber:
        return Part{IntExpr(node.number), {node.number, node.number}};
      case FormulaKind::kWord:
        return at(node, "expected a number, found the word \"", node.text, "\"");
      case FormulaKind::kName:
        return name(node);
      case FormulaKind::kApply:
        return applied(node, guarded);
      case FormulaKind::kNegate:
        return joined(node, IntOp::kSub, Part{IntExpr(0), {0, 0}}, of(*node.operands[0], guarded));
      case FormulaKind::kNot:
        return joined(node, IntOp::kEq, of(*node.operands[0], guarded), Part{IntExpr(0), {0, 0}});
      case FormulaKind::kAnd:
        return joined(node, IntOp::kAnd, of(*node.operands[0], guarded), of(*node.operands[1], true));
      case FormulaKind::kOr:
        return joined(node, IntOp::kOr, of(*node.operands[0], guarded), of(*node.operands[1], true));
    }
    return at(node, "an operation that this program does not know");
  }

 private:
  static Result<Part> joined(const FormulaNode&, IntOp op, const Result<Part>& a, const Result<Part>& b) {
    if (!a) return a.status();
    if (!b) return b.status();
    return Part{int_expr(op, a->expr, b->expr), apply(op, a->range, b->range)};
  }
  Result<Part> name(const FormulaNode& node) const {
    const std::optional<Formula::InSpace> found = space_(node.text);
    if (!found) return unknown(node);
    if (!found->labels.empty())
      return at(node, node.text, " is a word: compare it with one of its values, ", node.text, " == \"",
                found->labels[0], "\"");
    const auto [low, high] = std::ranges::minmax(found->candidates);
    return Part{found->expr, {low, high}};
  }
  // name == "word", either way round.
  Result<Part> word_comparison(const FormulaNode& node, const FormulaNode& named,
                               const FormulaNode& word) const {
    if (named.kind != FormulaKind::kName) return at(word, "a word can only be compared with a name");
    const std::optional<Formula::InSpace> found = space_(named.text);
    if (!found) return unknown(named);
    if (found->labels.empty())
      return at(word, "the values of ", named.text, " are numbers, found the word \"", word.text, "\"");
    const auto place = std::ranges::find(found->labels, word.text);
    if (place == found->labels.end()) {
      std::string labels;
      for (const std::string& label : found->labels)
        labels += (labels.empty() ? "\"" : ", \"") + label + "\"";
      return at(word, "expected a value of ", named.text, ", one of ", labels, "; found \"", word.text, "\"");
    }
    const IntExpr position(static_cast<int64_t>(place - found->labels.begin()));
    return Part{int_expr(node.op, found->expr, position), {0, 1}};
  }
  Result<Part> applied(const FormulaNode& node, bool guarded) const {
    const FormulaNode &left = *node.operands[0], &right = *node.operands[1];
    if (node.op == IntOp::kEq || node.op == IntOp::kNe) {
      if (right.kind == FormulaKind::kWord) return word_comparison(node, left, right);
      if (left.kind == FormulaKind::kWord) return word_comparison(node, right, left);
    }
    ASSIGN_OR_RETURN(const Part a, of(left, guarded));
    ASSIGN_OR_RETURN(const Part b, of(right, guarded));
    const bool divides = node.op == IntOp::kDiv || node.op == IntOp::kMod;
    if (divides && !guarded && b.range.lo <= 0 && b.range.hi >= 0)
      return at(node, "the divisor may be 0; exclude that before, as in  d != 0 and n % d == 0");
    if (node.op == IntOp::kPow && !guarded && b.range.lo < 0)
      return at(node, "the power may be negative: it is ", b.range.lo, " at least");
    return joined(node, node.op, a, b);
  }

  const Formula::Space& space_;
};

}  // namespace

Result<int64_t> Formula::value(const Values& values) const { return Evaluation(values).number(*root_); }

Result<IntExpr> Formula::over(const Space& space) const {
  ASSIGN_OR_RETURN(const Translation::Part whole, Translation(space).of(*root_, /*guarded=*/false));
  return whole.expr;
}

}  // namespace tuner
