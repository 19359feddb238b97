// Fission of lowered GPU kernels into CPU Programs, and what counts as a fault and what does not. Damaged
// kernels: emulator_mutation_test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler_core/codegen/compile.h"
#include "compiler_core/codegen/emulated_run.h"
#include "compiler_core/runtime/kernel.h"
#include "compiler_core/runtime/thread_pool.h"
#include "tests/compiler_core/emulator_kernels.h"

namespace tuner {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using namespace tuner::testing;

// One kernel of `threads` threads in one block over x[n] -> y[n], its body given.
struct Small {
  explicit Small(int64_t n, int64_t threads = 32, int64_t blocks = 1) {
    x = global("x", {n}, BufferRole::kInput);
    y = global("y", {n}, BufferRole::kOutput);
    k.name = "small";
    k.grid = {blocks, 1, 1};
    k.block = {threads, 1, 1};
    k.block_vars = {bx, nullptr, nullptr};
    k.thread_vars = {tx, nullptr, nullptr};
    k.params = {x, y};
  }
  Buffer add_shared(std::vector<int64_t> shape, const std::string& layout = "") {
    const Buffer b = shared("s", std::move(shape), layout);
    k.shared.push_back(b);
    k.shared_offsets.push_back(k.shared_bytes);
    k.shared_bytes += storage_elements(*b) * 4;
    return b;
  }
  GpuProgram program(Stmt body) const {
    GpuKernel kernel = k;
    kernel.body = std::move(body);
    return {.name = "small", .args = {x, y}, .workspace = {}, .kernels = {kernel}};
  }
  Expr t() const { return Expr(tx); }
  Expr global_thread() const { return Expr(bx) * Expr(k.block[0]) + t(); }

