// Completion: what may stand at the cursor, and that bash, zsh and fish offer it. Each shell is a real one
// that reads the script of `tuner completion`; one that is not installed is skipped.
#include "tuner/command_line/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <poll.h>
#include <csignal>
#include <optional>
#include <set>
#include <sstream>

#include "db/store.h"
#include "tests/support/temporary_folder.h"
#include "tests/tuner/command_line.h"
#include "tuner/cli/command.h"
#include "tuner/command_line/manual.h"
#include "tuner/command_line/program_app.h"

namespace tuner::cli {
namespace {

using testing::CommandLine;
using testing::CommandResult;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

using Words = std::vector<std::string>;

constexpr char kHaswell[] = "llvm -mcpu=haswell -threads=1";

// --- what may stand there, whatever the shell ---

class CompletionRules : public ::testing::Test {
 protected:
  Completion at(const Words& words) {
    return complete(*app_, words, [this](std::string_view kind, const std::string& db) {
      asked_.push_back(str(kind, " of ", db));
      return std::vector<OfferedWord>{{"name1", "one"}, {"name2", ""}};
    });
  }
  Words words(const Words& typed) {
    Words out;
    for (const auto& [word, says] : at(typed).words) out.push_back(word);
    return out;
  }
  CommandContext context_;
  std::shared_ptr<CLI::App> app_ = make_app(context_);
  Words asked_;
};

TEST_F(CompletionRules, APassOfSeveralKindsOfTargetsIsOfferedOnce) {
  EXPECT_THAT(words({"show", "conv.json", "--after", "simplify"}),
              UnorderedElementsAre("simplify", "simplify-2", "simplify-3"));
}

TEST_F(CompletionRules, CommandsComeFirstAndHiddenOnesNever) {
  EXPECT_THAT(words({"re"}), ElementsAre("records", "report", "rerun", "revalidate"));
  EXPECT_THAT(words({""}), Not(Contains("complete")));
  EXPECT_THAT(words({""}), Not(Contains("manual")));
  EXPECT_THAT(words({"records", ""}),
              UnorderedElementsAre("check", "diff", "export", "import", "merge", "prune"));
  EXPECT_THAT(words({"no_such_command", ""}), IsEmpty());
}

TEST_F(CompletionRules, AnOptionThatWasGivenIsNotOfferedAgainUnlessItMayBe) {
  EXPECT_THAT(words({"submit", "x.json", "--fr"}), ElementsAre("--fresh"));
  EXPECT_THAT(words({"submit", "--fresh", "x.json", "--fr"}), IsEmpty());
  EXPECT_THAT(words({"compile", "--dim", "a=1", "--di"}), ElementsAre("--dim"));
}

TEST_F(CompletionRules, ValuesFollowTheirOptionBehindABlankOrAnEqualsSign) {
  EXPECT_THAT(words({"show", "--as", "lo"}), ElementsAre("loops"));
  EXPECT_THAT(words({"show", "--as=lo"}), ElementsAre("--as=loops"));
  EXPECT_THAT(words({"show", "--as", "loops", "--as"}), IsEmpty());
  EXPECT_EQ(at({"jobs", "--db=t"}).kept, 5u);
  EXPECT_TRUE(at({"jobs", "--db=t"}).files);
  EXPECT_THAT(words({"verify", "x.json", "--seed", ""}), IsEmpty()) << "a number";
  EXPECT_FALSE(at({"verify", "x.json", "--seed", ""}).files);
}

TEST_F(CompletionRules, AListGoesOnWithWhatIsNotInIt) {
  EXPECT_THAT(words({"simulate", "--strategy", "name1,"}), ElementsAre("name1,name2"));
  EXPECT_THAT(words({"build", "--emit", "so,a"}), UnorderedElementsAre("so,a", "so,asm"));
  EXPECT_THAT(words({"admin", "token", "--roles", "query,s"}), ElementsAre("query,submit"));
}

TEST_F(CompletionRules, NamesAreThoseOfTheDatabaseOnTheLine) {
  EXPECT_THAT(words({"report", "n"}), ElementsAre("name1", "name2"));
  EXPECT_THAT(words({"report", "--db", "here.db", "name1"}), ElementsAre("name1"));
  EXPECT_THAT(words({"report", "--db=there.db", ""}), ElementsAre("name1", "name2"));
  EXPECT_THAT(asked_, ElementsAre("job of ", "job of here.db", "job of there.db"));
  asked_.clear();
  EXPECT_THAT(words({"rerun", ""}), ElementsAre("name1", "name2"));
  EXPECT_THAT(words({"records", "export", "--job", ""}), ElementsAre("name1", "name2"));
  EXPECT_THAT(words({"query", "--target", ""}), ElementsAre("name1", "name2"));
  EXPECT_THAT(asked_, ElementsAre("trial of ", "job of ", "target of "));
}

TEST_F(CompletionRules, FilesHaveTheEndingThatTheCommandReads) {
  EXPECT_THAT(at({"submit", ""}).endings, ElementsAre(".json"));
  EXPECT_THAT(at({"build", "a.json", ""}).endings, ElementsAre(".json")) << "takes many";
  EXPECT_THAT(at({"compile", ""}).endings, ElementsAre(".onnx"));
  EXPECT_THAT(at({"extract", "m"}).endings, ElementsAre(".onnx"));
  EXPECT_THAT(at({"show", ""}).endings, ElementsAre(".json", ".onnx"));
  EXPECT_THAT(at({"simulate", ""}).endings, ElementsAre(".csv", ".gz"));
  EXPECT_THAT(at({"records", "diff", "a.db", ""}).endings, ElementsAre(".db"));
  EXPECT_THAT(at({"records", "merge", "a.db", "b.db", ""}).endings, ElementsAre(".db"));
  EXPECT_THAT(at({"watch", "j1", "--daemon", ""}).endings, ElementsAre(".credentials"));
  EXPECT_TRUE(at({"run", ""}).folders);
  EXPECT_TRUE(at({"build", "a.json", "-o", ""}).folders);
  EXPECT_FALSE(at({"run", "--input", ""}).files) << "a name comes first";
  EXPECT_TRUE(at({"run", "--input", "x="}).files);
  EXPECT_EQ(at({"run", "--input", "x=a"}).kept, 2u);
  EXPECT_EQ(at({"run", "--input=x=a"}).kept, 10u);
}

// One option after another of every command: each that takes words of an enumeration offers them.
TEST_F(CompletionRules, EveryEnumerationIsOffered) {
  size_t enumerations = 0;
  for (const CommandPath& command : commands_of(*app_))
    for (const CLI::Option* option : named_options(*command.app)) {
      const Words values = listed_values(*option);
      if (values.empty()) continue;
      ++enumerations;
      Words typed = command.words;
      typed.push_back("--" + option->get_lnames().front());
      typed.push_back("");
      EXPECT_THAT(words(typed), ::testing::UnorderedElementsAreArray(values)) << typed[typed.size() - 2];
    }
  EXPECT_GE(enumerations, 6u);
}

TEST_F(CompletionRules, WhatCouldBeTakenForSomethingElseIsLeftOutOrWrittenOut) {
  const Completion c = complete(*app_, {"report", ""}, [](std::string_view, const std::string&) {
    return std::vector<OfferedWord>{{"j1\nrm", "x"}, {"j2", "a\x1b[31m\tb\nc"}, {"j3\t", ""}};
  });
  EXPECT_EQ(completion_text(c), "0\t-\nj2\ta\\x1b[31m\\x09b\\x0ac\n");
}

// --- the shells ---

// A word as the shell inserts it -> the word; a folder without its slash.
std::string plain(std::string word) {
  std::erase(word, '\\');
  if (word.ends_with('/')) word.pop_back();
  return word;
}

class InAFolder : public ::testing::Test {
 protected:
  // Skips the test where there is no such shell.
  void prepare(const std::string& name) {
    shell_name_ = name;
    if (shell_.run(str("command -v ", shell())).exit_code != 0)
      GTEST_SKIP() << "no " << shell() << " here; deploy/install.sh --shells installs it";
    const CommandResult printed = shell_.run(str("tuner completion ", shell(), " > completion"));
    ASSERT_EQ(printed.exit_code, 0) << printed.err;
    shell_.run("mkdir -p layers");
    for (const char* name :
         {"conv.json", "my job.json", "notes.txt", "model.onnx", "alice.credentials", "space.csv"})
      shell_.write(name, "");
    fill_database();
    shell_.write("zsh_driver", kZshDriver);
  }
  const std::string& shell() const { return shell_name_; }

