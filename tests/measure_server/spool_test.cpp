// The spool: what was appended is there after a restart, whatever happened to the file's end or its middle.
#include "measure_server/worker/spool.h"
#include "tests/random_seed.h"
#include "tests/support/refused_call.h"
#include "tests/support/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

namespace tuner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

v1::MeasureRecord record(const std::string& trial, int attempt = 1) {
  v1::MeasureRecord r;
  r.set_trial_id(trial);
  r.set_attempt(attempt);
  r.set_outcome(v1::OK);
  r.add_run_ns(1234.5);
  r.mutable_environment()->set_worker_incarnation("first life");
  return r;
}

v1::RaceResult race(const std::string& id) {
  v1::RaceResult r;
  r.set_race_id(id);
  r.set_attempt(1);
  r.set_winner("t1");
  r.set_time_ns(1234.5);
  r.mutable_environment()->set_worker_incarnation("first life");
  return r;
}

class SpoolTest : public testing::Test {
 protected:
  std::unique_ptr<Spool> open() {
    Result<std::unique_ptr<Spool>> spool = Spool::open(path_);
    EXPECT_TRUE(spool.is_ok()) << spool.message();
    return spool.is_ok() ? *std::move(spool) : nullptr;
  }
  // Trials of the records found by a worker that starts now.
  std::vector<std::string> trials_found() {
    std::vector<std::string> trials;
    const auto spool = open();
    for (const v1::MeasureRecord& r : spool->records()) trials.push_back(r.trial_id());
    return trials;
  }
  std::vector<std::string> races_found() {
    std::vector<std::string> ids;
    const auto spool = open();
    for (const v1::RaceResult& r : spool->races()) ids.push_back(r.race_id());
    return ids;
  }
  void write(const std::vector<std::string>& trials) {
    const auto spool = open();
    for (const std::string& trial : trials) ASSERT_TRUE(spool->append(record(trial)).is_ok());
  }
  std::string bytes() const {
    std::ostringstream text;
    text << std::ifstream(path_, std::ios::binary).rdbuf();
    return text.str();
  }
  void put(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }

  const TemporaryFolder temporary_;
  const std::string path_ = temporary_.file("results.spool");
};

TEST_F(SpoolTest, ARestartFindsWhatWasAppendedInOrderAndUnchanged) {
  write({"a", "b", "c"});
  const auto spool = open();
  ASSERT_EQ(spool->records().size(), 3u);
  EXPECT_EQ(spool->records()[1].SerializeAsString(), record("b").SerializeAsString());
  EXPECT_THAT(spool->warning(), IsEmpty());
}

TEST_F(SpoolTest, ATailTornAtAnyByteIsCutAndAppendingGoesOnBehindTheRest) {
  write({"a", "b"});
  const std::string whole = bytes();
  const size_t second = whole.size() / 2;
  for (size_t kept = second + 1; kept < whole.size(); ++kept) {
    put(whole.substr(0, kept));
    {
      const auto spool = open();
      ASSERT_EQ(spool->records().size(), 1u) << "torn after " << kept << " bytes";
      EXPECT_THAT(spool->warning(), HasSubstr(str(kept - second, " bytes of a torn one")));
      ASSERT_TRUE(spool->append(record("c")).is_ok());
    }
    ASSERT_THAT(trials_found(), ElementsAre("a", "c")) << "torn after " << kept << " bytes";
  }
}

TEST_F(SpoolTest, ADamagedRecordIsLeftOutAndTheOthersAreKept) {
  write({"a", "b", "c"});
  const std::string whole = bytes();
  const size_t frame = whole.size() / 3;
  for (size_t i = frame + 8; i < 2 * frame; ++i) {  // any byte of b's record
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    put(damaged);
    ASSERT_THAT(trials_found(), ElementsAre("a", "c")) << "byte " << i;
    EXPECT_THAT(open()->warning(), HasSubstr("left out 1 damaged records"));
  }
}

TEST_F(SpoolTest, ADamagedLengthEndsTheFileAndNeverReadsPastIt) {
  write({"a", "b"});
  std::string damaged = bytes();
  damaged[damaged.size() / 2 + 2] = '\x7f';  // length of b: eight megabytes
  put(damaged);
  EXPECT_THAT(trials_found(), ElementsAre("a"));
}

TEST_F(SpoolTest, RacesAndTrialsAreKeptSideBySide) {
  {
    const auto spool = open();
    ASSERT_TRUE(spool->append(record("a")).is_ok());
    ASSERT_TRUE(spool->append(race("r1")).is_ok());
    ASSERT_TRUE(spool->append(record("b")).is_ok());
    ASSERT_TRUE(spool->append(race("r2")).is_ok());
  }
  EXPECT_THAT(trials_found(), ElementsAre("a", "b"));
  EXPECT_THAT(races_found(), ElementsAre("r1", "r2"));
  {
    const auto spool = open();
    EXPECT_EQ(spool->races()[0].SerializeAsString(), race("r1").SerializeAsString());
    EXPECT_THAT(spool->warning(), IsEmpty());
    ASSERT_TRUE(spool->keep_only({record("b")}, {race("r2")}).is_ok());
  }
  EXPECT_THAT(trials_found(), ElementsAre("b"));
  EXPECT_THAT(races_found(), ElementsAre("r2"));
}

// Length, checksum and bytes of a MeasureRecord, as files were before they had races.
TEST_F(SpoolTest, AFileOfBeforeThereWereRacesIsRead) {
  const std::string old(
      "\x07\x00\x00\x00\x80\x98\xa5\xc7"
      "\x0a\x03old\x10\x02",
      15);
  put(old);
  const auto spool = open();
  ASSERT_EQ(spool->records().size(), 1u) << spool->warning();
  EXPECT_EQ(spool->records()[0].trial_id(), "old");
  EXPECT_EQ(spool->records()[0].attempt(), 2);
}

