// The word that was probably meant: one slip of the finger in three letters, and nothing for another word.
#include "compiler_core/base/did_you_mean.h"

#include <gtest/gtest.h>

namespace tuner {
namespace {

const std::vector<std::string> kWords = {"submit", "simulate", "query", "records",
                                         "rerun",  "--trials", "stride"};

TEST(DidYouMean, FindsSwappedDroppedAddedAndReplacedLetters) {
  EXPECT_EQ(nearest_word("sbumit", kWords), "submit");
  EXPECT_EQ(nearest_word("submt", kWords), "submit");
  EXPECT_EQ(nearest_word("submitt", kWords), "submit");
  EXPECT_EQ(nearest_word("qwery", kWords), "query");
  EXPECT_EQ(nearest_word("--trails", kWords), "--trials");
  EXPECT_EQ(nearest_word("strides", kWords), "stride");
  EXPECT_EQ(nearest_word("RECORDS", kWords), "records");
  EXPECT_EQ(nearest_word("query", kWords), "query");
}

TEST(DidYouMean, SaysNothingOfAnotherWord) {
  for (const char* word : {"", "dance", "a", "--colour", "x"})
    EXPECT_EQ(nearest_word(word, kWords), "") << word;
  EXPECT_EQ(nearest_word(std::string(10'000, 's'), kWords), "") << "and does not search for long";
  EXPECT_EQ(nearest_word("submit", {}), "");
}

TEST(DidYouMean, ReadsAsAQuestion) {
  EXPECT_EQ(did_you_mean("sbumit", kWords), "; did you mean submit?");
  EXPECT_EQ(did_you_mean("dance", kWords), "");
}

}  // namespace
}  // namespace tuner
