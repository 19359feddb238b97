#include "compiler_core/codegen_npu/pack_constants.h"

#include <algorithm>

#include "compiler_core/codegen_npu/linear.h"
#include "compiler_core/codegen_npu/nest.h"

namespace tuner {
namespace {

npu::PackCopy::Linear in_file(const Linear& l) { return {.base = l.base, .by = l.by}; }

// One nest around one store.
class CopyOfNest {
 public:
  CopyOfNest(const Program& packing, const Nest& nest) : packing_(packing), nest_(nest) {
    std::vector<InstructionLoop> loops;
    for (const Stmt& loop : nest.loops) {
      loops.push_back({loop->var.get(), loop->extent, 0, loop->extent});
      copy_.extents.push_back(loop->extent);
    }
    scope_.begin(std::move(loops));
  }

  Result<npu::PackCopy> copy() {
    const StmtNode& store = *nest_.leaf;
    Expr value = store.value;
    int64_t otherwise = 0;
    for (const Expr& guard : nest_.guards)
      if (!add_condition(guard)) return refused(to_text(guard));
    if (!nest_.guards.empty()) return refused("a guard around a store");
    if (value->kind == ExprKind::kSelect) {
      if (!is_const_int(value->operands[2], &otherwise) || otherwise != 0 ||
          !add_condition(value->operands[0]))
        return refused(to_text(value));
      value = Expr(value->operands[1]);
    }
    if (value->kind != ExprKind::kLoad || value->dtype != store.buffer->dtype) return refused(to_text(value));
    const std::optional<uint32_t> from = argument(value->buffer), to = argument(store.buffer);
    if (!from || !to || !place(value->buffer, value->operands, copy_.source) ||
        !place(store.buffer, store.indices, copy_.target))
      return refused(to_text(value));
    copy_.from = *from;
    copy_.to = *to;
    copy_.element_bytes = static_cast<uint32_t>(dtype_bytes(store.buffer->dtype));
    return copy_;
  }

 private:
  static Status refused(const std::string& what) {
    return invalid_config("npu: constants are packed by copies alone; found ", what);
  }
  std::optional<uint32_t> argument(const Buffer& buffer) const {
    const auto found = std::find(packing_.args.begin(), packing_.args.end(), buffer);
    if (found == packing_.args.end()) return std::nullopt;
    return static_cast<uint32_t>(found - packing_.args.begin());
  }
  bool place(const Buffer& buffer, const std::vector<Expr>& indices, npu::PackCopy::Linear& at) const {
    Linear sum;
    sum.by.assign(copy_.extents.size(), 0);
    for (size_t d = 0; d < indices.size(); ++d) {
      const std::optional<Linear> index = scope_.linear(indices[d]);
      if (!index) return false;
      sum.base = sum.base * buffer->shape[d] + index->base;
      for (size_t i = 0; i < sum.by.size(); ++i) sum.by[i] = sum.by[i] * buffer->shape[d] + index->by[i];
    }
    const int64_t size = dtype_bytes(buffer->dtype);
    sum.base *= size;
    for (int64_t& each : sum.by) each *= size;
    at = in_file(sum);
    return true;
  }
  bool add_condition(const Expr& c) {
    if (is_binary(c, BinaryOp::kAnd)) return add_condition(c->operands[0]) && add_condition(c->operands[1]);
    if (!is_binary(c, BinaryOp::kLt) && !is_binary(c, BinaryOp::kGe)) return false;
    std::optional<Linear> a = scope_.linear(c->operands[0]), b = scope_.linear(c->operands[1]);
    if (!a || !b) return false;
    if (is_binary(c, BinaryOp::kLt)) {  // a < b is b - a - 1 >= 0
      std::swap(a, b);
      a->base -= 1;
    }
    a->base -= b->base;
    for (size_t i = 0; i < a->by.size(); ++i) a->by[i] -= b->by[i];
    copy_.at_least_zero.push_back(in_file(*a));
    return true;
  }

  const Program& packing_;
  const Nest& nest_;
  LinearScope scope_;
  npu::PackCopy copy_;
};

Status add_copies(const Program& packing, const Stmt& s, npu::KernelFile& kernel) {
  if (s == nullptr) return Status::ok();
  if (s->kind == StmtKind::kSeq) {
    for (const Stmt& each : s->stmts) RETURN_IF_ERROR(add_copies(packing, each, kernel));
    return Status::ok();
  }
  const Nest nest = nest_at(s);
  if (nest.leaf == nullptr || nest.leaf->kind != StmtKind::kStore || nest.leaf->reduce != ReduceOp::kNone)
    return invalid_config("npu: constants are packed by copies alone; found \"",
                          to_text(s).substr(0, to_text(s).find('\n')), "\"");
  ASSIGN_OR_RETURN(npu::PackCopy copy, CopyOfNest(packing, nest).copy());
  kernel.packing.push_back(std::move(copy));
  return Status::ok();
}

}  // namespace

Status pack_constants(const Program& program, npu::KernelFile& kernel) {
  if (program.packing == nullptr) return Status::ok();
  for (const Buffer& arg : program.packing->args)
    kernel.pack_bytes.push_back(static_cast<uint64_t>(arg->bytes()));
  return add_copies(*program.packing, program.packing->body, kernel);
}

}  // namespace tuner
