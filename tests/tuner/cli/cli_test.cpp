// The `tuner` command as a person meets it: exit codes, what goes to which stream, and files that other
// programs can use.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "compiler_core/codegen/compile.h"
#include "compiler_core/lower/lower.h"
#include "db/sqlite/sqlite.h"
#include "db/store.h"
#include "templates/schedule_template.h"
#include "tests/support/temporary_folder.h"

namespace tuner {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::HasSubstr;
namespace fs = std::filesystem;

struct Outcome3 {
  int exit_code = -1;
  std::string out, err;
};

std::string contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A small convolution with everything in it: odd sizes, stride, padding, bias, ReLU and a packed weight.
constexpr char kConv[] =
    R"({"op":"conv2d","data":[1,3,9,11],"weight":[5,3,3,2],"stride":[2,1],"padding":[1,0],"bias":true,"activation":"relu",)"
    R"("constant":["weight"],"target":"cpu"})";

class CliTest : public testing::Test {
 protected:
  CliTest() { write("conv.json", kConv); }

  void write(const std::string& name, std::string_view text) { std::ofstream(folder_ / name) << text; }

  // Runs a command line in the folder, through the shell.
  Outcome3 shell(const std::string& line) {
    const std::string full =
        str("cd ", folder_.string(), " && { ", line, "; } >out.txt 2>err.txt </dev/null");
    const int status = std::system(full.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, contents(folder_ / "out.txt"),
            contents(folder_ / "err.txt")};
  }
  Outcome3 tuner(const std::string& arguments) {
    return shell(str("XDG_DATA_HOME=", folder_.string(), "/data ", TUNER_BINARY, " ", arguments));
  }

  // Fills t.db with a job of three trials of conv.json: the default config fastest, a slower one, and a
  // crash.
  void fill_database() {
    auto workload = workload_from_key(kKey);
    ASSERT_TRUE(workload.is_ok()) << workload.message();
    const Target target = host_target();
    const auto serving = templates_for(*workload, target);
    ASSERT_TRUE(serving.is_ok()) << serving.message();
    const auto instance = serving->front()->apply(*workload, target);
    ASSERT_TRUE(instance.is_ok()) << instance.message();
    const ConfigSpace& space = (*instance)->space();
    auto store = Store::open(folder_ / "t.db", Store::Mode::kWrite);
    ASSERT_TRUE(store.is_ok()) << store.message();
    JobRow job{
        .id = "j1", .request_id = "r1", .tasks = {{kKey, target.name()}}, .trials = 3, .search = "random"};
    ASSERT_TRUE((*store)->add_job(job).is_ok());
    std::vector<TrialRow> trials(3);
    for (size_t i = 0; i < 3; ++i) {
      trials[i].job_id = "j1";
      trials[i].template_name = serving->front()->name();
      trials[i].template_version = serving->front()->version();
      trials[i].config = space.at(i == 0 ? space.default_index() : i % space.size()).to_text();
    }
    ASSERT_TRUE((*store)->add_trials(trials).is_ok());
    std::vector<MeasureRecord> records(3);
    for (size_t i = 0; i < 3; ++i) {
      records[i].trial_id = trials[i].id;
      records[i].environment.hardware = "test cpu";
      records[i].finished_at_us = 1'700'000'000'000'000;
      if (i < 2) records[i].run_ns = {1000.0 * double(i + 1), 1001.0 * double(i + 1), 1002.0 * double(i + 1)};
    }
    records[2].outcome = Outcome::kCrashed;
    records[2].message = "signal 11 (SIGSEGV)";
    ASSERT_TRUE((*store)->add_records(records).is_ok());
    best_trial_ = trials[0].id;
    best_config_ = trials[0].config;
  }