TEST_F(SpoolTest, AKindThatIsDamagedOrUnknownIsLeftOutAndTheRestIsKept) {
  {
    const auto spool = open();
    ASSERT_TRUE(spool->append(race("r1")).is_ok());
    ASSERT_TRUE(spool->append(record("a")).is_ok());
  }
  const std::string whole = bytes();
  for (int kind = 0; kind < 256; ++kind) {
    if (kind == 1) continue;
    std::string damaged = whole;
    damaged[3] = static_cast<char>(kind);
    put(damaged);
    ASSERT_THAT(trials_found(), ElementsAre("a")) << "kind " << kind;
    ASSERT_THAT(races_found(), IsEmpty()) << "kind " << kind;
  }
}

TEST_F(SpoolTest, WhateverIsInTheFileOpensAndTakesResults) {
  {
    const auto spool = open();
    for (const char* id : {"a", "b", "c"}) {
      ASSERT_TRUE(spool->append(record(id)).is_ok());
      ASSERT_TRUE(spool->append(race(id)).is_ok());
    }
  }
  const std::string whole = bytes();
  for (const uint32_t seed : Seeds(/*fixed=*/0, /*rounds=*/300)) {
    std::mt19937_64 rng(seed);
    std::string damaged = whole.substr(0, rng() % 4 == 0 ? rng() % whole.size() : whole.size());
    for (size_t edits = rng() % 6; edits > 0 && !damaged.empty(); --edits)
      damaged[rng() % damaged.size()] = static_cast<char>(rng());
    put(damaged);
    {
      const auto spool = open();
      ASSERT_NE(spool, nullptr);
      for (const v1::MeasureRecord& r : spool->records())
        ASSERT_EQ(r.SerializeAsString(), record(r.trial_id()).SerializeAsString()) << "a result nobody made";
      for (const v1::RaceResult& r : spool->races())
        ASSERT_EQ(r.SerializeAsString(), race(r.race_id()).SerializeAsString()) << "a result nobody made";
      ASSERT_TRUE(spool->append(race("next")).is_ok());
    }
    const std::vector<std::string> races = races_found();
    ASSERT_FALSE(races.empty());
    ASSERT_EQ(races.back(), "next");
  }
}

// What a file system may leave behind of a write that a power loss ended.
TEST_F(SpoolTest, ATailOfZerosIsCut) {
  write({"a"});
  put(bytes() + std::string(100, '\0'));
  EXPECT_THAT(trials_found(), ElementsAre("a"));
  write({"b"});
  EXPECT_THAT(trials_found(), ElementsAre("a", "b"));
}

TEST_F(SpoolTest, AFileOfSomethingElseHoldsNoRecords) {
  put(std::string(1000, 'x'));
  EXPECT_THAT(trials_found(), IsEmpty());
}

TEST_F(SpoolTest, WhatIsAcknowledgedIsDroppedAndWhatIsOwedStays) {
  {
    const auto spool = open();
    for (const char* trial : {"a", "b", "c"}) ASSERT_TRUE(spool->append(record(trial)).is_ok());
    ASSERT_TRUE(spool->keep_only({record("b")}).is_ok());
    ASSERT_TRUE(spool->append(record("d")).is_ok());
  }
  EXPECT_THAT(trials_found(), ElementsAre("b", "d"));
  {
    const auto spool = open();
    ASSERT_TRUE(spool->keep_only({}).is_ok());
    EXPECT_EQ(spool->bytes(), 0);
    ASSERT_TRUE(spool->append(record("e")).is_ok());
  }
  EXPECT_THAT(trials_found(), ElementsAre("e"));
}

TEST_F(SpoolTest, ASecondWorkerIsRefusedAlsoAfterTheFileWasReplaced) {
  const auto first = open();
  ASSERT_TRUE(first->append(record("a")).is_ok());
  for (int replaced = 0; replaced < 2; ++replaced) {
    const Result<std::unique_ptr<Spool>> second = Spool::open(path_);
    ASSERT_FALSE(second.is_ok());
    EXPECT_EQ(second.status().code(), StatusCode::kAborted);
    EXPECT_THAT(second.message(), HasSubstr("--work-dir"));
    ASSERT_TRUE(first->keep_only({record("a")}).is_ok());
  }
}

TEST_F(SpoolTest, AFileSystemWithoutLocksIsNoSecondWorker) {
  EXPECT_TRUE(holds_where_refused(SYS_flock, ENOLCK, [&] {
    const auto spool = Spool::open(path_);
    return spool.status().code() == StatusCode::kInvalidArgument &&
           spool.message() ==
               "spool " + path_ +
                   ": cannot be locked on this file system: No locks available; choose another "
                   "folder with --work-dir";
  }));
}

TEST_F(SpoolTest, AFileThatCannotGrowIsAnErrorAndTheFileStaysReadable) {
  const auto spool = open();
  ASSERT_TRUE(spool->append(record("a")).is_ok());
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit little{static_cast<rlim_t>(spool->bytes() + 10), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &little), 0);
  const Status status = spool->append(record("b"));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(status.code(), StatusCode::kFailed);
  EXPECT_THAT(status.message(), HasSubstr("free some disk space"));
  ASSERT_TRUE(spool->append(record("c")).is_ok());
  ASSERT_TRUE(spool->keep_only({record("a"), record("c")}).is_ok());
  EXPECT_EQ(bytes().size(), static_cast<size_t>(spool->bytes()));
}

}  // namespace
}  // namespace tuner
