// Commands in messages: as they can be pasted, with what this command was given.
#include "tuner/text/hint.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

namespace tuner::cli {
namespace {

// The commands of a program called `program`, run as `words`.
class Called {
 public:
  Called(const char* program, std::vector<std::string> words) {
    for (const char* name : {"submit", "query"}) {
      CLI::App* command = app_.add_subcommand(name);
      command->add_option("FILE", ignored_);
      command->add_option("--db", ignored_);
      command->add_option("--daemon", ignored_);
      command->add_option("--dim", several_);
      command->add_flag("--fresh");
      command->add_flag("--no-tune", flag_);
    }
    app_.add_subcommand("build")->add_option("--db", ignored_);
    CLI::App* exporting = app_.add_subcommand("records")->add_subcommand("export");
    exporting->add_option("--db", ignored_);
    exporting->add_option("--job", ignored_);
    app_.add_subcommand("simulate");
    remember_program(program, app_);
    const std::string verb = words.front();
    std::reverse(words.begin(), words.end());
    app_.parse(words);
    remember_command(*app_.get_subcommand(verb));
  }

 private:
  std::string ignored_;
  std::vector<std::string> several_;
  bool flag_ = false;
  CLI::App app_;
};

TEST(Hint, NamesTheProgramAsItWasCalledWithTheDatabaseThatWasGiven) {
  const Called called("build/bin/tuner", {"submit", "x.json", "--db", "t.db"});
  EXPECT_EQ(command_line("query x.json"), "build/bin/tuner query x.json --db t.db");
  EXPECT_EQ(command_line("records export --job j1"), "build/bin/tuner records export --job j1 --db t.db");
  EXPECT_EQ(command_line("simulate x.csv"), "build/bin/tuner simulate x.csv") << "it takes no database";
}

// What is left out would make another command of it.
TEST(Hint, TheSameCommandHasAllThatItWasGiven) {
  const Called called("bin/tuner", {"submit", "my x.json", "--fresh", "--dim", "n=1", "--dim", "m=2",
                                    "--no-tune", "--db", "t.db"});
  const std::string again = this_command();
  EXPECT_TRUE(again.starts_with("bin/tuner submit 'my x.json' ")) << again;
  for (const char* given : {" --fresh", " --dim n=1 --dim m=2", " --db t.db"})
    EXPECT_NE(again.find(given), std::string::npos) << again;
  EXPECT_EQ(again.find("--daemon"), std::string::npos) << again;
  EXPECT_TRUE(again.find(" --no-tune --db") != std::string::npos || again.ends_with(" --no-tune")) << again;
}

TEST(Hint, LeavesOutWhatIsTheDefault) {
  const Called called("tuner", {"submit", "x.json"});
  EXPECT_EQ(command_line("query x.json"), "tuner query x.json");
}

TEST(Hint, ADaemonIsNamedToCommandsThatCanAskOne) {
  const Called called("tuner", {"query", "x.json", "--daemon", "127.0.0.1:7070"});
  EXPECT_EQ(command_line("submit x.json"), "tuner submit x.json --daemon 127.0.0.1:7070");
  EXPECT_EQ(command_line("build x.json -o out/"), "tuner build x.json -o out/");
}

TEST(Hint, WhatTheShellWouldReadOtherwiseIsQuoted) {
  const Called called("/opt/my tools/tuner", {"submit", "x.json", "--db", "it's mine.db"});
  EXPECT_EQ(command_line("query " + shell_quoted("a b.json")),
            R"('/opt/my tools/tuner' query 'a b.json' --db 'it'\''s mine.db')");
  EXPECT_EQ(shell_quoted(""), "''");
  EXPECT_EQ(shell_quoted("$HOME;ls"), "'$HOME;ls'");
  EXPECT_EQ(shell_quoted("/a/b-c_d.json"), "/a/b-c_d.json");
}

TEST(Hint, CommandsInMessagesOfOtherPartsAreMadeWhole) {
  const Called called("bin/tuner", {"submit", "x.json", "--db", "t.db"});
  EXPECT_EQ(with_commands("no job \"j9\". `tuner jobs` lists them"), "no job \"j9\". `tuner jobs` lists them")
      << "no command of this program";
  EXPECT_EQ(with_commands("What went wrong: tuner records export --job j1"),
            "What went wrong: bin/tuner records export --db t.db --job j1");
  EXPECT_EQ(with_commands("tuner query a; tuner build b"),
            "bin/tuner query --db t.db a; bin/tuner build --db t.db b");
  EXPECT_EQ(with_commands("the tuner that won, /x/tuner submit, my_tuner submit, tuner submits"),
            "the tuner that won, /x/tuner submit, my_tuner submit, tuner submits");
  EXPECT_EQ(with_commands("To start: tuner query; elsewhere: --daemon HOST:PORT"),
            "To start: bin/tuner query --db t.db; elsewhere: --daemon HOST:PORT");
  // What is whole stays as it is.
  const std::string whole = "To tune: " + command_line("submit x.json");
  EXPECT_EQ(with_commands(whole), whole);
}

TEST(Hint, AWholeCommandThatIsFoundInPathStaysAsItIs) {
  const Called called("tuner", {"submit", "x.json", "--db", "t.db"});
  EXPECT_EQ(with_commands("To tune: tuner submit x.json --db t.db"),
            "To tune: tuner submit x.json --db t.db");
}

}  // namespace
}  // namespace tuner::cli