  static constexpr char kKey[] =
      "v1 conv2d n=1 ic=3 ih=9 iw=11 oc=5 kh=3 kw=2 stride=2,1 pad=1,0,1,0 dil=1,1 groups=1 bias=1 act=relu "
      "dtype=float32 "
      "layout=NCHW const=weight";
  const TemporaryFolder temporary_;
  const fs::path folder_ = temporary_.path();
  std::string best_trial_, best_config_;
};

TEST_F(CliTest, HelpIsExit0AndWrongUseIsExit2) {
  EXPECT_EQ(tuner("--help").exit_code, 0);
  for (const char* command : {"query", "build", "show", "verify", "jobs", "records", "records export",
                              "revalidate", "report", "estimate"}) {
    const Outcome3 help = tuner(str(command, " --help"));
    EXPECT_EQ(help.exit_code, 0) << command;
    EXPECT_THAT(help.out, HasSubstr("--help")) << command;
  }
  for (const char* wrong :
       {"", "dance", "query", "query a b", "show conv.json --as poem", "verify conv.json --samples 0",
        "build conv.json", "report", "estimate --db t.db extra words", "revalidate --budget soon"}) {
    const Outcome3 refused = tuner(wrong);
    EXPECT_EQ(refused.exit_code, 2) << wrong;
    EXPECT_FALSE(refused.err.empty()) << wrong;
  }
}

TEST_F(CliTest, ABadJobFileIsOneLineAndExit2InEveryCommand) {
  write("bad.json", R"({"op": "conv2d", "data": [1, 3, 9, 9], "weight": [5, 3, 3, 3], "stride": [0, 1]})");
  for (const char* command : {"query", "build -o out", "show", "verify"}) {
    const Outcome3 refused = tuner(str(command, " bad.json"));
    EXPECT_EQ(refused.exit_code, 2) << command;
    EXPECT_EQ(refused.err,
              "tuner: bad.json: stride: expected two integers >= 1, found [0, 1]. Order is [vertical, "
              "horizontal].\n")
        << command;
    EXPECT_EQ(refused.out, "") << command;
  }
  EXPECT_EQ(tuner("query nowhere.json").exit_code, 2);
}

TEST_F(CliTest, WithoutADatabaseQueryAndJobsSayWhatToType) {
  const Outcome3 query = tuner("query conv.json --db none.db");
  EXPECT_EQ(query.exit_code, 1);
  EXPECT_EQ(query.err, str("tuner: none.db: there is no database yet. To tune: ", TUNER_BINARY,
                           " submit conv.json --db none.db\n"));
  const Outcome3 jobs = tuner("jobs");
  EXPECT_EQ(jobs.exit_code, 1);
  EXPECT_THAT(jobs.err, HasSubstr("tuner submit"));
  EXPECT_FALSE(fs::exists(folder_ / "none.db"));
}

TEST_F(CliTest, QueryPrintsTheBestConfigAndWhatItRestsOn) {
  fill_database();
  const Outcome3 text = tuner("query conv.json --db t.db");
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out,
              HasSubstr("  time        1.001 us in one trial\n              not certified: not raced\n"));
  EXPECT_THAT(
      text.out,
      HasSubstr("not claimed, because the time is not certified (default config: 1.001 us in one trial)"));
  EXPECT_THAT(text.out, HasSubstr(best_config_));
  EXPECT_THAT(text.out, HasSubstr("trial j1.1; 3 trials of this task (1 crashed, 2 ok)"));
  const Outcome3 document = tuner("query conv.json --db t.db --json");
  const json facts = json::parse(document.out);
  EXPECT_EQ(facts.at("time_ns"), 1001);
  EXPECT_FALSE(facts.contains("time_low_ns")) << "of one process there is no interval that the next lies in";
  EXPECT_FALSE(facts.contains("gain"));
  EXPECT_EQ(facts.at("trial"), "j1.1");
  EXPECT_EQ(facts.at("workload"), kKey);
  EXPECT_EQ(facts.at("target"), host_target().name());
  EXPECT_EQ(facts.at("trials"), 3);
  EXPECT_EQ(facts.at("outcomes"), (json{{"ok", 2}, {"crashed", 1}}));
  EXPECT_EQ(facts.at("fingerprint").at("hardware"), "test cpu");
  EXPECT_EQ(facts.at("when"), "2023-11-14T22:13:20.000000Z");
  EXPECT_TRUE(facts.at("config").is_object());
  EXPECT_GT(facts.at("gflops"), 0);
}

TEST_F(CliTest, QueryOfATaskWithoutARecordIsExit1WithTheNextCommand) {
  fill_database();
  write("other.json", R"({"op":"matmul","a":[4,4],"b":[4,4]})");
  const Outcome3 other = tuner("query other.json --db t.db");
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_THAT(other.err, HasSubstr("tuner submit other.json --db t.db"));
}

TEST_F(CliTest, JobsListsStateAndProgress) {
  fill_database();
  EXPECT_THAT(tuner("jobs --db t.db").out, HasSubstr("j1  interrupted  3 of 3 trials  random seed 0"));
  const json jobs = json::parse(tuner("jobs --db t.db --json").out);
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0].at("trials_done"), 3);
  EXPECT_EQ(jobs[0].at("tasks")[0].at("workload"), kKey);
}

// Cold times are the answers of tasks that ask for them, and of no others.
TEST_F(CliTest, JobsListsTheAnswerOfATaskByItsConstants) {
  fill_database();
  {
    auto store = Store::open(folder_ / "t.db", Store::Mode::kWrite);
    ASSERT_TRUE(store.is_ok()) << store.message();
    JobRow job{.id = "j2",
               .request_id = "r2",
               .tasks = {{kKey, host_target().name()}},
               .trials = 1,
               .search = "random"};
    job.tasks[0].constants = job.options.constants = Constants::kCold;
    ASSERT_TRUE((*store)->add_job(job).is_ok());
    TrialWithRecord of = (*store)->trial(best_trial_).value();
    std::vector<TrialRow> trials = {{.job_id = "j2",
                                     .template_name = of.trial.template_name,
                                     .template_version = of.trial.template_version,
                                     .config = best_config_}};
    ASSERT_TRUE((*store)->add_trials(trials).is_ok());
    MeasureRecord record = *of.record;
    record.trial_id = trials[0].id;
    record.run_ns = {5000};
    ASSERT_TRUE((*store)->add_records({record}).is_ok());
  }
  const json jobs = json::parse(tuner("jobs --db t.db --json").out);
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].at("tasks")[0].at("tuned").at("time_ns"), 1001);
  EXPECT_EQ(jobs[1].at("tasks")[0].at("tuned").at("time_ns"), 5000);
  EXPECT_EQ(jobs[1].at("tasks")[0].at("tuned").at("constants"), "cold");
}

