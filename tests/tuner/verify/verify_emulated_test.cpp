// What `tuner verify` says of CUDA kernels: right ones pass, broken ones are described, shapes that are too
// large are sampled or refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "compiler_core/ir/visitor.h"
#include "templates/schedule_template.h"
#include "templates/space/knob.h"
#include "tuner/verify/verify_emulated.h"

namespace tuner::cli {
namespace {

using ::testing::HasSubstr;

Workload matmul(int64_t m, int64_t n, int64_t k) {
  MatmulWorkload w;
  w.m = m;
  w.n = n;
  w.k = k;
  return w;
}

Result<GpuProgram> default_kernels(const Workload& workload) {
  const Target target = *parse_target("cuda -arch=sm_80");
  ASSIGN_OR_RETURN(const std::vector<const AnyTemplate*> serving, templates_for(workload, target));
  ASSIGN_OR_RETURN(const std::unique_ptr<TemplateInstance> instance,
                   serving.front()->apply(workload, target));
  ASSIGN_OR_RETURN(const Program program,
                   instance->instantiate(instance->space().at(instance->space().default_index())));
  return lower_gpu(program);
}

struct VerifyEmulated : ::testing::Test {
  VerifyEmulated() {
    const Result<VerifyData> made = make_verify_data(workload, /*seed=*/3);
    CHECK(made.is_ok()) << made.message();
    data = *made;
    const Result<GpuProgram> lowered = default_kernels(workload);
    CHECK(lowered.is_ok()) << lowered.message();
    kernels = *lowered;
  }
  // Replaces statements of every kernel: null drops one.
  template <class F>
  void damage(const F& f) {
    const std::function<Stmt(const Stmt&)> walk = [&](const Stmt& s) -> Stmt {
      Stmt damaged = f(s);
      return damaged != s ? damaged
                          : map_children(
                                s, [](const Expr& e) { return e; }, walk);
    };
    for (GpuKernel& k : kernels.kernels) k.body = walk(k.body);
  }
  std::string problem(int64_t work = 1) { return verify_kernels(kernels, data, work).problem; }

  const Workload workload = matmul(40, 33, 25);
  VerifyData data;
  GpuProgram kernels;
};

TEST(DrawConfigs, TheDefaultComesFirstAndNoneTwice) {
  ConfigSpace space;
  static_cast<void>(space.choice("a", {1, 2, 3, 4, 5, 6}).try_first(4));
  static_cast<void>(space.choice("b", {1, 2, 3, 4}).try_first(3));
  ASSERT_TRUE(space.seal().is_ok());
  ASSERT_EQ(space.size(), 24u);
  std::mt19937_64 random(1);
  const std::vector<ConfigIndex> some = draw_configs(space, 20, random);
  ASSERT_EQ(some.size(), 20u);
  EXPECT_EQ(some[0], space.default_index());
  EXPECT_EQ(std::set<ConfigIndex>(some.begin(), some.end()).size(), 20u);
  for (const uint64_t wanted : {uint64_t{24}, uint64_t{100}}) {
    const std::vector<ConfigIndex> all = draw_configs(space, wanted, random);
    EXPECT_EQ(std::set<ConfigIndex>(all.begin(), all.end()).size(), 24u) << wanted;
    EXPECT_EQ(all.size(), 24u);
  }
}

// Both sums are in double precision: they agree to nine digits in every element, the last one too.
TEST_F(VerifyEmulated, TheOracleIsHeldAgainstEveryElement) {
  EXPECT_TRUE(check_with_oracle(data.unscheduled, data).is_ok());
  VerifyData other = data;
  const size_t last = other.answers[0].size() - 1;
  other.answers[0][last] += 1e-6 * (1 + std::abs(other.answers[0][last]));
  EXPECT_THAT(check_with_oracle(data.unscheduled, other).message(), HasSubstr(str("[", last, "] is ")));
}

TEST_F(VerifyEmulated, RightKernelsHaveNoProblem) {
  EXPECT_EQ(problem(), "");
  const ConfigVerdict interpreted = verify_kernels(kernels, data, 1, /*interpret=*/true);
  EXPECT_EQ(interpreted.problem, "");
  EXPECT_EQ(interpreted.not_checked, "");
}

TEST_F(VerifyEmulated, AMissingBarrierIsDescribed) {
  damage([](const Stmt& s) -> Stmt { return s->kind == StmtKind::kBarrier ? nullptr : s; });
  EXPECT_THAT(problem(), HasSubstr("race"));
}

TEST_F(VerifyEmulated, AWrongValueIsNamedAsByTheRunner) {
  damage([](const Stmt& s) -> Stmt {
    if (s->kind != StmtKind::kStore || s->buffer->role != BufferRole::kOutput) return s;
    return make_store(s->buffer, s->indices, s->value * 2);
  });
  EXPECT_THAT(problem(), HasSubstr("wrong_answer: out[0, 0] is "));
}

TEST_F(VerifyEmulated, WhatCannotBeEmulatedIsAProblem) {
  kernels.kernels[0].shared_bytes -= 16;
  EXPECT_THAT(problem(), HasSubstr("emulate: "));
}

TEST_F(VerifyEmulated, SeveralKernelsOfALargeShapeAreNotCheckedAndSaySo) {
  kernels.kernels.push_back(kernels.kernels[0]);
  const ConfigVerdict verdict = verify_kernels(kernels, data, kWholeWorkOfSeveral + 1);
  EXPECT_EQ(verdict.problem, "");
  EXPECT_THAT(verdict.not_checked, HasSubstr("2 kernels"));
}

TEST_F(VerifyEmulated, ShapesThatTakeTooLongAreRefusedWithTheLimit) {
  EXPECT_TRUE(check_emulation_size(matmul(2048, 2048, 2048)).is_ok());
  const Status refused = check_emulation_size(matmul(8192, 8192, 8192));
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.message(), HasSubstr("at most 50000000000"));
}

TEST(VerifyEmulatedSample, AWrongBlockOfALargeShapeIsFound) {
  const Workload workload = matmul(700, 500, 30);
  const Result<VerifyData> data = make_verify_data(workload, 3);
  ASSERT_TRUE(data.is_ok()) << data.message();
  Result<GpuProgram> kernels = default_kernels(workload);
  ASSERT_TRUE(kernels.is_ok()) << kernels.message();
  ASSERT_EQ(kernels->kernels.size(), 1u);
  const ConfigVerdict right = verify_kernels(*kernels, *data, kWholeWork + 1);
  EXPECT_EQ(right.problem, "");
  EXPECT_GT(right.blocks_run, 0);
  EXPECT_LT(right.blocks_run, kernels->kernels[0].grid[0]);
  GpuKernel& k = kernels->kernels[0];
  const std::function<Stmt(const Stmt&)> negate = [&](const Stmt& s) -> Stmt {
    if (s->kind == StmtKind::kStore && s->buffer->role == BufferRole::kOutput)
      return make_store(s->buffer, s->indices, unary(UnaryOp::kNeg, s->value));
    return map_children(
        s, [](const Expr& e) { return e; }, negate);
  };
  k.body = negate(k.body);
  EXPECT_THAT(verify_kernels(*kernels, *data, kWholeWork + 1).problem, HasSubstr("wrong_answer"));
}

}  // namespace
}  // namespace tuner::cli
