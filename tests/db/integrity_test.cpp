// The look at a whole database: nothing of a sound one is called damaged, and any damage is found.
#include "db/integrity.h"

#include <gmock/gmock.h>

#include <fstream>
#include <iterator>

#include "db/exchange/import_file.h"
#include "db/open_race.h"
#include "db/sqlite/sqlite.h"
#include "tests/db/store_fixture.h"

namespace tuner {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Stands in a table and in the index job_same, and nowhere else.
constexpr char kSearch[] = "needle in two haystacks";

class Integrity : public ::testing::Test {
 protected:
  // A row in every table that this program writes by itself.
  void SetUp() override {
    const auto store = must_open(path_);
    JobRow job = job_row("j1");
    job.search = kSearch;
    ASSERT_OK(store->add_job(job, {{.digest = std::string(64, 'a'), .document = "kernel"},
                                   {.digest = std::string(64, 'b'), .document = "another"}}));
    ProposalRow p{.job_id = "j1", .asked = 600};
    std::vector<TrialRow> trials;
    for (int i = 0; i < 600; ++i) trials.push_back(trial_row("j1", "a=" + std::to_string(i)));
    ASSERT_OK(store->add_trials(trials, &p));
    for (int i = 0; i < 300; ++i) ASSERT_OK(store->add_records({ok_record(trials[i].id, {5.0 + i})}));
    RaceRow race{.job_id = "j1"};
    race.winner_trial_id = trials[0].id;
    race.tie_set = {race.winner_trial_id};
    race.finalists.push_back({race.winner_trial_id, {100, 99}, {50, 51}, {0, 1}});
    race.time_ns = 100, race.time_low_ns = 98, race.time_high_ns = 102;
    ASSERT_OK(store->add_race(race));
    ASSERT_OK(store->open_race({.id = "race 1", .job_id = "j1", .finalists = {trials[0].id}}));
    LearnedRow learned{.kind = "predictor", .op = "matmul", .document = "{}"};
    ASSERT_OK(store->add_learned(learned));
    ASSERT_TRUE(store->add_event("j1", "{}").is_ok());
    // And what an import leaves.
    const std::string csv = folder_.file("foreign.csv");
    std::ofstream(csv) << "block_size,time_ms\n32,1.5\n64,2.5\n";
    exchange::ImportOptions options;
    options.target = "cpu one", options.task = "toy";
    const auto imported = exchange::import_file(csv, *store, options);
    ASSERT_TRUE(imported.is_ok()) << imported.message();
  }

  IntegrityReport check() const {
    const auto store = must_open(path_, Store::Mode::kRead);
    Result<IntegrityReport> report = store->check_integrity();
    EXPECT_TRUE(report.is_ok()) << report.message();
    return report.value();
  }
  std::unique_ptr<db::Connection> connection() const {
    return *db::Connection::open(path_, db::Connection::Access::kReadWrite);
  }
  // Tables with checksums, and how many rows each has.
  std::map<std::string, int64_t> checked_tables() const {
    std::map<std::string, int64_t> tables;
    const auto c = connection();
    const auto rows = c->all("SELECT name, sql FROM sqlite_master WHERE type = 'table'");
    for (const db::SqlRow& row : rows.value()) {
      if (std::get<std::string>(row[1]).find("\n  crc ") == std::string::npos) continue;
      const std::string& name = std::get<std::string>(row[0]);
      tables[name] = std::get<int64_t>((*c->one("SELECT count(*) FROM " + name))[0]);
    }
    return tables;
  }

