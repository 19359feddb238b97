// Operators that select, count and rearrange, and bits of integers. Answers are ONNX's examples, or written
// out by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "compiler_core/graph/passes.h"
#include "tests/compiler_core/graph_answer.h"

namespace tuner::graph {
namespace {

using testing::Answer;
using testing::Dims;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using testing::floats;
using ::testing::HasSubstr;
using testing::list;
using testing::Numbers;
using testing::of;
using testing::Operand;
using ::testing::Pointwise;
using testing::run;
using testing::word;

Operand constant(DType dtype, Dims shape, Numbers numbers) {
  return {{dtype, std::move(shape)}, std::move(numbers), true};
}
Operand integers(DType dtype, Numbers numbers) {
  return {{dtype, {std::ssize(numbers)}}, std::move(numbers)};
}
auto near(const Numbers& expected) { return Pointwise(DoubleNear(1e-5), expected); }

TEST(GraphSelection, CompressTakesWhatAKnownConditionNames) {
  const Operand x = floats({3, 2}, {1, 2, 3, 4, 5, 6});
  const Operand condition = constant(DType::kBool, {3}, {0, 1, 1});
  EXPECT_THAT(run(11, "Compress", {x, condition}, {{"axis", of(0)}}).numbers, ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(run(11, "Compress", {x, constant(DType::kBool, {2}, {0, 1})}, {{"axis", of(-1)}}).numbers,
              ElementsAre(2, 4, 6));
  EXPECT_THAT(run(11, "Compress", {x, constant(DType::kBool, {5}, {0, 1, 0, 0, 1})}).numbers,
              ElementsAre(2, 5));
  EXPECT_THAT(run(11, "Compress", {x, {{DType::kBool, {3}}, {0, 1, 1}}}).refusal,
              HasSubstr("expected a constant"));
  EXPECT_THAT(run(11, "Compress", {x, constant(DType::kBool, {2}, {0, 0})}, {{"axis", of(1)}}).shape,
              ElementsAre(3, 0));
  EXPECT_THAT(run(11, "Compress", {x, constant(DType::kBool, {4}, {0, 0, 0, 1})}, {{"axis", of(0)}}).refusal,
              HasSubstr("element 3 of the condition is true, and the data have 3"));
}

TEST(GraphSelection, NonZeroListsPlacesByDimension) {
  const Answer places =
      run(13, "NonZero", {constant(DType::kFloat32, {2, 3}, {1, 0, -2, 0, 0, std::nan("")})});
  EXPECT_THAT(places.shape, ElementsAre(2, 3));
  EXPECT_THAT(places.numbers, ElementsAre(0, 0, 1, 0, 2, 2));
  EXPECT_THAT(run(13, "NonZero", {constant(DType::kFloat32, {}, {4})}).shape, ElementsAre(1, 1));
  EXPECT_THAT(run(13, "NonZero", {floats({2}, {1, 0})}).refusal, HasSubstr("expected a constant"));
  EXPECT_THAT(run(13, "NonZero", {constant(DType::kFloat32, {2}, {0, 0})}).shape, ElementsAre(1, 0));
}

// Of a constant that is too large to be computed as the model is read, a pass does it.
TEST(GraphSelection, LargeConstantsAreListedByAPass) {
  GraphBuilder b("test", interpret);
  const ValueId x = b.constant("c", {DType::kBool, {10000}}, Constant::of(Numbers(10000, 1), DType::kBool));
  const auto made = b.add({.name = "n", .op = "NonZero", .inputs = {x}}, {"y"});
  ASSERT_TRUE(made.is_ok()) << made.message();
  Graph graph = b.finish(*made);
  ASSERT_EQ(graph.nodes.size(), 1U);
  ASSERT_TRUE(fold_constants(graph, interpret).is_ok());
  EXPECT_TRUE(graph.nodes.empty());
  EXPECT_EQ(graph[graph.outputs[0]].constant->integers(DType::kInt64).back(), 9999);
  EXPECT_THAT(run(11, "Compress",
                  {floats({2000}, Numbers(2000, 1)), constant(DType::kBool, {2000}, Numbers(2000, 1))})
                  .refusal,
              HasSubstr("a condition of 2000 elements, expected at most 1024"));
}

// The examples of the standard.
TEST(GraphSelection, UniqueGivesValuesPlacesAndCounts) {
  const Operand x = constant(DType::kFloat32, {6}, {2, 1, 1, 3, 4, 3});
  const auto all = [](const Operand& operand, const Attributes& attributes) {
    std::vector<Numbers> results;
    for (size_t k = 0; k < 4; ++k) results.push_back(run(11, "Unique", {operand}, attributes, 4, k).numbers);
    return results;
  };
  EXPECT_THAT(all(x, {{"sorted", of(0)}}), ElementsAre(Numbers{2, 1, 3, 4}, Numbers{0, 1, 3, 4},
                                                       Numbers{0, 1, 1, 2, 3, 2}, Numbers{1, 2, 2, 1}));
  EXPECT_THAT(all(x, {}), ElementsAre(Numbers{1, 2, 3, 4}, Numbers{1, 0, 3, 4}, Numbers{1, 0, 0, 2, 3, 2},
                                      Numbers{2, 1, 2, 1}));
  const Operand rows = constant(DType::kFloat32, {3, 3}, {1, 0, 0, 1, 0, 0, 2, 3, 4});
  EXPECT_THAT(all(rows, {{"axis", of(0)}}),
              ElementsAre(Numbers{1, 0, 0, 2, 3, 4}, Numbers{0, 2}, Numbers{0, 0, 1}, Numbers{2, 1}));
  const Operand columns = constant(DType::kFloat32, {2, 3}, {3, 1, 3, 0, 5, 0});
  EXPECT_THAT(all(columns, {{"axis", of(-1)}}),
              ElementsAre(Numbers{1, 3, 5, 0}, Numbers{1, 0}, Numbers{1, 0, 1}, Numbers{1, 2}));
  EXPECT_THAT(run(11, "Unique", {floats({2}, {1, 2})}).refusal, HasSubstr("expected a constant"));
}

TEST(GraphSelection, ScatteredUpdatesMayBeMultiplied) {
  const Operand places{{DType::kInt64, {5}}, {1, 3, 1, 0, 1}}, updates = floats({5}, {2, 3, 5, 7, -1});
  EXPECT_THAT(run(18, "ScatterElements", {floats({4}, {1, 10, 100, 1000}), places, updates},
                  {{"reduction", word("mul")}})
                  .numbers,
              ElementsAre(7, -100, 100, 3000));
  const Operand rows{{DType::kInt64, {2, 1}}, {1, 1}};
  EXPECT_THAT(run(16, "ScatterND", {floats({2, 2}, {1, 2, 3, 4}), rows, floats({2, 2}, {2, 3, 5, 7})},
                  {{"reduction", word("mul")}})
                  .numbers,
              ElementsAre(1, 2, 30, 84));
  EXPECT_THAT(run(16, "ScatterND", {floats({2, 2}, {1, 2, 3, 4}), rows, floats({2, 2}, {2, 3, 5, 7})},
                  {{"reduction", word("xor")}})
                  .refusal,
              HasSubstr("reduction \"xor\" is not served"));
}

TEST(GraphSelection, CenterCropPadCutsAndFillsAroundTheMiddle) {
  const Operand x = floats({5}, {1, 2, 3, 4, 5});
  EXPECT_THAT(run(18, "CenterCropPad", {x, list({2})}).numbers, ElementsAre(2, 3));
  EXPECT_THAT(run(18, "CenterCropPad", {x, list({3})}).numbers, ElementsAre(2, 3, 4));
  EXPECT_THAT(run(18, "CenterCropPad", {x, list({8})}).numbers, ElementsAre(0, 1, 2, 3, 4, 5, 0, 0));
  const Operand image = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(run(18, "CenterCropPad", {image, list({4, 1})}).numbers, ElementsAre(0, 2, 5, 0));
  EXPECT_THAT(run(18, "CenterCropPad", {image, list({1})}, {{"axes", Dims{-1}}}).numbers, ElementsAre(2, 5));
  EXPECT_THAT(run(18, "CenterCropPad", {image, list({1})}).refusal, HasSubstr("1 extents for 2 axes"));
}

TEST(GraphSelection, BlocksAddUpToTheirImage) {
  // The example of the standard: blocks without overlap.
  Numbers columns;
  for (int k = 1; k <= 25; ++k) columns.push_back(k);
  const Answer image = run(18, "Col2Im", {floats({1, 5, 5}, columns), list({5, 5}), list({1, 5})});
  EXPECT_THAT(image.shape, ElementsAre(1, 1, 5, 5));
  EXPECT_THAT(image.numbers, ElementsAre(1, 6, 11, 16, 21, 2, 7, 12, 17, 22, 3, 8, 13, 18, 23, 4, 9, 14, 19,
                                         24, 5, 10, 15, 20, 25));
  // Each pixel as often as windows hold it: 3x3 windows with padding 1, all ones.
  const Answer counts = run(18, "Col2Im", {floats({1, 9, 9}, Numbers(81, 1)), list({3, 3}), list({3, 3})},
                            {{"pads", Dims{1, 1, 1, 1}}});
  EXPECT_THAT(counts.numbers, ElementsAre(4, 6, 4, 6, 9, 6, 4, 6, 4));
  // In one dimension with a stride and a dilation: block k has elements 2k and 2k + 2.
  const Answer line = run(18, "Col2Im", {floats({1, 2, 2}, {1, 2, 10, 20}), list({5}), list({2})},
                          {{"strides", Dims{2}}, {"dilations", Dims{2}}});
  EXPECT_THAT(line.numbers, ElementsAre(1, 0, 12, 0, 20));
  EXPECT_THAT(
      run(18, "Col2Im", {floats({1, 2, 3}, Numbers(6, 1)), list({5}), list({2})}, {{"strides", Dims{2}}})
          .refusal,
      HasSubstr("blocks are float32[1, 2, 3], expected [N, C * 2, 2]"));
}

TEST(GraphSelection, UnpoolingPutsElementsWhereTheyWere) {
  const Operand x = floats({1, 1, 2, 2}, {1, 2, 3, 4}), places{{DType::kInt64, {1, 1, 2, 2}}, {5, 7, 13, 15}};
  const Attributes attributes{{"kernel_shape", Dims{2, 2}}, {"strides", Dims{2, 2}}};
  EXPECT_THAT(run(11, "MaxUnpool", {x, places}, attributes).numbers,
              ElementsAre(0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 3, 0, 4));
  const Answer larger = run(11, "MaxUnpool", {x, places, list({1, 1, 5, 5})}, attributes);
  EXPECT_THAT(larger.numbers,
              ElementsAre(0, 0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 4, 0, 0, 0, 0, 0, 0));
  // Twice the same place: the last one; a place beyond the image: none.
  const Operand strange{{DType::kInt64, {1, 1, 2, 2}}, {3, 3, -1, 99}};
  EXPECT_THAT(run(11, "MaxUnpool", {x, strange}, attributes).numbers,
              ElementsAre(0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(run(11, "MaxUnpool", {x, places, list({1, 1, 3, 5})}, attributes).refusal,
              HasSubstr("output_shape is smaller than"));
}

TEST(GraphSelection, NormsTakeAnyPower) {
  const Operand x = floats({1, 1, 2, 2}, {3, -4, 0, 1});
  EXPECT_THAT(run(7, "GlobalLpPool", {x}).numbers, near({std::sqrt(26.0)}));
  EXPECT_THAT(run(7, "GlobalLpPool", {x}, {{"p", of(1)}}).numbers, near({8}));
  EXPECT_THAT(run(7, "GlobalLpPool", {x}, {{"p", of(3)}}).numbers, near({std::cbrt(27.0 + 64 + 1)}));
  EXPECT_THAT(run(11, "LpPool", {x}, {{"p", of(3)}, {"kernel_shape", Dims{1, 2}}}).numbers,
              near({std::cbrt(91.0), 1}));
  EXPECT_THAT(run(7, "GlobalLpPool", {x}, {{"p", of(0)}}).refusal, HasSubstr("p is 0, expected 1 to 1024"));
}

// By the rule of Sarrus, and where rows must be exchanged.
TEST(GraphSelection, DeterminantsOfSmallMatrices) {
  EXPECT_THAT(run(11, "Det", {floats({2, 2}, {1, 2, 3, 4})}).numbers, near({-2}));
  EXPECT_THAT(run(11, "Det", {floats({2, 1, 1}, {5, -3})}).numbers, near({5, -3}));
  EXPECT_THAT(run(11, "Det", {floats({3, 3}, {0, 2, 1, 3, 0, 4, 5, 6, 0})}).numbers, near({40 + 18}));
  EXPECT_THAT(
      run(11, "Det", {floats({2, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 0, 0, 1, 1, 1, 2, 3, 4})}).numbers,
      near({0, 0}));
  EXPECT_THAT(run(11, "Det", {floats({4, 4}, {0, 0, 0, 2, 0, 0, 3, 0, 0, 5, 0, 0, 7, 0, 0, 0})}).numbers,
              near({210}));
  EXPECT_TRUE(std::isnan(run(11, "Det", {floats({2, 2}, {1, std::nan(""), 3, 4})}).numbers[0]));
  EXPECT_THAT(run(11, "Det", {floats({2, 3}, Numbers(6, 1))}).refusal, HasSubstr("needs square matrices"));
}

// The standard's example of a batch, uni- and bigrams with 5 skips.
TEST(GraphSelection, NGramsAreCountedWithTheirSkips) {
  const Operand text{{DType::kInt32, {2, 6}}, {1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8}};
  Attributes attributes{{"mode", word("TF")},
                        {"min_gram_length", of(2)},
                        {"max_gram_length", of(2)},
                        {"max_skip_count", of(5)},
                        {"ngram_counts", Dims{0, 4}},
                        {"ngram_indexes", Dims{0, 1, 2, 3, 4, 5, 6}},
                        {"pool_int64s", Dims{2, 3, 5, 4, 5, 6, 7, 8, 6, 7}}};
  EXPECT_THAT(run(9, "TfIdfVectorizer", {text}, attributes).numbers,
              ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1));
  attributes["min_gram_length"] = int64_t{1};
  EXPECT_THAT(run(9, "TfIdfVectorizer", {text}, attributes).numbers,
              ElementsAre(0, 3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 1, 1));
  attributes["mode"] = std::string("IDF");
  attributes["weights"] = std::vector<double>{2, 4, 8, 16, 32, 64, 128};
  EXPECT_THAT(run(9, "TfIdfVectorizer", {text}, attributes).numbers,
              ElementsAre(0, 4, 0, 0, 0, 0, 0, 0, 0, 8, 0, 32, 64, 128));
  attributes["mode"] = std::string("TFIDF");
  EXPECT_THAT(run(9, "TfIdfVectorizer", {text}, attributes).numbers[1], 12);
  attributes["ngram_counts"] = Dims{0, 5};
  EXPECT_THAT(run(9, "TfIdfVectorizer", {text}, attributes).refusal,
              HasSubstr("ngram_counts do not cut the pool"));
}

TEST(GraphSelection, BitsAreCombinedAndShifted) {
  const Operand a = integers(DType::kUInt8, {0b1100, 255, 1}), b = integers(DType::kUInt8, {0b1010, 1, 7});
  EXPECT_THAT(run(18, "BitwiseAnd", {a, b}).numbers, ElementsAre(0b1000, 1, 1));
  EXPECT_THAT(run(18, "BitwiseOr", {a, b}).numbers, ElementsAre(0b1110, 255, 7));
  EXPECT_THAT(run(18, "BitwiseXor", {a, b}).numbers, ElementsAre(0b0110, 254, 6));
  EXPECT_THAT(run(18, "BitwiseNot", {a}).numbers, ElementsAre(0b11110011, 0, 254));
  EXPECT_THAT(run(18, "BitwiseNot", {integers(DType::kInt16, {0, -1, 5})}).numbers, ElementsAre(-1, 0, -6));
  const Attributes left{{"direction", word("LEFT")}}, right{{"direction", word("RIGHT")}};
  EXPECT_THAT(run(11, "BitShift", {a, b}, left).numbers,
              ElementsAre(0, 254, 128));  // 10 bits of 8: none is left
  EXPECT_THAT(run(11, "BitShift", {a, b}, right).numbers, ElementsAre(0, 127, 0));
  EXPECT_THAT(
      run(11, "BitShift", {integers(DType::kUInt32, {0x80000000}), integers(DType::kUInt32, {31})}, right)
          .numbers,
      ElementsAre(1));
  EXPECT_THAT(run(11, "BitShift", {a, b}).refusal, HasSubstr("has no direction, expected LEFT or RIGHT"));
  EXPECT_THAT(run(11, "BitShift", {integers(DType::kInt8, {1}), integers(DType::kInt8, {1})}, left).refusal,
              HasSubstr("expected an unsigned integer type"));
}

}  // namespace
}  // namespace tuner::graph
