// `tuner cover` as a person meets it: recorded spaces and databases in, a set whose coverage is recomputed
// here from the tables themselves, and a header that a plain compiler takes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "db/learning/cover.h"
#include "templates/schedule_template.h"
#include "tests/db/store_fixture.h"

namespace tuner {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Times by config as its cells stand in the file, read without any code of the program's; failed ones are
// absent.
std::map<std::string, double> times_of(const std::string& path) {
  const gzFile file = gzopen(path.c_str(), "rb");
  char line[4096];
  std::map<std::string, double> times;
  gzgets(file, line, sizeof line);
  while (gzgets(file, line, sizeof line) != nullptr) {
    std::string text(line);
    text.erase(text.find_last_not_of("\r\n") + 1);
    const size_t status = text.rfind(','), time = text.rfind(',', status - 1);
    if (text.substr(status + 1) == "ok") times[text.substr(0, time)] = std::stod(text.substr(time + 1));
  }
  gzclose(file);
  return times;
}

// Scores of each config in each file; 0 where it fails or is absent.
std::vector<std::vector<double>> scores_of(const std::vector<std::string>& paths) {
  std::map<std::string, std::vector<double>> rows;
  for (size_t c = 0; c < paths.size(); ++c) {
    const auto times = times_of(paths[c]);
    double best = INFINITY;
    for (const auto& [config, ms] : times) best = std::min(best, ms);
    for (const auto& [config, ms] : times) {
      rows[config].resize(paths.size());
      rows[config][c] = best / ms;
    }
  }
  std::vector<std::vector<double>> out;
  for (auto& [config, scores] : rows) out.push_back(std::move(scores));
  return out;
}

// The best worst case of every single config, and of every pair.
double best_single(const std::vector<std::vector<double>>& rows) {
  double best = 0;
  for (const auto& r : rows) best = std::max(best, *std::min_element(r.begin(), r.end()));
  return best;
}
double best_pair(const std::vector<std::vector<double>>& rows) {
  double best = 0;
  for (size_t a = 0; a < rows.size(); ++a)
    for (size_t b = a + 1; b < rows.size(); ++b) {
      double worst = 1;
      for (size_t c = 0; c < rows[a].size() && worst > best; ++c)
        worst = std::min(worst, std::max(rows[a][c], rows[b][c]));
      best = std::max(best, worst);
    }
  return best;
}

class CoverCommand : public ::testing::Test {
 protected:
  struct Ended {
    int exit_code;
    std::string out, err;
  };
  Ended shell(const std::string& command) {
    const std::string out = folder_.file("out.txt"), err = folder_.file("err.txt");
    const int status =
        std::system(str("timeout 120 ", command, " >", out, " 2>", err, " </dev/null").c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, contents(out), contents(err)};
  }
  Ended cover(const std::string& arguments) { return shell(str(TUNER_BINARY, " cover ", arguments)); }
  json cover_json(const std::string& arguments, int exit_code = 0) {
    const Ended ended = cover(arguments + " --json");
    EXPECT_EQ(ended.exit_code, exit_code) << ended.err;
    return json::parse(ended.out, nullptr, false);
  }

  // A kernel on a device: two knobs, one of them words; a bowl whose bottom is elsewhere on each.
  std::string space(const std::string& name, int bottom, int best_order, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::ofstream out(folder_.file(name + ".csv"));
    out << "tile,order,time_ms,status\n";
    for (int tile = 1; tile <= 24; ++tile)
      for (int order = 0; order < 3; ++order) {
        const double ms = 1 + 0.02 * (tile - bottom) * (tile - bottom) + 0.15 * std::abs(order - best_order) +
                          0.01 * static_cast<double>(random() % 10);
        const bool fails = random() % 8 == 0;
        out << tile << ','
            << (order == 0   ? "rows"
                : order == 1 ? "columns"
                             : "blocks")
            << ',' << (fails ? "" : std::to_string(ms)) << ',' << (fails ? "crashed" : "ok") << '\n';
      }
    return folder_.file(name + ".csv");
  }
  std::vector<std::string> spaces() {
    return {space("a", 4, 0, 1), space("b", 12, 1, 2), space("c", 20, 1, 3)};
  }