  // Two jobs, the second with a result.
  void fill_database() {
    auto store = Store::open(shell_.folder() / "tuned.db", Store::Mode::kWrite);
    ASSERT_TRUE(store.is_ok()) << store.message();
    for (const char* id : {"j1", "j2"}) {
      JobRow job{.id = id,
                 .request_id = id,
                 .tasks = {{str("v1 softmax rows=1", id[1], " columns=64 dtype=float32"), kHaswell}},
                 .trials = 1,
                 .search = "random"};
      ASSERT_TRUE((*store)->add_job(job).is_ok());
    }
    std::vector<TrialRow> trials(1);
    trials[0] = {.job_id = "j2", .template_name = "softmax_cpu", .config = "rows=8"};
    ASSERT_TRUE((*store)->add_trials(trials).is_ok());
    MeasureRecord record{.trial_id = trials[0].id};
    record.run_ns = {100, 101, 102};
    ASSERT_TRUE((*store)->add_records({record}).is_ok());
    trial_ = trials[0].id;
  }

  // Types `line` and presses the tab key: what the shell offers for the last word, without what of that word
  // stays as it is ("--as=").
  Words offered(const std::string& line) {
    const std::string script =
        shell() == "bash" ? in_bash(line)
        : shell() == "zsh"
            ? str("timeout 30 zsh -f zsh_driver ", quoted(line), " ", quoted(zsh_functions_->file("dump")))
            : str("fish --no-config -c 'source completion; complete -C \"$argv[1]\"' -- ", quoted(line));
    const CommandResult ran = shell_.run(script);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_EQ(ran.err, "") << line;
    const std::string word = line.substr(line.rfind(' ') + 1);
    const std::string kept = word.substr(0, word.rfind('=') + 1);
    Words out;
    std::istringstream in(ran.out);
    for (std::string text; std::getline(in, text);) {
      if (text.ends_with('\r')) text.pop_back();
      if (shell() == "zsh") {
        if (!text.starts_with("<hit>")) continue;
        text = text.substr(5, text.size() - 11);
      }
      text = plain(text.substr(0, text.find('\t')));
      if (!kept.empty() && text.starts_with(kept)) text.erase(0, kept.size());
      if (!text.empty() && text != ".home" && std::ranges::find(out, text) == out.end()) out.push_back(text);
    }
    return out;
  }

