// Programs of users, which are built, run, and print what they took: from a job file to an answer, on this
// machine, by the commands that a person types.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "compiler_core/foreign/confined_program.h"
#include "tests/damaged_text.h"
#include "tests/tuner/command_line.h"

namespace tuner {
namespace {

using nlohmann::json;
using testing::CommandResult;
using ::testing::HasSubstr;
using ::testing::Not;

// Prints (10 - TILE) ms, but for TILE = 3, and what a test is about.
constexpr char kScript[] = R"(#!/bin/sh
sleep 0.02
WHAT
echo "warming up: 99 ms"
echo "time: $((10 - $1)) ms"
)";
constexpr char kJob[] = R"({
  "op": "kernel", "language": "command", "files": ["prog.sh"], "run": ["./prog.sh", "{TILE}", "{n}"],
  "result": {"pattern": "time: {number} ms", "unit": "ms"},
  "sizes": {"n": 64}, "knobs": {"TILE": [1, 2, 3, 4, 5, 6]}, "trials": 6, "measure": {"repeats": 3}
})";

class OwnProgramsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const Status able = can_confine(); !able) GTEST_SKIP() << able.message();
    setenv("TUNER_RACE_LIMIT_S", "0.001", 1);  // races would be most of the time; the first test has one
    write("");
  }
  void write(const std::string& what, const std::string& change = "{}") {
    std::string script = kScript;
    script.replace(script.find("WHAT"), 4, what);
    shell_.write("prog.sh", script);
    json job = json::parse(kJob);
    job.merge_patch(json::parse(change));
    shell_.write("job.json", job.dump());
  }
  std::string output_of(const std::string& script) {
    const CommandResult ran = shell_.run(script);
    EXPECT_EQ(ran.exit_code, 0) << script << "\n" << ran.out << ran.err;
    return ran.out;
  }
  json answer(const std::string& before = "") {
    const std::string out = shell_.run(before + "tuner query job.json --json").out;
    return json::accept(out) ? json::parse(out) : json();
  }
  // What became of each TILE, with the message of its record.
  std::map<int, std::string> fates() {
    std::istringstream lines(output_of("tuner records export"));
    std::map<int, std::string> found;
    for (std::string line; std::getline(lines, line);)
      if (const json row = json::parse(line); row.contains("outcome"))
        found[row["config"]["TILE"]] =
            str(row["outcome"].get<std::string>(), ": ", row["message"].get<std::string>());
    return found;
  }

  testing::CommandLine shell_{TUNER_BIN_DIR};
};

TEST_F(OwnProgramsTest, TheFastestByItsOwnWordsWinsAndEveryAnswerSaysThatNobodyChecked) {
  const std::string told = output_of("TUNER_RACE_LIMIT_S= tuner submit job.json");
  EXPECT_THAT(told, HasSubstr("not checked by us"));
  EXPECT_THAT(told, HasSubstr("certified"));
  EXPECT_THAT(told, Not(HasSubstr("GFLOP/s"))) << "nobody said how much work it is";
  const json found = answer();
  EXPECT_EQ(found["answer"], "exact") << found;
  EXPECT_EQ(found["config"], json({{"TILE", 6}}));
  EXPECT_NEAR(found["time_ns"].get<double>(), 4e6, 1);
  EXPECT_EQ(found["right"], "not checked by us");
  EXPECT_THAT(output_of("tuner query job.json"), HasSubstr("not checked by us"));
  EXPECT_THAT(output_of("tuner records export"), HasSubstr("not_checked_by_us"));
  output_of("tuner report job.json -o report.html && tuner report j1 -o again.html");
  EXPECT_THAT(shell_.read("report.html"), HasSubstr("not checked by us"));
  EXPECT_THAT(shell_.read("again.html"), HasSubstr("not checked by us"));
  EXPECT_THAT(output_of("tuner show j1.1"), HasSubstr("./prog.sh 1 64"));
  EXPECT_THAT(output_of("tuner replay j1"), HasSubstr("j1"));
  output_of("tuner estimate job.json && tuner lock job.json -o lock && tuner query job.json --lock lock");
  // Any byte of a file may matter: what is a comment, nobody knows. Here // is a folder.
  write("cd // 7");
  EXPECT_EQ(answer()["answer"], "default");
  output_of("tuner submit job.json --trials 1");
  EXPECT_EQ(answer()["answer"], "exact");
  write("cd // 8");
  EXPECT_EQ(answer()["answer"], "default");
}

