// Kernels of users, from a source to an answer, on this machine: by the commands that a person types.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "compiler_core/base/npy.h"
#include "compiler_core/foreign/confined_program.h"
#include "tests/tuner/command_line.h"

namespace tuner {
namespace {

using nlohmann::json;
using testing::CommandResult;
using ::testing::HasSubstr;
using ::testing::Not;

// y[i] = 2 * x[i] + 1 for 64 elements; what a test is about goes in by WHAT.
constexpr char kSource[] = R"(#include <stdint.h>
void twice(const float* x, float* y, int32_t n) {
  WHAT
  for (int i = 0; i < n; i += STEP)
    for (int k = i; k < i + STEP; ++k) y[k] = 2 * x[k] + 1;
}
void plain(const float* x, float* y, int32_t n) {
  for (int i = 0; i < n; ++i) y[i] = 2 * x[i] + 1;
}
)";
constexpr char kJob[] = R"({
  "op": "kernel", "source": "twice.c", "function": "twice", "sizes": {"n": 64},
  "arguments": [{"name": "x", "type": "float32", "shape": ["n"]},
                {"name": "y", "type": "float32", "shape": ["n"], "role": "out"},
                {"name": "n", "type": "int32", "value": "n"}],
  "knobs": {"STEP": [1, 2, 4, 8, 16, 32]}, "flags": ["-O2"], "reference": {"function": "plain"}, "trials": 6,
  "measure": {"min_repeat_ms": 0.1, "repeats": 3}
})";

class KernelCommands : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const Status able = can_confine(); !able) GTEST_SKIP() << able.message();
    no_races();
    write("");
  }
  // Which config is the fastest is not asked here, and races would be most of the time.
  static void no_races() { setenv("TUNER_RACE_LIMIT_S", "0.001", 1); }
  virtual const testing::CommandLine& shell() const = 0;
  void write(const std::string& what, const std::string& change = "{}") {
    std::string source = kSource;
    source.replace(source.find("WHAT"), 4, what);
    shell().write("twice.c", source);
    json job = json::parse(kJob);
    job.merge_patch(json::parse(change));
    shell().write("job.json", job.dump());
  }
  std::string output_of(const std::string& script) {
    const CommandResult ran = shell().run(script);
    EXPECT_EQ(ran.exit_code, 0) << script << "\n" << ran.out << ran.err;
    return ran.out;
  }
  // What `tuner query` says of the job file.
  json answer(const std::string& before = "") {
    const std::string out = shell().run(before + "tuner query job.json --json").out;
    return json::accept(out) ? json::parse(out) : json();
  }
  // Each config that was measured, with each of its outcomes.
  std::set<std::string> verdicts(const std::string& db) {
    std::istringstream lines(output_of("tuner records export --db " + db));
    std::set<std::string> found;
    for (std::string line; std::getline(lines, line);)
      if (const json row = json::parse(line); row.contains("outcome"))
        found.insert(row["config"].dump() + " " + row["outcome"].get<std::string>());
    return found;
  }
  // How many trials of the newest job ended so, by their record's outcome.
  std::map<std::string, int> outcomes() {
    std::istringstream lines(output_of("tuner records export"));
    std::map<std::string, int> found;
    for (std::string line; std::getline(lines, line);)
      if (const json row = json::parse(line); row.contains("outcome")) ++found[row["outcome"]];
    return found;
  }
};

// Each test with a folder and a home of its own.
class OwnKernelsTest : public KernelCommands {
 protected:
  const testing::CommandLine& shell() const override { return shell_; }

 private:
  const testing::CommandLine shell_{TUNER_BIN_DIR};
};

