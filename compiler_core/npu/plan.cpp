#include "compiler_core/npu/plan.h"

#include <algorithm>

#include "compiler_core/base/int_math.h"

namespace tuner::npu {
namespace {

class Planner {
 public:
  Planner(const Machine& machine, const Instruction& instruction, const Strides& strides, Plan& plan)
      : m_(machine), i_(instruction), strides_(strides), plan_(plan) {}

  void make();

 private:
  void read(uint32_t word) { plan_.words.push_back(word << 1); }
  void write(uint32_t word) { plan_.words.push_back(word << 1 | 1); }
  void read_row(uint32_t word, int64_t count) {
    for (int64_t k = 0; k < count; ++k) read(word + static_cast<uint32_t>(k));
  }
  void end_step(uint8_t bus = 0) { plan_.steps.push_back({static_cast<uint32_t>(plan_.words.size()), bus}); }
  // Ends the step of `values` results; the unit has fewer lanes perhaps, and goes on for more steps.
  void end_vector_step(int64_t values) {
    end_step();
    for (int64_t done = m_.lanes; done < values; done += m_.lanes) end_step();
  }
  void sums(uint32_t begin, uint32_t count, bool read, bool write) {
    plan_.sums.push_back({begin, count, read, write});
  }

  void load();
  void load_row(uint32_t target, uint64_t dram);
  void store();
  void store_row(uint64_t dram, bool from_scratchpad, uint32_t source);
  void matmul();
  void matmul_os();
  void scales();
  void drain();
  void add();
  void pool();
  void macc();
  void table();
  void softmax();
  void norm();

