// Programs for the NPU: names of targets, linear indices, instructions of small schedules, and what is
// refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler_core/codegen_npu/linear.h"
#include "compiler_core/codegen_npu/lower_npu.h"
#include "compiler_core/codegen_npu/npu_backend.h"
#include "compiler_core/codegen_npu/npu_family.h"
#include "compiler_core/npu/text.h"
#include "compiler_core/schedule/schedule.h"
#include "compiler_core/te/te.h"

namespace tuner {
namespace {

using ::testing::HasSubstr;

TEST(NpuTarget, NamesHaveOneSpelling) {
  const Result<Target> target = parse_target("npu -banks=8 -array=16x16 -scratchpad=128KiB");
  ASSERT_TRUE(target.is_ok()) << target.message();
  EXPECT_EQ(target->name(), "npu -scratchpad=128KiB -banks=8");
  EXPECT_EQ(parse_target(target->name())->name(), target->name());
  EXPECT_EQ(machine_of(*target).scratchpad_bytes, 128 << 10);
  EXPECT_EQ(parse_target("npu -banks=4")->name(), "npu") << "4 is the default";
  EXPECT_FALSE(target->is_cpu());
  EXPECT_TRUE(target->family->near(*target, *parse_target("npu")));
  EXPECT_FALSE(target->family->same_processor(*target, *parse_target("npu")));
  EXPECT_EQ(target->family->difference(*parse_target("npu"), *target),
            "tuned for \"npu -scratchpad=128KiB -banks=8\"");
  EXPECT_EQ(parse_target("npu -banks=3").message(),
            "target: npu: -banks: expected a power of two from 1 to 32, found 3");
  EXPECT_THAT(parse_target("npu -bonks=4").message(), HasSubstr("-bonks"));
  EXPECT_THAT(parse_target("npu -banks=4 -banks=8").message(), HasSubstr("-banks is given twice"));
  // Options that need each other, in any order.
  EXPECT_TRUE(parse_target("npu -burst=4 -dram_bytes=4").is_ok());
  EXPECT_TRUE(parse_target("npu -dram_bytes=128 -burst=128").is_ok());
}

// No program exceeds what the family says of its machine: 2 * 256 operations per cycle.
TEST(NpuTarget, LimitsAreTheMachines) {
  const Target target = *parse_target("npu");
  EXPECT_EQ(target.family->limits(target, DType::kInt8)->ops_per_ns, 512);
}

class Linears : public ::testing::Test {
 protected:
  Linears() {
    scope.set(k.get(), 3);
    scope.begin({{i.get(), 8, 0, 8}, {j.get(), 10, 0, 10}});
  }
  std::string text(const Expr& e) const {
    const std::optional<Linear> l = scope.linear(e);
    return l ? str(l->base, " ", l->by[0], " ", l->by[1]) : "none";
  }
  std::string box() const {
    if (scope.is_empty()) return "empty";
    return str(scope.loops()[0].begin, "..", scope.loops()[0].end, " ", scope.loops()[1].begin, "..",
               scope.loops()[1].end);
  }
  const Var i = make_var("i"), j = make_var("j"), k = make_var("k");
  LinearScope scope;
};

TEST_F(Linears, Expressions) {
  EXPECT_EQ(text(Expr(k) * 16 + Expr(i) * 4 + j), "48 4 1");
  EXPECT_EQ(text(floor_div(Expr(i) * 32 + 70, 16)), "4 2 0") << "all multiples but the base";
  EXPECT_EQ(text(floor_mod(Expr(i) * 32 + 70, 16)), "6 0 0");
  EXPECT_EQ(text(floor_div(Expr(j) + 32, 16)), "2 0 0") << "0..9 lie in one block";
  EXPECT_EQ(text(floor_mod(Expr(j) + 32, 16)), "0 0 1");
  EXPECT_EQ(text(floor_div(Expr(j) + 30, 16)), "none");
  EXPECT_EQ(text(Expr(i) * Expr(j)), "none");
  EXPECT_EQ(text(min(Expr(i), Expr(7))), "0 1 0");
  EXPECT_EQ(text(min(Expr(i), Expr(6))), "none");
  EXPECT_EQ(text(make_var("unknown")), "none");
}

TEST_F(Linears, GuardsCutBoxes) {
  EXPECT_TRUE(scope.narrow(Expr(i) * 3 + k < 12 && Expr(j) + Expr(k) >= 5));
  EXPECT_EQ(box(), "0..3 2..10") << "3 * i < 9, j >= 2";
  EXPECT_TRUE(scope.narrow(Expr(i) + j < 100)) << "always";
  EXPECT_EQ(box(), "0..3 2..10");
  EXPECT_FALSE(scope.narrow(Expr(i) + j < 5)) << "no box";
  EXPECT_TRUE(scope.narrow(Expr(k) < 3));
  EXPECT_EQ(box(), "empty");
}

// out = requantised a * b, a [m, k], b [k, n], with nothing scheduled.
Program product(int64_t m, int64_t n, int64_t k) {
  te::Builder b("product", DType::kInt32);
  const Buffer a = b.input("a", {m, k}, DType::kUInt8), w = b.input("b", {k, n}, DType::kInt8),
               scale = b.input("scale", {n}, DType::kFloat32),
               zero = b.input("zero_point", {1}, DType::kInt8);
  const Buffer acc = b.reduce(
      "acc", {m, n}, {{"k", k}}, ReduceOp::kSum,
      [&](const te::Indices& i, const te::Indices& r) {
        return cast(DType::kInt32, load(a, {i[0], r[0]})) * cast(DType::kInt32, load(w, {r[0], i[1]}));
      },
      BufferRole::kIntermediate, {"i", "j"});
  b.compute("out", {m, n},
            [&](const te::Indices& i) {
              const Expr zero_point = cast(DType::kInt32, load(zero, {0}));
              const auto bound = [&](int64_t value) {
                return cast(DType::kFloat32, int_imm(value, DType::kInt32) - zero_point);
              };
              Expr x = cast(DType::kFloat32, load(acc, {i[0], i[1]})) * load(scale, {i[1]});
              x = min(at_least(x, bound(-128)), bound(127));
              return cast(DType::kInt8, cast(DType::kInt32, unary(UnaryOp::kRound, x)) + zero_point);
            },
            BufferRole::kOutput, {"i", "j"});
  return b.finish();
}

// Tiles of tile_m x 16 sums, 16 terms at once.
Schedule tiled(int64_t m, int64_t n, int64_t k, int64_t stages = 1, int64_t tile_m = 4) {
  Schedule s(product(m, n, k));
  const Tensor a = s.pack(s.tensor("a"), {{0, 1, false, tile_m}, {1, 1, false, 16}}),
               b = s.pack(s.tensor("b"), {{0, 1, false, 16}, {1, 1, false, 16}}), acc = s.tensor("acc"),
               out = s.tensor("out");
  s.pad_reduction(s.reduce_axes<1>(acc)[0], 16);
  for (const Tensor& t : {a, b}) s.set_scope(t, MemoryScope::kShared);
  s.set_scope(acc, MemoryScope::kFragment);
  const auto [i, j] = s.axes<2>(out);
  const auto [i_tile, row] = s.split(i, tile_m);
  const auto [j_tile, column] = s.split(j, 16);
  s.reorder({i_tile, j_tile, row, column});
  s.compute_at(acc, j_tile);
  const auto [acc_row, acc_column] = s.inner_axes<2>(acc);
  const auto [k_block, lane] = s.split(s.reduce_axes<1>(acc)[0], 16);
  s.reorder({k_block, acc_row, acc_column, lane});
  s.decompose_reduction(acc, k_block);
  s.tensorize(acc_column, "npu.rows.uint8.16x16");
  s.compute_at(a, k_block);
  s.compute_at(b, k_block);
  if (stages > 1) s.pipeline({a, b}, k_block, stages);
  return s;
}

std::string code_of(const Schedule& s) {
  const Result<Program> program = s.finish();
  if (!program.is_ok()) return program.message();
  const Result<NpuProgram> lowered = lower_to_npu(*program, npu::Machine());
  return lowered.is_ok() ? npu::text_of(lowered->kernel.code) : lowered.message();
}

// Two tiles of k, the first of weights filled alone, the second beside the rows of the first. Of 20 terms 4
// are in the second tile: the rest is padding, 12 bytes behind each row of a, and 12 rows of b, which are one
// with those that are there. The tables: no bias, which are zeros behind the operands, and 16 scales.
TEST(NpuLowering, InstructionsOfASmallProduct) {
  EXPECT_EQ(code_of(tiled(4, 16, 20, 2)), R"(set_load stride=8
load dram=640 rows=1 bytes=64
load dram=448 target=4 rows=1 bytes=64 gives=store
set_load dram_stride=20 stride=1
load target=4096 rows=4 bytes=16
load dram=128 target=8192 rows=1 bytes=256 gives=compute
load dram=16 target=12288 rows=4 bytes=4 right=12
load dram=384 target=12292 rows=1 bytes=64 right=192 gives=compute
matmul source2=8192 stride2=1 fill waits=load
matmul source=4096 source2=12292 rows=4 outer=1 stride=1 stride2=1 swap fill unsigned waits=load
matmul source=12288 rows=4 outer=1 stride=1 accumulate swap unsigned gives=store
store_scales blocks=1 low=-128 high=127 waits=load
set_store dram_stride=16
store_sums dram=576 rows=4 bytes=16 outer_stride=4 waits=compute
)");
}

// More rows than an instruction takes: the same weights again, without another swap.
TEST(NpuLowering, ManyRowsAreSeveralInstructions) {
  const npu::Machine machine{.scratchpad_bytes = 1 << 20, .accumulator_bytes = 1 << 20};
  const Result<Program> program = tiled(1500, 16, 16, 1, 1500).finish();
  ASSERT_TRUE(program.is_ok()) << program.message();
  const Result<NpuProgram> lowered = lower_to_npu(*program, machine);
  ASSERT_TRUE(lowered.is_ok()) << lowered.message();
  std::vector<npu::Instruction> products;
  for (const npu::Instruction& i : lowered->kernel.code)
    if (i.op == npu::Op::kMatmul && i.rows > 0) products.push_back(i);
  ASSERT_EQ(products.size(), 2u);
  EXPECT_EQ(products[0].rows, 1023u);
  EXPECT_EQ(products[1].rows, 477u);
  EXPECT_TRUE(products[0].swap && !products[1].swap);
  EXPECT_EQ(products[1].source, products[0].source + 1023);
  EXPECT_EQ(products[1].sums, products[0].sums + 1023);
}

TEST(NpuLowering, EqualProgramsGiveEqualBytes) {
  const Target target = *parse_target("npu");
  const Result<Program> first = tiled(9, 40, 50).finish(), second = tiled(9, 40, 50).finish();
  const Result<Artifact> a = npu_backend().compile(*first, target),
                         b = npu_backend().compile(*second, target);
  ASSERT_TRUE(a.is_ok()) << a.message();
  EXPECT_EQ(a->binary, b->binary);
  EXPECT_EQ(a->manifest.kind, "npu");
  EXPECT_EQ(a->manifest.args.size(), 5u);
}

TEST(NpuLowering, TextsSayCyclesAndLoops) {
  const Target target = *parse_target("npu");
  const Result<Program> program = tiled(8, 16, 32).finish();
  const Result<std::string> list = npu_backend().text("npu", *program, target);
  ASSERT_TRUE(list.is_ok()) << list.message();
  EXPECT_THAT(*list, HasSubstr(" of the array's peak; simulated\n"));
  EXPECT_THAT(*list, HasSubstr("# i.outer=1 j.outer=0 k.outer=1: for i in 0..4: npu.rows.uint8.16x16("));
  // Comments aside it is what the assembler reads.
  const Result<npu::Code> code = npu::parse_code(*list);
  ASSERT_TRUE(code.is_ok()) << code.message();
  EXPECT_TRUE(*code == lower_to_npu(*program, npu::Machine())->kernel.code);
  const Result<std::string> trace = npu_backend().text("trace", *program, target);
  ASSERT_TRUE(trace.is_ok()) << trace.message();
  EXPECT_THAT(*trace, HasSubstr(R"("name":"store_sums","ph":"X","pid":0,"tid":2)"));
}

std::string refusal(const Result<Program>& program, const npu::Machine& machine = {}) {
  EXPECT_TRUE(program.is_ok()) << program.message();
  const Result<NpuProgram> lowered = lower_to_npu(*program, machine);
  EXPECT_FALSE(lowered.is_ok());
  EXPECT_EQ(lowered.status().code(), StatusCode::kInvalidConfig);
  return lowered.message();
}

TEST(NpuLowering, RefusalsNameWhatWasFound) {
  EXPECT_EQ(refusal(product(4, 16, 16)),
            "npu: acc is in global memory; the device has shared memory (the scratchpad) and fragments "
            "(accumulators)");
  Schedule plain_sum(product(4, 16, 16));
  plain_sum.set_scope(plain_sum.tensor("acc"), MemoryScope::kFragment);
  EXPECT_THAT(refusal(plain_sum.finish()), HasSubstr("npu: has no instruction for the sum \"acc[i, j] "));
  EXPECT_EQ(refusal(tiled(4, 16, 16).finish(), {.array_rows = 32, .array_columns = 32}),
            "npu: acc: accumulators are rows of 32 int32");
  EXPECT_EQ(refusal(tiled(4, 16, 16).finish(), {.array_rows = 32, .array_columns = 16}),
            "npu: npu.rows.uint8.16x16 is of another array; that of the target is 32x16");
  EXPECT_THAT(refusal(tiled(4, 16, 16).finish(), {.scratchpad_bytes = 256, .banks = 1}),
              HasSubstr("no place for a buffer of 16 words"));
  Schedule plain = tiled(4, 16, 16);
  plain.set_layout(plain.tensor("a.packed"), "pad:4");
  EXPECT_EQ(refusal(plain.finish()), "npu: a.packed: a row of 20 bytes is no whole number of words of 16");
}

}  // namespace
}  // namespace tuner
