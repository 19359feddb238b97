#include "compiler_core/oracle/oracle.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <utility>

#include "compiler_core/arith/meaning.h"
#include "compiler_core/base/int_math.h"
#include "compiler_core/base/integer_types.h"
#include "compiler_core/ir/prefetch.h"
#include "compiler_core/ir/visitor.h"

namespace tuner {
namespace {

struct Storage {
  std::vector<double> values;
  std::vector<bool> written;

  explicit Storage(int64_t elements = 0)
      : values(static_cast<size_t>(elements)), written(static_cast<size_t>(elements)) {}
};

// The nearest number of 64 bits: the identity of a minimum, 2^63 - 1, is 2^63 as a double.
int64_t to_integer(DType type, double x) {
  return nearest_of(type == DType::kUInt64 ? type : DType::kInt64, x);
}

// A sum of integers as its type holds it.
double wrapped_sum(DType type, double sum) {
  if (is_float(type) || type == DType::kInt64) return sum;
  if (type == DType::kUInt64) return sum >= 0x1p64 ? sum - 0x1p64 : sum;
  return static_cast<double>(wrapped_to(type, nearest_of(DType::kInt64, sum)));
}

// As IEEE 754 has them: of a NaN and a number, the NaN.
double maximum(double a, double b) { return std::isnan(a) || a > b ? a : b; }
double minimum(double a, double b) { return std::isnan(a) || a < b ? a : b; }

double function_value(UnaryOp op, double a) {
  switch (op) {
    case UnaryOp::kNeg:
      return -a;
    case UnaryOp::kAbs:
      return std::fabs(a);
    case UnaryOp::kSqrt:
      return std::sqrt(a);
    case UnaryOp::kRsqrt:
      return 1 / std::sqrt(a);
    case UnaryOp::kExp:
      return std::exp(a);
    case UnaryOp::kLog:
      return std::log(a);
    case UnaryOp::kTanh:
      return std::tanh(a);
    case UnaryOp::kErf:
      return std::erf(a);
    case UnaryOp::kFloor:
      return std::floor(a);
    case UnaryOp::kRound:
      return std::nearbyint(a);
    case UnaryOp::kTf32:
      return std::bit_cast<float>(std::bit_cast<uint32_t>(static_cast<float>(a)) & ~uint32_t{0x1fff});
    case UnaryOp::kSin:
      return std::sin(a);
    case UnaryOp::kCos:
      return std::cos(a);
    case UnaryOp::kTan:
      return std::tan(a);
    case UnaryOp::kAsin:
      return std::asin(a);
    case UnaryOp::kAcos:
      return std::acos(a);
    case UnaryOp::kAtan:
      return std::atan(a);
    case UnaryOp::kSinh:
      return std::sinh(a);
    case UnaryOp::kCosh:
      return std::cosh(a);
    case UnaryOp::kAsinh:
      return std::asinh(a);
    case UnaryOp::kAcosh:
      return std::acosh(a);
    case UnaryOp::kAtanh:
      return std::atanh(a);
    case UnaryOp::kNot:
      break;
  }
  return 0;
}

class Interpreter {
 public:
  Status run(const Program& program, std::map<const BufferNode*, Storage>& args) {
    program_ = &program;
    memory_ = std::move(args);
    execute(program.body);
    args = std::move(memory_);
    return status_;
  }

 private:
  void execute(const Stmt& s) {
    if (s == nullptr || !status_.is_ok()) return;
    switch (s->kind) {
      case StmtKind::kFor: {
        const bool reverse = s->loop == LoopKind::kParallel || s->loop == LoopKind::kVectorized;
        for (int64_t i = 0; i < s->extent && status_.is_ok(); ++i) {
          vars_[s->var.get()] = reverse ? s->extent - 1 - i : i;
          execute(s->body);
        }
        return;
      }
      case StmtKind::kSeq:
        for (const Stmt& child : s->stmts) execute(child);
        return;
      case StmtKind::kIf:
        execute(index(s->condition) != 0 ? s->body : s->else_body);
        return;
      case StmtKind::kAllocate:
        memory_[s->buffer.get()] = Storage(s->buffer->elements());
        execute(s->body);
        memory_.erase(s->buffer.get());
        return;
      case StmtKind::kStore:
        store(*s);
        return;
      case StmtKind::kBarrier:
        return;
      case StmtKind::kAsync:
        if (s->body != nullptr) execute(s->body);  // a copy, at once
        return;
      case StmtKind::kIntrinsic:
        if (is_prefetch(*s)) return;
        if (is_tile_intrinsic(*s)) return execute(meaning_of(*s));
        report("the oracle runs CPU Programs; found ", s->name);
        return;
    }
  }

