// Programs that templates compile to, with one thing wrong in them: the simulator names an instruction, or
// the answer is not the oracle's. None goes unnoticed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "compiler_core/npu/text.h"
#include "tests/templates/npu_template_check.h"

namespace tuner {
namespace {

using npu::Code;
using npu::Instruction;
using npu::KernelFile;
using npu::Op;

struct Mutant {
  std::string kind, what;
  KernelFile kernel;
};

// All mutants of a program.
class Mutants {
 public:
  Mutants(const KernelFile& kernel, const npu::Machine& machine) : whole_(kernel), m_(machine) {
    for (uint32_t n = 0; n < whole_.code.size(); ++n) {
      tokens(n);
      banks(n);
      stages(n);
      strides(n);
      shifts(n);
    }
    for (size_t p = 0; p < whole_.patches.size(); ++p) {
      Mutant& wrong = add("wrong shift", whole_.patches[p].instruction, "patch");
      ++wrong.kernel.patches[p].add;
    }
  }
  std::vector<Mutant>& all() { return all_; }

 private:
  Mutant& add(const char* kind, uint32_t n, const std::string& how) {
    all_.push_back({kind, str("#", n, " ", npu::text_of(whole_.code[n]), ": ", how), whole_});
    return all_.back();
  }
  void change(const char* kind, uint32_t n, const std::string& how,
              const std::function<void(Instruction&)>& wrong) {
    Instruction i = whole_.code[n];
    wrong(i);
    if (i == whole_.code[n] || !npu::check(i).is_ok()) return;
    add(kind, n, how).kernel.code[n] = i;
  }

