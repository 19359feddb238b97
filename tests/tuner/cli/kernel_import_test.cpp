// tuner kernel import and tuner records import --job, on files of every form (tests/tuner/data), written
// after the documentation of the formats. What each says was written down by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/damaged_text.h"
#include "tests/tuner/command_line.h"

namespace tuner {
namespace {

using nlohmann::json;
using testing::CommandResult;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kSource[] = R"(void blur(const float* x, float* y, int n) {
  for (int i = 0; i < n; i += UNROLL) for (int k = i; k < i + UNROLL; ++k) y[k] = x[k] * TILE * ORDER_rows;
}
)";
constexpr char kJob[] = R"({
  "op": "kernel", "source": "blur.c", "function": "blur", "target": "llvm -mcpu=haswell -threads=1",
  "arguments": [{"name": "x", "type": "float32", "shape": [64]},
                {"name": "y", "type": "float32", "shape": [64], "role": "out"},
                {"name": "n", "type": "int32", "value": 64}],
  "knobs": {"TILE": [8, 16, 32], "UNROLL": [1, 2], "ORDER": ["rows", "columns"]},
  "constraints": ["TILE >= 16 or UNROLL == 1"], "flags": ["-O2"], "trials": 4
})";

class KernelImport : public ::testing::Test {
 protected:
  KernelImport() {
    for (const char* folder : {"t1", "range", "t4", "kernel_tuner"})
      std::filesystem::copy(std::string(TUNER_SOURCE_DIR) + "/tests/tuner/data/" + folder,
                            shell_.folder() / folder, std::filesystem::copy_options::recursive);
    shell_.write("blur.c", kSource);
    shell_.write("job.json", kJob);
  }
  // One line, exit code 2, nothing on standard output and no file more.
  std::string refused(const std::string& words) const {
    const auto count = [&] {
      return std::ranges::count_if(std::filesystem::directory_iterator(shell_.folder()),
                                   [](const auto& entry) { return entry.path().filename() != ".home"; });
    };
    const auto before = count();
    const CommandResult r = shell_.run("tuner " + words);
    EXPECT_EQ(r.exit_code, 2) << words << r.out << r.err;
    EXPECT_EQ(r.out, "") << words;
    EXPECT_EQ(std::ranges::count(r.err, '\n'), 1) << words << r.err;
    EXPECT_EQ(count(), before) << words;
    return r.err;
  }
  testing::CommandLine shell_{TUNER_BIN_DIR};
};

TEST_F(KernelImport, AT1FileIsAJobThatCanBeTuned) {
  const CommandResult made = shell_.run("tuner kernel import t1/host.json -o t1/job.json");
  EXPECT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("written: t1/job.json\nnext: "));
  EXPECT_THAT(made.err, HasSubstr("look at  flags: the file's option -fplugin=x.so is left out"));
  EXPECT_THAT(made.err, Not(HasSubstr("fill in")));
  EXPECT_THAT(shell_.run("tuner show t1/job.json --as space").out, HasSubstr("STEP"));
  // From the folder above, the source is named from there.
  const CommandResult above = shell_.run("tuner kernel import t1/host.json");
  EXPECT_EQ(json::parse(above.out)["source"], "t1/host.c");
}

TEST_F(KernelImport, WhatIsNoT1FileIsOneLineWithFileAndPlace) {
  const std::pair<const char*, const char*> cases[] = {
      {"t1/bad_opencl.json",
       "t1/bad_opencl.json: KernelSpecification.Language: tuner compiles CUDA, C and C++"},
      {"t1/bad_division.json", "t1/bad_division.json: ConfigurationSpace.Conditions[1].Expression: column 3"},
      {"t1/bad_cut.json", "t1/bad_cut.json: line 5, column "},
      {"t1/bad_results.json", "t1/bad_results.json: holds results of another tuner"},
      {"t4/plain.json", "tuner records import FILE --job JOB takes results"},
      {"job.json", "job.json: is a job file already"},
      {"none.json", "none.json: cannot be read"},
      {"t1", "t1: is a folder"},
      {"t1/host.json --function other", "--function: t1/host.json names twice; leave the option out"},
      {"t1/host.json -o range/job.json",
       "t1/host.json: KernelSpecification.KernelFile: --output: expected a file beside"},
      {"t1/host.json -o t1/host.c", "t1/host.c"},
      {"t1/host.json -o t1/host.json", "t1/host.json"},
  };
  for (const auto& [words, expected] : cases)
    EXPECT_THAT(refused(str("kernel import ", words)), HasSubstr(expected));
}

