#include "compiler_core/npu/values.h"

#include <algorithm>
#include <cstring>

#include "compiler_core/base/int_math.h"
#include "compiler_core/npu/out_stage.h"

namespace tuner::npu {
namespace {

void add_wrapping(int32_t& sum, int32_t value) {
  sum = static_cast<int32_t>(static_cast<uint32_t>(sum) + static_cast<uint32_t>(value));
}

// kSide: known sides of the array let the compiler unroll and vectorize the product; 0: any. In float32
// because baseline x86-64 multiplies vectors of those and not of int32. Every sum is exact: at most 64
// products of 2^15.
template <int kSide, class Byte>
void product_row(const Byte* row, const float* weights, int32_t* sums, bool accumulate, int64_t rows,
                 int64_t columns) {
  const int64_t depth = kSide > 0 ? kSide : rows, width = kSide > 0 ? kSide : columns;
  float products[kSide > 0 ? kSide : 64] = {};
  for (int64_t k = 0; k < depth; ++k) {
    const float value = row[k];
    for (int64_t c = 0; c < width; ++c) products[c] += value * weights[k * width + c];
  }
  for (int64_t c = 0; c < width; ++c) {
    const auto sum = static_cast<int32_t>(products[c]);
    if (accumulate)
      add_wrapping(sums[c], sum);
    else
      sums[c] = sum;
  }
}

}  // namespace

Values::Values(const Machine& machine, std::span<uint8_t> dram)
    : m_(machine),
      dram_(dram),
      scratchpad_(machine.scratchpad_bytes),
      sums_(machine.accumulator_rows() * machine.array_columns),
      weights_(machine.array_rows * machine.array_columns),
      next_weights_(weights_.size()) {
  for (OutStage* out : {&drain_stage_, &store_stage_}) {
    out->bias.resize(kMostScaleBlocks * m_.array_columns);
    out->scale.resize(out->bias.size());
  }
}

std::string Values::run(const Instruction& i) {
  switch (i.op) {
    case Op::kSetLoad:
      load_strides_ = {i.dram_stride, i.stride};
      return {};
    case Op::kSetStore:
      store_strides_ = {i.dram_stride, i.stride};
      return {};
    case Op::kSetVector:
      vector_ = i;
      return {};
    case Op::kLoad:
      load(i);
      return {};
    case Op::kStore:
      store(i);
      return {};
    case Op::kStoreSums:
      return store_sums(i);
    case Op::kMatmul:
      return matmul(i);
    case Op::kMatmulOs:
      matmul_os(i);
      return {};
    case Op::kScales:
      scales(i, drain_stage_);
      return {};
    case Op::kStoreScales:
      scales(i, store_stage_);
      return {};
    case Op::kDrain:
      return drain(i);
    default:
      return vector(i);
  }
}

std::string Values::vector(const Instruction& i) {
  const bool uses_registers = i.op == Op::kAdd || i.op == Op::kSoftmax || i.op == Op::kNorm;
  if (uses_registers && vector_.op == Op::kNone)
    return "uses the vector unit's scales, which no set_vector set";
  switch (i.op) {
    case Op::kAdd:
      add(i);
      break;
    case Op::kPool:
      pool(i);
      break;
    case Op::kMacc:
      macc(i);
      break;
    case Op::kTable:
      table(i);
      break;
    case Op::kNorm:
      norm(i);
      break;
    case Op::kSoftmax:
      softmax(i);
      break;
    default:
      CHECK(false) << "an operation that nobody computes";
  }
  return {};
}

void Values::load(const Instruction& i) {
  const size_t width = round_up(int64_t{i.left} + i.bytes + i.right, m_.bank_bytes);
  for (uint32_t r = 0; r < i.top + i.rows + i.bottom; ++r) {
    int8_t* target = word(i.target + r * load_strides_.local);
    std::memset(target, i.fill_value, width);
    if (r < i.top || r >= i.top + i.rows) continue;
    std::memcpy(target + i.left, &dram_[i.dram + uint64_t{r - i.top} * load_strides_.dram], i.bytes);
  }
}

void Values::store(const Instruction& i) {
  for (uint32_t r = 0; r < i.rows; ++r)
    std::memcpy(&dram_[i.dram + uint64_t{r} * store_strides_.dram], word(i.source + r * store_strides_.local),
                i.bytes);
}

std::string Values::store_sums(const Instruction& i) {
  const uint32_t columns = static_cast<uint32_t>(m_.array_columns);
  const uint32_t blocks = static_cast<uint32_t>(ceil_div(i.bytes, columns));
  if (blocks > store_stage_.blocks)
    return str("uses the scales of block ", blocks - 1, ", and store_scales has loaded ",
               store_stage_.blocks);
  for (uint32_t r = 0; r < i.rows; ++r)
    for (uint32_t b = 0; b < i.bytes; ++b) {
      const int32_t sum = row(i.sums + b / columns * i.outer_stride + r)[b % columns];
      dram_[i.dram + uint64_t{r} * store_strides_.dram + b] =
          static_cast<uint8_t>(requantized(sum, store_stage_, b));
    }
  return {};
}

void Values::matmul_row(const int8_t* source, int32_t* sums, bool accumulate, bool is_unsigned) const {
  const auto product = [&](const auto* row) {
    if (m_.array_rows == 16 && m_.array_columns == 16)
      product_row<16>(row, weights_.data(), sums, accumulate, 16, 16);
    else
      product_row<0>(row, weights_.data(), sums, accumulate, m_.array_rows, m_.array_columns);
  };
  if (is_unsigned)
    product(reinterpret_cast<const uint8_t*>(source));
  else
    product(source);
}

std::string Values::matmul(const Instruction& i) {
  if (i.swap) {
    if (!has_next_weights_) return "swaps in weights that nothing filled";
    weights_.swap(next_weights_);
    has_weights_ = true;
    has_next_weights_ = false;
  }
  if (i.rows > 0 && !has_weights_) return "multiplies by weights that nothing filled";
  for (uint32_t o = 0; o < i.outer; ++o)
    for (uint32_t r = 0; r < i.rows; ++r)
      matmul_row(word(i.source + o * i.outer_stride + r * i.stride), row(i.sums + o * i.rows + r),
                 i.accumulate, i.is_unsigned);
  if (i.fill) fill(i);
  return {};
}

void Values::fill(const Instruction& i) {
  for (int64_t k = 0; k < m_.array_rows; ++k) {
    const int8_t* source = word(i.source2 + static_cast<uint32_t>(k) * i.stride2);
    for (int64_t c = 0; c < m_.array_columns; ++c) next_weights_[k * m_.array_columns + c] = source[c];
  }
  has_next_weights_ = true;
}

void Values::matmul_os(const Instruction& i) {
  if (!i.accumulate) std::memset(row(i.sums), 0, m_.array_rows * m_.array_columns * sizeof(int32_t));
  for (uint32_t k = 0; k < i.rows; ++k) {
    const int8_t *a = word(i.source + k * i.stride), *b = word(i.source2 + k * i.stride2);
    for (int64_t r = 0; r < m_.array_rows; ++r) {
      int32_t* sums = row(i.sums + static_cast<uint32_t>(r));
      const int32_t value = i.is_unsigned ? int32_t{static_cast<uint8_t>(a[r])} : int32_t{0} + a[r];
      for (int64_t c = 0; c < m_.array_columns; ++c) add_wrapping(sums[c], value * b[c]);
    }
  }
}

void Values::scales(const Instruction& i, OutStage& out) {
  const size_t columns = m_.array_columns;
  const size_t words = ceil_div(8 * m_.array_columns, m_.bank_bytes);
  for (uint32_t j = 0; j < i.blocks; ++j) {
    const int8_t* block = word(i.source + j * static_cast<uint32_t>(words));
    std::memcpy(&out.bias[j * columns], block, 4 * columns);
    std::memcpy(&out.scale[j * columns], block + 4 * columns, 4 * columns);
  }
  out.blocks = i.blocks;
  out.zero = i.zero, out.low = i.low, out.high = i.high;
}

std::string Values::drain(const Instruction& i) {
  if (i.blocks > drain_stage_.blocks)
    return str("uses the scales of block ", i.blocks - 1, ", and scales has loaded ", drain_stage_.blocks);
  const int64_t columns = m_.array_columns, words = m_.column_words();
  for (uint32_t r = 0; r < i.rows; ++r)
    for (uint32_t j = 0; j < i.blocks; ++j) {
      int8_t* target = word(i.target + r * i.stride + j * static_cast<uint32_t>(words));
      const int32_t* sums = row(i.sums + j * i.outer_stride + r);
      for (int64_t c = 0; c < words * m_.bank_bytes; ++c)
        target[c] = c < columns ? requantized(sums[c], drain_stage_, j * columns + c) : int8_t{0};
    }
  return {};
}

}  // namespace tuner::npu
