#include "tests/compiler_core/npu_model_jobs.h"

#include <cmath>
#include <cstring>
#include <memory>

namespace tuner::npu::testing {
namespace {

// Int8 from a float, as README.md says it under "Numbers".
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

int32_t wrapped(int64_t value) { return static_cast<int32_t>(static_cast<uint32_t>(value)); }

// What an effect needs when its step is done.
struct Context {
  const Machine& m;
  Instruction i;
  ModelState& s;

  int64_t words(int64_t bytes) const { return (bytes + m.bank_bytes - 1) / m.bank_bytes; }
  int8_t& byte(int64_t word, int64_t b) const { return s.scratchpad.at(word * m.bank_bytes + b); }
  int32_t& sum(int64_t row, int64_t column) const { return s.sums.at(row * m.array_columns + column); }
  void set_word(int64_t target, int64_t k, int64_t dram) const;
};

class JobMaker : public Context {
 public:
  JobMaker(const Machine& machine, const Instruction& instruction, ModelState& state)
      : Context{machine, instruction, state} {}

  ModelJob job;

  void make();

 private:
  ModelStep& step(int stream = 0) { return job.streams[stream].emplace_back(); }
  void reads(ModelStep& step, int64_t word) {
    step.words.push_back(word);
    job.touched[{0, word}];
  }
  void writes(ModelStep& step, int64_t word) {
    step.words.push_back(word);
    job.touched[{0, word}] = true;
  }
  void touches_sum(int64_t row, bool write) {
    bool& written = job.touched[{1, row}];
    written = written || write;
  }
  // What lanes beyond the first have to do.
  void more_steps(int64_t values) {
    for (int64_t n = 1; n < (values + m.lanes - 1) / m.lanes; ++n) step();
  }

