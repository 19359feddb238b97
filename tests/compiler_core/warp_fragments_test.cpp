// Tensor cores: which lane holds what, against the words of the PTX manual.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "compiler_core/arith/simplify.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/intrinsic.h"

namespace tuner {
namespace {

using ::testing::HasSubstr;

std::pair<int64_t, int64_t> at(const IntrinsicOperand& o, int64_t lane, int64_t reg) {
  std::pair<int64_t, int64_t> place;
  const std::vector<Expr> indices = o.layout(Expr(lane), Expr(reg));
  EXPECT_EQ(indices.size(), 2u);
  EXPECT_TRUE(is_const_int(simplify(indices[0]), &place.first));
  EXPECT_TRUE(is_const_int(simplify(indices[1]), &place.second));
  return place;
}

// "Matrix Fragments for mma.m16n8k16 with floating point type", with the manual's own conditions.
TEST(WarpFragments, FragmentsLieAsTheManualSays) {
  const Intrinsic& mma = *find_intrinsic("mma.bfloat16.mk.kn");
  for (int64_t lane = 0; lane < 32; ++lane) {
    const int64_t group = lane >> 2, in_group = lane % 4;
    for (int64_t i = 0; i < 8; ++i) {
      const int64_t row = (i < 2 || (i >= 4 && i < 6)) ? group : group + 8;
      const int64_t column = i < 4 ? in_group * 2 + (i & 1) : in_group * 2 + (i & 1) + 8;
      EXPECT_EQ(at(mma.operands[1], lane, i), std::pair(row, column)) << "a" << i << " of lane " << lane;
    }
    for (int64_t i = 0; i < 4; ++i) {
      const int64_t row = i < 2 ? in_group * 2 + (i & 1) : in_group * 2 + (i & 1) + 8;
      EXPECT_EQ(at(mma.operands[2], lane, i), std::pair(row, group)) << "b" << i << " of lane " << lane;
      EXPECT_EQ(at(find_intrinsic("mma.bfloat16.mk.nk")->operands[2], lane, i), std::pair(group, row));
      EXPECT_EQ(at(mma.operands[0], lane, i), std::pair(i < 2 ? group : group + 8, in_group * 2 + (i & 1)))
          << "c" << i << " of lane " << lane;
    }
  }
}

// "Matrix Fragments for mma.m16n8k32", with the manual's own conditions: .u8 and .s8.
TEST(WarpFragments, FragmentsOfBytesLieAsTheManualSays) {
  const Intrinsic& mma = *find_intrinsic("mma.uint8.int8.mk.nk");
  for (int64_t lane = 0; lane < 32; ++lane) {
    const int64_t group = lane >> 2, in_group = lane % 4;
    for (int64_t i = 0; i < 16; ++i) {
      const int64_t row = i < 4 || (i >= 8 && i < 12) ? group : group + 8;
      const int64_t column = in_group * 4 + (i & 3) + (i < 8 ? 0 : 16);
      EXPECT_EQ(at(mma.operands[1], lane, i), std::pair(row, column)) << "a" << i << " of lane " << lane;
    }
    for (int64_t i = 0; i < 8; ++i) {
      const int64_t row = in_group * 4 + (i & 3) + (i < 4 ? 0 : 16);
      EXPECT_EQ(at(mma.operands[2], lane, i), std::pair(group, row)) << "b" << i << " of lane " << lane;
    }
    for (int64_t i = 0; i < 4; ++i)
      EXPECT_EQ(at(mma.operands[0], lane, i), std::pair(i < 2 ? group : group + 8, in_group * 2 + (i & 1)));
  }
}

// "Matrix Fragments for mma.m16n8k8", .tf32, with the manual's own conditions: registers 4 to 7 of A, 2 and 3
// of B are those of the second mma, 8 terms behind.
TEST(WarpFragments, FragmentsOfTf32LieAsTheManualSays) {
  for (const std::string name : {"mma.tf32", "mma.tf32x3"}) {
    const Intrinsic &mma = *find_intrinsic(name + ".mk.kn"), &turned = *find_intrinsic(name + ".km.nk");
    EXPECT_EQ(mma.operands[1].registers, 8);
    EXPECT_EQ(mma.operands[2].registers, 4);
    for (int64_t lane = 0; lane < 32; ++lane) {
      const int64_t group = lane >> 2, in_group = lane % 4;
      for (int64_t step = 0; step < 2; ++step) {
        for (int64_t i = 0; i < 4; ++i) {
          const int64_t row = i == 0 || i == 2 ? group : group + 8;
          const int64_t column = (i < 2 ? in_group : in_group + 4) + 8 * step;
          EXPECT_EQ(at(mma.operands[1], lane, 4 * step + i), std::pair(row, column)) << "a" << i;
          EXPECT_EQ(at(turned.operands[1], lane, 4 * step + i), std::pair(column, row)) << "a" << i;
        }
        for (int64_t i = 0; i < 2; ++i) {
          const int64_t row = (i == 0 ? in_group : in_group + 4) + 8 * step;
          EXPECT_EQ(at(mma.operands[2], lane, 2 * step + i), std::pair(row, group)) << "b" << i;
          EXPECT_EQ(at(turned.operands[2], lane, 2 * step + i), std::pair(group, row)) << "b" << i;
        }
      }
      for (int64_t i = 0; i < 4; ++i)
        EXPECT_EQ(at(mma.operands[0], lane, i), std::pair(i < 2 ? group : group + 8, in_group * 2 + (i & 1)));
    }
  }
}

// ldmatrix: thread 8 m + r brings row r of matrix m; afterwards register m of thread 4 r + c holds elements
// 2c and 2c + 1 of that row, with .trans elements r of rows 2c and 2c + 1.
TEST(WarpFragments, MatricesAreLoadedAsTheManualSays) {
  for (const char* const name :
       {"ldmatrix.bfloat16.mk", "ldmatrix.bfloat16.km", "ldmatrix.bfloat16.kn", "ldmatrix.bfloat16.nk",
        "ldmatrix.uint8.mk", "ldmatrix.int8.nk", "ldmatrix.float32.nk"}) {
    const Intrinsic& load = *find_intrinsic(name);
    const int64_t e = 4 / dtype_bytes(load.operands[0].dtype);  // elements of a register
    const bool transposed = load.cuda_helper.find(".trans") != std::string::npos;
    for (int64_t lane = 0; lane < 32; ++lane)
      for (int64_t reg = 0; reg < 4 * e; ++reg) {
        const int64_t matrix = reg / e, r = lane / 4, c = e * (lane % 4) + reg % e;
        const int64_t row = transposed ? c : r, element = transposed ? r : c;
        EXPECT_EQ(at(load.operands[0], lane, reg), at(load.operands[1], 8 * matrix + row, element))
            << name << ", register " << reg << " of lane " << lane;
      }
  }
}

// The tile of float32 takes two: four registers each.
TEST(WarpFragments, MatricesOfFloat32AreLoadedAsTheManualSays) {
  const Intrinsic& load = *find_intrinsic("ldmatrix.float32.mk");
  EXPECT_EQ(load.cuda, "load_matrices($0, $1);\nload_matrices($0 + 4, $1:4);");
  for (int64_t lane = 0; lane < 32; ++lane)
    for (int64_t reg = 0; reg < 8; ++reg)
      EXPECT_EQ(at(load.operands[0], lane, reg),
                at(load.operands[1], 8 * (reg % 4) + lane / 4, reg / 4 * 4 + lane % 4))
          << "register " << reg << " of lane " << lane;
}

// tf32 has 10 bits of 23 behind the leading one: the other 13 are cleared, and go to the rest. The product of
// both rests, 2^-22 of the whole, is left out.
TEST(WarpFragments, ThreeTermsAreTheHighBitsAndTheRest) {
  const std::string helper = find_intrinsic("mma.tf32x3.mk.kn")->cuda_helper;
  for (const std::string of : {"a", "b"}) {
    EXPECT_THAT(helper, HasSubstr(str("high_", of, "[i] = __int_as_float(__float_as_int(", of, "[i]) & ",
                                      -(1 << 13), ");")));
    EXPECT_THAT(helper, HasSubstr(str("rest_", of, "[i] = ", of, "[i] - high_", of, "[i];")));
  }
  size_t at = 0;
  for (const char* step : {"_step(sums, rest_a, high_b);", "_step(sums, rest_a + 4, high_b + 2);",
                           "_step(sums, high_a, rest_b);", "_step(sums, high_a + 4, rest_b + 2);",
                           "_step(sums, high_a, high_b);", "_step(sums, high_a + 4, high_b + 2);"}) {
    at = helper.find(step, at);
    ASSERT_NE(at, std::string::npos) << step << " in its place of\n" << helper;
  }
  EXPECT_EQ(helper.find("rest_a, rest_b"), std::string::npos) << helper;
  EXPECT_THAT(find_intrinsic("mma.tf32.mk.kn")->cuda_helper, HasSubstr("_step(c, a + 4, b + 2);"));
}

// Groups of W lanes meet at distances W / 2 and less; the functions are those that keep a NaN.
TEST(WarpFragments, ButterfliesGoOverTheirOwnLanesAndKeepNans) {
  EXPECT_EQ(find_intrinsic("warp_allreduce.sum.8")->cuda,
            "for (int d = 4; d > 0; d /= 2) *$0 = *$0 + __shfl_xor_sync(0xffffffffu, *$0, d);");
  EXPECT_EQ(find_intrinsic("warp_allreduce.max.32")->cuda,
            "for (int d = 16; d > 0; d /= 2) *$0 = ieee_max(*$0, __shfl_xor_sync(0xffffffffu, *$0, d));");
  EXPECT_THAT(find_intrinsic("warp_allreduce.min.2")->cuda,
              HasSubstr("(int d = 1; d > 0; d /= 2) *$0 = ieee_min("));
}

// Intel's and Arm's names: tdp(b|f)(s|u)... of A and then B; usmmla of unsigned by signed.
TEST(WarpFragments, TilesOfCpusNameTheFeaturesOfTheirInstructions) {
  using ::testing::ElementsAre;
  const struct {
    const char *name, *llvm, *unit, *feature;
  } kProducts[] = {{"amx.float16.16", "llvm.x86.tdpfp16ps", "amx-tile", "amx-fp16"},
                   {"amx.bfloat16.3", "llvm.x86.tdpbf16ps", "amx-tile", "amx-bf16"},
                   {"amx.uint8.int8.16", "llvm.x86.tdpbusd", "amx-tile", "amx-int8"},
                   {"amx.int8.uint8.1", "llvm.x86.tdpbsud", "amx-tile", "amx-int8"},
                   {"mmla.uint8.int8.2", "llvm.aarch64.neon.usmmla", "neon", "i8mm"},
                   {"mmla.uint8.uint8.2", "llvm.aarch64.neon.ummla", "neon", "i8mm"},
                   {"mmla.int8.int8.2", "llvm.aarch64.neon.smmla", "neon", "i8mm"},
                   {"mmla.bfloat16.2", "llvm.aarch64.neon.bfmmla", "neon", "bf16"}};
  for (const auto& [name, llvm, unit, feature] : kProducts) {
    const Intrinsic* const i = find_intrinsic(name);
    ASSERT_NE(i, nullptr) << name;
    EXPECT_EQ(i->llvm, llvm) << name;
    EXPECT_THAT(i->features, ElementsAre(unit, feature)) << name;
  }
  EXPECT_EQ(find_intrinsic("mmla.int8.uint8.2"), nullptr) << "there is no such instruction";
}

}  // namespace
}  // namespace tuner