// What --help calls the default is what is used.
TEST_F(CliTest, ADiffIsByTwoPercentAndNinetyFivePercentSureUnlessTold) {
  fill_database();
  const std::string help = tuner("records diff --help").out;
  EXPECT_THAT(help, HasSubstr("PERCENT:FLOAT in [0 - 1000]=2\n"));
  const json diff = json::parse(tuner("records diff t.db t.db --json").out);
  EXPECT_EQ(diff.at("threshold"), 0.02);
  EXPECT_EQ(diff.at("confidence"), 0.95);
  const json told = json::parse(tuner("records diff t.db t.db --threshold 5 --confidence 90 --json").out);
  EXPECT_EQ(told.at("threshold"), 0.05);
  EXPECT_EQ(told.at("confidence"), 0.9);
}

TEST_F(CliTest, AMergeThatSkipsARowExits1AndTellsWhich) {
  fill_database();
  ASSERT_EQ(tuner("records merge t.db -o whole.db").exit_code, 0);
  {
    const auto file = db::Connection::open(folder_ / "t.db", db::Connection::Access::kReadWrite);
    ASSERT_TRUE(file.is_ok()) << file.message();
    ASSERT_TRUE((*file)->exec("UPDATE record SET time_ns = 7 WHERE outcome = 'crashed'").is_ok());
  }
  ASSERT_EQ(tuner("records export --db whole.db -o whole.jsonl").exit_code, 0);
  ASSERT_EQ(tuner("records import whole.jsonl --db other.db").exit_code, 0);
  const Outcome3 merged = tuner("records merge t.db -o other.db");
  EXPECT_EQ(merged.exit_code, 1) << merged.out;
  EXPECT_THAT(merged.out, HasSubstr("1 skipped"));
  EXPECT_THAT(merged.err, HasSubstr("of table record is damaged"));
  EXPECT_EQ(tuner("records check --db t.db").exit_code, 1);
  EXPECT_EQ(tuner("records check --db whole.db").exit_code, 0);
}

// Every key of a document, those of objects within too. What is by name (knobs, outcomes) has none.
void add_keys(const json& document, std::set<std::string>& keys) {
  if (document.is_array())
    for (const json& element : document) add_keys(element, keys);
  if (!document.is_object()) return;
  for (const auto& [key, value] : document.items()) {
    keys.insert(key);
    if (key != "config" && key != "outcomes" && key != "phases") add_keys(value, keys);
  }
}

TEST_F(CliTest, TheKeysOfJsonStandOnTheirPage) {
  fill_database();
  const std::string page = contents(fs::path(TUNER_SOURCE_DIR) / "docs/json.md");
  std::set<std::string> keys;
  for (const char* command :
       {"query conv.json --db t.db --json", "query --all --db t.db --format jsonl", "jobs --db t.db --json",
        "records merge t.db -o m.db --json", "records diff t.db t.db --json",
        "records check --db t.db --json", "records export --db t.db -o e.jsonl --json",
        "records import e.jsonl --db n.db --json", "estimate conv.json --db t.db --json",
        "estimate --calibrate --db t.db --json"}) {
    const Outcome3 printed = tuner(command);
    const json document = json::parse(printed.out, nullptr, /*allow_exceptions=*/false);
    ASSERT_FALSE(document.is_discarded()) << command << ": " << printed.out << printed.err;
    add_keys(document, keys);
  }
  EXPECT_GT(keys.size(), 60u);
  for (const std::string& key : keys)
    EXPECT_THAT(page, HasSubstr("`" + key + "`")) << "docs/json.md does not have it";
}

TEST_F(CliTest, RecordsExportWritesOneLineATrialWithAllSamples) {
  fill_database();
  const Outcome3 printed = tuner("records export --db t.db");
  ASSERT_EQ(printed.exit_code, 0) << printed.err;
  std::istringstream lines(printed.out);
  std::vector<json> records;
  for (std::string line; std::getline(lines, line);) records.push_back(json::parse(line));
  ASSERT_EQ(records.size(), 4u);
  EXPECT_EQ(records[0].at("kind"), "job");
  EXPECT_EQ(records[1].at("format"), 2);
  EXPECT_EQ(records[1].at("run_ns"), (json{1000.0, 1001.0, 1002.0}));
  EXPECT_EQ(records[1].at("hardware"), "test cpu");
  EXPECT_EQ(records[3].at("outcome"), "crashed");
  EXPECT_EQ(records[3].at("message"), "signal 11 (SIGSEGV)");
  EXPECT_EQ(tuner("records export --db t.db --job j1 -o all.jsonl").exit_code, 0);
  EXPECT_EQ(contents(folder_ / "all.jsonl"), printed.out);
  EXPECT_EQ(tuner("records export --db t.db --job j9").exit_code, 1);
  EXPECT_EQ(tuner("records export --db t.db -o no/such/folder").exit_code, 2);
}

