#include "tests/compiler_core/npu_programs.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "compiler_core/npu/encoding.h"
#include "compiler_core/npu/fields.h"
#include "compiler_core/npu/ledger.h"
#include "compiler_core/npu/text.h"

namespace tuner::npu::testing {
namespace {

constexpr uint64_t kDramBytes = 4096;

template <class T>
T one_of(Random& random, std::initializer_list<T> values) {
  return values.begin()[draw(random, 0, static_cast<int64_t>(values.size()) - 1)];
}

// A power of two half of the time: then results fall between two integers now and then.
float draw_scale(Random& random) {
  if (draw(random, 0, 1) == 0) return std::ldexp(1.0f, -static_cast<int>(draw(random, 3, 12)));
  return static_cast<float>(draw(random, 1, 1000)) * 0x1p-13f;
}

// Draws instructions for one machine until the program is long enough.
class Drawer {
 public:
  Drawer(Random& random, const Machine& machine, uint64_t dram_bytes)
      : random_(random), m_(machine), dram_bytes_(dram_bytes), ledger_(machine, dram_bytes) {}

  Code program();

 private:
  uint32_t upto(int64_t high) { return static_cast<uint32_t>(draw(random_, 0, high)); }
  uint32_t from1(int64_t high) { return static_cast<uint32_t>(draw(random_, 1, std::max<int64_t>(1, high))); }
  uint32_t word() { return upto(m_.words() - 1); }
  uint32_t sums() { return upto(m_.accumulator_rows() - 1); }
  void draw_out(Instruction& i) {
    i.zero = static_cast<int32_t>(draw(random_, -5, 5));
    i.low = static_cast<int32_t>(draw(random_, -128, 0));
    i.high = static_cast<int32_t>(draw(random_, 1, 127));
    if (draw(random_, 0, 1) == 0) return;
    i.is_unsigned = true;
    for (int32_t* number : {&i.zero, &i.low, &i.high}) *number += 128;
    if (i.op == Op::kSetVector) i.zero_a += 128, i.zero_b += 128;
  }
  bool is_set(const Instruction& i) const;
  bool add(const Instruction& i, size_t most_steps = 400);
  void begin();
  Instruction load();
  Instruction of_array(Op op);
  Instruction of_vector(Op op);
  Instruction of_store(Op op);
  Instruction any();