  void tokens(uint32_t n) {
    const Instruction& i = whole_.code[n];
    for (int q = 0; q < npu::kQueues; ++q) {
      const auto bit = static_cast<uint8_t>(1 << q);
      if ((i.waits & bit) != 0)
        change("token dropped", n, str("waits for no ", q), [&](Instruction& w) { w.waits ^= bit; });
      if ((i.gives & bit) == 0) continue;
      change("token dropped", n, str("gives no ", q), [&](Instruction& w) { w.gives ^= bit; });
      // The next one of its queue that gives none gives one, too.
      for (uint32_t next = n + 1; next < whole_.code.size(); ++next) {
        if (queue_of(whole_.code[next].op) != queue_of(i.op) || (whole_.code[next].gives & bit) != 0)
          continue;
        change("token doubled", next, str("gives ", q), [&](Instruction& w) { w.gives |= bit; });
        break;
      }
    }
  }
  // Where an instruction reads or writes the scratchpad.
  static std::vector<uint32_t Instruction::*> places(Op op) {
    switch (op) {
      case Op::kLoad:
        return {&Instruction::target};
      case Op::kStore:
      case Op::kStoreScales:
        return {&Instruction::source};
      case Op::kMatmulOs:
      case Op::kMacc:
        return {&Instruction::source, &Instruction::source2};
      case Op::kAdd:
      case Op::kSoftmax:
      case Op::kNorm:
        return {&Instruction::source, &Instruction::source2, &Instruction::target};
      case Op::kPool:
        return {&Instruction::source, &Instruction::target};
      default:
        return {};
    }
  }
  std::vector<uint32_t Instruction::*> places_of(const Instruction& i) const {
    if (i.op != Op::kMatmul) return places(i.op);
    std::vector<uint32_t Instruction::*> out;
    if (i.rows > 0) out.push_back(&Instruction::source);
    if (i.fill) out.push_back(&Instruction::source2);
    return out;
  }
  // It brings zeros from beside the operands, which may lie there already.
  bool is_fill(const Instruction& i) const {
    return i.op == Op::kLoad && std::ranges::none_of(whole_.operands, [&](const npu::KernelOperand& o) {
             return i.dram >= o.dram && i.dram < o.dram + o.bytes;
           });
  }
  void banks(uint32_t n) {
    if (is_fill(whole_.code[n])) return;
    const auto words = static_cast<uint32_t>(m_.words());
    for (const auto place : places_of(whole_.code[n]))
      change("wrong bank", n, "the next bank", [&](Instruction& w) {
        w.*place = (w.*place + static_cast<uint32_t>(m_.words_per_bank())) % words;
      });
  }
  // The place of the next instruction of this kind, and of as many rows, which works on another stage.
  void stages(uint32_t n) {
    const Instruction& i = whole_.code[n];
    if (is_fill(i)) return;
    for (const auto place : places_of(i))
      for (uint32_t next = n + 1; next < whole_.code.size(); ++next) {
        const Instruction& other = whole_.code[next];
        if (other.op != i.op || other.fill != i.fill || other.*place == i.*place) continue;
        change("wrong stage", n, str("that of #", next), [&](Instruction& w) { w.*place = other.*place; });
        break;
      }
  }
  void strides(uint32_t n) {
    const Instruction& i = whole_.code[n];
    const auto one_more = [&](uint32_t Instruction::*field, const char* name) {
      change("wrong stride", n, str(name, " + 1"), [&](Instruction& w) { ++(w.*field); });
    };
    if (i.op == Op::kSetLoad || i.op == Op::kSetStore) {
      const Op user = i.op == Op::kSetLoad ? Op::kLoad : Op::kStore, sums = Op::kStoreSums;
      for (uint32_t next = n + 1; next < whole_.code.size() && whole_.code[next].op != i.op; ++next) {
        const Instruction& u = whole_.code[next];
        if ((u.op != user && (u.op != sums || user != Op::kStore)) || u.rows < 2 || is_fill(u)) continue;
        one_more(&Instruction::dram_stride, "dram_stride");
        if (u.op != sums) one_more(&Instruction::stride, "stride");
        return;
      }
      return;
    }
    if (i.rows > 1 && (i.op == Op::kMatmul || i.op == Op::kMatmulOs || i.op == Op::kMacc ||
                       i.op == Op::kPool || i.op == Op::kSoftmax || i.op == Op::kNorm))
      one_more(&Instruction::stride, "stride");
    if ((i.op == Op::kMatmul && i.fill) || (i.op == Op::kMatmulOs && i.rows > 1) ||
        (i.op == Op::kPool && i.rows > 1))
      one_more(&Instruction::stride2, "stride2");
    if (i.op == Op::kMatmul && i.outer > 1) one_more(&Instruction::outer_stride, "outer_stride");
    if (i.op == Op::kStoreSums && i.bytes > m_.array_columns)
      one_more(&Instruction::outer_stride, "outer_stride");
    if (i.taps_x > 1) one_more(&Instruction::step_x, "step_x");
    if (i.taps_y > 1) one_more(&Instruction::step_y, "step_y");
  }
  void shifts(uint32_t n) {
    const Instruction& i = whole_.code[n];
    if (i.op == Op::kStoreScales)
      change("wrong shift", n, "scales one word further", [](Instruction& w) { ++w.source; });
    if (i.op != Op::kSetVector) return;
    change("wrong shift", n, "zero + 1", [](Instruction& w) { ++w.zero; });
    const auto user = std::ranges::find_if(whole_.code, [](const Instruction& each) {
      return each.op == Op::kAdd || each.op == Op::kSoftmax || each.op == Op::kNorm;
    });
    if (user->op == Op::kNorm) return;  // of it, epsilon is beside variances of thousands
    change("wrong shift", n, "scale_a doubled", [](Instruction& w) { w.scale_a *= 2; });
    if (user->op == Op::kSoftmax) return;
    change("wrong shift", n, "scale_b halved", [](Instruction& w) { w.scale_b /= 2; });
    change("wrong shift", n, "zero_a + 1", [](Instruction& w) { ++w.zero_a; });
  }

