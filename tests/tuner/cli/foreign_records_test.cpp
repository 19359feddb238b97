// Records of other tuners: which of them are rows of our spaces, what a search makes of those, and what an
// import says of the others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "db/exchange/export_file.h"
#include "db/exchange/formats.h"
#include "db/exchange/import_file.h"
#include "tests/tuner/analytic_task.h"
#include "tests/tuner/command_line.h"
#include "tuner/daemon/search/attached_rows.h"
#include "tuner/daemon/search/foreign_rows.h"
#include "tuner/daemon/search/job_runner.h"
#include "tuner/daemon/search/warm_start.h"

namespace tuner {
namespace {

using exchange::Format;
using nlohmann::json;
using testing::analytic_record;
using testing::analytic_space;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const char* const kHere = "llvm -mcpu=haswell -threads=1";
const char* const kElsewhere = "llvm -mcpu=znver4 -threads=2";
const char* const kDonor = "v1 matmul b=1 m=64 n=64 k=64 ta=0 tb=0 bias=0 act=none dtype=float32 const=none";
const char* const kTask = "v1 matmul b=1 m=128 n=64 k=64 ta=0 tb=0 bias=0 act=none dtype=float32 const=none";

JobRow job_of(const std::string& key, const std::string& target, int trials, const std::string& search) {
  JobRow job;
  job.id = job.request_id = "j1";
  job.tasks = {{key, target}};
  job.trials = trials;
  job.search = search;
  job.seed = 1;
  return job;
}

// Runs it to its end on made-up times; returns its configs in the order they were proposed.
std::vector<std::string> run_job(Store& store, const JobRow& job) {
  EXPECT_TRUE(store.add_job(job).is_ok());
  JobRunner runner(
      store, store.job(job.id).value(), job.trials, [](const JobRow::Task&) { return analytic_space(6); },
      make_strategy);
  EXPECT_TRUE(runner.start().is_ok());
  while (!runner.finished()) {
    std::vector<MeasureRecord> records;
    const std::vector<TrialRow> proposed = runner.propose(0).value();
    for (const TrialRow& t : proposed)
      records.push_back(
          analytic_record(t.id, store.lease_trials({t.id}, "w").value().at(0).attempt, t.config));
    EXPECT_TRUE(store.add_records(records).is_ok());
    EXPECT_TRUE(runner.observe().is_ok());
  }
  std::vector<std::string> configs;
  const std::vector<TrialWithRecord> trials = store.trials(job.id).value();
  for (const TrialWithRecord& t : trials) configs.push_back(t.trial.config);
  return configs;
}

double best_of_first(const std::vector<std::string>& configs, size_t n) {
  double best = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < n; ++i)
    if (const double t = record_time_ns(analytic_record("t", 1, configs[i])); t > 0) best = std::min(best, t);
  return best;
}

// 200 trials of another machine, in the words of another tuner.
std::string written_elsewhere(const TemporaryFolder& folder, Format format) {
  const auto store = Store::open(folder.file("elsewhere.db"), Store::Mode::kWrite).value();
  run_job(*store, job_of(kDonor, kElsewhere, 200, "random"));
  const std::string file = folder.file(std::string(exchange::format_name(format)));
  CHECK(exchange::export_file(*store, {.format = format, .path = file}).is_ok());
  return file;
}

class ForeignRecords : public ::testing::TestWithParam<Format> {};

TEST_P(ForeignRecords, OfOurSpacesWarmASearchHere) {
  const TemporaryFolder folder;
  const JobRow job = job_of(kTask, kHere, 48, "bayesian");
  const auto cold_store = Store::open(folder.file("cold.db"), Store::Mode::kWrite).value();
  const std::vector<std::string> cold = run_job(*cold_store, job);

  const std::string file = written_elsewhere(folder, GetParam());
  const auto store = Store::open(folder.file("warm.db"), Store::Mode::kWrite).value();
  const auto report = exchange::import_file(file, *store, {});
  ASSERT_TRUE(report.is_ok()) << report.message();
  EXPECT_EQ(report->foreign.added, 200);
  EXPECT_EQ(store->last_record_id().value(), 0) << "nothing here is ours";
  const std::vector<std::string> warm = run_job(*store, job);

  EXPECT_NE(warm, cold);
  EXPECT_LT(best_of_first(warm, 8), best_of_first(cold, 8));
  // They are no answer: the best of the task is what was measured here.
  EXPECT_EQ(store->best(kTask, kHere).value().trials, 48);
}

TEST_P(ForeignRecords, ThatComeLaterChangeNothingOfASearchThatBegan) {
  const TemporaryFolder folder;
  const auto store = Store::open(folder.file("a.db"), Store::Mode::kWrite).value();
  const TaskSpace space = analytic_space(6).value();
  const std::string file = written_elsewhere(folder, GetParam());
  const int64_t before = last_donor_id(*store).value();
  ASSERT_TRUE(exchange::import_file(file, *store, {}).is_ok());
  EXPECT_THAT(warm_start(*store, {kTask, kHere, ""}, space.search, before).value(), SizeIs(0));
  const int64_t after = last_donor_id(*store).value();
  const auto priors = warm_start(*store, {kTask, kHere, ""}, space.search, after).value();
  ASSERT_THAT(priors, SizeIs(1));
  EXPECT_THAT(priors[0].rows, SizeIs(150)) << "a sample of 200";
  EXPECT_FALSE(priors[0].same_task);
}

INSTANTIATE_TEST_SUITE_P(Formats, ForeignRecords, ::testing::Values(Format::kT4, Format::kAutotvm),
                         [](const auto& of) { return std::string(exchange::format_name(of.param)); });

// A real space of ours, and a record of its default config in the form of T4.
class ForeignMatch : public ::testing::Test {
 protected:
  ForeignMatch() {
    ExchangedTrial trial;
    trial.task = {kDonor, kHere};
    trial.trial.template_name = part().template_name;
    trial.trial.config = part().space->at(part().space->default_index()).to_text();
    trial.record = analytic_record("t1", 1, "a=1 b=1 c=1 d=2");
    record_ = exchange::parse_t4_result(exchange::t4_result(trial), exchange::t4_header(trial.task), "", "")
                  .value();
  }
  const SearchSpace::Part& part() const { return space_.search.parts[0]; }
  // The record with another configuration.
  ForeignRecord with(const std::string& name, const json& value) const {
    ForeignRecord changed = record_;
    json document = json::parse(record_.document);
    if (value.is_null())
      document["configuration"].erase(name);
    else
      document["configuration"][name] = value;
    changed.document = document.dump();
    return changed;
  }

