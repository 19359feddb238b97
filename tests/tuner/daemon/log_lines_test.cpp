// Log lines: as text and as JSON, with what they are about, and without control characters.
#include "tuner/daemon/edge/log_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace tuner {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class LogLinesTest : public ::testing::Test {
 protected:
  // What one line becomes.
  std::string logged(LogLines lines, const std::string& message) {
    std::ostringstream out;
    spdlog::logger logger("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(out));
    logger.set_formatter(log_formatter(lines));
    logger.warn("{}", message);
    return out.str();
  }
  nlohmann::json json(const std::string& message) {
    const std::string line = logged(LogLines::kJson, message);
    EXPECT_TRUE(line.ends_with('\n'));
    EXPECT_EQ(std::ranges::count(line, '\n'), 1);
    return nlohmann::json::parse(line);
  }
};

TEST_F(LogLinesTest, TextIsForPeople) {
  const LogAbout about({.job = "j1"});
  EXPECT_THAT(logged(LogLines::kText, "all is well"), MatchesRegex("[-0-9]+ [.:0-9]+ W all is well\n"));
}

TEST_F(LogLinesTest, JsonHasTheFieldsOfAllThatItIsAbout) {
  const LogAbout job({.job = "j1", .worker = "w1", .request = "r1"});
  {
    const LogAbout trial({.trial = "j1.7", .worker = "w2", .attempt = 3});
    const nlohmann::json line = json("it was lost");
    EXPECT_EQ(line["message"], "it was lost");
    EXPECT_EQ(line["level"], "warning");
    EXPECT_THAT(line["time"].get<std::string>(), MatchesRegex("[-0-9]+T[.:0-9]+Z"));
    EXPECT_EQ(line["job"], "j1");
    EXPECT_EQ(line["request"], "r1");
    EXPECT_EQ(line["trial"], "j1.7");
    EXPECT_EQ(line["attempt"], 3);
    EXPECT_EQ(line["worker"], "w2") << "the inner one counts";
    EXPECT_FALSE(line.contains("race"));
  }
  EXPECT_EQ(json("after it")["worker"], "w1");
  EXPECT_FALSE(json("after it").contains("trial"));
}

TEST_F(LogLinesTest, ControlCharactersEndHere) {
  const std::string bad =
      "a\x1b[31m\r\nb\x7f\xc2\x9b"
      "c\xff";
  const LogAbout about({.worker = "w\x1b[2J\n"});
  const std::string text = logged(LogLines::kText, bad), line = logged(LogLines::kJson, bad);
  EXPECT_THAT(text, HasSubstr("a [31m  b  c\xff\n"));
  for (const std::string& whole : {text, line})
    for (const char c : whole.substr(0, whole.size() - 1))
      EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) << int{c};
  EXPECT_EQ(nlohmann::json::parse(line)["worker"], "w [2J ");
  for (const char c : line) EXPECT_LT(static_cast<unsigned char>(c), 0x80) << "JSON lines are ASCII";
}

TEST(WithoutControls, KeepsWhatPeopleRead) {
  EXPECT_EQ(without_controls("größer \xc2\xa0 x"), "größer \xc2\xa0 x");
  EXPECT_EQ(without_controls(std::string("a\0b", 3)), "a b");
  EXPECT_EQ(without_controls(""), "");
}

}  // namespace
}  // namespace tuner
