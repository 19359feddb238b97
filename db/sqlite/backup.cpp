// A copy of a database while others write it.
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "db/sqlite/sqlite_store.h"

namespace tuner::db {

namespace {

constexpr int kPagesAtATime = 1024;

// Closed with what is left behind.
struct Target {
  sqlite3* db = nullptr;
  ~Target() { sqlite3_close(db); }
};

Status refused(const std::string& path, sqlite3* db) {
  const int cause = sqlite3_system_errno(db);
  return failed(path, ": cannot be written: ", sqlite3_errmsg(db),
                cause == 0 ? "" : str(": ", std::strerror(cause)));
}

}  // namespace

// One read transaction around all steps: every page is of the same moment, however much is written meanwhile.
Status Connection::copy_to(const std::string& path, const std::stop_token& stop,
                           const std::function<void(int64_t, int64_t)>& after_pages) {
  RETURN_IF_ERROR(exec("BEGIN; SELECT count(*) FROM sqlite_schema"));
  const Status copied = [&]() -> Status {
    Target target;
    if (sqlite3_open_v2(path.c_str(), &target.db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr) !=
        SQLITE_OK)
      return refused(path, target.db);
    sqlite3_backup* const backup = sqlite3_backup_init(target.db, "main", db_, "main");
    if (backup == nullptr) return refused(path, target.db);
    int rc = SQLITE_OK;
    while (rc == SQLITE_OK && !stop.stop_requested()) {
      rc = sqlite3_backup_step(backup, kPagesAtATime);
      const int64_t pages = sqlite3_backup_pagecount(backup);
      if (after_pages) after_pages(pages - sqlite3_backup_remaining(backup), pages);
    }
    const int finished = sqlite3_backup_finish(backup);
    if (rc == SQLITE_OK) return Status(StatusCode::kAborted, path + ": interrupted, nothing was kept");
    return finished == SQLITE_OK ? Status::ok() : refused(path, target.db);
  }();
  const Status ended = exec("ROLLBACK");
  return copied ? ended : copied;
}

Status SqliteStore::backup(const std::string& path, std::stop_token stop,
                           const std::function<void(int64_t, int64_t)>& after_pages) const {
  struct stat info {};
  if (::lstat(path.c_str(), &info) == 0)
    return invalid_argument(path, ": is there already, and a backup replaces nothing. Give another name");
  if (errno != ENOENT) return invalid_argument(path, ": ", std::strerror(errno));
  const std::string part = str(path, ".part-", ::getpid());
  ASSIGN_OR_RETURN(const std::unique_ptr<Connection> reader, take_reader());
  Status copied = reader->copy_to(part, stop, after_pages);
  if (copied && ::rename(part.c_str(), path.c_str()) != 0) copied = failed(path, ": ", std::strerror(errno));
  if (copied) return copied;
  for (const char* rest : {"", "-journal", "-wal", "-shm"}) ::unlink((part + rest).c_str());
  return copied;
}

}  // namespace tuner::db
