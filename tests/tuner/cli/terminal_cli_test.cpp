// The command at a terminal and in a pipeline: what a slip of the finger is answered with, readers that go
// away, and lines no longer than the terminal is wide.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <sstream>

#include "compiler_core/codegen/compile.h"
#include "db/store.h"
#include "templates/schedule_template.h"
#include "tests/tuner/command_line.h"

namespace tuner {
namespace {

using testing::CommandResult;
using ::testing::HasSubstr;

constexpr char kKey[] =
    "v1 conv2d n=1 ic=5 ih=9 iw=11 oc=20 kh=3 kw=3 stride=1,1 pad=1,1,1,1 dil=1,1 groups=1 bias=1 act=relu "
    "dtype=float32 layout=NCHW const=weight";

class TerminalCli : public ::testing::Test {
 protected:
  // Wrong use: one line, nothing on stdout, exit code 2.
  std::string refused(const std::string& words) {
    const CommandResult r = shell_.run("tuner " + words);
    EXPECT_EQ(r.exit_code, 2) << words << "\n" << r.out << r.err;
    EXPECT_EQ(r.out, "") << words;
    EXPECT_EQ(std::ranges::count(r.err, '\n'), 1) << r.err;
    return r.err;
  }
  // t.db with a job of one right trial for each of `tasks` shapes.
  void fill_database(int tasks) {
    auto store = Store::open(shell_.folder() / "t.db", Store::Mode::kWrite);
    ASSERT_TRUE(store.is_ok()) << store.message();
    const std::string target = host_target().name();
    JobRow job{.id = "j1", .request_id = "r1", .trials = 1, .search = "random"};
    std::vector<TrialRow> trials(static_cast<size_t>(tasks));
    for (int i = 0; i < tasks; ++i) {
      std::string key = kKey;
      key.replace(key.find("ic=5"), 4, str("ic=", 5 + i));
      const Result<Workload> workload = workload_from_key(key);
      ASSERT_TRUE(workload.is_ok()) << workload.message();
      const AnyTemplate* t = templates_for(*workload, host_target())->front();
      const auto instance = t->apply(*workload, host_target());
      job.tasks.emplace_back().workload_key = key;
      job.tasks.back().target = target;
      TrialRow& trial = trials[static_cast<size_t>(i)];
      trial.job_id = "j1";
      trial.task_index = i;
      trial.template_name = t->name();
      trial.template_version = t->version();
      trial.config = (*instance)->space().at((*instance)->space().default_index()).to_text();
    }
    ASSERT_TRUE((*store)->add_job(job).is_ok());
    ASSERT_TRUE((*store)->add_trials(trials).is_ok());
    std::vector<MeasureRecord> records;
    for (const TrialRow& t : trials) {
      MeasureRecord& r = records.emplace_back();
      r.trial_id = t.id;
      r.run_ns = {1000, 1001, 1002};
      r.finished_at_us = 1'700'000'000'000'000;
    }
    ASSERT_TRUE((*store)->add_records(records).is_ok());
  }
  // The command on a terminal so wide; `terminal` is our end of it.
  pid_t start_on_terminal(int columns, const std::string& words, int& terminal) {
    winsize size{};
    size.ws_col = static_cast<uint16_t>(columns);
    size.ws_row = 24;
    const pid_t child = ::forkpty(&terminal, nullptr, nullptr, &size);
    if (child != 0) return child;
    const std::string script =
        str("cd ", shell_.folder().string(), " && XDG_CACHE_HOME=", shell_.folder().string(), " exec ",
            TUNER_BIN_DIR, "/tuner ", words);
    ::execl("/bin/sh", "sh", "-c", script.c_str(), nullptr);
    _exit(127);
  }
  // What a terminal so wide shows.
  std::string on_terminal(int columns, const std::string& words) {
    int terminal = -1;
    const pid_t child = start_on_terminal(columns, words, terminal);
    std::string shown;
    char buffer[4096];
    for (ssize_t n = 0; (n = ::read(terminal, buffer, sizeof buffer)) > 0;)
      shown.append(buffer, static_cast<size_t>(n));
    int status = 0;
    ::waitpid(child, &status, 0);
    ::close(terminal);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << shown;
    std::erase(shown, '\r');
    return shown;
  }