TEST_F(KernelImport, ASourceWithRangeCommentsIsADraftWithTheseKnobs) {
  const std::pair<const char*, const char*> good[] = {
      {"plain.c", R"({"TILE": {"from": 8, "to": 64, "step": 8}})"},
      {"several.cpp", R"({"TUNE_BINS": {"from": 16, "to": 256, "step": 16},
                          "TUNE_ITEMS_PER_THREAD": {"from": 7, "to": 24, "step": 1}})"},
      {"crlf.c", R"({"A": {"from": 1, "to": 4, "step": 1}, "B": {"from": 0, "to": 0, "step": 1}})"},
      {"uneven.c", R"({"STEP": {"from": 2, "to": 8, "step": 3}})"},
      {"negative.c", R"({"SHIFT": {"from": -8, "to": 8, "step": 4}})"},
      {"spliced.c", R"({"WIDTH": {"from": 128, "to": 512, "step": 128}})"},
      {"blocks.cu",
       R"({"TILE": {"from": 8, "to": 32, "step": 8}, "ITEMS": {"from": 1, "to": 4, "step": 1}})"},
      {"two_functions.c --function two", R"({"U": {"from": 1, "to": 8, "step": 1}})"},
  };
  for (const auto& [words, knobs] : good) {
    const CommandResult made = shell_.run(str("tuner kernel import range/", words));
    ASSERT_EQ(made.exit_code, 0) << words << made.err;
    EXPECT_EQ(json::parse(made.out)["knobs"], json::parse(knobs)) << words;
  }
  const std::pair<const char*, const char*> bad[] = {
      {"two_functions.c", "which function? Name one by --function: one, two"},
      {"bad_step.c", "range/bad_step.c: line 3: %RANGE% B: expected a step above 0"},
      {"bad_twice.c", "range/bad_twice.c: line 2: %RANGE% A: it stands in line 1 already"},
      {"bad_words.c", "range/bad_words.c: line 1: %RANGE%: expected MACRO LABEL START:END:STEP"},
      {"bad_end.c", "range/bad_end.c: line 1: %RANGE% A: expected an end that is not below the start"},
      {"bad_none.c", "range/bad_none.c: it has no comment such as"},
  };
  for (const auto& [words, expected] : bad)
    EXPECT_THAT(refused(str("kernel import range/", words)), HasSubstr(expected));
}

// Of each file: rows that are attached, rows outside the space, rows that cannot be read; and a part of what
// is said.
TEST_F(KernelImport, RowsOfOtherTunersAreAttachedToAJob) {
  const struct {
    const char* file;
    int attached, outside, skipped;
    const char* says;
  } cases[] = {
      {"t4/plain.json", 2, 0, 0, ""},
      {"t4/ktt.json", 2, 0, 0, ""},
      {"t4/units.json", 3, 0, 1, "skipped line 7: a correct result without a time"},
      {"t4/failures.json", 5, 0, 1, "skipped line 7: invalidity: found \"bad luck\""},
      {"t4/one_line.json", 1, 0, 0, ""},
      {"t4/crlf.json", 1, 0, 0, ""},
      {"t4/cut.json", 1, 0, 0, "cut off"},
      {"t4/outside.json", 1, 7, 0,
       "left out 7 of 8 rows, which the job's space does not have; the first, in line 3: "},
      {"kernel_tuner/closed.json", 2, 0, 0, ""},
      {"kernel_tuner/open_comma.json", 2, 0, 0, ""},
      {"kernel_tuner/open.json", 1, 0, 0, ""},
      {"kernel_tuner/open_looks_closed.json", 1, 0, 0, ""},
      {"kernel_tuner/cut.json", 1, 0, 0, "line 4: the file is cut off inside the row that begins here"},
      {"kernel_tuner/failures.json", 5, 0, 1, "skipped line 10: time: found \"TooSlowConfig\""},
      {"kernel_tuner/other_objective.json", 2, 0, 1, "skipped line 6: a correct result without a time"},
      {"kernel_tuner/old.json", 1, 0, 0, ""},
      {"kernel_tuner/odd_rows.json", 2, 0, 3,
       "skipped line 4: expected a value of the parameter ORDER, found none"},
      {"kernel_tuner/indented.json", 2, 0, 0, ""},
  };
  for (const auto& each : cases) {
    SCOPED_TRACE(each.file);
    const CommandResult r =
        shell_.run(str("rm -f a.db; tuner records import ", each.file, " --job job.json --db a.db --json"));
    const bool whole = std::string(each.says).empty();
    EXPECT_EQ(r.exit_code, whole ? 0 : 1) << r.err;
    ASSERT_TRUE(json::accept(r.out)) << r.out << r.err;
    const json facts = json::parse(r.out)[0];
    EXPECT_EQ(facts["foreign"]["new"], each.attached);
    EXPECT_EQ(facts["outside"]["rows"], each.outside);
    EXPECT_EQ(facts["skipped"], each.skipped);
    EXPECT_EQ(facts["unmatched"], 0);
    const CommandResult told =
        shell_.run(str("tuner records import ", each.file, " --job job.json --db b.db"));
    EXPECT_THAT(told.err, HasSubstr(each.says));
    EXPECT_THAT(told.out, HasSubstr("They are no answer: they were not measured here.\nnext: "));
    // The same file again changes nothing.
    EXPECT_EQ(
        json::parse(shell_.run(str("tuner records import ", each.file, " --job job.json --db a.db --json"))
                        .out)[0]["foreign"]["known"],
        each.attached);
  }
}

