// Whole rows in the vector unit: `softmax`, `norm`. Maxima and sums of a row stand in registers in the
// Program, and are part of the one instruction that reads them here.
#include <algorithm>

#include "compiler_core/base/int_math.h"
#include "compiler_core/base/integer_types.h"
#include "compiler_core/codegen_npu/npu_lowering.h"
#include "compiler_core/codegen_npu/row_math.h"
#include "compiler_core/ir/visitor.h"

namespace tuner {
namespace {

using npu::Op;

constexpr int64_t kMostRows = 1023, kMostRowBytes = 4095, kMostRowStride = 255;
constexpr int64_t kExponentials = 256;

std::vector<Expr> loads_in(const Expr& value) {
  std::vector<Expr> found;
  visit(value, [&](const Expr& e) {
    const bool known = std::ranges::any_of(found, [&](const Expr& f) { return equal(f, e); });
    if (e->kind == ExprKind::kLoad && !known) found.push_back(e);
  });
  return found;
}

// The number that stands left of a division, or right of an addition, whose other side has such a node.
std::optional<double> number_beside(const Expr& value, BinaryOp op, size_t place) {
  std::optional<double> found;
  visit(value, [&](const Expr& e) {
    if (!is_binary(e, op) || e->operands[place]->kind != ExprKind::kFloatImm) return;
    if (!found) found = e->operands[place]->float_value;
  });
  return found;
}

// Behind round(): the zero point.
int64_t zero_of(const Expr& value) {
  int64_t zero = 0;
  visit(value, [&](const Expr& e) {
    if (is_binary(e, BinaryOp::kAdd) && e->operands[0]->kind == ExprKind::kUnary &&
        e->operands[0]->unary_op == UnaryOp::kRound && e->operands[1]->kind == ExprKind::kFloatImm)
      zero = static_cast<int64_t>(e->operands[1]->float_value);
  });
  return zero;
}

}  // namespace

Status NpuLowering::row_value(const StmtNode& leaf) {
  if (leaf.reduce == ReduceOp::kNone && is_const_int(leaf.value)) return Status::ok();
  RowValue found;
  for (const Expr& e : loads_in(leaf.value)) {
    if (is_shared(e)) found.x = e;
    if (places_in_dram_.contains(e->buffer.get())) found.table = e->buffer;
    if (const auto most = row_values_.find(e->buffer.get()); most != row_values_.end()) found.most = e;
  }
  const auto is = [&](const Expr& expected) { return equal(leaf.value, expected); };
  if (found.x.defined()) {
    if (leaf.reduce == ReduceOp::kMax && is(npu_rows::whole(found.x)))
      found.kind = RowValue::Kind::kMost;
    else if (leaf.reduce == ReduceOp::kSum && is(npu_rows::summand(found.x)))
      found.kind = RowValue::Kind::kSum;
    else if (leaf.reduce == ReduceOp::kSum && is(npu_rows::square(found.x)))
      found.kind = RowValue::Kind::kSquares;
    else if (leaf.reduce == ReduceOp::kSum && found.table != nullptr && found.most.defined() &&
             is(cast(DType::kInt64, npu_rows::exponential(found.table, found.most, found.x))))
      found.kind = RowValue::Kind::kTotal;
  }
  if (found.kind == RowValue::Kind::kNone)
    return invalid_config("npu: ", leaf.buffer->name,
                          " of a row is no maximum or sum that it has: ", to_text(leaf.value));
  row_values_.insert_or_assign(leaf.buffer.get(), found);
  return Status::ok();
}

std::optional<NpuLowering::RowResult> NpuLowering::match_rows(const StmtNode& leaf) const {
  RowResult r;
  Expr most, total, sum, squares, gain, offset;
  for (const Expr& e : loads_in(leaf.value)) {
    if (is_shared(e)) r.x = e;
    if (const auto known = row_values_.find(e->buffer.get()); known != row_values_.end()) {
      using Kind = RowValue::Kind;
      const Kind kind = known->second.kind;
      (kind == Kind::kMost ? most : kind == Kind::kTotal ? total : kind == Kind::kSum ? sum : squares) = e;
    } else if (places_in_dram_.contains(e->buffer.get())) {
      if (e->dtype == DType::kInt32)
        r.table = e->buffer;
      else
        (gain.defined() ? offset : gain) = e;
    }
  }
  if (!r.x.defined()) return std::nullopt;
  r.zero = zero_of(leaf.value);
  const DType dtype = leaf.buffer->dtype;
  if (r.table != nullptr && most.defined() && total.defined()) {
    const auto scale = number_beside(leaf.value, BinaryOp::kDiv, 0);
    if (!scale) return std::nullopt;
    r.scale = static_cast<float>(*scale);
    if (!equal(leaf.value, npu_rows::softmax(dtype, r.table, most, total, r.x, r.scale, r.zero)))
      return std::nullopt;
    return r;
  }
  if (!sum.defined() || !squares.defined() || !offset.defined()) return std::nullopt;
  for (const InstructionLoop& loop : scope_.loops()) r.columns = loop.extent;  // the innermost
  visit(leaf.value, [&](const Expr& e) {
    if (e->kind == ExprKind::kUnary && e->unary_op == UnaryOp::kSqrt &&
        is_binary(e->operands[0], BinaryOp::kAdd) && e->operands[0]->operands[1]->kind == ExprKind::kFloatImm)
      r.scale = static_cast<float>(e->operands[0]->operands[1]->float_value);
  });
  for (int turn = 0; turn < 2; ++turn, std::swap(gain, offset)) {
    const npu_rows::NormOperands operands{r.x, sum, squares, gain, offset, r.columns, r.scale, r.zero};
    if (!equal(leaf.value, npu_rows::norm(dtype, operands))) continue;
    r.gain = gain->buffer, r.offset = offset->buffer;
    return r;
  }
  return std::nullopt;
}

// Tables stand in the scratchpad from the beginning on, as those of scales do.
Status NpuLowering::load_row_tables() {
  std::vector<const BufferNode*> exponentials, by_column;  // in the order in which they are read
  const auto add = [](std::vector<const BufferNode*>& to, const BufferNode* b) {
    if (std::ranges::find(to, b) == to.end()) to.push_back(b);
  };
  visit(program_.body, [&](const Stmt& s) {
    if (s->kind != StmtKind::kStore || s->buffer->scope != MemoryScope::kShared) return;
    if (match_quantized_sum(s->value)) return;
    for (const Expr& e : loads_in(s->value)) {
      const BufferNode* const b = e->buffer.get();
      if (!places_in_dram_.contains(b) || equal(s->value, e)) continue;
      if (b->dtype == DType::kInt32) add(exponentials, b);
      if (b->dtype == DType::kFloat32) add(by_column, b);
    }
  });
  const auto dram_of = [&](const BufferNode* b) { return static_cast<int64_t>(places_in_dram_.at(b)); };
  for (const BufferNode* b : exponentials) {
    row_tables_[b] = next_word_;
    const Rectangle r{.dram = dram_of(b), .word = next_word_, .bytes = 4 * kExponentials};
    if (b->elements() != kExponentials)
      return invalid_config("npu: ", b->name, " has ", b->elements(), " numbers, a table has ",
                            kExponentials);
    RETURN_IF_ERROR(new_buffer(4 * kExponentials / m_.bank_bytes));
    RETURN_IF_ERROR(load_rectangle(r));
  }
  if (by_column.size() > 2) return invalid_config("npu: more than two tables of numbers per column");
  // Per word of bytes as many gains, then as many offsets. Which is which is known when the rows are.
  if (by_column.size() != 2) return Status::ok();
  const int64_t columns = by_column[0]->elements(), width = m_.bank_bytes, words = ceil_div(columns, width);
  row_tables_[nullptr] = next_word_;
  norm_tables_ = by_column;
  const int64_t begin = next_word_;
  RETURN_IF_ERROR(new_buffer(8 * words));
  for (size_t half = 0; half < 2; ++half) {
    Rectangle r{.dram = dram_of(by_column[half]),
                .word = begin + static_cast<int64_t>(half) * 4,
                .dram_stride = 4 * width,
                .stride = 8,
                .rows = columns / width,
                .bytes = 4 * width};
    if (r.rows > 0) RETURN_IF_ERROR(load_rectangle(r));
    const int64_t rest = columns % width;
    if (rest == 0) continue;
    r.dram += r.rows * r.dram_stride;
    r.word += r.rows * r.stride;
    r.rows = 1;
    r.bytes = 4 * rest;
    r.right = 4 * width - r.bytes;
    RETURN_IF_ERROR(load_rectangle(r));
  }
  return Status::ok();
}

Result<bool> NpuLowering::rows_result(const Nest& nest, const RowResult& row) {
  const StmtNode& leaf = *nest.leaf;
  ASSIGN_OR_RETURN(const Linear to, byte_of(leaf.buffer, leaf.indices));
  ASSIGN_OR_RETURN(const Linear from, byte_of(row.x->buffer, row.x->operands));
  int64_t rows = 1, bytes = 1, stride = 0, first = 0;
  const std::vector<InstructionLoop>& loops = scope_.loops();
  for (size_t l = loops.size(); l-- > 0;) {
    const int64_t extent = loops[l].end - loops[l].begin;
    if (extent == 1 && loops[l].extent == 1) continue;
    if (to.by[l] == 1 && from.by[l] == 1 && loops[l].begin == 0) {
      bytes = extent;
      continue;
    }
    if (rows != 1 || to.by[l] != from.by[l]) return false;
    rows = extent;
    first = loops[l].begin * to.by[l];
    ASSIGN_OR_RETURN(stride, aligned(to.by[l], leaf));
  }
  if (rows > kMostRows) return false;
  if (bytes > kMostRowBytes || stride > kMostRowStride)
    return invalid_config("npu: a row of ", bytes, " bytes, ", stride,
                          " words apart, is longer than an "
                          "instruction takes");
  ASSIGN_OR_RETURN(const int64_t source, words_of(from.base + first, row.x));
  ASSIGN_OR_RETURN(const int64_t target, aligned(to.base + first, leaf));
  const bool is_softmax = row.table != nullptr;
  if (!is_softmax && (norm_tables_.size() != 2 || norm_tables_[0] != row.gain.get()))
    return invalid_config("npu: the numbers of ", leaf.buffer->name, " are out of order: gains come first");
  note(nest);
  QuantizedSum registers{.a = row.x, .b = row.x, .zero = static_cast<int32_t>(row.zero)};
  (is_softmax ? registers.scale_a : registers.scale_b) = row.scale;
  RETURN_IF_ERROR(set_registers(registers, leaf.buffer->dtype));
  RETURN_IF_ERROR(emit({.op = is_softmax ? Op::kSoftmax : Op::kNorm,
                        .source = static_cast<uint32_t>(source),
                        .source2 = row_tables_.at(is_softmax ? row.table.get() : nullptr),
                        .target = static_cast<uint32_t>(target),
                        .rows = static_cast<uint32_t>(rows),
                        .bytes = static_cast<uint32_t>(bytes),
                        .stride = static_cast<uint32_t>(stride)}));
  return true;
}

}  // namespace tuner
