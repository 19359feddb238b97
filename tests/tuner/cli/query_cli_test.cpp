// tuner query as a person meets it: kinds of answers, words instead of a file, a daemon asked, lists and
// filters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/db/resolve_fixture.h"
#include "tests/tuner/processes.h"

namespace tuner {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kHaswell[] = "'llvm -mcpu=haswell -threads=1'";

struct Ended {
  int exit_code = -1;
  std::string out, err;
};

class QueryCli : public ResolveFixture {
 protected:
  // Two tasks of one shape: with and without bias, one of them tuned.
  void SetUp() override {
    const Workload tuned_one = product(64, 96, 128, /*bias=*/true);
    tuned(tuned_one, cpu_, {{other_config(tuned_one, cpu_), 1000}, {other_config(tuned_one, cpu_), 1500}});
    std::ofstream(folder_.file("tuned.json")) << R"({"op":"matmul","a":[64,128],"b":[128,96],"bias":true})";
    std::ofstream(folder_.file("plain.json")) << R"({"op":"matmul","a":[64,128],"b":[128,96]})";
    std::ofstream(folder_.file("far.json")) << R"({"op":"softmax","rows":8,"columns":64})";
  }
  void close_store() { store_.reset(); }
  // cold.json: one more task, tuned for constants that are in no cache.
  void tuned_cold() {
    std::ofstream(folder_.file("cold.json"))
        << R"({"op":"matmul","a":[8,32],"b":[32,16],"constant":["b"],"measure":{"constants":"cold"}})";
    MatmulWorkload w;
    w.m = 8, w.n = 16, w.k = 32;
    w.constant = {"b"};
    const Workload workload = w;
    const JobRow::Task task{
        .workload_key = workload.key(), .target = cpu_.name(), .constants = Constants::kCold};
    ASSERT_OK(store_->add_job(job_row("j9", {task})));
    std::vector<TrialRow> rows{trial_row("j9", other_config(workload, cpu_))};
    rows[0].template_name = "matmul_cpu";
    rows[0].template_version = matmul().version();
    ASSERT_OK(store_->add_trials(rows));
    ASSERT_TRUE(store_->lease_trials({rows[0].id}, "w1").is_ok());
    MeasureRecord record = ok_record(rows[0].id, {700, 707, 693});
    record.options.constants = Constants::kCold;
    ASSERT_OK(store_->add_records({record}));
  }
  Ended tuner(const std::string& arguments) {
    const std::string line =
        str("cd ", folder_.path().string(), " && XDG_DATA_HOME=", folder_.path().string(), "/data ",
            TUNER_BIN_DIR, "/tuner ", arguments, " >out.txt 2>err.txt </dev/null");
    const int status = std::system(line.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, testing::read_text(folder_.file("out.txt")),
            testing::read_text(folder_.file("err.txt"))};
  }
  Ended query(const std::string& arguments) {
    return tuner(str("query --db t.db --target ", kHaswell, " ", arguments));
  }
};

TEST_F(QueryCli, AnExactAnswerSaysWhereItWasMeasured) {
  close_store();
  const Ended text = query("tuned.json");
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("answer      exact: this task was tuned"));
  EXPECT_THAT(text.out, HasSubstr("rests on    trial j1.1; 2 trials of this task (2 ok)"));
  EXPECT_THAT(text.out, HasSubstr("hardware    cpu X"));
  EXPECT_THAT(text.out, HasSubstr("stale       compiler: llvm 22 then"));
  EXPECT_THAT(text.err, HasSubstr("tuner revalidate"));
  const json facts = json::parse(query("tuned.json --json").out);
  EXPECT_EQ(facts.at("answer"), "exact");
  EXPECT_EQ(facts.at("time_ns"), 1000);
  EXPECT_EQ(facts.at("predicted").at("of_optimum"), 1);
  EXPECT_EQ(facts.at("rests_on").at(0).at("trial"), "j1.1");
  EXPECT_TRUE(facts.at("stale"));
}