  testing::CommandLine shell_{TUNER_BIN_DIR};
};

TEST_F(TerminalCli, AMistypedCommandIsNoRequestForHelp) {
  for (const char* words : {"sbumit --help", "sbumit x.json", "sbumit", "submti -h --db x.db"})
    EXPECT_THAT(refused(words), HasSubstr("did you mean submit?")) << words;
  EXPECT_EQ(refused("sbumit --help"), "tuner: no command is called \"sbumit\"; did you mean submit?\n");
  EXPECT_EQ(refused("records exprot --help"),
            "tuner: records: no command is called \"exprot\"; did you mean export?\n");
  EXPECT_EQ(refused("dance --help"), "tuner: no command is called \"dance\". For help: tuner --help\n");
  EXPECT_EQ(shell_.run("tuner submit --help").exit_code, 0);
  EXPECT_EQ(shell_.run("tuner --help").exit_code, 0);
  EXPECT_EQ(shell_.run("tuner --version").exit_code, 0);
}

TEST_F(TerminalCli, AMistypedOptionIsNamedWithTheOneThatWasMeant) {
  EXPECT_EQ(refused("submit x.json --trails 8"),
            "tuner: submit: unknown option --trails; did you mean --trials?\n");
  EXPECT_THAT(refused("records export --fromat csv"), HasSubstr("did you mean --format?"));
  EXPECT_THAT(refused("jobs --jsno"), HasSubstr("did you mean --json?"));
  EXPECT_EQ(refused("jobs --colour"), "tuner: jobs: unknown option --colour. For help: tuner jobs --help\n");
  EXPECT_THAT(refused("submit"), HasSubstr("FILE is required"));
  EXPECT_THAT(refused("submit x.json --trials many"), HasSubstr("--trials"));
}

TEST_F(TerminalCli, AWrongValueIsToldWithThoseThatAreRight) {
  EXPECT_THAT(refused("show x.json --as schedul"),
              AllOf(HasSubstr("show: --as: expected one of schedule, loops, "),
                    HasSubstr(", found \"schedul\"; did you mean schedule? For help: ")));
  EXPECT_THAT(refused("query x.json --constants hot"),
              HasSubstr("expected one of warm, cold, found \"hot\""));
  EXPECT_THAT(refused("verify x.json --times --processes 2"),
              HasSubstr("--processes: expected a whole number from 3 to 100, found 2"));
  EXPECT_THAT(refused("verify x.json --times --processes 3x"), HasSubstr("found 3x"));
  EXPECT_THAT(refused("records diff a.db b.db --threshold nan"),
              HasSubstr("--threshold: expected a number from 0 to 1000, found nan"));
  EXPECT_EQ(refused(""), "tuner: expected a command. For help: tuner --help\n");
}

TEST_F(TerminalCli, AMistypedKeyOfAJobFileIsNamedWithTheOneThatWasMeant) {
  shell_.write("x.json", R"({"op":"softmax","rows":2,"columns":3,"trails":8})");
  EXPECT_THAT(refused("query x.json"),
              HasSubstr("\"trails\": unknown key; did you mean trials? Known here: "));
}

TEST_F(TerminalCli, HelpIsACommandToo) {
  EXPECT_EQ(shell_.run("tuner help submit").out, shell_.run("tuner submit --help").out);
  EXPECT_EQ(shell_.run("tuner help records export").out, shell_.run("tuner records export --help").out);
  EXPECT_EQ(shell_.run("tuner help").out, shell_.run("tuner --help").out);
  EXPECT_THAT(shell_.run("tuner help submit").out, HasSubstr("--stop-below"));
  EXPECT_THAT(refused("help sbumit"), HasSubstr("did you mean submit?"));
  EXPECT_EQ(shell_.run("tuner help help").out, shell_.run("tuner --help").out);
  EXPECT_THAT(refused("show j1"),
              HasSubstr("j1: is a job, expected one of its trials, such as j1.3, or a job file"));
}

// Which commands there are is asked from the manual, which is made from the command line itself.
TEST_F(TerminalCli, AllCommandsFitOneScreen) {
  const std::string help = shell_.run("tuner --help").out;
  EXPECT_LE(std::ranges::count(help, '\n'), 24) << help;
  std::istringstream lines(help);
  std::multiset<std::string> named;  // where names stand, in two columns
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80u) << line;
    for (const size_t column : {9, 46})
      if (line.size() > column) named.insert(line.substr(column, line.find(' ', column) - column));
  }
  ASSERT_EQ(shell_.run("tuner manual -o man").exit_code, 0);
  int commands = 0;
  for (const auto& page : std::filesystem::directory_iterator(shell_.folder() / "man")) {
    const std::string name = page.path().stem();  // tuner-records-export.1
    if (std::ranges::count(name, '-') != 1 || !name.starts_with("tuner-")) continue;
    ++commands;
    EXPECT_EQ(named.count(name.substr(6)), 1u) << name.substr(6) << "\n" << help;
  }
  EXPECT_GE(commands, 25);
}

