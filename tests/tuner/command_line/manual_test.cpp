// Manual pages: whole, and without a warning of groff.
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
using ::testing::HasSubstr;
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
  if (shell.run("groff --version").exit_code != 0) GTEST_SKIP() << "no groff here: deploy/install.sh --tools";
  const CommandResult set =
      shell.run("for page in pages/*.1; do groff -man -Tutf8 -ww $page >/dev/null; done");
  EXPECT_EQ(set.exit_code, 0);
  EXPECT_EQ(set.err, "");
}

}  // namespace
}  // namespace tuner::cli