TEST_F(CliTest, RecordsExportSpaceWritesARowAConfigAndSaysHowMuchOfTheSpaceItIs) {
  fill_database();
  const Outcome3 of_file = tuner("records export --db t.db --space conv.json");
  ASSERT_EQ(of_file.exit_code, 0) << of_file.err;
  EXPECT_THAT(of_file.out, HasSubstr(",time_ms,status,samples_ms\n"));
  EXPECT_THAT(of_file.out, HasSubstr(",0.001001,ok,0.001;0.001001;0.001002\n"));
  EXPECT_THAT(of_file.out, HasSubstr(",,crashed,\n"));
  EXPECT_THAT(of_file.err, HasSubstr(" valid configs: 2 timed, 1 failed\n"));
  EXPECT_EQ(tuner("records export --db t.db --space --job j1 -o s.csv").exit_code, 0);
  EXPECT_EQ(contents(folder_ / "s.csv"), of_file.out);

  const auto refused = [&](const std::string& arguments, int exit_code, const std::string& message) {
    const Outcome3 run = tuner("records export --db t.db " + arguments);
    EXPECT_EQ(run.exit_code, exit_code) << arguments;
    EXPECT_THAT(run.err, HasSubstr(message)) << arguments;
  };
  refused("--space", 2, "expected a job file or --job JOB, found neither");
  refused("--space --job j1 conv.json", 2, "expected a job file or --job JOB, found both");
  refused("--space --job j9", 1, "no job \"j9\"");
  refused("--space --job j1 --task 1", 2, "--task: found 1, expected 0 to 0");
  refused("--task 0", 2, "--task chooses a task of FILE");
  write("other.json", R"({"op":"softmax","rows":4,"columns":8,"target":"cpu"})");
  refused("--space other.json", 1, "FILE --trials all");
}

TEST_F(CliTest, RecordsTravelBetweenDatabasesAndFormats) {
  fill_database();
  ASSERT_EQ(tuner("records export --db t.db -o all.jsonl.gz").exit_code, 0);
  const Outcome3 imported = tuner("records import all.jsonl.gz --db u.db");
  EXPECT_EQ(imported.exit_code, 0) << imported.err;
  EXPECT_THAT(imported.out, HasSubstr("all.jsonl.gz: jsonl, 4 lines, 3 new records, 1 new jobs, 0 skipped"));
  EXPECT_THAT(tuner("records import all.jsonl.gz --db u.db").out, HasSubstr("0 new records (3 known)"));
  EXPECT_EQ(json::parse(tuner("query conv.json --db u.db --json").out).at("time_ns"), 1001);
  const json facts = json::parse(tuner("records import all.jsonl.gz --db v.db --json").out);
  EXPECT_EQ(facts[0].at("records"), (json{{"new", 3}, {"known", 0}}));

  EXPECT_EQ(tuner("records export --db t.db --format autotvm --op conv2d -o log.json").exit_code, 0);
  EXPECT_THAT(tuner("records import log.json --db u.db").out,
              HasSubstr("autotvm, 3 lines, 3 new records of another tuner"));
  EXPECT_EQ(tuner("records export --db t.db --format t4 conv.json -o t4.json").exit_code, 0);
  EXPECT_THAT(tuner("records import t4.json --db u.db").out,
              HasSubstr("t4, 3 lines, 3 new records of another tuner"));
  EXPECT_EQ(tuner("records export --db u.db --format autotvm --foreign").out, contents(folder_ / "log.json"));
  EXPECT_EQ(tuner("records export --db t.db --op matmul").out, "");
  EXPECT_EQ(tuner("records export --db t.db --since 1h").out, "");

  const Outcome3 merged = tuner("records merge t.db u.db -o w.db");
  EXPECT_EQ(merged.exit_code, 0) << merged.err;
  EXPECT_THAT(merged.out, HasSubstr("u.db: 10 rows: 0 new records (3 known), 0 new jobs"));
  const Outcome3 same = tuner("records diff t.db w.db");
  EXPECT_EQ(same.exit_code, 0) << same.out << same.err;
  EXPECT_THAT(same.out, HasSubstr("1 tasks compared: mean +0.0 %"));

  const auto refused = [&](const std::string& arguments, int exit_code, const std::string& message) {
    const Outcome3 run = tuner("records " + arguments);
    EXPECT_EQ(run.exit_code, exit_code) << arguments;
    EXPECT_THAT(run.err, HasSubstr(message)) << arguments;
  };
  write("broken.jsonl", "{\"format\":2,\"kind\":\"job\",\"job_uid\"\n");
  refused("import broken.jsonl --db x.db", 1, "broken.jsonl: skipped line 1: no JSON: ");
  write("text.txt", "once upon a time\n");
  refused("import text.txt --db x.db", 2, "text.txt: is none of the formats known here");
  refused("import nowhere.jsonl --db x.db", 2, "nowhere.jsonl: cannot be read: ");
  refused("import all.jsonl.gz --format yaml --db x.db", 2,
          "expected jsonl, autotvm, t4, csv or kernel-tuner");
  refused("export --db t.db --format yaml", 2, "expected jsonl, autotvm, t4 or csv");
  refused("export --db t.db --format kernel-tuner", 2, "expected jsonl, autotvm, t4 or csv");
  refused("export --db t.db --since soon", 2, "--since: found \"soon\"");
  refused("export --db t.db --own --foreign", 2, "exclude each other");
  refused("merge t.db none.db -o y.db", 2, "none.db: there is no database yet");
  refused("diff t.db none.db", 2, "none.db: there is no database yet");
  refused("merge t.db", 2, "--output is required");
  // A workload that this tuner would spell otherwise could never be found again.
  std::string odd = tuner("records export --db t.db").out;
  for (size_t at = 0; (at = odd.find("groups=1 ", at)) != std::string::npos;)
    odd.replace(at, 9, "groups=01 ");
  write("odd.jsonl", odd);
  refused("import odd.jsonl --db x.db", 1, "skipped line 1: workload: ");
}

