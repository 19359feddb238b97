// Recorded spaces: what is read, what is refused with which line, and what playing on them says.
#include "tuner/search/recorded_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>
#include <fstream>

#include "tests/tuner/analytic_task.h"
#include "tuner/search/simulation.h"

namespace tuner {
namespace {

class RecordedSpaceFile : public ::testing::Test {
 protected:
  Result<RecordedSpace> read(const std::string& text) {
    const std::string path = folder_.file("space.csv");
    std::ofstream(path) << text;
    return read_recorded_space(path);
  }
  // The message behind the folder's name.
  std::string refusal(const std::string& text) {
    const Result<RecordedSpace> read_back = read(text);
    EXPECT_FALSE(read_back.is_ok());
    return read_back.is_ok() ? "" : read_back.message().substr(folder_.path().string().size() + 1);
  }
  TemporaryFolder folder_;
};

TEST_F(RecordedSpaceFile, HoldsTheListedConfigsAndNoOthers) {
  const Result<RecordedSpace> space = read(
      "x,order,time_ms,status\n"
      "1,mnk,4.0,ok\n"
      "8,mnk,2.5,ok\n"
      "8,nmk,,CompilationFailed\n"
      "2,kmn,3.0,ok\n");
  ASSERT_TRUE(space.is_ok()) << space.message();
  ASSERT_EQ(space->parts.size(), 1u);
  const RecordedSpace::Part& part = space->parts[0];
  EXPECT_EQ(part.space.size(), 4u);
  EXPECT_EQ(space->best_ns(), 2.5e6);
  std::vector<std::string> read_back;
  for (ConfigIndex i = 0; i < part.space.size(); ++i) {
    const Observation seen = space->measure({0, i});
    read_back.push_back(str(part.space.describe(part.space.at(i)), " ",
                            seen.ok ? str(seen.time_ns / 1e6) : std::string("fails")));
  }
  EXPECT_THAT(read_back, ::testing::UnorderedElementsAre("order=mnk x=1 4", "order=mnk x=8 2.5",
                                                         "order=nmk x=8 fails", "order=kmn x=2 3"));
}

TEST_F(RecordedSpaceFile, KeepsSamplesAndTellsTemplatesApart) {
  const Result<RecordedSpace> space = read(
      "template,a,b,time_ms,status,samples_ms\n"
      "direct,1,,2,ok,2;2.5;2\n"
      "direct,2,,1,ok,1;1\n"
      "winograd,,7,3,ok,3\n");
  ASSERT_TRUE(space.is_ok()) << space.message();
  ASSERT_EQ(space->parts.size(), 2u);
  EXPECT_EQ(space->parts[0].template_name, "direct");
  EXPECT_EQ(space->parts[1].template_name, "winograd");
  EXPECT_THAT(space->parts[0].samples_ns[0], ::testing::ElementsAre(2e6, 2.5e6, 2e6));
  EXPECT_EQ(space->size(), 3u);
  EXPECT_EQ(space->measure({1, 0}).time_ns, 3e6);
}

TEST_F(RecordedSpaceFile, AKnobThatIsInactiveInSomeConfigsHasAValueOfItsOwnThere) {
  const Result<RecordedSpace> space = read("a,b,time_ms,status\n0,,2,ok\n1,1,1,ok\n1,2,3,ok\n");
  ASSERT_TRUE(space.is_ok()) << space.message();
  EXPECT_EQ(space->size(), 3u);
  std::vector<std::string> configs;
  for (ConfigIndex i = 0; i < 3; ++i) configs.push_back(space->parts[0].space.at(i).to_text());
  EXPECT_THAT(configs, ::testing::UnorderedElementsAre("a=0 b=-1", "a=1 b=1", "a=1 b=2"));
}

TEST_F(RecordedSpaceFile, ReadsGzipToo) {
  const std::string path = folder_.file("space.csv.gz"), text = "x,time_ms,status\n1,2,ok\n2,1,ok\n";
  const gzFile file = gzopen(path.c_str(), "wb");
  ASSERT_EQ(gzwrite(file, text.data(), static_cast<unsigned>(text.size())), static_cast<int>(text.size()));
  gzclose(file);
  const Result<RecordedSpace> space = read_recorded_space(path);
  ASSERT_TRUE(space.is_ok()) << space.message();
  EXPECT_EQ(space->name, "space.csv.gz");
  EXPECT_EQ(space->size(), 2u);
}

TEST_F(RecordedSpaceFile, RefusesWithLineAndCell) {
  EXPECT_EQ(
      refusal("x,time_ms,status,colour\n1,1,ok,red\n"),
      "space.csv:1: column 4: found \"colour\" behind the knobs, expected time_ms, status, samples_ms or "
      "template; knobs come first");
  EXPECT_EQ(refusal("x,status\n1,ok\n"),
            "space.csv:1: found header \"x,status\", expected the knobs, then time_ms and status");
  EXPECT_EQ(refusal("x,time_ms,status\n1,1\n"), "space.csv:2: found 2 cells, expected 3");
  EXPECT_EQ(refusal("x,time_ms,status\n1,fast,ok\n"),
            "space.csv:2: time_ms: found \"fast\", expected milliseconds above 0, as status is ok");
  EXPECT_EQ(refusal("x,time_ms,status\n1,1,ok\n1,2,ok\n"), "space.csv:3: the config of this row came before");
  EXPECT_EQ(refusal("x,time_ms,status\n"), "space.csv: found no row of a config, expected at least one");
  EXPECT_EQ(refusal("x,y,time_ms,status\n,,1,ok\n"),
            "space.csv:2: no knob has a value, expected at least one");
  EXPECT_EQ(read_recorded_space(folder_.file("none.csv")).status().code(), StatusCode::kInvalidArgument);
}

// 64 configs in a row, the fastest at 40.
std::string a_valley() {
  std::string text = "x,time_ms,status\n";
  for (int x = 1; x <= 64; ++x)
    text += str(x, ",", 1 + std::abs(x - 40), ",", x == 41 ? "failed" : "ok", "\n");
  return text;
}

TEST_F(RecordedSpaceFile, APlayedRunSaysWhenWhatWasReached) {
  const RecordedSpace space = read(a_valley()).value();
  const SearchSpace search_space = space.search_space();
  const std::unique_ptr<SearchStrategy> grid = make_strategy("grid", search_space, 0).value();
  const SimulationRun run = simulate(
      *grid, [&](const Candidate& c) { return space.measure(c); }, space.best_ns(), 100, 8);
  ASSERT_EQ(run.share.size(), 100u) << "an exhausted run keeps its last share";
  EXPECT_DOUBLE_EQ(run.share[0], 1.0 / 8) << "33, the default, comes first";
  EXPECT_DOUBLE_EQ(run.share[38], 0.5);
  EXPECT_EQ(run.trials_to(0.5), 39u);
  EXPECT_EQ(run.trials_to(1), 40u);
  EXPECT_EQ(run.think_ms.size(), 8u);
  SimulationSummary summary;
  summary.add(run);
  summary.add(run);
  EXPECT_DOUBLE_EQ(summary.mean_share(40), 1);
  SimulationRun late = run, never = run;
  late.share[39] = 0.9;
  never.share[39] = 0.1;
  SimulationSummary three;
  for (const SimulationRun& each : {run, late, never}) three.add(each);
  EXPECT_DOUBLE_EQ(three.median_share(40), 0.9);
  EXPECT_DOUBLE_EQ(three.median_share(39), 0.5);
  EXPECT_DOUBLE_EQ(summary.worst_share(39), 0.5);
  EXPECT_DOUBLE_EQ(summary.median_trials_to(0.5), 39);
}

TEST_F(RecordedSpaceFile, DonorRowsAreDrawnByTheSeedWithoutRepetitionFailedOnesToo) {
  const RecordedSpace space = read(a_valley()).value();
  const auto texts = [&](size_t rows, uint64_t seed) {
    std::vector<std::string> list;
    for (const PriorTask::Row& row : space.drawn_rows(rows, seed).rows)
      list.push_back(row.config.to_text() + (row.ok ? "" : " failed"));
    return list;
  };
  EXPECT_EQ(texts(20, 1), texts(20, 1));
  EXPECT_NE(texts(20, 1), texts(20, 2));
  std::vector<std::string> all = texts(1000, 3);
  EXPECT_EQ(all.size(), 64u);
  EXPECT_THAT(all, ::testing::Contains("x=41 failed"));
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::unique(all.begin(), all.end()), all.end());
}

}  // namespace
}  // namespace tuner
