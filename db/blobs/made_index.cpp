#include "db/blobs/made_index.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

#include "db/crc32c.h"
#include "db/sqlite/sqlite.h"

namespace tuner {
namespace {

using db::Connection;

// rowid grows with each put, so that the smallest are the oldest.
constexpr char kTable[] =
    "CREATE TABLE IF NOT EXISTS made (id TEXT PRIMARY KEY, bytes BLOB NOT NULL, crc INTEGER NOT NULL)";

// SQLite does not see a bit that flipped in a value.
int64_t checksum(const std::string& id, const std::string& bytes) {
  return db::crc32c(bytes, db::crc32c(id));
}

Result<std::unique_ptr<Connection>> open_file(const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<Connection> connection,
                   Connection::open(path, Connection::Access::kReadWrite));
  ASSIGN_OR_RETURN(const db::SqlRow mode, connection->one("PRAGMA journal_mode = WAL"));
  RETURN_IF_ERROR(connection->exec("PRAGMA synchronous = NORMAL"));
  RETURN_IF_ERROR(connection->exec(kTable));
  ASSIGN_OR_RETURN(const db::SqlRow checked, connection->one("PRAGMA quick_check(1)"));
  if (checked.empty() || checked[0] != db::SqlValue("ok")) return failed(path, ": is damaged");
  return connection;
}

}  // namespace

MadeIndex::MadeIndex(std::string path, size_t most) : path_(std::move(path)), most_(most) {}
MadeIndex::~MadeIndex() = default;

Status MadeIndex::begin_anew() {
  connection_.reset();
  for (const char* const part : {"", "-wal", "-shm"}) {
    std::error_code gone;
    std::filesystem::remove(path_ + part, gone);
  }
  ASSIGN_OR_RETURN(connection_, open_file(path_));
  return Status::ok();
}

Result<std::unique_ptr<MadeIndex>> MadeIndex::open(const std::string& path, size_t most) {
  std::unique_ptr<MadeIndex> index(new MadeIndex(path, most));
  if (Result<std::unique_ptr<Connection>> connection = open_file(path))
    index->connection_ = *std::move(connection);
  else
    RETURN_IF_ERROR(index->begin_anew());
  return index;
}

Status MadeIndex::insert(const std::string& id, const std::string& bytes) {
  RETURN_IF_ERROR(connection_->run("INSERT OR REPLACE INTO made (id, bytes, crc) VALUES (?, ?, ?)",
                                   {id, bytes, checksum(id, bytes)}));
  if (until_trim_ == 0) {
    until_trim_ = std::max<size_t>(1, most_ / 8);
    RETURN_IF_ERROR(connection_->run("DELETE FROM made WHERE rowid <= (SELECT max(rowid) FROM made) - ?",
                                     {static_cast<int64_t>(most_)}));
  }
  --until_trim_;
  return Status::ok();
}

Status MadeIndex::put(const std::string& id, const std::string& bytes) {
  Status kept = connection_ ? insert(id, bytes) : failed(path_, ": cannot be opened");
  if (kept || (connection_ && !connection_->damaged())) return kept;
  RETURN_IF_ERROR(begin_anew());
  return insert(id, bytes);
}

std::optional<std::string> MadeIndex::find(const std::string& id) {
  if (!connection_) return std::nullopt;
  const Result<db::SqlRow> row = connection_->one("SELECT bytes, crc FROM made WHERE id = ?", {id});
  if (!row || row->size() != 2) return std::nullopt;
  const auto* const bytes = std::get_if<std::string>(row->data());
  if (bytes == nullptr || (*row)[1] != db::SqlValue(checksum(id, *bytes))) return std::nullopt;
  return *bytes;
}

}  // namespace tuner