  const TaskSpace space_ = make_task_space({kDonor, kHere}).value();
  ForeignRecord record_;
  ForeignMatcher matcher_;
};

TEST_F(ForeignMatch, NeedsWorkloadTargetTemplateAndEveryKnobOfOurs) {
  EXPECT_TRUE(matcher_.matches(record_));
  EXPECT_TRUE(matcher_.matches(with("note", "x"))) << "what is no knob does not count";
  const std::string knob = part().space->knobs()[0].name;
  EXPECT_FALSE(matcher_.matches(with("template", "another")));
  EXPECT_FALSE(matcher_.matches(with(knob, nullptr)));
  EXPECT_FALSE(matcher_.matches(with(knob, "text")));
  EXPECT_FALSE(matcher_.matches(with(knob, -7)));
  ForeignRecord other = record_;
  other.task = "convolution";
  EXPECT_FALSE(matcher_.matches(other));
  other = record_;
  other.target = "NVIDIA A100-PCIE-40GB";
  EXPECT_FALSE(matcher_.matches(other));
}

// A person says whose rows they are: then words of the file do not matter, and its config does.
TEST_F(ForeignMatch, AttachedRowsAreRowsOfTheTaskWhateverTheirFileCallsIt) {
  const AttachedRows rows = AttachedRows::of({kDonor, kHere}).value();
  const KnobInfo knob = part().space->knobs()[0];
  const int64_t value = json::parse(record_.document)["configuration"][knob.name];
  ForeignRecord theirs = record_;
  theirs.task = "gemm";
  theirs.target = "Card Z";
  EXPECT_FALSE(matcher_.matches(theirs));
  const Result<ForeignRecord> ours = rows.attach(theirs);
  ASSERT_TRUE(ours.is_ok()) << ours.message();
  EXPECT_TRUE(matcher_.matches(*ours));
  const std::optional<PriorTask::Row> row = foreign_row(*ours, space_.search);
  ASSERT_TRUE(row.has_value());
  EXPECT_EQ(row->config, part().space->at(part().space->default_index()));
  EXPECT_EQ(row->time_ns, theirs.time_ns);
  // KTT writes its integers as texts.
  const ForeignRecord of_ktt = rows.attach(with(knob.name, std::to_string(value))).value();
  EXPECT_EQ(json::parse(of_ktt.document)["configuration"], json::parse(ours->document)["configuration"]);
  EXPECT_THAT(rows.attach(with(knob.name, -7)).message(), HasSubstr(knob.name));
  EXPECT_THAT(rows.attach(with(knob.name, "text")).message(), HasSubstr(knob.name + " is text, which"));
  EXPECT_THAT(rows.attach(with(knob.name, nullptr)).message(), HasSubstr("expected the parameters "));
  EXPECT_THAT(rows.attach(with("more", 1)).message(), HasSubstr("expected the parameters "));
}

TEST(ForeignImport, SaysInOneLineHowManyRowsMatchNothing) {
  const testing::CommandLine line(TUNER_BIN_DIR);
  line.write("log.jsonl",
             R"({"input": ["llvm -mcpu=znver5", "dense_pack.x86", [["TENSOR", [8, 8], "float32"]], {}], )"
             R"("config": {"index": 1, "code_hash": null, "entity": [["tile_y", "sp", [-1, 4]]]}, )"
             R"("result": [[0.001], 0, 1, 1795202171.8], "version": 0.2, "tvm_version": "0.19.0"})"
             "\n");
  const testing::CommandResult told = line.run("tuner records import log.jsonl --db a.db");
  EXPECT_EQ(told.exit_code, 0) << told.err;
  EXPECT_THAT(told.out, HasSubstr("log.jsonl: 1 of 1 records of another tuner match no template of ours"));
  const testing::CommandResult again = line.run("tuner records import log.jsonl --db a.db --json");
  EXPECT_EQ(json::parse(again.out)[0]["unmatched"], 1);
}

}  // namespace
}  // namespace tuner
