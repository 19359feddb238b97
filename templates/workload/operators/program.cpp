#include "templates/workload/operators/program.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "compiler_core/graph/fragment.h"
#include "compiler_core/graph/operator.h"
#include "compiler_core/ir/visitor.h"
#include "templates/workload/parts/limits.h"
#include "templates/workload/parts/operator.h"

namespace tuner {
namespace {

// Calls f with each store and how often it runs.
template <class F>
void visit_stores(const Stmt& s, double times, const F& f) {
  if (s == nullptr) return;
  if (s->kind == StmtKind::kStore) return f(*s, times);
  if (s->kind == StmtKind::kFor) times *= static_cast<double>(s->extent);
  visit_stores(s->body, times, f);
  visit_stores(s->else_body, times, f);
  for (const Stmt& child : s->stmts) visit_stores(child, times, f);
}

// Operations on elements; those on indices do not count.
double operations(const Expr& e) {
  if (e->kind == ExprKind::kLoad) return 0;
  double n = 0;
  for (const Expr& operand : e->operands) n += operations(operand);
  const bool counts = e->kind == ExprKind::kBinary || e->kind == ExprKind::kUnary;
  return n + (counts && is_float(e->dtype) ? 1 : 0);
}

// --- how far a right answer may be off ---
// What is known of a value: its range, and that what float32 makes of it is at most `absolute` + `relative` *
// |value| from what exact numbers make.
struct Known {
  double low = 0, high = 0, absolute = 0, relative = 0;

  double size() const { return std::max(std::fabs(low), std::fabs(high)); }
  bool exact() const { return absolute == 0 && relative == 0; }
  // The most it is off anywhere.
  double error() const { return relative == 0 ? absolute : absolute + relative * size(); }
};

constexpr double kUnit = 0x1p-24;     // the most one operation errs, relative to its result
constexpr double kFunctionUnits = 8;  // of exp, tanh and the like, on every target
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr Known kAnything{-kInfinity, kInfinity, kInfinity, 0};

// Values of operands as they are drawn (runner/input_data.h).
Known drawn(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return {0, 1};
    case DType::kUInt8:
      return {0, 255};
    case DType::kInt8:
      return {-128, 127};
    case DType::kInt32:
      return {-0x1p20, 0x1p20};
    case DType::kInt64:
      return {-32, 223};
    case DType::kInt16:
      return {-0x1p15, 0x1p15 - 1};
    case DType::kUInt16:
    case DType::kUInt32:
    case DType::kUInt64:
      return {0, 0x1p16 - 1};
    default:
      return {-1, 1};
  }
}

class ErrorBounds {
 public:
  // Of the values stored to the result.
  Known of(const Program& program) {
    visit(program.body, [&](const Stmt& s) {
      if (s->kind == StmtKind::kFor) extents_[s->var] = s->extent;
    });
    for (const Buffer& arg : program.args)
      if (is_given(arg->role)) known_[arg] = drawn(arg->dtype);
    visit_nests(program.body);
    return known_[program.args.back()];
  }

 private:
  void visit_nests(const Stmt& s) {
    visit_stores(s, 1, [&](const StmtNode& store, double) {
      const Known value = of(store.value);
      known_[store.buffer] = store.reduce == ReduceOp::kNone  ? value
                             : store.reduce == ReduceOp::kSum ? sum(value, terms_of(store))
                                                              : value;
    });
  }
  // Terms of a reduction: `first` compares each of its axes with 0; their extents are the loops'.
  double terms_of(const StmtNode& store) const {
    double n = 1;
    visit(store.first, [&](const Expr& e) {
      if (e->kind == ExprKind::kVar) n *= static_cast<double>(extents_.at(e->var));
    });
    return n;
  }
  // Roundings of a sum are independent: eight of their standard deviations are never reached (tolerance.cpp).
  // What terms are off by may all be of one sign.
  static Known sum(const Known& term, double n) {
    const double rounding = 8 * kUnit * n * std::sqrt(n / 3) * term.size();
    return {n * term.low, n * term.high, n * term.error() + (n > 1 ? rounding : 0), 0};
  }

