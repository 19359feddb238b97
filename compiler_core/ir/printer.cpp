// Programs as text. Two loops of the same name, one inside the other, are told apart: the inner one prints as
// name_1.
#include <charconv>
#include <cmath>
#include <map>

#include "compiler_core/base/status.h"
#include "compiler_core/ir/foreign_code.h"
#include "compiler_core/ir/stmt.h"

namespace tuner {
namespace {

std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  return {text, end};
}

// Binding strength, loosest first; operands that bind looser than their place stand in parentheses.
enum { kLoose, kOrLevel, kAndLevel, kCompareLevel, kSumLevel, kProductLevel, kUnaryLevel, kAtomLevel };

struct OpText {
  std::string_view text;
  int level;
};
OpText op_text(BinaryOp op) {
  switch (op) {
    case BinaryOp::kAdd:
      return {"+", kSumLevel};
    case BinaryOp::kSub:
      return {"-", kSumLevel};
    case BinaryOp::kMul:
      return {"*", kProductLevel};
    case BinaryOp::kDiv:
      return {"/", kProductLevel};
    case BinaryOp::kFloorDiv:
      return {"//", kProductLevel};
    case BinaryOp::kFloorMod:
      return {"%", kProductLevel};
    case BinaryOp::kMin:
      return {"min", kAtomLevel};
    case BinaryOp::kMax:
      return {"max", kAtomLevel};
    case BinaryOp::kAtLeast:
      return {"at_least", kAtomLevel};
    case BinaryOp::kEq:
      return {"==", kCompareLevel};
    case BinaryOp::kNe:
      return {"!=", kCompareLevel};
    case BinaryOp::kLt:
      return {"<", kCompareLevel};
    case BinaryOp::kLe:
      return {"<=", kCompareLevel};
    case BinaryOp::kGt:
      return {">", kCompareLevel};
    case BinaryOp::kGe:
      return {">=", kCompareLevel};
    case BinaryOp::kAnd:
      return {"&&", kAndLevel};
    case BinaryOp::kOr:
      return {"||", kOrLevel};
    case BinaryOp::kXor:
      return {"xor", kAtomLevel};
    case BinaryOp::kBitAnd:
      return {"bit_and", kAtomLevel};
    case BinaryOp::kBitOr:
      return {"bit_or", kAtomLevel};
    case BinaryOp::kShiftLeft:
      return {"shift_left", kAtomLevel};
    case BinaryOp::kShiftRight:
      return {"shift_right", kAtomLevel};
    case BinaryOp::kPow:
      return {"pow", kAtomLevel};
  }
  return {"?", kLoose};
}

std::string_view unary_text(UnaryOp op) {
  constexpr std::string_view kNames[] = {"-",    "!",     "abs",   "sqrt", "rsqrt", "exp",   "log",  "tanh",
                                         "erf",  "floor", "round", "tf32", "sin",   "cos",   "tan",  "asin",
                                         "acos", "atan",  "sinh",  "cosh", "asinh", "acosh", "atanh"};
  return kNames[static_cast<int>(op)];
}

class Printer {
 public:
  std::string take() { return std::move(out_); }

  void expr(const Expr& e, int place = kLoose) {
    if (!e.defined()) {
      out_ += "(none)";
      return;
    }
    switch (e->kind) {
      case ExprKind::kIntImm:
        if (e->dtype == DType::kBool)
          out_ += e->int_value != 0 ? "true" : "false";
        else
          out_ += std::to_string(e->int_value);
        return;
      case ExprKind::kFloatImm:
        out_ += float_text(e->float_value);
        return;
      case ExprKind::kVar:
        out_ += name_of(*e->var);
        return;
      case ExprKind::kLoad:
        access(e->buffer, e->operands);
        return;
      case ExprKind::kBinary:
        binary(*e, place);
        return;
      case ExprKind::kUnary:
        out_ += unary_text(e->unary_op);
        if (e->unary_op <= UnaryOp::kNot) return expr(e->operands[0], kUnaryLevel);
        return list("(", e->operands, ")");
      case ExprKind::kSelect:
        out_ += "select";
        return list("(", e->operands, ")");
      case ExprKind::kCast:
        out_ += dtype_name(e->dtype);
        return list("(", e->operands, ")");
    }
  }

