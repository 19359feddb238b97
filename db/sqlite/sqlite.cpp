#include "db/sqlite/sqlite.h"

#include <sqlite3.h>

#include <cerrno>
#include <cstring>

#include "db/store.h"

namespace tuner::db {

namespace {

std::string as_uri(const std::string& path) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string uri = "file:";
  for (const unsigned char c : path) {
    if (c == '?' || c == '#' || c == '%' || c < 0x20) {
      uri += '%';
      uri += kHex[c >> 4];
      uri += kHex[c & 15];
    } else {
      uri += static_cast<char>(c);
    }
  }
  return uri;
}

SqlValue column(sqlite3_stmt* statement, int i) {
  switch (sqlite3_column_type(statement, i)) {
    case SQLITE_INTEGER:
      return static_cast<int64_t>(sqlite3_column_int64(statement, i));
    case SQLITE_FLOAT:
      return sqlite3_column_double(statement, i);
    case SQLITE_NULL:
      return std::monostate{};
    default: {
      const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement, i));
      return std::string(bytes == nullptr ? "" : bytes,
                         static_cast<size_t>(sqlite3_column_bytes(statement, i)));
    }
  }
}

SqlRow row_of(sqlite3_stmt* statement) {
  SqlRow row;
  const int n = sqlite3_column_count(statement);
  row.reserve(static_cast<size_t>(n));
  for (int i = 0; i < n; ++i) row.push_back(column(statement, i));
  return row;
}

// A statement in the middle of its rows keeps a read transaction open: it is reset when we leave.
struct Reset {
  sqlite3_stmt* statement;
  ~Reset() { sqlite3_reset(statement); }
};

}  // namespace

