// Connection: the only wrapper of SQLite's C API. Only files of db/ use it.
//
// Parameters and results are SqlValue; statements are prepared once and kept. One thread at a time may use a
// connection.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "compiler_core/base/status.h"

struct sqlite3;
struct sqlite3_stmt;

namespace tuner::db {

using SqlValue = std::variant<std::monostate, int64_t, double, std::string>;  // NULL, INTEGER, REAL, TEXT
using SqlRow = std::vector<SqlValue>;

class Connection {
 public:
  enum class Access {
    kReadWrite,  // created if missing; this connection does all writes and checkpoints of the file
    kReadOnly,   // with or without a writer beside it; never checkpoints, not even on close
    kImmutable,  // a file that nobody writes, in a folder where SQLite cannot create its shared-memory file
  };
  // Does not touch the tables; configure() and the first read do that.
  static Result<std::unique_ptr<Connection>> open(const std::string& path, Access access);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Runs several statements without parameters or results.
  Status exec(const char* sql);
  // Runs one statement without a result.
  Status run(std::string_view sql, const SqlRow& parameters = {});
  // Returns all rows of one statement.
  Result<std::vector<SqlRow>> all(std::string_view sql, const SqlRow& parameters = {});
  // As all(), but a stop ends it: an error, which says so.
  Result<std::vector<SqlRow>> all_unless(const std::stop_token& stop, std::string_view sql);
  // Returns the first row; empty if there is none.
  Result<SqlRow> one(std::string_view sql, const SqlRow& parameters = {});

  // Writes all of it, as it is at this moment, to a file that is not there yet. `after_pages`: how many are
  // done, of how many. Aborted: it was stopped. What was written stays.
  Status copy_to(const std::string& path, const std::stop_token& stop,
                 const std::function<void(int64_t, int64_t)>& after_pages);

  bool in_transaction() const;
  // True once the disk or the file failed (I/O error, corrupt page): nothing later may be trusted.
  bool broken() const { return broken_; }
  bool damaged() const { return damaged_; }  // true if the file is corrupt, or is no database

 private:
  Connection() = default;
  Result<sqlite3_stmt*> prepare(std::string_view sql, const SqlRow& parameters);
  Status error(std::string_view doing);
  // Steps once; returns true if there is a row.
  Result<bool> step(sqlite3_stmt* statement, std::string_view sql);

  std::string path_;
  sqlite3* db_ = nullptr;
  std::map<std::string, sqlite3_stmt*, std::less<>> statements_;
  bool broken_ = false, damaged_ = false;
};

}  // namespace tuner::db
