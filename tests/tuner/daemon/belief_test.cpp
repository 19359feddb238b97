// What a machine can do at most, and which results cannot be.
#include "tuner/daemon/tables/belief.h"

#include <gmock/gmock.h>

#include "compiler_core/target.h"
#include "templates/workload/workload.h"

namespace tuner {
namespace {

using testing::HasSubstr;

constexpr char kMatmul[] =
    "v1 matmul b=1 m=512 n=512 k=512 ta=0 tb=0 bias=0 act=none dtype=float32 const=none";
constexpr double kMatmulFlops = 2.0 * 512 * 512 * 512;
MachineBound bound(const std::string& target, const std::string& key = kMatmul) {
  return machine_bound({.workload_key = key, .target = target});
}

// Measured peaks of real machines, in GFLOP/s of float32 and one thread, and the target that they measure
// for: below the bound, by at least a third, and not by more than six times.
TEST(MachineBound, IsAboveRealMachinesAndNotByMuch) {
  const struct {
    const char* target;
    double peak_gflops;
  } machines[] = {
      {"llvm -mcpu=znver5 -threads=1", 2 * 16 * 2 * 5.7},          // Ryzen 9 9950X
      {"llvm -mcpu=haswell -threads=1", 2 * 8 * 2 * 6.2},          // AVX2 code on a Core i9-14900KS
      {"llvm -mcpu=sapphirerapids -threads=1", 2 * 16 * 2 * 4.2},  // Xeon w9-3495X
      {"llvm -mcpu=x86-64 -threads=1", 2 * 4 * 2 * 6.2},           //
      {"llvm -mcpu=neoverse-v2 -mtriple=aarch64-linux-gnu -threads=1", 4 * 4 * 2 * 3.4},  // Grace
      {"cuda -arch=sm_90a", 66'900},  // H100 SXM, without tensor cores
      {"cuda -arch=sm_80", 19'500},   // A100
  };
  for (const auto& m : machines) {
    const double least_ns = bound(m.target).least_ns, peak_ns = kMatmulFlops / m.peak_gflops;
    EXPECT_LT(least_ns, peak_ns / 1.3) << m.target;
    EXPECT_GT(least_ns, peak_ns / 20) << m.target;
  }
}

TEST(MachineBound, GrowsWithThreadsAndShrinksWithTheType) {
  EXPECT_DOUBLE_EQ(bound("llvm -mcpu=haswell -threads=4").least_ns,
                   bound("llvm -mcpu=haswell -threads=1").least_ns / 4);
  const std::string int8 = "v1 matmul b=1 m=512 n=512 k=512 ta=0 tb=0 bias=0 act=none dtype=int8 const=none";
  EXPECT_LT(bound("llvm -mcpu=sapphirerapids -threads=1", int8).least_ns,
            bound("llvm -mcpu=sapphirerapids -threads=1").least_ns / 4);
  // AMX on int8: 2048 operations a cycle at 3.5 GHz is no lie.
  EXPECT_LT(bound("llvm -mcpu=sapphirerapids -threads=1", int8).least_ns, kMatmulFlops / (2048 * 3.5));
}

TEST(MachineBound, AnUnknownUnitHasNoVerdictButNoClockRunsAt20GHz) {
  for (const char* target :
       {"llvm -mcpu=generic-rv64 -mtriple=riscv64-linux-gnu -threads=1",
        "llvm -mcpu=apple-m9 -mtriple=aarch64-linux-gnu -threads=1",
        "llvm -mcpu=neoverse-v1 -mtriple=aarch64-linux-gnu -mattr=+sme -threads=1", "something else", ""}) {
    EXPECT_EQ(bound(target).least_ns, 0.05) << target;
    EXPECT_EQ(bound(target).most_gflops, 0) << target;
  }
  const double unlisted = bound("llvm -mcpu=znver9 -threads=1").least_ns;
  EXPECT_EQ(unlisted, bound("llvm -mcpu=znver5 -threads=1").least_ns) << "it may have the widest vectors";
  EXPECT_GT(bound("llvm -mcpu=haswell -threads=1", "not a workload").least_ns, 0.05);
}

Conv2dWorkload conv3x3() {
  return {.batch = 1,
          .in_channels = 64,
          .in_height = 56,
          .in_width = 56,
          .out_channels = 64,
          .kernel_height = 3,
          .kernel_width = 3,
          .padding = {1, 1, 1, 1},
          .groups = 1};
}

// F(6, 3) of Winograd, the largest that is used, does 64 multiplications for 36 outputs of 9 taps each.
TEST(MachineBound, CountsNoMoreThanTheCleverestAlgorithmDoes) {
  const Workload conv(conv3x3());
  const double direct = static_cast<double>(conv.flops());
  EXPECT_LE(conv.least_operations(), direct * 64 / (36 * 9));
  EXPECT_GE(conv.least_operations(), direct / 9 * 0.99);
}

TEST(MachineBound, PaddingIsNoWork) {
  Conv2dWorkload w = conv3x3();
  w.in_height = w.in_width = 1;
  w.padding = {5, 5, 5, 5};
  EXPECT_EQ(w.out_height(), 9);
  EXPECT_EQ(Workload(w).least_operations(), 2.0 * 64 * 64 * 3 * 3) << "of 9 x 9 outputs 3 x 3 see the image";
  w.groups = 64;
  EXPECT_EQ(Workload(w).least_operations(), 2.0 * 64 * 3 * 3);
  w = conv3x3();
  w.dilation = {2, 2};
  w.padding = {2, 2, 2, 2};
  EXPECT_EQ(Workload(w).least_operations(), 2.0 * 64 * 64 * 56 * 56);
}

TEST(MachineBound, BytesOfAStridedWindowAreItsOutputs) {
  Conv2dWorkload w = conv3x3();
  w.kernel_height = w.kernel_width = 1;
  w.padding = {0, 0, 0, 0};
  w.stride = {4, 4};
  EXPECT_EQ(Workload(w).least_bytes(), 4.0 * 64 * 14 * 14);
  const Workload transpose(TransposeWorkload{.rows = 1000, .columns = 1000});
  EXPECT_EQ(transpose.least_bytes(), 2 * 4e6);
  EXPECT_EQ(transpose.least_operations(), 0);
}

// An embedding reads the rows of its tokens, whatever the size of the table.
TEST(MachineBound, ElementsThatArePickedAreNotAllRead) {
  const auto picked = program_from_text("in=float32[30522,768],int64[1,128] Gather(0,1){axis=0}");
  ASSERT_TRUE(picked.is_ok()) << picked.message();
  EXPECT_EQ(picked->least_bytes(), 4.0 * 128 * 768);
  const auto moved = program_from_text("in=float32[10,20,3] Transpose(0){perm=[2;1;0]} Relu(1)");
  ASSERT_TRUE(moved.is_ok()) << moved.message();
  EXPECT_EQ(moved->least_bytes(), 2 * 4.0 * 600);
}

// --- records ---

class BeliefOfRecords : public testing::Test {
 protected:
  BeliefOfRecords() {
    record.run_ns = {2e6, 2.1e6, 2e6};
    record.run_ms = 40;
    record.build_ms = 100;
    known = {.bound = bound("llvm -mcpu=haswell -threads=1"), .repeats = 9, .held_ms = 200};
  }
  std::string why() const { return why_impossible(record, known).value_or(""); }
  MeasureRecord record;
  Circumstances known;
};

TEST_F(BeliefOfRecords, AnOrdinaryOneCanBe) { EXPECT_EQ(why(), ""); }

TEST_F(BeliefOfRecords, OneSampleBelowTheBoundIsEnough) {
  record.run_ns[1] = known.bound.least_ns * 1.01;
  EXPECT_EQ(why(), "");
  record.run_ns[1] = known.bound.least_ns * 0.99;
  EXPECT_THAT(why(), HasSubstr("no machine of this target does one in less than"));
}

TEST_F(BeliefOfRecords, TimeIsHeldAgainstTheClockWithRoomForItsSlack) {
  record.queue_ms = 2'000;
  EXPECT_EQ(why(), "");
  record.queue_ms = 2'100;
  EXPECT_THAT(why(), HasSubstr("its queue, build and run take 2240 ms, but it came 200 ms after its lease"));
  known.held_ms.reset();
  EXPECT_EQ(why(), "") << "leased before a restart: since when, nobody knows";
}

TEST_F(BeliefOfRecords, SamplesFitIntoTheirRun) {
  record.run_ns[0] = 50e6;
  EXPECT_THAT(why(), HasSubstr("in a run of 40 ms"));
  record.run_ms = 0;  // not told
  EXPECT_EQ(why(), "");
  record.run_ns[0] = 5e9;
  EXPECT_THAT(why(), HasSubstr("its samples take"));
}

TEST_F(BeliefOfRecords, MoreSamplesThanAskedForAndWrongAnswersThatAreRight) {
  record.run_ns.assign(10, 2e6);
  EXPECT_THAT(why(), HasSubstr("10 samples where 9 were asked for"));
  record.run_ns.assign(9, 2e6);
  EXPECT_EQ(why(), "");
  record.max_error = 1;
  EXPECT_EQ(why(), "");
  record.max_error = 1.01;
  EXPECT_THAT(why(), HasSubstr("a right answer with an error of 1.01 tolerances"));
}

TEST_F(BeliefOfRecords, PeaksAreThoseOfTheMachineNotOfTheTarget) {
  record.peak_gflops = 360;  // AVX-512, where the code uses AVX2
  EXPECT_EQ(why(), "");
  record.peak_gflops = 1e9;
  EXPECT_THAT(why(), HasSubstr("a peak of 1e+09 GFLOP/s"));
  record.peak_gflops = 0;
  record.read_gbps = 1e9;
  EXPECT_THAT(why(), HasSubstr("a bandwidth of 1e+09 GB/s"));
}

TEST_F(BeliefOfRecords, AFailureHasNoTimeToDoubt) {
  record.outcome = Outcome::kCrashed;
  record.run_ns.clear();
  EXPECT_EQ(why(), "");
  record.run_ms = 1e9;
  EXPECT_THAT(why(), HasSubstr("after its lease"));
}

// --- races ---

class BeliefOfRaces : public testing::Test {
 protected:
  BeliefOfRaces() {
    for (const char* id : {"t1", "t2"}) {
      given.push_back({.id = id});
      race.finalists.push_back(
          {.trial_id = id, .samples_ns = {2e6, 2.2e6}, .sentinel_ns = {1, 1}, .process = {0, 1}});
    }
    race.winner_trial_id = "t1";
    race.time_ns = race.time_low_ns = 2.1e6;
    race.time_high_ns = 2.2e6;
    known = {.bound = bound("llvm -mcpu=haswell -threads=1"), .held_ms = 1'000};
  }
  std::string why() const { return why_impossible(race, given, known).value_or(""); }
  RaceRow race;
  std::vector<TrialRow> given;
  Circumstances known;
};

TEST_F(BeliefOfRaces, AnOrdinaryOneCanBe) { EXPECT_EQ(why(), ""); }

TEST_F(BeliefOfRaces, FinalistsAreThoseOfTheLease) {
  race.finalists[1].trial_id = "t9";
  EXPECT_EQ(why(), "trial t9 was not given to this race");
}

TEST_F(BeliefOfRaces, TheWinnersTimeComesFromItsSamples) {
  race.time_ns = race.time_low_ns = 1.9e6;
  EXPECT_THAT(why(), HasSubstr("its winner's samples are"));
  race.time_ns = 2.3e6;
  EXPECT_THAT(why(), HasSubstr("its winner's samples are"));
}

TEST_F(BeliefOfRaces, AnIntervalHoldsItsTime) {
  std::swap(race.time_low_ns, race.time_high_ns);
  EXPECT_THAT(why(), HasSubstr("an interval of"));
}

TEST_F(BeliefOfRaces, NoSampleAndNoOtherTimeIsBeyondTheMachine) {
  race.finalists[1].samples_ns[0] = 3;
  EXPECT_THAT(why(), HasSubstr("no machine"));
  race.finalists[1].samples_ns[0] = 2e6;
  race.other_time_ns = 3;
  EXPECT_THAT(why(), HasSubstr("no machine"));
  race.other_time_ns = 0;
  race.default_time_ns = 3;
  EXPECT_THAT(why(), HasSubstr("no machine"));
}

TEST_F(BeliefOfRaces, ItsSamplesFitIntoTheTimeItWasHeld) {
  race.finalists[1].samples_ns[0] = 1e13;
  EXPECT_THAT(why(), HasSubstr("its samples take"));
}

TEST(BeliefOfOffers, AWorkersPeakIsThatOfSomeCpu) {
  const std::vector<std::string> targets = {"llvm -mcpu=x86-64 -threads=1", "llvm -mcpu=haswell -threads=1"};
  EXPECT_FALSE(why_impossible(0, 0, targets)) << "not measured";
  EXPECT_FALSE(why_impossible(360, 700, targets));
  EXPECT_THAT(*why_impossible(1e9, 0, targets), HasSubstr("a peak of 1e+09 GFLOP/s"));
  EXPECT_THAT(*why_impossible(0, 1e9, targets), HasSubstr("a bandwidth of 1e+09 GB/s"));
  EXPECT_TRUE(why_impossible(1e9, 0, {"some new kind of device"})) << "nor is it that of any machine";
}

}  // namespace
}  // namespace tuner
