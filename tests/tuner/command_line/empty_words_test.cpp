// Empty words, as shells make of variables that are not set: no option of any program takes one for a value.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <CLI/CLI.hpp>

#include <regex>
#include <tuple>

#include "tests/tuner/command_line.h"
#include "tuner/cli/command.h"
#include "tuner/command_line/manual.h"
#include "tuner/command_line/wrong_use.h"

namespace tuner::cli {
namespace {

using testing::CommandLine;
using testing::CommandResult;
using ::testing::HasSubstr;

// What the parser says of these words; each time a command line of its own.
std::string complaint(const std::vector<std::string>& words) {
  CommandContext context;
  const auto app = make_app(context);
  std::vector<const char*> argv{"tuner"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  try {
    app->parse(static_cast<int>(argv.size()), argv.data());
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  return "";
}
std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(EmptyWords, EveryOptionOfEveryCommandRefusesOne) {
  CommandContext context;
  const auto app = make_app(context);
  size_t options = 0, places = 0;
  for (const CommandPath& command : commands_of(*app)) {
    for (const CLI::Option* option : command.app->get_options()) {
      if (option->get_expected_min() == 0) continue;  // a flag
      const bool named = !option->get_lnames().empty() || !option->get_snames().empty();
      const std::string name = !option->get_lnames().empty()   ? "--" + option->get_lnames()[0]
                               : !option->get_snames().empty() ? "-" + option->get_snames()[0]
                                                               : option->get_name();
      SCOPED_TRACE(::testing::PrintToString(command.words) + " " + name);
      std::vector<std::string> given;
      if (named) {
        given = {name, ""};
        ++options;
      } else {
        for (const CLI::Option* before : positionals(*command.app)) {
          if (before == option) break;
          given.emplace_back("x");
        }
        given.emplace_back("");
        ++places;
      }
      EXPECT_THAT(complaint(with(command.words, given)), HasSubstr("found an empty word"));
    }
  }
  EXPECT_GT(options, 150U) << "the walk found few";
  EXPECT_GT(places, 20U);
}

// Bounds belong to what is allowed; what is no number does not.
TEST(Numbers, AreHeldAgainstTheirBoundsAndNanIsNone) {
  const std::vector<std::string> simulate = {"study", "simulate", "x.csv", "--trials"},
                                 diff = {"records", "diff", "a", "b", "--threshold"},
                                 pack = {"pack", "x.json", "-o", "y.pack", "--deadline"};
  for (const char* right : {"1", "1000000"}) EXPECT_EQ(complaint(with(simulate, {right})), "") << right;
  for (const char* wrong : {"0", "1000001", "-1", "1.5", "nan"})
    EXPECT_NE(complaint(with(simulate, {wrong})), "") << wrong;
  for (const char* right : {"0", "1000", "2.5"}) EXPECT_EQ(complaint(with(diff, {right})), "") << right;
  for (const char* wrong : {"-0.001", "1000.1", "nan", "inf"})
    EXPECT_NE(complaint(with(diff, {wrong})), "") << wrong;
  EXPECT_EQ(complaint(with(pack, {"0.5"})), "");
  for (const char* wrong : {"0", "-1", "nan"})
    EXPECT_THAT(complaint(with(pack, {wrong})), HasSubstr(str("expected a number above 0, found ", wrong)));
  for (const char* wrong : {"-1", "nan"})
    EXPECT_NE(complaint({"study", "whatif", "j1", "--strategy", "random", "--task", wrong}), "") << wrong;
}

// The defaults that pages and messages tell; what is shown is the variable that is used.
TEST(Numbers, DefaultsAreThoseThatThePagesTell) {
  CommandContext context;
  const auto app = make_app(context);
  const std::tuple<const char*, const char*, const char*> defaults[] = {
      {"compile", "--time-limit", "600"},     {"compile", "--threads", "1"},
      {"revalidate", "--budget", "300"},      {"revalidate", "--top", "8"},
      {"serve", "--artifact-gib", "4"},       {"serve", "--log-format", "text"},
      {"study simulate", "--trials", "512"},  {"study simulate", "--seeds", "10"},
      {"study simulate", "--in-flight", "8"}, {"study simulate", "--warm-rows", "200"},
      {"verify", "--samples", "100"},         {"study whatif", "--coverage", "90"},
      {"records diff", "--threshold", "2"},   {"records diff", "--confidence", "95"}};
  size_t found = 0;
  for (const CommandPath& command : commands_of(*app)) {
    std::string name;
    for (const std::string& word : command.words) name += (name.empty() ? "" : " ") + word;
    for (const auto& [of, option, value] : defaults)
      if (name == of) {
        EXPECT_EQ(command.app->get_option(option)->get_default_str(), value) << name << " " << option;
        ++found;
      }
  }
  EXPECT_EQ(found, std::size(defaults));
}

TEST(EmptyWords, OneAmongSeveralValuesIsRefused) {
  EXPECT_THAT(complaint({"compile", "m.onnx", "-o", "net", "--dim", "n=1", "--dim", ""}),
              HasSubstr("--dim: expected a value, found an empty word; is a shell variable not set?"));
}

TEST(EmptyWords, NothingBehindAnEqualSignIsNoRequestForTheNextWord) {
  CommandContext context;
  const auto app = make_app(context);
  const auto said = [&](std::vector<const char*> words) {
    words.insert(words.begin(), "tuner");
    return empty_value(*app, static_cast<int>(words.size()), words.data());
  };
  EXPECT_EQ(said({"submit", "job.json", "--target=", "--db", "d.db"}),
            "submit: --target=: expected a value, found an empty word; is a shell variable not set?");
  EXPECT_EQ(said({"submit", "job.json", "--target=cpu", "--db", "d.db"}), "");
  EXPECT_EQ(said({"run", "net", "--input", "x=a.npy"}), "");
  EXPECT_EQ(said({"complete", "--", "tuner", "submit", "--target="}), "") << "words of another command line";
}

TEST(EmptyWords, CompletionIsAskedWithThem) { EXPECT_EQ(complaint({"complete", "--", "tuner", ""}), ""); }

// What docs/how_we_measure.md and the READMEs say, where nobody says otherwise.
TEST(WorkersDefaults, AreWhatTheManualsSay) {
  const CommandLine line(TUNER_BIN_DIR);
  for (const std::string program : {"measure_server", "measure_runner"}) {
    const std::string help = line.run("env -u TUNER_CACHE_GIB " + program + " --help").out;
    EXPECT_THAT(help, HasSubstr("--cache-gib FLOAT:FLOAT in [0 - 1e+06]=4 (Env:TUNER_CACHE_GIB)")) << program;
    EXPECT_THAT(help, HasSubstr("=none")) << "any isolation: " << program;
  }
}

// Their options as --help lists them.
TEST(EmptyWords, WorkersRefuseThem) {
  const CommandLine line(TUNER_BIN_DIR);
  for (const std::string program : {"measure_server", "measure_runner"}) {
    const std::string help = line.run(program + " --help").out;
    const std::regex option("(--[a-z-]+) [A-Z]+");
    size_t found = 0;
    for (std::sregex_iterator at(help.begin(), help.end(), option), end; at != end; ++at, ++found) {
      for (const std::string given : {" ''", "= --log-level info"}) {
        const std::string command = str(program, " ", (*at)[1].str(), given);
        const CommandResult r = line.run(command);
        EXPECT_EQ(r.exit_code, 2) << command;
        EXPECT_THAT(r.err, HasSubstr("found an empty word")) << command;
      }
    }
    EXPECT_GE(found, 8U) << help;
  }
}

}  // namespace
}  // namespace tuner::cli
