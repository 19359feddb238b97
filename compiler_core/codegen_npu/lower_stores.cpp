// Sums that leave the accumulators: `store_scales`, `store_sums`.
#include <algorithm>

#include "compiler_core/base/int_math.h"
#include "compiler_core/codegen_npu/npu_lowering.h"
#include "compiler_core/ir/visitor.h"

namespace tuner {
namespace {

using npu::Op;

constexpr int64_t kMostStoreRows = 4095, kMostStoreBytes = 16383;  // what fields hold

}  // namespace

int64_t NpuLowering::block_words() const { return 8 * m_.array_columns / m_.bank_bytes; }

Status NpuLowering::load_tables() {
  Status status;
  visit(program_.body, [&](const Stmt& s) {
    if (s->kind != StmtKind::kStore || !status.is_ok() || !places_in_dram_.contains(s->buffer.get())) return;
    const std::optional<RequantisedSum> out = match_requantised(s->value);
    if (out) status = load_table(*out);
  });
  return status;
}

Status NpuLowering::load_table(const RequantisedSum& out) {
  const BufferNode* const bias = out.bias.defined() ? out.bias->buffer.get() : nullptr;
  const BufferNode* const scale = out.scale->buffer.get();
  if (find_table(out) != nullptr) return Status::ok();
  if (!places_in_dram_.contains(scale) || (bias != nullptr && !places_in_dram_.contains(bias)) ||
      scale->shape.size() != 1 || (bias != nullptr && bias->shape != scale->shape))
    return invalid_config("npu: bias and scale of ", scale->name,
                          " are no arguments with a number per channel");
  const int64_t half = 4 * m_.array_columns;
  if (half % m_.bank_bytes != 0)
    return invalid_config("npu: ", half, " bytes of scales are no whole number of words of ", m_.bank_bytes);
  const int64_t channels = scale->shape[0], blocks = ceil_div(channels, m_.array_columns);
  const Table table{bias, scale, next_word_, channels};
  RETURN_IF_ERROR(new_buffer(blocks * block_words()));
  tables_.push_back(table);
  notes_.emplace_back(static_cast<uint32_t>(code_.size()),
                      str("the tables of ", scale->name, bias == nullptr ? "" : " and " + bias->name));
  for (const BufferNode* half_of : {bias, scale}) {
    Rectangle r{.word = table.begin + (half_of == scale ? half / m_.bank_bytes : 0), .stride = block_words()};
    if (half_of == nullptr) {
      RETURN_IF_ERROR(load_fill(r.word, r.stride, blocks, half, 0));
      continue;
    }
    r.dram = static_cast<int64_t>(places_in_dram_.at(half_of));
    r.dram_stride = r.bytes = half;
    r.rows = channels / m_.array_columns;
    if (r.rows > 0) RETURN_IF_ERROR(load_rectangle(r));
    const int64_t rest = channels % m_.array_columns;
    if (rest == 0) continue;
    r.dram += r.rows * half;
    r.word += r.rows * r.stride;
    r.rows = 1;
    r.bytes = 4 * rest;
    r.right = half - r.bytes;
    RETURN_IF_ERROR(load_rectangle(r));
  }
  return Status::ok();
}

const NpuLowering::Table* NpuLowering::find_table(const RequantisedSum& out) const {
  const BufferNode* const bias = out.bias.defined() ? out.bias->buffer.get() : nullptr;
  for (const Table& t : tables_)
    if (t.bias == bias && t.scale == out.scale->buffer.get()) return &t;
  return nullptr;
}

Status NpuLowering::store(const StmtNode& leaf) {
  const std::optional<RequantisedSum> out = match_requantised(leaf.value);
  if (!out)
    return invalid_config("npu: has no instruction for \"", leaf.buffer->name, " = ", to_text(leaf.value),
                          "\": sums leave the accumulators requantised to 8 bits");
  ASSIGN_OR_RETURN(Linear to, byte_of(leaf.buffer, leaf.indices));
  if (out->bias.defined() && !equal(out->bias->operands[0], out->scale->operands[0]))
    return invalid_config("npu: bias and scale of ", leaf.buffer->name, " are those of different channels");
  std::optional<Linear> channel = scope_.linear(out->sum->operands.back()),
                        scale_of = scope_.linear(out->scale->operands[0]);
  if (!channel || !scale_of)
    return invalid_config("npu: the channels of ", leaf.buffer->name, " are out of order");
  ASSIGN_OR_RETURN(SumRows sums, row_of_sums(out->sum));
  std::vector<InstructionLoop> loops = scope_.loops(), same = loops;
  merge_loops(loops, same, {&to, &*channel, &*scale_of, &sums.row});
  const size_t none = loops.size();
  const auto extent = [&](size_t i) { return i == none ? 1 : loops[i].end - loops[i].begin; };
  // The column is the last index of the sums; the row is the innermost other loop.
  size_t column = none, row = none;
  for (size_t i = 0; i < loops.size(); ++i)
    if (channel->by[i] != 0) {
      if (column != none || channel->by[i] != 1 || to.by[i] != 1 || scale_of->by[i] != 1)
        return invalid_config("npu: the channels of ", leaf.buffer->name, " do not lie side by side");
      column = i;
    }
  for (size_t i = 0; i < loops.size(); ++i)
    if (i != column && sums.row.by[i] == 1) row = i;
  std::vector<int64_t> at;
  for (const InstructionLoop& loop : loops) at.push_back(loop.begin);
  for (;;) {
    int64_t dram = to.base, sum_row = sums.row.base, first = channel->base, first_scale = scale_of->base;
    for (size_t i = 0; i < loops.size(); ++i) {
      dram += to.by[i] * at[i];
      sum_row += sums.row.by[i] * at[i];
      first += channel->by[i] * at[i];
      first_scale += scale_of->by[i] * at[i];
    }
    if (first % m_.array_columns != 0 || first_scale % m_.array_columns != 0)
      return invalid_config("npu: a store of ", leaf.buffer->name, " begins within a block of columns");
    RETURN_IF_ERROR(store_rectangle(*out, *sums.sums, dram, row == none ? 0 : to.by[row], sum_row,
                                    extent(row), first / m_.array_columns, first_scale / m_.array_columns,
                                    extent(column)));
    size_t i = loops.size();
    for (; i > 0; --i) {
      if (i - 1 == column || i - 1 == row) continue;
      if (++at[i - 1] < loops[i - 1].end) break;
      at[i - 1] = loops[i - 1].begin;
    }
    if (i == 0) return Status::ok();
  }
}

Result<NpuLowering::SumRows> NpuLowering::row_of_sums(const Expr& operand) {
  std::vector<Expr> indices = operand->operands;
  indices.back() = Expr(0);
  return sums_of(tuner::load(operand->buffer, std::move(indices)));
}

Status NpuLowering::store_rectangle(const RequantisedSum& out, FragmentSums& sums, int64_t dram,
                                    int64_t dram_stride, int64_t row, int64_t rows, int64_t block,
                                    int64_t scale_block, int64_t bytes) {
  const int64_t blocks = ceil_div(bytes, m_.array_columns);
  for (int64_t b = 0; b < blocks; ++b)
    for (int64_t r = 0; r < rows; ++r)
      if (sums.state(row + r, block + b) != FragmentSums::State::kSummed)
        return invalid_config("npu: sums are stored that no product has made");
  for (int64_t b = 0; b < blocks; b += npu::kMostScaleBlocks) {
    const int64_t some = std::min<int64_t>(npu::kMostScaleBlocks, blocks - b);
    RETURN_IF_ERROR(take_scales(out, scale_block + b, some));
    RETURN_IF_ERROR(set_strides(Op::kSetStore, rows > 1 ? dram_stride : 0, 0));
    const int64_t first = b * m_.array_columns;
    for (int64_t r = 0; r < rows; r += kMostStoreRows)
      RETURN_IF_ERROR(emit({.op = Op::kStoreSums,
                            .dram = static_cast<uint32_t>(dram + first + r * dram_stride),
                            .sums = static_cast<uint32_t>(sums.row(row + r, block + b)),
                            .rows = static_cast<uint32_t>(std::min(kMostStoreRows, rows - r)),
                            .bytes = static_cast<uint32_t>(std::min(some * m_.array_columns, bytes - first)),
                            .outer_stride = static_cast<uint32_t>(sums.rows())}));
  }
  return Status::ok();
}

Status NpuLowering::take_scales(const RequantisedSum& out, int64_t block, int64_t blocks) {
  const Table* const table = find_table(out);
  const auto word = static_cast<int64_t>(table->begin) + block * block_words();
  const Scales wanted{word, blocks, out.zero_point->buffer.get(), out.least, out.most};
  if (scales_ == wanted) return Status::ok();
  scales_ = wanted;
  const bool is_u8 = out.zero_point->dtype == DType::kUInt8;
  const int32_t low = is_u8 ? 0 : -128;
  const auto operand = operand_number(out.zero_point->buffer);
  if (!operand || out.zero_point->buffer->elements() != 1)
    return invalid_config("npu: ", out.zero_point->buffer->name, " is no argument of one number");
  const auto number = static_cast<uint32_t>(code_.size());
  RETURN_IF_ERROR(emit({.op = Op::kStoreScales,
                        .is_unsigned = is_u8,
                        .source = static_cast<uint32_t>(word),
                        .blocks = static_cast<uint32_t>(blocks),
                        .low = low,
                        .high = low + 255}));
  using Field = npu::KernelPatch::Field;
  kernel_.patches.push_back({number, *operand, Field::kZero, 0});
  // Farther than 255 is as good as nothing.
  const auto whole = [](double bound) { return static_cast<int32_t>(std::clamp(bound, -256.0, 256.0)); };
  if (out.least) kernel_.patches.push_back({number, *operand, Field::kLow, whole(*out.least)});
  if (out.most) kernel_.patches.push_back({number, *operand, Field::kHigh, whole(*out.most)});
  return Status::ok();
}

std::optional<uint32_t> NpuLowering::operand_number(const Buffer& buffer) const {
  const auto found = std::find(program_.args.begin(), program_.args.end(), buffer);
  if (found == program_.args.end()) return std::nullopt;
  return static_cast<uint32_t>(found - program_.args.begin());
}

Status NpuLowering::store_words(const StmtNode& leaf) {
  if (leaf.value->dtype != leaf.buffer->dtype)
    return invalid_config("npu: ", leaf.buffer->name, " is no copy: ", to_text(leaf.value));
  ASSIGN_OR_RETURN(Linear to, byte_of(leaf.buffer, leaf.indices));
  ASSIGN_OR_RETURN(Linear from, byte_of(leaf.value->buffer, leaf.value->operands));
  std::vector<InstructionLoop> loops = scope_.loops(), same = loops;
  merge_loops(loops, same, {&to, &from});
  const size_t none = loops.size();
  size_t column = none, row = none;
  const auto extent = [&](size_t i) { return i == none ? 1 : loops[i].end - loops[i].begin; };
  for (size_t i = 0; i < loops.size(); ++i)
    if (to.by[i] == 1 && from.by[i] == 1) column = i;
  for (size_t i = 0; i < loops.size(); ++i)
    if (i != column) row = i;  // the innermost
  std::vector<int64_t> at;
  for (const InstructionLoop& loop : loops) at.push_back(loop.begin);
  const int64_t row_words = row == none ? 0 : from.by[row] / m_.bank_bytes;
  if (row != none && from.by[row] % m_.bank_bytes != 0)
    return invalid_config("npu: rows of ", leaf.value->buffer->name, " do not begin at words");
  const int64_t part = kMostStoreBytes / m_.bank_bytes * m_.bank_bytes;
  for (;;) {
    int64_t dram = to.base, source = from.base;
    for (size_t i = 0; i < loops.size(); ++i) dram += to.by[i] * at[i], source += from.by[i] * at[i];
    ASSIGN_OR_RETURN(const int64_t word, words_of(source, leaf.value));
    RETURN_IF_ERROR(set_strides(Op::kSetStore, extent(row) > 1 ? to.by[row] : 0, row_words));
    for (int64_t r = 0; r < extent(row); r += kMostStoreRows)
      for (int64_t b = 0; b < extent(column); b += part)
        RETURN_IF_ERROR(emit({.op = Op::kStore,
                              .dram = static_cast<uint32_t>(dram + b + (row == none ? 0 : r * to.by[row])),
                              .source = static_cast<uint32_t>(word + b / m_.bank_bytes + r * row_words),
                              .rows = static_cast<uint32_t>(std::min(kMostStoreRows, extent(row) - r)),
                              .bytes = static_cast<uint32_t>(std::min(part, extent(column) - b))}));
    size_t i = loops.size();
    for (; i > 0; --i) {
      if (i - 1 == column || i - 1 == row) continue;
      if (++at[i - 1] < loops[i - 1].end) break;
      at[i - 1] = loops[i - 1].begin;
    }
    if (i == 0) return Status::ok();
  }
}

}  // namespace tuner
