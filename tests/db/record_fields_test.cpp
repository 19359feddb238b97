// The description of a record: every field goes every way, what was written before it is read as it was, and
// the pages that list the fields list these.
//
// To write the pages anew after a field was added:
//   TUNER_WRITE_FIELDS=1 build/release/tests/record_fields_test
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "db/exchange/export_file.h"
#include "db/exchange/import_file.h"
#include "db/plausible.h"
#include "db/sqlite/sqlite.h"
#include "tests/db/record_values.h"
#include "tests/db/store_fixture.h"

namespace tuner {
namespace {

using exchange::Format;
using nlohmann::ordered_json;
using testing::StartsWith;

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}
std::string source(const std::string& path) { return TUNER_SOURCE_DIR "/" + path; }

class RecordFieldsTest : public testing::Test {
 protected:
  void make_version_7() {
    const std::string sql = contents(source("tests/db/version_7.sql"));
    ASSERT_FALSE(sql.empty());
    ASSERT_OK((*db::Connection::open(path_, db::Connection::Access::kReadWrite))->exec(sql.c_str()));
  }
  std::vector<std::string> exported(const std::string& db, Format format) {
    const auto report = exchange::export_file(*must_open(db, Store::Mode::kRead),
                                              {.format = format, .path = folder_.file("out")});
    CHECK(report.is_ok()) << report.message();
    EXPECT_EQ(report->damaged, 0);
    return lines_of(contents(folder_.file("out")));
  }
  exchange::ImportReport imported(const std::string& file, const std::string& db) {
    const auto report = exchange::import_file(file, *must_open(db), {});
    CHECK(report.is_ok()) << report.message();
    EXPECT_EQ(report->skipped, 0) << (report->why.empty() ? "" : report->why[0].second);
    return *report;
  }
  // The lines are those of before; what is new stands at their end.
  static void expect_same(const std::vector<std::string>& now, std::vector<std::string> before) {
    ASSERT_EQ(now.size(), before.size());
    for (size_t i = 0; i < now.size(); ++i) {
      if (before[i].ends_with("}")) before[i].pop_back();
      EXPECT_THAT(now[i], StartsWith(before[i]));
    }
  }