  void store(const StmtNode& s) {
    const size_t at = place(s.buffer, s.indices);
    if (!status_.is_ok()) return;
    if (s.reduce == ReduceOp::kNone) {
      const double v = value(s.value);
      write(s.buffer, at, v);
      return;
    }
    if (s.first.defined() && index(s.first) != 0) write(s.buffer, at, value(s.init));
    const double v = value(s.value);
    if (!status_.is_ok()) return;
    const double old = read(s.buffer, at, s.indices);
    double sum = wrapped_sum(s.buffer->dtype, old + v);
    if (s.reduce == ReduceOp::kMax) sum = maximum(old, v);
    if (s.reduce == ReduceOp::kMin) sum = minimum(old, v);
    write(s.buffer, at, sum);
  }

  // Index and truth values, exact.
  int64_t index(const Expr& e) {
    switch (e->kind) {
      case ExprKind::kIntImm:
        return e->int_value;
      case ExprKind::kVar:
        return vars_[e->var.get()];
      case ExprKind::kLoad:
      case ExprKind::kFloatImm:
        return to_integer(e->dtype, value(e));
      case ExprKind::kSelect:
        return index(e->operands[index(e->operands[0]) != 0 ? 1 : 2]);
      case ExprKind::kCast:
        return is_float(e->operands[0]->dtype) ? to_integer(e->dtype, value_to_integer(e->operands[0]))
                                               : wrapped_to(e->dtype, index(e->operands[0]));
      case ExprKind::kUnary: {
        const int64_t a = index(e->operands[0]);
        if (e->unary_op == UnaryOp::kNot) return a == 0;
        if (e->unary_op == UnaryOp::kNeg) return -a;
        return std::abs(a);
      }
      case ExprKind::kBinary:
        return is_float(e->operands[0]->dtype) ? compared(e) : index_binary(e);
    }
    return 0;
  }

  int64_t compared(const Expr& e) {
    const double a = value(e->operands[0]), b = value(e->operands[1]);
    switch (e->binary_op) {
      case BinaryOp::kEq:
        return a == b;
      case BinaryOp::kNe:
        return a != b;
      case BinaryOp::kLt:
        return a < b;
      case BinaryOp::kLe:
        return a <= b;
      case BinaryOp::kGt:
        return a > b;
      case BinaryOp::kGe:
        return a >= b;
      default:
        report("no integer value in ", to_text(e));
        return 0;
    }
  }