  TemporaryFolder folder_;
  const std::string path_ = folder_.file("t.db");
};

TEST_F(Integrity, ASoundDatabaseIsReadWholeAndHasNoFault) {
  int64_t rows = 0;
  for (const auto& [table, count] : checked_tables()) rows += count;
  ASSERT_GT(rows, 900);
  const IntegrityReport report = check();
  EXPECT_THAT(report.damage, IsEmpty());
  EXPECT_EQ(report.faults, 0);
  EXPECT_TRUE(report.complete);
  EXPECT_EQ(report.rows, rows) << "a table is left out";
}

TEST_F(Integrity, ARowThatIsNotWhatWasWrittenIsNamedInEveryTable) {
  int filled = 0;
  for (const auto& checked : checked_tables()) {
    if (checked.second == 0) continue;
    const std::string& table = checked.first;
    ++filled;
    const auto c = connection();
    const int64_t row =
        std::get<int64_t>((*c->one("SELECT rowid FROM " + table + " ORDER BY rowid DESC LIMIT 1"))[0]);
    const auto change = [&](const char* by) {
      return c->run(str("UPDATE ", table, " SET crc = crc ", by, " WHERE rowid = ?"), {row});
    };
    ASSERT_OK(change("+ 1"));
    const IntegrityReport report = check();
    EXPECT_EQ(report.faults, 1) << table;
    EXPECT_THAT(report.damage, Each(HasSubstr(str("row ", row, " of table ", table, " is damaged"))));
    EXPECT_THAT(report.damage, SizeIs(1));
    ASSERT_OK(change("- 1"));
  }
  EXPECT_GE(filled, 12) << "of 14 tables with checksums; imported_* come from merged databases";
}

TEST_F(Integrity, BytesThatChangeOnTheDiskAreFoundInTableAndIndex) {
  std::string bytes;
  {
    std::ifstream in(path_, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(in), {});
  }
  int places = 0;
  std::vector<std::string> found;
  for (size_t at = bytes.find(kSearch); at != std::string::npos; at = bytes.find(kSearch, at + 1)) {
    ++places;
    std::string changed = bytes;
    changed[at] ^= 1;
    std::ofstream(path_, std::ios::binary) << changed;
    const IntegrityReport report = check();
    EXPECT_GT(report.faults, 0) << "at byte " << at;
    found.insert(found.end(), report.damage.begin(), report.damage.end());
  }
  EXPECT_EQ(places, 2) << "in the table and in its index";
  EXPECT_THAT(found, ::testing::Contains(HasSubstr("of table job is damaged")));
  EXPECT_THAT(found, ::testing::Contains(HasSubstr("table job: row 1 missing from index job_same")));
}

TEST_F(Integrity, APageThatIsLostIsAFaultNoErrorAndNoCrash) {
  constexpr std::streamoff kPage = 4096;
  const auto size = static_cast<std::streamoff>(std::filesystem::file_size(path_));
  ASSERT_EQ(size % kPage, 0);
  int told = 0;
  for (std::streamoff page = 1; page < size / kPage; ++page) {
    const std::string kept = folder_.file("kept");
    std::filesystem::copy_file(path_, kept, std::filesystem::copy_options::overwrite_existing);
    {
      std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
      file.seekp(page * kPage);
      file << std::string(kPage, '\0');
    }
    if (const auto store = Store::open(path_, Store::Mode::kRead); store.is_ok()) {
      const Result<IntegrityReport> report = (*store)->check_integrity();
      ASSERT_TRUE(report.is_ok()) << report.message();
      EXPECT_GT(report->faults, 0) << "page " << page;
      ++told;
    }
    std::filesystem::rename(kept, path_);
  }
  EXPECT_GT(told, 20) << "a lost page hardly ever keeps the file from being opened";
}

TEST_F(Integrity, SaysOnlyTheFirstTenOfManyFaults) {
  ASSERT_OK(connection()->exec("UPDATE trial SET crc = crc + 1 WHERE seq % 2 = 0"));
  const IntegrityReport report = check();
  EXPECT_EQ(report.faults, 300);
  EXPECT_THAT(report.damage, SizeIs(10));
}

TEST_F(Integrity, CanBeStoppedBetweenAnyTwoPages) {
  const auto store = must_open(path_, Store::Mode::kRead);
  const int64_t all = check().rows;
  int64_t before = -1;
  for (int pages = 1;; ++pages) {
    std::stop_source stop;
    int seen = 0;
    const Result<IntegrityReport> report = store->check_integrity(stop.get_token(), [&](int64_t) {
      if (++seen == pages) stop.request_stop();
    });
    ASSERT_TRUE(report.is_ok()) << report.message();
    if (seen < pages) break;  // it ended before
    EXPECT_FALSE(report->complete);
    EXPECT_GT(report->rows, before) << "it has gone on to the next page";
    EXPECT_LT(report->rows, all);
    before = report->rows;
  }
  EXPECT_GT(before, 600) << "trials and records have several pages";
}

}  // namespace
}  // namespace tuner
