// Damaged text for parsers: good documents with a few random edits, most of them by pieces that get far into
// a parser of JSON.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <span>
#include <string>
#include <string_view>

#include "tests/random_seed.h"

namespace tuner::testing {

inline constexpr int kDamagedRounds = 40'000;

// Up to five edits; one text in six stays whole. `pieces`: what is likelier to be read in this format.
inline std::string damaged(std::string text, std::span<const std::string_view> pieces,
                           std::mt19937_64& random) {
  static constexpr std::string_view kJson[] = {"{",
                                               "}",
                                               "[",
                                               "]",
                                               ",",
                                               ":",
                                               "\"",
                                               "\\",
                                               "\\u0000",
                                               "\\ud800",
                                               "\xff",
                                               "\xef\xbb\xbf",
                                               "null",
                                               "true",
                                               "-1",
                                               "0",
                                               "1e999",
                                               "-0",
                                               "NaN",
                                               "1.5",
                                               "\n",
                                               "[[[[[[[[",
                                               "18446744073709551616",
                                               "9223372036854775808"};
  const auto piece = [&] {
    const size_t at = random() % (std::size(kJson) + pieces.size());
    return at < std::size(kJson) ? kJson[at] : pieces[at - std::size(kJson)];
  };
  for (uint64_t edits = random() % 6; edits > 0; --edits) {
    const size_t at = random() % (text.size() + 1);
    switch (random() % 6) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(random());
        break;
      case 1:
        if (at < text.size()) text[at] ^= static_cast<char>(1 << random() % 8);
        break;
      case 2:
        text.insert(at, piece());
        break;
      case 3:
        text.erase(at, 1 + random() % 12);
        break;
      case 4:
        text.insert(at, text.substr(random() % (text.size() + 1), random() % 60));
        break;
      default:
        if (random() % 4 == 0) text.resize(at);
    }
  }
  return text;
}

// Gives `check` many damaged ones of `seeds`; how many it called good. Stops at a fatal failure.
template <class Check>
int check_damaged(std::span<const std::string> seeds, std::span<const std::string_view> pieces, uint64_t salt,
                  Check check) {
  const RandomSeed seed(static_cast<uint32_t>(20'261'122 + salt));
  std::mt19937_64 random(seed);
  int good = 0;
  for (int i = 0; i < kDamagedRounds; ++i) {
    const std::string text = damaged(seeds[random() % seeds.size()], pieces, random);
    SCOPED_TRACE(::testing::Message() << "round " << i << ": " << text);
    good += check(text) ? 1 : 0;
    if (::testing::Test::HasFatalFailure()) return good;
  }
  return good;
}

// What a person may be shown: something, on one line, without control characters.
inline bool one_line(std::string_view message) {
  for (const char c : message)
    if (static_cast<unsigned char>(c) < 0x20) return false;
  return !message.empty();
}

}  // namespace tuner::testing
