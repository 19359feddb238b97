// Workers: sessions and lives, who is here, and which target is measured where.
#include "tuner/daemon/tables/workers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler_core/codegen/cpu_features.h"
#include "compiler_core/runtime/cuda_fit.h"
#include "tuner/daemon/tables/compiler_names.h"

namespace tuner {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;
using Call = Workers::Call;
using Offer = Workers::Offer;

constexpr int64_t kSilentMs = 15'000;
constexpr WorkKind kTrial = WorkKind::kTrial, kRace = WorkKind::kRace;
const std::string kHaswell = "llvm -mcpu=haswell -threads=1", kSkylake = "llvm -mcpu=skylake -threads=1",
                  kGpu = "cuda -arch=sm_80";

Offer offer(const std::string& id, const std::string& incarnation = "1",
            const std::string& target = kHaswell) {
  return {.life = {id, incarnation}, .host = "host of " + id, .targets = {target}, .max_threads = 4};
}

class WorkersTest : public testing::Test {
 protected:
  // The lives that have ended by it. Another process may have an id at once, unless a test says otherwise.
  std::vector<WorkerLife> enter(const std::string& session, Offer offer, int64_t at_ms) {
    const Result<std::vector<WorkerLife>> ended = workers.enter(session, std::move(offer), at_ms);
    EXPECT_TRUE(ended) << ended.message();
    return ended ? *ended : std::vector<WorkerLife>{};
  }
  Workers workers{kSilentMs, /*take_over_ms=*/0};
  int64_t now = 1'000;
};

TEST_F(WorkersTest, ALaterSessionOfTheSameLifeTakesTheWorkersPlaceAndNothingIsLost) {
  EXPECT_THAT(enter("s1", offer("w1"), now), IsEmpty());
  workers.count_trial("s1");
  EXPECT_THAT(enter("s2", offer("w1"), now), IsEmpty()) << "the same life: it holds what it held";
  EXPECT_EQ(workers.begin_sync("s1", 4, now), std::nullopt) << "unknown: it is to register again";
  EXPECT_EQ(workers.life("s1"), nullptr);
  ASSERT_NE(workers.life("s2"), nullptr);
  EXPECT_EQ(workers.life("s2")->worker_id, "w1");
  const std::vector<Workers::Entry> list = workers.list(now);
  ASSERT_THAT(list, SizeIs(1));
  EXPECT_EQ(list[0].trials_done, 1) << "counted over sessions";
}

TEST_F(WorkersTest, ANewLifeOfAWorkerTellsWhichOneHasEnded) {
  enter("s1", offer("w1", "1"), now);
  enter("s2", offer("w2", "1"), now);
  EXPECT_THAT(enter("s3", offer("w1", "2"), now), ElementsAre(WorkerLife{"w1", "1"}));
  EXPECT_NE(workers.life("s2"), nullptr) << "another worker is not touched";
}

TEST_F(WorkersTest, TwoProcessesWithTheSameIdDoNotEvictEachOther) {
  Workers shared(kSilentMs, /*take_over_ms=*/5'000);
  ASSERT_TRUE(shared.enter("s1", offer("w1", "1"), now));
  const auto call = shared.begin_sync("s1", 4, now);
  for (int i = 0; i < 20; ++i) {
    now += 1'000;
    EXPECT_EQ(shared.check("s1", *call, now), Call::kCurrent);  // it waits, and is here
    const auto refused = shared.enter("s2", offer("w1", "2"), now);
    EXPECT_EQ(refused.status().code(), StatusCode::kAborted);
    EXPECT_EQ(
        refused.message(),
        "worker w1 is here already, from host of w1: give this one another id (--worker-id), wait until that "
        "one is "
        "gone, or give hosts that share credentials those of a fleet (tuner admin worker NAME --fleet)");
  }
  EXPECT_NE(shared.life("s1"), nullptr);
  EXPECT_TRUE(shared.enter("s3", offer("w1", "1"), now)) << "the same life registers anew at any time";
}

TEST_F(WorkersTest, ARestartedWorkerTakesOverOnceTheConnectionHasClosedOrWasSilentForFiveSeconds) {
  Workers shared(kSilentMs, /*take_over_ms=*/5'000);
  ASSERT_TRUE(shared.enter("s1", offer("w1", "1"), now));
  EXPECT_FALSE(shared.enter("s2", offer("w1", "2"), now + 4'999));
  shared.connection_closed("s1");
  EXPECT_THAT(shared.enter("s2", offer("w1", "2"), now).value(), ElementsAre(WorkerLife{"w1", "1"}));
  EXPECT_FALSE(shared.enter("s3", offer("w1", "3"), now + 4'999));
  EXPECT_THAT(shared.enter("s3", offer("w1", "3"), now + 5'000).value(), ElementsAre(WorkerLife{"w1", "2"}));
}

TEST_F(WorkersTest, AWorkerThatKeepsFailingGetsNothingForAWhileThenOneTrial) {
  enter("s1", offer("w1"), now);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(workers.count_failure("s1", now), 0);
  EXPECT_GT(workers.allowance("s1", now), 1'000);
  EXPECT_EQ(workers.count_failure("s1", now), 30'000);
  EXPECT_EQ(workers.allowance("s1", now + 29'999), 0);
  now += 30'000;
  EXPECT_EQ(workers.allowance("s1", now), 1) << "one, to try";
  EXPECT_EQ(workers.list(now).at(0).paused_ms, 0);
  EXPECT_EQ(workers.count_failure("s1", now), 60'000) << "it failed, too";
  EXPECT_EQ(workers.list(now + 1'000).at(0).paused_ms, 59'000);
  for (int i = 0; i < 10; ++i) EXPECT_LE(workers.count_failure("s1", now), 600'000);
  now += 600'000;
  EXPECT_EQ(workers.allowance("s1", now), 1);
  workers.count_trial("s1");
  EXPECT_GT(workers.allowance("s1", now), 1'000) << "it measures again";
}

TEST_F(WorkersTest, AnUnfitWorkerGetsNothingAndIsNoOtherWorkerToTurnTo) {
  enter("s1", offer("w1"), now);
  enter("s2", offer("w2"), now);
  EXPECT_TRUE(workers.others_serve({kTrial, kHaswell}, {"w1"}, now));
  EXPECT_FALSE(workers.others_serve({kTrial, kHaswell}, {"w1", "w2"}, now));
  EXPECT_FALSE(workers.others_serve({kTrial, kGpu}, {"w1"}, now));
  EXPECT_TRUE(workers.set_unfit("s2", "the disk is full"));
  EXPECT_FALSE(workers.set_unfit("s2", "the disk is full")) << "told once";
  EXPECT_EQ(workers.allowance("s2", now), 0);
  EXPECT_FALSE(workers.others_serve({kTrial, kHaswell}, {"w1"}, now));
  EXPECT_EQ(workers.list(now).at(1).unfit, "the disk is full");
  EXPECT_TRUE(workers.set_unfit("s2", ""));
  EXPECT_GT(workers.allowance("s2", now), 1'000);
}

TEST_F(WorkersTest, TheNewestSyncOfASessionSpeaksForItsWorker) {
  enter("s1", offer("w1"), now);
  const auto older = workers.begin_sync("s1", 4, now);
  ASSERT_TRUE(older);
  EXPECT_EQ(workers.check("s1", *older, now), Call::kCurrent);
  const auto newer = workers.begin_sync("s1", 4, now);
  ASSERT_TRUE(newer);
  EXPECT_EQ(workers.check("s1", *older, now), Call::kOvertaken);
  EXPECT_EQ(workers.check("s1", *newer, now), Call::kCurrent);
  enter("s2", offer("w1"), now);
  EXPECT_EQ(workers.check("s1", *newer, now), Call::kUnknown);
}

TEST_F(WorkersTest, WhoIsSilentForTooLongIsNotPlannedWithUntilItIsBack) {
  Offer racer = offer("w1");
  racer.races = true;
  enter("s1", racer, now);
  const auto call = workers.begin_sync("s1", 6, now);
  ASSERT_TRUE(call);
  now += kSilentMs;
  EXPECT_EQ(workers.capacity(now), 6);
  EXPECT_EQ(workers.serving({kRace, kHaswell}, now), 1);
  now += 1;
  EXPECT_EQ(workers.capacity(now), 0);
  EXPECT_EQ(workers.serving({kRace, kHaswell}, now), 0);
  EXPECT_TRUE(workers.served({kTrial, kHaswell})) << "it is away, not unknown";
  EXPECT_EQ(workers.list(now).at(0).silent_ms, kSilentMs + 1);
  EXPECT_FALSE(workers.list(now).at(0).here);
  EXPECT_EQ(workers.check("s1", *call, now), Call::kCurrent) << "a call that waits is a sign of life";
  EXPECT_EQ(workers.capacity(now), 6);
}

TEST_F(WorkersTest, AnOvertakenCallIsNoSignOfLife) {
  enter("s1", offer("w1"), now);
  const auto older = workers.begin_sync("s1", 4, now);
  workers.begin_sync("s1", 4, now);
  now += kSilentMs + 1;
  EXPECT_EQ(workers.check("s1", *older, now), Call::kOvertaken);
  EXPECT_EQ(workers.capacity(now), 0);
}

TEST_F(WorkersTest, AWorkerSilentForTenMinutesLeavesTheListWhenTheNextOneComes) {
  enter("s1", offer("w1"), now);
  enter("s2", offer("w2"), now + 600'000);
  EXPECT_NE(workers.life("s1"), nullptr);
  enter("s3", offer("w3"), now + 600'001);
  EXPECT_EQ(workers.life("s1"), nullptr);
  EXPECT_NE(workers.life("s2"), nullptr);
}

TEST_F(WorkersTest, AWorkerThatLeavesIsGoneAtOnce) {
  enter("s1", offer("w1"), now);
  enter("s2", offer("w2"), now);
  workers.leave("s1");
  EXPECT_EQ(workers.life("s1"), nullptr);
  ASSERT_EQ(workers.list(now).size(), 1u);
  EXPECT_EQ(workers.list(now)[0].offer.life.worker_id, "w2");
  workers.leave("s1");  // nobody
  enter("s3", offer("w1"), now);
  EXPECT_NE(workers.life("s3"), nullptr) << "its id is free";
}

TEST_F(WorkersTest, ARegistrarHasANumberOfWorkersAndThoseThatAreAwayLeaveFirst) {
  const auto his = [&](const std::string& id, const std::string& registrar) {
    Offer o = offer(id);
    o.registrar = {registrar, 2};
    return workers.enter("session of " + id, std::move(o), now).status();
  };
  ASSERT_TRUE(his("w1", "gpu hosts"));
  ASSERT_TRUE(his("w2", "gpu hosts"));
  EXPECT_EQ(
      his("w3", "gpu hosts").message(),
      "gpu hosts has 2 workers here, expected at most 2: end some, or give each host credentials of its own "
      "(tuner admin worker)");
  EXPECT_TRUE(his("w2", "gpu hosts")) << "one that is known comes back";
  EXPECT_TRUE(his("w3", "boards")) << "another registrar has its own";
  now += kSilentMs + 1;
  EXPECT_TRUE(his("w4", "gpu hosts")) << "those that are away make room";
  EXPECT_EQ(workers.life("session of w1"), nullptr);
  EXPECT_NE(workers.life("session of w3"), nullptr) << "of another registrar: it stays";
}

TEST_F(WorkersTest, CapacityIsThatOfAllWhoAreHereAsTheyLastSaid) {
  enter("s1", offer("w1"), now);
  enter("s2", offer("w2"), now);
  EXPECT_EQ(workers.capacity(now), 0) << "none has said";
  workers.begin_sync("s1", 4, now);
  workers.begin_sync("s2", 3, now);
  workers.begin_sync("s1", 2, now);
  EXPECT_EQ(workers.capacity(now), 5);
}

TEST_F(WorkersTest, ACpuServesItsTargetWithAsManyThreadsAsItHas) {
  enter("s1", offer("w1"), now);
  EXPECT_TRUE(workers.serves("s1", {kTrial, kHaswell}));
  EXPECT_TRUE(workers.serves("s1", {kTrial, "llvm -mcpu=haswell -threads=4"}));
  EXPECT_FALSE(workers.serves("s1", {kTrial, "llvm -mcpu=haswell -threads=5"}));
  EXPECT_FALSE(workers.serves("s1", {kTrial, kGpu}));
  EXPECT_FALSE(workers.serves("s9", {kTrial, kHaswell})) << "unknown session";
}

TEST_F(WorkersTest, CodeOfAnotherCpuIsServedByFeaturesNotByName) {
  enter("named", offer("w1", "1", kSkylake), now);
  EXPECT_FALSE(workers.serves("named", {kTrial, kHaswell})) << "it does not say what its CPU can do";
  Offer skylake = offer("w2", "1", kSkylake);
  const CpuFeatures features = needed_features(parse_target(kSkylake).value()).value();
  skylake.features.assign(features.begin(), features.end());
  enter("older", skylake, now);
  EXPECT_TRUE(workers.serves("older", {kTrial, kHaswell})) << "a newer CPU runs an older one's code";
  EXPECT_FALSE(workers.serves("older", {kTrial, "llvm -mcpu=skylake-avx512 -threads=1"}));
  EXPECT_FALSE(workers.serves("older", {kTrial, "llvm -mcpu=haswell -threads=5"}));
}

TEST_F(WorkersTest, AWorkerUnderAnEmulatorServesNoBoardsTrials) {
  const std::string board = "llvm -mcpu=cortex-a72 -mtriple=aarch64-linux-gnu -threads=1",
                    under_qemu = board + " -emulated";
  enter("qemu", offer("w1", "1", under_qemu), now);
  EXPECT_TRUE(workers.serves("qemu", {kTrial, under_qemu}));
  EXPECT_FALSE(workers.serves("qemu", {kTrial, board}));
  enter("board", offer("w2", "1", board), now);
  EXPECT_TRUE(workers.serves("board", {kTrial, board}));
  EXPECT_FALSE(workers.serves("board", {kTrial, under_qemu}));
}

TEST_F(WorkersTest, RacesGoToThoseThatCanRaceAndServeTheTarget) {
  Offer racer = offer("w2");
  racer.races = true;
  enter("s1", offer("w1"), now);
  EXPECT_FALSE(workers.serves("s1", {kRace, kHaswell}));
  EXPECT_FALSE(workers.served({kRace, kHaswell}));
  enter("s2", racer, now);
  EXPECT_TRUE(workers.serves("s2", {kRace, kHaswell}));
  EXPECT_TRUE(workers.served({kRace, kHaswell}));
  EXPECT_FALSE(workers.serves("s2", {kRace, kGpu}));
  EXPECT_EQ(workers.serving({kRace, kHaswell}, now), 1);
  EXPECT_EQ(workers.serving({kRace, kGpu}, now), 0);
}

TEST_F(WorkersTest, AWorkerServesTheTemplatesItSaysInTheirVersionsAndOneThatSaysNothingAll) {
  Offer says = offer("w1");
  says.templates = {{"a", 1}, {"b", 3}};
  enter("says", says, now);
  enter("mute", offer("w2"), now);
  const Needs has{kTrial, kHaswell, {{"a", 1}}}, other{kTrial, kHaswell, {{"a", 1}, {"b", 4}}},
      none{kTrial, kHaswell, {{"c", 1}}};
  EXPECT_TRUE(workers.serves("says", has));
  EXPECT_FALSE(workers.serves("says", other)) << "all of them are needed";
  EXPECT_FALSE(workers.serves("says", none));
  for (const Needs& needs : {has, other, none}) EXPECT_TRUE(workers.serves("mute", needs));
  EXPECT_EQ(workers.serving(other, now), 1);
  EXPECT_TRUE(workers.some_serve(other, now));
  EXPECT_FALSE(workers.others_serve(other, {"w2"}, now)) << "what failed on w2 cannot be left to w1";
  EXPECT_THAT(workers.lacking(other, now), ElementsAre(Pair("w1", ElementsAre(Lack{{"b", 4}, 3}))));
  EXPECT_THAT(workers.lacking(none, now), ElementsAre(Pair("w1", ElementsAre(Lack{{"c", 1}, 0}))));
  EXPECT_THAT(workers.lacking({kTrial, kGpu, {{"c", 1}}}, now), IsEmpty()) << "it measures no such target";
}

TEST_F(WorkersTest, WhatAWorkerFoundOutThatItLacksHoldsForThatVersionAlone) {
  enter("s1", offer("w1"), now);
  const int64_t before = workers.news();
  EXPECT_TRUE(workers.note_lacks("s1", {"a", 2}, 1));
  EXPECT_FALSE(workers.note_lacks("s1", {"a", 2}, 1)) << "known";
  EXPECT_FALSE(workers.note_lacks("s1", {"a", 1}, 1)) << "it has that";
  EXPECT_FALSE(workers.note_lacks("s9", {"a", 2}, 1)) << "unknown session";
  EXPECT_EQ(workers.news(), before + 1);
  EXPECT_FALSE(workers.serves("s1", {kTrial, kHaswell, {{"a", 2}}}));
  EXPECT_TRUE(workers.serves("s1", {kTrial, kHaswell, {{"a", 1}}}));
}

TEST_F(WorkersTest, AWorkerOfAnotherReleaseDoesNotStandInForOneThatIsNotBelieved) {
  const auto spared = [&](int version) {
    Workers table(kSilentMs, /*take_over_ms=*/0, {{"a", 2}});
    Offer suspect = offer("w1"), other = offer("w2");
    suspect.templates = {{"a", 2}};
    other.templates = {{"a", version}};
    EXPECT_TRUE(table.enter("s1", suspect, now).is_ok());
    EXPECT_TRUE(table.enter("s2", other, now).is_ok());
    for (int i = 0; i < 3; ++i) table.count_quarantined("s1", "too fast", now);
    const int64_t later = now + 60'000;
    for (const char* session : {"s1", "s2"}) EXPECT_TRUE(table.begin_sync(session, 4, later));
    return table.allowance("s1", later) == 0;
  };
  EXPECT_TRUE(spared(2)) << "ten minutes";
  EXPECT_FALSE(spared(1)) << "the only one of its kind waits 30 s";
}

TEST_F(WorkersTest, CpusOnOfferHaveTheMostThreadsOfAnyWorker) {
  Offer big = offer("w2");
  big.max_threads = 64;
  enter("s1", offer("w1"), now);
  enter("s2", big, now);
  enter("s3", offer("w3", "1", kGpu), now);
  EXPECT_THAT(workers.cpus(now), ElementsAre(Pair(kHaswell, 64)));
}

TEST_F(WorkersTest, CpusOfThoseWhoHaveLeftAreOnOfferOnlyWhereNoneIsHere) {
  enter("s1", offer("w1"), now);
  Offer other = offer("w2");
  other.targets = {"llvm -mcpu=znver5"};
  const int64_t later = now + 10 * kSilentMs;
  enter("s2", other, later);
  EXPECT_THAT(workers.cpus(later), ElementsAre(Pair("llvm -mcpu=znver5", 4)));
  EXPECT_THAT(workers.cpus(later + 10 * kSilentMs), SizeIs(2)) << "a job of theirs waits until they are back";
}

// A driver refuses what a toolkit of a newer major version has compiled.
TEST_F(WorkersTest, AGpuRunnerMeasuresWhatABuilderOfItsDriversTimeBuilds) {
  Offer runner = offer("r1", "1", kGpu);
  runner.kind = WorkerKind::kRunner;
  runner.cuda_driver = 12'040;
  Offer newer = offer("b1");
  newer.targets.clear();
  newer.kind = WorkerKind::kBuilder;
  newer.compilers = {{"llvm", "llvm 22"}, {"cuda", "nvrtc 13.0 cuda codegen 1"}};
  Offer older = newer;
  older.life.worker_id = "b2";
  older.compilers["cuda"] = "nvrtc 12.8 cuda codegen 1";
  const Needs needs{.kind = kTrial, .target = kGpu, .templates = {{"t", 1}}};
  enter("r", runner, now);
  enter("b1", newer, now);
  EXPECT_FALSE(workers.serves("r", needs));
  EXPECT_THAT(workers.waiting_for_builder(needs, now), ElementsAre("r1"));
  const CompilerNeed need{"cuda", {"t", 1}, newest_toolkit_for(kGpu, workers.cuda_driver("r1"))};
  EXPECT_FALSE(workers.builds("b1", need));
  EXPECT_TRUE(workers.builds("b1", {"cuda", {"t", 1}})) << "of a GPU whose driver is newer";
  enter("b2", older, now);
  EXPECT_TRUE(workers.serves("r", needs));
  EXPECT_TRUE(workers.builds("b2", need));
  EXPECT_THAT(workers.waiting_for_builder(needs, now), IsEmpty());
  EXPECT_EQ(newest_toolkit_for(kHaswell, 12'040), 0) << "CPUs have no driver";
  EXPECT_TRUE(workers.builds("b1", {"llvm", {"t", 1}, newest_toolkit_for(kHaswell, 12'040)}));
}

// The same of an nvcc, whose name stands beside that of the reference's compiler.
TEST_F(WorkersTest, AKernelForAnNvccIsBuiltWhereItsDriverAndBothCompilersAre) {
  Offer builder = offer("b1");
  builder.targets.clear();
  builder.kind = WorkerKind::kBuilder;
  builder.compilers = {{"cuda", "nvrtc 12.8 cuda codegen 1"}};
  builder.source_compilers = {{"nvcc", "source:nvcc Cuda compilation tools, release 13.0, V13.0.88"},
                              {"cc", "source:cc 12"}};
  enter("b1", builder, now);
  const CompilerNeed need{"cuda", {"t", 1}, 13, "nvcc,cc"};
  EXPECT_TRUE(workers.builds("b1", need));
  EXPECT_FALSE(workers.builds("b1", {"cuda", {"t", 1}, 12, "nvcc,cc"})) << "its nvcc is too new";
  EXPECT_TRUE(workers.builds("b1", {"cuda", {"t", 1}, 12, "cc"}));
  EXPECT_FALSE(workers.builds("b1", {"cuda", {"t", 1}, 13, "nvcc,clang"}));
  // What was made before is of a compiler that is here: the kernel's, by whichever of the two.
  for (const char* made : {"nvrtc 12.8 cuda codegen 1", "source:cc 12",
                           "source:nvcc Cuda compilation tools, release 13.0, V13.0.88"})
    EXPECT_TRUE(workers.has_toolchain(need, made, now)) << made;
  for (const char* made : {"nvrtc 12.9 cuda codegen 1", "source:nvcc of before", "source:cc"})
    EXPECT_FALSE(workers.has_toolchain(need, made, now)) << made;
  EXPECT_FALSE(workers.has_toolchain({"cuda", {"t", 1}, 13, "nvcc-9"}, "source:cc 12", now));
}

TEST(CompilerText, NamesAllOfThem) {
  EXPECT_EQ(compiler_text("clang"), "the compiler clang");
  EXPECT_EQ(compiler_text("nvcc,cc"), "the compilers nvcc, cc");
}

}  // namespace
}  // namespace tuner