// What is done with one job's answer, which all of these tests share.
class TunedKernelTest : public KernelCommands {
 protected:
  static void SetUpTestSuite() {
    if (!can_confine()) return;
    no_races();
    shared_ = std::make_unique<testing::CommandLine>(TUNER_BIN_DIR);
    std::string source = kSource;
    shared_->write("twice.c", source.replace(source.find("WHAT"), 4, ""));
    shared_->write("job.json", json::parse(kJob).dump());
    const CommandResult tuned = shared_->run("tuner submit job.json --trials all");
    EXPECT_EQ(tuned.exit_code, 0) << tuned.out << tuned.err;
  }
  static void TearDownTestSuite() { shared_.reset(); }
  const testing::CommandLine& shell() const override { return *shared_; }

 private:
  static std::unique_ptr<testing::CommandLine> shared_;
};
std::unique_ptr<testing::CommandLine> TunedKernelTest::shared_;

// It has no reference, and answers say what is right instead.
TEST_F(OwnKernelsTest, ADraftThatIsFilledInIsAJob) {
  shell().run("mkdir src other && mv twice.c src/");
  const CommandResult drafted = shell().run("tuner kernel new src/twice.c --function twice -o draft.json");
  EXPECT_EQ(drafted.exit_code, 0) << drafted.err;
  EXPECT_THAT(drafted.out, HasSubstr("written: draft.json"));
  EXPECT_THAT(drafted.err, HasSubstr("fill in  sizes.n: "));
  const CommandResult marked = shell().run("tuner show draft.json --as space");
  EXPECT_EQ(marked.exit_code, 2);
  EXPECT_THAT(marked.err, HasSubstr("FILL_IN"));
  json job = json::parse(shell().read("draft.json"));
  job.merge_patch(
      {{"sizes", {{"n", 64}}}, {"knobs", {{"FILL_IN", nullptr}, {"STEP", {1, 2, 4}}}}, {"trials", 3}});
  for (json& argument : job["arguments"])
    if (argument.contains("shape")) argument["shape"] = {"n"};
  shell().write("job.json", job.dump());
  const std::string right = "right as the default config is";
  EXPECT_THAT(output_of("tuner submit job.json"), HasSubstr(right));
  EXPECT_EQ(answer()["right"], right);
  EXPECT_THAT(output_of("tuner query job.json"), HasSubstr(right));

  EXPECT_EQ(output_of("cd src && tuner kernel new twice.c --function twice 2>/dev/null"), [&] {
    std::string text = shell().read("draft.json");
    return text.erase(text.find("src/"), 4);
  }());
  for (const char* words :
       {"src/none.c", "src", "draft.json", "src/twice.c", "src/twice.c --function nothing",
        "src/twice.c --function twice -o other/job.json", "src/twice.c --function twice -o src/twice.c"}) {
    const CommandResult refused = shell().run(str("tuner kernel new ", words));
    EXPECT_EQ(refused.exit_code, 2) << words << refused.err;
    EXPECT_EQ(std::ranges::count(refused.err, '\n'), 1) << refused.err;
    EXPECT_EQ(refused.out, "");
  }
}

TEST_F(TunedKernelTest, AnAnswerIsOfOneTextAndOfNoOther) {
  const json found = answer();
  EXPECT_EQ(found["answer"], "exact") << found;
  EXPECT_EQ(found["template"], "source_kernel_cpu");
  EXPECT_TRUE(found["config"].contains("STEP")) << found;
  EXPECT_FALSE(found.contains("right")) << found;
  // White space and comments are no other text.
  write("/* nothing */\n\n");
  EXPECT_EQ(answer()["answer"], "exact");
  write("if (n < 0) return;");
  EXPECT_EQ(answer()["answer"], "default");
  write("", R"({"flags": ["-O3"]})");
  EXPECT_EQ(answer()["answer"], "default");
  write("");
  EXPECT_EQ(answer()["trial"], found["trial"]);
}

