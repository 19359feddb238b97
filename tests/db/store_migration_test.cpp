// Schema versions: an empty file is made, an older one stepped up whole or not at all, a newer or foreign one
// refused.
#include <gmock/gmock.h>

#include <fstream>
#include <map>
#include <sstream>

#include "db/death.h"
#include "db/quarantine.h"
#include "db/sqlite/migrate.h"
#include "db/sqlite/rebuild.h"
#include "db/sqlite/row_codec.h"
#include "db/sqlite/sqlite.h"
#include "tests/db/store_fixture.h"

namespace tuner::db {
namespace {

using testing::HasSubstr;

// A schema with a history of its own: `pet` got an age in version 2 and a name index in version 3.
constexpr char kCreate3[] = "CREATE TABLE pet (name TEXT, age INTEGER); CREATE INDEX pet_name ON pet (name);";
constexpr Migration kSteps[] = {{1, "ALTER TABLE pet ADD COLUMN age INTEGER; UPDATE pet SET age = 7;"},
                                {2, "CREATE INDEX pet_name ON pet (name);"}};
constexpr SchemaPlan kVersion3{kCreate3, 3, kSteps};

class MigrationTest : public testing::Test {
 protected:
  void SetUp() override {
    connection_ = *Connection::open(folder_.file("m.db"), Connection::Access::kReadWrite);
  }
  void make_version_1() {
    ASSERT_OK(connection_->exec(str("CREATE TABLE pet (name TEXT); INSERT INTO pet VALUES ('rex'); PRAGMA "
                                    "user_version = 1; PRAGMA application_id = ",
                                    kApplicationId)
                                    .c_str()));
  }
  int64_t version() { return std::get<int64_t>(connection_->one("PRAGMA user_version")->at(0)); }

