// The reference answer in blocks: each element has the bits that one row at a time gives it, whatever the
// blocks, their remainders and the threads; and these are the values of the oracle.
#include <gtest/gtest.h>

#include <bit>

#include "compiler_core/base/cpu_affinity.h"
#include "compiler_core/codegen/reference.h"
#include "compiler_core/ir/foreign_code.h"
#include "compiler_core/ir/visitor.h"
#include "templates/workload/workload.h"
#include "tests/compiler_core/kernel_testing.h"
#include "tests/random_seed.h"

namespace tuner {
namespace {

using namespace tuner::testing;
using Random = std::mt19937_64;

int64_t between(Random& random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}
template <class T>
T one_of(Random& random, const std::vector<T>& all) {
  return all[static_cast<size_t>(between(random, 0, static_cast<int64_t>(all.size()) - 1))];
}

Workload random_matmul(Random& random) {
  MatmulWorkload w;
  w.batch = between(random, 1, 3);
  w.m = between(random, 1, 40), w.n = between(random, 1, 75), w.k = between(random, 1, 40);
  w.transpose_a = between(random, 0, 1) == 1, w.transpose_b = between(random, 0, 1) == 1;
  w.bias = between(random, 0, 1) == 1;
  w.dtype = one_of<DType>(random, {DType::kFloat32, DType::kFloat32, DType::kBFloat16, DType::kInt8});
  if (w.dtype == DType::kInt8 && between(random, 0, 1) == 1) w.narrow_out = DType::kUInt8;
  if (w.dtype == DType::kFloat32) w.accumulate = between(random, 0, 1) == 1;
  return w;
}

Workload random_conv(Random& random) {
  Conv2dWorkload w;
  w.groups = one_of<int64_t>(random, {1, 1, 1, 2, 8});
  w.batch = between(random, 1, 2);
  w.in_channels = w.groups * between(random, 1, 5), w.out_channels = w.groups * between(random, 1, 9);
  w.in_height = between(random, 3, 11), w.in_width = between(random, 3, 11);
  w.kernel_height = between(random, 1, 3), w.kernel_width = between(random, 1, 3);
  w.stride = {between(random, 1, 2), between(random, 1, 2)};
  w.padding = {between(random, 0, 1), between(random, 0, 1), between(random, 0, 1), between(random, 0, 1)};
  w.layout = w.out_layout = one_of<std::string>(random, {"NCHW", "NHWC"});
  w.activation = one_of<Activation>(random, {Activation::kNone, Activation::kRelu});
  w.dtype = one_of<DType>(random, {DType::kFloat32, DType::kFloat16, DType::kInt8});
  if (w.dtype == DType::kInt8 && between(random, 0, 1) == 1) w.narrow_out = DType::kInt8;
  return w;
}

Workload random_other(Random& random) {
  const int64_t rows = between(random, 1, 40), columns = between(random, 1, 70);
  Pool2dWorkload pool{
      .channels = between(random, 1, 5), .in_height = between(random, 3, 12), .in_width = columns + 2};
  pool.kernel_height = pool.kernel_width = between(random, 1, 3);
  pool.padding = {0, between(random, 0, pool.kernel_width - 1), 0, 0};
  pool.pooling = one_of<Pooling>(random, {Pooling::kMax, Pooling::kAverage});
  return one_of<Workload>(
      random, {pool, SoftmaxWorkload{rows, columns}, LayerNormWorkload{rows, columns},
               ReduceWorkload{rows, columns, RowReduction::kSum},
               ReduceWorkload{rows, columns, RowReduction::kMin}, TransposeWorkload{rows, columns}});
}

Workload random_workload(Random& random) {
  const int64_t which = between(random, 0, 4);
  return which < 2 ? random_matmul(random) : which < 4 ? random_conv(random) : random_other(random);
}

ReferenceBlocks random_blocks(Random& random) {
  return {.vectors = between(random, 1, 4),
          .rows = between(random, 2, 7),
          .depth = between(random, 1, 20),
          .chunk_rows = between(random, 1, 40),
          .least_work = 0};
}

// The whole answer: one row at a time, no panels, one thread.
constexpr ReferenceBlocks kOneRow{.rows = 1};

std::vector<Target> targets_here() {
  std::vector<Target> targets{host_target()};
  for (const char* other : {"llvm -mcpu=haswell", "llvm -mcpu=x86-64-v2"}) {
    const Result<Target> target = parse_target(other);
    if (target && runs_here(*target)) targets.push_back(*target);
  }
  return targets;
}

// The outputs that `program` computes from the given arguments.
Result<std::vector<std::vector<double>>> answers(const Program& program,
                                                 std::vector<std::vector<double>> args,
                                                 const Target& target) {
  RETURN_IF_ERROR(run_compiled(program, args, target, target.threads));
  std::vector<std::vector<double>> outputs;
  for (size_t i = 0; i < args.size(); ++i)
    if (is_result(program.args[i]->role)) outputs.push_back(std::move(args[i]));
  return outputs;
}

void expect_same_bits(const std::vector<std::vector<double>>& found,
                      const std::vector<std::vector<double>>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t a = 0; a < found.size(); ++a) {
    ASSERT_EQ(found[a].size(), expected[a].size());
    for (size_t i = 0; i < found[a].size(); ++i)
      ASSERT_EQ(std::bit_cast<uint64_t>(found[a][i]), std::bit_cast<uint64_t>(expected[a][i]))
          << "element " << i << " is " << found[a][i] << ", one row at a time " << expected[a][i];
  }
}

// What a Program is made of.
struct Parts {
  int panels = 0, waiting = 0, parallel = 0;
};
Parts parts_of(const Program& program) {
  Parts parts;
  visit(program.body, [&](const Stmt& s) {
    if (s->kind == StmtKind::kFor && s->loop == LoopKind::kParallel) ++parts.parallel;
    if (s->kind == StmtKind::kAllocate && s->buffer->name.find(".panel") != std::string::npos) ++parts.panels;
    if (s->kind != StmtKind::kStore || s->buffer->scope != MemoryScope::kRegister ||
        s->reduce != ReduceOp::kNone)
      return;
    if (s->value->kind == ExprKind::kLoad) ++parts.waiting;
  });
  return parts;
}

TEST(ReferenceBlocks, AnyBlocksAndThreadsGiveTheBitsOfOneRowAtATime) {
  Seeds seeds(/*fixed=*/1, /*rounds=*/120);
  Parts all;
  for (const uint32_t seed : seeds) {
    Random random(seed);
    const Workload workload = random_workload(random);
    const ReferenceBlocks blocks = random_blocks(random);
    const Target one = one_of(random, targets_here());
    Target many = one;
    many.threads = static_cast<int>(between(random, 1, 4));
    SCOPED_TRACE(str(workload.key(), ": vectors ", blocks.vectors, ", rows ", blocks.rows, ", depth ",
                     blocks.depth, ", chunks of ", blocks.chunk_rows, ", ", many.name()));
    const Program math = workload.compute();
    const Program whole = reference_program(math, kOneRow, one), cut = reference_program(math, blocks, many);
    const auto args = random_args(whole, seed);
    const auto expected = answers(whole, args, one), found = answers(cut, args, many);
    ASSERT_TRUE(expected) << expected.message();
    ASSERT_TRUE(found) << found.message();
    expect_same_bits(*found, *expected);
    const Parts parts = parts_of(cut);
    EXPECT_TRUE(many.threads > 1 || parts.parallel == 0) << to_text(cut);
    all.parallel += parts.parallel > 0 ? 1 : 0;
    all.panels += parts.panels > 0 ? 1 : 0;
    all.waiting += parts.waiting > 0 ? 1 : 0;
  }
  if (!seeds.all() || HasFailure()) return;
  EXPECT_GT(all.parallel, 60) << "of three quarters, all but those whose last dimension is 1";
  EXPECT_GT(all.panels, 30) << "most products have panels";
  EXPECT_GT(all.waiting, 20) << "many sums wait between two blocks";
}

// The interpreter, which runs parallel loops backwards, sees reads of what nobody wrote.
TEST(ReferenceBlocks, BlocksAreTheMathOfTheOracle) {
  for (const uint32_t seed : Seeds(/*fixed=*/1, /*rounds=*/25)) {
    Random random(seed);
    const Workload workload = random_workload(random);
    Target target = host_target();
    target.threads = static_cast<int>(between(random, 1, 3));
    SCOPED_TRACE(workload.key());
    const Program whole = reference_program(workload.compute(), kOneRow, host_target()),
                  cut = reference_program(workload.compute(), random_blocks(random), target);
    std::vector<std::vector<double>> expected = random_args(whole, seed), found = expected;
    const Status plain = interpret(whole, expected), in_blocks = interpret(cut, found);
    ASSERT_TRUE(plain) << plain.message();
    ASSERT_TRUE(in_blocks) << in_blocks.message() << "\n" << to_text(cut);
    expect_same_bits(found, expected);
  }
}

Program matmul(int64_t m, int64_t n, int64_t k) {
  MatmulWorkload w;
  w.m = m, w.n = n, w.k = k;
  return Workload(w).compute();
}

// What callers get, by the blocks of this host: remainders of rows, lanes and depth, and more threads than
// CPUs.
TEST(ReferenceBlocks, AnswersDoNotDependOnTheNumberOfThreads) {
  const Program math = matmul(203, 77, 300);
  Random random(3);
  std::vector<std::vector<float>> inputs;
  for (const auto& arg : random_args(math, 3))
    if (!arg.empty()) inputs.emplace_back(arg.begin(), arg.end());
  const auto one = reference_answer(math, inputs, 1);
  ASSERT_TRUE(one) << one.message();
  const Target host = host_target();
  const Program whole = reference_program(math, kOneRow, host);
  std::vector<std::vector<double>> args;
  for (const auto& input : inputs) args.emplace_back(input.begin(), input.end());
  args.emplace_back();
  ASSERT_GT(parts_of(reference_program(math, reference_blocks(host), host)).panels, 0) << "it is worth tiles";
  const auto expected = answers(whole, args, host);
  ASSERT_TRUE(expected) << expected.message();
  expect_same_bits(*one, *expected);
  for (const int threads : {2, 3, 5}) {
    const auto many = reference_answer(math, inputs, threads);
    ASSERT_TRUE(many) << many.message();
    expect_same_bits(*many, *expected);
  }
}

TEST(ReferenceBlocks, MuchWorkHasAThreadForEachCpuOfItsCallerAndLittleWorkHasOne) {
  const Program little = matmul(300, 300, 300), much = matmul(1000, 1000, 1000);
  EXPECT_EQ(reference_threads(little), 1);
  EXPECT_EQ(static_cast<size_t>(reference_threads(much)), cpus_of_this_thread().size());
  // A user's function has no loops that tell, and may have threads of its own.
  Program foreign;
  foreign.foreign = std::make_shared<const ForeignCode>();
  EXPECT_EQ(static_cast<size_t>(reference_threads(foreign)), cpus_of_this_thread().size());
  const OnCpus there({usable_cpus().front()});
  EXPECT_EQ(reference_threads(much), 1);
  EXPECT_EQ(reference_threads(foreign), 1);
}

TEST(ReferenceBlocks, TheSumsOfATileFitTheRegistersOfTheTarget) {
  for (const char* name : {"llvm -mcpu=haswell", "llvm -mcpu=skylake-avx512", "llvm -mcpu=x86-64-v2",
                           "llvm -mcpu=neoverse-n1 -mtriple=aarch64-linux-gnu"}) {
    const Result<Target> target = parse_target(name);
    ASSERT_TRUE(target) << target.message();
    const ReferenceBlocks blocks = reference_blocks(*target);
    EXPECT_LE(blocks.rows * blocks.vectors + blocks.vectors + 1, target->vector_registers()) << name;
    EXPECT_GE(blocks.rows * blocks.vectors, target->vector_registers() * 3 / 4)
        << name << ": most of them are used";
  }
}

}  // namespace
}  // namespace tuner
