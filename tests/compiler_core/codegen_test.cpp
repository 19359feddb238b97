// Machine code from Programs built by hand, compared with the oracle element by element.
#include "compiler_core/codegen/cpu_backend.h"
#include "compiler_core/codegen/library.h"
#include "compiler_core/ir/prefetch.h"
#include "tests/compiler_core/kernel_testing.h"
#include "tests/random_seed.h"

#include <gmock/gmock.h>

namespace tuner {
namespace {

using namespace tuner::testing;
using ::testing::HasSubstr;

constexpr LoopKind kVector = LoopKind::kVectorized, kUnroll = LoopKind::kUnrolled,
                   kParallel = LoopKind::kParallel;

// y[i] = x[i] * 2 + 1
Program doubling(int64_t n, LoopKind kind) {
  const Buffer x = input("x", {n}), y = output("y", {n});
  return {"doubling", {x, y}, loop("i", n, kind, [&](Expr i) {
            return make_store(y, {i}, load(x, {i}) * 2 + 1);
          })};
}

// C = A B with an mr x nr register tile; guards where tiles do not divide.
Program tiled_matmul(int64_t m, int64_t n, int64_t k, int64_t mr, int64_t nr, bool parallel) {
  const Buffer a = input("A", {m, k}), b = input("B", {k, n}), c = output("C", {m, n});
  const Buffer acc = scratch("acc", {mr, nr}, MemoryScope::kRegister);
  const auto tile = [&](auto body) {
    return loop("i", mr, kUnroll,
                [&](Expr i) { return loop("j", nr, kVector, [&](Expr j) { return body(i, j); }); });
  };
  Stmt body = loop("io", (m + mr - 1) / mr, parallel ? kParallel : LoopKind::kSerial, [&](Expr io) {
    return loop("jo", (n + nr - 1) / nr, [&](Expr jo) {
      const auto guarded = [&](Expr i, Expr j, Stmt s) {
        return make_if(io * mr + i < m && jo * nr + j < n, s);
      };
      Stmt init = tile([&](Expr i, Expr j) { return make_store(acc, {i, j}, float_imm(0)); });
      Stmt update = loop("kk", k, [&](Expr kk) {
        return tile([&](Expr i, Expr j) {
          return guarded(i, j,
                         make_reduce(acc, {i, j}, ReduceOp::kSum, Expr(),
                                     load(a, {io * mr + i, kk}) * load(b, {kk, jo * nr + j}), Expr()));
        });
      });
      Stmt copy = tile([&](Expr i, Expr j) {
        return guarded(i, j, make_store(c, {io * mr + i, jo * nr + j}, load(acc, {i, j})));
      });
      return make_allocate(acc, make_seq({init, update, copy}));
    });
  });
  return {"matmul", {a, b, c}, body};
}

TEST(Codegen, SerialAndVectorLoopsOfAnyLength) {
  for (const LoopKind kind : {LoopKind::kSerial, kVector, kUnroll})
    for (const int64_t n : {1, 2, 3, 7, 16, 17, 33, 100}) EXPECT_TRUE(matches_oracle(doubling(n, kind))) << n;
}

// A link in this process resets LLVM's options; what is compiled afterwards is compiled alike.
TEST(Codegen, TheNextKernelOfAProcessIsCompiledAsTheFirst) {
  for (const char* const name :
       {"llvm -mcpu=cortex-a72 -mtriple=aarch64-linux-gnu", "llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64-v4"}) {
    const Target target = parse_target(name).value();
    const Program program = tiled_matmul(37, 29, 41, 4, 8, /*parallel=*/false);
    const Result<Artifact> first = compile(program, target);
    ASSERT_TRUE(first) << first.message();
    for (int again = 0; again < 2; ++again) {
      const Result<Artifact> next = compile(program, target);
      ASSERT_TRUE(next) << next.message();
      EXPECT_TRUE(next->binary == first->binary) << name << ", compilation " << again + 2;
    }
  }
}

// The loader hands out what it has under a name already: each kernel needs its own.
TEST(Codegen, KernelsLoadedAtTheSameTimeStayApart) {
  const auto times = [](int64_t factor) {
    const Buffer x = input("x", {1}), y = output("y", {1});
    return Program{"times", {x, y}, make_store(y, {0}, load(x, {0}) * factor)};
  };
  std::vector<Kernel> kernels;
  for (const int64_t factor : {2, 3, 5}) {
    const Result<Artifact> artifact = compile(times(factor), host_target());
    ASSERT_TRUE(artifact.is_ok()) << artifact.message();
    Result<Kernel> kernel = Kernel::load(*artifact);
    ASSERT_TRUE(kernel.is_ok()) << kernel.message();
    kernels.push_back(*std::move(kernel));
  }
  ThreadPool pool(1);
  const tuner_runtime runtime = pool.runtime(nullptr);
  std::vector<float> answers;
  for (const Kernel& kernel : kernels) {
    const AlignedBuffer x(64), y(64);
    x.as<float>()[0] = 7;
    void* const args[] = {x.data(), y.data()};
    ASSERT_TRUE(kernel.call(args, runtime).is_ok());
    answers.push_back(y.as<float>()[0]);
  }
  EXPECT_THAT(answers, ::testing::ElementsAre(14, 21, 35));
}

TEST(Codegen, RegisterTileMatmul) {
  EXPECT_TRUE(matches_oracle(tiled_matmul(16, 64, 20, 8, 32, false)));
  EXPECT_TRUE(matches_oracle(tiled_matmul(4, 8, 5, 4, 8, false)));
}

TEST(Codegen, RegisterTileMatmulWithTailsInBothDirections) {
  EXPECT_TRUE(matches_oracle(tiled_matmul(17, 37, 11, 4, 16, false)));
  EXPECT_TRUE(matches_oracle(tiled_matmul(3, 5, 2, 4, 16, false)));
  EXPECT_TRUE(matches_oracle(tiled_matmul(1, 1, 1, 4, 16, false)));
}

TEST(Codegen, ParallelLoopOnOneTwoAndThreeThreads) {
  for (const int threads : {1, 2, 3})
    EXPECT_TRUE(matches_oracle(tiled_matmul(29, 40, 9, 4, 16, true), threads));
}

TEST(Codegen, OlderProcessorsGetTheSameAnswers) {
  for (const char* name : {"llvm -mcpu=x86-64 -threads=1", "llvm -mcpu=haswell -threads=1"}) {
    const Result<Target> target = parse_target(name);
    ASSERT_TRUE(target) << target.message();
    EXPECT_TRUE(matches_oracle(tiled_matmul(9, 19, 7, 4, 16, false), 1, 2e-5, 1, *target)) << name;
  }
}

// y[i, j] = x[j, i]: vector store, gathered load; y[j, i] = x[i, j]: contiguous load, scattered store.
TEST(Codegen, GatherAndScatter) {
  const Buffer x = input("x", {5, 19}), y = output("y", {19, 5});
  const Program gather{
      "gather", {x, y}, loop("i", 19, [&](Expr i) {
        return loop("j", 5, kVector, [&](Expr j) { return make_store(y, {i, j}, load(x, {j, i})); });
      })};
  EXPECT_TRUE(matches_oracle(gather));
  const Program scatter{
      "scatter", {x, y}, loop("i", 5, [&](Expr i) {
        return loop("j", 19, kVector, [&](Expr j) { return make_store(y, {j, i}, load(x, {i, j})); });
      })};
  EXPECT_TRUE(matches_oracle(scatter));
}

// y[i] = x[n * i + 1] where the condition holds, 7 elsewhere; x ends with the last element that is read.
Program every_nth(int64_t n, int64_t count, int64_t begin, int64_t end) {
  const Buffer x = input("x", {n * (count - 1) + 2}), y = output("y", {count});
  return {"nth", {x, y}, loop("i", count, kVector, [&](Expr i) {
            return make_store(y, {i}, select(i >= begin && i < end, load(x, {i * n + 1}), float_imm(7)));
          })};
}

TEST(Codegen, EveryNthElementIsShuffledAndNotGathered) {
  for (const int64_t n : {2, 3, 4, 5})
    for (const int64_t count : {1, 2, 5, 8, 16, 17, 40})
      for (const auto& [begin, end] :
           std::vector<std::pair<int64_t, int64_t>>{{0, 40}, {1, 40}, {3, 11}, {9, 9}})
        for (const char* name : {"llvm -mcpu=x86-64 -threads=1", "llvm -mcpu=haswell -threads=1", "host"}) {
          const Target target = name == std::string_view("host") ? host_target() : parse_target(name).value();
          ASSERT_TRUE(matches_oracle(every_nth(n, count, begin, end), 1, 0, 1, target)) << n << " " << count;
        }
  const Target wide = parse_target("llvm -mcpu=x86-64-v4 -threads=1").value();
  EXPECT_THAT(emit_asm(every_nth(2, 40, 1, 40), wide).value(), ::testing::Not(HasSubstr("gather")));
}

// y[i] op= x[i, l] over l in 0..n, of which the first `live` run: lanes that do not must not count.
Program lane_reduction(ReduceOp op, int64_t n, int64_t live) {
  const Buffer x = input("x", {3, n}), y = output("y", {3});
  const Var l = make_var("l");
  return {"lanes", {x, y}, loop("i", 3, [&](Expr i) {
            const Stmt update = make_reduce(y, {i}, op, Expr(), load(x, {i, l}) + float_imm(2), Expr());
            return make_seq({make_store(y, {i}, float_imm(op == ReduceOp::kMin ? 9 : -9)),
                             make_for(l, n, make_if(Expr(l) < live, update), AxisKind::kReduce, kVector)});
          })};
}

TEST(Codegen, LanesOfAVectorizedReductionAreCombined) {
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kMin})
    for (const int64_t n : {1, 2, 3, 8, 15, 16, 17, 50, 128})
      for (const int64_t live : {n, (n + 1) / 2})
        for (const char* name : {"llvm -mcpu=x86-64 -threads=1", "llvm -mcpu=haswell -threads=1", "host"}) {
          const Target target = name == std::string_view("host") ? host_target() : parse_target(name).value();
          ASSERT_TRUE(matches_oracle(lane_reduction(op, n, live), 1, 2e-5, 1, target)) << n << " " << live;
        }
}

