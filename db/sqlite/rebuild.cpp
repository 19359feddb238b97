#include "db/sqlite/rebuild.h"

#include "db/sqlite/row_codec.h"

namespace tuner::db {

namespace {

constexpr int64_t kRowsHeld = 4096;  // rows held at a time

std::string text_of(const SqlRow& row) {
  const auto* text = row.empty() ? nullptr : std::get_if<std::string>(&row[0]);
  return text != nullptr ? *text : std::string();
}

Status copy_rows(Connection& connection, std::string_view from, std::string_view to, const Remake& remake) {
  const std::string select = str("SELECT * FROM ", from, " WHERE rowid > ? ORDER BY rowid LIMIT ?");
  std::string insert;
  for (int64_t after = INT64_MIN;;) {
    ASSIGN_OR_RETURN(std::vector<SqlRow> page, connection.all(select, {after, kRowsHeld}));
    for (SqlRow& old : page) {
      const bool whole = check_row(old, from).is_ok();
      after = std::get<int64_t>(old[0]);
      old.pop_back();
      SqlRow row;
      const bool understood = remake(old, row);
      row = sealed(std::move(row));
      if (!whole || !understood) std::get<int64_t>(row.back()) ^= 1;
      if (insert.empty()) {
        insert = str("INSERT INTO ", to, " VALUES (?");
        for (size_t i = 1; i < row.size(); ++i) insert += ", ?";
        insert += ")";
      }
      RETURN_IF_ERROR(connection.run(insert, row));
    }
    if (static_cast<int64_t>(page.size()) < kRowsHeld) return Status::ok();
  }
}

}  // namespace

Status rebuild_table(Connection& connection, std::string_view table, std::string_view columns,
                     const Remake& remake) {
  const std::string temporary = str(table, "_new");
  ASSIGN_OR_RETURN(const std::vector<SqlRow> indexes,
                   connection.all("SELECT sql FROM sqlite_master WHERE type = 'index' AND tbl_name = ? AND "
                                  "sql IS NOT NULL ORDER BY rowid",
                                  {std::string(table)}));
  RETURN_IF_ERROR(connection.exec(str("CREATE TABLE ", temporary, " ", columns).c_str()));
  RETURN_IF_ERROR(copy_rows(connection, table, temporary, remake));
  RETURN_IF_ERROR(connection.exec(str("DROP TABLE ", table).c_str()));
  RETURN_IF_ERROR(connection.exec(str("ALTER TABLE ", temporary, " RENAME TO ", table).c_str()));
  for (const SqlRow& index : indexes) RETURN_IF_ERROR(connection.exec(text_of(index).c_str()));
  return Status::ok();
}

Status add_columns(Connection& connection, std::string_view table, const std::vector<NewColumn>& added) {
  ASSIGN_OR_RETURN(const SqlRow row,
                   connection.one("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?",
                                  {std::string(table)}));
  std::string columns = text_of(row);
  columns.erase(0, columns.find('('));
  const size_t checksum = columns.rfind("\n  crc ");
  if (checksum == std::string::npos) return failed("table ", table, " has no checksum");
  std::string lines;
  SqlRow values;
  for (const NewColumn& column : added) {
    lines += str("\n  ", column.name, " ", column.type, " NOT NULL,");
    const std::string_view type = column.type;
    values.push_back(type == "INTEGER" ? SqlValue{int64_t{0}}
                     : type == "REAL"  ? SqlValue{0.0}
                                       : SqlValue{std::string()});
  }
  columns.insert(checksum, lines);
  return rebuild_table(connection, table, columns, [&](const SqlRow& old, SqlRow& to) {
    to = old;
    to.insert(to.end(), values.begin(), values.end());
    return true;
  });
}

}  // namespace tuner::db
