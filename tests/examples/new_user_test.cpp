// What a new user does: the commands of the examples' READMEs, each as it is printed there, in a folder that
// looks like a fresh clone after its first build.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/examples/readme_commands.h"
#include "tests/tuner/command_line.h"

namespace tuner {
namespace {

using testing::CommandResult;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class NewUserTest : public ::testing::Test {
 protected:
  NewUserTest() {
    // documentation_test has races as a reader has them.
    setenv("TUNER_RACE_LIMIT_S", "0.001", 1);
    fs::create_directories(shell_.folder() / "build/release");
    fs::create_symlink(TUNER_BIN_DIR, shell_.folder() / "build/release/bin");
    fs::create_symlink(fs::path(TUNER_SOURCE_DIR) / "examples", shell_.folder() / "examples");
  }
  // Runs the commands below a heading of a README; what they print.
  std::string follow(const std::string& readme, const std::string& heading = "") {
    std::ifstream in(fs::path(TUNER_SOURCE_DIR) / readme);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const Result<std::string> commands = testing::commands_of(text, heading);
    EXPECT_TRUE(commands.is_ok()) << readme << ": " << commands.message();
    if (!commands) return {};
    // -x: each command is shown before it runs, so that a failure says which.
    const CommandResult ran = shell_.run("set -x\n" + *commands);
    EXPECT_EQ(ran.exit_code, 0) << readme << "\n" << ran.out << ran.err;
    EXPECT_EQ(ran.err.find("run default configs"), std::string::npos)
        << "what was tuned is not what was built";
    return ran.out;
  }

  testing::CommandLine shell_{TUNER_BIN_DIR};
};

TEST(ReadmeCommands, AreThoseOfTheBlocksBelowTheHeading) {
  const std::string text =
      "# A\n```sh\none\n```\n## B\n```\nno\n# C\n```\ntext\n```sh\ntwo\n# comment\n```\n### "
      "D\n```sh\nthree\n```\n## E\n```sh\nno\n```\n";
  EXPECT_EQ(*testing::commands_of(text, "## B"), "two\n# comment\nthree\n");
  EXPECT_EQ(*testing::commands_of(text, "# A"), "one\ntwo\n# comment\nthree\nno\n");
  EXPECT_EQ(*testing::commands_of("```sh\nx\n```\n", ""), "x\n");
  EXPECT_FALSE(testing::commands_of(text, "## F").is_ok());
}

TEST_F(NewUserTest, TheCExample) {
  const std::string said = follow("examples/app_c/README.md");
  EXPECT_THAT(said, HasSubstr("right: conv and dense, 50 calls each from 8 threads at once"));
}

TEST_F(NewUserTest, TheTwoLayerNetwork) {
  const std::string said = follow("examples/two_layer_network/README.md");
  EXPECT_THAT(said, HasSubstr("no tuned first layer is linked yet"));
  EXPECT_THAT(said, HasSubstr("results equal: largest difference"));
}

}  // namespace
}  // namespace tuner