  void stmt(const Stmt& s, int depth) {
    if (s == nullptr) return;
    switch (s->kind) {
      case StmtKind::kFor:
        return loop(s, depth);
      case StmtKind::kSeq:
        return sequence(s->stmts, depth);
      case StmtKind::kIf:
        begin(depth), out_ += "if ", expr(s->condition), out_ += "\n";
        stmt(s->body, depth + 1);
        if (s->else_body != nullptr) begin(depth), out_ += "else\n", stmt(s->else_body, depth + 1);
        return;
      case StmtKind::kStore:
        return store(*s, depth);
      case StmtKind::kAllocate:
        begin(depth), out_ += "allocate ", declare(*s->buffer), out_ += "\n";
        return stmt(s->body, depth);
      case StmtKind::kBarrier:
        begin(depth), out_ += "barrier ", out_ += memory_scope_name(s->scope), out_ += "\n";
        return;
      case StmtKind::kIntrinsic:
        begin(depth), out_ += s->name, list("(", s->operands, ")"), out_ += "\n";
        return;
      case StmtKind::kAsync:
        begin(depth), out_ += "async ", out_ += s->name;
        if (!s->operands.empty()) list(" ", s->operands, "");
        if (s->buffer != nullptr) {  // a lowered fetch
          out_ += " = map ", expr(s->value), out_ += " of ", out_ += s->buffer->name;
          list(" at [", s->indices, "]");
        }
        out_ += "\n";
        return stmt(s->body, depth + 1);
    }
  }

  void program(const Program& p, std::string_view kind) {
    out_ += kind, out_ += " ", out_ += p.name, out_ += "(";
    for (size_t i = 0; i < p.args.size(); ++i) {
      if (i > 0) out_ += ", ";
      out_ += buffer_role_name(p.args[i]->role), out_ += " ", declare(*p.args[i]);
    }
    out_ += ")\n";
    stmt(p.body, 1);
  }

 private:
  void begin(int depth) { out_.append(static_cast<size_t>(depth) * 2, ' '); }

  void list(std::string_view open, const std::vector<Expr>& items, std::string_view close) {
    out_ += open;
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_ += ", ";
      expr(items[i]);
    }
    out_ += close;
  }
  void access(const Buffer& buffer, const std::vector<Expr>& indices) {
    out_ += buffer->name, list("[", indices, "]");
  }

  // "name float32[4, 16]", then the scope and layout when they are not the plain ones.
  void declare(const BufferNode& b) {
    out_ += b.name, out_ += " ", out_ += dtype_name(b.dtype), out_ += "[";
    for (size_t i = 0; i < b.shape.size(); ++i) out_ += (i == 0 ? "" : ", ") + std::to_string(b.shape[i]);
    out_ += "]";
    if (b.scope != MemoryScope::kGlobal) out_ += " ", out_ += memory_scope_name(b.scope);
    if (!b.layout.empty()) out_ += " layout ", out_ += b.layout;
  }

  void binary(const ExprNode& e, int place) {
    const auto [text, level] = op_text(e.binary_op);
    if (level == kAtomLevel) {
      out_ += text;
      return list("(", e.operands, ")");
    }
    const bool parentheses = level < place;
    if (parentheses) out_ += "(";
    // Products of indices are written tight: o*32 + i.
    const bool tight = level == kProductLevel && !is_float(e.dtype);
    expr(e.operands[0], level);
    if (!tight) out_ += " ";
    out_ += text;
    if (!tight) out_ += " ";
    const bool associative = e.binary_op == BinaryOp::kAnd || e.binary_op == BinaryOp::kOr ||
                             (e.binary_op == BinaryOp::kAdd && !is_float(e.dtype));
    expr(e.operands[1], associative ? level : level + 1);
    if (parentheses) out_ += ")";
  }

