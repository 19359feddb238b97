// The main function of the tests, in place of GoogleTest's. It prints one line for each skipped case, which
// deploy/skipped_cases.py lists, and ends with exit status 77 where every case that was asked for was
// skipped: ctest calls that Skipped, not Passed. A case that fails and then skips has failed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace {

constexpr int kAllSkipped = 77;  // SKIP_RETURN_CODE in the top CMakeLists.txt

// On one line, without control characters.
std::string one_line(const char* text) {
  std::string line;
  for (; *text != '\0'; ++text) {
    const auto byte = static_cast<unsigned char>(*text);
    const char shown = byte < 0x20 || byte == 0x7f ? ' ' : *text;
    if (shown != ' ' || (!line.empty() && line.back() != ' ')) line += shown;
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

class SaysWhatIsSkipped final : public ::testing::EmptyTestEventListener {
  void OnTestEnd(const ::testing::TestInfo& test) override {
    const ::testing::TestResult& result = *test.result();
    if (!result.Skipped()) return;
    std::string reason = "no reason given";
    for (int i = 0; i < result.total_part_count(); ++i) {
      const ::testing::TestPartResult& part = result.GetTestPartResult(i);
      if (const std::string said = one_line(part.message()); part.skipped() && !said.empty()) reason = said;
    }
    std::printf("skipped: %s.%s: %s\n", test.test_suite_name(), test.name(), reason.c_str());
    std::fflush(stdout);
  }
};

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleMock(&argc, argv);
  ::testing::UnitTest& unit = *::testing::UnitTest::GetInstance();
  unit.listeners().Append(new SaysWhatIsSkipped);  // GoogleTest deletes it
  const int status = RUN_ALL_TESTS();
  const bool all_skipped =
      unit.skipped_test_count() > 0 && unit.skipped_test_count() == unit.test_to_run_count();
  return status == 0 && all_skipped ? kAllSkipped : status;
}