TEST_F(KernelImport, AFileThatFitsNowhereIsRefusedAndNothingIsMade) {
  const std::pair<const char*, const char*> cases[] = {
      {"t4/bad_names.json --job job.json",
       "t4/bad_names.json: none of its 2 rows fits the job; the first, line 2: expected the parameters "
       "ORDER, TILE, "
       "UNROLL, found block"},
      {"t4/bad_unit.json --job job.json", "the first, line 2: metadata.timeunit: found \"fortnights\""},
      {"t4/bad_empty.json --job job.json", "none of its 0 rows fits the job; it has no rows"},
      {"kernel_tuner/bad_list.json --job job.json",
       "kernel_tuner/bad_list.json: no cache file of Kernel Tuner"},
      {"kernel_tuner/bad_twice.json --job job.json", "what stands beside \"cache\": "},
      {"t4/plain.json --job none.json", "none.json: cannot be read"},
      {"t4/plain.json --job job.json --task x", "--job says what was tuned: expected no --task beside it"},
      {"t4/plain.json --job two.json", "two.json: expected a job file with one entry, found 2"},
      {"table.csv --job job.json",
       "--job: expected T4 files or cache files of Kernel Tuner; table.csv is csv"},
  };
  shell_.write("two.json", str("[", kJob, ",", kJob, "]"));
  shell_.write("table.csv", "TILE,time_ms\n8,1\n");
  for (const auto& [words, expected] : cases)
    EXPECT_THAT(refused(str("records import ", words, " --db new.db")), HasSubstr(expected));
}

TEST_F(KernelImport, AttachedRowsAreToldToWhoAsksAndAreNoAnswer) {
  ASSERT_EQ(shell_.run("tuner records import t4/ktt.json kernel_tuner/closed.json --job job.json --db a.db")
                .exit_code,
            0);
  const CommandResult asked = shell_.run("tuner query job.json --db a.db --json");
  EXPECT_EQ(asked.exit_code, 1) << asked.err;
  const json answer = json::parse(asked.out);
  EXPECT_EQ(answer["answer"], "default");
  // 60 microseconds of KTT's second row are less than the 3 ms and 5 ms of the cache file.
  EXPECT_THAT(
      answer["note"].get<std::string>(),
      HasSubstr(
          "imported, not measured here: source_kernel_cpu ORDER=0 TILE=32 UNROLL=2 took 60.00 us on Card Z"));
  // Of another text of the source nothing was imported.
  shell_.write("blur.c", std::string(kSource) + "int more;\n");
  EXPECT_THAT(shell_.run("tuner query job.json --db a.db --json").out, Not(HasSubstr("imported")));
}

}  // namespace
}  // namespace tuner