TEST_F(TunedKernelTest, WhatIsKnownOfItIsShown) {
  EXPECT_THAT(output_of("tuner show j1.1"), HasSubstr("// twice.c, by cc -O2 -DSTEP=1"));
  EXPECT_THAT(output_of("tuner show j1.1 --as asm"), HasSubstr("tuner_kernel:"));
  output_of("tuner report job.json -o report.html && tuner report j1 -o again.html");
  EXPECT_THAT(shell().read("report.html"), HasSubstr("source_kernel_cpu"));
  EXPECT_THAT(output_of("tuner estimate job.json"), Not(HasSubstr("not here")));
  EXPECT_THAT(output_of("tuner replay j1"), HasSubstr("j1"));
  EXPECT_THAT(output_of("tuner verify job.json"), HasSubstr("6 configs compared, 0 wrong"));
  output_of("tuner lock job.json -o lock && tuner query job.json --lock lock");
}

TEST_F(TunedKernelTest, ItsRecordsTravelWithItsSource) {
  output_of("tuner records export -o all.jsonl && tuner records import all.jsonl --db other.db");
  EXPECT_EQ(json::parse(output_of("tuner query job.json --db other.db --json"))["answer"], "exact");
  EXPECT_THAT(output_of("tuner show j1.1 --db other.db"), HasSubstr("// twice.c, by cc"));
  output_of("tuner records merge --output merged.db other.db");
  EXPECT_THAT(output_of("tuner show j1.1 --db merged.db"), HasSubstr("// twice.c, by cc"));
}

TEST_F(TunedKernelTest, ASecondJobFindsItsCompilations) {
  const std::string list = "ls .home/cache/tuner/shared/artifacts/by_source", before = output_of(list);
  EXPECT_GE(std::ranges::count(before, '\n'), 6);
  output_of("tuner submit job.json --trials all --db second.db");
  EXPECT_EQ(output_of(list), before);
}

TEST_F(OwnKernelsTest, AnotherCompilerMakesAnswersStale) {
  const auto install = [&](const std::string& version) {
    shell().write("bin/mycc", "#!/bin/sh\nif [ \"$1\" = --version ]; then echo mycc " + version +
                                  "; else exec /usr/bin/cc \"$@\"; fi\n");
    output_of("chmod +x bin/mycc");
  };
  const std::string with = "export TUNER_COMPILERS=cc=$PWD/bin/mycc\n";
  output_of("mkdir bin");
  install("1");
  output_of(with + "tuner submit job.json");
  json found = answer(with);
  EXPECT_EQ(found["fingerprint"]["toolchain"], "source:cc mycc 1");
  EXPECT_EQ(found["stale"], false) << found;
  install("2");
  found = answer(with);
  EXPECT_EQ(found["stale"], true);
  EXPECT_THAT(found["stale_reason"], HasSubstr("compiler: source:cc mycc 1 then, source:cc mycc 2 now"));
  shell().run(with + "tuner revalidate");  // its exit code tells how calm the machine is
  found = answer(with);
  EXPECT_EQ(found["fingerprint"]["toolchain"], "source:cc mycc 2") << found;
}

TEST_F(OwnKernelsTest, WrongAnswersAreFoundAndNeverWin) {
  // Wrong in one element; wrong where its inputs are not those of the first call; not all of it written.
  write(
      "static float old; if (STEP == 2) { y[5] = 0; for (int k = 0; k < n; ++k) if (k != 5) y[k] = 2 * x[k] "
      "+ 1; return; }\n"
      "if (STEP == 4) { if (old == 0) old = x[0]; if (x[0] != old) return; }\n"
      "if (STEP == 8) n -= 8;\n");
  output_of("tuner submit job.json --trials all");
  EXPECT_EQ(outcomes(), (std::map<std::string, int>{{"ok", 3}, {"wrong_answer", 3}}));
  const json found = answer();
  EXPECT_THAT(std::vector<int>({1, 16, 32}), ::testing::Contains(found["config"]["STEP"].get<int>()));
}