  Known of(const Expr& e) {
    if (!is_float(e->dtype)) return of_integer(e);
    switch (e->kind) {
      case ExprKind::kFloatImm:
        return {e->float_value, e->float_value, 0,
                static_cast<double>(static_cast<float>(e->float_value)) == e->float_value ? 0 : kUnit};
      case ExprKind::kLoad:
        return known_.contains(e->buffer) ? known_[e->buffer] : kAnything;
      case ExprKind::kSelect: {
        const Known a = of(e->operands[1]), b = of(e->operands[2]);
        const Known either{std::min(a.low, b.low), std::max(a.high, b.high), std::max(a.absolute, b.absolute),
                           std::max(a.relative, b.relative)};
        if (decides_exactly(e->operands[0])) return either;
        // Either may be taken where the other should be.
        return {either.low, either.high, either.absolute + (either.high - either.low), either.relative};
      }
      case ExprKind::kCast: {
        Known x = of(e->operands[0]);
        const DType from = e->operands[0]->dtype;
        if (dtype_bytes(e->dtype) == 2) x.relative += e->dtype == DType::kFloat16 ? 0x1p-11 : 0x1p-8;
        if (!is_float(from) && dtype_bytes(from) > 2) x.relative += kUnit;
        return x;
      }
      case ExprKind::kBinary:
        return binary(e->binary_op, of(e->operands[0]), of(e->operands[1]));
      case ExprKind::kUnary:
        return unary(e->unary_op, of(e->operands[0]));
      default:
        return kAnything;
    }
  }
  // Integers are exact unless they are made from rounded floats.
  Known of_integer(const Expr& e) {
    if (e->kind == ExprKind::kIntImm)
      return {static_cast<double>(e->int_value), static_cast<double>(e->int_value)};
    if (e->kind == ExprKind::kLoad && known_.contains(e->buffer)) return known_[e->buffer];
    if (e->kind == ExprKind::kCast) {
      Known x = of(e->operands[0]);
      if (!x.exact()) x = {x.low, x.high, x.error() + 1, 0};
      return x;
    }
    if (e->kind == ExprKind::kSelect) {
      const Known a = of(e->operands[1]), b = of(e->operands[2]);
      return {std::min(a.low, b.low), std::max(a.high, b.high), std::max(a.error(), b.error()), 0};
    }
    return {-0x1p31, 0x1p31, exact_below(e) ? 0 : kInfinity, 0};
  }
  // Nothing in it was rounded.
  bool exact_below(const Expr& e) {
    bool exact = true;
    visit(e, [&](const Expr& at) {
      if (at->kind == ExprKind::kLoad && known_.contains(at->buffer))
        exact = exact && known_[at->buffer].exact();
      if (at->kind == ExprKind::kUnary && is_float(at->dtype)) exact = false;
      if (at->kind == ExprKind::kBinary && is_float(at->dtype)) exact = false;
    });
    return exact;
  }
  bool decides_exactly(const Expr& condition) { return exact_below(condition); }

