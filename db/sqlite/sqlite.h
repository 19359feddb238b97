// Connection: the one wrapper of SQLite's C API. Only the files of db/ use it.
//
// Values in and out are SqlValue; statements are prepared once and kept. A connection is used by one thread
// at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
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
    kReadWrite,  // created when missing; this connection does all writes and all checkpoints of the file
    kReadOnly,   // beside a writer or without one; never checkpoints, not even when closed
    kImmutable,  // a file that nobody writes, in a folder where not even SQLite's shared-memory file can be
                 // made
  };
  // Does not touch the tables; configure() and the first read do.
  static Result<std::unique_ptr<Connection>> open(const std::string& path, Access access);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Several statements without parameters or results.
  Status exec(const char* sql);
  // One statement without a result.
  Status run(std::string_view sql, const SqlRow& parameters = {});
  // All rows of one statement.
  Result<std::vector<SqlRow>> all(std::string_view sql, const SqlRow& parameters = {});
  // The first row; empty when there is none.
  Result<SqlRow> one(std::string_view sql, const SqlRow& parameters = {});

  bool in_transaction() const;
  // True once the disk or the file failed under us (I/O error, corrupt page): nothing later may be trusted.
  bool broken() const { return broken_; }
  bool damaged() const { return damaged_; }  // or no database at all

 private:
  Connection() = default;
  Result<sqlite3_stmt*> prepare(std::string_view sql, const SqlRow& parameters);
  Status error(std::string_view doing);
  // Steps once: true when there is a row.
  Result<bool> step(sqlite3_stmt* statement, std::string_view sql);

  std::string path_;
  sqlite3* db_ = nullptr;
  std::map<std::string, sqlite3_stmt*, std::less<>> statements_;
  bool broken_ = false, damaged_ = false;
};

}  // namespace tuner::db
