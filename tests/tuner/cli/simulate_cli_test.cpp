// `tuner study simulate` as a person meets it: a table, the same as JSON, and refusals that name what to
// mend.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/tuner/analytic_task.h"

namespace tuner {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kSweep[] = TUNER_SOURCE_DIR "/tests/tuner/data/matmul_6x48x48.csv";

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class SimulateCli : public ::testing::Test {
 protected:
  struct Ended {
    int exit_code;
    std::string out, err;
  };
  Ended simulate(const std::string& arguments) {
    const std::string out = folder_.file("out.txt"), err = folder_.file("err.txt");
    const int status =
        std::system(str(TUNER_BINARY, " simulate ", arguments, " >", out, " 2>", err, " </dev/null").c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, contents(out), contents(err)};
  }
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder_.file(name)) << text;
    return folder_.file(name);
  }
  // The sweep with every time doubled: of another machine, with the same knobs.
  std::string other_machine() {
    std::ifstream in(kSweep);
    std::string line, text;
    std::getline(in, line);
    const size_t samples = line.find(",samples_ms");
    text = line.substr(0, samples) + "\n";
    while (std::getline(in, line)) {
      const size_t status = line.find(",ok,"), time = line.rfind(',', status - 1);
      CHECK(status != std::string::npos) << "a failed config in the sweep";
      const double ms = std::stod(line.substr(time + 1, status - time - 1));
      text += str(line.substr(0, time), ",", 2 * ms, ",ok\n");
    }
    return write("other.csv", text);
  }

  TemporaryFolder folder_;
};

TEST_F(SimulateCli, PrintsTheAnnealersLineBesideTheStrategyThatWasAskedFor) {
  const Ended found = simulate(str(kSweep, " --strategy random --trials 64 --seeds 2"));
  ASSERT_EQ(found.exit_code, 0) << found.err;
  EXPECT_EQ(found.err, "") << "progress is for a terminal";
  EXPECT_THAT(found.out, HasSubstr("matmul_6x48x48.csv  444 configs, median/best "));
  EXPECT_THAT(found.out, HasSubstr("matmul_6x48x48.csv random "));
  EXPECT_THAT(found.out, HasSubstr("matmul_6x48x48.csv annealing "));
  EXPECT_THAT(found.out, Not(HasSubstr("128"))) << "a mark past the last trial";
}

TEST_F(SimulateCli, JsonHasEveryRunOfEveryStrategyAndRepeatsWithTheSeeds) {
  const std::string arguments = str(kSweep, " --strategy grid,random --trials 444 --seeds 3 --json");
  const Ended found = simulate(arguments);
  ASSERT_EQ(found.exit_code, 0) << found.err;
  json document = json::parse(found.out);
  EXPECT_EQ(document["trials"], 444);
  EXPECT_EQ(document["seeds"], 3);
  ASSERT_EQ(document["results"].size(), 3u);
  std::vector<std::string> strategies;
  for (json& row : document["results"]) {
    strategies.push_back(row["strategy"]);
    EXPECT_EQ(row["runs"], 3);
    for (const char* mark : {"32", "64", "128", "256"}) {
      const double mean = row["mean_percent_of_optimum"][mark], worst = row["worst_percent_of_optimum"][mark];
      const double median = row["median_percent_of_optimum"][mark];
      EXPECT_LE(worst, mean) << row["strategy"] << " at " << mark;
      EXPECT_LE(worst, median) << row["strategy"] << " at " << mark;
      EXPECT_GT(worst, 0);
      EXPECT_LE(mean, 100);
    }
    EXPECT_FALSE(row["mean_percent_of_optimum"].contains("512"));
    // All 444 configs are played, so every run ends at the optimum.
    EXPECT_TRUE(row["median_trials_to_percent"]["99"].is_number()) << row["strategy"];
    row.erase("cpu_ms_per_trial");
  }
  EXPECT_EQ(strategies, (std::vector<std::string>{"grid", "random", "annealing"}));
  json again = json::parse(simulate(arguments).out);
  for (json& row : again["results"]) row.erase("cpu_ms_per_trial");
  EXPECT_EQ(again, document);
}

TEST_F(SimulateCli, AGoalThatHalfOfTheRunsMissIsNull) {
  const Ended found = simulate(str(kSweep, " --strategy grid --trials 1 --seeds 1 --json"));
  ASSERT_EQ(found.exit_code, 0) << found.err;
  EXPECT_TRUE(json::parse(found.out)["results"][0]["median_trials_to_percent"]["99"].is_null());
}

TEST_F(SimulateCli, RowsOfAnotherMachinePutTheSearchAhead) {
  const std::string other = other_machine();
  const auto percent_after_32 = [&](const std::string& more) {
    const Ended found =
        simulate(str(kSweep, " --strategy bayesian --trials 32 --seeds 3 --json --warm-rows 300 ", more));
    CHECK(found.exit_code == 0) << found.err;
    return json::parse(found.out)["results"][0]["mean_percent_of_optimum"]["32"].get<double>();
  };
  EXPECT_GT(percent_after_32("--warm " + other), percent_after_32(""));
  EXPECT_THAT(simulate(str(kSweep, " --trials 1 --seeds 1 --warm ", other)).out,
              HasSubstr(", warm from other.csv\n"));
}

TEST_F(SimulateCli, ADonorThatIsTheScoredSpaceIsRefusedWhateverItsName) {
  const std::string copy = write("copy.csv", contents(kSweep));
  const Ended found = simulate(str(kSweep, " --warm ", copy));
  EXPECT_EQ(found.exit_code, 2);
  EXPECT_EQ(found.out, "");
  EXPECT_EQ(found.err,
            "tuner: --warm copy.csv: this is the scored space matmul_6x48x48.csv itself; expected spaces of "
            "other machines or shapes\n");
}

TEST_F(SimulateCli, WrongUseIsOneLineAndExit2) {
  const std::string unlike = write("unlike.csv", "tile,time_ms,status\n1,2,ok\n");
  const std::string fails = write("fails.csv", "tile,time_ms,status\n1,,crashed\n");
  const std::string broken = write("broken.csv", "tile,time_ms,status\n1,fast,ok\n");
  const struct {
    std::string arguments, error;
  } refused[] = {
      {str(kSweep, " --warm ", unlike),
       "tuner: --warm unlike.csv: its knobs are not those of matmul_6x48x48.csv; expected the same knobs\n"},
      {fails, "tuner: fails.csv: every config fails; expected at least one with status ok\n"},
      {broken, str("tuner: ", broken,
                   ":2: time_ms: found \"fast\", expected milliseconds above 0, as status is ok\n")},
      {str(kSweep, " --strategy dance"), ""},
      {folder_.file("nowhere.csv"), ""},
      {str(kSweep, " --seeds 0"), ""},
      {str(kSweep, " --in-flight 0"), ""},
      {"", ""},
  };
  for (const auto& [arguments, error] : refused) {
    const Ended found = simulate(arguments);
    EXPECT_EQ(found.exit_code, 2) << arguments;
    EXPECT_EQ(found.out, "") << arguments;
    if (error.empty()) {
      EXPECT_THAT(found.err, Not(::testing::IsEmpty())) << arguments;
    } else {
      EXPECT_EQ(found.err, error) << arguments;
    }
  }
  EXPECT_THAT(simulate(str(kSweep, " --strategy dance")).err, HasSubstr("bayesian")) << "the names there are";
}

}  // namespace
}  // namespace tuner