  void load();
  void load_padding_row(int64_t target, int64_t width);
  void load_data_row(int64_t target, int64_t width, int64_t dram);
  void store();
  void matmul();
  void matmul_os();
  void scales(ModelState::Scales& to);
  void drain();
  void add();
  void windows();
  void table();
  void softmax();
  template <class F>
  void bursts(int64_t dram, int64_t bytes, bool write, const F& each);
};

// Calls each(step, first, last) for each step of the row's bursts, with the bytes of the row that it moves.
template <class F>
void JobMaker::bursts(int64_t dram, int64_t bytes, bool write, const F& each) {
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
void Context::set_word(int64_t target, int64_t k, int64_t dram) const {
  for (int64_t b = 0; b < m.bank_bytes; ++b) {
    const int64_t at = k * m.bank_bytes + b - i.left;
    const bool data = dram >= 0 && at >= 0 && at < i.bytes;
    byte(target + k, b) =
        data ? static_cast<int8_t>(s.dram->at(dram + at)) : static_cast<int8_t>(i.fill_value);
  }
}

void JobMaker::load_padding_row(int64_t target, int64_t width) {
  for (int64_t k = 0; k < width; ++k) {
    ModelStep& padding = step();
    writes(padding, target + k);
    padding.effect = [=, at_end = Context(*this)] { at_end.set_word(target, k, -1); };
  }
}

void JobMaker::load_data_row(int64_t target, int64_t width, int64_t dram) {
  std::vector<int64_t> last(width, -1);  // by word: its last byte from DRAM, counted from the row's first
  for (int64_t p = 0; p < i.bytes; ++p) last[(i.left + p) / m.bank_bytes] = p;
  const auto padding_word = [&](int64_t k) {
    ModelStep& padding = step();
    writes(padding, target + k);
    padding.effect = [=, at_end = Context(*this)] { at_end.set_word(target, k, -1); };
  };
  const int64_t first_data = i.left / m.bank_bytes;
  for (int64_t k = 0; k < first_data; ++k) padding_word(k);
  bursts(dram, i.bytes, false, [&](ModelStep& bus_step, int64_t begin, int64_t end) {
    std::vector<int64_t> arrived;
    for (int64_t k = 0; k < width; ++k)
      if (last[k] >= begin && last[k] < end) arrived.push_back(k);
    for (const int64_t k : arrived) writes(bus_step, target + k);
    bus_step.effect = [=, at_end = Context(*this)] {
      for (const int64_t k : arrived) at_end.set_word(target, k, dram);
    };
  });
  for (int64_t k = first_data; k < width; ++k)
    if (last[k] < 0) padding_word(k);
}

void JobMaker::load() {
  const int64_t width = words(int64_t{i.left} + i.bytes + i.right);
  int64_t target = i.target;
  const auto next_row = [&] { target += s.load_registers.stride; };
  for (uint32_t r = 0; r < i.top; ++r, next_row()) load_padding_row(target, width);
  for (uint32_t r = 0; r < i.rows; ++r, next_row())
    load_data_row(target, width, i.dram + static_cast<int64_t>(r) * s.load_registers.dram_stride);
  for (uint32_t r = 0; r < i.bottom; ++r, next_row()) load_padding_row(target, width);
}

void JobMaker::store() {
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
      bus_step.effect = [=, at_end = Context(*this)] {
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

void JobMaker::matmul() {
  const int64_t rows = m.array_rows, columns = m.array_columns;
  if (i.swap) std::swap(s.weights, s.next_weights);
  for (int64_t o = 0; o < i.outer; ++o)
    for (int64_t r = 0; r < i.rows; ++r) {
      const int64_t source = i.source + o * i.outer_stride + r * i.stride, to = i.sums + o * i.rows + r;
      touches_sum(to, true);
      ModelStep& row = step();
      for (int64_t k = 0; k < words(rows); ++k) reads(row, source + k);
      row.effect = [=, at_end = Context(*this)] {
        for (int64_t c = 0; c < columns; ++c) {
          int64_t total = at_end.i.accumulate ? at_end.sum(to, c) : 0;
          for (int64_t k = 0; k < rows; ++k)
            total += int64_t{at_end.byte(source, k)} * at_end.s.weights[k * columns + c];
          at_end.sum(to, c) = wrapped(total);
        }
      };
    }
  for (int64_t k = 0; i.fill && k < rows; ++k) {
    const int64_t source = i.source2 + k * i.stride2;
    ModelStep& row = step(1);
    for (int64_t w = 0; w < words(columns); ++w) reads(row, source + w);
    row.effect = [=, at_end = Context(*this)] {
      for (int64_t c = 0; c < columns; ++c) at_end.s.next_weights[k * columns + c] = at_end.byte(source, c);
    };
  }
}

void JobMaker::matmul_os() {
  const int64_t rows = m.array_rows, columns = m.array_columns;
  const auto held = std::make_shared<std::vector<int64_t>>(rows * columns);
  for (int64_t k = 0; k < i.rows; ++k) {
    const int64_t a = i.source + k * i.stride, b = i.source2 + k * i.stride2;
    ModelStep& product = step();
    for (int64_t w = 0; w < words(rows); ++w) reads(product, a + w);
    for (int64_t w = 0; w < words(columns); ++w) reads(product, b + w);
    product.effect = [=, at_end = Context(*this)] {
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c)
          (*held)[r * columns + c] += int64_t{at_end.byte(a, r)} * at_end.byte(b, c);
    };
  }
  for (int64_t r = 0; r < rows; ++r) {
    touches_sum(i.sums + r, true);
    step().effect = [=, at_end = Context(*this)] {
      for (int64_t c = 0; c < columns; ++c) {
        int32_t& to = at_end.sum(at_end.i.sums + r, c);
        to = wrapped((at_end.i.accumulate ? to : 0) + (*held)[r * columns + c]);
      }
    };
  }
}

void JobMaker::scales(ModelState::Scales& to) {
  const int64_t block_words = words(8 * m.array_columns);
  for (int64_t k = 0; k < i.blocks * block_words; ++k) reads(step(), i.source + k);
  // At the last word all has arrived.
  job.streams[0].back().effect = [=, at_end = Context(*this), &to] {
    to.registers = at_end.i;
    to.bias.assign(at_end.i.blocks * at_end.m.array_columns, 0);
    to.scale.assign(to.bias.size(), 0);
    for (int64_t n = 0; n < static_cast<int64_t>(to.bias.size()); ++n) {
      const int64_t block = n / at_end.m.array_columns, c = n % at_end.m.array_columns;
      uint32_t numbers[2] = {0, 0};
      for (int half = 0; half < 2; ++half)
        for (int64_t b = 0; b < 4; ++b) {
          const int64_t at = half * 4 * at_end.m.array_columns + 4 * c + b;
          const int8_t part = at_end.byte(at_end.i.source + block * block_words + at / at_end.m.bank_bytes,
                                          at % at_end.m.bank_bytes);
          numbers[half] |= uint32_t{static_cast<uint8_t>(part)} << (8 * b);
        }
      to.bias[n] = static_cast<int32_t>(numbers[0]);
      std::memcpy(&to.scale[n], &numbers[1], 4);
    }
  };
}

void JobMaker::drain() {
  const int64_t width = words(m.array_columns);
  for (int64_t r = 0; r < i.rows; ++r)
    for (int64_t j = 0; j < i.blocks; ++j) {
      const int64_t target = i.target + r * i.stride + j * width, row = i.sums + j * i.outer_stride + r;
      touches_sum(row, false);
      ModelStep& out = step();
      for (int64_t k = 0; k < width; ++k) writes(out, target + k);
      out.effect = [=, at_end = Context(*this)] {
        const ModelState::Scales& scales = at_end.s.drain_scales;
        for (int64_t b = 0; b < width * at_end.m.bank_bytes; ++b) {
          int8_t& to = at_end.byte(target + b / at_end.m.bank_bytes, b % at_end.m.bank_bytes);
          to = 0;
          if (b >= at_end.m.array_columns) continue;
          const int64_t channel = j * at_end.m.array_columns + b;
          const int32_t biased = wrapped(int64_t{at_end.sum(row, b)} + scales.bias[channel]);
          to = rounded(static_cast<float>(biased) * scales.scale[channel], scales.registers);
        }
      };
      more_steps(m.array_columns);
    }
}

void JobMaker::add() {
  for (int64_t k = 0; k < i.rows; ++k) {
    ModelStep& sum_step = step();
    reads(sum_step, i.source + k);
    reads(sum_step, i.source2 + k);
    writes(sum_step, i.target + k);
    sum_step.effect = [=, at_end = Context(*this)] {
      const Instruction& v = at_end.s.vector_registers;
      for (int64_t b = 0; b < at_end.m.bank_bytes; ++b) {
        const float x = static_cast<float>(at_end.byte(at_end.i.source + k, b) - v.zero_a) * v.scale_a;
        const float y = static_cast<float>(at_end.byte(at_end.i.source2 + k, b) - v.zero_b) * v.scale_b;
        at_end.byte(at_end.i.target + k, b) = rounded(x + y, v);
      }
    };
    more_steps(m.bank_bytes);
  }
}

// pool and macc: results of windows of taps.
void JobMaker::windows() {
  const bool sums = i.op == Op::kMacc;
  const int64_t width = sums ? words(m.array_columns) : 1;
  const int64_t values = sums ? m.array_columns : m.bank_bytes;
  const int64_t taps = int64_t{i.taps_x} * i.taps_y;
  for (int64_t p = 0; p < i.rows; ++p) {
    const auto most = std::make_shared<std::vector<int8_t>>(m.bank_bytes, int8_t{-128});
    if (sums) touches_sum(i.sums + p, true);
    for (int64_t tap = 0; tap < taps; ++tap) {
      const int64_t source = i.source + p * i.stride + tap / i.taps_x * i.step_y + tap % i.taps_x * i.step_x;
      const int64_t weights = i.source2 + tap * width, target = i.target + p * i.stride2;
      ModelStep& one = step();
      for (int64_t k = 0; k < width; ++k) reads(one, source + k);
      for (int64_t k = 0; k < width && sums; ++k) reads(one, weights + k);
      if (!sums && tap == taps - 1) writes(one, target);
      one.effect = [=, at_end = Context(*this)] {
        for (int64_t c = 0; c < values; ++c) {
          const int8_t value = at_end.byte(source, c);
          if (!sums) {
            (*most)[c] = std::max((*most)[c], value);
            continue;
          }
          int32_t& to = at_end.sum(at_end.i.sums + p, c);
          if (tap == 0 && !at_end.i.accumulate) to = 0;
          to = wrapped(int64_t{to} + int64_t{value} * at_end.byte(weights, c));
        }
        for (int64_t c = 0; c < values && !sums && tap == taps - 1; ++c) at_end.byte(target, c) = (*most)[c];
      };
      more_steps(values);
    }
  }
}

void JobMaker::table() {
  const auto held = std::make_shared<std::vector<int8_t>>();
  for (int64_t k = 0; k < words(256); ++k) {
    ModelStep& entry = step();
    reads(entry, i.source2 + k);
    entry.effect = [=, at_end = Context(*this)] {
      for (int64_t b = 0; b < at_end.m.bank_bytes; ++b) held->push_back(at_end.byte(at_end.i.source2 + k, b));
    };
  }
  for (int64_t k = 0; k < i.rows; ++k) {
    ModelStep& look_up = step();
    reads(look_up, i.source + k);
    writes(look_up, i.target + k);
    look_up.effect = [=, at_end = Context(*this)] {
      for (int64_t b = 0; b < at_end.m.bank_bytes; ++b)
        at_end.byte(at_end.i.target + k, b) = held->at(at_end.byte(at_end.i.source + k, b) & 0xff);
    };
    more_steps(m.bank_bytes);
  }
}

void JobMaker::softmax() {
  struct Row {
    int most = -128;
    int64_t total = 0;
  };
  const auto held = std::make_shared<std::vector<uint8_t>>();
  for (int64_t k = 0; k < words(1024); ++k) {
    ModelStep& entry = step();
    reads(entry, i.source2 + k);
    entry.effect = [=, at_end = Context(*this)] {
      for (int64_t b = 0; b < at_end.m.bank_bytes; ++b)
        held->push_back(static_cast<uint8_t>(at_end.byte(at_end.i.source2 + k, b)));
    };
  }
  const auto entry = [held](int difference) {
    int32_t value;
    std::memcpy(&value, &held->at(4 * (difference & 0xff)), 4);
    return value;
  };
  for (int64_t r = 0; r < i.rows; ++r) {
    const auto row = std::make_shared<Row>();
    for (int64_t pass = 0; pass < 3; ++pass)
      for (int64_t k = 0; k < words(i.bytes); ++k) {
        const int64_t source = i.source + r * i.stride + k, target = i.target + r * i.stride + k;
        ModelStep& one = step();
        reads(one, source);
        if (pass == 2) writes(one, target);
        one.effect = [=, at_end = Context(*this)] {
          const Instruction& v = at_end.s.vector_registers;
          for (int64_t b = 0; b < at_end.m.bank_bytes; ++b) {
            const bool inside = k * at_end.m.bank_bytes + b < at_end.i.bytes;
            const int value = at_end.byte(source, b);
            if (pass == 0 && inside) row->most = std::max(row->most, value);
            if (pass == 1 && inside) row->total += entry(row->most - value);
            if (pass < 2) continue;
            const float factor = v.scale_a / static_cast<float>(row->total);
            const float share = static_cast<float>(entry(row->most - value)) * factor;
            at_end.byte(target, b) = inside ? rounded(share, v) : int8_t{0};
          }
        };
        more_steps(m.bank_bytes);
      }
  }
}

void JobMaker::make() {
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

}  // namespace

ModelJob model_job(const Machine& machine, const Instruction& instruction, ModelState& state) {
  JobMaker maker(machine, instruction, state);
  maker.make();
  return std::move(maker.job);
}

}  // namespace tuner::npu::testing