  Random& random_;
  const Machine m_;
  const uint64_t dram_bytes_;
  Ledger ledger_;
  Code code_;
  Strides strides_[kQueues];
  Plan plan_;
  bool has_weights_ = false, has_next_weights_ = false;
  uint32_t drain_blocks_ = 0, store_blocks_ = 0;
};

// The registers that it uses are set.
bool Drawer::is_set(const Instruction& i) const {
  if (i.op == Op::kMatmul) return i.swap ? has_next_weights_ : has_weights_ || i.rows == 0;
  if (i.op == Op::kDrain) return i.blocks <= drain_blocks_;
  return i.op != Op::kStoreSums || i.bytes <= store_blocks_ * m_.array_columns;
}

// Appends the instruction if the program may have it there.
bool Drawer::add(const Instruction& i, size_t most_steps) {
  if (!check(i).is_ok() || !is_set(i)) return false;
  const Queue queue = queue_of(i.op);
  Strides& strides = strides_[static_cast<int>(queue)];
  make_plan(m_, i, strides, plan_);
  if (plan_.steps.size() > most_steps || ledger_.bad_cell(plan_)) return false;
  if (i.op == Op::kSetLoad || i.op == Op::kSetStore) strides = {i.dram_stride, i.stride};
  if (i.op == Op::kMatmul) {
    has_weights_ = has_weights_ || i.swap;
    has_next_weights_ = i.fill || (has_next_weights_ && !i.swap);
  }
  if (i.op == Op::kScales) drain_blocks_ = i.blocks;
  if (i.op == Op::kStoreScales) store_blocks_ = i.blocks;
  code_.push_back(i);
  ledger_.record(plan_, queue, static_cast<uint32_t>(code_.size()));
  return true;
}

// What all others need: words, rows, weights and scales that are set.
void Drawer::begin() {
  constexpr size_t kAnySteps = 1 << 20;
  const auto must = [&](const Instruction& i) {
    const bool added = add(i, kAnySteps);
    CHECK(added) << "a program cannot begin with " << text_of(i);
  };
  const uint32_t rows = static_cast<uint32_t>(m_.words() / 2 / 16),
                 bytes = static_cast<uint32_t>(16 * m_.bank_bytes);
  must({.op = Op::kSetLoad,
        .dram_stride = upto((static_cast<int64_t>(dram_bytes_) - bytes) / rows),
        .stride = 16});
  must({.op = Op::kLoad, .rows = rows, .bytes = bytes});
  Instruction vector{.op = Op::kSetVector, .scale_a = draw_scale(random_), .scale_b = draw_scale(random_)};
  draw_out(vector);
  must(vector);
  for (const Op op : {Op::kScales, Op::kStoreScales}) {
    Instruction scales{.op = op, .blocks = from1(2)};
    draw_out(scales);
    must(scales);
  }
  must({.op = Op::kMatmul, .fill = true, .stride2 = static_cast<uint32_t>(m_.column_words())});
  must({.op = Op::kMatmul, .swap = true, .rows = from1(20), .outer = 1, .stride = 1});
}

Instruction Drawer::load() {
  Instruction i{.op = Op::kLoad, .dram = upto(static_cast<int64_t>(dram_bytes_) - 1), .target = word()};
  i.rows = from1(6);
  i.bytes = from1(5 * m_.bank_bytes);
  if (draw(random_, 0, 2) == 0) i.left = upto(2 * m_.bank_bytes);
  if (draw(random_, 0, 2) == 0) i.right = upto(2 * m_.bank_bytes);
  if (draw(random_, 0, 2) == 0) i.top = upto(2);
  if (draw(random_, 0, 2) == 0) i.bottom = upto(2);
  i.fill_value = static_cast<int32_t>(draw(random_, -3, 3));
  return i;
}

Instruction Drawer::of_array(Op op) {
  Instruction i{.op = op, .accumulate = draw(random_, 0, 1) == 0, .source = word(), .source2 = word()};
  i.sums = sums();
  i.rows = from1(20);
  i.stride = upto(3);
  i.stride2 = upto(3);
  i.is_unsigned = draw(random_, 0, 1) == 0;
  if (op == Op::kMatmulOs) return i;
  i.swap = draw(random_, 0, 1) == 0;
  i.fill = draw(random_, 0, 1) == 0;
  i.outer = from1(3);
  i.outer_stride = upto(9);
  if (i.fill && draw(random_, 0, 4) == 0) i.rows = i.outer = 0, i.accumulate = false;
  return i;
}

Instruction Drawer::of_vector(Op op) {
  Instruction i{.op = op};
  const bool has_source = op != Op::kDrain && op != Op::kSetVector;
  const bool has_source2 =
      op == Op::kAdd || op == Op::kTable || op == Op::kSoftmax || op == Op::kNorm || op == Op::kMacc;
  if (has_source) i.source = word();
  if (has_source2) i.source2 = word();
  if (op != Op::kScales && op != Op::kMacc && op != Op::kSetVector) i.target = word();
  if (op == Op::kMacc || op == Op::kDrain) i.sums = sums();
  if (op != Op::kScales && op != Op::kSetVector) i.rows = from1(8);
  if (op == Op::kMacc || op == Op::kPool) {
    i.stride = upto(3);
    i.taps_x = from1(3), i.taps_y = from1(3), i.step_x = upto(3), i.step_y = upto(9);
  }
  if (op == Op::kPool) {
    i.stride2 = upto(2);
    i.is_unsigned = draw(random_, 0, 1) == 0;
  }
  if (op == Op::kMacc) {
    i.accumulate = draw(random_, 0, 1) == 0;
    i.is_unsigned = draw(random_, 0, 1) == 0;
  }
  if (op == Op::kDrain) i.blocks = from1(2), i.outer_stride = upto(9), i.stride = upto(5);
  if (op == Op::kScales) i.blocks = from1(3);
  if (op == Op::kSoftmax || op == Op::kNorm) i.bytes = from1(3 * m_.bank_bytes), i.stride = upto(5);
  if (op == Op::kSetVector) {
    i.scale_a = draw_scale(random_), i.scale_b = draw_scale(random_);
    i.zero_a = static_cast<int32_t>(draw(random_, -9, 9)),
    i.zero_b = static_cast<int32_t>(draw(random_, -9, 9));
  }
  if (op == Op::kSetVector || op == Op::kScales) draw_out(i);
  return i;
}

Instruction Drawer::of_store(Op op) {
  Instruction i{.op = op, .dram = upto(static_cast<int64_t>(dram_bytes_) - 1), .rows = from1(6)};
  if (op == Op::kStoreScales) {
    i = {.op = op, .source = word(), .blocks = from1(3)};
    draw_out(i);
  } else if (op == Op::kStore) {
    i.source = word();
    i.bytes = from1(5 * m_.bank_bytes);
  } else {
    i.sums = sums();
    i.bytes = from1(2 * m_.array_columns);
    i.outer_stride = upto(9);
  }
  return i;
}

Instruction Drawer::any() {
  const int64_t kind = draw(random_, 0, 99);
  if (kind < 28) return load();
  if (kind < 34) return {.op = Op::kSetLoad, .dram_stride = upto(200), .stride = upto(9)};
  if (kind < 48) return of_array(Op::kMatmul);
  if (kind < 54) return of_array(Op::kMatmulOs);
  if (kind < 57) return of_vector(Op::kSetVector);
  if (kind < 60) return of_vector(Op::kScales);
  if (kind < 64) return of_vector(Op::kDrain);
  if (kind < 80)
    return of_vector(one_of(random_, {Op::kAdd, Op::kPool, Op::kMacc, Op::kTable, Op::kSoftmax, Op::kNorm}));
  if (kind < 85) return {.op = Op::kSetStore, .dram_stride = upto(200), .stride = upto(9)};
  return of_store(
      one_of(random_, {Op::kStore, Op::kStoreSums, Op::kStoreSums, Op::kStore, Op::kStoreScales}));
}

Code Drawer::program() {
  begin();
  const size_t length = code_.size() + static_cast<size_t>(draw(random_, 5, 60));
  for (int tries = 0; tries < 4000 && code_.size() < length; ++tries) add(any());
  return std::move(code_);
}

}  // namespace

int64_t draw(Random& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
}

Instruction draw_instruction(Random& random) {
  Instruction i;
  do {
    i = {.op = static_cast<Op>(draw(random, 1, kOps - 1))};
    const OpRow& row = row_of(i.op);
    const auto others = static_cast<uint8_t>(7 & ~bit(queue_of(i.op)));
    i.waits = static_cast<uint8_t>(draw(random, 0, 7)) & others;
    i.gives = static_cast<uint8_t>(draw(random, 0, 7)) & others;
    i.accumulate = row.accumulates && draw(random, 0, 1) == 0;
    i.swap = row.swaps && draw(random, 0, 1) == 0;
    i.fill = row.fills && draw(random, 0, 1) == 0;
    i.is_unsigned = row.may_be_unsigned && draw(random, 0, 1) == 0;
    for (const Field& field : row.fields) {
      const uint64_t most = field.most > 0 ? field.most : field.highest();
      field.set_raw(i, field.least + random() % (most - field.least + 1));
    }
    if (i.low > i.high) std::swap(i.low, i.high);
  } while (!check(i).is_ok());
  return i;
}

Machine draw_machine(Random& random) {
  Machine m;
  m.array_rows = one_of<int64_t>(random, {2, 4, 8, 16, 32});
  m.array_columns = one_of<int64_t>(random, {2, 4, 8, 16, 32});
  m.bank_bytes = one_of<int64_t>(random, {4, 8, 16, 16, 32});
  m.banks = one_of<int64_t>(random, {1, 2, 4, 4, 8});
  m.scratchpad_bytes = one_of<int64_t>(random, {2048, 4096, 8192});
  m.accumulator_bytes = m.array_columns * 4 * one_of<int64_t>(random, {32, 64, 128});
  m.dram_bytes = one_of<int64_t>(random, {1, 4, 8, 16, 16, 32, 64});
  m.burst_bytes = std::max(m.dram_bytes, one_of<int64_t>(random, {4, 16, 32, 64, 64}));
  m.latency = one_of<int64_t>(random, {0, 1, 7, 30, 100});
  m.lanes = one_of<int64_t>(random, {1, 4, 16, 16, 32});
  m.queue = one_of<int64_t>(random, {1, 2, 3, 8, 8});
  return m;
}

std::vector<uint8_t> draw_dram(Random& random, const Machine&) {
  std::vector<uint8_t> dram(kDramBytes);
  for (uint8_t& b : dram) b = static_cast<uint8_t>(random());
  // Floats of a useful size at many places: whoever reads scales there finds some.
  for (size_t at = 0; at + 4 <= dram.size(); at += 4) {
    if (draw(random, 0, 2) > 0) continue;
    const float scale = draw_scale(random);
    std::memcpy(&dram[at], &scale, 4);
  }
  return dram;
}

Code draw_program(Random& random, const Machine& machine, uint64_t dram_bytes) {
  return Drawer(random, machine, dram_bytes).program();
}

}  // namespace tuner::npu::testing
