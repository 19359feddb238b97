// bench_cpu's figures on contestants that are made up: who is compared with whom, shares of the ceilings,
// means, sums; and that what it submits for tuning is what it times.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/bench/cpu/interleave.h"
#include "tests/bench/cpu/published.h"
#include "tests/bench/cpu/report.h"
#include "tests/bench/cpu/tune.h"
#include "tuner/jobs/job_file.h"

namespace tuner {
namespace {

constexpr uint64_t kSeed = 3;
constexpr int kRounds = 40;

// Takes `ns` in every round, and a tenth more in each fifth one.
Contestant fake(const std::string& name, ContestantKind kind, double ns,
                const std::string& algorithm = "direct") {
  Contestant c{.name = name, .kind = kind, .algorithm = algorithm};
  for (int i = 0; i < kRounds; ++i) c.ns.push_back(i % 5 == 0 ? 1.1 * ns : ns);
  return c;
}

// Takes some time that no compiler leaves out.
void work(int steps) {
  static std::atomic<int> done = 0;
  for (int i = 0; i < steps; ++i) done.fetch_add(1, std::memory_order_relaxed);
}

// A shape of 2 MFLOP and 1 MB, on a machine of 200 GFLOP/s and 50 GB/s.
ShapeReport report_of(const std::string& name, std::vector<Contestant> contestants) {
  Conv2dWorkload w;
  ShapeReport r{.shape = {.set = "net", .name = name, .group = "some", .workload = w, .uses = 2},
                .flops = 2'000'000,
                .bytes = 1'000'000,
                .level = "L2",
                .contestants = std::move(contestants)};
  Contestant peak = fake("FMA peak of one core", ContestantKind::kProbe, 1000),
             read = fake("read L2", ContestantKind::kProbe, 100);
  peak.work = 200'000;
  read.work = 5'000;
  r.contestants.push_back(peak);
  r.contestants.push_back(read);
  judge(r, kSeed);
  return r;
}

ShapeReport winograd_and_direct() {
  return report_of("layer",
                   {fake("ours", ContestantKind::kOurs, 12'500, "winograd"),
                    fake("ours direct", ContestantKind::kOurs, 20'000),
                    fake("old kernels", ContestantKind::kReference, 1'000),
                    fake("slow", ContestantKind::kPeer, 40'000), fake("fast", ContestantKind::kPeer, 25'000),
                    fake("fastest", ContestantKind::kPeer, 20'000, "winograd")});
}

TEST(BenchCpu, TheFastestPeerCountsAndReferencesDoNot) {
  const ShapeReport r = winograd_and_direct();
  ASSERT_TRUE(r.any.has_value());
  EXPECT_EQ(r.any->peer, "fastest");
  EXPECT_NEAR(r.any->ratio.middle, 1.6, 1e-9);
  EXPECT_NEAR(r.any->ratio.low, 1.6, 1e-9);  // rounds are slow together, so the ratio has no width
}

TEST(BenchCpu, DirectIsComparedWithDirect) {
  const ShapeReport r = winograd_and_direct();
  ASSERT_TRUE(r.direct.has_value());
  EXPECT_EQ(r.direct->peer, "fast");
  EXPECT_NEAR(r.direct->ratio.middle, 1.25, 1e-9);
}

TEST(BenchCpu, SharesAreOfTheCeilingsOfTheSameRounds) {
  const ShapeReport r = winograd_and_direct();
  EXPECT_NEAR(r.share_of_peak, 2'000'000 / 12'500.0 / 200, 1e-9);
  EXPECT_NEAR(r.share_of_bandwidth, 1'000'000 / 12'500.0 / 50, 1e-9);
}

TEST(BenchCpu, TwoThreadsCountOnlyOnTwoFreeCores) {
  const auto with_cores = [](double ns_of_all) {
    Contestant one = fake("FMA peak of one core", ContestantKind::kProbe, 1000),
               all = fake("FMA peak of all cores", ContestantKind::kProbe, ns_of_all);
    one.work = 200'000;
    all.work = 400'000;
    ShapeReport r{.flops = 1'000'000,
                  .contestants = {fake("ours", ContestantKind::kOurs, 5'000),
                                  fake("ours, 1 thread", ContestantKind::kReference, 9'500), one, all}};
    judge(r, kSeed);
    return r;
  };
  const ShapeReport quiet = with_cores(1020), busy = with_cores(1100);
  EXPECT_NEAR(quiet.cores, 2 / 1.02, 1e-9);
  EXPECT_NEAR(quiet.scaling, 1.9, 1e-9);
  EXPECT_NEAR(quiet.share_of_peak, 200.0 / (400 / 1.02), 1e-9);  // of all cores
  EXPECT_TRUE(cores_are_free(quiet, 2));
  EXPECT_FALSE(cores_are_free(busy, 2));
}

TEST(BenchCpu, ShapesWithoutFreeCoresAreInNoMeanAndNoSum) {
  RunReport run{.threads = 2};
  run.shapes = {winograd_and_direct(), winograd_and_direct()};
  run.shapes[0].cores = 1.99;
  run.shapes[1].cores = 1.5;
  ASSERT_EQ(summarise(run).size(), 1u);
  EXPECT_EQ(summarise(run)[0].shapes, 1u);
  ASSERT_EQ(network_sums(run).size(), 1u);
  EXPECT_EQ(network_sums(run)[0].layers, 2);
}

TEST(BenchCpu, TheShareOfASmallTypeIsOfItsOwnPeak) {
  Contestant peak = fake("int8 peak of one core", ContestantKind::kProbe, 1000),
             read = fake("read L2", ContestantKind::kProbe, 100);
  peak.work = 800'000;
  read.work = 5'000;
  ShapeReport r{.flops = 8'000'000,
                .bytes = 1'000'000,
                .contestants = {fake("ours", ContestantKind::kOurs, 12'500), peak, read}};
  judge(r, kSeed);
  EXPECT_NEAR(r.share_of_peak, 8'000'000 / 12'500.0 / 800, 1e-9);
  EXPECT_NEAR(r.share_of_bandwidth, 1'000'000 / 12'500.0 / 50, 1e-9);
}

TEST(BenchCpu, AShapeWithoutPeersHasNoRatioAndJoinsNoMean) {
  const ShapeReport alone = report_of("alone", {fake("ours", ContestantKind::kOurs, 100)});
  EXPECT_FALSE(alone.any.has_value());
  EXPECT_TRUE(summarise(RunReport{.shapes = {alone}}).empty());
}

TEST(BenchCpu, MeansAndWorstOfAGroup) {
  RunReport run;
  run.shapes.push_back(winograd_and_direct());
  run.shapes.push_back(report_of(
      "lost", {fake("ours", ContestantKind::kOurs, 20'000), fake("peer", ContestantKind::kPeer, 10'000)}));
  run.shapes.push_back(
      ShapeReport{.shape = {.set = "net", .name = "wrong", .group = "some"}, .error = "wrong"});
  const std::vector<GroupSummary> groups = summarise(run);
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].shapes, 2u);
  EXPECT_NEAR(groups[0].mean, std::sqrt(1.6 * 0.5), 1e-9);
  EXPECT_NEAR(groups[0].worst, 0.5, 1e-9);
  EXPECT_EQ(groups[0].worst_shape, "lost");
  EXPECT_NEAR(groups[0].direct_mean, std::sqrt(1.25 * 0.5), 1e-9);
}

TEST(BenchCpu, ANetworkIsTheSumOfItsLayersAsOftenAsTheyAreUsed) {
  RunReport run;
  run.shapes = {winograd_and_direct(), winograd_and_direct()};
  const std::vector<NetworkSum> sums = network_sums(run);
  ASSERT_EQ(sums.size(), 1u);
  EXPECT_EQ(sums[0].layers, 4);
  EXPECT_NEAR(sums[0].ours_ns, 4 * 12'500, 1e-6);
  EXPECT_NEAR(sums[0].ours_direct_ns, 4 * 20'000, 1e-6);
  EXPECT_NEAR(sums[0].peer_ns, 4 * 20'000, 1e-6);
  EXPECT_NEAR(sums[0].peer_direct_ns, 4 * 25'000, 1e-6);
}

TEST(BenchCpu, JsonHoldsSamplesAndRatios) {
  RunReport run{.date = "2026-11-21T00:00:00Z", .threads = 1, .rounds = kRounds, .seed = kSeed};
  run.shapes.push_back(winograd_and_direct());
  const std::string path = std::filesystem::path(::testing::TempDir()) / "bench_cpu_test.json";
  const Status written = write_json(run, path);
  ASSERT_TRUE(written.is_ok()) << written.message();
  std::ifstream in(path);
  const auto j = nlohmann::json::parse(in);
  const auto& shape = j["shapes"][0];
  EXPECT_EQ(shape["best_peer_over_ours"]["peer"], "fastest");
  EXPECT_NEAR(shape["best_peer_over_ours"]["ratio"]["middle"].get<double>(), 1.6, 1e-9);
  EXPECT_EQ(shape["contestants"][0]["ns"].size(), static_cast<size_t>(kRounds));
  EXPECT_EQ(shape["contestants"][2]["kind"], "peer as found");
}

// figures.py refuses a result whose groups and sums do not follow from its shapes.
TEST(BenchCpu, JsonBecomesASummaryWithTheSameFigures) {
  if (std::string_view(TUNER_PYTHON).ends_with("NOTFOUND")) GTEST_SKIP() << "no python3";
  RunReport run{.date = "2026-11-21T00:00:00Z", .threads = 1, .rounds = kRounds, .seed = kSeed};
  run.shapes.push_back(winograd_and_direct());
  run.shapes.push_back(report_of(
      "lost", {fake("ours", ContestantKind::kOurs, 20'000), fake("peer", ContestantKind::kPeer, 10'000)}));
  run.shapes.push_back(report_of("alone", {fake("ours", ContestantKind::kOurs, 1'000)}));
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "bench_cpu_summary";
  std::filesystem::create_directories(folder);
  ASSERT_TRUE(write_json(run, folder / "raw.json").is_ok());
  const std::string command = str(TUNER_PYTHON, " -B ", TUNER_SOURCE_DIR, "/deploy/figures.py --summarise ",
                                  (folder / "raw.json").string(), " --machine some -o ", folder.string());
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  std::ifstream in(folder / "2026-11-21-some.json");
  const auto summary = nlohmann::json::parse(in)["runs"][0];
  EXPECT_NEAR(summary["groups"][0]["geometric_mean"].get<double>(), std::sqrt(1.6 * 0.5), 1e-6);
  EXPECT_EQ(summary["networks"][0]["layers"], 4);
  EXPECT_NEAR(summary["shapes"][0]["ratio"][0].get<double>(), 1.6, 1e-6);
  EXPECT_NEAR(summary["shapes"][0]["direct"][1].get<double>(), 1.25, 1e-6);
  EXPECT_EQ(summary["shapes"][1]["rounds"].size(), static_cast<size_t>(kRounds));
  EXPECT_FALSE(summary["shapes"][2].contains("ratio"));
}

TEST(BenchCpu, TurnsAreTakenInEveryRoundAndBatchesFillTheirTime) {
  int calls[2] = {0, 0};
  double now_ns = 0;
  std::vector<Contestant> contestants(2);
  for (int i = 0; i < 2; ++i)
    contestants[i].call = [&, i](int) {
      ++calls[i];
      now_ns += 2000 * (i + 1);
    };
  take_turns({.rounds = 6, .fill_ns = 2e5, .clock_ns = [&] { return now_ns; }}, contestants);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(contestants[i].ns, std::vector<double>(6, 2000 * (i + 1)));
    EXPECT_EQ(contestants[i].calls, 100 / (i + 1)) << "they fill 2e5 ns";
    EXPECT_GT(calls[i], 6 * contestants[i].calls);  // and the calls of calibration, and those not timed
  }
}

TEST(BenchCpu, OperandsAreFlushedBeforeEveryTimedCall) {
  std::string events;
  std::vector<Contestant> contestants(1);
  contestants[0].call = [&](int) {
    events += 'c';
    work(1000);
  };
  contestants[0].flush = [&] { events += 'f'; };
  take_turns({.rounds = 5, .fill_ns = 1e5, .caches = Caches::kFlush}, contestants);
  EXPECT_EQ(events.find("cc", 1), std::string::npos);  // but the first call ever, which is not timed
  EXPECT_GT(contestants[0].calls, 1);
}

TEST(BenchCpu, RotatedCallsGoRoundTheSets) {
  std::vector<int> seen;
  std::vector<Contestant> contestants(1);
  contestants[0].call = [&](int set) {
    seen.push_back(set);
    work(100000);
  };
  take_turns({.rounds = 5, .fill_ns = 1e3, .caches = Caches::kRotate, .sets = 3}, contestants);
  // From one batch to the next as well.
  for (size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i], static_cast<int>(i % 3));
}

TEST(BenchCpu, WhatIsSubmittedForTuningIsWhatIsTimed) {
  for (const BenchShape& shape : bench_shapes()) {
    const auto entries = parse_job_text(job_entry(shape.workload, 1, Algorithms::kAny), shape.name);
    ASSERT_TRUE(entries.is_ok()) << entries.message();
    EXPECT_EQ(entries->front().workload.key(), shape.workload.key());  // types too
    EXPECT_TRUE(validate(shape.workload).is_ok()) << shape.name;
  }
}

TEST(BenchCpu, LargeWeightsAreConstantsOfOneToFortyMegabytes) {
  int shapes = 0;
  double least = 1e9, most = 0;
  for (const BenchShape& shape : bench_shapes()) {
    if (shape.set != "large_weights") continue;
    ++shapes;
    double megabytes = 0;
    for (const Buffer& arg : shape.workload.compute().args)
      if (arg->role == BufferRole::kConstant)
        megabytes += static_cast<double>(arg->elements() * dtype_bytes(arg->dtype)) / 1e6;
    EXPECT_GE(megabytes, 1) << shape.name;
    EXPECT_LE(megabytes, 40) << shape.name;
    least = std::min(least, megabytes);
    most = std::max(most, megabytes);
  }
  EXPECT_EQ(shapes, 14);
  EXPECT_LT(least, 2);
  EXPECT_GT(most, 30);
}

// Published 1000 ns, 1.00 of the sentinel, each with the interval [1 - half, 1 + half].
PublishedShape published(const std::string& name, double half, int64_t race_id,
                         const std::vector<double>& ratios) {
  PublishedShape s{.shape = {.set = "net", .name = name, .group = "some", .workload = Conv2dWorkload{}}};
  s.published.time_ns = 1000;
  s.published.time_low_ns = 1000 * (1 - half);
  s.published.time_high_ns = 1000 * (1 + half);
  s.published.race_id = race_id;
  s.published.certified = race_id != 0;
  s.published.ratio = 1;
  s.published.ratio_low = 1 - half;
  s.published.ratio_high = 1 + half;
  for (const double ratio : ratios) {
    RaceRow& now = s.again.emplace_back();
    now.ratio = ratio;
    now.time_ns = 1000 * ratio;
    now.finalists.emplace_back();
  }
  return s;
}

TEST(BenchCpu, PublishedTimesThatAreNotCertifiedAreMisses) {
  PublishedReport report{.options = {.times = 2, .seed = 7}};
  report.shapes = {published("narrow", 0.03, 1, {0.99, 1.05}), published("wide", 0.08, 2, {1.05, 0.95}),
                   published("not certified", 0.03, 0, {1, 1})};
  report.shapes.push_back({.shape = report.shapes[0].shape, .error = "never tuned"});
  RaceRow& lost = report.shapes[1].again.emplace_back(report.shapes[1].again[0]);
  lost.turns = 9, lost.discarded = 2, lost.disturbed = 4;  // it cannot be judged
  RaceRow& slow = report.shapes[1].again.emplace_back(report.shapes[1].again[0]);
  slow.ratio = 1.2, slow.time_ns = 1300;  // on a core 8 % slower than then: a clock, or a neighbour
  RaceRow& slower = report.shapes[1].again.emplace_back(report.shapes[1].again[0]);
  slower.ratio = 1.2, slower.time_ns = 1220;  // on the same core within 2 %
  RaceRow& bound = report.shapes[1].again.emplace_back(report.shapes[1].again[0]);
  bound.ratio = 0.9, bound.time_ns = 1000;  // on a core 10 % slower: memory bounds it, not the clock
  RaceRow& followed = report.shapes[1].again.emplace_back(report.shapes[1].again[0]);
  followed.ratio = 1, followed.time_ns = 1100;  // it followed the clock
  const PublishedSummary sum = summarise(report);
  EXPECT_EQ(sum.inside, 5);
  EXPECT_EQ(sum.alone, 4) << "one followed the clock";
  EXPECT_EQ(sum.times, 8);
  EXPECT_EQ(sum.narrow, 1);
  EXPECT_EQ(sum.uncertified, 2);

  const std::string path = std::filesystem::path(::testing::TempDir()) / "bench_cpu_published_test.json";
  ASSERT_TRUE(write_json(report, path).is_ok());
  std::ifstream in(path);
  const auto j = nlohmann::json::parse(in);
  EXPECT_EQ(j["inside"], 5);
  EXPECT_EQ(j["seed"], 7);
  EXPECT_EQ(j["shapes"][0]["again"][0]["verdict"], "inside");
  EXPECT_EQ(j["shapes"][0]["again"][1]["verdict"], "OUTSIDE");
  EXPECT_EQ(j["shapes"][1]["again"][1]["verdict"], "inside");
  EXPECT_EQ(j["shapes"][1]["again"][2]["verdict"], "cannot tell");
  EXPECT_EQ(j["shapes"][1]["again"][3]["verdict"], "cannot tell");
  EXPECT_EQ(j["shapes"][1]["again"][4]["verdict"], "OUTSIDE");
  EXPECT_EQ(j["shapes"][1]["again"][5]["verdict"], "inside");
  EXPECT_EQ(j["shapes"][1]["again"][6]["verdict"], "inside");
  EXPECT_NEAR(j["shapes"][0]["again"][1]["to_published"].get<double>(), 1.05, 1e-9);
  EXPECT_EQ(j["shapes"][2]["again"][0]["verdict"], "not certified");
  EXPECT_EQ(j["shapes"][3]["error"], "never tuned");
}

TEST(BenchCpu, Resnet50HasItsConvolutions) {
  int plain = 0, blocked = 0;
  int64_t flops = 0;
  for (const BenchShape& shape : bench_shapes()) {
    if (shape.set == "resnet50") plain += shape.uses, flops += shape.uses * shape.workload.flops();
    if (shape.set == "resnet50_blocked") blocked += shape.uses;
  }
  EXPECT_EQ(plain, 53);
  EXPECT_EQ(blocked, 53);
  EXPECT_NEAR(static_cast<double>(flops) / 1e9, 8.17, 0.05);  // v1.5 at 224 x 224, without the dense layer
}

}  // namespace
}  // namespace tuner