TEST_F(TerminalCli, HelpFitsEightyColumnsAndLosesNoWord) {
  ASSERT_EQ(shell_.run("tuner manual -o man").exit_code, 0);
  for (const auto& page : std::filesystem::directory_iterator(shell_.folder() / "man")) {
    std::string command = page.path().stem();
    if (!command.starts_with("tuner-")) continue;
    std::ranges::replace(command, '-', ' ');
    const std::string help = shell_.run(command + " --help").out;
    std::istringstream lines(help);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  }
  std::string text = shell_.run("tuner show --help").out;
  std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
  EXPECT_THAT(text, HasSubstr("Printthekernelunderthescheduleofthisfile(-isstandardinput)"));
  EXPECT_THAT(text, HasSubstr("--asTEXT:{schedule,loops,space,llvm,asm,defines,roofline,kernels,cuda,"
                              "resources,sass,npu,trace,graph,plan,"
                              "layers,memory}=loopsWhattoprint."));
}

TEST_F(TerminalCli, StudiesKeepTheirOldSpelling) {
  for (const std::string study : {"simulate", "replay", "whatif"}) {
    const CommandResult now = shell_.run("tuner study " + study + " --help");
    EXPECT_EQ(now.exit_code, 0) << study;
    EXPECT_THAT(now.out, HasSubstr("tuner study " + study + " [OPTIONS]"));
    EXPECT_EQ(shell_.run("tuner " + study + " --help").out, now.out);
    EXPECT_EQ(shell_.run("tuner help " + study).out, now.out);
  }
  EXPECT_EQ(refused("study"), "tuner: study: expected a command. For help: tuner study --help\n");
  EXPECT_THAT(refused("study dance"), HasSubstr("dance"));
}

TEST_F(TerminalCli, WordsOfOtherProgramsGetTheRightCommand) {
  EXPECT_EQ(refused("list"),
            "tuner: no command is called \"list\"; tuner jobs lists the jobs, tuner query --all every tuned "
            "task\n");
  EXPECT_THAT(refused("tune x.json"), HasSubstr("; tuner submit FILE tunes"));
  EXPECT_THAT(refused("import x.jsonl"), HasSubstr("; tuner records import FILE reads records"));
}

TEST_F(TerminalCli, ANegativeSeedIsNone) {
  shell_.write("x.json", R"({"op":"softmax","rows":2,"columns":3})");
  const std::string none = "expected a whole number from 0 to 18446744073709551615, found ";
  EXPECT_THAT(refused("submit x.json --seed -1"), HasSubstr(none + "-1"));
  EXPECT_THAT(refused("submit x.json --seed=-1"), HasSubstr(none + "-1"));
  EXPECT_THAT(refused("submit x.json --seed 18446744073709551616"), HasSubstr(none + "18446744073709551616"));
  EXPECT_THAT(refused("verify x.json --seed -7"), HasSubstr(none + "-7"));
  EXPECT_THAT(refused("verify x.json --samples -7"), HasSubstr("-7"));
  EXPECT_THAT(refused("simulate x.csv --seeds -7"), HasSubstr("-7"));
  EXPECT_THAT(refused("simulate x.csv --first-seed -7"), HasSubstr("-7"));
}

