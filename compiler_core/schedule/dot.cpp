// dot: a short reduction becomes one instruction of each lane.
#include <algorithm>

#include "compiler_core/schedule/rewrite.h"

namespace tuner {

using namespace rewrite;

namespace {

bool is_cast(const Expr& e) { return e->kind == ExprKind::kCast && e->operands[0]->kind == ExprKind::kLoad; }

// Products one instruction adds to a lane: as many elements as fill 32 bits. 0: none for these types.
int64_t products_of(const StmtNode& store) {
  const Expr& value = store.value;
  if (store.reduce != ReduceOp::kSum || value->kind != ExprKind::kBinary ||
      value->binary_op != BinaryOp::kMul || !is_cast(value->operands[0]) || !is_cast(value->operands[1]))
    return 0;
  const DType to = store.buffer->dtype, a = value->operands[0]->operands[0]->dtype,
              b = value->operands[1]->operands[0]->dtype;
  const auto is_byte = [](DType t) { return t == DType::kInt8 || t == DType::kUInt8; };
  if (to == DType::kFloat32 && a == DType::kBFloat16 && b == DType::kBFloat16) return 2;
  if (to == DType::kInt32 && is_byte(a) && is_byte(b)) return 4;
  return 0;
}

Status check_dot(const StmtNode& loop) {
  if (loop.loop != LoopKind::kSerial) return invalid_config("is ", loop_kind_name(loop.loop), " already");
  if (loop.axis != AxisKind::kReduce) return invalid_config("a spatial axis; its iterations are not summed");
  Stmt s = loop.body;
  while (s->kind == StmtKind::kIf && s->else_body == nullptr) s = s->body;
  if (s->kind == StmtKind::kFor) return invalid_config("not innermost; reorder it inside first");
  const int64_t products = s->kind == StmtKind::kStore ? products_of(*s) : 0;
  if (products == 0)
    return invalid_config(
        "not a sum of products of two loads cast from bfloat16 to float32 or from 8 bits to int32");
  if (loop.extent == products) return Status::ok();
  return invalid_config("has ", loop.extent, " iterations; for these types it must have ", products);
}

}  // namespace

void Schedule::dot(Axis axis) {
  if (refused()) return;
  const std::string call = str("dot(", label(program_.body, axis.var), ")");
  apply(call, [&]() -> Status {
    if (axis.var == nullptr) return invalid_config("the axis handle is empty");
    const Path path = find_loop(program_.body, axis.var);
    if (path.empty()) return invalid_config("not an axis of the Program (split, fused or never there)");
    const StmtNode& loop = *path.back();
    RETURN_IF_ERROR(check_dot(loop));
    program_.body = replace_at(path, make_for(loop.var, loop.extent, loop.body, loop.axis, LoopKind::kDot));
    record(call);
    return Status::ok();
  });
}

}  // namespace tuner
