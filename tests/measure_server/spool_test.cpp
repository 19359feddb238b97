// The spool: what was appended is there after a restart, whatever happened to the file's end or its middle.
#include "measure_server/worker/spool.h"
#include "tests/support/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
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
  damaged[damaged.size() / 2 + 3] = '\x7f';  // length of b: two gigabytes
  put(damaged);
  EXPECT_THAT(trials_found(), ElementsAre("a"));
}

TEST_F(SpoolTest, AFileOfSomethingElseHoldsNoRecords) {
  put(std::string(1000, 'x'));
  EXPECT_THAT(trials_found(), IsEmpty());
}

TEST_F(SpoolTest, WhatIsAcknowledgedIsDroppedAndWhatIsOwedStays) {
  {
    const auto spool = open();
    for (const char* trial : {"a", "b", "c"}) ASSERT_TRUE(spool->append(record(trial)).is_ok());
    spool->keep_only({record("b")});
    ASSERT_TRUE(spool->append(record("d")).is_ok());
  }
  EXPECT_THAT(trials_found(), ElementsAre("b", "d"));
  {
    const auto spool = open();
    spool->keep_only({});
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
    first->keep_only({record("a")});
  }
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
  spool->keep_only({record("a"), record("c")});
  EXPECT_EQ(bytes().size(), static_cast<size_t>(spool->bytes()));
}

}  // namespace
}  // namespace tuner