Result<std::unique_ptr<Connection>> Connection::open(const std::string& path, Access access) {
  std::unique_ptr<Connection> connection(new Connection);
  connection->path_ = path;
  const int flags =
      access == Access::kReadWrite ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
  const std::string uri = as_uri(path) + (access == Access::kImmutable ? "?immutable=1" : "");
  const int rc =
      sqlite3_open_v2(uri.c_str(), &connection->db_, flags | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nullptr);
  if (connection->db_ == nullptr) return failed(path, ": out of memory while opening the database");
  sqlite3_extended_result_codes(connection->db_, 1);
  if (rc != SQLITE_OK) return connection->error("cannot be opened");
  sqlite3_busy_timeout(connection->db_, 10'000);
  sqlite3_db_config(connection->db_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(connection->db_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  // Only one connection may ever checkpoint the file: two can corrupt the WAL (SQLite before 3.51.3).
  if (access != Access::kReadWrite)
    sqlite3_db_config(connection->db_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  if (access != Access::kReadWrite) sqlite3_wal_autocheckpoint(connection->db_, 0);
  // Pages are kept as they are read, up to 64 MB: an answer from a file of a million records reads some
  // twenty of them, and a call to the system for each would cost more than the rest. Refused, it is only
  // slower.
  if (access != Access::kReadWrite)
    sqlite3_exec(connection->db_, "PRAGMA cache_size = -65536", nullptr, nullptr, nullptr);
  return connection;
}

Connection::~Connection() {
  for (const auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  if (db_ != nullptr) sqlite3_close(db_);
}

Status Connection::error(std::string_view doing) {
  const int code = sqlite3_extended_errcode(db_);
  const std::string text = str(path_, ": ", doing, ": ", sqlite3_errmsg(db_), " (SQLite error ", code, ")");
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return unavailable(text, ". Another process holds the file; try again");
    case SQLITE_FULL:
      return failed(text, ". The disk is full: free some space; nothing of this write was kept");
    case SQLITE_NOTADB:
      damaged_ = true;
      return invalid_argument(path_, ": is no database of this program, or damaged (", sqlite3_errmsg(db_),
                              "). Give another file ", how_a_database_is_given());
    case SQLITE_IOERR:
      // SQLite calls only ENOSPC full. After a failed fsync nobody knows what is in the file; after a failed
      // write, it does.
      if (const int cause = sqlite3_system_errno(db_);
          (code == SQLITE_IOERR_WRITE || code == SQLITE_IOERR_TRUNCATE) &&
          (cause == EDQUOT || cause == EFBIG || cause == ENOSPC))
        return failed(text, ": ", std::strerror(cause), ". ",
                      cause == EFBIG ? "Raise the limit on the size of files (ulimit -f)"
                                     : "The disk is full: free some space",
                      "; nothing of this write was kept");
      [[fallthrough]];
    case SQLITE_CORRUPT:
      broken_ = true;
      damaged_ = (code & 0xff) == SQLITE_CORRUPT;
      return failed(damaged_ ? str(path_, ": is damaged: ", sqlite3_errmsg(db_), " (SQLite error ", code,
                                   ", at ", doing, ")")
                             : text,
                    ". Check the disk, then restore a copy of the file or give another one ",
                    how_a_database_is_given());
    default:
      return failed(text);
  }
}

Status Connection::exec(const char* sql) {
  if (sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) return error("statement refused");
  return Status::ok();
}

Result<sqlite3_stmt*> Connection::prepare(std::string_view sql, const SqlRow& parameters) {
  auto it = statements_.find(sql);
  if (it == statements_.end()) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v3(db_, sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT,
                           &statement, nullptr) != SQLITE_OK)
      return error(str("cannot prepare \"", sql, "\""));
    it = statements_.emplace(sql, statement).first;
  }
  sqlite3_stmt* statement = it->second;
  CHECK(sqlite3_bind_parameter_count(statement) == static_cast<int>(parameters.size()))
      << "parameters of " << sql << ": " << parameters.size() << " given";
  for (size_t i = 0; i < parameters.size(); ++i) {
    const int at = static_cast<int>(i) + 1;
    int rc = SQLITE_OK;
    if (const auto* integer = std::get_if<int64_t>(&parameters[i]))
      rc = sqlite3_bind_int64(statement, at, *integer);
    else if (const auto* real = std::get_if<double>(&parameters[i]))
      rc = sqlite3_bind_double(statement, at, *real);
    else if (const auto* text = std::get_if<std::string>(&parameters[i]))
      rc = sqlite3_bind_text64(statement, at, text->data(), text->size(), SQLITE_TRANSIENT, SQLITE_UTF8);
    else
      rc = sqlite3_bind_null(statement, at);
    if (rc != SQLITE_OK) return error(str("cannot bind parameter ", at, " of \"", sql, "\""));
  }
  return statement;
}

Result<bool> Connection::step(sqlite3_stmt* statement, std::string_view sql) {
  switch (sqlite3_step(statement)) {
    case SQLITE_ROW:
      return true;
    case SQLITE_DONE:
      return false;
    default:
      return error(str("\"", sql.substr(0, 60), sql.size() > 60 ? "...\"" : "\""));
  }
}

Status Connection::run(std::string_view sql, const SqlRow& parameters) {
  ASSIGN_OR_RETURN(sqlite3_stmt * statement, prepare(sql, parameters));
  const Reset reset{statement};
  ASSIGN_OR_RETURN(bool row, step(statement, sql));
  while (row) {
    ASSIGN_OR_RETURN(row, step(statement, sql));
  }
  return Status::ok();
}

Result<std::vector<SqlRow>> Connection::all(std::string_view sql, const SqlRow& parameters) {
  ASSIGN_OR_RETURN(sqlite3_stmt * statement, prepare(sql, parameters));
  const Reset reset{statement};
  std::vector<SqlRow> rows;
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, step(statement, sql));
    if (!row) return rows;
    rows.push_back(row_of(statement));
  }
}

Result<std::vector<SqlRow>> Connection::all_unless(const std::stop_token& stop, std::string_view sql) {
  constexpr int kSteps = 10'000;  // of SQLite's machine, between two questions: about a millisecond
  const auto asked = [](void* token) {
    return static_cast<const std::stop_token*>(token)->stop_requested() ? 1 : 0;
  };
  sqlite3_progress_handler(db_, kSteps, asked, const_cast<std::stop_token*>(&stop));
  Result<std::vector<SqlRow>> rows = all(sql);
  sqlite3_progress_handler(db_, 0, nullptr, nullptr);
  return rows;
}

Result<SqlRow> Connection::one(std::string_view sql, const SqlRow& parameters) {
  ASSIGN_OR_RETURN(sqlite3_stmt * statement, prepare(sql, parameters));
  const Reset reset{statement};
  ASSIGN_OR_RETURN(const bool row, step(statement, sql));
  return row ? row_of(statement) : SqlRow();
}

bool Connection::in_transaction() const { return sqlite3_get_autocommit(db_) == 0; }

}  // namespace tuner::db
