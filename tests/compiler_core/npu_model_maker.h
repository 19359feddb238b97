// The second model's steps of each kind of instruction; npu_model_jobs.cpp has DMA and array,
// npu_model_vector.cpp the vector unit.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include "tests/compiler_core/npu_model_jobs.h"

namespace tuner::npu::testing {

// Int8 from a float, as README.md says it under "Numbers".
int8_t rounded(float value, const Instruction& registers);
inline int32_t wrapped(int64_t value) { return static_cast<int32_t>(static_cast<uint32_t>(value)); }

// What an effect needs when its step is done.
struct ModelContext {
  const Machine& m;
  Instruction i;
  ModelState& s;

  int64_t words(int64_t bytes) const { return (bytes + m.bank_bytes - 1) / m.bank_bytes; }
  int8_t& byte(int64_t word, int64_t b) const { return s.scratchpad.at(word * m.bank_bytes + b); }
  // Of the instruction's rows of operands, which are signed or not.
  int64_t operand(int64_t word, int64_t b) const { return number(word, b, i.is_unsigned); }
  // Of what add, softmax and norm read.
  int64_t registered(int64_t word, int64_t b) const {
    return number(word, b, s.vector_registers.is_unsigned);
  }
  int64_t number(int64_t word, int64_t b, bool is_unsigned) const {
    return is_unsigned ? int64_t{static_cast<uint8_t>(byte(word, b))} : int64_t{0} + byte(word, b);
  }
  int32_t& sum(int64_t row, int64_t column) const { return s.sums.at(row * m.array_columns + column); }
  void set_word(int64_t target, int64_t k, int64_t dram) const;
};

class ModelJobMaker : public ModelContext {
 public:
  ModelJobMaker(const Machine& machine, const Instruction& instruction, ModelState& state)
      : ModelContext{machine, instruction, state} {}

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
  void norm();
  template <class F>
  void bursts(int64_t dram, int64_t bytes, bool write, const F& each);
};

}  // namespace tuner::npu::testing