  TemporaryFolder folder_;
};

std::string listed(const std::vector<std::string>& paths) {
  std::string text;
  for (const std::string& path : paths) text += " " + path;
  return text;
}

TEST_F(CoverCommand, ReachesTheBestOfAllSetsOnRecordedSpaces) {
  const auto paths = spaces();
  const auto rows = scores_of(paths);
  const json one = cover_json("--spaces" + listed(paths) + " --k 1")["covers"][0];
  const json two = cover_json("--spaces" + listed(paths) + " --k 2")["covers"][0];
  EXPECT_NEAR(one["worst_percent"].get<double>(), 100 * best_single(rows), 1e-9);
  EXPECT_NEAR(two["worst_percent"].get<double>(), 100 * best_pair(rows), 1e-9);
  EXPECT_TRUE(two["optimal"].get<bool>());
  EXPECT_NEAR(two["worst_percent_of_fewer"][0].get<double>(), one["worst_percent"].get<double>(), 1e-9);
}

TEST_F(CoverCommand, TheSmallestSetWithinAFewPercentAndTheExitCodeWhenThereIsNone) {
  const auto paths = spaces();
  const json within = cover_json("--spaces" + listed(paths) + " --within 5%")["covers"][0];
  EXPECT_GE(within["worst_percent"].get<double>(), 95);
  EXPECT_EQ(within["configs"].size(), within["at_least_configs"].get<size_t>());
  EXPECT_EQ(within["configs"].size(), 3u) << "bottoms so far apart";
  const Ended too_few = cover("--spaces" + listed(paths) + " --within 5 --k 2");
  EXPECT_EQ(too_few.exit_code, 1);
  EXPECT_THAT(too_few.err, HasSubstr("not within 5 % everywhere"));
}

// The coverage printed is that of the emitted header, looked up in the spaces by a program that has only the
// header.
TEST_F(CoverCommand, TheHeaderCompilesAloneAndChoosesWhatWasPrinted) {
  const auto paths = spaces();
  const std::string header = folder_.file("cover.h");
  const json printed =
      cover_json("--spaces" + listed(paths) + " --k 2 --name my_lib -o " + header)["covers"][0];
  std::ofstream(folder_.file("main.cpp")) << R"(#include "cover.h"
#include <cstdio>
constexpr bool consistent() {
  for (const my_lib::Place& p : my_lib::kPlaces)
    if (my_lib::choose(p.shape) != p.config || p.config >= my_lib::kConfigCount) return false;
  return true;
}
static_assert(consistent());
int main() {
  for (const my_lib::Place& p : my_lib::kPlaces) {
    const my_lib::Config& c = my_lib::kConfigs[my_lib::choose(p.shape)];
    std::printf("%.*s %lld %.*s %.6f\n", int(p.shape.space.size()), p.shape.space.data(),
                static_cast<long long>(my_lib::knob(c, "tile", -1)), int(c.text.size()), c.text.data(), p.score);
  }
}
)";
  const Ended built = shell(str(TUNER_CXX, " -std=c++17 -Wall -Wextra -Wpedantic -Werror -o ",
                                folder_.file("main"), " ", folder_.file("main.cpp")));
  ASSERT_EQ(built.exit_code, 0) << built.err;
  std::istringstream lines(shell(folder_.file("main")).out);
  std::string place, order, tile;
  int64_t knob = 0;
  double score = 0, worst = 1;
  size_t seen = 0;
  while (lines >> place >> knob >> order >> tile >> score) {
    ASSERT_EQ(order.substr(0, 6), "order=");
    const auto times = times_of(folder_.file(place + ".csv"));
    double best = INFINITY;
    for (const auto& [config, ms] : times) best = std::min(best, ms);
    const auto at = times.find(str(knob, ",", order.substr(6)));
    ASSERT_NE(at, times.end()) << place;
    EXPECT_NEAR(best / at->second, score, 1e-6) << place;
    worst = std::min(worst, score);
    ++seen;
  }
  EXPECT_EQ(seen, paths.size());
  EXPECT_NEAR(100 * worst, printed["worst_percent"].get<double>(), 1e-4);
}

