// The vector unit, from the scratchpad to the scratchpad: `add`, `pool`.
#include <algorithm>

#include "compiler_core/base/int_math.h"
#include "compiler_core/base/integer_types.h"
#include "compiler_core/codegen_npu/npu_lowering.h"

namespace tuner {
namespace {

using npu::Instruction;
using npu::Op;

// What the fields of instructions hold.
constexpr int64_t kMostAddWords = 65535;
constexpr int64_t kMostPoolRows = 1023, kMostPoolStride = 1023, kMostPoolStride2 = 255, kMostPoolTaps = 15;
constexpr int64_t kMostPoolStepX = 255, kMostPoolStepY = 4095;

}  // namespace

bool NpuLowering::is_shared(const Expr& e) const {
  return e->kind == ExprKind::kLoad && shared_.contains(e->buffer.get());
}

Result<NpuLowering::Vectored> NpuLowering::vector_store(const Nest& nest) {
  const StmtNode& leaf = *nest.leaf;
  begin_turn(leaf.buffer.get());
  const auto done = [](bool yes) { return yes ? Vectored::kDone : Vectored::kLess; };
  if (leaf.reduce == ReduceOp::kMax) {
    ASSIGN_OR_RETURN(const bool yes, maxima(nest));
    return done(yes);
  }
  if (is_const_int(leaf.value)) {
    RETURN_IF_ERROR(begin_maxima(leaf));
    return Vectored::kDone;
  }
  if (const std::optional<QuantizedSum> sum = match_quantized_sum(leaf.value)) {
    ASSIGN_OR_RETURN(const bool yes, quantized_sum(nest, *sum));
    return done(yes);
  }
  if (const std::optional<RowResult> rows = match_rows(leaf)) {
    ASSIGN_OR_RETURN(const bool yes, rows_result(nest, *rows));
    return done(yes);
  }
  return Vectored::kNo;
}

std::pair<int64_t, int64_t> NpuLowering::words_in(const Linear& bytes) const {
  const auto [least, most] = scope_.range(bytes);
  return {least / m_.bank_bytes, most / m_.bank_bytes + 1};
}

// --- sums of two ---

Status NpuLowering::set_registers(const QuantizedSum& sum, DType dtype) {
  const bool is_u8 = dtype == DType::kUInt8;
  const int32_t low = is_u8 ? 0 : -128;
  const Instruction wanted{.op = Op::kSetVector,
                           .is_unsigned = is_u8,
                           .zero_a = sum.zero_a,
                           .zero_b = sum.zero_b,
                           .zero = sum.zero,
                           .low = low,
                           .high = low + 255,
                           .scale_a = sum.scale_a,
                           .scale_b = sum.scale_b};
  if (vector_registers_ == wanted) return Status::ok();
  vector_registers_ = wanted;
  return emit(wanted);
}

Result<bool> NpuLowering::quantized_sum(const Nest& nest, const QuantizedSum& sum) {
  const StmtNode& leaf = *nest.leaf;
  for (const Expr& operand : {sum.a, sum.b})
    if (!is_shared(operand))
      return invalid_config("npu: ", operand->buffer->name, " is added from outside of the scratchpad");
  ASSIGN_OR_RETURN(Linear to, byte_of(leaf.buffer, leaf.indices));
  ASSIGN_OR_RETURN(Linear a, byte_of(sum.a->buffer, sum.a->operands));
  ASSIGN_OR_RETURN(Linear b, byte_of(sum.b->buffer, sum.b->operands));
  std::vector<InstructionLoop> loops = scope_.loops(), same = loops;
  merge_loops(loops, same, {&to, &a, &b});
  if (loops.size() > 1) return false;
  int64_t count = 1, begin = 0;
  if (!loops.empty()) {
    if (to.by[0] != 1 || a.by[0] != 1 || b.by[0] != 1) return false;
    begin = loops[0].begin;
    count = loops[0].end - begin;
  }
  ASSIGN_OR_RETURN(const int64_t target, aligned(to.base + begin, leaf));
  ASSIGN_OR_RETURN(const int64_t source, words_of(a.base + begin, sum.a));
  ASSIGN_OR_RETURN(const int64_t source2, words_of(b.base + begin, sum.b));
  note(nest);
  RETURN_IF_ERROR(set_registers(sum, leaf.value->dtype));
  const int64_t words = ceil_div(count, m_.bank_bytes);
  for (int64_t word = 0; word < words; word += kMostAddWords)
    RETURN_IF_ERROR(emit({.op = Op::kAdd,
                          .source = static_cast<uint32_t>(source + word),
                          .source2 = static_cast<uint32_t>(source2 + word),
                          .target = static_cast<uint32_t>(target + word),
                          .rows = static_cast<uint32_t>(std::min(kMostAddWords, words - word))}));
  return true;
}

// --- maxima ---

Status NpuLowering::begin_maxima(const StmtNode& leaf) {
  int64_t number = 0;
  const DType dtype = leaf.buffer->dtype;
  if (!is_const_int(leaf.value, &number) || number != range_of(dtype).first)
    return invalid_config("npu: ", leaf.buffer->name, " begins with ", to_text(leaf.value),
                          ", a maximum begins with ", range_of(dtype).first);
  ASSIGN_OR_RETURN(const Linear to, byte_of(leaf.buffer, leaf.indices));
  const auto [first, end] = words_in(to);
  for (int64_t word = first; word < end; ++word) begun_.insert(word);
  return Status::ok();
}

// One loop over the bytes of a word, one over results, and up to two over taps, in any order.
Result<bool> NpuLowering::maxima(const Nest& nest) {
  const StmtNode& leaf = *nest.leaf;
  if (!is_shared(leaf.value))
    return invalid_config("npu: a maximum of ", to_text(leaf.value), ", which is not in the scratchpad");
  ASSIGN_OR_RETURN(const Linear to, byte_of(leaf.buffer, leaf.indices));
  ASSIGN_OR_RETURN(const Linear from, byte_of(leaf.value->buffer, leaf.value->operands));
  Instruction i{.op = Op::kPool,
                .is_unsigned = leaf.buffer->dtype == DType::kUInt8,
                .rows = 1,
                .taps_x = 1,
                .taps_y = 1};
  bool has_lanes = false, has_rows = false;
  int taps = 0;
  const std::vector<InstructionLoop>& loops = scope_.loops();
  for (size_t l = loops.size(); l-- > 0;) {  // from the inside
    const int64_t extent = loops[l].end - loops[l].begin;
    if (extent == 1) continue;
    if (loops[l].begin != 0) return false;
    if (to.by[l] == 1 && from.by[l] == 1) {
      if (has_lanes || extent > m_.bank_bytes) return false;
      has_lanes = true;
      continue;
    }
    ASSIGN_OR_RETURN(const int64_t step, words_of(from.by[l], leaf.value));
    ASSIGN_OR_RETURN(const int64_t step_to, aligned(to.by[l], leaf));
    if (step_to != 0) {
      if (has_rows || extent > kMostPoolRows || step > kMostPoolStride || step_to > kMostPoolStride2)
        return false;
      has_rows = true;
      i.rows = static_cast<uint32_t>(extent);
      i.stride = static_cast<uint32_t>(step);
      i.stride2 = static_cast<uint32_t>(step_to);
    } else {
      if (taps == 2 || extent > kMostPoolTaps || step > (taps == 0 ? kMostPoolStepX : kMostPoolStepY))
        return false;
      (taps == 0 ? i.taps_x : i.taps_y) = static_cast<uint32_t>(extent);
      (taps == 0 ? i.step_x : i.step_y) = static_cast<uint32_t>(step);
      ++taps;
    }
  }
  ASSIGN_OR_RETURN(const int64_t source, words_of(from.base, leaf.value));
  ASSIGN_OR_RETURN(const int64_t target, aligned(to.base, leaf));
  i.source = static_cast<uint32_t>(source);
  i.target = static_cast<uint32_t>(target);
  for (uint32_t row = 0; row < i.rows; ++row)
    if (begun_.erase(target + row * int64_t{i.stride2}) == 0)
      return invalid_config("npu: a maximum of ", leaf.value->buffer->name,
                            " is more than one instruction's, and `pool` goes on with none");
  note(nest);
  RETURN_IF_ERROR(emit(i));
  return true;
}

}  // namespace tuner