// A fused vector axis: neither contiguous nor of one stride.
TEST(Codegen, LanesMayCrossRows) {
  const Buffer x = input("x", {7, 9}), y = output("y", {5, 6});
  const Program p{"crossing", {x, y}, loop("f", 30, kVector, [&](Expr f) {
                    return make_store(y, {floor_div(f, 6), floor_mod(f, 6)},
                                      load(x, {floor_div(f, 6) + 1, floor_mod(f, 6) + 2}));
                  })};
  EXPECT_TRUE(matches_oracle(p));
}

// Zero padding: a load that is out of bounds in the branch not taken. Rows before the buffer lie in its page
// or fault.
Program padding(LoopKind kind) {
  const Buffer x = input("x", {3, 5}), y = output("y", {7, 11});
  return {"padding", {x, y}, loop("h", 7, [&](Expr h) {
            return loop("w", 11, kind, [&](Expr w) {
              const Expr inside = h >= 2 && h < 5 && w >= 3 && w < 8;
              return make_store(y, {h, w}, select(inside, load(x, {h - 2, w - 3}), float_imm(0)));
            });
          })};
}

TEST(Codegen, SelectKeepsLoadsInBounds) {
  EXPECT_TRUE(matches_oracle(padding(LoopKind::kSerial)));
  EXPECT_TRUE(matches_oracle(padding(kVector)));
}

