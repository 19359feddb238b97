// Opening, and the pool of readers.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "compiler_core/base/output_file.h"
#include "db/sqlite/migrate.h"
#include "db/sqlite/sql.h"
#include "db/sqlite/sqlite_store.h"

namespace tuner {

namespace fs = std::filesystem;

namespace db {

namespace {

// A file that was just made is only there after a power cut if its folder is on disk too.
Status sync_folder(const fs::path& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return failed(folder.string(), ": ", std::strerror(errno));
  const int rc = ::fsync(fd);
  const int error = errno;
  ::close(fd);
  return rc == 0 ? Status::ok() : failed(folder.string(), ": fsync: ", std::strerror(error));
}

fs::path folder_of(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  return folder.empty() ? fs::path(".") : folder;
}

// The error with the path before it, unless it begins so already.
Status named(const std::string& path, const Status& status) {
  return status.with_context(status.message().starts_with(path) ? "" : path + ": ");
}

// The first folder on the way to `folder` that is not there.
fs::path first_missing(const fs::path& folder) {
  fs::path missing = folder;
  std::error_code error;
  for (fs::path p = folder; !p.empty() && !fs::exists(p, error); p = p.parent_path()) missing = p;
  return missing;
}

// A path that somebody typed must lead somewhere; only the folder of the default database is made for him.
Status need_folder(const std::string& path, const fs::path& folder) {
  std::error_code error;
  if (fs::is_directory(folder, error)) return Status::ok();
  if (path != default_db_path())
    return invalid_argument(path, ": the folder ", first_missing(folder).string(),
                            " does not exist. Make it, or give another file ", how_a_database_is_given());
  fs::create_directories(folder, error);
  if (!error) return Status::ok();
  return failed(path, ": its folder cannot be made: ", error.message(), ". Give another file ",
                how_a_database_is_given());
}

// What no database can be. Does not open the file: closing it would take SQLite's locks from this process.
Status check_kind(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0)
    return errno == ENOENT ? Status::ok() : invalid_argument(path, ": ", std::strerror(errno));
  if (S_ISDIR(info.st_mode)) return invalid_argument(path, ": is a folder, expected a database file");
  if (!S_ISREG(info.st_mode)) return invalid_argument(path, ": is no regular file, expected a database file");
  return Status::ok();
}

// A database that a program has open keeps what is new in its log, at first also its tables. Bytes 18 and 19
// of the header say that there is a log (2); without it, a file without tables is what was left of a copy.
Status refuse_without_log(Connection& connection, const std::string& real) {
  std::string header(20, 0);
  if (!std::ifstream(real, std::ios::binary).read(header.data(), std::ssize(header)) || header[18] != 2)
    return Status::ok();
  ASSIGN_OR_RETURN(const SqlRow tables, connection.one("SELECT count(*) FROM sqlite_schema"));
  if (tables != SqlRow{int64_t{0}}) return Status::ok();
  return invalid_argument(
      "has no tables, and its log (-wal) is missing: it was copied while a program had it open. Copy it "
      "again "
      "with `tuner admin backup`, or both files");
}

// Refuses a damaged file and one of anybody else before anything is made beside it. An empty file is a
// database that begins. The look takes no lock and makes no log; where there is a log, opening in earnest
// decides.
// `real`: where the links of the path lead, which is where a log would lie.
Status check_contents(const std::string& path, const std::string& real) {
  struct stat info {};
  const auto has_log = [&] { return ::access((real + "-wal").c_str(), F_OK) == 0; };
  if (::stat(real.c_str(), &info) != 0 || info.st_size == 0 || has_log()) return Status::ok();
  ASSIGN_OR_RETURN(const std::unique_ptr<Connection> connection,
                   Connection::open(real, Connection::Access::kImmutable));
  Status status = refuse_foreign(*connection, current_schema());
  if (status) status = refuse_without_log(*connection, real);
  if (status || has_log()) return Status::ok();  // a writer came meanwhile: what was read may be half of it
  const std::string& why = status.message();
  const size_t begin = why.starts_with(real + ": ") ? real.size() + 2 : 0;
  return Status(connection->damaged() ? StatusCode::kInvalidArgument : status.code(),
                str(path, ": ", why.substr(begin)));
}

// Two names of one file would each have a lock and a write-ahead log of their own.
Status refuse_hard_links(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || info.st_nlink < 2) return Status::ok();
  return invalid_argument(path, ": has ", info.st_nlink,
                          " names (hard links), expected one: a second writer could come in by another. "
                          "Remove the others, or give a copy ",
                          how_a_database_is_given());
}

// What opening made of a file that is not there yet; removed when it comes to nothing.
void remove_database(const std::string& path) {
  for (const char* part : {"", "-wal", "-shm", "-journal"}) ::unlink((path + part).c_str());
}

Status configure_writer(Connection& connection) {
  RETURN_IF_ERROR(refuse_foreign(connection, current_schema()));
  ASSIGN_OR_RETURN(const SqlRow mode, connection.one("PRAGMA journal_mode = WAL"));
  if (mode != SqlRow{std::string("wal")}) return failed("its filesystem cannot hold a write-ahead log (WAL)");
  RETURN_IF_ERROR(connection.exec(
      "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 1000; PRAGMA journal_size_limit = 67108864"));
  RETURN_IF_ERROR(prepare_schema(connection, current_schema()));
  // Only now: a migration replaces tables that others refer to.
  return connection.exec("PRAGMA foreign_keys = ON");
}

Result<int64_t> last_sequence_number(Connection& connection) {
  int64_t last = 0;
  for (const char* sql :
       {"SELECT max(job_seq) FROM job", "SELECT max(seq) FROM trial", kLargestFencing,
        "SELECT max(open_race_id) FROM open_race", "SELECT max(fencing) FROM open_race",
        "SELECT max(record_id) FROM record", "SELECT max(seq) FROM event",
        "SELECT max(proposal_seq) FROM proposal", "SELECT max(race_id) FROM race",
        "SELECT max(learned_id) FROM learned", "SELECT max(quarantine_id) FROM quarantine",
        "SELECT max(poison_id) FROM poison", "SELECT max(pruned_id) FROM pruned",
        "SELECT max(origin_id) FROM origin", "SELECT max(foreign_task_id) FROM foreign_task",
        "SELECT max(foreign_id) FROM foreign_record"}) {
    ASSIGN_OR_RETURN(const SqlRow row, connection.one(sql));
    if (const auto* value = !row.empty() ? std::get_if<int64_t>(&row[0]) : nullptr)
      last = std::max(last, *value);
  }
  return last;
}

}  // namespace

