// Outputs that lie on an operand: what schedules of them pass, what is refused, and that compiled code adds
// to what they hold.
#include "compiler_core/analysis/in_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler_core/lower/gpu.h"
#include "compiler_core/lower/lower.h"
#include "compiler_core/schedule/schedule.h"
#include "compiler_core/te/te.h"
#include "tests/compiler_core/kernel_testing.h"

namespace tuner {
namespace {

using ::testing::HasSubstr;

// y[i, j] += sum over k of a[i, k] * b[k, j]
Program adding_product(int64_t m, int64_t n, int64_t k) {
  te::Builder b("product");
  const Buffer x = b.input("a", {m, k}), w = b.input("b", {k, n}), y = b.in_out("y", {m, n});
  const Buffer acc = b.reduce("acc", {m, n}, {{"k", k}}, ReduceOp::kSum,
                              [&](const te::Indices& i, const te::Indices& r) {
                                return load(x, {i[0], r[0]}) * load(w, {r[0], i[1]});
                              },
                              BufferRole::kIntermediate, {"i", "j"});
  b.compute("y", {m, n}, [&](const te::Indices& i) { return load(acc, i) + load(y, i); }, BufferRole::kOutput,
            {"i", "j"});
  return b.finish();
}

// y[at(i)] = value(y, i) over loops of these extents, by hand.
Program by_hand(int64_t size, const std::vector<int64_t>& extents,
                const std::function<Expr(const std::vector<Expr>&)>& at,
                const std::function<Expr(const Buffer&, const Expr&)>& value) {
  const Buffer y = make_buffer("y", DType::kFloat32, {size}, MemoryScope::kGlobal, BufferRole::kInOut);
  std::vector<Var> vars;
  std::vector<Expr> indices;
  for (size_t d = 0; d < extents.size(); ++d) vars.push_back(make_var(str("i", d)));
  for (const Var& var : vars) indices.emplace_back(var);
  const Expr index = at(indices);
  Stmt body = make_store(y, {index}, value(y, index));
  for (size_t d = extents.size(); d-- > 0;) body = make_for(vars[d], extents[d], body);
  return {.name = "f", .args = {y}, .body = body};
}
Expr one_more(const Buffer& y, const Expr& at) { return load(y, {at}) + float_imm(1); }

std::string verdict(int64_t size, const std::vector<int64_t>& extents,
                    const std::function<Expr(const std::vector<Expr>&)>& at) {
  return check_in_place(by_hand(size, extents, at, one_more)).message();
}

TEST(InPlace, TheMathReadsAndWritesEachElementOnce) {
  const Program p = adding_product(2, 3, 4);
  EXPECT_TRUE(check_in_place(p).is_ok()) << check_in_place(p).message();
  EXPECT_EQ("\n" + to_text(p), R"(
kernel product(input a float32[2, 4], input b float32[4, 3], inout y float32[2, 3])
  allocate acc float32[2, 3]
  for i in 0..2
    for j in 0..3
      reduce k in 0..4
        acc[i, j] += a[i, k] * b[k, j], from 0 when k == 0
  for i in 0..2
    for j in 0..3
      y[i, j] = acc[i, j] + y[i, j]
)");
}

TEST(InPlace, LoopsThatOnlyRearrangePass) {
  Schedule s(adding_product(7, 37, 5));
  const Tensor y = s.tensor("y");
  const auto axes = s.axes(y);
  const auto [i_outer, i_inner] = s.split(axes[0], 2);
  const auto [j_outer, j_inner] = s.split(axes[1], 8);
  s.reorder({i_outer, j_outer, i_inner, j_inner});
  s.unroll(i_inner);
  s.vectorize(j_inner);
  s.parallel(s.fuse({i_outer, j_outer}));
  const Result<Program> p = s.finish();
  ASSERT_TRUE(p.is_ok()) << p.message();
  EXPECT_TRUE(testing::matches_oracle(*p));
  EXPECT_TRUE(testing::matches_oracle(*p, /*threads=*/3));
}

TEST(InPlace, IndicesThatStoreEachElementOnce) {
  using Is = std::vector<Expr>;
  EXPECT_EQ(verdict(12, {3, 4}, [](const Is& i) { return i[0] * 4 + i[1]; }), "");
  EXPECT_EQ(verdict(12, {4, 3}, [](const Is& i) { return i[1] * 4 + i[0]; }), "");
  EXPECT_EQ(verdict(12, {12}, [](const Is& i) { return Expr(11) - i[0]; }), "");
  EXPECT_EQ(verdict(30, {6}, [](const Is& i) { return floor_mod(i[0], 3) * 10 + floor_div(i[0], 3); }), "");
  EXPECT_EQ(verdict(24, {24},
                    [](const Is& i) {
                      return floor_mod(i[0], 2) * 12 + floor_mod(floor_div(i[0], 2), 3) * 4 +
                             floor_div(i[0], 6);
                    }),
            "");
  // Fused, split again, taken apart.
  EXPECT_EQ(verdict(99, {6, 4},
                    [](const Is& i) {
                      const Expr f = i[0] * 4 + i[1];
                      return floor_mod(f, 6) * 10 + floor_div(f, 6);
                    }),
            "");
}

TEST(InPlace, IndicesThatMeetAreRefusedNamingTheLoop) {
  using Is = std::vector<Expr>;
  const auto refused = [](const char* loop) {
    return str(
        "y holds what it is added to: one statement must read each element and store it, once; found that "
        "iterations of ",
        loop, " may store an element again");
  };
  EXPECT_EQ(verdict(12, {3, 4}, [](const Is& i) { return i[1]; }), refused("i0"));
  // Tiles that overlap: four elements, three apart.
  EXPECT_EQ(verdict(12, {3, 4}, [](const Is& i) { return i[0] * 3 + i[1]; }), refused("i0"));
  EXPECT_EQ(verdict(12, {12}, [](const Is& i) { return floor_div(i[0], 2); }), refused("i0"));
  EXPECT_EQ(verdict(12, {12}, [](const Is& i) { return floor_mod(i[0], 4); }), refused("i0"));
  EXPECT_EQ(verdict(12, {12}, [](const Is& i) { return floor_mod(i[0], 2) * 4 + floor_div(i[0], 4); }),
            refused("i0"));
  EXPECT_EQ(verdict(12, {12}, [](const Is& i) { return min(i[0], 7); }), refused("i0"));
}

// A vector wider than what there is: its guard leaves one iteration, and no variable in the index.
TEST(InPlace, AGuardMayLeaveOneIteration) {
  Program p = by_hand(
      1, {8}, [](const auto&) { return Expr(0); }, one_more);
  EXPECT_THAT(check_in_place(p).message(), HasSubstr("iterations of i0 may store"));
  const Stmt loop = p.body;
  p.body = with_body(loop, make_if(Expr(loop->var) < Expr(1), loop->body));
  EXPECT_TRUE(check_in_place(p).is_ok()) << check_in_place(p).message();
}

TEST(InPlace, ReadsThatMayComeLateAreRefused) {
  const auto at = [](const std::vector<Expr>& i) { return i[0]; };
  const Program mirrored =
      by_hand(8, {8}, at, [](const Buffer& y, const Expr& i) { return load(y, {Expr(7) - i}); });
  EXPECT_THAT(check_in_place(mirrored).message(), HasSubstr("found a read of another element in"));

  // A copy of it is read where the element may have been written.
  Program copied = by_hand(8, {8}, at, one_more);
  const Buffer copy = make_buffer("copy", DType::kFloat32, {8});
  const Var j = make_var("j");
  copied.body = make_allocate(
      copy, make_seq({copied.body, make_for(j, 8, make_store(copy, {j}, load(copied.args[0], {j})))}));
  EXPECT_THAT(check_in_place(copied).message(), HasSubstr("found a read of it in another statement"));

  Program twice = by_hand(8, {8}, at, one_more);
  twice.body = make_seq({twice.body, twice.body});
  EXPECT_THAT(check_in_place(twice).message(), HasSubstr("found 2 statements that store it"));

  const Var k = make_var("k");
  Program kept = by_hand(8, {8}, at, one_more);
  kept.body =
      make_for(k, 8, make_reduce(kept.args[0], {k}, ReduceOp::kSum, float_imm(0), float_imm(1), Expr()));
  EXPECT_THAT(check_in_place(kept).message(), HasSubstr("found sums that are kept in it"));
}

TEST(InPlace, SchedulesThatCopyTheOutputAreRefused) {
  Schedule s(adding_product(4, 4, 3));
  s.cache_write(s.tensor("y"), MemoryScope::kGlobal);
  EXPECT_THAT(s.finish().message(), HasSubstr("y holds what it is added to"));
}

TEST(InPlace, LoweringRefusesWhatNoScheduleFinished) {
  const Program p = by_hand(
      12, {3, 4}, [](const auto& i) { return i[1]; }, one_more);
  EXPECT_EQ(lower(p, 100).message(), "f: " + check_in_place(p).message());
  EXPECT_EQ(
      lower_gpu(adding_product(4, 4, 3)).message(),
      "product: y is an operand and the output (\"accumulate\"), which kernels of GPUs do not have yet");
}

// Interpreted and compiled; a second call adds again.
TEST(InPlace, CallsAddUp) {
  const Program p = adding_product(5, 19, 3);
  EXPECT_TRUE(testing::matches_oracle(p));
  std::vector<std::vector<double>> args = testing::random_args(p, 1);
  const std::vector<double> before = args[2];
  ASSERT_EQ(before.size(), 5u * 19);
  ASSERT_TRUE(testing::run_compiled(p, args, host_target(), 1).is_ok());
  const std::vector<double> once = args[2];
  ASSERT_TRUE(testing::run_compiled(p, args, host_target(), 1).is_ok());
  for (size_t e = 0; e < before.size(); ++e)
    EXPECT_NEAR(args[2][e] - once[e], once[e] - before[e], 1e-5) << "y[" << e << "]";
}

}  // namespace
}  // namespace tuner
