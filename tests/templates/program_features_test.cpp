// Features of scheduled Programs: one length, what they say of a known schedule.
#include "compiler_core/analysis/features.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "templates/registry/registry.h"
#include "tests/templates/template_check.h"

namespace tuner {
namespace {

float feature(const std::vector<float>& values, const std::string& name) {
  const auto& names = program_feature_names();
  const auto at = std::find(names.begin(), names.end(), name);
  EXPECT_NE(at, names.end()) << name;
  return at == names.end() ? 0 : values[static_cast<size_t>(at - names.begin())];
}
float log2p1(double x) { return static_cast<float>(std::log2(1 + x)); }

TEST(ProgramFeatures, DescribeTheMicroKernel) {
  MatmulWorkload w;
  w.m = 64;
  w.n = 128;
  w.k = 256;
  w.constant = {"b"};
  const auto instance = matmul_cpu().apply(w, cpu(512, 32));
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const Config config({{"tile_m", 8},
                       {"tile_n", 32},
                       {"block_m", 0},
                       {"block_k", 0},
                       {"unroll_k", 2},
                       {"pack_a", 0},
                       {"pack_b", 1},
                       {"narrow_panels", 0},
                       {"next_panel", 0},
                       {"prefetch_b", 0}});
  const auto program = (*instance)->instantiate(config);
  ASSERT_TRUE(program.is_ok()) << program.message();
  const std::vector<float> f = program_features(*program);
  ASSERT_EQ(f.size(), program_feature_names().size());
  EXPECT_EQ(feature(f, "log2(runs)"), log2p1(64.0 * 128 * 256));
  EXPECT_EQ(feature(f, "log2(lanes)"), log2p1(16));
  EXPECT_EQ(feature(f, "log2(accumulators)"), log2p1(16));
  EXPECT_EQ(feature(f, "log2(unrolled_reduce)"), log2p1(2));
  EXPECT_EQ(feature(f, "log2(vector_loads_in_body)"), log2p1(4));   // two vectors of b, twice
  EXPECT_EQ(feature(f, "log2(scalar_loads_in_body)"), log2p1(16));  // eight rows of a, twice
  EXPECT_EQ(feature(f, "log2(loop0.extent)"), log2p1(128));
  EXPECT_EQ(feature(f, "loop0.reduces"), 1);
  EXPECT_EQ(feature(f, "log2(loop0.bytes)"), log2p1(8 * 256 * 4 + 256 * 32 * 4));
  EXPECT_EQ(feature(f, "packs_ahead"), 1);
}

TEST(ProgramFeatures, OfAnEmptyProgramHaveTheSameLength) {
  EXPECT_EQ(program_features(Program{}).size(), program_feature_names().size());
}

// A copy that runs often, a sum over columns of a and rows of w, and a write-out with gaps.
Program by_hand() {
  const auto buffer = [](const char* name, std::vector<int64_t> shape, BufferRole role,
                         MemoryScope scope = MemoryScope::kGlobal) {
    return make_buffer(name, DType::kFloat32, std::move(shape), scope, role);
  };
  const Buffer x = buffer("x", {64}, BufferRole::kInput), a = buffer("a", {10, 100}, BufferRole::kInput),
               w = buffer("w", {10, 8}, BufferRole::kInput), y = buffer("y", {12}, BufferRole::kOutput),
               t = buffer("t", {128}, BufferRole::kIntermediate),
               sums = buffer("sums", {8}, BufferRole::kIntermediate, MemoryScope::kRegister);
  const Var c = make_var("c"), k = make_var("k"), j = make_var("j"), v = make_var("v");
  const Stmt copy = make_for(c, 1000, make_store(t, {floor_mod(c, 128)}, load(x, {floor_mod(c, 64)})));
  const Expr term = load(x, {k}) * load(a, {Expr(k), Expr(3)}) + load(w, {Expr(k), Expr(j)});
  const Stmt sum = make_for(k, 10,
                            make_for(j, 8, make_reduce(sums, {j}, ReduceOp::kSum, {}, term, {}),
                                     AxisKind::kSpatial, LoopKind::kVectorized),
                            AxisKind::kReduce);
  const Stmt out = make_for(v, 4, make_if(Expr(v) < 3, make_store(y, {Expr(v) * 3}, load(sums, {v}))),
                            AxisKind::kSpatial, LoopKind::kVectorized);
  return {"by_hand", {x, a, w, y}, make_allocate(t, make_allocate(sums, make_seq({copy, sum, out})))};
}

// The sum is described, although the copy runs more often: 80 terms, eight at a time.
TEST(ProgramFeatures, OfAProgramByHand) {
  const std::vector<float> f = program_features(by_hand());
  EXPECT_EQ(feature(f, "log2(runs)"), log2p1(80));
  EXPECT_EQ(feature(f, "log2(lanes)"), log2p1(8));
  EXPECT_EQ(feature(f, "log2(accumulators)"), log2p1(1));
  EXPECT_EQ(feature(f, "log2(vector_loads_in_body)"), log2p1(1));
  EXPECT_EQ(feature(f, "log2(scalar_loads_in_body)"), log2p1(2));
  EXPECT_EQ(feature(f, "log2(strided_loads_in_body)"), log2p1(0));
  EXPECT_EQ(feature(f, "guards"), 0) << "the guard is around the write-out";
  // Lines of 64 bytes: one of x, ten of a column of a, ten of w, whose rows have 32 bytes.
  EXPECT_EQ(feature(f, "log2(loop0.extent)"), log2p1(10));
  EXPECT_EQ(feature(f, "loop0.reduces"), 1);
  EXPECT_EQ(feature(f, "log2(loop0.bytes)"), log2p1(64 * (1 + 10 + 10)));
  EXPECT_EQ(feature(f, "log2(loop0.flops_per_byte)"), log2p1(2 * 80.0 / (64 * 21)));
  EXPECT_EQ(feature(f, "log2(operand0.loop0.bytes)"), log2p1(64));
  EXPECT_EQ(feature(f, "log2(operand1.loop0.bytes)"), log2p1(640));
  EXPECT_EQ(feature(f, "log2(loop1.extent)"), 0) << "there is none";
  // The rest: 1000 copies and a vector that is written with gaps of three.
  EXPECT_EQ(feature(f, "log2(other_runs)"), log2p1(1001));
  EXPECT_EQ(feature(f, "log2(output_stride)"), log2p1(3));
  EXPECT_EQ(feature(f, "log2(workspace_bytes)"), log2p1(512));
  EXPECT_EQ(feature(f, "log2(tile_bytes)"), log2p1(32));
  EXPECT_EQ(feature(f, "stores"), 3);
  EXPECT_EQ(feature(f, "loops"), 4);
  EXPECT_EQ(feature(f, "packs_ahead"), 0);
}

}  // namespace
}  // namespace tuner
