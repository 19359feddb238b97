// Tensor cores: which lane holds what, against the words of the PTX manual.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "compiler_core/arith/simplify.h"
#include "compiler_core/ir/intrinsic.h"

namespace tuner {
namespace {

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

// "Matrix Fragments for mma.m16n8k8", .tf32, with the manual's own conditions: registers 4 to 7 of A, 2 and 3 of B are those of the
// second mma, 8 terms behind.
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

// ldmatrix: thread 8 m + r brings row r of matrix m; afterwards register m of thread 4 r + c holds elements 2c and 2c + 1 of that row,
// with .trans elements r of rows 2c and 2c + 1.
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

}  // namespace
}  // namespace tuner