  const Machine& m_;
  const Instruction& i_;
  const Strides& strides_;
  Plan& plan_;
};

void Planner::load() {
  const uint32_t words =
      static_cast<uint32_t>(ceil_div(int64_t{i_.left} + i_.bytes + i_.right, m_.bank_bytes));
  for (uint32_t r = 0; r < i_.top + i_.rows + i_.bottom; ++r) {
    const uint32_t target = i_.target + r * strides_.local;
    if (r >= i_.top && r < i_.top + i_.rows) {
      load_row(target, uint64_t{i_.dram} + uint64_t{r - i_.top} * strides_.dram);
      continue;
    }
    for (uint32_t k = 0; k < words; ++k) {
      write(target + k);
      end_step();
    }
  }
}

void Planner::load_row(uint32_t target, uint64_t dram) {
  const uint64_t word_bytes = m_.bank_bytes, beat = m_.dram_bytes, burst = m_.burst_bytes;
  const uint64_t words = ceil_div(int64_t{i_.left} + i_.bytes + i_.right, m_.bank_bytes);
  const uint64_t data_end = uint64_t{i_.left} + i_.bytes, dram_end = dram + i_.bytes;
  uint64_t k = 0;
  const auto pad = [&] {
    write(target + static_cast<uint32_t>(k++));
    end_step();
  };
  while ((k + 1) * word_bytes <= i_.left) pad();
  for (uint64_t at = dram / burst * burst; at < dram_end || at % burst != 0; at += beat) {
    const uint64_t arrived = at + beat <= dram ? 0 : std::min(at + beat, dram_end) - dram;
    while (k < words && k * word_bytes < data_end &&
           std::min((k + 1) * word_bytes, data_end) - i_.left <= arrived)
      write(target + static_cast<uint32_t>(k++));
    end_step(Plan::kBus | (at % burst == 0 ? Plan::kFirst : 0) |
             ((at + beat) % burst == 0 ? Plan::kLast : 0));
  }
  while (k < words) pad();
  plan_.dram.push_back({dram, i_.bytes, false});
}

void Planner::store() {
  const bool from_scratchpad = i_.op == Op::kStore;
  for (uint32_t r = 0; r < i_.rows; ++r)
    store_row(uint64_t{i_.dram} + uint64_t{r} * strides_.dram, from_scratchpad,
              i_.source + r * strides_.local);
  if (from_scratchpad) return;
  const int64_t blocks = ceil_div(i_.bytes, m_.array_columns);
  for (uint32_t j = 0; j < blocks; ++j) sums(i_.sums + j * i_.outer_stride, i_.rows, true, false);
}

void Planner::store_row(uint64_t dram, bool from_scratchpad, uint32_t source) {
  const uint64_t beat = m_.dram_bytes, burst = m_.burst_bytes, dram_end = dram + i_.bytes;
  uint64_t k = 0;
  for (uint64_t at = dram / burst * burst; at < dram_end || at % burst != 0; at += beat) {
    const uint64_t sent = at + beat <= dram ? 0 : std::min(at + beat, dram_end) - dram;
    for (; from_scratchpad && k * m_.bank_bytes < sent; ++k) read(source + static_cast<uint32_t>(k));
    end_step(Plan::kBus | (at % burst == 0 ? Plan::kFirst : 0) |
             ((at + beat) % burst == 0 ? Plan::kLast : 0));
  }
  plan_.dram.push_back({dram, i_.bytes, true});
}

void Planner::matmul() {
  for (uint32_t o = 0; o < i_.outer; ++o)
    for (uint32_t r = 0; r < i_.rows; ++r) {
      read_row(i_.source + o * i_.outer_stride + r * i_.stride, m_.row_words());
      end_step();
    }
  if (i_.rows > 0) sums(i_.sums, i_.rows * i_.outer, i_.accumulate, true);
  plan_.second_stream = static_cast<uint32_t>(plan_.steps.size());
  for (uint32_t k = 0; i_.fill && k < m_.array_rows; ++k) {
    read_row(i_.source2 + k * i_.stride2, m_.column_words());
    end_step();
  }
}

void Planner::matmul_os() {
  for (uint32_t k = 0; k < i_.rows; ++k) {
    read_row(i_.source + k * i_.stride, m_.row_words());
    read_row(i_.source2 + k * i_.stride2, m_.column_words());
    end_step();
  }
  for (int64_t r = 0; r < m_.array_rows; ++r) end_step();  // the sums move out
  sums(i_.sums, static_cast<uint32_t>(m_.array_rows), i_.accumulate, true);
}

void Planner::scales() {
  const int64_t words = i_.blocks * ceil_div(8 * m_.array_columns, m_.bank_bytes);
  for (uint32_t k = 0; k < words; ++k) {
    read(i_.source + k);
    end_step();
  }
}

void Planner::drain() {
  const uint32_t words = static_cast<uint32_t>(m_.column_words());
  for (uint32_t r = 0; r < i_.rows; ++r)
    for (uint32_t j = 0; j < i_.blocks; ++j) {
      for (uint32_t k = 0; k < words; ++k) write(i_.target + r * i_.stride + j * words + k);
      end_vector_step(m_.array_columns);
    }
  for (uint32_t j = 0; j < i_.blocks; ++j) sums(i_.sums + j * i_.outer_stride, i_.rows, true, false);
}

void Planner::add() {
  for (uint32_t k = 0; k < i_.rows; ++k) {
    read(i_.source + k);
    read(i_.source2 + k);
    write(i_.target + k);
    end_vector_step(m_.bank_bytes);
  }
}

void Planner::pool() {
  for (uint32_t p = 0; p < i_.rows; ++p)
    for (uint32_t y = 0; y < i_.taps_y; ++y)
      for (uint32_t x = 0; x < i_.taps_x; ++x) {
        read(i_.source + p * i_.stride + y * i_.step_y + x * i_.step_x);
        if (y + 1 == i_.taps_y && x + 1 == i_.taps_x) write(i_.target + p * i_.stride2);
        end_vector_step(m_.bank_bytes);
      }
}

void Planner::macc() {
  const uint32_t words = static_cast<uint32_t>(m_.column_words());
  for (uint32_t p = 0; p < i_.rows; ++p)
    for (uint32_t y = 0; y < i_.taps_y; ++y)
      for (uint32_t x = 0; x < i_.taps_x; ++x) {
        read_row(i_.source + p * i_.stride + y * i_.step_y + x * i_.step_x, words);
        read_row(i_.source2 + (y * i_.taps_x + x) * words, words);
        end_vector_step(m_.array_columns);
      }
  sums(i_.sums, i_.rows, i_.accumulate, true);
}

void Planner::table() {
  for (uint32_t k = 0; k < 256 / m_.bank_bytes; ++k) {
    read(i_.source2 + k);
    end_step();
  }
  for (uint32_t k = 0; k < i_.rows; ++k) {
    read(i_.source + k);
    write(i_.target + k);
    end_vector_step(m_.bank_bytes);
  }
}

void Planner::softmax() {
  for (uint32_t k = 0; k < 1024 / m_.bank_bytes; ++k) {
    read(i_.source2 + k);
    end_step();
  }
  const uint32_t words = static_cast<uint32_t>(ceil_div(i_.bytes, m_.bank_bytes));
  for (uint32_t r = 0; r < i_.rows; ++r)
    for (int pass = 0; pass < 3; ++pass)  // the maximum, the sum, the results
      for (uint32_t k = 0; k < words; ++k) {
        read(i_.source + r * i_.stride + k);
        if (pass == 2) write(i_.target + r * i_.stride + k);
        end_vector_step(m_.bank_bytes);
      }
}

void Planner::norm() {
  const uint32_t words = static_cast<uint32_t>(ceil_div(i_.bytes, m_.bank_bytes));
  for (uint32_t r = 0; r < i_.rows; ++r)
    for (int pass = 0; pass < 2; ++pass)  // mean and variance, the results
      for (uint32_t k = 0; k < words; ++k) {
        read(i_.source + r * i_.stride + k);
        if (pass == 1) {
          read_row(i_.source2 + 8 * k, 8);
          write(i_.target + r * i_.stride + k);
        }
        end_vector_step(m_.bank_bytes);
      }
}

void Planner::make() {
  plan_.clear();
  switch (i_.op) {
    case Op::kLoad:
      load();
      break;
    case Op::kStore:
    case Op::kStoreSums:
      store();
      break;
    case Op::kMatmul:
      matmul();
      return;  // it has a second stream
    case Op::kMatmulOs:
      matmul_os();
      break;
    case Op::kScales:
    case Op::kStoreScales:
      scales();
      break;
    case Op::kDrain:
      drain();
      break;
    case Op::kAdd:
      add();
      break;
    case Op::kPool:
      pool();
      break;
    case Op::kMacc:
      macc();
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
    case Op::kNone:
    case Op::kSetLoad:
    case Op::kSetVector:
    case Op::kSetStore:
      break;
  }
  plan_.second_stream = static_cast<uint32_t>(plan_.steps.size());
}

}  // namespace

void Plan::clear() {
  words.clear();
  steps.clear();
  sums.clear();
  dram.clear();
  second_stream = 0;
}

void make_plan(const Machine& machine, const Instruction& instruction, const Strides& strides, Plan& plan) {
  Planner(machine, instruction, strides, plan).make();
}

}  // namespace tuner::npu
