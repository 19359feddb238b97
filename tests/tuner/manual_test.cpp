// Manual pages and completion: whole, without a warning of groff, and bash completes what it should.
#include "tuner/command_line/manual.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <CLI/CLI.hpp>

#include <regex>

#include "tests/tuner/command_line.h"
#include "tuner/cli/command.h"

namespace tuner::cli {
namespace {

using testing::CommandLine;
using testing::CommandResult;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;

std::string escaped(std::string text) { return std::regex_replace(text, std::regex("-"), "\\-"); }

TEST(ManualPages, EveryCommandHasOneAndEachOfItsOptionsStandsInIt) {
  CommandContext context;
  const auto app = make_app(context);
  const std::vector<CommandPath> commands = commands_of(*app);
  const std::vector<ManualPage> pages = manual_pages(*app, "9.8");
  ASSERT_EQ(pages.size(), commands.size());
  EXPECT_GE(commands.size(), 24u);
  std::vector<std::string> names;
  for (size_t i = 0; i < pages.size(); ++i) {
    names.push_back(pages[i].name);
    for (const CLI::Option* option : named_options(*commands[i].app))
      for (const std::string& name : option->get_lnames())
        EXPECT_THAT(pages[i].text, HasSubstr(str("\\fB", escaped("--" + name), "\\fR"))) << pages[i].name;
    for (const CLI::Option* option : positionals(*commands[i].app))
      EXPECT_THAT(pages[i].text, HasSubstr(str("\\fI", option->get_name(), "\\fR"))) << pages[i].name;
    EXPECT_THAT(pages[i].text, HasSubstr("tuner 9.8"));
  }
  EXPECT_THAT(names,
              IsSupersetOf({"tuner.1", "tuner-submit.1", "tuner-records.1", "tuner-records-export.1"}));
  EXPECT_THAT(names, Not(Contains("tuner-manual.1"))) << "it is hidden";
  for (const CommandPath& verb : commands)
    if (verb.words.size() == 1) {
      EXPECT_THAT(pages[0].text, HasSubstr(str("\\fB", verb.words[0], "\\fR"))) << "tuner.1 lists it";
    }
}

// A program of three options, small enough to see a page whole.
TEST(ManualPages, APageSaysWhatTheCommandLineSays) {
  CLI::App app("Bakes. Slowly.", "oven");
  std::string to, kind;
  double heat = 20;
  app.add_option("FILE", to, "What goes in\n  oven bread")->required();
  app.add_option("--kind", kind, ".NET-like")->check(CLI::IsMember({"top", "both"}));
  app.add_option("--heat", heat, "Degrees")->check(CLI::Range(20.0, 300.0))->capture_default_str();
  app.set_help_flag();
  ASSERT_EQ(manual_pages(app, "1").size(), 1u);
  EXPECT_EQ(manual_pages(app, "1")[0].text, R"(.TH OVEN 1 "" "tuner 1" "tuner"
.SH NAME
oven \- Bakes
.SH SYNOPSIS
\fBoven\fR [\fIoptions\fR] \fIFILE\fR
.SH DESCRIPTION
Bakes. Slowly.
.SH OPTIONS
.TP
\fIFILE\fR
What goes in
.PP
.nf
  oven bread
.fi
.TP
\fB\-\-kind\fR \fITEXT\fR
\&.NET\-like
.br
One of: top, both.
.TP
\fB\-\-heat\fR \fIFLOAT\fR
Degrees
.br
From 20 to 300.
.br
Default: 20
)");
}

TEST(ManualPages, AreWrittenWithoutAWarningForThreePrograms) {
  const CommandLine shell(TUNER_BIN_DIR);
  const CommandResult written = shell.run("env -u XDG_DATA_HOME -u XDG_CACHE_HOME tuner manual -o pages");
  ASSERT_EQ(written.exit_code, 0) << written.err;
  const auto pages = shell.tree("pages");
  EXPECT_THAT(pages.at("measure_server.1"), HasSubstr(escaped("--worker-id")));
  EXPECT_THAT(pages.at("runner.1"), HasSubstr("run\\-pack"));
  for (const auto& [name, text] : pages)
    EXPECT_THAT(text, Not(HasSubstr(escaped(shell.folder().string())))) << name << ": a default of this home";
  EXPECT_THAT(pages.at("tuner-submit.1"), HasSubstr("Default: ~/.local/share/tuner/tuner.db"));
  EXPECT_THAT(pages.at("measure_server.1"), HasSubstr("=~/.cache/tuner/worker"));
  if (shell.run("groff --version").exit_code != 0) GTEST_SKIP() << "no groff here";
  const CommandResult set =
      shell.run("for page in pages/*.1; do groff -man -Tutf8 -ww $page >/dev/null; done");
  EXPECT_EQ(set.exit_code, 0);
  EXPECT_EQ(set.err, "");
}

class CompletionTest : public ::testing::Test {
 protected:
  CompletionTest() {
    const CommandResult printed = shell_.run("tuner completion bash > completion.bash; mkdir -p layers");
    EXPECT_EQ(printed.exit_code, 0) << printed.err;
    for (const char* name : {"conv.json", "notes.txt", "model.onnx"}) shell_.write(name, "");
  }
  // What bash offers for the last of `words`, sorted.
  std::vector<std::string> offered(const std::string& words) {
    const CommandResult ran = shell_.run(
        str("source completion.bash\nCOMP_WORDS=(", words,
            ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_tuner\nprintf '%s\\n' \"${COMPREPLY[@]}\" | sort\n"));
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_EQ(ran.err, "") << words;
    std::vector<std::string> lines;
    std::istringstream in(ran.out);
    for (std::string line; std::getline(in, line);)
      if (!line.empty()) lines.push_back(line);
    return lines;
  }
  CommandLine shell_{TUNER_BIN_DIR};
};

TEST_F(CompletionTest, Commands) {
  EXPECT_THAT(offered("tuner re"), ElementsAre("records", "replay", "report", "rerun", "revalidate"));
  EXPECT_THAT(offered("tuner records ''"), ElementsAre("check", "diff", "export", "import", "merge"));
  EXPECT_THAT(offered("tuner ''"), Not(Contains("manual")));
}

TEST_F(CompletionTest, Options) {
  EXPECT_THAT(offered("tuner submit --tr"), ElementsAre("--trials"));
  EXPECT_THAT(offered("tuner submit conv.json --st"), ElementsAre("--stop-below"));
  EXPECT_THAT(offered("tuner records export --for"), ElementsAre("--foreign", "--format"));
  EXPECT_THAT(offered("tuner --ver"), ElementsAre("--version"));
}

TEST_F(CompletionTest, ValuesOfAList) {
  EXPECT_THAT(offered("tuner show conv.json --as lo"), ElementsAre("loops"));
  EXPECT_THAT(offered("tuner show conv.json --as = s"), ElementsAre("sass", "schedule", "space"));
  EXPECT_THAT(offered("tuner query --constants ''"), ElementsAre("cold", "warm"));
  EXPECT_THAT(offered("tuner completion ''"), ElementsAre("bash"));
  EXPECT_THAT(offered("tuner submit conv.json --trials ''"), IsEmpty()) << "a number";
}

TEST_F(CompletionTest, JobFilesWhereACommandTakesOneAndOtherFilesElsewhere) {
  EXPECT_THAT(offered("tuner submit ''"), ElementsAre(".home", "conv.json", "layers"));
  EXPECT_THAT(offered("tuner build conv.json co"), ElementsAre("conv.json"));
  EXPECT_THAT(offered("tuner extract m"), ElementsAre("model.onnx"));
  EXPECT_THAT(offered("tuner jobs --db n"), ElementsAre("notes.txt"));
}

}  // namespace
}  // namespace tuner::cli