TEST_F(OwnProgramsTest, RecordsTravelAndAreMeasuredAgain) {
  output_of(
      "tuner submit job.json && tuner records export -o all.jsonl && tuner records import all.jsonl --db "
      "other.db");
  EXPECT_EQ(json::parse(output_of("tuner query job.json --db other.db --json"))["answer"], "exact");
  EXPECT_THAT(output_of("tuner show j1.1 --db other.db"), HasSubstr("./prog.sh 1 64"));
  output_of("tuner rerun j1.1");
  output_of(
      "chmod 755 . && mkdir bin && printf '#!/bin/sh\\nexec /bin/sh \"$@\"\\n' > bin/shell && chmod +x "
      "bin/shell");
  write("", R"({"run": ["shell", "prog.sh", "{TILE}"]})");
  const std::string with = "export TUNER_COMMANDS=shell=$PWD/bin/shell\n";
  output_of(with + "tuner submit job.json");
  EXPECT_EQ(answer(with)["stale"], false) << answer(with);
  output_of("printf '#!/bin/sh\\nexec /bin/sh \"$@\"  \\n' > bin/shell");
  EXPECT_EQ(answer(with)["stale"], true) << answer(with);
  shell_.run(with + "tuner revalidate");  // its exit code tells how calm the machine is
  EXPECT_EQ(answer(with)["stale"], false) << answer(with);
}

// What is said and stored of a program is what is true of it.
TEST_F(OwnProgramsTest, TheNextStepIsOneThatWorksAndRecordsSayHowItWasConfined) {
  const std::string out = output_of("tuner submit job.json");
  EXPECT_THAT(out, HasSubstr("tuner build job.json -o out/ --emit defines\n"));
  output_of("tuner build job.json -o out/ --emit defines");
  const std::string records = output_of("tuner records export");
  EXPECT_THAT(records, HasSubstr("\"isolation\":\"landlock\""));
  EXPECT_THAT(records, Not(HasSubstr("\"isolation\":\"none\"")));
}

TEST_F(OwnProgramsTest, AListedProgramThatOthersCannotReachIsToldBeforeAnythingRuns) {
  if (::geteuid() != 0) GTEST_SKIP() << "programs of jobs run as this user here";
  output_of("chmod 755 . && mkdir closed && cp /bin/true closed/mine && chmod 700 closed");
  write("", R"({"run": ["mine", "{TILE}"]})");
  const CommandResult refused =
      shell_.run("export TUNER_COMMANDS=mine=$PWD/closed/mine\ntuner submit job.json");
  EXPECT_EQ(refused.exit_code, 2) << refused.out;
  EXPECT_EQ(std::ranges::count(refused.err, '\n'), 1) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("and other users may not enter "));
  const CommandResult reached = shell_.run(
      "chmod 711 closed && chmod 700 closed/mine\nexport TUNER_COMMANDS=mine=$PWD/closed/mine\ntuner submit "
      "job.json");
  EXPECT_EQ(reached.exit_code, 2) << reached.out;
  EXPECT_THAT(reached.err, HasSubstr("which other users may not run"));
}

TEST_F(OwnProgramsTest, KnobsReachBuildsWordsAndTheEnvironment) {
  shell_.write("prog.c", R"(
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char** argv) {
  const int tile = atoi(argv[1]);
  if (tile != TILE || tile != atoi(getenv("TILE_HERE")) || atoi(getenv("OMP_NUM_THREADS")) != 1) return 9;
  printf("%s: %d per second\n", strcmp(getenv("KIND"), "rows") == 0 ? "rate" : "-", 1000 * tile);
}
)");
  json job = json::parse(kJob);
  job["files"] = {"prog.c"};
  job["build"] = {"cc", "-DTILE={TILE}", "prog.c", "-o", "prog"};
  job["run"] = {"./prog", "{TILE}"};
  job["environment"] = {{"TILE_HERE", "{TILE}"}, {"KIND", "{KIND}"}};
  job["knobs"]["KIND"] = {"rows", "columns"};
  job["result"] = {{"pattern", "rate: {number} per second"}, {"unit", "1/s"}};
  shell_.write("job.json", job.dump());
  output_of("tuner submit job.json --trials all");
  // More is better of a rate, and what is stored is the time of one.
  EXPECT_EQ(answer()["config"], json({{"TILE", 6}, {"KIND", 0}}));
  EXPECT_NEAR(answer()["time_ns"].get<double>(), 1e9 / 6000, 1);
  EXPECT_THAT(output_of("tuner build job.json -o out --emit defines && cat out/defines/*.h"),
              HasSubstr("#define KIND rows\n#define TILE 6\n"));
}

