// Results of run-pack as records: which round ranks a config, what is refused, what a second import adds.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/temporary_folder.h"
#include "tuner/pack/import_results.h"

namespace tuner {
namespace {

using nlohmann::json;

constexpr char kWorkload[] = "v1 softmax rows=9 columns=70 dtype=float32",
               kTarget[] = "llvm -mcpu=haswell -threads=1";

// A line as run-pack writes it.
json line(const std::string& config, int round, double ns) {
  return {{"format", 2},
          {"pack", std::string(64, 'a')},
          {"workload", kWorkload},
          {"target", kTarget},
          {"template", "softmax_cpu"},
          {"template_version", 1},
          {"config", config},
          {"round", round},
          {"outcome", "ok"},
          {"message", ""},
          {"run_ns", {ns, ns, ns}},
          {"cpu_ns", {ns, ns, ns}},
          {"cut", false},
          {"sentinel_before_ns", 0},
          {"sentinel_after_ns", 0},
          {"build_ms", 0},
          {"run_ms", 0},
          {"artifact", ""},
          {"max_error", 0},
          {"peak_gflops", 100},
          {"hardware", "some CPU"},
          {"toolchain", "llvm 22.1.8 codegen 1"},
          {"harness_abi", 1},
          {"host", "elsewhere"},
          {"options",
           {{"min_repeat_ms", 1},
            {"repeats", 3},
            {"run_timeout_s", 1},
            {"memory_limit_bytes", 1000},
            {"cut_factor", 2}}},
          {"finished_at_us", 1000 + round},
          {"device_state", ""},
          {"caches", "warm"}};
}

class PackImport : public ::testing::Test {
 protected:
  PackImport() {
    auto store = Store::open(folder_.file("t.db"), Store::Mode::kWrite);
    CHECK(store.is_ok()) << store.message();
    store_ = *std::move(store);
  }
  ImportReport import(const std::vector<json>& lines) {
    std::ofstream(folder_.file("r.jsonl")) << [&] {
      std::string text;
      for (const json& each : lines) text += each.dump() + "\n";
      return text;
    }();
    const auto reports = import_results(folder_.file("r.jsonl"), *store_);
    EXPECT_TRUE(reports.is_ok()) << reports.message();
    return reports.is_ok() ? reports->front() : ImportReport();
  }
  std::string best() const {
    const auto best = store_->best(kWorkload, kTarget);
    return best.is_ok() ? str(best->config, " ", best->time_ns) : best.message();
  }

  TemporaryFolder folder_;
  std::unique_ptr<Store> store_;
};

// The finalists' last round, in which they ran beside each other, ranks them.
TEST_F(PackImport, TheLastRoundOfAConfigRanksIt) {
  const ImportReport report = import(
      {line("rows=1", 0, 100), line("rows=2", 0, 200), line("rows=1", 1, 300), line("rows=2", 1, 250)});
  EXPECT_EQ(report.trials, 2);
  EXPECT_EQ(report.records, 4);
  EXPECT_EQ(best(), "rows=2 250");
}

TEST_F(PackImport, ASecondImportAddsWhatIsNew) {
  import({line("rows=1", 0, 100)});
  const ImportReport again = import({line("rows=1", 0, 100)});
  EXPECT_EQ(again.trials + again.records, 0);
  EXPECT_EQ(again.known, 1);
  const ImportReport longer = import({line("rows=1", 0, 100), line("rows=2", 0, 50)});
  EXPECT_EQ(longer.trials, 1);
  EXPECT_EQ(longer.records, 1);
  EXPECT_EQ(longer.known, 1);
  EXPECT_EQ(best(), "rows=2 50");
}

// The job was finished before it came here: no daemon takes it up.
TEST_F(PackImport, ItsJobIsFinishedAndSaysWhereItComesFrom) {
  const std::string id = import({line("rows=1", 0, 100), line("rows=2", 0, 90)}).job_id;
  EXPECT_EQ(id, "import-aaaaaaaa");
  const auto job = store_->job(id);
  ASSERT_TRUE(job.is_ok()) << job.message();
  EXPECT_EQ(job->state, JobState::kFinished);
  EXPECT_EQ(job->search, "import");
  EXPECT_EQ(job->trials, 2);
}

TEST_F(PackImport, EmptiedCachesAreShownWithTheTime) {
  json cold = line("rows=1", 0, 100);
  cold["caches"] = "cold";
  import({cold, line("rows=2", 0, 200)});
  for (const auto& [config, state] : {std::pair("rows=1", "caches: cold"), std::pair("rows=2", "")}) {
    const auto trials = store_->trials("import-aaaaaaaa");
    ASSERT_TRUE(trials.is_ok());
    const auto at =
        std::ranges::find_if(*trials, [&, name = config](const auto& t) { return t.trial.config == name; });
    ASSERT_NE(at, trials->end());
    EXPECT_EQ(store_->records(at->trial.id)->front().device_state, state);
  }
}

TEST_F(PackImport, LinesThatNobodyCanHaveMeasuredAreSkippedAndTold) {
  const auto told = [&](const char* key, const json& value) {
    json bad = line("rows=3", 0, 10);
    bad[key] = value;
    const ImportReport report = import({line("rows=1", 0, 100), bad});
    EXPECT_EQ(best(), "rows=1 100") << key;
    return report.skipped.size() == 1 ? report.skipped[0] : str(report.skipped.size(), " lines");
  };
  EXPECT_EQ(told("run_ns", json::array({0})), "line 2: run_ns: found 0, expected numbers > 0");
  EXPECT_EQ(told("run_ns", json::array()), "line 2: run_ns: ok without a sample");
  EXPECT_EQ(told("cpu_ns", {-1}), "line 2: cpu_ns: found -1, expected numbers >= 0");
  EXPECT_EQ(told("pack", "abc"), "line 2: pack: expected 64 hexadecimal digits");
  EXPECT_EQ(told("workload", "v1 softmax columns=70 rows=9 dtype=float32").substr(0, 8), "line 2: ");
  EXPECT_EQ(told("config", "rows=03").substr(0, 8), "line 2: ");
}

}  // namespace
}  // namespace tuner