// What a search finds here, a pack finds where there is nothing but the runner: its inputs, answers and
// source are in it. The source comes back with the results, without which nobody could read their key.
TEST_F(OwnKernelsTest, APackFindsTheSameWhereOnlyTheRunnerIs) {
  write(
      "if (STEP == 2) { y[5] = 0; for (int k = 0; k < n; ++k) if (k != 5) y[k] = 2 * x[k] + 1; return; }\n"
      "if (STEP == 8) n -= 8;\n"
      "if (x[0] < 3 || x[0] > 4 || y[0] != 7) __builtin_trap();\n");
  std::vector<float> seven(64, 7);
  shell().write("seven.npy", npy_bytes(DType::kFloat32, {64}, seven.data(), 256));
  json job = json::parse(shell().read("job.json"));
  job["arguments"][0]["contents"] = {{"from", 3}, {"to", 4}};
  job["arguments"][1]["role"] = "inout";
  job["arguments"][1]["contents"] = "seven.npy";
  shell().write("job.json", job.dump());
  output_of("tuner submit job.json --trials all --db searched.db");
  output_of("tuner pack job.json -o all.pack --candidates 6 --min-repeat-ms 0.1");
  output_of(
      "mkdir elsewhere && mv all.pack elsewhere && cd elsewhere && mv ../twice.c ../job.json . &&"
      " runner run-pack all.pack -o results.jsonl && mv twice.c job.json ..");
  EXPECT_THAT(output_of("tuner records import elsewhere/results.jsonl --db packed.db"),
              HasSubstr("6 new trials"));
  EXPECT_THAT(output_of("tuner records import elsewhere/results.jsonl --db packed.db"),
              HasSubstr("0 new trials, 0 new records"));
  EXPECT_EQ(verdicts("packed.db"), verdicts("searched.db"));
  EXPECT_EQ(verdicts("packed.db").size(), 6u);
  const json found = json::parse(output_of("tuner query job.json --db packed.db --json"));
  EXPECT_EQ(found["answer"], "exact");
  EXPECT_EQ(
      found["fingerprint"]["toolchain"],
      json::parse(output_of("tuner query job.json --db searched.db --json"))["fingerprint"]["toolchain"]);
  EXPECT_THAT(output_of("tuner show " + found["trial"].get<std::string>() + " --db packed.db"),
              HasSubstr("// twice.c, by cc"));
  output_of("tuner records check --db packed.db");
  // Stopped and gone on with, its lines are those of one run.
  output_of(
      "cp elsewhere/results.jsonl before && runner run-pack elsewhere/all.pack -o elsewhere/results.jsonl");
  EXPECT_EQ(shell().read("elsewhere/results.jsonl"), shell().read("before"));
  // Without the line that has the source, nothing of it can be read.
  const CommandResult torn =
      shell().run("tail -n +2 before > torn && tuner records import torn --db torn.db");
  EXPECT_NE(torn.exit_code, 0);
  EXPECT_THAT(torn.err, HasSubstr("is not here"));
}

TEST_F(OwnKernelsTest, AnInoutIsRestoredBeforeEachCall) {
  shell().write("twice.c", R"(
void once(int* x) {
  if (x[0] != 7) __builtin_trap();  // a call has been here
  for (volatile int k = 0; k < 20000; ++k) {}  // of short calls a sample restores thousands
  for (int i = 0; i < 64; ++i) x[i] += STEP - STEP + 1;
}
void plain(int* x) { for (int i = 0; i < 64; ++i) ++x[i]; }
)");
  json job = json::parse(kJob);
  job["function"] = "once";
  job["arguments"] = json::parse(
      R"([{"name": "x", "type": "int32", "shape": [64], "role": "inout", "contents": {"from": 7, "to": 7}}])");
  shell().write("job.json", job.dump());
  output_of("tuner submit job.json --trials all");
  EXPECT_EQ(outcomes(), (std::map<std::string, int>{{"ok", 6}}));
}