  int64_t index_binary(const Expr& e) {
    const int64_t a = index(e->operands[0]);
    if (e->binary_op == BinaryOp::kAnd) return a != 0 && index(e->operands[1]) != 0;
    if (e->binary_op == BinaryOp::kOr) return a != 0 || index(e->operands[1]) != 0;
    const int64_t b = index(e->operands[1]);
    const DType type = e->operands[0]->dtype;
    switch (e->binary_op) {
      case BinaryOp::kAdd:
        return wrapped_to(type, static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)));
      case BinaryOp::kSub:
        return wrapped_to(type, static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b)));
      case BinaryOp::kMul:
        return wrapped_to(type, static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b)));
      case BinaryOp::kFloorDiv:
      case BinaryOp::kFloorMod:
        if (b == 0) {
          report("division by zero in ", to_text(e));
          return 0;
        }
        return divided(e->binary_op == BinaryOp::kFloorDiv, type, a, b);
      case BinaryOp::kXor:
        return a ^ b;
      case BinaryOp::kBitAnd:
        return a & b;
      case BinaryOp::kBitOr:
        return a | b;
      case BinaryOp::kShiftLeft:
        return wrapped_to(type, static_cast<int64_t>(static_cast<uint64_t>(a) << b));
      case BinaryOp::kShiftRight:
        return type == DType::kUInt64 ? static_cast<int64_t>(static_cast<uint64_t>(a) >> b) : a >> b;
      case BinaryOp::kMin:
        return is_less(type, b, a) ? b : a;
      case BinaryOp::kMax:
        return is_less(type, a, b) ? b : a;
      case BinaryOp::kEq:
        return a == b;
      case BinaryOp::kNe:
        return a != b;
      case BinaryOp::kLt:
        return is_less(type, a, b);
      case BinaryOp::kLe:
        return !is_less(type, b, a);
      case BinaryOp::kGt:
        return is_less(type, b, a);
      case BinaryOp::kGe:
        return !is_less(type, a, b);
      default:
        report("no integer value in ", to_text(e));
        return 0;
    }
  }

  static int64_t divided(bool is_quotient, DType type, int64_t a, int64_t b) {
    if (type == DType::kUInt64) {
      const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
      return static_cast<int64_t>(is_quotient ? x / y : x % y);
    }
    return is_quotient ? floor_quotient(a, b) : floor_remainder(a, b);
  }

  // Floats are doubles, except where they become an integer: there each result is rounded to its type.
  double value(const Expr& e) {
    const double v = plain_value(e);
    return to_integer_ && e->dtype == DType::kFloat32 ? static_cast<float>(v) : v;
  }

  double value_to_integer(const Expr& e) {
    const bool outer = std::exchange(to_integer_, true);
    const double v = value(e);
    to_integer_ = outer;
    return v;
  }

  double plain_value(const Expr& e) {
    switch (e->kind) {
      case ExprKind::kFloatImm:
        return e->float_value;
      case ExprKind::kLoad: {
        const size_t at = place(e->buffer, e->operands);
        return status_.is_ok() ? read(e->buffer, at, e->operands) : 0;
      }
      case ExprKind::kSelect:
        return value(e->operands[index(e->operands[0]) != 0 ? 1 : 2]);
      case ExprKind::kCast:
        if (is_float(e->dtype)) return value(e->operands[0]);
        return is_float(e->operands[0]->dtype) ? std::trunc(value_to_integer(e->operands[0]))
                                               : number_of(e->dtype, index(e));
      default:
        break;
    }
    if (!is_float(e->dtype)) return number_of(e->dtype, index(e));
    const double a = value(e->operands[0]);
    if (e->kind == ExprKind::kUnary) {
      if (e->unary_op != UnaryOp::kNot) return function_value(e->unary_op, a);
      report("no value in ", to_text(e));
      return 0;
    }
    const double b = value(e->operands[1]);
    switch (e->binary_op) {
      case BinaryOp::kAdd:
        return a + b;
      case BinaryOp::kSub:
        return a - b;
      case BinaryOp::kMul:
        return a * b;
      case BinaryOp::kDiv:
        return a / b;
      case BinaryOp::kMin:
        return minimum(a, b);
      case BinaryOp::kMax:
        return maximum(a, b);
      case BinaryOp::kAtLeast:
        return a > b ? a : b;
      case BinaryOp::kPow:
        return std::pow(a, b);
      default:
        report("no value in ", to_text(e));
        return 0;
    }
  }

  // Flat place of an element, after checking every dimension.
  size_t place(const Buffer& buffer, const std::vector<Expr>& indices) {
    int64_t flat = 0;
    for (size_t d = 0; d < indices.size(); ++d) {
      const int64_t i = index(indices[d]);
      if (i < 0 || i >= buffer->shape[d]) {
        report(element(buffer, indices), " is out of bounds: dimension ", d, " is ", buffer->shape[d],
               ", index ", i);
        return 0;
      }
      flat = flat * buffer->shape[d] + i;
    }
    if (!memory_.contains(buffer.get())) {
      report(buffer->name, " is neither an argument nor allocated where it is used");
      return 0;
    }
    return static_cast<size_t>(flat);
  }

  double read(const Buffer& buffer, size_t at, const std::vector<Expr>& indices) {
    const Storage& storage = memory_[buffer.get()];
    if (!storage.written[at]) report(element(buffer, indices), " is read but was never written");
    return storage.values[at];
  }

  void write(const Buffer& buffer, size_t at, double v) {
    if (!status_.is_ok()) return;
    Storage& storage = memory_[buffer.get()];
    storage.values[at] = v;
    storage.written[at] = true;
  }

  std::string element(const Buffer& buffer, const std::vector<Expr>& indices) {
    std::string text = buffer->name + "[";
    for (size_t d = 0; d < indices.size(); ++d) text += (d == 0 ? "" : ", ") + str(index(indices[d]));
    return text + "]";
  }

  template <class... Args>
  void report(const Args&... args) {
    if (status_.is_ok()) status_ = Status(StatusCode::kInternal, str(program_->name, ": ", args...));
  }

  const Program* program_ = nullptr;
  std::map<const BufferNode*, Storage> memory_;
  std::map<const VarNode*, int64_t> vars_;
  bool to_integer_ = false;
  Status status_;
};