  void loop(const Stmt& s, int depth) {
    begin(depth);
    const bool reduce = s->axis == AxisKind::kReduce;
    if (s->loop == LoopKind::kSerial)
      out_ += reduce ? "reduce " : s->axis == AxisKind::kStep ? "step " : "for ";
    else
      out_ += loop_kind_name(s->loop), out_ += reduce ? " reduce " : " ";
    enter(*s->var);
    out_ += name_of(*s->var), out_ += " in 0..", out_ += std::to_string(s->extent), out_ += "\n";
    stmt(s->body, depth + 1);
    names_.erase(s->var.get());
  }

  void sequence(const std::vector<Stmt>& stmts, int depth) {
    for (size_t i = 0; i < stmts.size(); ++i) {
      // An allocation lives to the end of its block; one that ends earlier shows it by its depth.
      if (stmts[i]->kind == StmtKind::kAllocate && i + 1 < stmts.size()) {
        begin(depth), out_ += "block\n";
        stmt(stmts[i], depth + 1);
      } else {
        stmt(stmts[i], depth);
      }
    }
  }

  void store(const StmtNode& s, int depth) {
    begin(depth), access(s.buffer, s.indices);
    switch (s.reduce) {
      case ReduceOp::kNone:
        out_ += " = ";
        break;
      case ReduceOp::kSum:
        out_ += " += ";
        break;
      case ReduceOp::kMax:
        out_ += " max= ";
        break;
      case ReduceOp::kMin:
        out_ += " min= ";
        break;
    }
    expr(s.value);
    if (s.reduce != ReduceOp::kNone && s.first.defined())
      out_ += ", from ", expr(s.init), out_ += " when ", expr(s.first);
    out_ += "\n";
  }

  void enter(const VarNode& var) {
    const auto taken = [&](const std::string& name) {
      for (const auto& [node, used] : names_)
        if (used == name) return true;
      return false;
    };
    std::string name = var.name;
    for (int i = 1; taken(name); ++i) name = var.name + "_" + std::to_string(i);
    names_[&var] = name;
  }
  const std::string& name_of(const VarNode& var) const {
    const auto found = names_.find(&var);
    return found == names_.end() ? var.name : found->second;
  }

  std::string out_;
  std::map<const VarNode*, std::string> names_;  // of the loops around
};

}  // namespace

namespace {

// As a shell would read it.
std::string command_text(const ForeignCommand& command) {
  std::string text;
  for (const std::string& variable : command.environment) text += variable + "\n";
  const auto add = [&](const std::vector<std::string>& words) {
    for (size_t i = 0; i < words.size(); ++i) text += (i == 0 ? "" : " ") + words[i];
    text += words.empty() ? "" : "\n";
  };
  add(command.build);
  add(command.run);
  return text;
}

// The call as its user would write it, and what it is made from.
std::string foreign_text(const Program& program) {
  const ForeignCode& code = *program.foreign;
  if (code.command != nullptr) return command_text(*code.command);
  std::string text = "// " + code.source + ", by " + code.compiler;
  for (const std::string& word : code.words) text += " " + word;
  text += "\n" + code.function + "(";
  for (size_t i = 0; i < code.arguments.size(); ++i) {
    std::string argument = code.arguments[i];
    if (const size_t open = argument.find('{'); open != std::string::npos) {
      const size_t close = argument.find('}', open);
      argument = program.args.at(std::stoul(argument.substr(open + 1, close - open - 1)))->name;
    }
    text += (i == 0 ? "" : ", ") + argument;
  }
  return text + ")\n";
}

}  // namespace

std::string to_text(const Program& program) {
  if (program.foreign != nullptr) return foreign_text(program);
  Printer printer;
  printer.program(program, "kernel");
  if (program.packing != nullptr) printer.program(*program.packing, "packing");
  return printer.take();
}

std::string to_text(const Stmt& stmt) {
  Printer printer;
  printer.stmt(stmt, 0);
  return printer.take();
}

std::string to_text(const Expr& expr) {
  Printer printer;
  printer.expr(expr);
  return printer.take();
}

}  // namespace tuner
