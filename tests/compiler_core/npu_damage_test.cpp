// Programs with one wrong number: an address, a bank, a stage, a stride, a scale, a flag. Each is found, by
// the simulator or by plain loops. Tokens are those of the program before the damage, as a wrong back end
// would place them.
#include <gtest/gtest.h>

#include <map>

#include "compiler_core/npu/encoding.h"
#include "compiler_core/npu/simulator.h"
#include "compiler_core/npu/text.h"
#include "compiler_core/npu/tokens.h"
#include "tests/compiler_core/npu_matmul.h"

namespace tuner::npu::testing {
namespace {

// Four steps of k per tile of sums, two tiles: every buffer and both sets of accumulators are used again.
constexpr MatmulCase kCase{.m = 64, .n = 64, .k = 128, .tile_m = 32, .tile_n = 64, .tile_k = 32};

struct Damage {
  const char* kind;
  size_t instruction;
  Instruction wrong;
};

// What may be wrong with one instruction. Left out is what changes nothing: a stride of one row, a field of
// no effect.
class Damages {
 public:
  Damages(const Machine& machine, const Code& code) : bank_(static_cast<uint32_t>(machine.words_per_bank())) {
    for (at_ = 0; at_ < code.size(); ++at_) {
      right_ = &code[at_];
      all();
    }
  }
  std::vector<Damage> found;

 private:
  template <class F>
  void add(const char* kind, const F& change) {
    Instruction wrong = *right_;
    change(wrong);
    if (check(wrong).is_ok()) found.push_back({kind, at_, wrong});
  }
  void place(uint32_t Instruction::*field) {
    add("address", [&](Instruction& i) { ++(i.*field); });
    add("bank", [&](Instruction& i) { i.*field ^= 2 * bank_; });  // of b instead of a
    add("stage", [&](Instruction& i) { i.*field ^= bank_; });     // the other one of two buffers
  }
  void more(const char* kind, uint32_t Instruction::*field, uint32_t by = 1) {
    add(kind, [&](Instruction& i) { i.*field += by; });
  }

  void all() {
    switch (right_->op) {
      case Op::kSetLoad:
        more("stride", &Instruction::stride);
        more("stride", &Instruction::dram_stride, 16);
        break;
      case Op::kSetStore:
        more("stride", &Instruction::dram_stride, 16);
        break;
      case Op::kLoad:
        place(&Instruction::target);
        more("address", &Instruction::dram, 64);
        break;
      case Op::kMatmul:
        if (right_->rows > 0) {
          place(&Instruction::source);
          more("stride", &Instruction::stride);
          more("address", &Instruction::sums, 16);
          add("flag", [](Instruction& i) { i.accumulate = !i.accumulate; });
          add("flag", [](Instruction& i) { i.swap = !i.swap; });
        }
        if (right_->fill) {
          place(&Instruction::source2);
          more("stride", &Instruction::stride2);
        }
        break;
      case Op::kStoreScales:
        place(&Instruction::source);
        add("scale", [](Instruction& i) { i.zero = 1; });
        break;
      case Op::kStoreSums:
        more("address", &Instruction::sums);
        more("stage", &Instruction::sums, kCase.tile_m * kCase.tile_n / 16);
        more("address", &Instruction::dram, 64);
        more("stride", &Instruction::outer_stride);
        break;
      default:
        break;
    }
  }

  const uint32_t bank_;
  const Instruction* right_ = nullptr;
  size_t at_ = 0;
};

TEST(NpuDamage, EveryWrongNumberIsFound) {
  const Machine machine;
  const std::vector<uint8_t> operands = matmul_dram(kCase);
  const Result<Code> code = place_tokens(machine, MatmulWriter(machine, kCase).code(), operands.size());
  ASSERT_TRUE(code.is_ok()) << code.message();
  std::vector<uint8_t> right = operands;
  ASSERT_FALSE(simulate(machine, *code, right).fault);
  std::map<std::string, std::pair<int, int>> by_kind;  // found by the simulator, by values
  for (const Damage& damage : Damages(machine, *code).found) {
    Code wrong = *code;
    wrong[damage.instruction] = damage.wrong;
    std::vector<uint8_t> dram = operands;
    const bool stopped = simulate(machine, wrong, dram).fault.has_value();
    EXPECT_TRUE(stopped || dram != right)
        << damage.kind << " of #" << damage.instruction << ": " << text_of((*code)[damage.instruction])
        << "\n  became " << text_of(damage.wrong);
    auto& [by_simulator, by_values] = by_kind[damage.kind];
    ++(stopped ? by_simulator : by_values);
  }
  for (const auto& [kind, counts] : by_kind)
    std::printf("%-8s %4d found by the simulator, %4d by values\n", kind.c_str(), counts.first,
                counts.second);
  for (const char* kind : {"address", "bank", "stage", "stride", "scale", "flag"})
    EXPECT_GT(by_kind[kind].first + by_kind[kind].second, 0) << kind;
}

}  // namespace
}  // namespace tuner::npu::testing