TEST_F(CoverCommand, SaysWhatIsWrongWithSpaces) {
  const std::string a = space("a", 4, 0, 1);
  Ended e = cover("--spaces " + a);
  EXPECT_EQ(e.exit_code, 2);
  EXPECT_THAT(e.err, HasSubstr("found one recorded space, expected two or more"));
  e = cover("--spaces " + a + " " + a);
  EXPECT_EQ(e.exit_code, 2);
  EXPECT_THAT(e.err, HasSubstr("is the same file as"));
  std::ofstream(folder_.file("other.csv")) << "width,time_ms,status\n4,1.0,ok\n";
  e = cover("--spaces " + a + " " + folder_.file("other.csv"));
  EXPECT_EQ(e.exit_code, 2);
  EXPECT_THAT(e.err, HasSubstr("are not those of a.csv"));
  EXPECT_EQ(cover("--spaces " + a + " " + space("b", 9, 1, 2) + " --k 0").exit_code, 2);
  EXPECT_EQ(cover("").exit_code, 2);
  EXPECT_THAT(cover("").err, HasSubstr("expected one of them"));
}

// Two targets, three shapes; configs that are good on one side of m, one that crashes, one measured once.
class CoverDatabase : public CoverCommand {
 protected:
  static std::string key(int64_t m) {
    return str("v1 matmul b=1 m=", m, " n=64 k=64 ta=0 tb=0 bias=0 act=none dtype=float32 const=none");
  }
  static std::string config(int tile) { return str("tile_m=", tile); }

  void SetUp() override {
    const std::unique_ptr<Store> store = must_open(db_);
    JobRow job = job_row("j1", {});
    for (const char* target : {"llvm -mcpu=haswell -threads=1", "llvm -mcpu=skylake-avx512 -threads=1"})
      for (const int64_t m : {8, 64, 512}) job.tasks.push_back({key(m), target});
    ASSERT_OK(store->add_job(job));
    for (int task = 0; task < 6; ++task) {
      const int64_t m = task % 3 == 0 ? 8 : task % 3 == 1 ? 64 : 512;
      add(*store, task, config(1), m == 8 ? 100 : 300);
      add(*store, task, config(8), m == 8 ? 200 : 102);
      add(*store, task, config(9), m == 8 ? 250 : 100);
      if (task == 0) add(*store, task, config(2), 99);  // known here only
      add(*store, task, config(5), 0);
    }
  }
  void add(Store& store, int task, const std::string& text, double ns) {
    TrialRow row = trial_row("j1", text, task);
    row.template_name = "matmul_cpu";
    row.template_version = find_template("matmul_cpu")->version();
    std::vector<TrialRow> rows{row};
    ASSERT_OK(store.add_trials(rows));
    MeasureRecord record = ok_record(rows[0].id, {ns, ns, ns});
    if (ns == 0) {
      record.outcome = Outcome::kCrashed;
      record.run_ns.clear();
      record.cpu_ns.clear();
    }
    ASSERT_OK(store.add_records({record}));
  }

  const std::string db_ = folder_.file("t.db");
};

TEST_F(CoverDatabase, ChoosesByShapeAndCountsOnlyWhatWasMeasured) {
  const json j = cover_json("--op matmul --within 5 --db " + db_)["covers"][0];
  ASSERT_EQ(j["configs"].size(), 2u) << j.dump(1);
  EXPECT_EQ(j["at_least_configs"], 2);
  // tile_m=2 is the fastest of one task and unknown elsewhere: it is no better than tile_m=1 by more than 1
  // %.
  EXPECT_EQ(j["configs"][0]["config"], (json{{"tile_m", 1}}));
  EXPECT_EQ(j["configs"][1]["config"], (json{{"tile_m", 9}}));
  EXPECT_NEAR(j["worst_percent"].get<double>(), 99, 1e-9);
  EXPECT_EQ(j["places"].size(), 6u);
  EXPECT_EQ(j["pairs_not_measured"], 0);
  EXPECT_THAT(j["tree"].get<std::string>(), HasSubstr("if m <= 22: config 1"));
  EXPECT_EQ(j["left_out"]["places"], 6);
}