// The constant that `packed` is made of, perhaps by way of other buffers: the first one its stores read.
Buffer source_of(const Program& packing, const Buffer& packed) {
  Buffer source;
  visit(packing.body, [&](const Stmt& s) {
    if (s->kind != StmtKind::kStore || s->buffer != packed) return;
    visit(s->value, [&](const Expr& e) {
      if (source == nullptr && e->kind == ExprKind::kLoad && e->buffer != packed) source = e->buffer;
    });
  });
  if (source == nullptr || source->role == BufferRole::kConstant) return source;
  return source_of(packing, source);
}

std::string position(const Buffer& buffer, size_t flat) {
  std::string text;
  for (size_t d = buffer->shape.size(); d-- > 0;) {
    const auto extent = static_cast<size_t>(buffer->shape[d]);
    text = str(flat % extent, text.empty() ? "" : ", ", text);
    flat /= extent;
  }
  return str("[", text, "]");
}

}  // namespace

std::vector<Buffer> unpacked_args(const Program& program) {
  std::vector<Buffer> args;
  for (const Buffer& arg : program.args) {
    Buffer source = arg;
    if (arg->role == BufferRole::kPacked && program.packing != nullptr)
      source = source_of(*program.packing, arg);
    CHECK(source != nullptr) << program.name << ": the packing entry does not write " << arg->name;
    // A constant packed twice is still one argument.
    if (std::find(args.begin(), args.end(), source) == args.end()) args.push_back(source);
  }
  return args;
}

Status interpret(const Program& program, std::vector<std::vector<double>>& args) {
  const std::vector<Buffer> buffers = unpacked_args(program);
  if (args.size() != buffers.size())
    return invalid_argument(program.name, ": expected ", buffers.size(), " arguments, found ", args.size());
  std::map<const BufferNode*, Storage> memory;
  for (size_t i = 0; i < buffers.size(); ++i) {
    Storage storage(buffers[i]->elements());
    if (is_given(buffers[i]->role) || buffers[i]->role == BufferRole::kPacked) {
      if (static_cast<int64_t>(args[i].size()) != buffers[i]->elements())
        return invalid_argument(program.name, ": ", buffers[i]->name, ": expected ", buffers[i]->elements(),
                                " elements, found ", args[i].size());
      storage.values = args[i];
      storage.written.assign(storage.written.size(), true);
    }
    memory[buffers[i].get()] = std::move(storage);
  }
  if (program.packing != nullptr) {
    for (const Buffer& b : program.packing->args)
      if (b->role == BufferRole::kPacked) memory[b.get()] = Storage(b->elements());
    RETURN_IF_ERROR(Interpreter().run(*program.packing, memory));
  }
  RETURN_IF_ERROR(Interpreter().run(program, memory));
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (!is_result(buffers[i]->role)) continue;
    Storage& storage = memory[buffers[i].get()];
    for (size_t at = 0; at < storage.written.size(); ++at)
      if (!storage.written[at])
        return Status(StatusCode::kInternal, str(program.name, ": ", buffers[i]->name,
                                                 position(buffers[i], at), " was never written"));
    args[i] = std::move(storage.values);
  }
  return Status::ok();
}

}  // namespace tuner