TEST(Codegen, VectorGuardMasksLoadsAndStores) {
  const Buffer x = input("x", {21}), y = output("y", {21});
  const Program p{"tail", {x, y}, loop("o", 3, [&](Expr o) {
                    return loop("i", 8, kVector, [&](Expr i) {
                      const Expr at = o * 8 + i;
                      return make_if(at < 21, make_store(y, {at}, load(x, {at}) * 3));
                    });
                  })};
  EXPECT_TRUE(matches_oracle(p));
}

// Whole vectors and shuffles in place of gathers, up to the last element of the buffer and no further.
TEST(Codegen, EverySecondElement) {
  for (const int64_t n : {1, 2, 5, 8, 9, 14, 16, 28, 33}) {
    const Buffer x = input("x", {3, 2 * n - 1}), y = output("y", {3, n});
    const Program p{
        "second", {x, y}, loop("r", 3, [&](Expr r) {
          return loop("i", n, kVector, [&](Expr i) { return make_store(y, {r, i}, load(x, {r, i * 2})); });
        })};
    EXPECT_TRUE(matches_oracle(p)) << n;
  }
}

TEST(Codegen, PrefetchChangesNothing) {
  const Buffer x = input("x", {9}), y = output("y", {9});
  const Program p{
      "ahead", {x, y}, loop("i", 9, [&](Expr i) {
        return make_seq({make_prefetch(load(x, {i + 1000})), make_store(y, {i}, load(x, {i}) * 2)});
      })};
  EXPECT_TRUE(matches_oracle(p));
}

// Guards whose bound is not a whole block: the mask differs with the row.
TEST(Codegen, TriangularGuard) {
  const Buffer x = input("x", {9, 9}), y = output("y", {9, 9});
  const Program p{
      "triangle", {x, y}, loop("i", 9, [&](Expr i) {
        return loop("j", 9, kVector, [&](Expr j) {
          return make_if(j <= i, make_store(y, {i, j}, load(x, {i, j})), make_store(y, {i, j}, float_imm(0)));
        });
      })};
  EXPECT_TRUE(matches_oracle(p));
}

// Workspace of the whole call feeds a parallel loop that has workspace of its own in each thread.
TEST(Codegen, SharedAndPerThreadWorkspace) {
  const Buffer x = input("x", {13, 10}), y = output("y", {13, 10}), twice = scratch("twice", {13, 10}),
               row = scratch("row", {10});
  Stmt fill = loop("i", 13, [&](Expr i) {
    return loop("j", 10, kVector, [&](Expr j) { return make_store(twice, {i, j}, load(x, {i, j}) * 2); });
  });
  Stmt use = loop("i", 13, kParallel, [&](Expr i) {
    return make_allocate(row, make_seq({loop("j", 10,
                                             [&](Expr j) {
                                               return make_store(row, {j}, load(twice, {i, 9 - j}));
                                             }),
                                        loop("j", 10, [&](Expr j) {
                                          return make_store(y, {i, j}, load(row, {j}) + 1);
                                        })}));
  });
  const Program p{"workspace", {x, y}, make_allocate(twice, make_seq({fill, use}))};
  const Result<Artifact> artifact = compile(p, host_target());
  ASSERT_TRUE(artifact) << artifact.message();
  EXPECT_EQ(artifact->manifest.workspace_bytes, 576 + 64);  // 13 * 10 floats in whole lines, and one
  EXPECT_EQ(artifact->manifest.workspace_bytes_per_thread, 64 + 64);  // 10 floats
  for (const int threads : {1, 2, 4}) EXPECT_TRUE(matches_oracle(p, threads));
}

// A parallel loop inside a serial one sees the serial variable.
TEST(Codegen, ParallelInsideSerial) {
  const Buffer x = input("x", {3, 8}), y = output("y", {3, 8});
  const Program p{
      "nested", {x, y}, loop("s", 3, [&](Expr s) {
        return loop("p", 8, kParallel, [&](Expr i) { return make_store(y, {s, i}, load(x, {s, i}) * 2); });
      })};
  for (const int threads : {1, 2}) EXPECT_TRUE(matches_oracle(p, threads));
}

TEST(Codegen, ReductionsWithTheirInitialisationInside) {
  const Buffer x = input("x", {6, 15});
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kMin}) {
    const Buffer y = output("y", {6});
    const double start = op == ReduceOp::kSum ? 0 : op == ReduceOp::kMax ? -INFINITY : INFINITY;
    const Var k = make_var("k");
    const Program p{"reduce", {x, y}, loop("i", 6, [&](Expr i) {
                      return make_for(k, 15,
                                      make_reduce(y, {i}, op, float_imm(start), load(x, {i, Expr(k)}),
                                                  binary(BinaryOp::kEq, Expr(k), 0)),
                                      AxisKind::kReduce);
                    })};
    EXPECT_TRUE(matches_oracle(p));
  }
}

// float32 expansions against the C library, through many magnitudes; float64 is the C library.
class CodegenMath : public ::testing::TestWithParam<UnaryOp> {};