TEST_F(CliTest, ReplayOfAJobWithoutProposalsSaysWhy) {
  fill_database();
  const Outcome3 run = tuner("replay j1 --db t.db");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err,
              HasSubstr("job j1 cannot be replayed: its 3 trials are from before proposals were stored"));
  EXPECT_EQ(tuner("replay j9 --db t.db").exit_code, 1);
  EXPECT_EQ(tuner("replay --db t.db").exit_code, 2);
}

TEST_F(CliTest, WhatIfStatesItsCoverageAndRefusesToConcludeFromTooFewRows) {
  fill_database();
  const Outcome3 few = tuner("whatif j1 --strategy random --trials 32 --seeds 3 --db t.db");
  EXPECT_EQ(few.exit_code, 1);
  EXPECT_THAT(few.out, HasSubstr("3 of "));
  EXPECT_THAT(few.out, HasSubstr("random: nothing can be concluded: "));
  EXPECT_THAT(few.out, HasSubstr("of its 96 proposals are recorded"));
  EXPECT_THAT(few.out, HasSubstr("expected at least 90 %"));
  // Whoever accepts any coverage gets numbers, with it stated.
  const Outcome3 any =
      tuner("whatif j1 --strategy grid,random --trials 32 --seeds 3 --coverage 0 --db t.db --json");
  EXPECT_EQ(any.exit_code, 0) << any.err;
  const json lines = json::parse(any.out).at("lines");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].at("strategy"), "job j1: random");
  EXPECT_EQ(lines[0].at("after")[0].at("share_mean"), 1.0);
  EXPECT_EQ(lines[2].at("proposals"), 96);
  EXPECT_LT(lines[2].at("coverage"), 0.1);
  EXPECT_EQ(tuner("whatif j1 --strategy luck --db t.db").exit_code, 2);
  EXPECT_EQ(tuner("whatif j1 --db t.db").exit_code, 2);
}

TEST_F(CliTest, ShowPrintsTheSpaceOfEveryTemplate) {
  write("transpose.json",
        R"({"op":"transpose","rows":32,"columns":32,"target":"llvm -mcpu=haswell -threads=1"})");
  const Outcome3 shown = tuner("show --as space transpose.json");
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("template transpose_cpu version "));
  EXPECT_THAT(shown.out, HasSubstr(" valid configs\n"));
  EXPECT_THAT(shown.out, HasSubstr("category: along_x along_out\n"));
  EXPECT_THAT(shown.out, HasSubstr("  default: "));
}

TEST_F(CliTest, SubmitTakesANumberOfTrialsOrAll) {
  for (const char* wrong : {"0", "some", "1.5", "99999999999"}) {
    const Outcome3 run = tuner(str("submit conv.json --trials ", wrong));
    EXPECT_EQ(run.exit_code, 2) << wrong;
    EXPECT_THAT(run.err, HasSubstr("expected 1 to 10000000, or all")) << wrong;
  }
}

TEST_F(CliTest, AClosedPipeIsNotACrash) {
  fill_database();
  EXPECT_EQ(shell(str(TUNER_BINARY, " records export --db t.db | head -n 0")).exit_code, 0);
}