TEST_F(OwnProgramsTest, WithoutANumberTheWallClockCounts) {
  write("sleep 0.0$((9 - $1))", R"({"result": null})");
  output_of("tuner submit job.json --trials all");
  const json found = answer();
  EXPECT_EQ(found["config"]["TILE"], 6) << found;
  EXPECT_GT(found["time_ns"].get<double>(), 48e6);
  EXPECT_LT(found["time_ns"].get<double>(), 200e6);
}

// Each config fails in its own way, and one is left.
TEST_F(OwnProgramsTest, WhatGoesWrongHasAWordAndAReason) {
  write(R"sh(
case $1 in
  1) echo "no luck: $(printf '\033[31m')" >&2; exit 3;;
  2) kill -SEGV $$;;
  3) sleep 600;;
  4) echo "time: soon ms"; exit 0;;
  5) echo "time: -5 ms"; exit 0;;
esac)sh",
        R"({"knobs": {"TILE": [1, 2, 3, 4, 5, 6, 7, 8, 9]}, "measure": {"run_timeout_s": 2},
            "constraints": ["TILE != 9"]})");
  shell_.write("prog.sh", shell_.read("prog.sh") +
                              "case $1 in 7) echo 'time: nan ms';; 8) echo 'time: 5000 ms';; esac\n");
  output_of("tuner submit job.json --trials all");
  const std::map<int, std::string> found = fates();
  EXPECT_EQ(found.size(), 8u);
  EXPECT_EQ(found.at(1), "crashed: exit status 3; it printed: no luck: \\x1b[31m");
  EXPECT_THAT(found.at(2), HasSubstr("crashed: signal 11 (SIGSEGV)"));
  EXPECT_THAT(found.at(3), HasSubstr("run_timeout: still running after 2 s"));
  EXPECT_THAT(found.at(4), HasSubstr("wrong_answer: it printed no line with \"time: {number} ms\""));
  EXPECT_THAT(found.at(5), HasSubstr("wrong_answer: it printed -5 ms, expected a number above 0"));
  EXPECT_EQ(found.at(6), "ok: ");
  EXPECT_THAT(found.at(7), HasSubstr("wrong_answer: it printed nan ms, expected a number above 0"));
  EXPECT_THAT(found.at(8), HasSubstr("is the unit right?"));
  EXPECT_EQ(answer()["config"]["TILE"], 6);
}

TEST_F(OwnProgramsTest, AProgramSeesItsFolderAndNothingOfTheHosts) {
  shell_.write("secret", "a secret");
  const std::string outside = shell_.folder().string();
  write(str("cat ", outside, "/secret && echo 'time: 1 ms' && exit 0\n", "echo x > ", outside,
            "/left && echo 'time: 1 ms' && exit 0\n", "cat /etc/shadow && echo 'time: 1 ms' && exit 0\n",
            "cd $(dirname $0) && echo y > here && cat here || exit 7\n",
            "exec 3<>/dev/tcp/127.0.0.1/1 && echo 'time: 1 ms' && exit 0"));
  std::string script = shell_.read("prog.sh");
  shell_.write("prog.sh", script.replace(0, 9, "#!/bin/bash"));
  output_of("tuner submit job.json --trials all");
  EXPECT_FALSE(std::filesystem::exists(shell_.folder() / "left"));
  for (const auto& [tile, fate] : fates()) EXPECT_EQ(fate, "ok: ") << tile;
  EXPECT_NEAR(answer()["time_ns"].get<double>(), 4e6, 1) << "a door was open";
}

// Who packs the folder up may read more than who built it.
TEST_F(OwnProgramsTest, ALinkThatABuildLeavesIsNotFollowed) {
  shell_.write("secret", "time: 1 ms");
  shell_.write("build.sh",
               str("ln -s ", shell_.folder().string(), "/secret stolen\nln -s prog.sh own\nmkdir d && ln -s ",
                   shell_.folder().string(), " d/folder\ntouch made\n"));
  write("[ -f made ] || exit 4\ncat stolen d/folder/secret && exit 0",
        R"({"files": ["prog.sh", "build.sh"], "build": ["sh", "build.sh"]})");
  output_of("tuner submit job.json --trials all");
  for (const auto& [tile, fate] : fates()) EXPECT_EQ(fate, "ok: ") << tile;
  EXPECT_NEAR(answer()["time_ns"].get<double>(), 4e6, 1) << "the link was followed";
}