  const KernelFile& whole_;
  const npu::Machine& m_;
  std::vector<Mutant> all_;
};

// How many were noticed by whom, by kind.
struct Noticed {
  int by_simulator = 0, by_oracle = 0;
};
constexpr size_t kMostOfAKind = 150;

// `scale`: of sums, such that results are within their range and a wrong sum is another byte.
void expect_noticed(const AnyTemplate& t, const Workload& w, double scale = 0) {
  SCOPED_TRACE(w.key());
  const Target target = npu_target();
  const npu::Machine machine = machine_of(target);
  const auto instance = t.apply(w, target);
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const ConfigSpace& space = (*instance)->space();
  const Result<Program> program = (*instance)->instantiate(space.at(space.default_index()));
  ASSERT_TRUE(program.is_ok()) << program.message();
  const Result<NpuProgram> lowered = lower_to_npu(*program, machine);
  ASSERT_TRUE(lowered.is_ok()) << lowered.message();
  const Program math = w.compute();
  std::vector<std::vector<double>> expected = random_arguments(math, 21);
  for (size_t i = 0; i < expected.size(); ++i)
    for (double& value : expected[i]) {
      if (math.args[i]->name == "scale") value = static_cast<float>(scale * (1 + value / 4));
      if (math.args[i]->name == "bias") value = std::fmod(value, 10'000);
      if (math.args[i]->name == "in1" || math.args[i]->name == "in2") value *= scale;
    }
  ASSERT_TRUE(interpret(math, expected).is_ok());
  const std::vector<uint8_t> wanted = bytes_of(math.args.back(), expected.back());
  ASSERT_EQ(run_kernel(lowered->kernel, *program, math, expected).out, wanted);

  std::map<std::string, std::vector<Mutant>> by_kind;
  Mutants found(lowered->kernel, machine);
  for (Mutant& mutant : found.all()) by_kind[mutant.kind].push_back(std::move(mutant));
  for (const auto& [kind, mutants] : by_kind) {
    Noticed noticed;
    const size_t step = std::max<size_t>(1, mutants.size() / kMostOfAKind);
    for (size_t k = 0; k < mutants.size(); k += step) {
      const Ran ran = run_kernel(mutants[k].kernel, *program, math, expected);
      if (ran.result.fault)
        ++noticed.by_simulator;
      else if (ran.out != wanted)
        ++noticed.by_oracle;
      else
        ADD_FAILURE() << kind << ": " << mutants[k].what << ": nobody noticed";
    }
    std::printf("%s, %s: %zu, of them %d by the simulator, %d by the oracle\n", std::string(t.name()).c_str(),
                kind.c_str(), mutants.size(), noticed.by_simulator, noticed.by_oracle);
  }
}

// Extents are whole tiles: what is wrong with rows and columns that only fill tiles up changes nothing. Nor
// does a tile that is loaded to another place while it lies at its own from before: columns, or channels of
// out, are one tile, so no tile is loaded twice.
TEST(NpuMutation, OfMatmul) {
  MatmulWorkload w{.m = 96, .n = 64, .k = 512, .bias = true, .dtype = DType::kInt8};
  w.narrow_out = DType::kInt8;
  expect_noticed(matmul_npu(), w, 2e-4);
}
TEST(NpuMutation, OfMatmulByTerms) {
  MatmulWorkload w{.m = 64, .n = 64, .k = 512, .bias = true, .dtype = DType::kInt8};
  w.transpose_a = true;
  w.narrow_out = DType::kInt8;
  expect_noticed(matmul_npu(), w, 2e-4);
}
TEST(NpuMutation, OfConv2d) { expect_noticed(conv2d_npu(), npu_convolution(32, 20, 64, 3, 1), 2e-4); }
TEST(NpuMutation, OfConv2dWithStride) {
  expect_noticed(conv2d_npu(), npu_convolution(48, 33, 64, 3, 2), 2e-4);
}
TEST(NpuMutation, OfDepthwise) {
  expect_noticed(depthwise_conv2d_npu(), npu_convolution(128, 14, 128, 3, 1, 128), 1e-3);
}
TEST(NpuMutation, OfPool) {
  Pool2dWorkload w{.channels = 64,
                   .in_height = 40,
                   .in_width = 40,
                   .kernel_height = 3,
                   .kernel_width = 3,
                   .stride = {2, 2},
                   .padding = {1, 1, 1, 1}};
  w.dtype = DType::kUInt8;
  w.layout = "NHWC";
  expect_noticed(pool2d_npu(), w);
}
TEST(NpuMutation, OfQuantizedAdd) {
  const Result<Workload> w = program_from_text(
      "in=uint8[50000],uint8[50000] "
      "com.microsoft.QLinearAdd(0,float32[](0.02),uint8[](3),1,float32[](0.03),"
      "uint8[](9),float32[](0.05),uint8[](17))");
  ASSERT_TRUE(w.is_ok()) << w.message();
  expect_noticed(quantized_add_npu(), *w, 1);
}
TEST(NpuMutation, OfRows) {
  const auto softmax = program_from_text(
      "in=uint8[700,90] com.microsoft.QLinearSoftmax(0,float32[](0.0625),uint8[](3),float32[](0.00390625),"
      "uint8[](7))");
  const auto norm = program_from_text(
      "in=uint8[700,90],float32[90],float32[90] tuner.QLinearLayerNormalization(0,1,2,uint8[](128))"
      "{epsilon=0.125f}");
  ASSERT_TRUE(softmax.is_ok() && norm.is_ok()) << softmax.message() << norm.message();
  expect_noticed(quantized_softmax_npu(), *softmax, 1);
  expect_noticed(quantized_norm_npu(), *norm, 40);
}

}  // namespace
}  // namespace tuner
