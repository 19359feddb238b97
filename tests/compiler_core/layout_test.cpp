// Layouts of shared memory: every element has a place of its own, vectors stay whole, and rows meet different
// banks.
#include "compiler_core/ir/layout.h"

#include <gmock/gmock.h>

#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "compiler_core/arith/simplify.h"

namespace tuner {
namespace {

using ::testing::HasSubstr;

int64_t place(const BufferNode& b, const std::vector<int64_t>& at) {
  std::vector<Expr> indices;
  for (const int64_t i : at) indices.emplace_back(i);
  int64_t offset = -1;
  EXPECT_TRUE(is_const_int(simplify(storage_offset(b, indices)), &offset));
  return offset;
}

Buffer shared(const std::string& layout, std::vector<int64_t> shape, DType dtype = DType::kBFloat16) {
  auto node =
      std::make_shared<BufferNode>(*make_buffer("tile", dtype, std::move(shape), MemoryScope::kShared));
  node->layout = layout;
  return node;
}

TEST(Layout, EveryElementHasAPlaceOfItsOwn) {
  for (const char* const layout :
       {"", "pad:8", "pad:1", "xor:8,4", "xor:8,4,2", "xor:4,8", "xor:1,32", "xor:8,2,4", "groups:pad:4",
        "groups:pad:1", "groups:xor:4,4", "groups:xor:1,16,2"}) {
    const Buffer b = shared(layout, {3, 16, 32});
    ASSERT_TRUE(check_layout(layout, b->shape)) << layout;
    std::set<int64_t> places;
    for (int64_t s = 0; s < 3; ++s)
      for (int64_t r = 0; r < 16; ++r)
        for (int64_t c = 0; c < 32; ++c) {
          const int64_t at = place(*b, {s, r, c});
          EXPECT_TRUE(at >= 0 && at < storage_elements(*b)) << layout << ": " << at;
          EXPECT_TRUE(places.insert(at).second) << layout << " puts two elements at " << at;
          const int64_t unit = std::min<int64_t>(8, contiguous_elements(*b));
          EXPECT_EQ(at, place(*b, {s, r, c - c % unit}) + c % unit) << layout;
        }
  }
}

// What ldmatrix wants: eight rows of 16 bytes that lie in all 32 banks. Rows of 32, 64 and 128 elements of 16
// bits.
TEST(Layout, EightRowsOfAUnitMeetAllBanks) {
  for (const auto& [columns, layout] : std::vector<std::pair<int64_t, std::string>>{{32, "xor:8,4,2"},
                                                                                    {64, "xor:8,8"},
                                                                                    {128, "xor:8,8"},
                                                                                    {16, "xor:8,2,4"},
                                                                                    {32, "pad:8"},
                                                                                    {64, "pad:8"}}) {
    const Buffer b = shared(layout, {64, columns});
    for (int64_t first = 0; first < 64; first += 8)
      for (int64_t unit = 0; unit < columns / 8; ++unit) {
        std::set<int64_t> banks;
        for (int64_t r = 0; r < 8; ++r) banks.insert(place(*b, {first + r, unit * 8}) * 2 / 16 % 8);
        EXPECT_EQ(banks.size(), 8u) << layout << " of " << columns << ", rows from " << first;
      }
  }
  std::set<int64_t> plain;
  for (int64_t r = 0; r < 8; ++r) plain.insert(place(*shared("", {64, 32}), {r, 0}) * 2 / 16 % 8);
  EXPECT_EQ(plain.size(), 2u) << "rows of 64 bytes as they come: four conflicts";
}

// Bytes in groups of four lie as words do.
TEST(Layout, AGroupLiesAsAnElementDoes) {
  for (const std::string of : {"pad:1", "pad:4", "xor:4,8", "xor:4,4,2"}) {
    const Buffer words = shared(of, {2, 8, 32}, DType::kInt32);
    const Buffer bytes = shared("groups:" + of, {2, 8, 32, 4}, DType::kInt8);
    ASSERT_TRUE(check_layout(bytes->layout, bytes->shape)) << of;
    EXPECT_EQ(storage_elements(*bytes), 4 * storage_elements(*words)) << of;
    EXPECT_EQ(contiguous_elements(*bytes), 4 * contiguous_elements(*words)) << of;
    EXPECT_EQ(reorders_rows(*bytes), reorders_rows(*words)) << of;
    for (int64_t r = 0; r < 8; ++r)
      for (int64_t c = 0; c < 32; ++c)
        for (int64_t e = 0; e < 4; ++e)
          EXPECT_EQ(place(*bytes, {1, r, c, e}), 4 * place(*words, {1, r, c}) + e) << of;
  }
}

TEST(Layout, NumbersLieAsExpressionsDo) {
  for (const std::string of : {"", "pad:4", "xor:8,4", "xor:4,4,2", "groups:pad:1", "groups:xor:4,2"}) {
    const Buffer b = of.starts_with("groups") ? shared(of, {2, 8, 16, 4}) : shared(of, {2, 4, 8, 32});
    for (int64_t e = 0; e < b->elements(); e += 7) {
      std::vector<int64_t> at(4);
      int64_t rest = e;
      for (size_t d = 4; d-- > 0; rest /= b->shape[d]) at[d] = rest % b->shape[d];
      EXPECT_EQ(storage_offsets(*b)(at), place(*b, {at[0], at[1], at[2], at[3]})) << of << " " << e;
    }
  }
}

TEST(Layout, WhatItIsNotIsSaid) {
  const auto refusal = [](const char* layout, std::vector<int64_t> shape = {16, 32}) {
    return check_layout(layout, shape).message();
  };
  EXPECT_THAT(refusal("xor:8"), HasSubstr("expected pad:P, xor:V,R or xor:V,R,S"));
  EXPECT_THAT(refusal("xor:8,4,2,1"), HasSubstr("is not known"));
  EXPECT_THAT(refusal("groups:"), HasSubstr("is not known"));
  EXPECT_THAT(refusal("groups:groups:pad:1"), HasSubstr("is not known"));
  EXPECT_THAT(refusal("groups:pad:1", {16}), HasSubstr("needs two dimensions"));
  EXPECT_THAT(refusal("groups:xor:4,8", {4, 16, 4}),
              HasSubstr("the last dimension, 16, is not a multiple of 32"));
  EXPECT_THAT(refusal("xor:8,4,"), HasSubstr("is not known"));
  EXPECT_THAT(refusal("pad:-1"), HasSubstr("padding in 0..1024"));
  EXPECT_THAT(refusal("pad:1025"), HasSubstr("padding in 0..1024"));
  EXPECT_EQ(refusal("pad:1024"), "");
  EXPECT_THAT(refusal("xor:8,4,3"), HasSubstr("must be powers of two"));
  EXPECT_THAT(refusal("xor:8,0"), HasSubstr("must be powers of two"));
  EXPECT_THAT(refusal("xor:8,8"), HasSubstr("the last dimension, 32, is not a multiple of 64"));
}

}  // namespace
}  // namespace tuner
