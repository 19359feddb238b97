// The command at a terminal and in a pipeline: what a slip of the finger is answered with, readers that go
// away, and lines no longer than the terminal is wide.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

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
  // What a terminal so wide shows.
  std::string on_terminal(int columns, const std::string& words) {
    winsize size{};
    size.ws_col = static_cast<uint16_t>(columns);
    size.ws_row = 24;
    int terminal = -1;
    const pid_t child = ::forkpty(&terminal, nullptr, nullptr, &size);
    if (child == 0) {
      const std::string script =
          str("cd ", shell_.folder().string(), " && exec ", TUNER_BIN_DIR, "/tuner ", words);
      ::execl("/bin/sh", "sh", "-c", script.c_str(), nullptr);
      _exit(127);
    }
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

TEST_F(TerminalCli, AMistypedKeyOfAJobFileIsNamedWithTheOneThatWasMeant) {
  shell_.write("x.json", R"({"op":"softmax","rows":2,"columns":3,"trails":8})");
  EXPECT_THAT(refused("query x.json"),
              HasSubstr("\"trails\": unknown key; did you mean trials? Known here: "));
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
