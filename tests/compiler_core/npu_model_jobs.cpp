#include <cmath>
#include <cstring>

#include "tests/compiler_core/npu_model_maker.h"

namespace tuner::npu::testing {

int8_t rounded(float value, const Instruction& registers) {
  if (value != value) value = 0;
  double whole = std::floor(static_cast<double>(value));
  const double rest = static_cast<double>(value) - whole;
  if (rest > 0.5 || (rest == 0.5 && std::fmod(whole, 2.0) != 0)) whole += 1;
  whole += registers.zero;
  if (whole < registers.low) return static_cast<int8_t>(registers.low);
  if (whole > registers.high) return static_cast<int8_t>(registers.high);
  return static_cast<int8_t>(whole);
}

// Calls each(step, first, last) for each step of the row's bursts, with the bytes of the row that it moves.
template <class F>
void ModelJobMaker::bursts(int64_t dram, int64_t bytes, bool write, const F& each) {
  for (int64_t burst = dram / m.burst_bytes; burst * m.burst_bytes < dram + bytes; ++burst) {
    job.touched[{2, burst}] = write;
    const int64_t count = m.burst_bytes / m.dram_bytes;
    for (int64_t n = 0; n < count; ++n) {
      const int64_t begin = burst * m.burst_bytes + n * m.dram_bytes - dram;
      ModelStep& bus_step = step();
      bus_step.on_bus = true;
      bus_step.opens_burst = n == 0;
      bus_step.closes_burst = n == count - 1;
      each(bus_step, std::max<int64_t>(begin, 0), std::min(begin + m.dram_bytes, bytes));
    }
  }
}

// Word k of a row whose first byte from DRAM is byte `left` of the row; dram < 0: padding alone.
void ModelContext::set_word(int64_t target, int64_t k, int64_t dram) const {
  for (int64_t b = 0; b < m.bank_bytes; ++b) {
    const int64_t at = k * m.bank_bytes + b - i.left;
    const bool data = dram >= 0 && at >= 0 && at < i.bytes;
    byte(target + k, b) =
        data ? static_cast<int8_t>(s.dram->at(dram + at)) : static_cast<int8_t>(i.fill_value);
  }
}

void ModelJobMaker::load_padding_row(int64_t target, int64_t width) {
  for (int64_t k = 0; k < width; ++k) {
    ModelStep& padding = step();
    writes(padding, target + k);
    padding.effect = [=, at_end = ModelContext(*this)] { at_end.set_word(target, k, -1); };
  }
}

void ModelJobMaker::load_data_row(int64_t target, int64_t width, int64_t dram) {
  std::vector<int64_t> last(width, -1);  // by word: its last byte from DRAM, counted from the row's first
  for (int64_t p = 0; p < i.bytes; ++p) last[(i.left + p) / m.bank_bytes] = p;
  const auto padding_word = [&](int64_t k) {
    ModelStep& padding = step();
    writes(padding, target + k);
    padding.effect = [=, at_end = ModelContext(*this)] { at_end.set_word(target, k, -1); };
  };
  const int64_t first_data = i.left / m.bank_bytes;
  for (int64_t k = 0; k < first_data; ++k) padding_word(k);
  bursts(dram, i.bytes, false, [&](ModelStep& bus_step, int64_t begin, int64_t end) {
    std::vector<int64_t> arrived;
    for (int64_t k = 0; k < width; ++k)
      if (last[k] >= begin && last[k] < end) arrived.push_back(k);
    for (const int64_t k : arrived) writes(bus_step, target + k);
    bus_step.effect = [=, at_end = ModelContext(*this)] {
      for (const int64_t k : arrived) at_end.set_word(target, k, dram);
    };
  });
  for (int64_t k = first_data; k < width; ++k)
    if (last[k] < 0) padding_word(k);
}

void ModelJobMaker::load() {
  const int64_t width = words(int64_t{i.left} + i.bytes + i.right);
  int64_t target = i.target;
  const auto next_row = [&] { target += s.load_registers.stride; };
  for (uint32_t r = 0; r < i.top; ++r, next_row()) load_padding_row(target, width);
  for (uint32_t r = 0; r < i.rows; ++r, next_row())
    load_data_row(target, width, i.dram + static_cast<int64_t>(r) * s.load_registers.dram_stride);
  for (uint32_t r = 0; r < i.bottom; ++r, next_row()) load_padding_row(target, width);
}

void ModelJobMaker::store() {
  const bool sums = i.op == Op::kStoreSums;
  const Instruction registers = s.store_registers;
  for (int64_t r = 0; r < i.rows; ++r) {
    const int64_t source = i.source + r * registers.stride, dram = i.dram + r * registers.dram_stride;
    if (sums)
      for (int64_t b = 0; b < i.bytes; ++b)
        touches_sum(i.sums + b / m.array_columns * i.outer_stride + r, false);
    bursts(dram, i.bytes, true, [&](ModelStep& bus_step, int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end && !sums; ++b)
        if (b % m.bank_bytes == 0) reads(bus_step, source + b / m.bank_bytes);
      bus_step.effect = [=, at_end = ModelContext(*this)] {
        const ModelState::Scales& out = at_end.s.store_scales;
        for (int64_t b = begin; b < end; ++b) {
          int8_t value;
          if (sums) {
            const int64_t c = at_end.m.array_columns;
            const int32_t biased = wrapped(
                int64_t{at_end.sum(at_end.i.sums + b / c * at_end.i.outer_stride + r, b % c)} + out.bias[b]);
            value = rounded(static_cast<float>(biased) * out.scale[b], out.registers);
          } else {
            value = at_end.byte(source + b / at_end.m.bank_bytes, b % at_end.m.bank_bytes);
          }
          at_end.s.dram->at(dram + b) = static_cast<uint8_t>(value);
        }
      };
    });
  }
}