TEST_P(CodegenMath, IsWithinAFewUlpOfTheLibrary) {
  const UnaryOp op = GetParam();
  constexpr int64_t kN = 4096;
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    const Buffer x = input("x", {kN}, dtype), y = output("y", {kN}, dtype);
    const Program p{"math", {x, y}, loop("o", kN / 64, [&](Expr o) {
                      return loop("i", 64, kVector, [&](Expr i) {
                        return make_store(y, {o * 64 + i}, unary(op, load(x, {o * 64 + i})));
                      });
                    })};
    std::vector<std::vector<double>> args(2);
    for (int64_t i = 0; i < kN; ++i) {
      const double t = static_cast<double>(i) / kN * 2 - 1;
      double v = t * std::exp2((i % 13) - 5);  // magnitudes 2^-5 .. 2^7
      if (op == UnaryOp::kExp || op == UnaryOp::kSinh || op == UnaryOp::kCosh) v = t * 87;
      if (op == UnaryOp::kAsin || op == UnaryOp::kAcos || op == UnaryOp::kAtanh) v = t * 0.99;
      if (op == UnaryOp::kAcosh) v = std::fabs(v) + 1;
      if (op == UnaryOp::kLog || op == UnaryOp::kSqrt || op == UnaryOp::kRsqrt) v = std::fabs(v) + 1e-6;
      args[0].push_back(static_cast<float>(v));
    }
    std::vector<std::vector<double>> expected = args;
    ASSERT_TRUE(interpret(p, expected));
    const Status ran = run_compiled(p, args, host_target(), 1);
    ASSERT_TRUE(ran) << ran.message();
    const double ulps = dtype == DType::kFloat32 ? 4 * 1.2e-7 : 4 * 2.3e-16;
    for (size_t i = 0; i < kN; ++i)
      ASSERT_LE(std::fabs(args[1][i] - expected[1][i]), ulps * std::max(std::fabs(expected[1][i]), 1e-6))
          << "x = " << args[0][i] << ", found " << args[1][i] << ", library " << expected[1][i];
  }
}
INSTANTIATE_TEST_SUITE_P(All, CodegenMath,
                         ::testing::Values(UnaryOp::kExp, UnaryOp::kLog, UnaryOp::kTanh, UnaryOp::kErf,
                                           UnaryOp::kSqrt, UnaryOp::kRsqrt, UnaryOp::kFloor, UnaryOp::kAbs,
                                           UnaryOp::kRound, UnaryOp::kTf32, UnaryOp::kSin, UnaryOp::kCos,
                                           UnaryOp::kTan, UnaryOp::kAsin, UnaryOp::kAcos, UnaryOp::kAtan,
                                           UnaryOp::kSinh, UnaryOp::kCosh, UnaryOp::kAsinh, UnaryOp::kAcosh,
                                           UnaryOp::kAtanh));

// Data may hold any divisor: the kernel does not trap, lanes beyond the end included.
TEST(Codegen, IntegersAreDividedByWhateverDataHold) {
  const auto divide = [](DType dtype, BinaryOp op, const std::vector<double>& a,
                         const std::vector<double>& b) {
    const auto n = static_cast<int64_t>(a.size());
    const Buffer x = make_buffer("x", dtype, {n}, MemoryScope::kGlobal, BufferRole::kInput);
    const Buffer y = make_buffer("y", dtype, {n}, MemoryScope::kGlobal, BufferRole::kInput);
    const Buffer q = make_buffer("q", dtype, {n}, MemoryScope::kGlobal, BufferRole::kOutput);
    const Var block = make_var("block"), lane = make_var("lane");
    const Expr i = Expr(block) * Expr(4) + Expr(lane);
    const Stmt store = make_store(q, {i}, binary(op, load(x, {i}), load(y, {i})));
    const Stmt lanes =
        make_for(lane, 4, make_if(i < Expr(n), store), AxisKind::kSpatial, LoopKind::kVectorized);
    std::vector<std::vector<double>> args{a, b, {}};
    const Status ran =
        run_compiled({"divide", {x, y, q}, make_for(block, (n + 3) / 4, lanes)}, args, host_target(), 1);
    EXPECT_TRUE(ran) << ran.message();
    return args[2];
  };
  using ::testing::ElementsAre;
  const std::vector<double> a{7, -7, 7, -7, 5, INT32_MIN}, b{2, 2, -2, -2, 0, -1};
  EXPECT_THAT(divide(DType::kInt32, BinaryOp::kFloorDiv, a, b), ElementsAre(3, -4, -4, 3, 5, INT32_MIN));
  EXPECT_THAT(divide(DType::kInt32, BinaryOp::kFloorMod, a, b), ElementsAre(1, 1, -1, -1, 0, 0));
  EXPECT_THAT(divide(DType::kInt64, BinaryOp::kFloorDiv, {-9, 9, 4}, {4, -1, 0}), ElementsAre(-3, -9, 4));
  EXPECT_THAT(divide(DType::kUInt8, BinaryOp::kFloorDiv, {200, 255, 9}, {3, 255, 0}), ElementsAre(66, 1, 9));
  EXPECT_THAT(divide(DType::kUInt8, BinaryOp::kFloorMod, {200, 255, 9}, {3, 254, 0}), ElementsAre(2, 1, 0));
}

TEST(Codegen, PowersAreTheLibrarys) {
  constexpr int64_t kN = 24;
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    const Buffer x = make_buffer("x", dtype, {kN}, MemoryScope::kGlobal, BufferRole::kInput);
    const Buffer e = make_buffer("e", dtype, {kN}, MemoryScope::kGlobal, BufferRole::kInput);
    const Buffer y = make_buffer("y", dtype, {kN}, MemoryScope::kGlobal, BufferRole::kOutput);
    const Var i = make_var("i");
    const Stmt store = make_store(y, {i}, binary(BinaryOp::kPow, load(x, {i}), load(e, {i})));
    const Program p{"power", {x, e, y}, make_for(i, kN, store, AxisKind::kSpatial, LoopKind::kVectorized)};
    std::vector<std::vector<double>> args(3);
    for (int64_t k = 0; k < kN; ++k) {
      args[0].push_back(static_cast<double>(k - 4) / 2);
      args[1].push_back(static_cast<double>(k % 5) - (k < 4 ? 2 : 1.5));
    }
    const std::vector<std::vector<double>> given = args;
    const Status ran = run_compiled(p, args, host_target(), 1);
    ASSERT_TRUE(ran) << ran.message();
    for (size_t k = 0; k < kN; ++k) {
      const double expected = std::pow(given[0][k], given[1][k]);
      if (std::isfinite(expected))
        EXPECT_NEAR(args[2][k], expected, std::fabs(expected) * 1.2e-7)
            << given[0][k] << " to the " << given[1][k];
      else
        EXPECT_EQ(args[2][k], expected);
    }
  }
}

