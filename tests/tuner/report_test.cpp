// A job's report: the facts in it, and that the page draws them in a browser, whatever text the records hold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>

#include "tests/tuner/analytic_task.h"
#include "tests/tuner/processes.h"
#include "tuner/daemon/task_space.h"
#include "tuner/report/report_facts.h"
#include "tuner/report/report_page.h"

namespace tuner {
namespace {

using namespace std::chrono_literals;
using nlohmann::ordered_json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kMatmul[] = "v1 matmul b=1 m=64 n=64 k=64 ta=0 tb=0 bias=0 act=none dtype=float32 const=b";
constexpr char kSoftmax[] = "v1 softmax rows=16 columns=64 dtype=float32";
constexpr char kTarget[] = "llvm -mcpu=haswell -threads=1";
constexpr char kNasty[] = "</script><script>alert(\"x\")</script><!-- & 'quoted' \xff";

class ReportTest : public ::testing::Test {
 protected:
  void add_job(const std::string& id, const std::string& search, std::vector<JobRow::Task> tasks) {
    JobRow job{.id = id, .request_id = id, .tasks = std::move(tasks), .trials = 64, .search = search};
    job.submitted_at_us = 1'790'000'000'000'000;
    ASSERT_TRUE(store_->add_job(job).is_ok());
  }
  // `n` configs of the task's space, whose time grows with the sum of their features; every 9th fails.
  std::vector<std::string> measure(const std::string& job, int task_index, int n, uint64_t seed) {
    const JobRow row = store_->job(job).value();
    const TaskSpace space = make_task_space(row.tasks[static_cast<size_t>(task_index)]).value();
    std::mt19937_64 random(seed);
    std::vector<TrialRow> trials;
    for (int i = 0; i < n; ++i) {
      const size_t part = random() % space.search.parts.size();
      const ConfigSpace& of = *space.search.parts[part].space;
      const bool first = i == 0;
      trials.push_back(
          {.job_id = job,
           .task_index = task_index,
           .template_name = space.search.parts[first ? 0 : part].template_name,
           .template_version = space.template_versions[first ? 0 : part],
           .config =
               first ? space.search.parts[0].space->at(space.search.parts[0].space->default_index()).to_text()
                     : of.at(of.sample(random)).to_text()});
    }
    EXPECT_TRUE(store_->add_trials(trials).is_ok());
    std::vector<MeasureRecord> records;
    std::vector<std::string> ids;
    for (size_t i = 0; i < trials.size(); ++i) {
      double sum = 0;
      const Config config = config_from_text(trials[i].config).value();
      for (const auto& [knob, value] : config.values()) sum += std::log2(1.0 + static_cast<double>(value));
      MeasureRecord r{.trial_id = trials[i].id};
      if (i % 9 == 8) {
        r.outcome = i % 2 == 0 ? Outcome::kBuildError : Outcome::kCrashed;
        r.message = kNasty;
      } else {
        const double ns = 2000 + 300 * std::abs(sum - 9);
        r.run_ns = r.cpu_ns = {ns, ns * 1.01, ns * 0.99};
        r.run_ms = 12, r.peak_gflops = 200;
      }
      r.build_ms = 30;
      r.environment = {.hardware = "machine",
                       .toolchain = "llvm 1 codegen 1",
                       .worker_id = "w",
                       .worker_incarnation = "1",
                       .host = "<b>host</b>"};
      r.finished_at_us = 1'790'000'000'000'000 + static_cast<int64_t>(i) * 50'000;
      records.push_back(r);
      ids.push_back(trials[i].id);
    }
    EXPECT_TRUE(store_->add_records(records).is_ok());
    return ids;
  }
  void race(const std::string& job, int task_index, const std::vector<std::string>& ids) {
    RaceRow row{
        .job_id = job, .task_index = task_index, .winner_trial_id = ids[0], .tie_set = {ids[0], ids[1]}};
    for (size_t i = 0; i < ids.size(); ++i) {
      RaceFinalist f{.trial_id = ids[i]};
      for (int s = 0; s < 12; ++s) {
        f.samples_ns.push_back(1900 + 40.0 * static_cast<double>(i) + s % 3);
        f.sentinel_ns.push_back(500);
        f.process.push_back(s / 4);
      }
      row.finalists.push_back(std::move(f));
    }
    row.time_ns = 1900, row.time_low_ns = 1890, row.time_high_ns = 1915;
    row.ratio = 3.8, row.ratio_low = 3.7, row.ratio_high = 3.9, row.regret_bound = 0.004;
    row.default_trial_id = ids.back(), row.default_time_ns = 2400;
    row.environment.hardware = "machine";
    const Status added = store_->add_race(row);
    ASSERT_TRUE(added.is_ok()) << added.message();
  }
  ordered_json facts(const std::string& job) {
    const auto made = report_facts(*store_, job, {.measure_roofs = false});
    EXPECT_TRUE(made.is_ok()) << made.message();
    return made ? *made : ordered_json();
  }