void ModelJobMaker::matmul() {
  const int64_t rows = m.array_rows, columns = m.array_columns;
  if (i.swap) std::swap(s.weights, s.next_weights);
  for (int64_t o = 0; o < i.outer; ++o)
    for (int64_t r = 0; r < i.rows; ++r) {
      const int64_t source = i.source + o * i.outer_stride + r * i.stride, to = i.sums + o * i.rows + r;
      touches_sum(to, true);
      ModelStep& row = step();
      for (int64_t k = 0; k < words(rows); ++k) reads(row, source + k);
      row.effect = [=, at_end = ModelContext(*this)] {
        for (int64_t c = 0; c < columns; ++c) {
          int64_t total = at_end.i.accumulate ? at_end.sum(to, c) : 0;
          for (int64_t k = 0; k < rows; ++k)
            total += at_end.operand(source, k) * at_end.s.weights[k * columns + c];
          at_end.sum(to, c) = wrapped(total);
        }
      };
    }
  for (int64_t k = 0; i.fill && k < rows; ++k) {
    const int64_t source = i.source2 + k * i.stride2;
    ModelStep& row = step(1);
    for (int64_t w = 0; w < words(columns); ++w) reads(row, source + w);
    row.effect = [=, at_end = ModelContext(*this)] {
      for (int64_t c = 0; c < columns; ++c) at_end.s.next_weights[k * columns + c] = at_end.byte(source, c);
    };
  }
}

void ModelJobMaker::matmul_os() {
  const int64_t rows = m.array_rows, columns = m.array_columns;
  const auto held = std::make_shared<std::vector<int64_t>>(rows * columns);
  for (int64_t k = 0; k < i.rows; ++k) {
    const int64_t a = i.source + k * i.stride, b = i.source2 + k * i.stride2;
    ModelStep& product = step();
    for (int64_t w = 0; w < words(rows); ++w) reads(product, a + w);
    for (int64_t w = 0; w < words(columns); ++w) reads(product, b + w);
    product.effect = [=, at_end = ModelContext(*this)] {
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c)
          (*held)[r * columns + c] += at_end.operand(a, r) * at_end.byte(b, c);
    };
  }
  for (int64_t r = 0; r < rows; ++r) {
    touches_sum(i.sums + r, true);
    step().effect = [=, at_end = ModelContext(*this)] {
      for (int64_t c = 0; c < columns; ++c) {
        int32_t& to = at_end.sum(at_end.i.sums + r, c);
        to = wrapped((at_end.i.accumulate ? to : 0) + (*held)[r * columns + c]);
      }
    };
  }
}

void ModelJobMaker::make() {
  switch (i.op) {
    case Op::kSetLoad:
      s.load_registers = i;
      break;
    case Op::kSetStore:
      s.store_registers = i;
      break;
    case Op::kSetVector:
      s.vector_registers = i;
      break;
    case Op::kLoad:
      load();
      break;
    case Op::kMatmul:
      matmul();
      break;
    case Op::kMatmulOs:
      matmul_os();
      break;
    case Op::kScales:
      scales(s.drain_scales);
      break;
    case Op::kStoreScales:
      scales(s.store_scales);
      break;
    case Op::kDrain:
      drain();
      break;
    case Op::kAdd:
      add();
      break;
    case Op::kPool:
    case Op::kMacc:
      windows();
      break;
    case Op::kTable:
      table();
      break;
    case Op::kNorm:
      norm();
      break;
    case Op::kSoftmax:
      softmax();
      break;
    case Op::kStore:
    case Op::kStoreSums:
      store();
      break;
    case Op::kNone:
      break;
  }
}

ModelJob model_job(const Machine& machine, const Instruction& instruction, ModelState& state) {
  ModelJobMaker maker(machine, instruction, state);
  maker.make();
  return std::move(maker.job);
}

}  // namespace tuner::npu::testing