  TemporaryFolder folder_;
  const std::string path_ = folder_.file("seven.db");
};

TEST_F(RecordFieldsTest, EveryFieldComesBackFromTheTableFromLinesAndFromCsv) {
  MeasureRecord record;
  {
    const auto store = must_open(path_);
    JobRow job = job_row("j1");
    job.tasks[0].constants = Constants::kCold;
    ASSERT_OK(store->add_job(job));
    record = record_of_distinct_values(add_trials(*store, "j1", {"a=1"})[0]);
    ASSERT_OK(store->add_records({record}));
    const auto back = store->records(record.trial_id);
    ASSERT_TRUE(back.is_ok()) << back.message();
    EXPECT_EQ(values_of(back->at(0)), values_of(record));
  }
  // Nothing here is as in a new record, so nothing above is lost and found again by chance.
  const auto given = values_of(record), fresh = values_of(MeasureRecord{});
  for (const auto& [name, value] : given)
    EXPECT_TRUE(value != fresh.at(name) || name == "time_ns") << name;  // 0 unless ok
  for (const Format format : {Format::kJsonLines, Format::kCsv}) {
    const std::string away = folder_.file(str("away", static_cast<int>(format)));
    const std::vector<std::string> lines = exported(path_, format);
    EXPECT_EQ(imported(folder_.file("out"), away).trials.added, 1);
    const auto store = must_open(away);
    std::vector<MeasureRecord> found;
    ASSERT_OK(store->for_each_record("", [&](const TrialWithRecord& t) {
      found.push_back(*t.record);
      return true;
    }));
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(values_of(found[0]), given) << lines.back();
  }
}

TEST_F(RecordFieldsTest, TheTableHasAColumnForEachFieldInTheirOrder) {
  must_open(path_);
  const auto connection = *db::Connection::open(path_, db::Connection::Access::kReadOnly);
  const auto rows = connection->all("SELECT name FROM pragma_table_info('record')");
  ASSERT_TRUE(rows.is_ok()) << rows.message();
  std::vector<std::string> columns;
  for (const db::SqlRow& row : *rows) columns.push_back(std::get<std::string>(row[0]));
  std::vector<std::string> expected = {"record_id", "trial_seq", "task_id", "terminal"};
  for (const auto& [field, kind] : record_fields()) expected.emplace_back(field.name);
  expected.emplace_back("crc");
  EXPECT_EQ(columns, expected);
  EXPECT_EQ(std::set<std::string>(columns.begin(), columns.end()).size(), columns.size());
}

TEST_F(RecordFieldsTest, AFileOfTheCommitBeforeIsExportedAsItWasThere) {
  make_version_7();
  {
    const auto store = must_open(path_);
    const auto trials = store->trials("j1");
    ASSERT_TRUE(trials.is_ok()) << trials.message();
    ASSERT_EQ(trials->size(), 6u);
    const MeasureRecord& cpu = *(*trials)[0].record;
    EXPECT_EQ(cpu.memory_sentinel_before_ns, 300.25);
    EXPECT_EQ(cpu.memory_sentinel_after_ns, 1.0 / 3);
    EXPECT_EQ(cpu.discarded, 2);
    EXPECT_EQ(cpu.read_gbps, 21.5);
    EXPECT_EQ((*trials)[1].record->discarded, 0);
    EXPECT_EQ((*trials)[4].record->device_state, "1980 MHz, 55 C, \"power cap\", \xc2\xb5");
    EXPECT_EQ(store->best("v1 work", "cpu one", {}, true, Constants::kCold)->read_gbps, 0.1);
  }
  const auto connection = *db::Connection::open(path_, db::Connection::Access::kReadOnly);
  EXPECT_EQ(
      *connection->one("SELECT device_state, options FROM record WHERE cut = 1"),
      (db::SqlRow{std::string("1980 MHz, 55 C, \"power cap\", \xc2\xb5"),
                  std::string(R"({"build_timeout_s":10.0,"cut_factor":2.0,"memory_limit_bytes":4294967296,)"
                              R"("min_repeat_ms":1.0,"repeats":5,"run_timeout_s":10.0})")}));
  expect_same(exported(path_, Format::kJsonLines), lines_of(contents(source("tests/db/version_7.jsonl"))));
  expect_same(exported(path_, Format::kCsv), lines_of(contents(source("tests/db/version_7.csv"))));
}

// Files of version 3 lack the fields that came later.
TEST_F(RecordFieldsTest, ExportsOfBeforeAreTheRowsOfTheDatabase) {
  make_version_7();
  // Six records; the lines also have trials without one.
  for (const auto& [name, rows] : {std::pair("version_3.jsonl", 7), std::pair("version_3.csv", 6),
                                   std::pair("version_7.jsonl", 8), std::pair("version_7.csv", 6)}) {
    const auto report = imported(source(str("tests/db/", name)), path_);
    EXPECT_EQ(report.trials.known, rows) << name;
    EXPECT_EQ(report.trials.added + report.jobs.added + report.races.added, 0) << name;
  }
  // Into an empty database, and out again the same.
  for (const char* version : {"3", "7"}) {
    const std::string away = folder_.file(version);
    const std::string table = source(str("tests/db/version_", version, ".csv"));
    EXPECT_EQ(imported(table, away).trials.added, 6);
    EXPECT_GE(imported(source(str("tests/db/version_", version, ".jsonl")), away).trials.added, 1);
    expect_same(exported(away, Format::kCsv), lines_of(contents(table)));
  }
}

// --- the pages ---

ordered_json schema_of(const std::vector<DescribedField>& fields);

ordered_json schema_of(const DescribedField& described) {
  const auto& [field, kind] = described;
  ordered_json out;
  const bool at_least_zero = field.rule != Rule::kFinite;
  switch (kind) {
    case FieldKind::kInteger:
      out = {{"type", "integer"}, {"minimum", field.least}};
      break;
    case FieldKind::kNumber:
      out = {{"type", "number"}};
      if (at_least_zero) out["minimum"] = 0;
      break;
    case FieldKind::kFlag:
      out = {{"type", "boolean"}};
      break;
    case FieldKind::kText:
      out = {{"type", "string"}};
      break;
    case FieldKind::kNumbers:
      out = {{"type", "array"}, {"items", {{"type", "number"}, {"minimum", 0}}}};
      if (field.rule == Rule::kCallTime)
        out["items"] = {{"type", "number"}, {"minimum", kLeastCallNs}, {"maximum", kMostCallNs}};
      break;
    case FieldKind::kOutcome:
      out = {{"type", "string"}, {"enum", ordered_json::array()}};
      for (int i = 1; i <= static_cast<int>(Outcome::kDeviceLost); ++i)
        out["enum"].push_back(outcome_name(static_cast<Outcome>(i)));
      break;
    case FieldKind::kConstants:
      out = {{"enum", {constants_name(Constants::kWarm), constants_name(Constants::kCold)}}};
      break;
    case FieldKind::kTime:
      out = {{"type", "string"}, {"format", "date-time"}};
      break;
    case FieldKind::kObject:
      out = schema_of(options_fields());
      break;
  }
  out["description"] = field.meaning;
  return out;
}

ordered_json schema_of(const std::vector<DescribedField>& fields) {
  ordered_json out{
      {"type", "object"}, {"required", ordered_json::array()}, {"properties", ordered_json::object()}};
  for (const DescribedField& each : fields) {
    if (!each.field.optional) out["required"].push_back(each.field.json_key());
    out["properties"][each.field.json_key()] = schema_of(each);
  }
  return out;
}

// The file's text with the described parts as the description has them.
std::string schema_text(const std::string& now) {
  ordered_json schema = ordered_json::parse(now);
  const ordered_json record = schema_of(record_fields());
  ordered_json& trial = schema["$defs"]["trial"];
  ordered_json properties, needed = {"terminal"};
  for (const auto& [key, value] : trial["properties"].items()) {
    properties[key] = value;
    if (key == "terminal") break;  // the fields of a record come behind it
  }
  properties.update(record["properties"]);
  for (const ordered_json& key : record["required"]) needed.push_back(key);
  trial["properties"] = properties;
  trial["dependentRequired"]["outcome"] = needed;
  schema["$defs"]["job"]["properties"]["options"] = properties["options"];
  for (const DescribedField& each : environment_fields())
    schema["$defs"]["race"]["properties"][each.field.json_key()] = schema_of(each);
  return schema.dump(2) + "\n";
}

std::string list_text(const std::string& now) {
  const std::string begin = "<!-- fields: written by tests/db/record_fields_test.cpp -->\n",
                    end = "<!-- end -->\n";
  const size_t from = now.find(begin), to = now.find(end);
  CHECK(from != std::string::npos && to != std::string::npos) << "records_format.md has no list of fields";
  std::string list = "| Field | What |\n|---|---|\n";
  const auto add = [&](const std::string& prefix, const std::vector<DescribedField>& fields) {
    for (const auto& [field, kind] : fields)
      list += str("| `", prefix, field.json_key(), "` | ", field.meaning, " |\n");
  };
  add("", record_fields());
  add("options.", options_fields());
  return now.substr(0, from) + begin + list + now.substr(to);
}

TEST(RecordFieldsPages, ListTheFieldsThatThereAre) {
  const std::pair<std::string, std::string (*)(const std::string&)> pages[] = {
      {source("db/records.schema.json"), schema_text}, {source("db/records_format.md"), list_text}};
  for (const auto& [path, text_of] : pages) {
    const std::string now = contents(path), expected = text_of(now);
    if (std::getenv("TUNER_WRITE_FIELDS") != nullptr) std::ofstream(path, std::ios::binary) << expected;
    EXPECT_EQ(contents(path), expected)
        << path << " is of another description; TUNER_WRITE_FIELDS=1 record_fields_test writes it anew";
  }
}

}  // namespace
}  // namespace tuner