  TemporaryFolder folder_;
  std::unique_ptr<Store> store_ = Store::open(folder_.file("db"), Store::Mode::kWrite).value();
};

TEST_F(ReportTest, TellsTheCurveTheFailuresAndWhatItRestsOn) {
  add_job("j1", "bayesian", {{kMatmul, kTarget}});
  const auto ids = measure("j1", 0, 90, 1);
  race("j1", 0, {ids[0], ids[1], ids[2]});
  const ordered_json task = facts("j1")["tasks"][0];
  EXPECT_EQ(task["trials"], 90);
  EXPECT_EQ(task["outcomes"]["ok"], 80);
  ASSERT_EQ(task["convergence"]["points"].size(), 90u);
  EXPECT_EQ(task["convergence"]["points"][0][0], "j1.1");
  EXPECT_EQ(task["convergence"]["points"][8][2], "build_error");
  EXPECT_TRUE(task["convergence"]["points"][8][1].is_null());
  // The race decides, not the fastest median.
  EXPECT_EQ(task["best"]["trial"], "j1.1");
  EXPECT_EQ(task["best"]["time_ns"], 1900);
  EXPECT_EQ(task["best"]["raced"], true);
  EXPECT_EQ(task["best"]["certified"], true);
  EXPECT_EQ(task["best"]["default_ns"], 2400) << "of the same race, not of a trial";
  EXPECT_EQ(task["race"]["finalists"].size(), 3u);
  EXPECT_EQ(task["race"]["finalists"][0]["winner"], true);
  EXPECT_EQ(task["race"]["finalists"][2]["tied"], false);
  EXPECT_EQ(task["race"]["finalists"][2]["processes"], 3);
  ASSERT_EQ(task["failures"].size(), 2u);
  EXPECT_EQ(task["failures"][0]["count"].get<int>() + task["failures"][1]["count"].get<int>(), 10);
  EXPECT_EQ(task["failures"][0]["examples"].size(), 1u) << "of each sort of message one";
  EXPECT_EQ(task["phases"]["build_median_ms"], 30);
  EXPECT_DOUBLE_EQ(task["phases"]["wall_ms"], 89 * 50.0);
  EXPECT_GT(task["importance"]["r2"].get<double>(), 0.3);
  EXPECT_FALSE(task["stopping"]["chance"].is_null());
  EXPECT_EQ(task["roofline"]["flops"], 2 * 64 * 64 * 64);
  EXPECT_EQ(task["roofline"]["peak_gflops"], 200);
  EXPECT_EQ(task["roofline"]["peak_name"], "FMA peak");
  EXPECT_EQ(task["best"]["peak_owner"], "vector unit's");
}

TEST_F(ReportTest, ABaselineOfFewRecordedRowsIsRefusedWithTheShare) {
  add_job("j1", "bayesian", {{kMatmul, kTarget}});
  measure("j1", 0, 64, 1);
  const ordered_json baseline = facts("j1")["tasks"][0]["baseline"];
  EXPECT_FALSE(baseline.contains("mean"));
  EXPECT_THAT(baseline["why"].get<std::string>(), HasSubstr("tuner submit FILE --search annealing"));
}

TEST_F(ReportTest, AnotherJobThatSearchedWithoutAModelIsTheBaseline) {
  add_job("j1", "bayesian", {{kMatmul, kTarget}});
  measure("j1", 0, 64, 1);
  add_job("j2", "annealing", {{kSoftmax, kTarget}, {kMatmul, kTarget}});
  measure("j2", 1, 50, 2);
  const ordered_json baseline = facts("j1")["tasks"][0]["baseline"];
  EXPECT_EQ(baseline["source"], "annealing, measured: job j2");
  ASSERT_EQ(baseline["x"].size(), baseline["mean"].size());
  EXPECT_EQ(baseline["x"].back(), 50);
  for (size_t i = 1; i < baseline["mean"].size(); ++i)
    EXPECT_LE(baseline["mean"][i], baseline["mean"][i - 1]);
  // Of itself it is none.
  EXPECT_THAT(facts("j2")["tasks"][1]["baseline"]["why"].get<std::string>(), HasSubstr("without a model"));
}

TEST_F(ReportTest, ATaskWithoutResultsAndAJobThatIsNotThereAreToldAsSuch) {
  add_job("j1", "bayesian", {{kMatmul, kTarget}});
  const ordered_json task = facts("j1")["tasks"][0];
  EXPECT_TRUE(task["best"].is_null());
  EXPECT_TRUE(task["failures"].empty());
  EXPECT_EQ(report_facts(*store_, "j9", {}).status().code(), StatusCode::kNotFound);
}

TEST_F(ReportTest, NothingInTheFactsBecomesMarkup) {
  const std::string page = report_page({{"job", kNasty}, {"tasks", {{{"message", kNasty}}}}});
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page, HasSubstr("\\u003c/script>\\u003cscript>alert"));
  EXPECT_THAT(page, HasSubstr("<title>Tuning report: job &lt;/script&gt;"));
  for (const char* loads : {"src=", "@import", "url(http", "fetch(", "import("})
    EXPECT_THAT(page, Not(HasSubstr(loads))) << "nothing is loaded";
}

TEST_F(ReportTest, OpensInABrowserWithoutErrorsAndDrawsItsCurves) {
  std::string chromium;
  for (const char* path : {"/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"})
    if (chromium.empty() && access(path, X_OK) == 0) chromium = path;
  if (chromium.empty()) GTEST_SKIP() << "no Chromium here; deploy/install.sh --browser installs it";
  add_job("j1", "bayesian", {{kMatmul, kTarget}, {kSoftmax, kTarget, "", 3}, {kMatmul, kTarget, "direct"}});
  const auto ids = measure("j1", 0, 90, 1);
  race("j1", 0, {ids[0], ids[1], ids[2]});
  measure("j1", 1, 40, 5);  // the third has no trial
  add_job("j2", "annealing", {{kMatmul, kTarget}});
  measure("j2", 0, 60, 2);
  const ordered_json told = facts("j1");
  std::ofstream(folder_.file("report.html")) << report_page(told);

  testing::Process browser({chromium, "--headless", "--no-sandbox", "--disable-gpu",
                            "--disable-dev-shm-usage", "--user-data-dir=" + folder_.file("profile"),
                            "--enable-logging=stderr", "--log-level=0", "--virtual-time-budget=10000",
                            "--window-size=1280,900", "--dump-dom", "file://" + folder_.file("report.html")},
                           folder_.file("chromium"));
  ASSERT_EQ(browser.wait(120s), 0) << browser.err();
  // What is drawn, without the script that draws it.
  const std::string dom = browser.out().substr(0, browser.out().find("<script type="));
  EXPECT_THAT(browser.err(), Not(HasSubstr("CONSOLE"))) << "an error of the page's script";
  ASSERT_THAT(dom, HasSubstr("Tuning report: job j1"));
  const auto times_in_dom = [&](const std::string& text) {
    size_t n = 0;
    for (size_t at = dom.find(text); at != std::string::npos; at = dom.find(text, at + 1)) ++n;
    return n;
  };
  EXPECT_EQ(times_in_dom("<section class=\"task\""), 3u);
  EXPECT_EQ(times_in_dom("class=\"curve\""), 2u);
  size_t baselines = 0;
  for (const ordered_json& task : told["tasks"]) baselines += task["baseline"].contains("mean") ? 1 : 0;
  EXPECT_GE(baselines, 1u);
  EXPECT_EQ(times_in_dom("class=\"baseline\""), baselines);
  // A curve has a point for each trial: M x y, then an H for every later one.
  const size_t curve = dom.find("class=\"curve\"");
  const std::string path = dom.substr(curve, dom.find("></path>", curve) - curve);
  EXPECT_EQ(std::count(path.begin(), path.end(), 'H'), 89) << path;
  EXPECT_THAT(path, Not(HasSubstr("NaN")));
  EXPECT_EQ(times_in_dom("NaN"), 0u);
  EXPECT_EQ(times_in_dom("undefined"), 0u);
  EXPECT_THAT(dom, HasSubstr("&lt;/script&gt;&lt;script&gt;alert(\"x\")"));
  for (const char* chart :
       {"Best time so far", "Finalists of the race", "Knob importance", "Roofline", "Where the time went"})
    EXPECT_GE(times_in_dom(str("aria-label=\"", chart)), 1u) << chart;
}

}  // namespace
}  // namespace tuner
