#include "compiler_core/te/te.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "compiler_core/base/integer_types.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/visitor.h"

namespace tuner::te {
namespace {

struct Loop {
  Var var;
  int64_t extent;
  AxisKind axis;
};

Stmt nest(const std::vector<Loop>& loops, Stmt body) {
  for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop)
    body = make_for(loop->var, loop->extent, std::move(body), loop->axis);
  return body;
}

std::vector<Loop> spatial_loops(const std::vector<int64_t>& shape, const std::vector<std::string>& names) {
  CHECK(names.empty() || names.size() == shape.size())
      << names.size() << " axis names for " << shape.size() << " dimensions";
  std::vector<Loop> loops;
  for (size_t i = 0; i < shape.size(); ++i)
    loops.push_back({make_var(names.empty() ? str("i", i) : names[i]), shape[i], AxisKind::kSpatial});
  return loops;
}

Indices indices_of(const std::vector<Loop>& loops) {
  Indices indices;
  for (const Loop& loop : loops) indices.emplace_back(loop.var);
  return indices;
}

Expr number_like(double value, DType dtype) {
  return is_float(dtype) ? float_imm(value, dtype) : int_imm(static_cast<int64_t>(value), dtype);
}

Expr start_of(ReduceOp op, DType dtype) {
  if (op == ReduceOp::kSum) return number_like(0, dtype);
  if (!is_float(dtype)) {
    const auto [least, greatest] = range_of(dtype);
    return int_imm(op == ReduceOp::kMax ? least : greatest, dtype);
  }
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return float_imm(op == ReduceOp::kMax ? -kInfinity : kInfinity, dtype);
}

class FloatTypes {
 public:
  explicit FloatTypes(DType dtype) : dtype_(dtype) {}

  Buffer buffer(const Buffer& old) {
    if (old == nullptr) return old;
    Buffer& replaced = buffers_[old];
    if (replaced != nullptr) return replaced;
    auto node = std::make_shared<BufferNode>(*old);
    if (is_float(node->dtype)) node->dtype = dtype_;
    return replaced = std::move(node);
  }
  Expr expr(const Expr& e) {
    if (e->kind == ExprKind::kFloatImm) return kept_ ? e : float_imm(e->float_value, dtype_);
    if (e->operands.empty() && e->kind != ExprKind::kLoad) return e;
    const bool kept = kept_, becomes_integer = e->kind == ExprKind::kCast && !is_float(e->dtype) &&
                                               is_float(e->operands[0]->dtype);
    kept_ = kept || becomes_integer;
    std::vector<Expr> operands;
    for (const Expr& operand : e->operands) operands.push_back(expr(operand));
    kept_ = kept;
    switch (e->kind) {
      case ExprKind::kLoad: {
        const Expr element = load(buffer(e->buffer), std::move(operands));
        return kept_ ? cast(e->dtype, element) : element;
      }
      case ExprKind::kBinary:
        return binary(e->binary_op, operands[0], operands[1]);
      case ExprKind::kUnary:
        return unary(e->unary_op, operands[0]);
      case ExprKind::kSelect:
        return select(operands[0], operands[1], operands[2]);
      default:
        return cast(is_float(e->dtype) && !kept_ ? dtype_ : e->dtype, operands[0]);
    }
  }
  Stmt stmt(const Stmt& s) {
    Stmt mapped = map_children(
        s, [&](const Expr& e) { return expr(e); }, [&](const Stmt& child) { return stmt(child); });
    if (s->buffer == nullptr) return mapped;
    auto node = std::make_shared<StmtNode>(*mapped);
    node->buffer = buffer(s->buffer);
    return node;
  }
  Program program(const Program& p) {
    Program result{.name = p.name, .body = stmt(p.body)};
    for (const Buffer& b : p.args) result.args.push_back(buffer(b));
    if (p.packing != nullptr) result.packing = std::make_shared<const Program>(program(*p.packing));
    return result;
  }

 private:
  DType dtype_;
  bool kept_ = false;  // inside of what becomes an integer
  std::map<Buffer, Buffer> buffers_;
};

}  // namespace

Builder::Builder(std::string name, DType dtype) : name_(std::move(name)), dtype_(dtype) {}

Buffer Builder::input(const std::string& name, std::vector<int64_t> shape, std::optional<DType> dtype) {
  args_.push_back(
      make_buffer(name, dtype.value_or(dtype_), std::move(shape), MemoryScope::kGlobal, BufferRole::kInput));
  return args_.back();
}

Buffer Builder::constant(const std::string& name, std::vector<int64_t> shape, std::optional<DType> dtype) {
  args_.push_back(make_buffer(name, dtype.value_or(dtype_), std::move(shape), MemoryScope::kGlobal,
                              BufferRole::kConstant));
  return args_.back();
}

Buffer Builder::in_out(const std::string& name, std::vector<int64_t> shape, std::optional<DType> dtype) {
  outputs_.push_back(
      make_buffer(name, dtype.value_or(dtype_), std::move(shape), MemoryScope::kGlobal, BufferRole::kInOut));
  return outputs_.back();
}