// Where results leave the normal range, and far below, as masks of attention put numbers: against the C
// library.
TEST(Codegen, ExponentialsBelowTheNormalRange) {
  const std::vector<double> numbers{0,      88.7,   89.5,   1e30, INFINITY, -86,   -87.5,     -90,
                                    -103.2, -103.9, -104.5, -150, -1e4,     -3e38, -INFINITY, NAN};
  for (const int64_t lanes : {1, 4, 8, 16}) {
    const auto count = static_cast<int64_t>(numbers.size());
    const Buffer x = input("x", {count}), y = output("y", {count});
    const Program p{"exponentials", {x, y}, loop("o", count / lanes, [&](Expr o) {
                      return loop("i", lanes, kVector, [&](Expr i) {
                        return make_store(y, {o * lanes + i}, unary(UnaryOp::kExp, load(x, {o * lanes + i})));
                      });
                    })};
    std::vector<std::vector<double>> args{numbers, {}};
    const Status ran = run_compiled(p, args, host_target(), 1);
    ASSERT_TRUE(ran) << ran.message();
    for (size_t k = 0; k < numbers.size(); ++k) {
      SCOPED_TRACE(str("e to the ", numbers[k], " in ", lanes, " lanes"));
      const float expected = std::exp(static_cast<float>(numbers[k]));
      constexpr double kStepBelow = 0x1p-149;
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(args[1][k]));
      } else if (std::isinf(expected)) {
        EXPECT_EQ(args[1][k], INFINITY);
      } else {
        EXPECT_NEAR(args[1][k], double{expected}, double{expected} * 4 * 1.2e-7 + kStepBelow);
      }
    }
  }
}

// Numbers divided by one that is known: to the last bit as the CPU divides.
TEST(Codegen, QuotientsByAConstantAreTheNearestNumbers) {
  constexpr int64_t kN = 4096;
  std::mt19937 random(first_seed(11));
  for (const float divisor :
       {3.0F, 0.031372549F, -7.3e-5F, 1.41421356F, 255.0F, 8.0F, 0x1.fffffep0F, 1e-38F, 3e38F}) {
    const Buffer x = input("x", {kN}), y = output("y", {kN});
    const Program p{"quotients", {x, y}, loop("o", kN / 16, [&](Expr o) {
                      return loop("i", 16, kVector, [&](Expr i) {
                        const Expr quotient = load(x, {o * 16 + i}) / float_imm(double{divisor});
                        return make_store(y, {o * 16 + i}, quotient);
                      });
                    })};
    std::vector<std::vector<double>> args{{0.0, -0.0, INFINITY, -INFINITY, NAN, 3.4e38, -1e-30}, {}};
    std::uniform_real_distribution<float> digits(-2, 2), powers(-90, 90);
    while (args[0].size() < static_cast<size_t>(kN))
      args[0].push_back(digits(random) * std::exp2(powers(random)));
    const Status ran = run_compiled(p, args, host_target(), 1);
    ASSERT_TRUE(ran) << ran.message();
    for (size_t k = 0; k < args[0].size(); ++k) {
      const float expected = static_cast<float>(args[0][k]) / divisor, found = static_cast<float>(args[1][k]);
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(found));
        continue;
      }
      // Below the normal range one step is allowed.
      const double allowed = std::fabs(expected) < 0x1p-100F ? 0x1p-149 : 0;
      ASSERT_LE(expected == found ? 0 : std::fabs(double{expected} - double{found}), allowed)
          << args[0][k] << " / " << divisor << ": found " << found << ", expected " << expected;
      ASSERT_EQ(std::signbit(expected), std::signbit(found)) << args[0][k] << " / " << divisor;
    }
  }
}

TEST(Codegen, MathAtTheEdges) {
  const auto at = [](UnaryOp op, double v) {
    const Buffer x = input("x", {1}), y = output("y", {1});
    const Program p{"edge", {x, y}, make_store(y, {0}, unary(op, load(x, {0})))};
    std::vector<std::vector<double>> args{{v}, {}};
    const Status ran = run_compiled(p, args, host_target(), 1);
    EXPECT_TRUE(ran) << ran.message();
    return args[1].empty() ? NAN : args[1][0];
  };
  EXPECT_EQ(at(UnaryOp::kExp, 1000), INFINITY);
  EXPECT_EQ(at(UnaryOp::kExp, -1000), 0);
  EXPECT_TRUE(std::isnan(at(UnaryOp::kExp, NAN)));
  EXPECT_EQ(at(UnaryOp::kLog, 0), -INFINITY);
  EXPECT_EQ(at(UnaryOp::kLog, INFINITY), INFINITY);
  EXPECT_TRUE(std::isnan(at(UnaryOp::kLog, -1)));
  EXPECT_EQ(at(UnaryOp::kTanh, 1000), 1);
  EXPECT_EQ(at(UnaryOp::kTanh, -1000), -1);
  EXPECT_EQ(at(UnaryOp::kErf, 100), 1);
  EXPECT_EQ(at(UnaryOp::kErf, -100), -1);
  EXPECT_TRUE(std::isnan(at(UnaryOp::kErf, NAN)));
  // Towards zero, to 10 bits of mantissa.
  EXPECT_EQ(at(UnaryOp::kTf32, 1 + 0x1p-10 + 0x1p-11 + 0x1p-23), 1 + 0x1p-10);
  EXPECT_EQ(at(UnaryOp::kTf32, -1 - 0x1p-11 - 0x1p-23), -1);
  EXPECT_EQ(at(UnaryOp::kTf32, 0x1.fffffep127), 0x1.ffcp127);
  EXPECT_EQ(at(UnaryOp::kTf32, 0x1.2p-134), 0x1p-134);  // below the normal range, where steps are equal
  EXPECT_EQ(at(UnaryOp::kTf32, -INFINITY), -INFINITY);
  EXPECT_TRUE(std::isnan(at(UnaryOp::kTf32, NAN)));
}