bool is_damaged_file(const std::string& path) {
  constexpr std::string_view kBegin = "SQLite format 3";
  std::string begin(kBegin.size(), 0);
  if (!check_kind(path).is_ok() ||
      !std::ifstream(path, std::ios::binary).read(begin.data(), std::ssize(begin)))
    return false;
  if (begin != kBegin) return false;
  const Result<std::unique_ptr<Connection>> connection =
      Connection::open(path, Connection::Access::kImmutable);
  return connection && !refuse_foreign(**connection, current_schema()).is_ok() && (*connection)->damaged();
}

Result<std::unique_ptr<Store>> SqliteStore::open_for_writing(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string real, follow_links(path));
  const fs::path folder = folder_of(real);
  RETURN_IF_ERROR(need_folder(path, folder));
  RETURN_IF_ERROR(check_kind(path));
  RETURN_IF_ERROR(refuse_hard_links(path));
  RETURN_IF_ERROR(refuse_shared_filesystem(folder.string()));
  RETURN_IF_ERROR(check_contents(path, real));
  Result<WriterLock> lock = WriterLock::acquire(real + "-lock");
  if (!lock && lock.status().code() == StatusCode::kAborted)
    return Status(StatusCode::kAborted,
                  str(path, ": is open for writing already: ", lock.message(),
                      ". Wait for it, stop it, or give another file ", how_a_database_is_given()));
  if (!lock) return lock.status();

  const bool is_new = ::access(real.c_str(), F_OK) != 0;
  std::unique_ptr<SqliteStore> store(new SqliteStore(path, Connection::Access::kReadOnly));
  store->lock_.emplace(*std::move(lock));
  const Status begun = store->begin_writing(folder.string());
  if (begun) return std::unique_ptr<Store>(std::move(store));
  if (is_new) remove_database(real);
  store->lock_->undo();
  return begun;
}

