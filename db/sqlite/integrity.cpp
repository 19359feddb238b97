// Reads every row once, and lets SQLite compare tables with their indexes.
#include "db/integrity.h"

#include <utility>

#include "db/sqlite/row_codec.h"
#include "db/sqlite/sqlite_store.h"

namespace tuner::db {

namespace {

// Rows read in one snapshot: a long reader would hold up the checkpoints of the writer.
constexpr int64_t kRowsAtATime = 256;
constexpr size_t kMostLines = 10;

struct Table {
  std::string_view name;
  std::string columns;  // the key first, the checksum last; empty: its rows have none
  int64_t at_a_time = kRowsAtATime;
};

std::vector<Table> tables() {
  return {{"task", kTaskColumns},
          {"job", kJobColumns},
          {"trial", kTrialColumns},
          {"record", record_columns()},
          {"proposal", kProposalColumns},
          {"race", kRaceColumns},
          {"open_race", kOpenRaceColumns},
          {"quarantine", kQuarantineColumns},
          {"poison", kPoisonColumns},
          {"pruned", kPrunedColumns},
          {"kernel", kKernelColumns, /*at_a_time=*/1},  // of many megabytes each
          {"learned", kLearnedColumns},
          {"origin", kOriginColumns},
          {"imported_job", kImportedJobColumns},
          {"imported_trial", kImportedTrialColumns},
          {"foreign_task", kForeignTaskColumns},
          {"foreign_record", kForeignRecordColumns},
          {"event", ""}};
}

class Check {
 public:
  Check(Connection& connection, std::stop_token stop, const std::function<void(int64_t)>& after_page)
      : connection_(connection), stop_(std::move(stop)), after_page_(after_page) {}

  IntegrityReport run() {
    for (const Table& table : tables()) {
      if (!table.columns.empty()) rows(table);
      structure(table.name);
    }
    report_.complete = !stop_.stop_requested();
    return std::move(report_);
  }

 private:
  // A page that cannot be read ends the table: what comes behind it has no beginning.
  void rows(const Table& table) {
    const std::string key = table.columns.substr(0, table.columns.find(','));
    const std::string sql = str("SELECT ", table.columns, " FROM ", table.name, " WHERE ", key,
                                " > ? ORDER BY ", key, " LIMIT ?");
    for (int64_t after = 0; !stop_.stop_requested(); after_page_(report_.rows)) {
      const Result<std::vector<SqlRow>> page = connection_.all(sql, {after, table.at_a_time});
      if (!page) return note(str("table ", table.name, ": ", page.message()));
      for (const SqlRow& row : *page) {
        if (const Status whole = check_row(row, table.name); !whole) note(whole.message());
        after = std::get<int64_t>(row[0]);  // INTEGER PRIMARY KEY: the table's own order
      }
      report_.rows += std::ssize(*page);
      if (std::ssize(*page) < table.at_a_time) return;
    }
  }

  void structure(std::string_view table) {
    const Result<std::vector<SqlRow>> lines =
        connection_.all_unless(stop_, str("PRAGMA integrity_check(", table, ")"));
    if (stop_.stop_requested()) return;
    if (!lines) return note(str("table ", table, ": ", lines.message()));
    for (const SqlRow& line : *lines)
      if (const auto* text = std::get_if<std::string>(&line.at(0)); text != nullptr && *text != "ok")
        note(str("table ", table, ": ", *text));
  }

  void note(std::string line) {
    ++report_.faults;
    if (report_.damage.size() < kMostLines) report_.damage.push_back(std::move(line));
  }

  Connection& connection_;
  const std::stop_token stop_;
  const std::function<void(int64_t)>& after_page_;
  IntegrityReport report_;
};

}  // namespace

Result<IntegrityReport> SqliteStore::check_integrity(std::stop_token stop,
                                                     const std::function<void(int64_t)>& after_page) const {
  // A connection of its own: what it reads once must not take the place of what answers are made of.
  ASSIGN_OR_RETURN(const std::unique_ptr<Connection> connection, Connection::open(path_, reading_));
  RETURN_IF_ERROR(connection->exec("PRAGMA cache_size = -2048"));
  return Check(*connection, std::move(stop), after_page).run();
}

}  // namespace tuner::db