// y[i, j, k] = x[(i*3 + j) / 2, k]: an index that changes in the loops around is not computed in the
// innermost one.
TEST(Codegen, AddressesAreComputedInTheLoopWhereTheyChange) {
  const Buffer x = input("x", {8, 5}), y = output("y", {5, 3, 5});
  const auto row = [&](Expr i, Expr j) {
    return loop("k", 5, [&](Expr k) {
      return make_store(y, {i, j, k}, load(x, {floor_div(i * 3 + j, 2), k}));
    });
  };
  const Program p{
      "rows", {x, y}, loop("i", 5, [&](Expr i) { return loop("j", 3, [&](Expr j) { return row(i, j); }); })};
  EXPECT_TRUE(matches_oracle(p));
  const Result<std::string> llvm = emit_llvm(p, host_target(), {.as_written = true});
  ASSERT_TRUE(llvm.is_ok()) << llvm.message();
  const size_t division = llvm->find(" udiv "), innermost = llvm->find("\nk:");
  ASSERT_NE(division, std::string::npos) << *llvm;
  ASSERT_NE(innermost, std::string::npos) << *llvm;
  EXPECT_LT(division, innermost) << *llvm;
  EXPECT_EQ(llvm->find(" mul ", innermost), std::string::npos) << llvm->substr(innermost);
}

// y[i] = x[(i*2 + 1) / 3, i, k]: what moves along with the innermost loop, and what is made anew in each
// iteration of it.
TEST(Codegen, AddressesOfOneLoopInTwoTerms) {
  const Buffer x = input("x", {8, 11, 3}), y = output("y", {3, 11});
  for (const LoopKind kind : {LoopKind::kSerial, kVector}) {
    const Program p{"terms", {x, y}, loop("i", 11, [&](Expr i) {
                      return loop("k", 3, kind, [&](Expr k) {
                        return make_store(y, {k, i}, load(x, {floor_div(i * 2 + 1, 3), i, k}));
                      });
                    })};
    EXPECT_TRUE(matches_oracle(p));
    const Program q{"terms", {x, y}, loop("k", 3, [&](Expr k) {
                      return loop("i", 11, [&](Expr i) {
                        return make_store(y, {k, i}, load(x, {floor_div(i * 2 + 1, 3), i, k}));
                      });
                    })};
    EXPECT_TRUE(matches_oracle(q));
  }
}

// Lanes whose places are known one by one: windows of three over a row, and the row's ends under a condition.
// Loaded from the first to the last element that a lane asks for, and no further.
Program windows(DType dtype, int64_t pixels, int64_t step, int64_t left) {
  const int64_t width = (pixels - 1) * step + 3 - 2 * left;
  const Buffer x = input("x", {3, width}, dtype), y = output("y", {3, pixels * 4}, dtype);
  return {
      "windows", {x, y}, loop("row", 3, [&](Expr row) {
        return loop("l", pixels * 4, kVector, [&](Expr l) {
          const Expr tap = floor_mod(l, 4), at = floor_div(l, 4) * step + tap - left;
          const Expr zero = is_float(dtype) ? float_imm(0, dtype) : int_imm(0, dtype);
          return make_store(y, {row, l}, select(at >= 0 && at < width && tap < 3, load(x, {row, at}), zero));
        });
      })};
}

TEST(Codegen, LanesNearOneAnotherAreShuffledAndNotGathered) {
  for (const DType dtype : {DType::kUInt8, DType::kInt8, DType::kBFloat16, DType::kFloat32})
    for (const int64_t pixels : {1, 3, 5, 14, 16})
      for (const int64_t step : {1, 2, 3})
        for (const int64_t left : {0, 1}) {
          if ((pixels - 1) * step + 3 - 2 * left < 1) continue;
          for (const char* name : {"llvm -mcpu=x86-64 -threads=1", "llvm -mcpu=haswell -threads=1", "host"}) {
            const Target target =
                name == std::string_view("host") ? host_target() : parse_target(name).value();
            ASSERT_TRUE(matches_oracle(windows(dtype, pixels, step, left), 1, 0, 1, target))
                << dtype << " " << pixels << " " << step << " " << left << " " << name;
          }
        }
  const Target wide = parse_target("llvm -mcpu=x86-64-v4 -threads=1").value();
  const std::string text = emit_asm(windows(DType::kFloat32, 14, 1, 1), wide).value();
  EXPECT_THAT(text, ::testing::Not(HasSubstr("gather")));
  EXPECT_THAT(text, HasSubstr("vperm"));
}

TEST(Codegen, RefusesARegisterBufferWithAVariableIndexNamingIt) {
  const Buffer x = input("x", {4}), y = output("y", {4}), acc = scratch("acc", {4}, MemoryScope::kRegister);
  const Program p{"variable", {x, y}, make_allocate(acc, loop("i", 4, kParallel, [&](Expr i) {
                                                      return make_store(y, {i}, load(acc, {i}));
                                                    }))};
  const Result<Artifact> artifact = compile(p, host_target());
  ASSERT_FALSE(artifact);
  EXPECT_EQ(artifact.status().code(), StatusCode::kInvalidConfig);
  EXPECT_THAT(artifact.message(), HasSubstr("register buffer acc is indexed by i"));
}

