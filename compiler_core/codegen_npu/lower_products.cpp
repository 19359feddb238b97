// Products in the accumulators: `matmul`, `matmul_os`, `macc`.
#include <algorithm>
#include <utility>

#include "compiler_core/codegen_npu/npu_lowering.h"

namespace tuner {
namespace {

using npu::Instruction;
using npu::Op;

// What the fields of instructions hold.
constexpr int64_t kMostMatmulRows = 1023, kMostOuter = 255, kMostTerms = 4095;
constexpr int64_t kMostTaps = 15, kMostTapStride = 1023;

bool is_unsigned(const Expr& operand) { return operand->dtype == DType::kUInt8; }

}  // namespace

bool NpuLowering::stays_in_block(const Expr& sums) const {
  const std::optional<Linear> column = scope_.linear(sums->operands.back());
  return column && column->is_constant();
}

Result<NpuLowering::SumRows> NpuLowering::sums_of(const Expr& operand) {
  const auto found = fragments_.find(operand->buffer.get());
  if (found == fragments_.end())
    return invalid_config("npu: ", operand->buffer->name, " is not in the accumulators");
  SumRows at{.sums = &found->second, .row = {}, .block = 0};
  at.row.by.assign(scope_.loops().size(), 0);
  const std::vector<Expr>& indices = operand->operands;
  for (size_t d = 0; d < indices.size(); ++d) {
    const std::optional<Linear> index = scope_.linear(indices[d]);
    if (!index) return invalid_config("npu: ", to_text(operand), " moves by no constant step");
    if (d + 1 == indices.size()) {
      if (!index->is_constant() || index->base % m_.array_columns != 0)
        return invalid_config("npu: ", to_text(operand), " is not a block of columns");
      at.block = index->base / m_.array_columns;
      break;
    }
    at.row.base = at.row.base * operand->buffer->shape[d] + index->base;
    for (size_t i = 0; i < at.row.by.size(); ++i)
      at.row.by[i] = at.row.by[i] * operand->buffer->shape[d] + index->by[i];
  }
  return at;
}

Status NpuLowering::zero(const StmtNode& leaf) {
  ASSIGN_OR_RETURN(const SumRows at, sums_of(leaf.operands[0]));
  const bool tile = leaf.name.find('x') != std::string::npos;
  const int64_t rows = tile ? m_.array_rows : 1;
  std::vector<int64_t> counter(scope_.loops().size(), 0);
  for (;;) {
    int64_t row = at.row.base;
    for (size_t i = 0; i < counter.size(); ++i) row += at.row.by[i] * counter[i];
    for (int64_t r = 0; r < rows; ++r) at.sums->set_zero(row + r, at.block);
    size_t i = counter.size();
    while (i > 0 && ++counter[i - 1] == scope_.loops()[i - 1].extent) counter[--i] = 0;
    if (i == 0) return Status::ok();
  }
}

Result<bool> NpuLowering::begin_sums(FragmentSums& sums, int64_t row, int64_t count, int64_t block) {
  const FragmentSums::State before = sums.state(row, block);
  for (int64_t r = 0; r < count; ++r) {
    FragmentSums::State& state = sums.state(row + r, block);
    if (state != before || state == FragmentSums::State::kUnset)
      return invalid_config(
          "npu: a product adds to rows of which some hold nothing, or other sums than the rest");
    state = FragmentSums::State::kSummed;
  }
  return before == FragmentSums::State::kSummed;
}

Result<int64_t> NpuLowering::words_of(int64_t bytes, const Expr& operand) const {
  if (bytes % m_.bank_bytes == 0) return bytes / m_.bank_bytes;
  return invalid_config("npu: ", to_text(operand),
                        " does not begin at a word of the scratchpad, or its rows do not");
}

Result<bool> NpuLowering::rows_product(const Nest& nest) {
  const std::vector<Expr>& operands = nest.leaf->operands;
  ASSIGN_OR_RETURN(const Linear b, byte_of(operands[2]->buffer, operands[2]->operands));
  if (!b.is_constant()) return false;
  ASSIGN_OR_RETURN(const SumRows sums, sums_of(operands[0]));
  ASSIGN_OR_RETURN(const Linear a, byte_of(operands[1]->buffer, operands[1]->operands));
  // Loops of one iteration are none.
  std::vector<size_t> loops;
  for (size_t i = 0; i < nest.loops.size(); ++i)
    if (nest.loops[i]->extent > 1) loops.push_back(i);
  const auto extent = [&](size_t from_inside) {
    return loops.size() > from_inside ? nest.loops[loops[loops.size() - 1 - from_inside]]->extent : 1;
  };
  const auto step = [&](const Linear& l, size_t from_inside) {
    return loops.size() > from_inside ? l.by[loops[loops.size() - 1 - from_inside]] : 0;
  };
  const int64_t rows = extent(0), outer = extent(1);
  if ((rows > 1 && step(sums.row, 0) != 1) ||
      (outer > 1 && (step(sums.row, 1) != rows || rows > kMostMatmulRows)))
    return false;
  ASSIGN_OR_RETURN(const int64_t source, words_of(a.base, operands[1]));
  ASSIGN_OR_RETURN(const int64_t stride, words_of(step(a, 0), operands[1]));
  ASSIGN_OR_RETURN(const int64_t outer_stride, words_of(step(a, 1), operands[1]));
  ASSIGN_OR_RETURN(const int64_t weights, words_of(b.base, operands[2]));
  note(nest);
  RETURN_IF_ERROR(
      take_weights(operands[2], weights, shared_.at(operands[2]->buffer.get()).pitch / m_.bank_bytes));
  // As many rows as an instruction takes, again and again.
  const int64_t rows_each = std::min(rows, kMostMatmulRows), outer_each = std::min(outer, kMostOuter);
  for (int64_t o = 0; o < outer; o += outer_each)
    for (int64_t r = 0; r < rows; r += rows_each) {
      const int64_t count = std::min(rows_each, rows - r), outer_count = std::min(outer_each, outer - o);
      const int64_t row = sums.row.base + o * rows + r;
      ASSIGN_OR_RETURN(const bool adds, begin_sums(*sums.sums, row, count * outer_count, sums.block));
      RETURN_IF_ERROR(emit({.op = Op::kMatmul,
                            .accumulate = adds,
                            .swap = std::exchange(must_swap_, false),
                            .is_unsigned = is_unsigned(operands[1]),
                            .source = static_cast<uint32_t>(source + o * outer_stride + r * stride),
                            .sums = static_cast<uint32_t>(sums.sums->row(row, sums.block)),
                            .rows = static_cast<uint32_t>(count),
                            .outer = static_cast<uint32_t>(outer_count),
                            .stride = static_cast<uint32_t>(stride),
                            .outer_stride = static_cast<uint32_t>(outer_stride)}));
      latest_matmul_ = code_.size() - 1;
    }
  return true;
}

Status NpuLowering::take_weights(const Expr& operand, int64_t word, int64_t stride) {
  const size_t loaded = loaded_at(static_cast<uint32_t>(word));
  const Weights wanted{word, stride, loaded};
  if (weights_ == wanted) return Status::ok();
  weights_ = wanted;
  must_swap_ = true;
  if (stride > 255)
    return invalid_config("npu: rows of ", operand->buffer->name, " are ", stride,
                          " words apart, a fill takes at most 255");
  if (latest_matmul_ && !code_[*latest_matmul_].fill && loaded <= *latest_matmul_) {
    Instruction& before = code_[*latest_matmul_];
    before.fill = true;
    before.source2 = static_cast<uint32_t>(word);
    before.stride2 = static_cast<uint32_t>(stride);
    return Status::ok();
  }
  return emit({.op = Op::kMatmul,
               .fill = true,
               .source2 = static_cast<uint32_t>(word),
               .stride2 = static_cast<uint32_t>(stride)});
}

Result<bool> NpuLowering::terms_product(const Nest& nest) {
  const std::vector<Expr>& operands = nest.leaf->operands;
  ASSIGN_OR_RETURN(const SumRows sums, sums_of(operands[0]));
  if (!sums.row.is_constant()) return false;
  ASSIGN_OR_RETURN(const Linear a, byte_of(operands[1]->buffer, operands[1]->operands));
  ASSIGN_OR_RETURN(const Linear b, byte_of(operands[2]->buffer, operands[2]->operands));
  const int64_t terms = nest.loops.empty() ? 1 : nest.loops[0]->extent;
  const auto step = [&](const Linear& l) { return l.by.empty() ? 0 : l.by[0]; };
  ASSIGN_OR_RETURN(const int64_t source, words_of(a.base, operands[1]));
  ASSIGN_OR_RETURN(const int64_t stride, words_of(step(a), operands[1]));
  ASSIGN_OR_RETURN(const int64_t source2, words_of(b.base, operands[2]));
  ASSIGN_OR_RETURN(const int64_t stride2, words_of(step(b), operands[2]));
  note(nest);
  for (int64_t k = 0; k < terms; k += kMostTerms) {
    ASSIGN_OR_RETURN(const bool adds, begin_sums(*sums.sums, sums.row.base, m_.array_rows, sums.block));
    RETURN_IF_ERROR(emit({.op = Op::kMatmulOs,
                          .accumulate = adds,
                          .is_unsigned = is_unsigned(operands[1]),
                          .source = static_cast<uint32_t>(source + k * stride),
                          .source2 = static_cast<uint32_t>(source2 + k * stride2),
                          .sums = static_cast<uint32_t>(sums.sums->row(sums.row.base, sums.block)),
                          .rows = static_cast<uint32_t>(std::min(kMostTerms, terms - k)),
                          .stride = static_cast<uint32_t>(stride),
                          .stride2 = static_cast<uint32_t>(stride2)}));
  }
  return true;
}

Result<bool> NpuLowering::channels_product(const Nest& nest) {
  const std::vector<Expr>& operands = nest.leaf->operands;
  ASSIGN_OR_RETURN(const SumRows sums, sums_of(operands[0]));
  ASSIGN_OR_RETURN(const Linear a, byte_of(operands[1]->buffer, operands[1]->operands));
  ASSIGN_OR_RETURN(const Linear b, byte_of(operands[2]->buffer, operands[2]->operands));
  Instruction i{
      .op = Op::kMacc, .is_unsigned = is_unsigned(operands[1]), .rows = 1, .taps_x = 1, .taps_y = 1};
  const int64_t tap_bytes = m_.column_words() * m_.bank_bytes;
  bool has_rows = false;
  int taps = 0;
  for (size_t l = nest.loops.size(); l-- > 0;) {  // from the inside
    const int64_t extent = nest.loops[l]->extent;
    if (extent == 1) continue;
    ASSIGN_OR_RETURN(const int64_t step, words_of(a.by[l], operands[1]));
    if (sums.row.by[l] != 0) {
      if (has_rows || sums.row.by[l] != 1 || b.by[l] != 0 || extent > kMostMatmulRows ||
          step > kMostTapStride)
        return false;
      has_rows = true;
      i.rows = static_cast<uint32_t>(extent);
      i.stride = static_cast<uint32_t>(step);
    } else {
      const int64_t apart = taps == 0 ? tap_bytes : tap_bytes * int64_t{i.taps_x};
      if (taps == 2 || b.by[l] != apart || extent > kMostTaps) return false;
      (taps == 0 ? i.taps_x : i.taps_y) = static_cast<uint32_t>(extent);
      (taps == 0 ? i.step_x : i.step_y) = static_cast<uint32_t>(step);
      ++taps;
    }
  }
  ASSIGN_OR_RETURN(const int64_t source, words_of(a.base, operands[1]));
  ASSIGN_OR_RETURN(const int64_t source2, words_of(b.base, operands[2]));
  i.source = static_cast<uint32_t>(source);
  i.source2 = static_cast<uint32_t>(source2);
  i.sums = static_cast<uint32_t>(sums.sums->row(sums.row.base, sums.block));
  note(nest);
  ASSIGN_OR_RETURN(i.accumulate, begin_sums(*sums.sums, sums.row.base, i.rows, sums.block));
  RETURN_IF_ERROR(emit(i));
  return true;
}

}  // namespace tuner
