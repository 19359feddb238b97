// Bytes as letters: RFC 4648's own examples, and texts that are none.
#include "compiler_core/base/base64.h"

#include <gtest/gtest.h>

namespace tuner {
namespace {

TEST(Base64, IsThatOfTheRfc) {
  const std::pair<const char*, const char*> cases[] = {{"", ""},
                                                       {"f", "Zg=="},
                                                       {"fo", "Zm8="},
                                                       {"foo", "Zm9v"},
                                                       {"foob", "Zm9vYg=="},
                                                       {"fooba", "Zm9vYmE="},
                                                       {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : cases) {
    EXPECT_EQ(to_base64(bytes), text);
    EXPECT_EQ(from_base64(text), bytes);
  }
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  EXPECT_EQ(from_base64(to_base64(all)), all);
  EXPECT_NE(to_base64(all).find("+/"), std::string::npos);
}

TEST(Base64, WhatItDoesNotWriteItDoesNotRead) {
  for (const char* text :
       {"Zg", "Zg=", "Z===", "====", "Zh==", "Zm9=", "Zg==Zg==", "Zm 9v", "Zm9v\n", "Zm-_"})
    EXPECT_EQ(from_base64(text), std::nullopt) << text;
}

}  // namespace
}  // namespace tuner
