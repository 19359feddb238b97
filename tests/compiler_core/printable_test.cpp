#include "compiler_core/base/printable.h"

#include <gtest/gtest.h>

namespace tuner {
namespace {

TEST(Printable, WritesOutWhatATerminalWouldObey) {
  EXPECT_EQ(printable("\x1b]0;x\x07"), "\\x1b]0;x\\x07");
  EXPECT_EQ(printable("a\nb\tc\rd"), "a\\x0ab\\x09c\\x0dd");
  EXPECT_EQ(printable("\x7f"), "\\x7f");
  EXPECT_EQ(printable("\x1f "), "\\x1f ");
  EXPECT_EQ(printable("\xc2\x80\xc2\x9f"), "\\x80\\x9f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "2J"),
            "\\x9b2J")
      << "CSI in eight bits, as UTF-8";
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
}

TEST(Printable, LeavesTextAsItIs) {
  EXPECT_EQ(printable("größer \xc2\xa0 日本"), "größer \xc2\xa0 日本");
  EXPECT_EQ(printable("\xc2"), "\xc2") << "cut in the middle";
  EXPECT_EQ(printable(""), "");
}

TEST(Printable, KeepsLinesWhereTheyAreMeant) {
  EXPECT_EQ(printable_lines("a\n\tb\x1b[2J\r"), "a\n\tb\\x1b[2J\\x0d");
  EXPECT_EQ(printable_lines("\xc2\x9b"), "\\x9b");
}

}  // namespace
}  // namespace tuner