  static Known with_rounding(Known x, double units = 1) {
    x.relative += units * kUnit;
    return x;
  }
  static Known binary(BinaryOp op, const Known& a, const Known& b) {
    switch (op) {
      case BinaryOp::kAdd:
      case BinaryOp::kSub: {
        const bool minus = op == BinaryOp::kSub;
        return with_rounding({a.low + (minus ? -b.high : b.low), a.high + (minus ? -b.low : b.high),
                              a.error() + b.error(), 0});
      }
      case BinaryOp::kMul: {
        const double ends[] = {a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high};
        Known x{*std::ranges::min_element(ends), *std::ranges::max_element(ends)};
        if (a.absolute == 0 && b.absolute == 0)
          x.relative = a.relative + b.relative;
        else
          x.absolute = a.size() * b.error() + b.size() * a.error() + a.error() * b.error();
        return with_rounding(x);
      }
      case BinaryOp::kDiv: {
        const bool crosses = b.low - b.error() <= 0 && b.high + b.error() >= 0;
        if (a.absolute == 0 && b.absolute == 0 && crosses)
          return with_rounding({-kInfinity, kInfinity, 0, a.relative + b.relative});
        if (crosses) return kAnything;
        const double least = std::min(std::fabs(b.low), std::fabs(b.high)) - b.error();
        const double ends[] = {a.low / b.low, a.low / b.high, a.high / b.low, a.high / b.high};
        Known x{*std::ranges::min_element(ends), *std::ranges::max_element(ends)};
        x.absolute = (a.error() + x.size() * b.error()) / least;
        return with_rounding(x);
      }
      case BinaryOp::kMin:
        return {std::min(a.low, b.low), std::min(a.high, b.high), std::max(a.absolute, b.absolute),
                std::max(a.relative, b.relative)};
      case BinaryOp::kMax:
      case BinaryOp::kAtLeast:
        return {std::max(a.low, b.low), std::max(a.high, b.high), std::max(a.absolute, b.absolute),
                std::max(a.relative, b.relative)};
      default:
        return kAnything;
    }
  }
  // f is monotone with a slope of at most `slope`.
  static Known function(const Known& x, double (*f)(double), double slope) {
    return with_rounding({f(x.low), f(x.high), slope * x.error(), 0}, kFunctionUnits);
  }
  static Known unary(UnaryOp op, const Known& x) {
    switch (op) {
      case UnaryOp::kNeg:
        return {-x.high, -x.low, x.absolute, x.relative};
      case UnaryOp::kAbs:
        return {0, x.size(), x.absolute, x.relative};
      case UnaryOp::kExp:
        // exp by powers of two errs by half a last place of x * log2(e), too.
        return with_rounding({std::exp(x.low), std::exp(x.high), 0, std::expm1(x.error())},
                             kFunctionUnits + 2 * x.size());
      case UnaryOp::kTanh:
        return function(
            x, [](double v) { return std::tanh(v); }, 1);
      case UnaryOp::kErf:
        return function(
            x, [](double v) { return std::erf(v); }, 1.13);
      case UnaryOp::kSqrt:
        if (x.absolute == 0)
          return with_rounding(
              {std::sqrt(std::max(0.0, x.low)), std::sqrt(std::max(0.0, x.high)), 0, x.relative});
        if (x.low - x.error() <= 0)
          return {0, std::sqrt(std::max(0.0, x.high)), std::sqrt(2 * x.error()), kUnit};
        return with_rounding(
            {std::sqrt(x.low), std::sqrt(x.high), x.error() / (2 * std::sqrt(x.low - x.error())), 0});
      case UnaryOp::kFloor:
      case UnaryOp::kRound:
        return {std::floor(x.low), std::ceil(x.high), x.exact() ? 0 : x.error() + 1, 0};
      case UnaryOp::kSin:
      case UnaryOp::kCos:
        return {-1, 1, x.error() + kFunctionUnits * kUnit, 0};
      case UnaryOp::kAtan:
      case UnaryOp::kAsinh:
        return {-std::max(2.0, x.size()), std::max(2.0, x.size()),
                x.error() + kFunctionUnits * kUnit * std::max(2.0, x.size()), 0};
      case UnaryOp::kLog:
        if (x.low - x.error() <= 0)
          return x.exact()
                     ? Known{-kInfinity, std::log(x.high), kFunctionUnits * kUnit * 2, kFunctionUnits * kUnit}
                     : kAnything;
        return {std::log(x.low), std::log(x.high), x.error() / (x.low - x.error()) + kFunctionUnits * kUnit,
                kFunctionUnits * kUnit};
      default:
        return kAnything;
    }
  }