  GpuKernel k;
  Buffer x, y;
  Var bx = make_var("bx"), tx = make_var("tx");
};

EmulatedRun run(const GpuProgram& program, const EmulatorOptions& options = {}) {
  const Result<EmulatedRun> compiled = run_emulated(program, random_inputs(program), options);
  EXPECT_TRUE(compiled.is_ok()) << compiled.message();
  const Result<EmulatedRun> interpreted = interpret_emulated(program, random_inputs(program), options);
  EXPECT_TRUE(interpreted.is_ok()) << interpreted.message();
  if (!compiled || !interpreted) return {};
  EXPECT_EQ(compiled->faults, interpreted->faults);
  return *compiled;
}

TEST(Emulator, BarriersCutTheThreadLoopAndRegistersThatLiveAcrossGetADimension) {
  Small p(4, 4);
  const Buffer s = p.add_shared({4}), r = registers("r", {1});
  const Expr own = load(r, {Expr(0)});
  const GpuProgram program = p.program(
      make_allocate(r, make_seq({make_store(r, {Expr(0)}, load(p.x, {p.t()})), make_store(s, {p.t()}, own),
                                 barrier(), make_store(p.y, {p.t()}, own + load(s, {Expr(3) - p.t()}))})));
  const Result<EmulatedProgram> emulated = emulate(program, {.check = false, .reverse_threads = false});
  ASSERT_TRUE(emulated.is_ok()) << emulated.message();
  EXPECT_EQ("\n" + to_text(emulated->program.body), R"(
allocate s float32[4]
for bx in 0..1
  allocate r float32[4, 1]
  for tx in 0..4
    r[tx, 0] = x[tx]
    s[tx] = r[tx, 0]
  for tx in 0..4
    y[tx] = r[tx, 0] + s[3 - tx]
)");
  EXPECT_THAT(run(program).faults, IsEmpty());
}

TEST(Emulator, SerialLoopsAroundABarrierStayOutsideTheThreads) {
  Small p(8, 8);
  const Buffer s = p.add_shared({8});
  // Rotates x by one place three times.
  const GpuProgram program = p.program(
      make_seq({make_store(s, {p.t()}, load(p.x, {p.t()})), barrier(), for_each("i", 3, [&](const Expr&) {
                  return make_seq({make_store(p.y, {p.t()}, load(s, {floor_mod(p.t() + 1, 8)})), barrier(),
                                   make_store(s, {p.t()}, load(p.y, {p.t()})), barrier()});
                })}));
  const EmulatedRun r = run(program);
  EXPECT_THAT(r.faults, IsEmpty());  // a thread may store its own output again
  const std::vector<float> x = random_inputs(program)[0];
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(r.outputs[0][i], x[(i + 3) % 8]);
}

TEST(Emulator, ABarrierUnderAUniformGuardIsFine) {
  Small p(32, 32, 1);
  const Buffer s = p.add_shared({32});
  const Stmt copy = make_seq({make_store(s, {p.t()}, load(p.x, {p.t()})), barrier(),
                              make_store(p.y, {p.t()}, load(s, {Expr(31) - p.t()}))});
  EXPECT_THAT(run(p.program(make_if(Expr(p.bx) < Expr(1), copy))).faults, IsEmpty());
  const Result<EmulatedProgram> refused = emulate(p.program(make_if(p.t() < Expr(16), copy)));
  EXPECT_EQ(refused.status().code(), StatusCode::kInvalidConfig);
  EXPECT_THAT(refused.message(), HasSubstr("small: a barrier stands under `if (tx < 16)`"));
}

TEST(Emulator, ThreadsOfAGuardThatIsSharedByWholeWarpsMayShuffle) {
  for (const int64_t threads : {32, 40}) {
    Small p(64, 64);
    const Buffer r = registers("r", {1});
    const Expr own = load(r, {Expr(0)});
    const Stmt body =
        make_allocate(r, make_seq({make_store(r, {Expr(0)}, load(p.x, {p.t()})),
                                   make_if(p.t() < Expr(threads), intrinsic("warp_allreduce.sum.32", own)),
                                   make_store(p.y, {p.t()}, own)}));
    const EmulatedRun found = run(p.program(body));
    if (threads == 40) {
      EXPECT_THAT(found.faults,
                  ElementsAre(HasSubstr("small: divergent intrinsic, 1 time: warp_allreduce.sum.32 "
                                        "under `if (tx < 40)`: first in the warp of thread 32 of "
                                        "block 0, with 8 of its threads")));
      continue;
    }
    EXPECT_THAT(found.faults, IsEmpty());
    const std::vector<float> x = random_inputs(p.program(body))[0];
    float sum = 0;
    for (size_t i = 0; i < 32; ++i) sum += x[i];
    EXPECT_FLOAT_EQ(found.outputs[0][0], sum);
    EXPECT_EQ(found.outputs[0][40], x[40]);
  }
}

TEST(Emulator, LanesCountThreadsWithXFastest) {
  Small p(32, 4);
  p.k.block = {4, 8, 1};
  const Var ty = make_var("ty");
  p.k.thread_vars[1] = ty;
  const Buffer r = registers("r", {1});
  const Expr own = load(r, {Expr(0)}), thread = Expr(ty) * 4 + p.t();
  // Groups of 8 lanes are two rows of four threads.
  const GpuProgram program = p.program(
      make_allocate(r, make_seq({make_store(r, {Expr(0)}, load(p.x, {thread})),
                                 intrinsic("warp_allreduce.max.8", own), make_store(p.y, {thread}, own)})));
  const EmulatedRun found = run(program);
  const std::vector<float> x = random_inputs(program)[0];
  for (size_t i = 0; i < 32; ++i)
    EXPECT_EQ(found.outputs[0][i], *std::max_element(x.begin() + static_cast<std::ptrdiff_t>(i / 8 * 8),
                                                     x.begin() + static_cast<std::ptrdiff_t>(i / 8 * 8 + 8)));
}

TEST(Emulator, ABranchNotTakenIsNoAccess) {
  Small p(30, 32);
  const Expr inside = p.t() < Expr(30);
  const Stmt store = make_store(p.y, {p.t()}, select(p.t() >= Expr(1), load(p.x, {p.t() - 1}), 0));
  EXPECT_THAT(run(p.program(make_if(inside, store))).faults, IsEmpty());
}

TEST(Emulator, OutOfBoundsNamesDimensionIndexAndThreadAndTouchesNoMemory) {
  Small p(30, 16, 2);
  const EmulatedRun found =
      run(p.program(make_if(p.global_thread() < Expr(30),
                            make_store(p.y, {p.global_thread()}, load(p.x, {p.global_thread() + 1})))));
  EXPECT_THAT(found.faults,
              ElementsAre("small: out of bounds, 1 time: dimension 0 of x, 30 long, in x[bx*16 + tx + 1] in "
                          "y[bx*16 + tx] = x[bx*16 + tx + 1]: first index 30 in thread 13 of block 1"));
  EXPECT_EQ(found.outputs[0][29], 0);
}

TEST(Emulator, RacesNameBothThreads) {
  Small p(32);
  const Buffer s = p.add_shared({32});
  const GpuProgram program = p.program(make_seq(
      {make_store(s, {p.t()}, load(p.x, {p.t()})), make_store(p.y, {p.t()}, load(s, {bit_xor(p.t(), 1)}))}));
  const EmulatedRun found = run(program, {.reverse_threads = false});
  EXPECT_THAT(found.faults, Contains(HasSubstr("race, 16 times: s[xor(tx, 1)]")));
  EXPECT_THAT(found.faults,
              Contains(HasSubstr("first element [0], thread 1 of block 0, after thread 0 of block 0")));
}

// Whoever stores read the element himself, before or after the other: the race is with the other.
TEST(Emulator, AReaderBeforeTheStoringThreadReadIsARaceToo) {
  for (const int64_t storing : {0, 1})
    for (const bool reverse : {false, true}) {
      Small p(2, 2);
      const Buffer s = p.add_shared({2});
      const GpuProgram program =
          p.program(make_seq({make_store(s, {p.t()}, load(p.x, {p.t()})), barrier(),
                              make_seq({make_store(p.y, {p.t()}, load(s, {Expr(0)})),
                                        make_if(binary(BinaryOp::kEq, p.t(), storing),
                                                make_store(s, {Expr(0)}, float_imm(1)))})}));
      const EmulatedRun found = run(program, {.reverse_threads = reverse});
      EXPECT_THAT(found.faults, ElementsAre(HasSubstr("race, 1 time: "))) << storing << reverse;
    }
}

// Without a barrier behind the reads the next iteration's stores meet them.
TEST(Emulator, TheEndOfAnIterationMeetsTheNextOne) {
  for (const int64_t iterations : {1, 2}) {
    Small p(32);
    const Buffer s = p.add_shared({32});
    const GpuProgram program = p.program(for_each("k", iterations, [&](const Expr& k) {
      return make_seq({make_store(s, {p.t()}, load(p.x, {p.t()}) + cast(DType::kFloat32, k)), barrier(),
                       make_store(p.y, {p.t()}, load(s, {bit_xor(p.t(), 1)}))});
    }));
    EXPECT_EQ(run(program).faults.empty(), iterations == 1);
  }
}

// What happens most often stands first: a report may be cut.
TEST(Emulator, TheMostFrequentFaultStandsFirst) {
  Small p(32);
  const GpuProgram program = p.program(make_seq(
      {make_store(p.y, {p.t()}, load(p.x, {p.t() + 1})), make_store(p.y, {p.t()}, load(p.x, {p.t() + 5}))}));
  EXPECT_THAT(run(program).faults,
              ElementsAre(HasSubstr("out of bounds, 5 times"), HasSubstr("out of bounds, 1 time")));
}

TEST(Emulator, EveryBlockStartsWithNothingWritten) {
  Small p(64, 32, 2);
  const Buffer s = p.add_shared({32});
  // Only the first block fills the tile that both read.
  const Stmt body = make_seq({make_if(Expr(p.bx) < Expr(1), make_store(s, {p.t()}, load(p.x, {p.t()}))),
                              barrier(), make_store(p.y, {p.global_thread()}, load(s, {p.t()}))});
  EXPECT_THAT(run(p.program(body)).faults, ElementsAre(HasSubstr("uninitialised read, 32 times: s[tx]")));
}

TEST(Emulator, RegistersWrittenUnderAGuardAreWatched) {
  Small p(32);
  const Buffer r = registers("r", {2});
  const auto body = [&](int64_t written) {
    return make_allocate(r, make_seq({for_each("i", 2,
                                               [&](const Expr& i) {
                                                 return make_if(p.t() * 2 + i < Expr(written),
                                                                make_store(r, {i}, float_imm(1)));
                                               }),
                                      make_store(p.y, {p.t()}, load(r, {Expr(0)}) + load(r, {Expr(1)}))}));
  };
  EXPECT_THAT(run(p.program(body(64))).faults, IsEmpty());
  EXPECT_THAT(run(p.program(body(63))).faults, ElementsAre(HasSubstr("uninitialised read, 1 time: r[1]")));
}

TEST(Emulator, PaddedTilesAreAddressedThroughTheirLayout) {
  Small p(64, 64);
  const Buffer s = p.add_shared({8, 8}, "pad:1");
  const Expr row = floor_div(p.t(), 8), column = floor_mod(p.t(), 8);
  const GpuProgram program = p.program(make_seq({make_store(s, {row, column}, load(p.x, {p.t()})), barrier(),
                                                 make_store(p.y, {p.t()}, load(s, {column, row}))}));
  const EmulatedRun found = run(program);
  EXPECT_THAT(found.faults, IsEmpty());
  const std::vector<float> x = random_inputs(program)[0];
  for (size_t i = 0; i < 64; ++i) EXPECT_EQ(found.outputs[0][i], x[i % 8 * 8 + i / 8]);
}

// y = x in reverse, through workspace and a second kernel.
GpuProgram through_workspace(int64_t stored, bool in_one_kernel = false) {
  Small p(64, 32, 2);
  const Buffer w = make_buffer("w", DType::kFloat32, {64});
  Stmt first = make_if(p.global_thread() < Expr(stored),
                       make_store(w, {p.global_thread()}, load(p.x, {p.global_thread()})));
  Stmt second = make_store(p.y, {p.global_thread()}, load(w, {Expr(63) - p.global_thread()}));
  GpuKernel a = p.k, b = p.k;
  a.params = b.params = {p.x, p.y, w};
  a.body = in_one_kernel ? make_seq({first, second}) : first;
  b.name = "second";
  b.body = second;
  GpuProgram program{.name = "two", .args = {p.x, p.y}, .workspace = {w}, .kernels = {a}};
  if (!in_one_kernel) program.kernels.push_back(b);
  return program;
}

TEST(Emulator, KernelsRunInOrderAndWorkspaceIsWatched) {
  EXPECT_THAT(run(through_workspace(64)).faults, IsEmpty());
  EXPECT_THAT(run(through_workspace(60)).faults,
              ElementsAre(HasSubstr("second: uninitialised read, 4 times: w[63 - (bx*32 + tx)]")));
  // Threads of one launch do not see each other's global stores in any order.
  EXPECT_THAT(run(through_workspace(64, true)).faults, Contains(HasSubstr("race")));
}

TEST(Emulator, ASampleOfTheBlocksRunsTheLastOneAndTellsWhatItStored) {
  Small p(320, 32, 10);
  const GpuProgram program =
      p.program(make_store(p.y, {p.global_thread()}, load(p.x, {p.global_thread()}) * 2));
  const EmulatedRun found = run(program, {.sample_blocks = 3});
  EXPECT_THAT(found.faults, IsEmpty());
  ASSERT_EQ(found.written.size(), 1u);
  EXPECT_EQ(std::count(found.written[0].begin(), found.written[0].end(), 1), 3 * 32);
  EXPECT_EQ(found.written[0][319], 1);
  const std::vector<float> x = random_inputs(program)[0];
  for (size_t i = 0; i < 320; ++i) {
    if (found.written[0][i] != 0) {
      EXPECT_EQ(found.outputs[0][i], x[i] * 2);
    }
  }
  EXPECT_THAT(run_emulated(through_workspace(64), random_inputs(program), {.sample_blocks = 1}).message(),
              Not(IsEmpty()));
}

TEST(Emulator, WithoutChecksTheAnswersAreTheSameAndTheArtifactIsAnOrdinaryOne) {
  const GpuProgram program = MatmulKernel().program();
  const auto inputs = random_inputs(program);
  const Result<EmulatedRun> checked = run_emulated(program, inputs),
                            plain = run_emulated(program, inputs, {.check = false});
  ASSERT_TRUE(checked.is_ok() && plain.is_ok());
  EXPECT_EQ(checked->outputs, plain->outputs);
  EXPECT_THAT(plain->faults, IsEmpty());

  const Result<Artifact> artifact = compile_emulated(program, host_target());
  ASSERT_TRUE(artifact.is_ok()) << artifact.message();
  ASSERT_EQ(artifact->manifest.args.size(), 3u);
  const Result<Kernel> kernel = Kernel::load(*artifact);
  ASSERT_TRUE(kernel.is_ok()) << kernel.message();
  std::vector<AlignedBuffer> memory;
  std::vector<void*> args;
  for (size_t i = 0; i < 3; ++i) {
    memory.emplace_back(program.args[i]->bytes());
    args.push_back(memory.back().data());
    if (i < 2) std::copy(inputs[i].begin(), inputs[i].end(), memory.back().as<float>());
  }
  ThreadPool pool(1);
  const AlignedBuffer workspace(kernel->workspace_bytes(1));
  const tuner_runtime runtime = pool.runtime(workspace.data());
  ASSERT_TRUE(kernel->call(args.data(), runtime).is_ok());
  EXPECT_EQ(wrong_elements({memory[2].as<float>(), memory[2].as<float>() + program.args[2]->elements()},
                           matmul_answer({}, inputs)),
            0);
}

TEST(Emulator, RefusesWhatNoGpuWouldRunSayingWhere) {
  const auto message = [](const GpuProgram& program) {
    const Result<EmulatedProgram> e = emulate(program);
    EXPECT_EQ(e.status().code(), StatusCode::kInvalidConfig);
    return e.message();
  };
  Small p(32);
  const Buffer r = registers("r", {1});
  const Stmt copy = make_store(p.y, {p.t()}, load(p.x, {p.t()}));
  const auto reduced = [&](const std::string& name) {
    return make_allocate(
        r, make_seq({make_store(r, {Expr(0)}, float_imm(1)), intrinsic(name, load(r, {Expr(0)})), copy}));
  };
  EXPECT_THAT(message(p.program(reduced("no_such"))), HasSubstr("intrinsic no_such is not known"));
  Small partial(48, 48);
  EXPECT_THAT(message(partial.program(
                  make_allocate(r, make_seq({make_store(r, {Expr(0)}, float_imm(1)),
                                             intrinsic("warp_allreduce.sum.32", load(r, {Expr(0)}))})))),
              HasSubstr("the block has 48"));
  EXPECT_THAT(message(p.program(make_store(r, {Expr(0)}, float_imm(1)))),
              HasSubstr("r (register) is neither"));
  EXPECT_THAT(message(p.program(nullptr)), HasSubstr("nothing to run"));
  EXPECT_THAT(message(p.program(make_store(p.x, {p.t()}, float_imm(1)))),
              HasSubstr("stores to x, which is an input"));
  Small large(32, 2048);
  EXPECT_THAT(message(large.program(copy)), HasSubstr("block dimension 0 is 2048"));
  GpuProgram misplaced = p.program(copy);
  misplaced.kernels[0].shared = {make_buffer("t", DType::kFloat32, {4}, MemoryScope::kShared)};
  misplaced.kernels[0].shared_offsets = {};
  EXPECT_THAT(message(misplaced), HasSubstr("1 shared buffers have 0 places"));
  GpuProgram unknown = p.program(copy);
  unknown.kernels[0].params.pop_back();
  EXPECT_THAT(message(unknown), HasSubstr("y (global) is neither a parameter"));
  EXPECT_THAT(run_emulated(p.program(copy), {}).message(),
              HasSubstr("x: expected 32 elements, found no data"));
}

}  // namespace
}  // namespace tuner