// Times with cold constants are of another kind, and a lost device says nothing of a config.
TEST_F(CoverDatabase, ColdTimesAndLostDevicesCountForNothing) {
  {
    const std::unique_ptr<Store> store = must_open(db_);
    JobRow cold = job_row("j2", {{key(8), "llvm -mcpu=haswell -threads=1"}});
    cold.tasks[0].constants = cold.options.constants = Constants::kCold;
    ASSERT_OK(store->add_job(cold));
    for (const auto& [job, outcome] :
         {std::pair("j2", Outcome::kOk), std::pair("j1", Outcome::kDeviceLost)}) {
      TrialRow row = trial_row(job, config(outcome == Outcome::kOk ? 3 : 7));
      row.template_name = "matmul_cpu";
      row.template_version = find_template("matmul_cpu")->version();
      std::vector<TrialRow> rows{row};
      ASSERT_OK(store->add_trials(rows));
      MeasureRecord record = ok_record(rows[0].id, {10});
      record.outcome = outcome;
      if (outcome != Outcome::kOk) record.run_ns.clear();
      ASSERT_OK(store->add_records({record}));
    }
  }
  const json j = cover_json("--op matmul --within 5 --db " + db_)["covers"][0];
  EXPECT_EQ(j["configs_known"], 5) << "tiles of 1, 2, 5, 8 and 9";
  for (const json& place : j["places"]) EXPECT_GE(place["best_ns"], 99);
  EXPECT_EQ(j["configs"][0]["config"], (json{{"tile_m", 1}}));
}

TEST_F(CoverDatabase, KeepsADocumentATargetThatChoosesTheSame) {
  const Ended ended = cover("--op matmul --store --db " + db_);
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const std::unique_ptr<Store> store = must_open(db_, Store::Mode::kRead);
  for (const char* target : {"llvm -mcpu=haswell -threads=1", "llvm -mcpu=skylake-avx512 -threads=1"}) {
    const Result<LearnedRow> row = store->learned("cover", "matmul", target);
    ASSERT_TRUE(row.is_ok()) << row.message();
    const Result<Cover> document = cover_from_json(row->document);
    ASSERT_TRUE(document.is_ok()) << document.message();
    EXPECT_EQ(document->target, target);
    EXPECT_EQ(document->columns, 3);
    EXPECT_EQ(document->choose(key(4)).config, "tile_m=1");
    EXPECT_EQ(document->choose(key(300)).config, "tile_m=9");
    EXPECT_GT(row->until_record_id, 0);
  }
}

TEST_F(CoverDatabase, AJobFileNamesTheWorkloadsAndWhatIsMissingIsSaid) {
  std::ofstream(folder_.file("tasks.json"))
      << R"([{"op": "matmul", "a": [8, 64], "b": [64, 64]}, {"op": "matmul", "a": [512, 64], "b": [64, 64]},)"
      << R"( {"op": "matmul", "a": [77, 64], "b": [64, 64]}])";
  const std::string tasks = "--tasks " + folder_.file("tasks.json") + " --db " + db_;
  const Ended text = cover(tasks);
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.err, HasSubstr("left out, nothing measured: " + key(77)));
  const json j = cover_json(tasks + " --target 'llvm -mcpu=haswell'");
  EXPECT_EQ(j["covers"][0]["places"].size(), 2u);
  EXPECT_EQ(j["unmeasured"].size(), 1u);
  EXPECT_EQ(cover("--op softmax --db " + db_).exit_code, 1);
  EXPECT_EQ(cover("--op matmul --db " + folder_.file("none.db")).exit_code, 1);
}

// The recorded spaces of three GPUs that search is scored on, where they are at hand: TUNER_RECORDED_SPACES
// names their folder. Every set of one and two configs is tried here.
TEST_F(CoverCommand, ReachesTheExhaustiveOptimaOfRealKernelsOnThreeGpus) {
  const char* folder = std::getenv("TUNER_RECORDED_SPACES");
  if (folder == nullptr) GTEST_SKIP() << "TUNER_RECORDED_SPACES does not name a folder of recorded spaces";
  for (const std::string kernel : {"convolution", "dedispersion"}) {
    std::vector<std::string> paths;
    for (const char* gpu : {"A4000", "MI250X", "W6600"})
      paths.push_back(str(folder, "/", kernel, "_", gpu, ".csv.gz"));
    const auto rows = scores_of(paths);
    ASSERT_GT(rows.size(), 1000u) << kernel;
    const double optimum[] = {best_single(rows), best_pair(rows)};
    for (int k = 1; k <= 2; ++k) {
      const json j = cover_json(str("--spaces", listed(paths), " --k ", k))["covers"][0];
      EXPECT_NEAR(j["worst_percent"].get<double>(), 100 * optimum[k - 1], 1e-6) << kernel << ", k " << k;
      std::printf("%s k=%d: %.2f %%, exhaustive optimum %.2f %%\n", kernel.c_str(), k,
                  j["worst_percent"].get<double>(), 100 * optimum[k - 1]);
    }
  }
}

}  // namespace
}  // namespace tuner