TEST_F(QueryCli, AnotherEpilogueIsAnsweredFromTheFamilyWithOneLineOnStderr) {
  close_store();
  const Ended found = query("plain.json --json");
  EXPECT_EQ(found.exit_code, 0) << found.err;
  EXPECT_THAT(found.err, HasSubstr("another epilogue"));
  EXPECT_THAT(found.err, HasSubstr("tuner submit plain.json --db t.db\n"));
  EXPECT_EQ(std::count(found.err.begin(), found.err.end(), '\n'), 1);
  const json facts = json::parse(found.out);
  EXPECT_EQ(facts.at("answer"), "same-family");
  EXPECT_EQ(facts.at("tuned").at("time_ns"), 1000);
  EXPECT_LT(facts.at("predicted").at("low"), facts.at("predicted").at("high"));
  EXPECT_EQ(query("plain.json --exact").exit_code, 1);
}

TEST_F(QueryCli, ADefaultAnswerIsPrintedAndExit1) {
  close_store();
  const Ended found = query("far.json");
  EXPECT_EQ(found.exit_code, 1);
  EXPECT_THAT(found.out, HasSubstr("answer      default: nothing comparable was tuned"));
  EXPECT_THAT(found.err, HasSubstr("tuner submit far.json --db t.db"));
}

TEST_F(QueryCli, AnOperatorCanBeGivenAsWords) {
  close_store();
  const Ended found = query("--op matmul a=64,128 b=128,96 bias=true --json");
  EXPECT_EQ(found.exit_code, 0) << found.err;
  EXPECT_EQ(json::parse(found.out).at("answer"), "exact");
}

TEST_F(QueryCli, WrongUseIsOneLineAndExit2) {
  close_store();
  const std::pair<const char*, const char*> cases[] = {
      {"--op dance", "--op dance: op: "},
      {"--op matmul a=64,128", "--op matmul: b: expected a value, found nothing"},
      {"--op matmul a=64,128 b=128,96 speed=9", "speed"},
      {"--op matmul 64", "expected NAME=VALUE as in a job file (data=1,64,56,56), found \"64\""},
      {"tuned.json --stale", "--since, --stale and --format belong to --all"},
      {"tuned.json plain.json", "found 2 words"},
      {"--all tuned.json", "--all lists a database"},
      {"--all --since yesterday", "--since: expected a day as 2026-11-01"},
      {"--all --since 2026-02-30", "--since: expected a day as 2026-11-01"},
      {"--all --op dance", "--op: found \"dance\", expected one of matmul"},
      {"--daemon nowhere tuned.json", "nowhere"},
  };
  for (const auto& [arguments, message] : cases) {
    const Ended refused = query(arguments);
    EXPECT_NE(refused.exit_code, 0) << arguments;
    if (!std::string_view(arguments).starts_with("--daemon")) {
      EXPECT_EQ(refused.exit_code, 2) << arguments;
    }
    EXPECT_THAT(refused.err, HasSubstr(message)) << arguments;
    EXPECT_EQ(refused.out, "") << arguments;
  }
}

TEST_F(QueryCli, AllTunedTasksAreListedFilteredAsTableLinesAndCsv) {
  const Workload small = product(8, 16, 32);
  tuned(small, target("llvm -mcpu=haswell -threads=2"), {{other_config(small, cpu_), 700}});
  close_store();
  const std::string all = "query --db t.db --all ";
  EXPECT_THAT(tuner(all).out, HasSubstr(small.key()));
  EXPECT_THAT(tuner(all).out, HasSubstr("STALE: compiler: llvm 22 then"));
  std::istringstream lines(tuner(all + "--format jsonl").out);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) EXPECT_TRUE(json::parse(line).at("stale"));
  EXPECT_EQ(count, 2);
  const Ended two_threads = tuner(all + "--format csv --op matmul --target 'llvm -threads=2 -mcpu=haswell'");
  EXPECT_THAT(two_threads.out, StartsWith("workload,target,time_ns,"));
  EXPECT_THAT(two_threads.out, HasSubstr(small.key()));
  EXPECT_EQ(std::count(two_threads.out.begin(), two_threads.out.end(), '\n'), 2);
  EXPECT_EQ(tuner(all + "--since 2023-11-14").exit_code, 0);
  EXPECT_EQ(tuner(all + "--since 2023-11-15").exit_code, 1);
  EXPECT_EQ(tuner(all + "--op softmax").exit_code, 1);
}