TEST_F(CliTest, ShowPrintsEveryFormOfTheDefaultAndOfTheTunedKernel) {
  for (const char* as : {"schedule", "loops", "llvm", "asm"}) {
    const Outcome3 shown = tuner(str("show conv.json --db none.db --as ", as));
    EXPECT_EQ(shown.exit_code, 0) << shown.err;
    EXPECT_THAT(shown.err, HasSubstr("no database yet: this is the default config")) << as;
    EXPECT_THAT(shown.out, HasSubstr(kKey)) << as;
    EXPECT_GT(shown.out.size(), 300u) << as;
  }
  EXPECT_THAT(tuner("show conv.json --as loops").out, HasSubstr("for "));
  EXPECT_THAT(tuner("show conv.json --as llvm").out, HasSubstr("define "));
  EXPECT_THAT(tuner("show conv.json --as asm").out, HasSubstr("ret"));
  fill_database();
  const Outcome3 tuned = tuner("show conv.json --db t.db --as schedule");
  EXPECT_EQ(tuned.err, "");
  EXPECT_THAT(tuned.out, HasSubstr("measured 1.001 us"));
  const Outcome3 trial = tuner(str("show ", best_trial_, " --db t.db --as schedule"));
  EXPECT_EQ(trial.exit_code, 0) << trial.err;
  EXPECT_THAT(trial.out, HasSubstr(best_config_));
  EXPECT_EQ(tuner("show t99999 --db t.db").exit_code, 1);
}

// What stands behind the last pass, compiled as it stands, is the code of the kernel.
TEST_F(CliTest, AfterTheLastPassShowPrintsWhatCodeIsGeneratedFrom) {
  const Target target = host_target();
  const Workload workload = *workload_from_key(kKey);
  const auto instance = templates_for(workload, target)->front()->apply(workload, target);
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const Program program =
      *(*instance)->instantiate((*instance)->space().at((*instance)->space().default_index()));
  ASSERT_NE(program.packing, nullptr);
  const Program lowered = *lower_for(program, target);
  EXPECT_EQ(*emit_asm(lowered, target, {.as_written = true}), *emit_asm(program, target));
  const Outcome3 all = tuner("show conv.json --after all");
  EXPECT_EQ(all.exit_code, 0) << all.err;
  EXPECT_THAT(all.out, HasSubstr(str(", ", lowering_passes().back().name, "\n", to_text(lowered))));
  for (const LoweringPass& pass : lowering_passes())
    EXPECT_EQ(to_text(*lower_for(program, target, pass.name)->packing),
              to_text(*lower(*program.packing, CompileOptions().max_unrolled_stores, pass.name)))
        << pass.name;

  const auto code_of = [](const std::string& text) {
    return text.substr(std::min(text.find("\nkernel "), text.size()));
  };
  const std::string on_gpu = "show conv.json --target 'cuda -arch=sm_80'";
  const Outcome3 kernels = tuner(on_gpu + " --as kernels");
  EXPECT_THAT(kernels.out, HasSubstr("barrier shared")) << kernels.err;
  EXPECT_EQ(code_of(tuner(on_gpu + " --after drop-unused").out), code_of(kernels.out));
}

// Every name that the help lists is taken, by the targets that it is listed for, and by no others.
TEST_F(CliTest, TheHelpListsThePassesOfEachKindOfTarget) {
  std::string help = tuner("show --help").out;
  help.erase(std::unique(help.begin(), help.end(),
                         [](char a, char b) { return std::isspace(a) && std::isspace(b); }),
             help.end());
  std::ranges::replace(help, '\n', ' ');
  const auto listed = [&](const std::string& kind) {
    const size_t begin = help.find("on " + kind + " targets ");
    EXPECT_NE(begin, std::string::npos) << help;
    std::istringstream words(help.substr(begin + kind.size() + 12));
    std::vector<std::string> names;
    for (std::string word; words >> word;) {
      names.push_back(word.substr(0, word.find_first_of(",;.")));
      if (!word.ends_with(',')) break;
    }
    return names;
  };
  const std::vector<std::string> cpu = listed("llvm"), gpu = listed("cuda");
  EXPECT_THAT(cpu, Contains("unroll"));
  EXPECT_THAT(gpu, Contains("barriers"));
  for (const auto& [names, others, target] :
       {std::tuple(cpu, gpu, std::string("cpu")), std::tuple(gpu, cpu, std::string("cuda -arch=sm_80"))}) {
    for (size_t i = 0; i < names.size(); ++i) {
      const Outcome3 shown = tuner(str("show conv.json --target '", target, "' --after ", names[i]));
      EXPECT_EQ(shown.exit_code, 0) << names[i] << ": " << shown.err;
      EXPECT_THAT(shown.out,
                  HasSubstr(str("# after pass ", i + 1, " of ", names.size(), ", ", names[i], "\n")));
    }
    for (const std::string& other : others) {
      if (std::ranges::find(names, other) != names.end()) continue;
      EXPECT_EQ(tuner(str("show conv.json --target '", target, "' --after ", other)).exit_code, 2) << other;
    }
  }
}

