// Products by tiles of a warp with one statement changed: the emulator has to see it.
#include <gmock/gmock.h>

#include <string>
#include <tuple>
#include <vector>

#include "compiler_core/ir/intrinsic.h"
#include "compiler_core/lower/gpu.h"
#include "tests/all_samples.h"
#include "tests/compiler_core/warp_tile_runs.h"

namespace tuner {
namespace {

using testing::damaged;
using testing::float_product;
using testing::half_product;
using ::testing::HasSubstr;
using testing::lowered;
using testing::statements;
using testing::verdict;
using testing::warp_product;
using testing::WarpTiles;

TEST(WarpDamage, DamageIsSeen) {
  const Program math = half_product(DType::kBFloat16, 64, 64, 96, true);
  const auto gpu = lowered(warp_product(math, {.layout_a = "pad:8"}));
  ASSERT_TRUE(gpu) << gpu.message();
  ASSERT_EQ(verdict(*gpu, math), "");
  const int barriers = statements(*gpu, StmtKind::kBarrier);
  ASSERT_EQ(barriers, 3);
  for (int dropped = 0; dropped < barriers; ++dropped) {
    int n = 0;
    const GpuProgram bad = damaged(
        *gpu, [&](const Stmt& s) { return s->kind == StmtKind::kBarrier && n++ == dropped ? Stmt() : s; });
    EXPECT_THAT(verdict(bad, math), HasSubstr("race")) << "barrier " << dropped;
  }
  // Another intrinsic in the place of one.
  const auto renamed = [&](const char* from, const char* to) {
    return damaged(*gpu, [&](const Stmt& s) {
      if (s->kind != StmtKind::kIntrinsic || s->name != from) return s;
      auto node = std::make_shared<StmtNode>(*s);
      node->name = to;
      return Stmt(std::move(node));
    });
  };
  EXPECT_NE(verdict(renamed("ldmatrix.bfloat16.mk", "ldmatrix.bfloat16.kn"), math), "") << "wrong lanes";
  EXPECT_NE(verdict(renamed("ldmatrix.bfloat16.kn", "ldmatrix.bfloat16.nk"), math), "") << "not transposed";
  // An operand one tile aside, and one that begins one row below.
  for (const auto& [name, operand, by] :
       std::vector<std::tuple<std::string, size_t, int64_t>>{{"ldmatrix.bfloat16.mk", 1, 1},
                                                             {"mma.bfloat16.mk.kn", 2, 2},
                                                             {"mma.bfloat16.mk.kn", 0, 1},
                                                             {"mma.store", 1, 1}}) {
    const GpuProgram bad = damaged(*gpu, [&, name = name, operand = operand, by = by](const Stmt& s) {
      if (s->kind != StmtKind::kIntrinsic || s->name != name) return s;
      auto node = std::make_shared<StmtNode>(*s);
      std::vector<Expr> at = node->operands[operand]->operands;
      at.back() = at.back() + by;
      node->operands[operand] = load(node->operands[operand]->buffer, std::move(at));
      return Stmt(std::move(node));
    });
    EXPECT_NE(verdict(bad, math), "") << name << ", operand " << operand;
  }
  // Sums that do not begin at zero.
  const GpuProgram unset = damaged(*gpu, [](const Stmt& s) {
    return s->kind == StmtKind::kIntrinsic && s->name == "mma.zero" ? Stmt() : s;
  });
  EXPECT_THAT(verdict(unset, math), HasSubstr("uninitialised read"));
}

// Of float32: another load, an operand one register aside, terms left out.
TEST(WarpDamage, DamageToProductsOfFloat32IsSeen) {
  for (int form = 0; form < 4; ++form) {
    const WarpTiles o{.k_first = (form & 1) != 0, .m_first = (form & 2) != 0, .terms = 3};
    SCOPED_TRACE(str("form ", form));
    const Program math = float_product(o, 64, 64, 96);
    const auto gpu = lowered(warp_product(math, o));
    ASSERT_TRUE(gpu) << gpu.message();
    ASSERT_EQ(verdict(*gpu, math), "");
    const std::string of_a = o.m_first ? "mk" : "km", of_b = o.k_first ? "kn" : "nk";
    const std::string load_a = (o.m_first ? "ldmatrix.float32." : "mma.load.float32.") + of_a;
    const std::string load_b = (o.k_first ? "mma.load.float32." : "ldmatrix.float32.") + of_b;
    const std::string product = str("mma.tf32x3.", of_a, ".", of_b);
    for (const auto& [name, operand, by] :
         std::vector<std::tuple<std::string, size_t, int64_t>>{{load_a, 1, 4},
                                                               {load_b, 1, 4},
                                                               {load_a, 0, 8},
                                                               {load_b, 0, 4},
                                                               {product, 1, 1},
                                                               {product, 2, 1}}) {
      const GpuProgram bad = damaged(*gpu, [&, name = name, operand = operand, by = by](const Stmt& s) {
        if (s->kind != StmtKind::kIntrinsic || s->name != name) return s;
        auto node = std::make_shared<StmtNode>(*s);
        std::vector<Expr> at = node->operands[operand]->operands;
        at.back() = at.back() + by;
        node->operands[operand] = load(node->operands[operand]->buffer, std::move(at));
        return Stmt(std::move(node));
      });
      EXPECT_NE(verdict(bad, math), "") << name << ", operand " << operand;
    }
    const GpuProgram rounded = damaged(*gpu, [&](const Stmt& s) {
      if (s->kind != StmtKind::kIntrinsic || s->name != product) return s;
      auto node = std::make_shared<StmtNode>(*s);
      node->name = str("mma.tf32.", of_a, ".", of_b);
      return Stmt(std::move(node));
    });
    EXPECT_NE(verdict(rounded, math), "") << "one term in the place of three";
  }
}

// What can go wrong in a pipeline, each by itself.
TEST(WarpDamage, DamageToAPipelineIsSeen) {
  const Program math = half_product(DType::kBFloat16, 64, 64, 200, true);
  for (const int64_t stages : {3, 2, 4}) {
    if (stages != 3 && !all_samples_wanted()) break;
    SCOPED_TRACE(str(stages, " stages"));
    const auto gpu = lowered(warp_product(math, {.stages = stages, .vector = 8, .layout_a = "xor:8,4"}));
    ASSERT_TRUE(gpu) << gpu.message();
    ASSERT_EQ(verdict(*gpu, math), "");
    const auto without = [&](const char* what, int number) {
      int n = 0;
      return damaged(
          *gpu, [&, n](const Stmt& s) mutable { return is_async(*s, what) && n++ == number ? Stmt() : s; });
    };
    EXPECT_THAT(verdict(without("wait", 0), math), HasSubstr("copy under way")) << "no wait";
    const GpuProgram late =
        damaged(*gpu, [&](const Stmt& s) { return is_async(*s, "wait") ? make_async_wait(stages - 1) : s; });
    EXPECT_THAT(verdict(late, math), HasSubstr("copy under way")) << "waits for one group less";
    const int commits = static_cast<int>(stages);  // one each before the loop, one in it
    for (int i = 0; i < commits; ++i)
      EXPECT_NE(verdict(without("commit", i), math), "") << "commit " << i << " is missing";
    for (int i = 0; i < 2 * commits; ++i)
      EXPECT_NE(verdict(without("copy", i), math), "") << "copy " << i << " is missing";
    const auto without_barrier = [&](int number) {
      return damaged(*gpu, [number, n = 0](const Stmt& s) mutable {
        return s->kind == StmtKind::kBarrier && n++ == number ? Stmt() : s;
      });
    };
    EXPECT_THAT(verdict(without_barrier(0), math), HasSubstr("race")) << "no barrier behind the wait";
    // Of four stages the last step reads the third, where no sums come.
    if (stages < 4) {
      EXPECT_THAT(verdict(without_barrier(1), math), HasSubstr("which lies on"))
          << "sums come where tiles are still read";
    }
    // The sums on tiles that are needed still: at the begin of a step in place of the end of all.
    GpuProgram early = *gpu;
    for (size_t i = 0; i < early.kernels[0].shared.size(); ++i)
      if (early.kernels[0].shared[i]->name == "b.packed") early.kernels[0].shared_offsets[i] = 1024;
    EXPECT_NE(verdict(early, math), "") << "two tiles lie on each other";

    // Another stage: of the copies in the loop, of the loads.
    const auto aside = [&](const std::vector<Expr>& indices) {
      std::vector<Expr> at = indices;
      at[0] = floor_mod(at[0] + 1, stages);
      return at;
    };
    const GpuProgram copied_aside = damaged(*gpu, [&](const Stmt& s) {
      if (s->kind != StmtKind::kStore || s->buffer->name != "a.packed" || is_const_int(s->indices[0]))
        return s;
      return make_store(s->buffer, aside(s->indices), s->value);
    });
    EXPECT_NE(verdict(copied_aside, math), "") << "copied into another stage";
    const GpuProgram read_aside = damaged(*gpu, [&](const Stmt& s) {
      if (s->kind != StmtKind::kIntrinsic || s->name != "ldmatrix.bfloat16.kn") return s;
      auto node = std::make_shared<StmtNode>(*s);
      node->operands[1] = load(node->operands[1]->buffer, aside(node->operands[1]->operands));
      return Stmt(std::move(node));
    });
    EXPECT_NE(verdict(read_aside, math), "") << "another stage is read";

    // A swizzle on one side only, and zeros that are not written.
    const GpuProgram swizzled = damaged(*gpu, [&](const Stmt& s) {
      if (s->kind != StmtKind::kStore || s->buffer->name != "a.packed") return s;
      std::vector<Expr> at = s->indices;
      at.back() = floor_mod(at.back() + 8, 32);
      return make_store(s->buffer, at, s->value);
    });
    EXPECT_NE(verdict(swizzled, math), "") << "one-sided swizzle";
    const GpuProgram unpadded = damaged(*gpu, [&](const Stmt& s) {
      if (s->kind != StmtKind::kStore || s->value->kind != ExprKind::kSelect) return s;
      return make_store(s->buffer, s->indices, s->value->operands[1]);
    });
    EXPECT_THAT(verdict(unpadded, math), HasSubstr("out of bounds")) << "zero fill dropped";
  }
}

TEST(WarpDamage, DamageToFragmentsLoadedAheadIsSeen) {
  const Program math = half_product(DType::kBFloat16, 64, 64, 200, true);
  for (const int64_t stages : {3, 2, 4}) {
    if (stages != 3 && !all_samples_wanted()) break;
    SCOPED_TRACE(str(stages, " stages"));
    const auto gpu =
        lowered(warp_product(math, {.stages = stages, .ahead = true, .vector = 8, .layout_a = "xor:8,4"}));
    ASSERT_TRUE(gpu) << gpu.message();
    ASSERT_EQ(verdict(*gpu, math), "");
    const auto without = [&](const char* what, int number) {
      return damaged(*gpu, [what, number, n = 0](const Stmt& s) mutable {
        return is_async(*s, what) && n++ == number ? Stmt() : s;
      });
    };
    for (const int wait : {0, 1})
      EXPECT_THAT(verdict(without("wait", wait), math), HasSubstr("copy under way")) << "wait " << wait;
    const GpuProgram late = damaged(*gpu, [&](const Stmt& s) {
      int64_t groups = 0;
      if (!is_async(*s, "wait") || !is_const_int(s->operands[0], &groups)) return s;
      return make_async_wait(groups + 1);
    });
    EXPECT_THAT(verdict(late, math), HasSubstr("copy under way")) << "waits for one group less";
    const int commits = static_cast<int>(stages) + 1;  // one each before the loop, one in it
    for (int i = 0; i < commits; ++i)
      EXPECT_NE(verdict(without("commit", i), math), "") << "commit " << i << " is missing";
    for (int i = 0; i < 2 * commits; ++i)
      EXPECT_NE(verdict(without("copy", i), math), "") << "copy " << i << " is missing";
    for (const int barrier : {0, 1})
      EXPECT_THAT(verdict(damaged(*gpu,
                                  [barrier, n = 0](const Stmt& s) mutable {
                                    return s->kind == StmtKind::kBarrier && n++ == barrier ? Stmt() : s;
                                  }),
                          math),
                  HasSubstr("race"))
          << "barrier " << barrier;
    // The other set of fragments is multiplied.
    const GpuProgram other = damaged(*gpu, [&](const Stmt& s) {
      if (s->kind != StmtKind::kIntrinsic || s->name != "mma.bfloat16.mk.kn") return s;
      auto node = std::make_shared<StmtNode>(*s);
      std::vector<Expr> at = node->operands[1]->operands;
      at[0] = 1 - at[0];
      node->operands[1] = load(node->operands[1]->buffer, std::move(at));
      return Stmt(std::move(node));
    });
    EXPECT_NE(verdict(other, math), "") << "fragments of another step";
  }
}

}  // namespace
}  // namespace tuner