TEST_F(TerminalCli, AJobIsAlsoNamedByItsFile) {
  fill_database(1);
  shell_.write("job.json", R"({"op":"conv2d","data":[1,5,9,11],"weight":[20,5,3,3],"padding":1,"bias":true,
                               "activation":"relu","constant":["weight"]})");
  shell_.write("other.json", R"({"op":"softmax","rows":2,"columns":3})");
  const CommandResult r = shell_.run("tuner report job.json --no-roofs --db t.db --json");
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_THAT(r.err, HasSubstr("tuner: job.json: job j1 is the newest with its tasks\n"));
  EXPECT_THAT(r.out, HasSubstr("\"job\": \"j1\""));
  EXPECT_THAT(
      refused("report other.json --no-roofs --db t.db --json"),
      HasSubstr("other.json: no job has these tasks; expected one such as j3. `tuner jobs --db t.db` lists"));
  EXPECT_THAT(refused("cancel job.json --db t.db"),
              HasSubstr("job.json: is a job file, expected a job such as j3"));
}

TEST_F(TerminalCli, ImportBesideAWriterSaysHowItIsDone) {
  fill_database(1);
  shell_.write("x.jsonl", "{}\n");
  const auto writer = Store::open(shell_.folder() / "t.db", Store::Mode::kWrite);
  ASSERT_TRUE(writer.is_ok()) << writer.message();
  for (const char* words :
       {"records import x.jsonl --format jsonl --db t.db", "learn --db t.db", "records merge t.db -o t.db"}) {
    const CommandResult r = shell_.run(str("tuner ", words));
    EXPECT_EQ(r.exit_code, 1) << words;
    EXPECT_THAT(r.err, HasSubstr("is open for writing already: held by process ")) << words;
    EXPECT_THAT(r.err,
                HasSubstr(". A daemon goes on with its jobs when it is started again: end it, then tuner "))
        << words;
    EXPECT_EQ(std::ranges::count(r.err, '\n'), 1) << r.err;
  }
}

// The same trial by its name and by its id of before.
TEST_F(TerminalCli, ATrialIsShownByItsNameAndByItsId) {
  fill_database(2);
  const CommandResult by_name = shell_.run("tuner show j1.2 --db t.db");
  EXPECT_EQ(by_name.exit_code, 0) << by_name.err;
  EXPECT_THAT(by_name.err, HasSubstr("trial j1.2: ok"));
  EXPECT_THAT(by_name.out, HasSubstr("measured 1.001 us in one trial, trial j1.2\n"));
  std::string id;
  {
    const auto store = Store::open(shell_.folder() / "t.db", Store::Mode::kRead);
    id = (*store)->trial("j1.2")->trial.id;
  }
  EXPECT_EQ(shell_.run("tuner show " + id + " --db t.db").out, by_name.out);
  EXPECT_THAT(shell_.run("tuner show j1.3 --db t.db").err,
              HasSubstr("no trial \"j1.3\": job j1 has 2 trials"));
  EXPECT_THAT(shell_.run("tuner query --all --db t.db --format csv").out, HasSubstr(",j1.2,"));
}

