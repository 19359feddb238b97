// What is SQLite's own behind the store: files, plans of queries, checksums of rows, one commit for many
// writes.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <fstream>
#include <thread>

#include "db/crc32c.h"
#include "db/sqlite/sql.h"
#include "db/sqlite/sqlite.h"
#include "db/sqlite/writer.h"
#include "tests/db/store_fixture.h"
#include "tests/support/process_tree.h"
#include "tests/support/wait_until.h"

namespace tuner {
namespace {

using testing::HasSubstr;

class SqliteStoreTest : public testing::Test {
 protected:
  TemporaryFolder folder_;
  std::string path_ = folder_.file("t.db");
};

// --- files ---

TEST_F(SqliteStoreTest, ASecondWriterIsRefusedAndToldWhoHoldsTheFile) {
  const auto store = must_open(path_);
  const auto second = Store::open(path_, Store::Mode::kWrite);
  EXPECT_EQ(second.status().code(), StatusCode::kAborted);
  EXPECT_EQ(second.message(), str(path_, ": is open for writing already: held by process ", ::getpid(),
                                  ". Wait for it, stop it, or give another file with --db"));
}

TEST_F(SqliteStoreTest, ReadingAFileThatIsNotThereSaysHowToMakeIt) {
  const auto store = Store::open(path_, Store::Mode::kRead);
  EXPECT_EQ(store.status().code(), StatusCode::kNotFound);
  EXPECT_EQ(store.message(), path_ +
                                 ": there is no database yet. The first `tuner submit FILE` makes it; or "
                                 "give another file with --db");
}

TEST_F(SqliteStoreTest, PathsWithSpecialCharactersNameTheFileAndNothingElse) {
  const std::string odd = folder_.file("a?immutable=1#b%20c.db");
  ASSERT_OK(must_open(odd)->add_job(job_row("j1")));
  EXPECT_TRUE(std::filesystem::exists(odd));
  EXPECT_EQ(must_open(odd, Store::Mode::kRead)->jobs()->size(), 1u);
}

TEST_F(SqliteStoreTest, ReadsFromAFolderNobodyMayWrite) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write every folder";
  ASSERT_OK(must_open(path_)->add_job(job_row("j1")));
  ::chmod(folder_.path().c_str(), 0555);
  EXPECT_EQ(must_open(path_, Store::Mode::kRead)->jobs()->size(), 1u);
  ::chmod(folder_.path().c_str(), 0755);
}

TEST_F(SqliteStoreTest, AFolderOrAForeignFileIsRefused) {
  EXPECT_EQ(Store::open(folder_.path(), Store::Mode::kWrite).status().code(), StatusCode::kInvalidArgument);
  std::ofstream(path_) << std::string(4096, 'x');
  for (const auto mode : {Store::Mode::kRead, Store::Mode::kWrite})
    EXPECT_THAT(Store::open(path_, mode).message(), HasSubstr("Give another file with --db"));
}

// --- rows ---

TEST_F(SqliteStoreTest, AFlippedBitInARowIsAnErrorThatNamesTheRow) {
  {
    const auto store = must_open(path_);
    ASSERT_OK(store->add_job(job_row("j1")));
    const std::string id = add_trials(*store, "j1", {"a=1"})[0];
    ASSERT_OK(store->add_records({ok_record(id, {5})}));
  }
  {
    auto connection = db::Connection::open(path_, db::Connection::Access::kReadWrite);
    ASSERT_OK((*connection)->exec("UPDATE record SET time_ns = 4"));
  }
  const auto best = must_open(path_, Store::Mode::kRead)->best("v1 work", "cpu one");
  EXPECT_EQ(best.status().code(), StatusCode::kFailed);
  EXPECT_THAT(best.message(), HasSubstr("of table record is damaged: checksum"));
}

TEST_F(SqliteStoreTest, ADamagedRaceOrProposalIsAnErrorThatNamesIt) {
  RaceRow race{.job_id = "j1"};
  ProposalRow p{.job_id = "j1", .asked = 1};
  {
    const auto store = must_open(path_);
    ASSERT_OK(store->add_job(job_row("j1")));
    race.winner_trial_id = add_trials(*store, "j1", {"a=1"})[0];
    race.tie_set = {race.winner_trial_id};
    race.finalists.push_back({race.winner_trial_id, {100, 99}, {50, 51}, {0, 1}});
    race.time_ns = 100, race.time_low_ns = 98, race.time_high_ns = 102;
    ASSERT_OK(store->add_race(race));
    std::vector<TrialRow> trials = {trial_row("j1", "a=3")};
    ASSERT_OK(store->add_trials(trials, &p));
  }
  ASSERT_OK((*db::Connection::open(path_, db::Connection::Access::kReadWrite))
                ->exec("UPDATE race SET time_ns = 1; UPDATE proposal SET observed_record_id = 77"));
  const auto store = must_open(path_, Store::Mode::kRead);
  EXPECT_THAT(store->races("j1").message(), HasSubstr(str("row ", race.id, " of table race is damaged")));
  EXPECT_THAT(store->proposals("j1").message(),
              HasSubstr(str("row ", p.seq, " of table proposal is damaged")));
}

TEST(Checksum, IsCrc32c) {
  EXPECT_EQ(db::crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(db::crc32c_portable("123456789"), 0xe3069283u);
}

TEST(Checksum, TheCpusInstructionAgreesWithTheTable) {
  std::string bytes;
  for (uint32_t i = 0; i < 100; ++i) {
    EXPECT_EQ(db::crc32c(bytes, i), db::crc32c_portable(bytes, i)) << bytes.size();
    bytes += static_cast<char>(i * 37);
  }
  EXPECT_EQ(db::crc32c(std::string_view(bytes).substr(9), db::crc32c(std::string_view(bytes).substr(0, 9))),
            db::crc32c(bytes));
}

// --- plans ---

TEST_F(SqliteStoreTest, NoQueryReadsAWholeTable) {
  must_open(path_);
  auto connection = db::Connection::open(path_, db::Connection::Access::kReadOnly);
  ASSERT_TRUE(connection.is_ok());
  const std::pair<const char*, size_t> queries[] = {{db::kTaskByKey, 2},
                                                    {db::kTasksOfWorkload, 1},
                                                    {db::kTaskById, 1},
                                                    {db::kJobById, 1},
                                                    {db::kJobBySeq, 1},
                                                    {db::kJobByRequest, 1},
                                                    {db::kJobSame, 4},
                                                    {db::kTrialBySeq, 1},
                                                    {db::kTrialsOfJob, 3},
                                                    {db::kTrialsOfAll, 2},
                                                    {db::kOpenTrialsOfJob, 3},
                                                    {db::kDoneTrialsOfJob, 1},
                                                    {db::kTerminalRecord, 1},
                                                    {db::kRecordsOfTrial, 1},
                                                    {db::kBestRecord, 1},
                                                    {db::kBestRecordOfTemplates, 2},
                                                    {db::kBestRecordOfHardware, 4},
                                                    {db::kHardwareOfTask, 1},
                                                    {db::kOutcomesOfHardware, 2},
                                                    {db::kOutcomesOfTask, 1},
                                                    {db::kPrunedOutcomesOfTask, 1},
                                                    {db::kPruneCandidates, 1},
                                                    {db::kFirstTrialOfTask, 2},
                                                    {db::kLastRaceOfTask, 1},
                                                    {db::kEventsOfJob, 3},
                                                    {db::kProposalsOfJob, 1},
                                                    {db::kRecordsAfter, 3},
                                                    {db::kRacesOfJob, 1},
                                                    {db::kOpenRacesOfJob, 1},
                                                    {db::kOpenRaceById, 1},
                                                    {db::kRacesOfTask, 1},
                                                    {db::kQuarantineOfLease, 1},
                                                    {db::kForeignRankOfTask, 2},
                                                    {db::kForeignById, 1},
                                                    {db::kOriginById, 1},
                                                    {db::kTrialsOfConfig, 5},
                                                    {db::kSameConfigInJob, 4},
                                                    {db::kBestRecordOfEnvironment, 6},
                                                    {db::kTrialSeqsOfTask, 1},
                                                    {db::kTrialSeqsOfTaskAfter, 3},
                                                    {db::kRankOfTask, 2},
                                                    {db::kTrialOfRecord, 1},
                                                    {db::kKernelOfTenant, 2},
                                                    {db::kKernelOfAnybody, 1},
                                                    {db::kKernelAfter, 1},
                                                    {db::kLearnedNewest, 3},
                                                    {db::kImportedJob, 1},
                                                    {db::kImportedTrial, 3},
                                                    {db::kImportedTrialByHome, 2},
                                                    {db::kForeignTaskByKey, 3},
                                                    {db::kForeignByDigest, 2},
                                                    {db::kForeignRows, 2},
                                                    {db::kTrialRowsOfAll, 2},
                                                    {db::kTrialRowsOfJob, 3}};
  for (const auto& [sql, parameters] : queries) {
    const auto plan = (*connection)->all(str("EXPLAIN QUERY PLAN ", sql), db::SqlRow(parameters, int64_t{1}));
    ASSERT_TRUE(plan.is_ok()) << plan.message();
    ASSERT_FALSE(plan->empty()) << sql;
    for (const db::SqlRow& row : *plan) {
      const auto& detail = std::get<std::string>(row.back());
      // Records of one task are sorted after they were found: no index has them by number.
      if (sql == db::kTrialSeqsOfTaskAfter && detail == "USE TEMP B-TREE FOR ORDER BY") continue;
      EXPECT_TRUE(detail.starts_with("SEARCH")) << sql << "\n  " << detail;
    }
  }
}

// --- the writer ---

TEST(SqliteWriter, WaitingWritesShareACommit) {
  TemporaryFolder folder;
  auto connection = db::Connection::open(folder.file("w.db"), db::Connection::Access::kReadWrite);
  ASSERT_TRUE(connection.is_ok());
  ASSERT_OK((*connection)->exec("CREATE TABLE n (transaction_id INTEGER)"));
  db::Writer writer(*std::move(connection));
  // The first write holds the thread until the others wait; those must then come in one transaction. The busy
  // counter of transactions is read from within: total changes seen before the group's own.
  std::atomic<int> in_group = 0;
  std::array<std::atomic<pid_t>, 5> waiting{};
  std::atomic<bool> begun = false;
  std::thread first([&] {
    EXPECT_TRUE(writer
                    .write([&](db::Connection&) {
                      begun = true;
                      EXPECT_TRUE(wait_until(std::chrono::seconds(30), [&] {
                        return std::ranges::all_of(
                            waiting, [](const std::atomic<pid_t>& t) { return t != 0 && is_asleep(t); });
                      }));
                      return Status::ok();
                    })
                    .is_ok());
  });
  EXPECT_TRUE(wait_until(std::chrono::seconds(30), [&] { return begun.load(); }));
  std::vector<std::thread> others;
  for (int i = 0; i < 5; ++i)
    others.emplace_back([&, i] {
      waiting[static_cast<size_t>(i)] = ::gettid();
      EXPECT_TRUE(writer
                      .write([&](db::Connection& c) {
                        // Inside the same transaction the rows of the earlier members of the group are
                        // visible though nobody committed.
                        const auto rows = c.one("SELECT count(*) FROM n");
                        in_group =
                            std::max(in_group.load(), static_cast<int>(std::get<int64_t>((*rows)[0])) + 1);
                        return c.run("INSERT INTO n VALUES (1)");
                      })
                      .is_ok());
    });
  first.join();
  for (std::thread& thread : others) thread.join();
  EXPECT_EQ(in_group, 5);
}

}  // namespace
}  // namespace tuner
