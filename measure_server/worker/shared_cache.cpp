#include "measure_server/worker/shared_cache.h"

#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <vector>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/base/output_file.h"
#include "measure_server/worker/work_folder.h"

namespace tuner {
namespace {

namespace fs = std::filesystem;
using Time = fs::file_time_type;
constexpr char kComplete[] = "complete";

// What goes together: files, the one first by which the others are found, or a folder with all that is in it.
struct Entry {
  std::vector<fs::path> paths;
  int64_t bytes = 0;
  Time used = Time::min();
};

int64_t bytes_on_disk(const fs::path& file) {
  struct stat info {};
  return stat(file.c_str(), &info) == 0 ? static_cast<int64_t>(info.st_blocks) * 512 : 0;
}

Time used_at(const fs::path& file) {
  std::error_code gone;
  const Time time = fs::last_write_time(file, gone);
  return gone ? Time::min() : time;
}

// One a file, or one for all files of a name but for its endings.
void add_files(const fs::path& folder, bool by_stem, std::vector<Entry>& out) {
  std::map<std::string, Entry> found;
  std::error_code error;
  for (fs::directory_iterator file(folder, error), end; !error && file != end; file.increment(error)) {
    std::error_code gone;
    if (!file->is_regular_file(gone)) continue;
    const std::string name = file->path().filename().string();
    Entry& entry = found[by_stem ? name.substr(0, name.find('.')) : name];
    entry.paths.push_back(file->path());
    entry.bytes += bytes_on_disk(file->path());
    entry.used = std::max(entry.used, used_at(file->path()));
  }
  for (auto& [name, entry] : found) out.push_back(std::move(entry));
}

void add_references(const fs::path& folder, std::vector<Entry>& out) {
  std::error_code error;
  for (fs::directory_iterator task(folder, error), end; !error && task != end; task.increment(error)) {
    std::error_code gone;
    if (!task->is_directory(gone)) continue;
    // Without `complete` the rest is nobody's; one that is being made is younger than kept_for.
    Entry entry{.paths = {task->path() / kComplete, task->path()}, .used = used_at(task->path() / kComplete)};
    for (fs::directory_iterator file(task->path(), gone); !gone && file != end; file.increment(gone)) {
      entry.bytes += bytes_on_disk(file->path());
      entry.used = std::max(entry.used, used_at(file->path()));
    }
    out.push_back(std::move(entry));
  }
}

void remove(const Entry& entry) {
  std::error_code ignored;
  for (const fs::path& path : entry.paths) fs::remove_all(path, ignored);
}

}  // namespace

void touch_artifact(const fs::path& artifacts, const std::string& digest, const fs::path& source_entry) {
  const Time now = Time::clock::now();
  std::error_code ignored;
  for (const std::string& file : artifact_files(artifacts, digest)) fs::last_write_time(file, now, ignored);
  fs::last_write_time(source_entry, now, ignored);
}

void touch_reference(const fs::path& folder) {
  std::error_code ignored;
  fs::last_write_time(folder / kComplete, Time::clock::now(), ignored);
}

int64_t prune_cache(const fs::path& shared, const CacheLimits& limits) {
  std::vector<Entry> entries;
  add_files(shared / "artifacts", /*by_stem=*/true, entries);
  add_files(shared / "artifacts" / "by_source", /*by_stem=*/false, entries);
  add_files(shared / "cubins", /*by_stem=*/false, entries);
  add_files(shared / "sources", /*by_stem=*/false, entries);
  add_references(shared / "references", entries);
  int64_t left = 0;
  for (const Entry& entry : entries) left += entry.bytes;
  if (left <= limits.most_bytes) return left;
  const int64_t wanted = limits.most_bytes / 4 * 3;
  const Time young = Time::clock::now() - limits.kept_for;
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& oldest : entries) {
    if (left <= wanted || oldest.used >= young) break;
    remove(oldest);
    left -= oldest.bytes;
  }
  return left;
}

void CacheKeeper::keep(const fs::path& shared, const CacheLimits& limits) {
  constexpr int64_t kMuch = int64_t{64} << 20;
  constexpr std::chrono::minutes kLongAgo{10};
  const fs::path pruned = shared / "pruned";
  const bool much = added_ >= std::min(kMuch, limits.most_bytes / 16);
  if (added_ == 0 || (!much && used_at(pruned) > Time::clock::now() - kLongAgo)) return;
  prune_cache(shared, limits);
  added_ = 0;
  (void)replace_file(pruned, "");  // if it cannot be written, the next one looks, too
}

void remove_old_work_folders(const fs::path& user_cache) {
  constexpr std::chrono::hours kAWeek{7 * 24};
  std::error_code error;
  for (fs::directory_iterator folder(user_cache, error), end; !error && folder != end;
       folder.increment(error)) {
    if (!folder->path().filename().string().starts_with("worker-")) continue;
    std::error_code gone;
    const auto owed = fs::file_size(folder->path() / "results.spool", gone);
    if (!gone && owed > 0) continue;
    Time used = used_at(folder->path());
    for (const char* name : {"results.spool", "worker.log"})
      used = std::max(used, used_at(folder->path() / name));
    if (used < Time::clock::now() - kAWeek && !work_folder_in_use(folder->path()))
      fs::remove_all(folder->path(), gone);
  }
}

}  // namespace tuner
