// Tiles of vectors (LoopKind::kVectorRows): what is contiguous along the rows is read and written by vectors
// of rows and transposed in registers. Compared with the oracle for vectors of 512, 256 and 128 bits.
#include <gmock/gmock.h>

#include "tests/compiler_core/kernel_testing.h"

namespace tuner {
namespace {

using namespace tuner::testing;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr LoopKind kRows = LoopKind::kVectorRows, kLanes = LoopKind::kVectorized;
constexpr const char* kTargets[] = {"llvm -mcpu=x86-64-v4 -threads=1", "llvm -mcpu=haswell -threads=1",
                                    "llvm -mcpu=x86-64 -threads=1"};

Target target(const char* name) { return parse_target(name).value(); }

::testing::AssertionResult right_everywhere(const Program& p) {
  for (const char* name : kTargets) {
    if (!runs_here(target(name))) continue;
    ::testing::AssertionResult result = matches_oracle(p, 1, 2e-5, 1, target(name));
    if (!result) return result << "\non " << name;
  }
  return ::testing::AssertionSuccess();
}

// Instructions of `mnemonic` in the kernel as assembly.
int count_in_asm(const Program& p, const char* target_name, std::string_view mnemonic) {
  const std::string text = emit_asm(p, target(target_name)).value();
  int n = 0;
  for (size_t at = text.find(mnemonic); at != std::string::npos; at = text.find(mnemonic, at + 1)) ++n;
  return n;
}

// y[lane, row] = x[row, lane] or y[row, lane] = x[lane, row]: one side lies across the tile.
Program transpose(int64_t rows, int64_t lanes, bool store_across, DType dtype = DType::kFloat32) {
  const std::vector<int64_t> straight{rows, lanes}, across{lanes, rows};
  const Buffer x = input("x", store_across ? straight : across, dtype),
               y = output("y", store_across ? across : straight, dtype);
  return {"transpose", {x, y}, loop("r", rows, kRows, [&](Expr r) {
            return loop("l", lanes, kLanes, [&](Expr l) {
              return store_across ? make_store(y, {l, r}, load(x, {r, l}))
                                  : make_store(y, {r, l}, load(x, {l, r}));
            });
          })};
}

TEST(CodegenTile, TransposesOfEverySize) {
  for (const bool store_across : {false, true})
    for (const int64_t rows : {1, 3, 4, 8, 13, 16})
      for (const int64_t lanes : {1, 2, 3, 8, 14, 17, 24, 31})
        ASSERT_TRUE(right_everywhere(transpose(rows, lanes, store_across))) << rows << " x " << lanes;
}

// out[channel, pixel] = max(sum[pixel, channel] + bias[channel], 0): the tile of a convolution.
Program write_out(int64_t channels, int64_t pixels) {
  const Buffer sum = input("sum", {pixels, channels}), bias = input("bias", {channels}),
               out = output("out", {channels, pixels});
  return {"write_out", {sum, bias, out}, loop("c", channels, kRows, [&](Expr c) {
            return loop("p", pixels, kLanes, [&](Expr p) {
              const Expr value = load(sum, {p, c}) + load(bias, {c});
              return make_store(out, {c, p}, binary(BinaryOp::kMax, value, float_imm(0)));
            });
          })};
}

TEST(CodegenTile, TheLongerSideIsTheLanes) {
  for (const int64_t channels : {4, 8, 16, 20})
    for (const int64_t pixels : {1, 2, 3, 7, 16, 17})
      ASSERT_TRUE(right_everywhere(write_out(channels, pixels))) << channels << " x " << pixels;
  // 7 pixels of 16 channels are 7 sums, not 16.
  EXPECT_EQ(count_in_asm(write_out(16, 7), "llvm -mcpu=x86-64-v4 -threads=1", "vaddps"), 7);
  EXPECT_EQ(count_in_asm(write_out(16, 1), "llvm -mcpu=x86-64-v4 -threads=1", "vaddps"), 1);
  EXPECT_EQ(count_in_asm(write_out(16, 1), "llvm -mcpu=x86-64-v4 -threads=1", "vaddss"), 0);
}

TEST(CodegenTile, ElementsOfEightBytes) {
  for (const bool store_across : {false, true})
    for (const int64_t lanes : {1, 2, 5, 8, 16, 19})
      ASSERT_TRUE(right_everywhere(transpose(6, lanes, store_across, DType::kFloat64))) << lanes;
}

// 16 loads, 64 shuffles of two vectors, 16 stores, and nothing else that moves data.
TEST(CodegenTile, AFullTileIsShufflesOnly) {
  const Program p = transpose(16, 16, true);
  for (const char* name : kTargets) {
    EXPECT_EQ(count_in_asm(p, name, "gather"), 0) << name;
    EXPECT_EQ(count_in_asm(p, name, "scatter"), 0) << name;
    EXPECT_EQ(count_in_asm(p, name, "insertps"), 0) << name;
    EXPECT_EQ(count_in_asm(p, name, "extractps"), 0) << name;
  }
  const char* wide = kTargets[0];
  EXPECT_EQ(count_in_asm(p, wide, "vunpck"), 32);
  EXPECT_EQ(
      count_in_asm(p, wide, "vshuff") + count_in_asm(p, wide, "vperm") + count_in_asm(p, wide, "vinsert"),
      32);
  // LLVM is kept from looking for fewer.
  EXPECT_THAT(emit_llvm(p, target(wide)).value(), HasSubstr("call <16 x float> @llvm.arithmetic.fence"));
}

TEST(CodegenTile, TailsAreMaskedAndNotGathered) {
  for (const bool store_across : {false, true})
    for (const char* name : {kTargets[0], kTargets[1]}) {
      const Program p = transpose(13, 14, store_across);
      EXPECT_EQ(count_in_asm(p, name, "gather"), 0) << name;
      EXPECT_EQ(count_in_asm(p, name, "scatter"), 0) << name;
    }
}

// A register tile of a convolution, channels as vectors, written to an image with channels outermost.
Program store_tile(int64_t pixels, int64_t channels, int64_t real_pixels, int64_t real_channels) {
  const Buffer x = input("x", {pixels, channels}), y = output("y", {real_channels, real_pixels});
  const Buffer acc = scratch("acc", {pixels, channels}, MemoryScope::kRegister);
  Stmt fill = loop("w", pixels, LoopKind::kUnrolled, [&](Expr w) {
    return loop("c", channels, kLanes, [&](Expr c) { return make_store(acc, {w, c}, load(x, {w, c}) * 2); });
  });
  Stmt write = loop("c", channels, kRows, [&](Expr c) {
    return loop("w", pixels, kLanes, [&](Expr w) {
      return make_if(c < real_channels && w < real_pixels,
                     make_store(y, {c, w}, max(load(acc, {w, c}), float_imm(0))));
    });
  });
  return {"store_tile", {x, y}, make_allocate(acc, make_seq({fill, write}))};
}

TEST(CodegenTile, RegistersAreTransposedToo) {
  ASSERT_TRUE(right_everywhere(store_tile(14, 16, 14, 16)));
  ASSERT_TRUE(right_everywhere(store_tile(7, 16, 7, 16)));
  ASSERT_TRUE(right_everywhere(store_tile(6, 16, 5, 11)));
  ASSERT_TRUE(right_everywhere(store_tile(28, 8, 27, 8)));
  const std::string text = emit_llvm(store_tile(14, 16, 14, 16), target(kTargets[0])).value();
  EXPECT_THAT(text, Not(HasSubstr("scatter")));
  EXPECT_THAT(text, Not(HasSubstr("alloca")));
}

// An image in channel blocks with a border of zeros, from plain channels: conditions on rows, lanes and both.
Program pack_image(int64_t channels, int64_t width, int64_t pad, bool reads_below) {
  const int64_t blocks = (channels + 15) / 16, padded = width + 2 * pad, steps = (padded + 7) / 8;
  const Buffer x = input("x", {channels, width}), y = output("y", {blocks, padded, 16});
  return {"pack_image", {x, y}, loop("cb", blocks, [&](Expr cb) {
            return loop("wo", steps, [&](Expr wo) {
              return loop("w", 8, kRows, [&](Expr wi) {
                return loop("c", 16, kLanes, [&](Expr ci) {
                  const Expr w = wo * 8 + wi, c = cb * 16 + ci;
                  const Expr inside = c < channels && w >= pad && w < width + pad;
                  // A diagonal in place of zeros: not what a load leaves where it is masked.
                  const Expr below = select(wi < ci, float_imm(3), float_imm(0));
                  return make_if(w < padded, make_store(y, {cb, w, ci},
                                                        select(inside, load(x, {c, w - pad}),
                                                               reads_below ? below : float_imm(0))));
                });
              });
            });
          })};
}

TEST(CodegenTile, ConditionsBecomeMasks) {
  for (const bool reads_below : {false, true})
    for (const int64_t channels : {3, 16, 21})
      for (const int64_t width : {1, 6, 7, 17})
        ASSERT_TRUE(right_everywhere(pack_image(channels, width, 2, reads_below)))
            << channels << " x " << width;
  EXPECT_EQ(count_in_asm(pack_image(21, 17, 2, false), kTargets[0], "gather"), 0);
}

// The same load where two conditions hold, of which one would read out of bounds with the other's.
TEST(CodegenTile, OneLoadUnderTwoConditions) {
  const Buffer x = input("x", {9, 5}), y = output("y", {5, 9});
  const Program p{"twice", {x, y}, loop("r", 5, kRows, [&](Expr r) {
                    return loop("l", 9, kLanes, [&](Expr l) {
                      const Expr shared = load(x, {l, r});
                      return make_store(
                          y, {r, l},
                          select(l < r, shared, float_imm(0)) + select(l < 7, shared, float_imm(1)));
                    });
                  })};
  ASSERT_TRUE(right_everywhere(p));
}

// Several stores, broadcasts along either loop, operands that lie straight.
TEST(CodegenTile, OtherOperandsAreReadAsAlways) {
  const Buffer x = input("x", {19, 12}), bias = input("bias", {12}), scale = input("scale", {19}),
               straight = input("straight", {12, 19}), y = output("y", {12, 19}), z = output("z", {19, 12});
  const Program p{"mixed", {x, bias, scale, straight, y, z}, loop("r", 12, kRows, [&](Expr r) {
                    return loop("l", 19, kLanes, [&](Expr l) {
                      const Expr value = load(x, {l, r}) * load(scale, {l}) + load(bias, {r});
                      return make_seq({make_store(y, {r, l}, value + load(straight, {r, l})),
                                       make_if(l >= r, make_store(z, {l, r}, load(straight, {r, l}))),
                                       make_if(l < r, make_store(z, {l, r}, load(bias, {r})))});
                    });
                  })};
  ASSERT_TRUE(right_everywhere(p));
}

TEST(CodegenTile, RefusesRowsThatAreNotAroundVectors) {
  const Buffer x = input("x", {4, 4}), y = output("y", {4, 4});
  const Program p{"bare", {x, y}, loop("r", 4, kRows, [&](Expr r) {
                    return loop("l", 4, [&](Expr l) { return make_store(y, {r, l}, load(x, {r, l})); });
                  })};
  EXPECT_THAT(compile(p, host_target()).message(),
              HasSubstr("the loop r of vector rows is not directly around a vectorized loop"));
}

}  // namespace
}  // namespace tuner
