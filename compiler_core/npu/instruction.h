// Instruction: what one 128-bit word says, decoded. README.md says what each operation does and costs.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tuner::npu {

// The order is that of the bits of Instruction::waits and gives.
enum class Queue : uint8_t { kLoad, kCompute, kStore };
inline constexpr int kQueues = 3;

enum class Op : uint8_t {
  kNone,  // no instruction: a word of zeros is none
  // Load queue.
  kSetLoad,
  kLoad,
  // Compute queue: the array, then the vector unit.
  kMatmul,
  kMatmulOs,
  kSetVector,
  kScales,
  kDrain,
  kAdd,
  kPool,
  kMacc,
  kTable,
  kSoftmax,
  kNorm,
  // Store queue.
  kSetStore,
  kStoreScales,
  kStore,
  kStoreSums,
};
inline constexpr int kOps = 18;

// Each operation uses some of the fields, listed in fields.cpp. The others are 0. Addresses and strides of
// the scratchpad count words, those of the accumulators rows, those of DRAM bytes.
struct Instruction {
  Op op = Op::kNone;
  // Masks of queues: it starts when a token of each of `waits` is there, and gives each of `gives` one when
  // it ends.
  uint8_t waits = 0, gives = 0;
  bool accumulate = false;  // adds to the accumulators instead of replacing what they hold
  bool swap = false;        // matmul: begins by taking the weights that were filled last
  bool fill = false;        // matmul: fills the weights of the next swap beside its rows
  // matmul, matmul_os, macc, pool: bytes at `source` are uint8. scales, store_scales: results, zero, low and
  // high are. set_vector: its int8 fields, and what add, softmax and norm read and write.
  bool is_unsigned = false;

  uint32_t dram = 0, dram_stride = 0;
  uint32_t source = 0, source2 = 0, target = 0;  // scratchpad; of matmul: rows, weights, -
  uint32_t sums = 0;                             // accumulators
  uint32_t rows = 0, outer = 0, blocks = 0, bytes = 0;
  uint32_t stride = 0, outer_stride = 0, stride2 = 0;
  uint32_t left = 0, right = 0, top = 0, bottom = 0;  // padding
  uint32_t taps_x = 0, taps_y = 0, step_x = 0, step_y = 0;
  int32_t fill_value = 0, zero_a = 0, zero_b = 0, zero = 0, low = 0, high = 0;  // int8
  float scale_a = 0, scale_b = 0;

  bool operator==(const Instruction&) const = default;
};

using Code = std::vector<Instruction>;

constexpr Queue queue_of(Op op) {
  if (op <= Op::kLoad) return Queue::kLoad;
  return op < Op::kSetStore ? Queue::kCompute : Queue::kStore;
}
constexpr bool is_array(Op op) { return op == Op::kMatmul || op == Op::kMatmulOs; }
// Only changes registers of its queue, in no step of a unit.
constexpr bool only_sets(Op op) { return op == Op::kSetLoad || op == Op::kSetVector || op == Op::kSetStore; }
constexpr uint8_t bit(Queue q) { return static_cast<uint8_t>(1u << static_cast<int>(q)); }

}  // namespace tuner::npu