TEST_F(CliTest, APrintedScheduleReplaysAndAChangedOneChangesTheLoops) {
  for (const char* as : {"loops", "llvm"}) {
    const std::string own = tuner(str("show conv.json --db none.db --as ", as)).out;
    ASSERT_EQ(shell(str(TUNER_BINARY, " show conv.json --db none.db --as schedule > s.txt")).exit_code, 0);
    const Outcome3 again = tuner(str("show conv.json --db none.db --replay s.txt --as ", as));
    ASSERT_EQ(again.exit_code, 0) << again.err;
    const auto after_head = [](const std::string& text) {
      return text.substr(text.find('\n', text.find(" template ")));
    };
    EXPECT_EQ(after_head(again.out), after_head(own)) << as;
  }
  const Outcome3 piped =
      shell(str("head -n 5 s.txt | ", TUNER_BINARY, " show conv.json --db none.db --replay -"));
  EXPECT_EQ(piped.exit_code, 0) << piped.err;
  EXPECT_NE(piped.out, tuner("show conv.json --db none.db --as loops").out);
  write("bad.txt", "# a comment\n\nspilt(i, 4)\n");
  const Outcome3 bad = tuner("show conv.json --db none.db --replay bad.txt");
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_THAT(bad.err, HasSubstr("bad.txt: line 3 \"spilt(i, 4)\": no primitive is called \"spilt\""));
  EXPECT_EQ(tuner("show conv.json --db none.db --replay none.txt").exit_code, 2);
  EXPECT_EQ(tuner("show conv.json --db none.db --replay s.txt --as roofline").exit_code, 2);
}

TEST_F(CliTest, ShowOfATargetOtherThanThisHost) {
  const Outcome3 shown = tuner("show conv.json --target 'llvm -mcpu=haswell -threads=2' --as asm");
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("llvm -mcpu=haswell -threads=2"));
  EXPECT_EQ(tuner("show conv.json --target toaster").exit_code, 2);
}

// Calls the built kernel and compares with the plain loops of the definition.
constexpr char kCaller[] = R"(
#include <stdio.h>
#include <stdlib.h>
#include "mykernel.h"
static float* make(size_t bytes, unsigned seed) {
  float* p = (float*)aligned_alloc(64, (bytes + 63) / 64 * 64);
  for (size_t i = 0; i < bytes / sizeof(float); ++i) {
    seed = seed * 1664525u + 1013904223u;
    p[i] = (float)(seed >> 8) / (1u << 24) - 0.5f;
  }
  return p;
}
static void* workspace(size_t bytes) { return bytes == 0 ? NULL : aligned_alloc(64, (bytes + 63) / 64 * 64); }
int main(void) {
  enum { C = 3, H = 9, W = 11, O = 5, KH = 3, KW = 2, OH = 5, OW = 10 };
  float *data = make(C * H * W * 4, 1), *weight = make(O * C * KH * KW * 4, 2), *bias = make(O * 4, 3), *out = make(O * OH * OW * 4, 4);
  if (MYKERNEL_DATA_BYTES != C * H * W * 4 || MYKERNEL_OUT_BYTES != O * OH * OW * 4) return 3;
  CALL
  for (int o = 0; o < O; ++o)
    for (int y = 0; y < OH; ++y)
      for (int x = 0; x < OW; ++x) {
        double sum = bias[o];
        for (int c = 0; c < C; ++c)
          for (int r = 0; r < KH; ++r)
            for (int s = 0; s < KW; ++s) {
              int h = y * 2 + r - 1, w = x + s;
              if (h < 0 || h >= H) continue;
              sum += (double)data[(c * H + h) * W + w] * weight[((o * C + c) * KH + r) * KW + s];
            }
        if (sum < 0) sum = 0;
        double difference = sum - out[(o * OH + y) * OW + x];
        if (difference > 1e-4 || difference < -1e-4) {
          printf("out[%d, %d, %d] is %f, expected %f\n", o, y, x, out[(o * OH + y) * OW + x], sum);
          return 1;
        }
      }
  printf("right\n");
  return 0;
}
)";

TEST_F(CliTest, ABuiltKernelIsCalledFromCAndFromCpp) {
  fill_database();
  const Outcome3 built = tuner("build conv.json --db t.db -o out --name mykernel");
  ASSERT_EQ(built.exit_code, 0) << built.err;
  const json bundle = json::parse(contents(folder_ / "out/manifest.json"));
  EXPECT_EQ(bundle.at("bundle"), "mykernel");
  ASSERT_EQ(bundle.at("kernels").size(), 1u);
  const json manifest = bundle.at("kernels")[0];
  EXPECT_EQ(manifest.at("function"), "mykernel");
  EXPECT_EQ(manifest.at("workload"), kKey);
  EXPECT_EQ(manifest.at("tuned"), true);
  EXPECT_EQ(manifest.at("measured").at("time_ns"), 1001);
  EXPECT_EQ(manifest.at("threads"), 1);
  ASSERT_FALSE(manifest.at("args").empty());
  for (const json& arg : manifest.at("args"))
    for (const char* key : {"name", "shape", "dtype", "layout", "role", "bytes"})
      EXPECT_TRUE(arg.contains(key)) << key;

  const std::string call =
      "void* packed = make(MYKERNEL_WEIGHT_PACKED_BYTES, 5);\n  if (mykernel_prepack(weight, packed) != 0) "
      "return 4;\n  if (mykernel(data, packed, bias, out, workspace(MYKERNEL_WORKSPACE_BYTES)) != 0) return "
      "5;";
  std::string caller = kCaller;
  caller.replace(caller.find("CALL"), 4, call);
  write("caller.c", caller);
  write("caller.cpp", caller);
  for (const char* compiler : {"cc -std=c11 -Wall -Wextra -Werror -pedantic caller.c",
                               "c++ -std=c++17 -Wall -Wextra -Werror -pedantic caller.cpp"}) {
    const Outcome3 compiled = shell(str(
        compiler, " -Iout/include -Lout/lib -lmykernel -lm -Wl,-rpath,$PWD/out/lib -o caller && ./caller"));
    EXPECT_EQ(compiled.exit_code, 0) << compiled.err << compiled.out;
    EXPECT_EQ(compiled.out, "right\n");
  }
}