TEST(Codegen, RefusesToUnrollWithoutEnd) {
  const Result<Artifact> artifact = compile(doubling(5000, kUnroll), host_target());
  ASSERT_FALSE(artifact);
  EXPECT_EQ(artifact.status().code(), StatusCode::kInvalidConfig);
  EXPECT_EQ(artifact.message(),
            "doubling: unrolls to more than 4096 stores; unroll less or choose smaller tiles");
}

TEST(Codegen, RefusesGpuLoops) {
  const Result<Artifact> artifact = compile(doubling(4, LoopKind::kThreadX), host_target());
  ASSERT_FALSE(artifact);
  EXPECT_EQ(artifact.status().code(), StatusCode::kInvalidConfig);
}

TEST(Codegen, RefusesACpuThatLlvmDoesNotKnow) {
  Target target = host_target();
  target.mcpu = "pentium-nine";
  const Result<Artifact> artifact = compile(doubling(4, kVector), target);
  ASSERT_FALSE(artifact);
  EXPECT_THAT(artifact.message(), HasSubstr("-mcpu=pentium-nine is not a CPU that LLVM knows"));
}

TEST(Codegen, RefusesARuntimeThatDoesNotFit) {
  const Buffer x = input("x", {4}), y = output("y", {4}), t = scratch("t", {4});
  const Program p{
      "fits", {x, y}, make_allocate(t, make_seq({make_store(t, {0}, load(x, {0})), loop("i", 4, [&](Expr i) {
                                                   return make_store(y, {i}, load(t, {0}));
                                                 })}))};
  const Result<Artifact> artifact = compile(p, host_target());
  ASSERT_TRUE(artifact) << artifact.message();
  const Result<Kernel> kernel = Kernel::load(*artifact);
  ASSERT_TRUE(kernel) << kernel.message();
  ThreadPool pool(1);
  AlignedBuffer in(16), out(16), workspace(kernel->workspace_bytes(1));
  void* args[] = {in.data(), out.data()};
  tuner_runtime runtime = pool.runtime(workspace.data());
  EXPECT_EQ(kernel->entry()(args, &runtime), 0);
  runtime.abi_version = 99;
  EXPECT_EQ(kernel->entry()(args, &runtime), -1);
  runtime = pool.runtime(nullptr);
  EXPECT_EQ(kernel->entry()(args, &runtime), -2);
  runtime = pool.runtime(workspace.data());
  runtime.num_threads = 0;
  EXPECT_EQ(kernel->entry()(args, &runtime), -3);
}

TEST(Codegen, SameProgramAndTargetGiveTheSameBytes) {
  const Program p = tiled_matmul(17, 37, 11, 4, 16, true);
  const Result<Artifact> first = compile(p, host_target()), second = compile(p, host_target());
  ASSERT_TRUE(first) << first.message();
  ASSERT_TRUE(second) << second.message();
  EXPECT_EQ(first->manifest.digest, second->manifest.digest);
  EXPECT_EQ(first->manifest.digest, sha256_hex(first->binary));
}

// What was compiled for one kernel serves another only if it is the same code.
TEST(Codegen, PackingEntriesAreCompiledOnceAndNeverMixedUp) {
  const auto filled = [](const std::string& name, double value) {
    const Buffer y = output("y", {40});
    return Program{name, {y}, loop("i", 40, LoopKind::kVectorized, [&](Expr i) {
                     return make_store(y, {i}, float_imm(value));
                   })};
  };
  const auto packed = [&](double value, double pack_value) {
    Program p = filled("kernel", value);
    p.packing = std::make_shared<const Program>(filled("packing", pack_value));
    return p;
  };
  for (const auto& [value, pack_value] : {std::pair{1.0, 10.0}, {1.0, 11.0}, {2.0, 10.0}, {1.0, 10.0}}) {
    const Result<Artifact> artifact = compile(packed(value, pack_value), host_target());
    ASSERT_TRUE(artifact) << artifact.message();
    const Result<Kernel> kernel = Kernel::load(*artifact);
    ASSERT_TRUE(kernel) << kernel.message();
    ThreadPool pool(1);
    const tuner_runtime runtime = pool.runtime(nullptr);
    const AlignedBuffer y(40 * sizeof(float));
    const auto* const last = static_cast<const float*>(y.data()) + 39;
    void* args[] = {y.data()};
    ASSERT_EQ(kernel->entry()(args, &runtime), 0);
    EXPECT_EQ(*last, static_cast<float>(value));
    ASSERT_NE(kernel->pack_entry(), nullptr);
    ASSERT_EQ(kernel->pack_entry()(args, &runtime), 0);
    EXPECT_EQ(*last, static_cast<float>(pack_value));
  }
}

// One piece of memory serves both entries: packing may need more of it than the kernel.
TEST(Codegen, TheWorkspaceIsThatOfTheLargerEntry) {
  const auto through_scratch = [](const std::string& name, const Buffer& from, const Buffer& to) {
    const Buffer t = scratch("t", {from->elements()});
    return Program{
        name,
        {from, to},
        make_allocate(t, make_seq({loop("i", from->elements(),
                                        [&](Expr i) { return make_store(t, {i}, load(from, {i}) * 2); }),
                                   loop("j", to->elements(), [&](Expr j) {
                                     return make_store(to, {j}, load(t, {from->elements() - 1 - j}));
                                   })}))};
  };
  const Buffer w = make_buffer("w", DType::kFloat32, {3000}, MemoryScope::kGlobal, BufferRole::kConstant);
  const Buffer packed = make_buffer("p", DType::kFloat32, {100}, MemoryScope::kGlobal, BufferRole::kPacked);
  Program p = through_scratch("kernel", packed, output("y", {100}));
  const Result<Artifact> alone = compile(p, host_target());
  p.packing = std::make_shared<const Program>(through_scratch("packing", w, packed));
  const Result<Artifact> both = compile(p, host_target());
  ASSERT_TRUE(alone.is_ok() && both.is_ok()) << alone.message() << both.message();
  EXPECT_LT(alone->manifest.workspace_bytes, 3000 * 4);
  EXPECT_GE(both->manifest.workspace_bytes, 3000 * 4);
  const Result<CompiledObject> shipped = compile_object(p, host_target());
  ASSERT_TRUE(shipped.is_ok()) << shipped.message();
  EXPECT_GE(shipped->manifest.workspace_bytes, 3000 * 4);
  EXPECT_TRUE(matches_oracle(p));
}