  static std::string quoted(const std::string& text) {
    std::string out = "'";
    for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
  }
  // Bash divides a line into words itself, at = and : too; here it is done as it does.
  static std::string in_bash(const std::string& line) {
    std::string words, word;
    const auto end = [&] {
      words += " " + quoted(word);
      word.clear();
    };
    for (size_t i = 0; i < line.size(); ++i) {
      if (line[i] == '\\' && i + 1 < line.size()) {
        word += line.substr(i++, 2);
      } else if (line[i] == ' ') {
        if (!word.empty()) end();
      } else if (line[i] == '=' || line[i] == ':') {
        if (!word.empty()) end();
        word = line[i];
        end();
      } else {
        word += line[i];
      }
    }
    if (!word.empty() || !line.ends_with('=')) end();
    return str("source completion\nCOMP_WORDS=(", words,
               ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_tuner\n((${#COMPREPLY[@]} == 0)) || printf "
               "'%s\\n' \"${COMPREPLY[@]}\"\n");
  }

  // A zsh at a terminal of its own, whose completion prints what it would offer. The first one writes its
  // list of completion functions to the file $2, which takes it a second or two; the others read it there.
  static constexpr char kZshDriver[] = R"(
zmodload zsh/zpty || exit 3
zpty z zsh -f -i
zpty -w z "PS1= RPS1= ; setopt nobeep; stty -echo; autoload -Uz compinit; compinit -C -d ${(q)2}; source ./completion"
zpty -w z 'compadd() { local -a hits; if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return; fi; builtin compadd -A hits "$@"; (( $#hits )) && print -rl -- "<hit>"$^hits"</hit>"; builtin compadd "$@" }'
zpty -w z 'capture() { print "<begin>"; _main_complete; print "<end>" }; zle -C capture complete-word capture; bindkey "^I" capture'
zpty -w z 'print "<rea""dy>"'
zpty -r z out '*<ready>*'
zpty -w -n z "$1"$'\t'
zpty -r z out '*<end>*'
print -r -- "${out#*<begin>}"
zpty -d z
)";

  static void SetUpTestSuite() { zsh_functions_.emplace(); }
  static void TearDownTestSuite() { zsh_functions_.reset(); }

  CommandLine shell_{TUNER_BIN_DIR};
  std::string shell_name_, trial_;
  inline static std::optional<TemporaryFolder> zsh_functions_;
};

class Shells : public InAFolder, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override { prepare(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(Of, Shells, ::testing::Values("bash", "zsh", "fish"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(Shells, OfferCommandsAndOptions) {
  EXPECT_THAT(offered("tuner re"), UnorderedElementsAre("records", "report", "rerun", "revalidate"));
  EXPECT_THAT(offered("tuner records "),
              UnorderedElementsAre("check", "diff", "export", "import", "merge", "prune"));
  EXPECT_THAT(offered("tuner "), Not(Contains("complete")));
  EXPECT_THAT(offered("tuner submit --tr"), ElementsAre("--trials"));
  EXPECT_THAT(offered("tuner submit conv.json --st"), ElementsAre("--stop-below"));
  EXPECT_THAT(offered("tuner records export --for"), UnorderedElementsAre("--foreign", "--format"));
  EXPECT_THAT(offered("tuner --ver"), ElementsAre("--version"));
  EXPECT_THAT(offered("tuner sumbit "), IsEmpty());
}

TEST_P(Shells, OfferValuesOfEnumerations) {
  EXPECT_THAT(offered("tuner show --as lo"), ElementsAre("loops"));
  EXPECT_THAT(offered("tuner show --as "),
              IsSupersetOf({"schedule", "loops", "llvm", "asm", "cuda", "roofline", "graph"}));
  EXPECT_THAT(offered("tuner show conv.json --as=s"), UnorderedElementsAre("sass", "schedule", "space"));
  EXPECT_THAT(offered("tuner query --constants "), UnorderedElementsAre("cold", "warm"));
  EXPECT_THAT(offered("tuner submit conv.json --priority "), UnorderedElementsAre("low", "normal", "high"));
  EXPECT_THAT(offered("tuner completion "), UnorderedElementsAre("bash", "zsh", "fish"));
  EXPECT_THAT(offered("tuner records export --format "),
              UnorderedElementsAre("jsonl", "autotvm", "t4", "csv"));
  EXPECT_THAT(offered("tuner submit conv.json --trials "), ElementsAre("all"));
  EXPECT_THAT(offered("tuner verify conv.json --seed "), IsEmpty()) << "a number";
}

TEST_P(Shells, OfferStrategiesOperatorsLayoutsPassesAndLists) {
  EXPECT_THAT(offered("tuner submit conv.json --search xgb"),
              UnorderedElementsAre("xgb-genetic", "xgb-annealing"));
  EXPECT_THAT(offered("tuner whatif j1 --strategy random,xgb-a"), ElementsAre("random,xgb-annealing"));
  EXPECT_THAT(offered("tuner build conv.json --emit so,as"), ElementsAre("so,asm"));
  EXPECT_THAT(offered("tuner query --op s"), ElementsAre("softmax"));
  EXPECT_THAT(offered("tuner extract model.onnx --layout NC"),
              UnorderedElementsAre("NCHW", "NCHW4c", "NCHW8c", "NCHW16c"));
  EXPECT_THAT(offered("tuner show model.onnx --after fold-s"), ElementsAre("fold-scales"));
  EXPECT_THAT(offered("tuner show conv.json --after thread-"), ElementsAre("thread-guards"));
  EXPECT_THAT(offered("tuner compile model.onnx --algorithms direct,w"), ElementsAre("direct,winograd"));
}

TEST_P(Shells, OfferFilesByTheirEnding) {
  EXPECT_THAT(offered("tuner submit "), UnorderedElementsAre("conv.json", "my job.json", "layers"));
  EXPECT_THAT(offered("tuner submit my\\ "), ElementsAre("my job.json"));
  EXPECT_THAT(offered("tuner build conv.json co"), ElementsAre("conv.json"));
  EXPECT_THAT(offered("tuner compile m"), Contains("model.onnx"));
  EXPECT_THAT(offered("tuner jobs --db "), UnorderedElementsAre("tuned.db", "layers"));
  EXPECT_THAT(offered("tuner jobs --db=t"), ElementsAre("tuned.db"));
  EXPECT_THAT(offered("tuner jobs --db n"), ElementsAre("notes.txt")) << "none has the ending, so any file";
  EXPECT_THAT(offered("tuner submit conv.json --daemon al"), ElementsAre("alice.credentials"));
  EXPECT_THAT(offered("tuner study simulate s"), ElementsAre("space.csv"));
  EXPECT_THAT(offered("tuner simulate s"), ElementsAre("space.csv")) << "as it was spelled before";
  EXPECT_THAT(offered("tuner run "), ElementsAre("layers"));
  EXPECT_THAT(offered("tuner run layers --input x=n"), ElementsAre("notes.txt"));
}

TEST_P(Shells, OfferJobsResultsAndTargetsOfTheDatabase) {
  EXPECT_THAT(offered("tuner watch --db tuned.db "), ElementsAre("j2", "j1")) << "the newest first";
  EXPECT_THAT(offered("tuner report --db=tuned.db "), ElementsAre("j2", "j1"));
  EXPECT_THAT(offered("tuner watch --db missing.db "), IsEmpty());
  EXPECT_THAT(offered("tuner rerun --db tuned.db "), ElementsAre(trial_));
  EXPECT_THAT(offered("tuner show --db tuned.db t"), Contains(trial_));
  EXPECT_THAT(offered("tuner query --db tuned.db --target "),
              IsSupersetOf({"cpu", kHaswell, "cuda -arch=sm_90a"}));
  EXPECT_THAT(offered("tuner query --db tuned.db --target llvm\\ -m"), ElementsAre(kHaswell));
}

// What a tab makes of the line, at a terminal: the shell quotes what needs it.
std::string completed_in_bash(const CommandLine& shell, const std::string& typed) {
  int terminal = -1;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) {
    const std::string path = str(TUNER_BIN_DIR, ":", std::getenv("PATH"));
    ::setenv("PATH", path.c_str(), 1);
    ::setenv("TERM", "dumb", 1);
    if (::chdir(shell.folder().c_str()) == 0)
      ::execlp("bash", "bash", "--norc", "--noprofile", "-i", nullptr);
    _exit(127);
  }
  std::string shown;
  // Reads until `mark` has come; false after half a minute.
  const auto until = [&](const std::string& mark) {
    for (int i = 0; i < 300 && shown.find(mark) == std::string::npos; ++i) {
      pollfd ready{.fd = terminal, .events = POLLIN, .revents = 0};
      char part[4096];
      if (::poll(&ready, 1, 100) <= 0) continue;
      const ssize_t n = ::read(terminal, part, sizeof part);
      if (n <= 0) return false;
      shown.append(part, static_cast<size_t>(n));
    }
    return shown.find(mark) != std::string::npos;
  };
  const auto type = [&](const std::string& keys) {
    EXPECT_EQ(::write(terminal, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  };
  // Ctrl-G prints the line as it is.
  type("bind -x '\"\\C-g\": printf \"<%s>\\n\" \"$READLINE_LINE\"'; source completion; echo rea''dy\n");
  EXPECT_TRUE(until("ready")) << shown;
  shown.clear();
  type(typed + "\t\x07");
  EXPECT_TRUE(until(">")) << shown;
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(terminal);
  const size_t begin = shown.rfind('<');
  return begin == std::string::npos ? shown : shown.substr(begin + 1, shown.rfind('>') - begin - 1);
}

class Bash : public InAFolder {
 protected:
  void SetUp() override { prepare("bash"); }
};

TEST_F(Bash, InsertsWhatItOffers) {
  EXPECT_EQ(completed_in_bash(shell_, "tuner show --as lo"), "tuner show --as loops ");
  EXPECT_EQ(completed_in_bash(shell_, "tuner show --as=lo"), "tuner show --as=loops ");
  EXPECT_EQ(completed_in_bash(shell_, "tuner submit my"), "tuner submit my\\ job.json ");
  EXPECT_EQ(completed_in_bash(shell_, "tuner run lay"), "tuner run layers/");
  EXPECT_EQ(completed_in_bash(shell_, "tuner query --db tuned.db --target ll"),
            "tuner query --db tuned.db --target llvm\\ -mcpu=haswell\\ -threads=1 ");
  EXPECT_EQ(completed_in_bash(shell_, "tuner whatif j1 --strategy random,xgb-a"),
            "tuner whatif j1 --strategy random,xgb-annealing ");
}

class Fish : public InAFolder {
 protected:
  void SetUp() override { prepare("fish"); }
};

TEST_F(Fish, ShowsADescriptionBesideACandidate) {
  const CommandResult ran = shell_.run("fish --no-config -c 'source completion; complete -C \"tuner sub\"'");
  EXPECT_EQ(ran.out, "submit\tTunes every workload of a job file\n");
}

}  // namespace
}  // namespace tuner::cli
