// Rectangles of arguments into the scratchpad: `load`.
#include <algorithm>

#include "compiler_core/base/int_math.h"
#include "compiler_core/codegen_npu/npu_lowering.h"

namespace tuner {
namespace {

using npu::Op;

// What the fields of instructions hold.
constexpr int64_t kMostLoadRows = 1023, kMostLoadBytes = 16383, kMostSidePadding = 1023, kMostEndPadding = 15;

}  // namespace

size_t NpuLowering::loaded_at(uint32_t word) const {
  const auto found = loads_.find(buffer_at(word));
  return found == loads_.end() ? 0 : found->second;
}

size_t NpuLowering::buffer_at(uint32_t word) const {
  const auto after = std::upper_bound(buffers_.begin(), buffers_.end(), word,
                                      [](uint32_t w, const npu::ScratchpadBuffer& b) { return w < b.begin; });
  return static_cast<size_t>(after - buffers_.begin()) - 1;
}

Status NpuLowering::load(const StmtNode& leaf) {
  Expr value = leaf.value;
  const std::vector<InstructionLoop> whole = scope_.loops();
  std::optional<int64_t> filled;
  int64_t fill = 0;
  ASSIGN_OR_RETURN(const Linear to, byte_of(leaf.buffer, leaf.indices));
  while (value->kind == ExprKind::kSelect && is_const_int(value->operands[2], &fill)) {
    if (filled.value_or(fill) != fill)
      return invalid_config("npu: a tile of ", leaf.buffer->name, " is filled up with ", *filled, " and ",
                            fill);
    filled = fill;
    if (!scope_.narrow(value->operands[0]))
      return invalid_config("npu: ", to_text(value->operands[0]), " cuts no rectangle out of the tile of ",
                            leaf.buffer->name);
    value = Expr(value->operands[1]);
  }
  const bool nothing_there = scope_.is_empty();
  const std::vector<InstructionLoop> there = nothing_there ? whole : scope_.loops();
  if (value->kind != ExprKind::kLoad || !places_in_dram_.contains(value->buffer.get()) ||
      value->dtype != leaf.buffer->dtype)
    return invalid_config("npu: ", leaf.buffer->name, " is no copy of an argument: ", to_text(leaf.value));
  scope_.begin(whole);  // as `to`: only the steps count, and the base is the same
  Linear from = to;
  if (!nothing_there) {
    LinearScope inside = scope_;
    inside.begin(there);
    std::swap(scope_, inside);
    const Result<Linear> found = byte_of(value->buffer, value->operands);
    std::swap(scope_, inside);
    RETURN_IF_ERROR(found.status());
    from = *found;
  }
  return load_box(leaf, to, from, whole, there, filled.value_or(0), nothing_there);
}

void NpuLowering::merge_loops(std::vector<InstructionLoop>& whole, std::vector<InstructionLoop>& there,
                              std::initializer_list<Linear*> places) {
  const auto drop = [&](size_t i) {
    whole.erase(whole.begin() + static_cast<std::ptrdiff_t>(i));
    there.erase(there.begin() + static_cast<std::ptrdiff_t>(i));
    for (Linear* place : places) place->by.erase(place->by.begin() + static_cast<std::ptrdiff_t>(i));
  };
  for (size_t i = whole.size(); i-- > 0;) {
    if (whole[i].end - whole[i].begin > 1) continue;
    for (Linear* place : places) place->base += place->by[i] * whole[i].begin;
    drop(i);
  }
  for (size_t i = whole.size(); i-- > 1;) {
    const int64_t n = whole[i].end - whole[i].begin;
    const bool is_whole = whole[i].begin == there[i].begin && whole[i].end == there[i].end;
    const bool goes_on = std::ranges::all_of(
        places, [&](const Linear* place) { return place->by[i - 1] == place->by[i] * n; });
    // What is zeros at either end of a row becomes padding of as many bytes.
    const int64_t before = (there[i - 1].begin - whole[i - 1].begin) * n,
                  behind = (whole[i - 1].end - there[i - 1].end) * n;
    if (!is_whole || !goes_on || std::max(before, behind) > kMostSidePadding) continue;
    for (Linear* place : places) {
      place->base += place->by[i] * whole[i].begin;
      place->by[i - 1] = place->by[i];
    }
    for (std::vector<InstructionLoop>* loops : {&whole, &there}) {
      (*loops)[i - 1].begin *= n;
      (*loops)[i - 1].end *= n;
    }
    drop(i);
  }
}

Status NpuLowering::load_box(const StmtNode& leaf, Linear to, Linear from, std::vector<InstructionLoop> whole,
                             std::vector<InstructionLoop> there, int64_t fill, bool nothing_there) {
  merge_loops(whole, there, {&to, &from});
  const size_t none = whole.size();
  size_t column = none, row = none;
  const auto extent = [&](size_t i) { return i == none ? 1 : whole[i].end - whole[i].begin; };
  for (size_t i = 0; i < whole.size(); ++i)
    if (extent(i) > 1 && to.by[i] == 1 && (from.by[i] == 1 || nothing_there)) column = i;
  for (size_t i = 0; i < whole.size(); ++i)
    if (i != column && extent(i) > 1) row = i;  // the innermost
  std::vector<int64_t> at;
  for (const InstructionLoop& loop : whole) at.push_back(loop.begin);
  for (;;) {
    Rectangle r{.fill = fill};
    bool inside = !nothing_there;
    int64_t target = to.base, source = from.base;
    for (size_t i = 0; i < whole.size(); ++i) {
      target += to.by[i] * at[i];
      const bool runs = i == column || i == row;
      source += from.by[i] * (runs ? there[i].begin : at[i]);
      if (!runs && (at[i] < there[i].begin || at[i] >= there[i].end)) inside = false;
    }
    ASSIGN_OR_RETURN(r.word, aligned(target, leaf));
    r.dram = source;
    if (row != none) {
      ASSIGN_OR_RETURN(r.stride, aligned(to.by[row], leaf));
      r.dram_stride = from.by[row];
      r.rows = there[row].end - there[row].begin;
      r.top = there[row].begin - whole[row].begin;
      r.bottom = whole[row].end - there[row].end;
    }
    if (column != none) {
      r.bytes = there[column].end - there[column].begin;
      r.left = there[column].begin - whole[column].begin;
      r.right = whole[column].end - there[column].end;
    }
    RETURN_IF_ERROR(inside ? load_rectangle(r)
                           : load_fill(r.word, r.stride, extent(row), extent(column), fill));
    loads_[buffer_at(static_cast<uint32_t>(r.word))] = code_.size();
    size_t i = whole.size();
    for (; i > 0; --i) {
      if (i - 1 == column || i - 1 == row) continue;
      if (++at[i - 1] < whole[i - 1].end) break;
      at[i - 1] = whole[i - 1].begin;
    }
    if (i == 0) return Status::ok();
  }
}

Result<int64_t> NpuLowering::aligned(int64_t bytes, const StmtNode& leaf) const {
  if (bytes % m_.bank_bytes == 0) return bytes / m_.bank_bytes;
  return invalid_config("npu: rows of ", leaf.buffer->name, " do not begin at words of the scratchpad");
}

Status NpuLowering::load_rectangle(Rectangle r) {
  const int64_t width = r.left + r.bytes + r.right, words = ceil_div(width, m_.bank_bytes);
  if (r.bytes > kMostLoadBytes) return load_in_parts(r);
  if (r.left > kMostSidePadding || r.right > kMostSidePadding)
    return invalid_config("npu: a row of ", r.left, " + ", r.bytes, " + ", r.right,
                          " bytes is longer than a load takes");
  // Rows that lie side by side in both memories are one: its bursts are full.
  const bool padded = r.left + r.right > 0 || r.bytes % m_.bank_bytes != 0;
  if (!padded && r.rows > 1 && r.dram_stride == r.bytes && r.stride * m_.bank_bytes == r.bytes) {
    const int64_t each = std::max<int64_t>(1, kMostLoadBytes / r.bytes);
    if (r.top > 0) RETURN_IF_ERROR(load_fill(r.word, r.stride, r.top, width, r.fill));
    for (int64_t row = 0; row < r.rows; row += each)
      RETURN_IF_ERROR(emit({.op = Op::kLoad,
                            .dram = static_cast<uint32_t>(r.dram + row * r.bytes),
                            .target = static_cast<uint32_t>(r.word + (r.top + row) * r.stride),
                            .rows = 1,
                            .bytes = static_cast<uint32_t>(std::min(each, r.rows - row) * r.bytes)}));
    if (r.bottom > 0)
      RETURN_IF_ERROR(load_fill(r.word + (r.top + r.rows) * r.stride, r.stride, r.bottom, width, r.fill));
    return Status::ok();
  }
  if (r.rows > 1 && r.stride < words) return invalid_config("npu: rows of a load overlap in the scratchpad");
  const bool long_top = r.top > kMostEndPadding, long_bottom = r.bottom > kMostEndPadding;
  const int64_t first = r.word + r.top * r.stride;
  if (long_top) RETURN_IF_ERROR(load_fill(r.word, r.stride, r.top, width, r.fill));
  if (r.rows + r.top + r.bottom > 1)
    RETURN_IF_ERROR(set_strides(Op::kSetLoad, r.rows > 1 ? r.dram_stride : 0, r.stride));
  for (int64_t row = 0; row < r.rows; row += kMostLoadRows) {
    const bool is_first = row == 0, is_last = row + kMostLoadRows >= r.rows;
    const int64_t top = is_first && !long_top ? r.top : 0;
    RETURN_IF_ERROR(emit({.op = Op::kLoad,
                          .dram = static_cast<uint32_t>(r.dram + row * r.dram_stride),
                          .target = static_cast<uint32_t>(first + (row - top) * r.stride),
                          .rows = static_cast<uint32_t>(std::min(kMostLoadRows, r.rows - row)),
                          .bytes = static_cast<uint32_t>(r.bytes),
                          .left = static_cast<uint32_t>(r.left),
                          .right = static_cast<uint32_t>(r.right),
                          .top = static_cast<uint32_t>(top),
                          .bottom = static_cast<uint32_t>(is_last && !long_bottom ? r.bottom : 0),
                          .fill_value = static_cast<int8_t>(r.fill)}));
  }
  if (!long_bottom) return Status::ok();
  return load_fill(first + r.rows * r.stride, r.stride, r.bottom, width, r.fill);
}

Status NpuLowering::load_in_parts(const Rectangle& r) {
  Rectangle first = r, rest = r;
  first.right = rest.left = 0;
  first.bytes = kMostLoadBytes / m_.bank_bytes * m_.bank_bytes - r.left % m_.bank_bytes;
  rest.bytes -= first.bytes;
  rest.dram += first.bytes;
  rest.word += (r.left + first.bytes) / m_.bank_bytes;
  RETURN_IF_ERROR(load_rectangle(first));
  return load_rectangle(rest);
}

Result<int64_t> NpuLowering::filled_dram(int64_t fill, int64_t bytes) {
  if (fill == 0) return static_cast<int64_t>(zeros_at_);
  const auto number = static_cast<char>(fill);
  if (!kernel_.constants.empty() && kernel_.constants.front() != number)
    return invalid_config("npu: tiles are filled up with ", fill, " and with another number");
  if (std::ssize(kernel_.constants) < bytes) kernel_.constants.resize(static_cast<size_t>(bytes), number);
  kernel_.dram_bytes = kernel_.constants_at + static_cast<uint64_t>(round_up(bytes, m_.burst_bytes));
  return static_cast<int64_t>(kernel_.constants_at);
}

Status NpuLowering::load_fill(int64_t word, int64_t stride, int64_t rows, int64_t bytes, int64_t fill) {
  if (bytes > kMostLoadBytes)
    return invalid_config("npu: a row of ", bytes, " bytes is longer than a load takes");
  ASSIGN_OR_RETURN(const int64_t from, filled_dram(fill, bytes));
  RETURN_IF_ERROR(set_strides(Op::kSetLoad, 0, stride));
  for (int64_t row = 0; row < rows; row += kMostLoadRows)
    RETURN_IF_ERROR(emit({.op = Op::kLoad,
                          .dram = static_cast<uint32_t>(from),
                          .target = static_cast<uint32_t>(word + row * stride),
                          .rows = static_cast<uint32_t>(std::min(kMostLoadRows, rows - row)),
                          .bytes = static_cast<uint32_t>(bytes),
                          .fill_value = static_cast<int8_t>(fill)}));
  return Status::ok();
}

}  // namespace tuner