TEST(Codegen, NamesBecomeSymbolsOrAreRefused) {
  Program p = doubling(4, kVector);
  for (const char* wrong : {"", "2x", "a b", "a-b", "a.b", ".default", "a.default.default"}) {
    p.name = wrong;
    EXPECT_EQ(
        compile(p, host_target()).message(),
        str("program name '", wrong, "': expected a C identifier, because it becomes the entry's symbol"));
  }
  for (const char* right : {"x2", "_", "Z_9", "a.default"}) {
    p.name = right;
    EXPECT_TRUE(compile(p, host_target()).is_ok()) << compile(p, host_target()).message();
  }
  EXPECT_EQ(write_archive({}).message(), "an archive of no objects");
}

TEST(Codegen, WhatOnlyGpusHaveIsRefused) {
  const Buffer y = output("y", {4}), shared = scratch("t", {4}, MemoryScope::kShared);
  const auto why = [&](const Stmt& body) { return compile({"p", {y}, body}, host_target()).message(); };
  const Stmt store = loop("i", 4, [&](Expr i) { return make_store(y, {i}, float_imm(1)); });
  EXPECT_THAT(why(make_seq({make_barrier(MemoryScope::kShared), store})),
              HasSubstr("barriers and asynchronous copies are GPU statements"));
  EXPECT_THAT(why(make_allocate(shared, make_seq({make_store(shared, {0}, float_imm(1)), store}))),
              HasSubstr("buffer t is in shared memory, which a CPU does not have"));
  EXPECT_THAT(compile(doubling(4, kVector), *parse_target("cuda -arch=sm_80")).message(),
              HasSubstr("target cuda -arch=sm_80: expected a CPU, found a GPU"));
}

// Vectors of 8 numbers from y[i * step + first] on: y begins at a multiple of 64 bytes, and what can be told
// of the place is a power of two that divides both.
TEST(Codegen, NoVectorIsSaidToBeBetterAlignedThanItIs) {
  const auto least = [](int64_t step, int64_t first) {
    const Buffer y = output("y", {20'000});
    const Program p{"fill", {y}, loop("i", 1000, [&](Expr i) {
                      return loop("lane", 8, kVector, [&](Expr lane) {
                        return make_store(y, {i * step + lane + first}, float_imm(1));
                      });
                    })};
    const Result<std::string> text = emit_llvm(p, *parse_target("llvm -mcpu=haswell"), {.as_written = true});
    EXPECT_TRUE(text.is_ok()) << text.message();
    int found = 64;
    for (size_t at = 0; (at = text->find("store <8 x float>", at)) != std::string::npos; ++at)
      found = std::min(found, std::stoi(text->substr(text->find(", align ", at) + 8)));
    return found;
  };
  EXPECT_EQ(least(8, 0), 32);
  EXPECT_EQ(least(16, 0), 32) << "never more than a vector";
  EXPECT_EQ(least(8, 4), 16);
  EXPECT_EQ(least(8, 1), 4);
  EXPECT_EQ(least(4, 0), 16);
  EXPECT_EQ(least(6, 0), 8);
  EXPECT_EQ(least(6, 1), 4);
  EXPECT_EQ(least(7, 0), 4);
}

TEST(Codegen, WithoutTheMachineSchedulerTheAnswerIsTheSame) {
  const Program p = tiled_matmul(8, 32, 20, 4, 16, false);
  std::vector<std::vector<double>> expected = random_args(p, 3), found = expected;
  ASSERT_TRUE(interpret(p, expected));
  const Status ran = run_compiled(p, found, host_target(), 1, {.machine_scheduler = false});
  ASSERT_TRUE(ran) << ran.message();
  for (size_t i = 0; i < expected[2].size(); ++i) EXPECT_NEAR(found[2][i], expected[2][i], 1e-4);
}

TEST(Codegen, TextOfEveryStage) {
  const Program p = tiled_matmul(16, 32, 20, 8, 32, false);
  const Result<std::string> llvm = emit_llvm(p, host_target()), assembly = emit_asm(p, host_target());
  ASSERT_TRUE(llvm) << llvm.message();
  ASSERT_TRUE(assembly) << assembly.message();
  EXPECT_THAT(*llvm, HasSubstr("define i32 @matmul(ptr"));
  EXPECT_THAT(*assembly, HasSubstr("matmul:"));
  const Result<std::string> object = emit_object(p, host_target());
  ASSERT_TRUE(object) << object.message();
  EXPECT_EQ(object->substr(0, 4),
            "\x7f"
            "ELF");
}

TEST(Codegen, ResolvesCpuToThisHost) {
  const Result<Target> one = resolve_cpu_target("cpu"), two = resolve_cpu_target("cpu -threads=2");
  ASSERT_TRUE(one) << one.message();
  ASSERT_TRUE(two) << two.message();
  EXPECT_EQ(one->threads, 1);
  EXPECT_EQ(two->threads, 2);
  EXPECT_EQ(one->mcpu, two->mcpu);
  const Result<Target> again = resolve_cpu_target(one->name());
  ASSERT_TRUE(again) << again.message();
  EXPECT_EQ(again->name(), one->name());
  EXPECT_FALSE(resolve_cpu_target("cpu -threads=0"));
  EXPECT_THAT(resolve_cpu_target("cpu fast").message(), HasSubstr("found 'fast' after cpu"));
}

}  // namespace
}  // namespace tuner
