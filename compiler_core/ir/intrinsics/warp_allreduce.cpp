// warp_allreduce: a sum, maximum or minimum over lanes of a warp, by butterflies.
#include <limits>

#include "compiler_core/base/status.h"
#include "compiler_core/ir/intrinsic.h"

namespace tuner {
namespace {

std::string_view op_name(ReduceOp op) {
  return op == ReduceOp::kSum ? "sum" : op == ReduceOp::kMax ? "max" : "min";
}

double identity(ReduceOp op) {
  const double infinity = std::numeric_limits<double>::infinity();
  return op == ReduceOp::kSum ? 0 : op == ReduceOp::kMax ? -infinity : infinity;
}

// x.out[lane] = op over the lane's group of `width` lanes of x.
Program allreduce_meaning(const std::string& name, ReduceOp op, int64_t width) {
  const Buffer x = make_buffer("x", DType::kFloat32, {32}, MemoryScope::kGlobal, BufferRole::kInput);
  const Buffer out = make_buffer("x.out", DType::kFloat32, {32}, MemoryScope::kGlobal, BufferRole::kOutput);
  const Var lane = make_var("lane"), other = make_var("other");
  const Expr group = floor_div(lane, width) * width;
  Stmt update = make_reduce(out, {lane}, op, float_imm(identity(op)), load(x, {group + other}),
                            binary(BinaryOp::kEq, other, 0));
  Program meaning;
  meaning.name = name;
  meaning.args = {x, out};
  meaning.body = make_for(lane, 32, make_for(other, width, std::move(update), AxisKind::kReduce));
  return meaning;
}

// Butterfly: after the step of distance d every lane holds the total of its group of 2d lanes.
std::string allreduce_text(ReduceOp op, int64_t width) {
  const std::string other = "__shfl_xor_sync(0xffffffffu, *$0, d)";
  const std::string combined =
      op == ReduceOp::kSum ? "*$0 + " + other
                           : str(op == ReduceOp::kMax ? "ieee_max" : "ieee_min", "(*$0, ", other, ")");
  return str("for (int d = ", width / 2, "; d > 0; d /= 2) *$0 = ", combined, ";");
}

Intrinsic warp_allreduce(ReduceOp op, int64_t width) {
  Intrinsic i;
  i.name = warp_allreduce_name(op, width);
  i.threads = 32;
  i.operands = {{.name = "x",
                 .access = IntrinsicOperand::Access::kReadWrite,
                 .dtype = DType::kFloat32,
                 .shape = {32},
                 .registers = 1,
                 .layout = [](const Expr& lane, const Expr&) { return std::vector<Expr>{lane}; }}};
  i.meaning = allreduce_meaning("warp_allreduce", op, width);
  i.cuda = allreduce_text(op, width);
  return i;
}

}  // namespace

std::string warp_allreduce_name(ReduceOp op, int64_t width) {
  return str("warp_allreduce.", op_name(op), ".", width);
}

std::vector<Intrinsic> warp_allreduce_intrinsics() {
  std::vector<Intrinsic> all;
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kMin})
    for (int64_t width = 2; width <= 32; width *= 2) all.push_back(warp_allreduce(op, width));
  return all;
}

}  // namespace tuner