TEST_F(CliTest, BuildWithoutARecordShipsTheDefaultAndSaysSo) {
  write("list.json", str("[", kConv, R"(,{"op":"matmul","a":[4,8],"b":[8,4]}])"));
  const Outcome3 built = tuner("build list.json --db none.db -o out --json");
  ASSERT_EQ(built.exit_code, 0) << built.err;
  EXPECT_THAT(built.err, HasSubstr(str("2 of 2 kernels run default configs. To tune them: ", TUNER_BINARY,
                                       " submit list.json --db none.db")));
  const json bundle = json::parse(built.out);
  EXPECT_EQ(bundle, json::parse(contents(folder_ / "out/manifest.json")));
  for (const char* file : {"library", "static_library", "header"})
    EXPECT_TRUE(fs::exists(folder_ / "out" / bundle.at(file).get<std::string>())) << file;
  const json& kernels = bundle.at("kernels");
  ASSERT_EQ(kernels.size(), 2u);
  for (const json& k : kernels) EXPECT_EQ(k.at("tuned"), false);
  EXPECT_NE(kernels[0].at("entry"), kernels[1].at("entry"));
}

TEST_F(CliTest, VerifyComparesDistinctConfigsAndCountsThem) {
  const Outcome3 verified = tuner("verify conv.json --samples 4 --seed 7 --oracle");
  EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
  EXPECT_THAT(verified.out, HasSubstr("4 configs compared, 0 wrong"));
  EXPECT_EQ(tuner("verify conv.json --samples 4 --seed 7 --oracle").out, verified.out);
}

TEST_F(CliTest, VerifyEmulatesCudaTargetsWithoutAGpu) {
  write("small.json", R"({"op":"matmul","a":[19,23],"b":[23,17],"target":"cuda -arch=sm_80"})");
  const Outcome3 verified = tuner("verify small.json --samples 3 --oracle");
  EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
  EXPECT_THAT(verified.out, HasSubstr("6 configs compared, 0 wrong"));
  write("huge.json", R"({"op":"matmul","a":[9000,9000],"b":[9000,9000],"target":"cuda -arch=sm_80"})");
  const Outcome3 refused = tuner("verify huge.json --samples 1");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("verify a smaller shape"));
}

TEST_F(CliTest, BuildsAKernelOfEveryOperatorOnRowsForAGpu) {
  write("rows.json", R"([
    {"op": "softmax", "rows": 8, "columns": 64, "target": "cuda -arch=sm_80"},
    {"op": "layer_norm", "rows": 8, "columns": 64, "target": "cuda -arch=sm_80"},
    {"op": "reduce", "rows": 8, "columns": 64, "reduction": "sum", "target": "cuda -arch=sm_80"},
    {"op": "transpose", "rows": 8, "columns": 64, "target": "cuda -arch=sm_80"},
    {"op": "elementwise", "rows": 8, "columns": 64, "scale": true, "target": "cuda -arch=sm_80"}])");
  const Outcome3 built = tuner("build rows.json --db none.db -o out --json");
  if (built.exit_code == 1 && built.err.find("NVRTC") != std::string::npos)
    GTEST_SKIP() << "no NVRTC here: " << built.err;
  ASSERT_EQ(built.exit_code, 0) << built.err;
  const json kernels = json::parse(built.out).at("kernels");
  ASSERT_EQ(kernels.size(), 5u);
  for (const json& k : kernels)
    for (const char* file : {"cubin", "source", "launcher", "header"})
      EXPECT_TRUE(fs::exists(folder_ / "out" / k.at(file).get<std::string>())) << k.at("function") << file;
}

TEST_F(CliTest, NothingIsShippedForAnEmulatedTarget) {
  write("e.json", R"({"op":"softmax","rows":8,"columns":64,"target":"cuda -arch=sm_80 -emulated"})");
  const Outcome3 refused = tuner("build e.json --db none.db -o out");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("Build for \"cuda -arch=sm_80\""));
  EXPECT_FALSE(fs::exists(folder_ / "out"));
}

}  // namespace
}  // namespace tuner