Status SqliteStore::begin_writing(const std::string& folder) {
  ASSIGN_OR_RETURN(std::unique_ptr<Connection> connection,
                   Connection::open(path_, Connection::Access::kReadWrite));
  RETURN_IF_ERROR(named(path_, configure_writer(*connection)));
  RETURN_IF_ERROR(sync_folder(folder));
  ASSIGN_OR_RETURN(last_seq_, last_sequence_number(*connection));
  writer_ = std::make_unique<Writer>(std::move(connection));
  return Status::ok();
}

Result<std::unique_ptr<Store>> SqliteStore::open_for_reading(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    if (errno == ENOENT || errno == ENOTDIR)
      return not_found(
          path, ": there is no database yet. The first `tuner submit FILE` makes it; or give another file ",
          how_a_database_is_given());
    return invalid_argument(path, ": ", std::strerror(errno));
  }
  RETURN_IF_ERROR(check_kind(path));
  if (info.st_size == 0) return not_found(path, ": holds nothing yet");
  ASSIGN_OR_RETURN(const std::string real, follow_links(path));
  RETURN_IF_ERROR(check_contents(path, real));

  // Reading a WAL database needs its -shm file. Where that cannot be made, the file can still be read as it
  // stands if no writer left anything in the log.
  Connection::Access access = Connection::Access::kReadOnly;
  const std::string folder = folder_of(real).string();
  if (::access(folder.c_str(), W_OK) != 0 && ::access((real + "-shm").c_str(), F_OK) != 0) {
    struct stat wal {};
    if (::stat((real + "-wal").c_str(), &wal) == 0 && wal.st_size > 0)
      return failed(path, ": its write-ahead log holds unfinished work and ", folder,
                    " is not writable. Copy the file and its -wal to a writable folder and give the copy ",
                    how_a_database_is_given());
    access = Connection::Access::kImmutable;
  }
  std::unique_ptr<SqliteStore> store(new SqliteStore(path, access));
  const Status checked =
      store->read([](Connection& c) -> Status { return check_schema(c, current_schema()); });
  if (!checked) return named(path, checked);
  return std::unique_ptr<Store>(std::move(store));
}

Status SqliteStore::write(Writer::Operation operation) {
  if (writer_ == nullptr) return failed(path_, ": is open for reading only");
  return writer_->write(std::move(operation));
}

Result<std::unique_ptr<Connection>> SqliteStore::take_reader() const {
  {
    const std::lock_guard lock(readers_mutex_);
    if (!idle_readers_.empty()) {
      std::unique_ptr<Connection> reader = std::move(idle_readers_.back());
      idle_readers_.pop_back();
      return reader;
    }
  }
  return Connection::open(path_, reading_);
}

void SqliteStore::give_back(std::unique_ptr<Connection> reader) const {
  const std::lock_guard lock(readers_mutex_);
  constexpr size_t kIdle = 8;
  if (idle_readers_.size() < kIdle) idle_readers_.push_back(std::move(reader));
}

Result<StoredJob> find_job_row(Connection& connection, std::string_view job_id) {
  ASSIGN_OR_RETURN(const SqlRow row, connection.one(kJobById, {std::string(job_id)}));
  if (row.empty()) return not_found("no job \"", job_id, "\". `tuner jobs` lists them");
  return job_from_row(row);
}

Result<StoredTrial> find_trial_row(Connection& connection, int64_t seq) {
  ASSIGN_OR_RETURN(const SqlRow row, connection.one(kTrialBySeq, {seq}));
  if (row.empty()) return not_found("no trial \"", trial_id_text(seq), "\" in this database");
  return trial_from_row(row);
}

Result<StoredTask> find_task_row(Connection& connection, int64_t task_id) {
  ASSIGN_OR_RETURN(const SqlRow row, connection.one(kTaskById, {task_id}));
  if (row.empty()) return failed("row ", task_id, " of table task is missing: the file is damaged");
  return task_from_row(row);
}

}  // namespace db
}  // namespace tuner