// A model's tasks are tuned with cold constants: they are as tuned as the others.
TEST_F(QueryCli, TasksTunedWithColdConstantsAreListedBesideTheOthers) {
  tuned_cold();
  close_store();
  const std::string all = "query --db t.db --all --format ";
  std::istringstream lines(tuner(all + "jsonl").out);
  std::vector<std::string> constants;
  for (std::string line; std::getline(lines, line);) constants.push_back(json::parse(line).at("constants"));
  EXPECT_THAT(constants, ::testing::UnorderedElementsAre("warm", "cold"));
  EXPECT_THAT(tuner(all + "table").out, HasSubstr("cold constants; not certified"));
  const std::string csv = tuner(all + "csv").out;
  EXPECT_THAT(csv.substr(0, csv.find('\n')), ::testing::EndsWith(",constants"));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 3);
  EXPECT_THAT(csv, HasSubstr(",cold\n"));
  EXPECT_THAT(csv, HasSubstr(",warm\n"));
}

TEST_F(QueryCli, ADaemonGivesTheSameAnswers) {
  tuned_cold();
  close_store();
  const std::string address = "unix:" + folder_.file("d.sock");
  testing::Process daemon(
      {str(TUNER_BIN_DIR, "/tuner"), "serve", "--listen", address, "--db", folder_.file("t.db")},
      folder_.file("serve"));
  ASSERT_TRUE(testing::eventually(std::chrono::seconds(30), [&] {
    return std::filesystem::exists(folder_.file("d.sock"));
  })) << daemon.err();
  for (const char* file : {"tuned.json", "plain.json", "cold.json"}) {
    const Ended there = tuner(str("query ", file, " --json --daemon ", address, " --target ", kHaswell));
    ASSERT_EQ(there.exit_code, 0) << there.err;
    const json from_daemon = json::parse(there.out), from_file = json::parse(query(str(file, " --json")).out);
    for (const char* key : {"answer", "config", "template", "predicted", "rests_on", "stale", "stale_reason"})
      EXPECT_EQ(from_daemon.at(key), from_file.at(key)) << file << " " << key;
    EXPECT_THAT(from_daemon.at("stale_reason"), StartsWith("compiler: llvm 22 then"))
        << "judged, not skipped";
  }
}

TEST_F(QueryCli, LearnStoresOnceWhatTheRecordsTeach) {
  for (const int64_t m : {24, 48, 96, 160, 200})
    tune_by_formula(product(m, 32, 64), cpu_, 12, [](const Config& c, const ConfigSpace& s) {
      return c == s.at(s.default_index()) ? 900.0 : 300.0;
    });
  close_store();
  const Ended first = tuner("learn --db t.db");
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("matmul on \"llvm -mcpu=haswell -threads=1\": learned"));
  EXPECT_THAT(tuner("learn --db t.db").out, HasSubstr("nothing new"));
  const json facts = json::parse(query("--op matmul a=72,64 b=64,32 --json").out);
  EXPECT_EQ(facts.at("answer"), "nearest");
  EXPECT_GE(facts.at("learned_from").at("shapes"), 5);
  EXPECT_EQ(tuner("learn --db none.db").exit_code, 1);
  EXPECT_EQ(tuner("learn --db t.db --op dance").exit_code, 1);
}

}  // namespace
}  // namespace tuner
