// Texts that are joined from values: the same in every program.
#include "compiler_core/base/status.h"

#include <gtest/gtest.h>

#include <locale>

namespace tuner {
namespace {

// What German programs set: 1.024 and 0,5.
class Grouping final : public std::numpunct<char> {
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
  char do_decimal_point() const override { return ','; }
};

TEST(Str, WritesNumbersAsInCWhateverTheProgramsLocaleIs) {
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new Grouping));
  const std::string text = str("m=", 2048, " n=", int64_t{1'000'000}, " eps=", 0.5);
  std::locale::global(before);
  EXPECT_EQ(text, "m=2048 n=1000000 eps=0.5");
}

}  // namespace
}  // namespace tuner