  TemporaryFolder folder_;
  std::unique_ptr<Connection> connection_;
};

TEST_F(MigrationTest, AnEmptyFileGetsTheCurrentTablesAtOnce) {
  ASSERT_OK(prepare_schema(*connection_, kVersion3));
  EXPECT_EQ(version(), 3);
  EXPECT_TRUE(connection_->all("SELECT age FROM pet").is_ok());
  ASSERT_OK(prepare_schema(*connection_, kVersion3));  // and again: nothing to do
}

TEST_F(MigrationTest, AnOlderFileIsSteppedUpAndKeepsItsRows) {
  make_version_1();
  EXPECT_THAT(check_schema(*connection_, kVersion3).message(),
              HasSubstr("has schema version 1, this program reads 3"));
  ASSERT_OK(prepare_schema(*connection_, kVersion3));
  EXPECT_EQ(version(), 3);
  const auto row = connection_->one("SELECT name, age FROM pet INDEXED BY pet_name WHERE name = 'rex'");
  ASSERT_TRUE(row.is_ok()) << row.message();
  EXPECT_EQ(*row, (SqlRow{std::string("rex"), int64_t{7}}));
  ASSERT_OK(check_schema(*connection_, kVersion3));
}

TEST_F(MigrationTest, AStepThatFailsLeavesTheFileAsItWas) {
  make_version_1();
  constexpr Migration kBroken[] = {kSteps[0], {2, "CREATE INDEX pet_name ON nothing_there (name);"}};
  const Status status = prepare_schema(*connection_, {kCreate3, 3, kBroken});
  EXPECT_THAT(status.message(), HasSubstr("migration from schema version 2: "));
  EXPECT_EQ(version(), 1);
  EXPECT_FALSE(connection_->all("SELECT age FROM pet").is_ok());
}

TEST_F(MigrationTest, AFileThatIsOlderThanTheOldestStepIsRefusedByReadersAndWritersWithoutTouchingIt) {
  make_version_1();
  constexpr Migration kLast[] = {kSteps[1]};
  EXPECT_THAT(prepare_schema(*connection_, {kCreate3, 3, kLast}).message(),
              HasSubstr("has schema version 1, this program opens 2 to 3"));
  EXPECT_EQ(version(), 1);
  const std::string path = folder_.file("older.db");
  must_open(path);
  ASSERT_OK((*Connection::open(path, Connection::Access::kReadWrite))->exec("PRAGMA user_version = 5"));
  for (const auto mode : {Store::Mode::kRead, Store::Mode::kWrite}) {
    const auto store = Store::open(path, mode);
    EXPECT_EQ(store.status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(
        store.message(),
        str(path, ": has schema version 5, this program opens 6 to ", kSchemaVersion,
            ": written by an older tuner. Export its records with that one (records export), import them "
            "here into a new file (records import), and give that file with --db"));
  }
  EXPECT_EQ(*(*Connection::open(path, Connection::Access::kReadOnly))->one("PRAGMA user_version"),
            SqlRow{int64_t{5}});
}

TEST_F(MigrationTest, ANewerFileIsRefusedByReadersAndWritersWithoutTouchingIt) {
  const std::string path = folder_.file("newer.db");
  must_open(path);
  ASSERT_OK((*Connection::open(path, Connection::Access::kReadWrite))->exec("PRAGMA user_version = 99"));
  for (const auto mode : {Store::Mode::kRead, Store::Mode::kWrite}) {
    const auto store = Store::open(path, mode);
    EXPECT_EQ(store.status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(store.message(),
              str(path, ": has schema version 99, this program knows up to ", kSchemaVersion,
                  ": written by a newer tuner. Update this one, or give another file with --db"));
  }
}

TEST_F(MigrationTest, AnotherProgramsDatabaseIsRefusedWithoutTouchingIt) {
  const std::string path = folder_.file("foreign.db");
  ASSERT_OK(
      (*Connection::open(path, Connection::Access::kReadWrite))->exec("CREATE TABLE bookmarks (url TEXT)"));
  EXPECT_THAT(Store::open(path, Store::Mode::kWrite).message(),
              HasSubstr("is an SQLite file of another program"));
  auto connection = *Connection::open(path, Connection::Access::kReadWrite);
  EXPECT_EQ(*connection->one("PRAGMA journal_mode"), SqlRow{std::string("delete")});
}

// Names and texts of all tables and indexes, white space, quotes and comments apart.
std::map<std::string, std::string> schema_of(Connection& connection) {
  std::map<std::string, std::string> schema;
  const auto rows = connection.all("SELECT name, coalesce(sql, '') FROM sqlite_master");
  CHECK(rows.is_ok()) << rows.message();
  for (const SqlRow& row : *rows) {
    std::istringstream lines(std::get<std::string>(row[1]));
    std::string& text = schema[std::get<std::string>(row[0])];
    for (std::string line; std::getline(lines, line);) {
      line = line.substr(0, line.find("--"));
      std::erase_if(line, [](char c) { return c == ' ' || c == '"'; });
      text += line;
    }
  }
  return schema;
}

void make_file_of(int version, const std::string& path) {
  std::ifstream file(str(TUNER_SOURCE_DIR "/tests/db/version_", version, ".sql"));
  const std::string sql{std::istreambuf_iterator<char>(file), {}};
  ASSERT_FALSE(sql.empty());
  ASSERT_OK((*Connection::open(path, Connection::Access::kReadWrite))->exec(sql.c_str()));
}

// The file was made by the commit before this test; what it answered is written down here.
void expect_answers_of_version_7(const Store& store) {
  const auto trials = store.trials("j1");  // every row read is checked against its checksum
  ASSERT_TRUE(trials.is_ok()) << trials.message();
  ASSERT_EQ(trials->size(), 6u);
  EXPECT_EQ((*trials)[0].trial.config, "a=1 b=2");
  EXPECT_EQ((*trials)[0].record->run_ns, (std::vector<double>{1000.5, 0.30000000000000004, 999}));
  EXPECT_EQ(store.records((*trials)[0].trial.id)->size(), 2u);
  EXPECT_EQ((*trials)[2].record->outcome, Outcome::kWrongAnswer);
  EXPECT_EQ((*trials)[2].record->message, "out[0, 3] is 1.25, reference \"1.5\"");
  EXPECT_EQ((*trials)[3].trial.state, TrialState::kQueued);
  EXPECT_TRUE((*trials)[4].record->cut);
  EXPECT_EQ((*trials)[5].trial.state, TrialState::kLeased);
  EXPECT_EQ((*trials)[5].trial.grants, (std::vector<Grant>{{1, "w1", ""}}));
  EXPECT_EQ(store.job("j1")->tasks[1].algorithms, "direct");
  EXPECT_EQ(store.job("j2")->tasks[0].constants, Constants::kCold);
  const auto raced = store.best("v1 work", "cpu one");
  ASSERT_TRUE(raced.is_ok()) << raced.message();
  EXPECT_EQ(raced->config, "a=2 b=-3");
  EXPECT_EQ(raced->race_id, 18);
  EXPECT_EQ(raced->time_ns, 100);
  const auto cold = store.best("v1 work", "cpu one", {}, true, Constants::kCold);
  ASSERT_TRUE(cold.is_ok()) << cold.message();
  EXPECT_EQ(cold->config, "a=7");
  EXPECT_EQ(cold->time_ns, 500);
  EXPECT_EQ(*store.race_grants("race j1/2"), (std::vector<Grant>{{1, "w2", "inc2"}}));
  EXPECT_EQ(store.open_races("j1")->size(), 1u);
  ASSERT_EQ(store.quarantine("")->size(), 1u);
  EXPECT_EQ(store.quarantine("t6")->at(0).why, "no machine is as fast");
  ASSERT_EQ(store.deaths()->size(), 1u);
  EXPECT_EQ(store.deaths()->at(0).config, "a=5");
  EXPECT_EQ(store.learned("predictor", "work", "cpu one")->until_record_id, 17);
  EXPECT_EQ(store.events("j1", 0, 10)->size(), 1u);
  EXPECT_TRUE(store.check_integrity()->damage.empty());
}

TEST_F(MigrationTest, AFileOfTheCommitBeforeGivesTheAnswersThatItGaveThere) {
  const std::string path = folder_.file("seven.db"), fresh = folder_.file("fresh.db");
  make_file_of(7, path);
  {
    const auto store = must_open(path);
    expect_answers_of_version_7(*store);
    EXPECT_EQ(store->kernel(std::string(64, 'a')).status().code(), StatusCode::kNotFound);
    ASSERT_OK(store->add_job(job_row("j9"), {{.digest = std::string(64, 'a'), .document = "kernel"}}));
    EXPECT_EQ(store->kernel(std::string(64, 'a'))->document, "kernel");
    std::vector<TrialRow> more = {trial_row("j1", "a=9")};
    ASSERT_OK(store->add_trials(more));
    EXPECT_EQ(more[0].seq, 29);  // the counter went on: 27 is the kernel, 28 its job
  }
  must_open(fresh);
  EXPECT_EQ(schema_of(**Connection::open(path, Connection::Access::kReadOnly)),
            schema_of(**Connection::open(fresh, Connection::Access::kReadOnly)));
}

TEST_F(MigrationTest, AFileOfVersion8GetsTheTableOfWhatWasPruned) {
  const std::string path = folder_.file("eight.db"), fresh = folder_.file("fresh.db");
  make_file_of(8, path);
  expect_answers_of_version_7(*must_open(path));
  must_open(fresh);
  EXPECT_EQ(schema_of(**Connection::open(path, Connection::Access::kReadOnly)),
            schema_of(**Connection::open(fresh, Connection::Access::kReadOnly)));
}

TEST_F(MigrationTest, AFileOfVersion6BecomesWhatAFreshOneIsAndKeepsWhoHasWhichLease) {
  const std::string path = folder_.file("six.db"), fresh = folder_.file("fresh.db");
  make_file_of(6, path);
  EXPECT_THAT(Store::open(path, Store::Mode::kRead).message(),
              HasSubstr(str("has schema version 6, this program reads ", kSchemaVersion,
                            ". The next `tuner submit` or `tuner serve`")));
  {
    const auto store = must_open(path);
    const auto trials = store->trials("j1");
    ASSERT_TRUE(trials.is_ok()) << trials.message();
    ASSERT_EQ(trials->size(), 3u);
    EXPECT_EQ((*trials)[0].trial.grants, (std::vector<Grant>{{1, "w1", ""}}));
    EXPECT_EQ((*trials)[1].trial.grants, (std::vector<Grant>{{2, "w2", ""}})) << "the latest is known";
    EXPECT_TRUE((*trials)[2].trial.grants.empty());
    EXPECT_EQ((*trials)[0].record->page_faults, 7);
    EXPECT_EQ((*trials)[0].record->isolation, "");
    EXPECT_EQ(store->job("j1")->tenant, "");
    const std::vector<MeasureRecord> known = *store->records((*trials)[0].trial.id);
    ASSERT_OK(store->add_records(known));  // recognised: what they say is what they said
    EXPECT_EQ(store->records((*trials)[0].trial.id)->size(), 1u);
    EXPECT_EQ(*store->race_grants("race j1/1"), (std::vector<Grant>{{1, "w3", ""}}));
    EXPECT_TRUE(store->quarantine("")->empty());
    EXPECT_TRUE(store->deaths()->empty());
    QuarantineRow row{.lease_id = (*trials)[1].trial.id};
    ASSERT_OK(store->add_quarantine(row));
    EXPECT_EQ(row.id, 12);  // the counter went on
    EXPECT_TRUE(store->check_integrity()->damage.empty());
  }
  must_open(fresh);
  EXPECT_EQ(schema_of(**Connection::open(path, Connection::Access::kReadOnly)),
            schema_of(**Connection::open(fresh, Connection::Access::kReadOnly)));
}

TEST_F(MigrationTest, WhatWasDamagedBeforeStaysDamaged) {
  const std::string path = folder_.file("six.db");
  make_file_of(6, path);
  ASSERT_OK((*Connection::open(path, Connection::Access::kReadWrite))
                ->exec("UPDATE record SET build_ms = 1; UPDATE trial SET config = 'a=9' WHERE seq = 4"));
  const auto store = must_open(path);
  const auto report = store->check_integrity();
  ASSERT_TRUE(report.is_ok()) << report.message();
  EXPECT_THAT(report->damage, testing::UnorderedElementsAre(HasSubstr("row 8 of table record is damaged"),
                                                            HasSubstr("row 4 of table trial is damaged")));
}

// Columns are added before the checksum; damage and indexes stay.
TEST_F(MigrationTest, AColumnIsAddedBeforeTheChecksum) {
  ASSERT_OK(
      connection_->exec("CREATE TABLE pet (\n  id INTEGER PRIMARY KEY,\n  name TEXT NOT NULL,\n  crc "
                        "INTEGER NOT NULL\n) STRICT; CREATE INDEX pet_name ON pet (name);"));
  const SqlRow rex = sealed({int64_t{7}, std::string("rex")});
  SqlRow tom = sealed({int64_t{-2}, std::string("tom")});
  std::get<int64_t>(tom.back()) += 1;
  for (const SqlRow& row : {rex, tom}) ASSERT_OK(connection_->run("INSERT INTO pet VALUES (?, ?, ?)", row));
  ASSERT_OK(add_columns(*connection_, "pet", {{"age", "INTEGER"}, {"weight_kg", "REAL"}, {"note", "TEXT"}}));
  EXPECT_EQ(*connection_->one("SELECT * FROM pet INDEXED BY pet_name WHERE name = 'rex'"),
            sealed({int64_t{7}, std::string("rex"), int64_t{0}, 0.0, std::string()}));
  const SqlRow damaged = *connection_->one("SELECT * FROM pet WHERE name = 'tom'");
  EXPECT_EQ(damaged.size(), 6u);
  EXPECT_THAT(check_row(damaged, "pet").message(), HasSubstr("row -2 of table pet is damaged"));
  EXPECT_FALSE(connection_->run("INSERT INTO pet VALUES (1, 'max', 'old', 0.0, '', 0)").is_ok());  // STRICT
}

TEST_F(MigrationTest, TheStoredVersionIsThatOfTheSchema) {
  const std::string path = folder_.file("fresh.db");
  must_open(path);
  auto connection = *Connection::open(path, Connection::Access::kReadOnly);
  EXPECT_EQ(*connection->one("PRAGMA user_version"), SqlRow{kSchemaVersion});
  EXPECT_EQ(*connection->one("PRAGMA application_id"), SqlRow{kApplicationId});
}

}  // namespace
}  // namespace tuner::db