// Ctrl-C in the middle of a progress line: what is said then has a line of its own.
TEST_F(TerminalCli, AfterCtrlCNothingIsPrintedIntoTheProgressLine) {
  shell_.write("x.json", R"({"op":"matmul","a":[192,192],"b":[192,192]})");
  int terminal = -1;
  const pid_t child =
      start_on_terminal(80, "submit x.json --trials 100000 --stop-below 0 --db new.db", terminal);
  std::string shown;
  bool stopped = false;
  char buffer[4096];
  for (ssize_t n = 0; (n = ::read(terminal, buffer, sizeof buffer)) > 0;) {
    shown.append(buffer, static_cast<size_t>(n));
    if (stopped || shown.find(" left") == std::string::npos) continue;
    stopped = true;
    ASSERT_EQ(::write(terminal, "\x03", 1), 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ::close(terminal);
  ASSERT_TRUE(stopped) << shown;
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << shown;
  // What is left of each line once it has been rewritten.
  std::istringstream lines(shown);
  int said = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (const size_t at = line.rfind("\r\033[K"); at != std::string::npos) line = line.substr(at + 4);
    if (line.find("stopped: job j1") == std::string::npos) continue;
    ++said;
    EXPECT_TRUE(line.starts_with("stopped: job j1 keeps what it measured")) << line;
  }
  EXPECT_EQ(said, 1) << shown;
}

// More than a pipe holds, so that the reader is gone before all is written.
TEST_F(TerminalCli, AReaderThatGoesAwayEndsTheCommandQuietly) {
  fill_database(400);
  const CommandResult some =
      shell_.run("set -o pipefail; tuner jobs --db t.db --json | head -1; tuner --help | head -1");
  EXPECT_EQ(some.exit_code, 0) << some.err;
  EXPECT_EQ(some.err, "");
  const CommandResult all = shell_.run("tuner jobs --db t.db --json | wc -c");
  EXPECT_GT(std::stoi(all.out), 65536) << "else a pipe takes it all";
  const CommandResult closed = shell_.run("tuner jobs --db t.db | true; echo ${PIPESTATUS[0]}");
  EXPECT_EQ(closed.out, "0\n");
  EXPECT_EQ(closed.err, "");
}

TEST_F(TerminalCli, AFullDiskIsAnError) {
  fill_database(1);
  for (const char* words : {"jobs --db t.db", "jobs --db t.db --json", "--help", "query --all --db t.db"}) {
    const CommandResult r = shell_.run(str("tuner ", words, " >/dev/full"));
    EXPECT_EQ(r.exit_code, 1) << words;
    EXPECT_EQ(r.err, "tuner: standard output cannot be written to\n") << words;
  }
}

TEST_F(TerminalCli, TablesFitTheTerminalAndAreWholeInAPipe) {
  fill_database(3);
  for (const char* words : {"query --all --db t.db", "jobs --db t.db"}) {
    for (const int columns : {40, 80, 120, 200}) {
      std::istringstream lines(on_terminal(columns, words));
      int count = 0;
      for (std::string line; std::getline(lines, line); ++count)
        EXPECT_LE(line.size(), static_cast<size_t>(columns)) << words << "\n" << line;
      EXPECT_GE(count, 4) << words;
    }
    EXPECT_THAT(on_terminal(80, words), HasSubstr("v1 conv2d n=1 ic=6")) << words;
    EXPECT_THAT(on_terminal(80, words), HasSubstr("...")) << words;
    EXPECT_THAT(shell_.run(str("tuner ", words)).out, HasSubstr("dtype=float32 layout=NCHW const=weight"));
  }
  EXPECT_THAT(on_terminal(80, "query --all --db t.db"), HasSubstr("1.001 us"));
  EXPECT_THAT(on_terminal(80, "query --all --db t.db --json"), HasSubstr(kKey));
}

TEST_F(TerminalCli, HintsCanBePasted) {
  shell_.write("my job.json", R"({"op":"softmax","rows":2,"columns":3})");
  const CommandResult r = shell_.run("tuner query 'my job.json' --db none.db");
  EXPECT_THAT(r.err, HasSubstr("To tune: tuner submit 'my job.json' --db none.db\n"));
  const CommandResult by_path = shell_.run(str(TUNER_BIN_DIR, "/tuner query 'my job.json'"));
  EXPECT_THAT(by_path.err, HasSubstr(str("To tune: ", TUNER_BIN_DIR, "/tuner submit 'my job.json'\n")));
  fill_database(1);
  const CommandResult no_job = shell_.run("tuner report j7 --db t.db -o out.html");
  EXPECT_EQ(no_job.exit_code, 1);
  EXPECT_THAT(no_job.err, HasSubstr("no job \"j7\". `tuner jobs --db t.db` lists them"));
}

}  // namespace
}  // namespace tuner