TEST_F(OwnProgramsTest, WhatIsNoCommandIsRefusedInOneLine) {
  const std::map<std::string, std::string> cases = {
      {R"({"run": null})", "run: expected a value, found nothing"},
      {R"({"run": []})", "run: expected the words of a command"},
      {R"({"run": "./prog.sh {TILE}"})", "run: expected a list"},
      {R"({"run": ["/bin/sh", "{TILE}"]})", "run[0]: expected ./FILE or the name of a program"},
      {R"({"run": ["./../prog.sh", "{TILE}"]})", "leads out of the folder"},
      {R"({"run": ["./prog_{TILE}.sh"]})", "the program is the same for all configs"},
      {R"({"run": ["./none.sh", "{TILE}"]})", "run[0]: there is no file none.sh in \"files\""},
      {R"({"run": ["./prog.sh", "{OTHER}"]})", "there is no knob and no size {OTHER}"},
      {R"({"run": ["./prog.sh", "{TILE"]})", "a brace without its other"},
      {R"({"run": ["./prog.sh"]})", "knobs.TILE: neither build nor run nor environment has {TILE}"},
      {R"({"run": ["fortune", "{TILE}"]})", "the program \"fortune\" is not on this host's list (make, cc,"},
      {R"({"build": ["rm", "-rf", "/"]})", "the program \"rm\" is not on this host's list"},
      {R"({"build": ["cc", "none.c"]})", "cc did not end well: exit status 1"},
      {R"({"files": ["none.sh"]})", "none.sh"},
      {R"({"files": ["/etc/passwd"]})", "is an absolute path"},
      {R"({"files": ["prog.sh", "prog.sh"]})", "is there twice"},
      {R"({"environment": {"PATH": "/tmp"}})", "environment.PATH: tuner sets this variable"},
      {R"({"environment": {"A B": "1"}})", "expected a name of letters"},
      {R"({"environment": {"A": [1]}})", "environment.A: expected a text"},
      {R"({"result": {"pattern": "time: ([0-9.]+) ms", "unit": "ms"}})",
       "result.pattern: expected a text with {number}"},
      {R"({"result": {"unit": "ms", "pattern": null}})", "result.pattern"},
      {R"({"result": {"unit": "joule"}})", "result.unit: expected one of ns, us, ms, s, 1/s, GFLOP/s, GB/s"},
      {R"({"result": {"unit": "GFLOP/s"}})", "say it as \"flops\""},
      {R"({"result": {"better": "larger"}})", "result.better: the unit says it"},
      {R"({"source": "prog.sh"})", "\"source\": unknown key"},
      {R"({"reference": "default"})", "\"reference\": unknown key"},
      {R"({"arguments": []})", "\"arguments\": unknown key"},
  };
  for (const auto& [change, message] : cases) {
    SCOPED_TRACE(change);
    write("echo ran > ran", change);
    const CommandResult r = shell_.run("tuner submit job.json --db made.db");
    EXPECT_EQ(r.exit_code, 2) << r.out << r.err;
    EXPECT_THAT(r.err, HasSubstr(message));
    const std::string why = r.err.substr(0, r.err.find('\n'));
    EXPECT_EQ(why.size() + 1, r.err.size()) << r.err;
    EXPECT_TRUE(testing::one_line(why)) << r.err;
    EXPECT_FALSE(std::filesystem::exists(shell_.folder() / "made.db"));
  }
  write("");
  for (const char* command :
       {"verify job.json", "build job.json -o out", "pack job.json -o p", "show job.json --as asm"}) {
    const CommandResult r = shell_.run(std::string("tuner ") + command);
    EXPECT_EQ(r.exit_code, 2) << command << "\n" << r.out << r.err;
    EXPECT_THAT(r.err, HasSubstr("program"));
    EXPECT_EQ(std::ranges::count(r.err, '\n'), 1) << r.err;
  }
}

TEST_F(OwnProgramsTest, TheExampleFindsFasterTiles) {
  output_of("cp " TUNER_SOURCE_DIR
            "/examples/own_kernels/transpose.* . && tuner submit transpose.json --trials 16");
  EXPECT_THAT(output_of("tuner query transpose.json"), HasSubstr("GB/s"));
  const json found = json::parse(output_of("tuner query transpose.json --json"));
  EXPECT_EQ(found["answer"], "exact");
  EXPECT_NE(found["config"], json({{"ROWS", 1024}, {"COLUMNS", 1024}, {"UNROLL", 1}}));
}

}  // namespace
}  // namespace tuner
