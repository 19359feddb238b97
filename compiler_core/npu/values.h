// Values: what instructions compute, bit for bit, without time. The simulator says in which order.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compiler_core/npu/fields.h"
#include "compiler_core/npu/machine.h"
#include "compiler_core/npu/plan.h"

namespace tuner::npu {

// What a queue's `scales` instruction loads: how sums become int8 on their way out.
struct OutStage {
  std::vector<int32_t> bias;  // by channel, blocks * array_columns
  std::vector<float> scale;
  int32_t zero = 0, low = 0, high = 0;
  uint32_t blocks = 0;
};

class Values {
 public:
  Values(const Machine& machine, std::span<uint8_t> dram);

  // Runs one instruction whose accesses all lie inside. Returns what is wrong with the registers it uses
  // ("takes weights that nothing filled"); empty when it ran.
  std::string run(const Instruction& instruction);
  // Those of the queue; all others ask for none.
  const Strides& strides(Queue queue) const {
    return queue == Queue::kStore ? store_strides_ : load_strides_;
  }

  const std::vector<int8_t>& scratchpad() const { return scratchpad_; }
  const std::vector<int32_t>& sums() const { return sums_; }

 private:
  int8_t* word(uint32_t number) { return &scratchpad_[static_cast<size_t>(number) * m_.bank_bytes]; }
  int32_t* row(uint32_t number) { return &sums_[static_cast<size_t>(number) * m_.array_columns]; }

  void load(const Instruction& i);
  void store(const Instruction& i);
  std::string store_sums(const Instruction& i);
  std::string matmul(const Instruction& i);
  void matmul_row(const int8_t* source, int32_t* sums, bool accumulate, bool is_unsigned) const;
  void fill(const Instruction& i);
  void matmul_os(const Instruction& i);
  void scales(const Instruction& i, OutStage& out);
  std::string drain(const Instruction& i);
  std::string vector(const Instruction& i);
  void add(const Instruction& i);
  void pool(const Instruction& i);
  void macc(const Instruction& i);
  void table(const Instruction& i);
  void softmax(const Instruction& i);
  void norm(const Instruction& i);

  const Machine m_;
  const std::span<uint8_t> dram_;
  std::vector<int8_t> scratchpad_;
  std::vector<int32_t> sums_;
  Strides load_strides_, store_strides_;
  OutStage drain_stage_, store_stage_;
  Instruction vector_;  // the last set_vector
  // [row][column]; the weights in use and those of the next swap.
  std::vector<float> weights_, next_weights_;
  bool has_weights_ = false, has_next_weights_ = false;
};

}  // namespace tuner::npu
