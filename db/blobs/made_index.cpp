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
    "CREATE TABLE IF NOT EXISTS made (id TEXT PRIMARY KEY, bytes BLOB NOT NULL, crc INTEGER NOT NULL, "
    "release TEXT NOT NULL)";
constexpr char kInsert[] = "INSERT OR REPLACE INTO made (id, bytes, crc, release) VALUES (?, ?, ?, ?)";
constexpr char kFind[] = "SELECT bytes, crc FROM made WHERE id = ? AND release = ?";
constexpr char kOtherReleases[] = "DELETE FROM made WHERE release <> ?";
constexpr char kTrim[] =
    "DELETE FROM made WHERE rowid <= (SELECT rowid FROM made ORDER BY rowid DESC LIMIT 1 OFFSET ?)";

// SQLite does not see a bit that flipped in a value.
int64_t checksum(const std::string& id, const std::string& bytes) {
  return db::crc32c(bytes, db::crc32c(id));
}

Status prepare(Connection& connection) {
  // Nobody waits for whoever else has opened it.
  ASSIGN_OR_RETURN(const db::SqlRow timeout, connection.one("PRAGMA busy_timeout = 100"));
  ASSIGN_OR_RETURN(const db::SqlRow mode, connection.one("PRAGMA journal_mode = WAL"));
  RETURN_IF_ERROR(connection.exec("PRAGMA synchronous = OFF"));
  return connection.exec(kTable);
}

// Both statements: a schema may be whole for SQLite and not ours.
bool serves(Connection& connection, const std::string& release) {
  const Result<db::SqlRow> checked = connection.one("PRAGMA quick_check(1)");
  return checked && !checked->empty() && (*checked)[0] == db::SqlValue("ok") &&
         connection.run(kOtherReleases, {release}) && connection.run(kInsert, {"", "", int64_t{0}, release});
}

struct Opened {
  std::unique_ptr<Connection> connection;  // null: it is damaged
};

Result<Opened> open_file(const std::string& path, const std::string& release) {
  ASSIGN_OR_RETURN(std::unique_ptr<Connection> connection,
                   Connection::open(path, Connection::Access::kReadWrite));
  const Status prepared = prepare(*connection);
  if (prepared.code() == StatusCode::kUnavailable) return prepared;  // whose it is, is no damage
  if (!prepared || !serves(*connection, release)) return Opened{};
  return Opened{std::move(connection)};
}

}  // namespace

MadeIndex::MadeIndex(std::string path, size_t most, std::string release)
    : path_(std::move(path)), most_(most), release_(std::move(release)) {}
MadeIndex::~MadeIndex() = default;

Status MadeIndex::begin_anew() {
  connection_.reset();
  for (const char* const part : {"", "-wal", "-shm"}) {
    std::error_code gone;
    std::filesystem::remove(path_ + part, gone);
  }
  ASSIGN_OR_RETURN(Opened opened, open_file(path_, release_));
  connection_ = std::move(opened.connection);
  return connection_ ? Status::ok() : failed(path_, ": a new file does not serve; is the disk full?");
}

Result<std::unique_ptr<MadeIndex>> MadeIndex::open(const std::string& path, size_t most,
                                                   const std::string& release) {
  std::unique_ptr<MadeIndex> index(new MadeIndex(path, most, release));
  ASSIGN_OR_RETURN(Opened opened, open_file(path, release));
  index->connection_ = std::move(opened.connection);
  if (index->connection_ == nullptr) RETURN_IF_ERROR(index->begin_anew());
  return index;
}

Status MadeIndex::insert(const std::string& id, const std::string& bytes) {
  RETURN_IF_ERROR(connection_->run(kInsert, {id, bytes, checksum(id, bytes), release_}));
  if (until_trim_ == 0) {
    until_trim_ = std::max<size_t>(1, most_ / 8);
    (void)connection_->run(kTrim, {static_cast<int64_t>(most_)});  // it is tried again
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
  const Result<db::SqlRow> row = connection_->one(kFind, {id, release_});
  if (!row || row->size() != 2) return std::nullopt;
  const auto* const bytes = std::get_if<std::string>(row->data());
  if (bytes == nullptr || (*row)[1] != db::SqlValue(checksum(id, *bytes))) return std::nullopt;
  return *bytes;
}

}  // namespace tuner