Buffer Builder::compute(const std::string& name, std::vector<int64_t> shape,
                        const std::function<Expr(const Indices&)>& f, BufferRole role,
                        const std::vector<std::string>& axis_names, std::optional<DType> dtype) {
  const std::vector<Loop> loops = spatial_loops(shape, axis_names);
  const Indices indices = indices_of(loops);
  const Expr value = f(indices);
  CHECK(!dtype || value->dtype == *dtype)
      << name << ": a value of " << value->dtype << ", expected " << *dtype;
  const DType type = dtype.value_or(value->dtype == DType::kInt64 ? dtype_ : value->dtype);
  const auto declared = std::ranges::find(outputs_, name, &BufferNode::name);
  const bool in_place = declared != outputs_.end();
  CHECK(!in_place ||
        (role == BufferRole::kOutput && (*declared)->shape == shape && (*declared)->dtype == value->dtype))
      << name << " is declared as another output";
  const Buffer buffer =
      in_place ? *declared : make_buffer(name, type, std::move(shape), MemoryScope::kGlobal, role);
  // A plain number stored everywhere takes the Program's type.
  const bool plain = !dtype && value->kind == ExprKind::kIntImm && value->dtype == DType::kInt64;
  nests_.push_back(
      nest(loops, make_store(buffer, indices,
                             plain ? number_like(static_cast<double>(value->int_value), dtype_) : value)));
  if (role == BufferRole::kOutput && !in_place) outputs_.push_back(buffer);
  return buffer;
}

Buffer Builder::reduce(const std::string& name, std::vector<int64_t> shape,
                       const std::vector<ReduceAxis>& reduce_axes, ReduceOp op,
                       const std::function<Expr(const Indices&, const Indices&)>& f, BufferRole role,
                       const std::vector<std::string>& axis_names) {
  CHECK(op != ReduceOp::kNone && !reduce_axes.empty())
      << name << ": a reduction needs an operation and an axis";
  std::vector<Loop> loops = spatial_loops(shape, axis_names), reduce_loops;
  for (const ReduceAxis& axis : reduce_axes)
    reduce_loops.push_back({make_var(axis.name), axis.extent, AxisKind::kReduce});
  const Indices indices = indices_of(loops);
  const Expr value = f(indices, indices_of(reduce_loops));
  const Buffer buffer = make_buffer(name, value->dtype, std::move(shape), MemoryScope::kGlobal, role);
  Expr first = bool_imm(true);
  for (const Loop& loop : reduce_loops) first = first && binary(BinaryOp::kEq, loop.var, 0);
  loops.insert(loops.end(), reduce_loops.begin(), reduce_loops.end());
  nests_.push_back(nest(loops, make_reduce(buffer, indices, op, start_of(op, value->dtype), value, first)));
  if (role == BufferRole::kOutput) outputs_.push_back(buffer);
  return buffer;
}

void Builder::steps(const std::string& name, int64_t count,
                    const std::function<void(const Expr& step)>& stages) {
  std::vector<Stmt> before = std::exchange(nests_, {});
  const size_t outputs = outputs_.size();
  const Var step = make_var(name);
  stages(step);
  CHECK(outputs_.size() == outputs) << name << ": a stage of a step is an output";
  before.push_back(make_for(step, count, make_seq(std::move(nests_)), AxisKind::kStep));
  nests_ = std::move(before);
}

Buffer Builder::declare(const std::string& name, std::vector<int64_t> shape, std::optional<DType> dtype) {
  return make_buffer(name, dtype.value_or(dtype_), std::move(shape), MemoryScope::kGlobal,
                     BufferRole::kIntermediate);
}

void Builder::fill(const Buffer& buffer, const Indices& at, const std::function<Expr(const Indices&)>& f) {
  const std::vector<Loop> loops =
      spatial_loops({buffer->shape.begin() + std::ssize(at), buffer->shape.end()}, {});
  const Indices inner = indices_of(loops);
  Indices indices = at;
  indices.insert(indices.end(), inner.begin(), inner.end());
  nests_.push_back(nest(loops, make_store(buffer, std::move(indices), f(inner))));
}

Program Builder::finish() {
  CHECK(!outputs_.empty()) << name_ << " has no output";
  Program program{.name = name_, .args = args_};
  program.args.insert(program.args.end(), outputs_.begin(), outputs_.end());
  std::vector<Buffer> intermediates;
  for (const Stmt& s : nests_) {
    visit(s, [&](const Stmt& child) {
      if (child->kind == StmtKind::kStore && child->buffer->role == BufferRole::kIntermediate)
        intermediates.push_back(child->buffer);
    });
  }
  program.body = make_seq(nests_);
  for (auto buffer = intermediates.rbegin(); buffer != intermediates.rend(); ++buffer)
    program.body = make_allocate(*buffer, program.body);
  return program;
}

Program with_float_type(const Program& program, DType dtype) {
  CHECK(is_float(dtype)) << dtype << " is not a float type";
  return FloatTypes(dtype).program(program);
}

}  // namespace tuner::te