TEST_F(OwnKernelsTest, EachOutputHasItsTolerance) {
  shell().write("twice.c", R"(
void both(float* a, float* b) {
  for (int i = 0; i < 64; ++i) a[i] = b[i] = i;
  if (STEP == 2) a[3] += 0.1f;
  if (STEP == 4) b[3] += 0.1f;
  if (STEP == 8) b[63] += 0.1f * 63;
  if (STEP == 16) b[63] += 0.3f * 63;
}
void plain(float* a, float* b) { for (int i = 0; i < 64; ++i) a[i] = b[i] = i; }
)");
  json job = json::parse(kJob);
  job["function"] = "both";
  job["arguments"] = json::parse(R"([
      {"name": "a", "type": "float32", "shape": [64], "role": "out"},
      {"name": "b", "type": "float32", "shape": [64], "role": "out", "tolerance": {"absolute": 0.2, "relative": 0.2}}])");
  shell().write("job.json", job.dump());
  output_of("tuner submit job.json --trials all");
  EXPECT_EQ(outcomes(), (std::map<std::string, int>{{"ok", 4}, {"wrong_answer", 2}}));  // of 2 and 16
  EXPECT_THAT(shell().run("tuner verify job.json").out, HasSubstr("6 configs compared, 2 wrong"));
}

TEST_F(OwnKernelsTest, ArraysOfFilesAreContentsAndReferences) {
  std::vector<float> x(64), y(64);
  for (int i = 0; i < 64; ++i) x[i] = static_cast<float>(i * i), y[i] = 2 * x[i] + 1;
  shell().write("x.npy", npy_bytes(DType::kFloat32, {64}, x.data(), 256));
  shell().write("y.npy", npy_bytes(DType::kFloat32, {64}, y.data(), 256));
  write("if (x[9] != 81) return;");
  json job = json::parse(shell().read("job.json"));
  job["arguments"][0]["contents"] = "x.npy";
  job["reference"] = json::parse(R"({"files": {"y": "y.npy"}})");
  shell().write("job.json", job.dump());
  output_of("tuner submit job.json --trials all");
  EXPECT_EQ(outcomes(), (std::map<std::string, int>{{"ok", 6}}));
  // Another array is another task, and another answer is wrong.
  y[63] += 1;
  shell().write("y.npy", npy_bytes(DType::kFloat32, {64}, y.data(), 256));
  EXPECT_EQ(answer()["answer"], "default");
  EXPECT_THAT(shell().run("tuner verify job.json").out, HasSubstr("6 configs compared, 6 wrong"));
}

TEST_F(OwnKernelsTest, ARaceEndsAtTheLimitThatIsGiven) {
  EXPECT_THAT(output_of("tuner submit job.json --trials 2"),
              ::testing::ContainsRegex("not certified: (there was time for 1 of at least|the machine is)"));
  for (const char* wrong : {"none", "0", "-1", "1s", "nan"}) {
    const CommandResult refused =
        shell().run(str("TUNER_RACE_LIMIT_S=", wrong, " tuner submit job.json --db none.db"));
    EXPECT_EQ(refused.exit_code, 2) << refused.err;
    EXPECT_EQ(refused.err,
              str("tuner: TUNER_RACE_LIMIT_S: expected seconds from 0.001 to 3600, found \"", wrong, "\"\n"));
  }
}

// It breaks each time: no worker waits for a better day.
TEST_F(OwnKernelsTest, AReferenceThatBreaksEndsTheJob) {
  write("", R"({"flags": ["-std=c99", "-O2"]})");
  output_of("tuner verify job.json");
  write("", R"({"reference": {"function": "broken"}})");
  shell().write("twice.c", shell().read("twice.c") +
                               "void broken(const float* x, float* y, int32_t n) { __builtin_trap(); }\n");
  const CommandResult ran = shell().run("timeout 60 tuner submit job.json");
  EXPECT_EQ(ran.exit_code, 1) << ran.out << ran.err;
  EXPECT_EQ(outcomes(), (std::map<std::string, int>{{"build_error", 6}}));
  EXPECT_THAT(output_of("tuner show j1.1 2>&1 || true"),
              HasSubstr("no reference answer: broken did not end well: signal"));
}