  std::map<Buffer, Known> known_;
  std::map<Var, int64_t> extents_;
};

// Returns what its graph says of a program: its text, its type and its operations, which are counted once:
// flops() is asked for often.
Status set_fragment(ProgramWorkload& w, graph::Graph fragment) {
  w.text = graph::fragment_text(fragment);
  w.dtype = fragment[fragment.outputs[0]].type.dtype;
  w.fragment = std::make_shared<const graph::Graph>(std::move(fragment));
  const Program math = graph::program_of(*w.fragment);
  w.constant.clear();
  for (const Buffer& arg : math.args)
    if (arg->role == BufferRole::kConstant) w.constant.push_back(arg->name);
  double count = 0;
  visit_stores(math.body, 1, [&](const StmtNode& store, double times) {
    count += times * (operations(store.value) + (store.reduce != ReduceOp::kNone ? 1 : 0));
  });
  if (count > 0x1p62) return invalid_argument("program: expected at most 2^62 operations, found more");
  w.flops = static_cast<int64_t>(count);
  return Status::ok();
}

class ProgramFacts final : public OperatorFacts<ProgramWorkload> {
 public:
  void describe(ProgramWorkload& w, WorkloadFields& f) const override {
    f.text({.word = "text"}, w.text, [&w](const std::string& text) -> Status {
      ASSIGN_OR_RETURN(graph::Graph fragment, graph::fragment_from_text(text));
      RETURN_IF_ERROR(set_fragment(w, std::move(fragment)));
      return w.facts().check(w);
    });
  }
  Status check(const ProgramWorkload& w) const override {
    if (w.fragment == nullptr) return invalid_argument("text: a program needs one");
    for (const graph::Value& value : w.fragment->values)
      if (value.type.bytes() >= kMaxTensorBytes)
        return invalid_argument("text: expected tensors of fewer than 2^40 bytes, found ",
                                graph::to_text(value.type));
    return Status::ok();
  }

  Program math(const ProgramWorkload& w) const override { return graph::program_of(*w.fragment); }
  // Bounds of ranges hold for every operand drawn; where they say nothing (a quotient by a number that may be
  // 0, with a rounded dividend) there is no bound that a right kernel keeps, and what is asked of it is that
  // it is near.
  Tolerance tolerance(const ProgramWorkload& w) const override {
    constexpr Tolerance kNear{1e-4, 1e-3};
    const Known known = ErrorBounds().of(math(w));
    if (!std::isfinite(known.absolute) || !std::isfinite(known.relative) || known.relative > 0.1)
      return kNear;
    return {2 * known.absolute, 2 * known.relative};
  }
  int64_t flops(const ProgramWorkload& w) const override { return w.flops; }
  // What takes elements by their places may leave most of an operand unread: an embedding reads the rows of
  // its tokens.
  double least_bytes(const ProgramWorkload& w) const override {
    const graph::Graph& f = *w.fragment;
    constexpr std::string_view kWholeMoves[] = {"Concat", "DepthToSpace", "Expand",    "SpaceToDepth",
                                                "Tile",   "Transpose",    "tuner.View"};
    const bool reads_all = std::ranges::all_of(f.nodes, [&](const graph::Node& node) {
      const graph::Operator* op = graph::find_operator(node.op);
      return op != nullptr && (op->kind != graph::OperatorKind::kMovement ||
                               std::ranges::find(kWholeMoves, node.op) != std::end(kWholeMoves));
    });
    if (reads_all) return static_cast<double>(argument_bytes(math(w)));
    int64_t written = 0;
    for (const graph::ValueId v : f.outputs) written += f[v].type.bytes();
    return static_cast<double>(written);
  }
  // Weights of steps are small, as in networks: a state that grows with each step would hide what is wrong.
  float drawn_factor(const ProgramWorkload& w, std::string_view operand) const override {
    for (const graph::Node& node : w.fragment->nodes) {
      if (node.op != "tuner.Recurrence") continue;
      const auto input = std::ranges::find(w.fragment->inputs, node.inputs[1]);
      if (input == w.fragment->inputs.end() || operand != str("in", input - w.fragment->inputs.begin()))
        continue;
      return 1 / std::sqrt(static_cast<float>((*w.fragment)[*input].type.shape[1]));
    }
    return 1;
  }

  // Programs have no family of shapes: what was learned of one says nothing of another.
  TaskShape shape(const ProgramWorkload& w) const override { return {str(w.kOp, " ", w.text), {}}; }
  // The operator that gives the result says most.
  std::string shape_name(const ProgramWorkload& w) const override { return w.fragment->nodes.back().op; }
};

}  // namespace

const OperatorFacts<ProgramWorkload>& ProgramWorkload::facts() {
  static const ProgramFacts facts;
  return facts;
}

Result<ProgramWorkload> program_of_fragment(graph::Graph fragment) {
  ProgramWorkload w;
  RETURN_IF_ERROR(set_fragment(w, std::move(fragment)));
  RETURN_IF_ERROR(w.facts().check(w));
  return w;
}

}  // namespace tuner