TEST_F(OwnKernelsTest, ThreadsOfOpenMpRunWhereTheTargetHasThem) {
  shell().write("twice.c", R"(
#include <omp.h>
void team(int* threads) {
  int n = 0;
#pragma omp parallel reduction(+ : n)
  n += 1;
  threads[0] = n + 0 * STEP;
}
void one(int* threads) { threads[0] = 1; }
void two(int* threads) { threads[0] = 2; }
)");
  json job = json::parse(kJob);
  job["function"] = "team";
  job["flags"] = {"-O2", "-fopenmp"};
  job["arguments"] = json::parse(R"([{"name": "threads", "type": "int32", "shape": [1], "role": "out"}])");
  for (const auto& [target, reference] : {std::pair("cpu", "one"), {"cpu -threads=2", "two"}}) {
    job["target"] = target;
    job["reference"] = {{"function", reference}};
    shell().write("job.json", job.dump());
    EXPECT_THAT(output_of("tuner submit job.json"), HasSubstr("(6 ok)")) << target;
  }
}

TEST_F(OwnKernelsTest, AHeaderChoosesBySize) {
  json jobs = json::array();
  for (const int n : {64, 4096}) {
    jobs.push_back(json::parse(kJob));
    jobs.back()["sizes"]["n"] = n;
  }
  shell().write("job.json", jobs.dump());
  output_of(
      "tuner submit job.json --trials all && tuner cover --tasks job.json --k 2 -o cover.h --name by_size");
  const std::string header = shell().read("cover.h");
  EXPECT_THAT(header, HasSubstr("std::int64_t n = 0;"));
  EXPECT_THAT(header, Not(HasSubstr("source = ")));
  shell().write(
      "a.cpp",
      "#include \"cover.h\"\n"
      "static_assert(by_size::knob(by_size::kConfigs[by_size::choose({.n = 64})], \"STEP\") > 0);\n");
  output_of("c++ -std=c++20 -Wall -Werror -c a.cpp -o a.o");
}

TEST_F(TunedKernelTest, TheWinnerIsShippedWithThePrototypeOfItsUser) {
  output_of("tuner build job.json -o out");
  EXPECT_THAT(shell().read("out/include/twice.h"),
              HasSubstr("\nvoid twice(const float* x, float* y, int32_t n);\n"));
  shell().write("app.c", R"(
#include <stdio.h>
#include "twice.h"
void plain(void) { puts("a plain of the application's"); }
int main(void) {
  float x[64], y[64];
  for (int i = 0; i < 64; ++i) x[i] = i;
  twice(x, y, 64);
  plain();
  printf("%g %g\n", y[1], y[63]);
}
)");
  constexpr char kPrinted[] = "a plain of the application's\n3 127\n";
  EXPECT_EQ(output_of("cc -Wall -Werror -Iout/include app.c out/lib/libtwice.a -o app && ./app"), kPrinted);
  EXPECT_EQ(output_of("cc -Iout/include app.c out/obj/twice.o -o app && ./app"), kPrinted);
  EXPECT_EQ(output_of("cc -Iout/include app.c -Lout/lib -ltwice -Wl,-rpath,$PWD/out/lib -o app && ./app"),
            kPrinted);
  EXPECT_EQ(
      output_of("echo '#include \"twice.h\"' > a.cpp && c++ -c -Wall -Werror -Iout/include a.cpp -o a.o"),
      "");
  // Two of one source, of other sizes, in one program.
  write("", R"({"sizes": {"n": 32}, "name": "small"})");
  output_of("tuner build job.json -o small");
  shell().write("two.c",
                "#include \"small.h\"\n#include \"twice.h\"\nint main(void) { float x[64] = {1}, y[64]; "
                "twice(x, y, 64); small(x, y, 32); return y[0] == 3 ? 0 : 1; }\n");
  output_of("cc -Iout/include -Ismall/include two.c out/lib/libtwice.a small/lib/libsmall.a -o two && ./two");
  const std::string defines =
      output_of("tuner build job.json -o only --emit defines && cat only/defines/small.h");
  EXPECT_THAT(defines, ::testing::ContainsRegex("#define STEP [0-9]+\n"));
}

}  // namespace
}  // namespace tuner
