#include "measure_server/worker/artifact_cache.h"

#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <vector>

namespace tuner {
namespace {

namespace fs = std::filesystem;
using Time = fs::file_time_type;

// Files that go together, and when the last of them was used.
struct Group {
  std::vector<fs::path> files;
  int64_t bytes = 0;
  Time used = Time::min();
};

int64_t bytes_on_disk(const fs::path& file) {
  struct stat info {};
  return stat(file.c_str(), &info) == 0 ? static_cast<int64_t>(info.st_blocks) * 512 : 0;
}

std::vector<Group> groups_of(const fs::path& folder) {
  std::map<std::string, Group> groups;
  std::error_code error;
  for (fs::directory_iterator file(folder, error), end; !error && file != end; file.increment(error)) {
    std::error_code gone;
    if (!file->is_regular_file(gone)) continue;
    const std::string name = file->path().filename().string();
    Group& group = groups[name.substr(0, name.find('.'))];
    group.files.push_back(file->path());
    group.bytes += bytes_on_disk(file->path());
    const Time used = file->last_write_time(gone);
    if (!gone) group.used = std::max(group.used, used);
  }
  std::vector<Group> result;
  for (auto& [name, group] : groups) result.push_back(std::move(group));
  std::sort(result.begin(), result.end(), [](const Group& a, const Group& b) { return a.used < b.used; });
  return result;
}

int64_t total(const std::vector<Group>& groups) {
  int64_t bytes = 0;
  for (const Group& group : groups) bytes += group.bytes;
  return bytes;
}

void remove(const Group& group) {
  std::error_code ignored;
  for (const fs::path& file : group.files) fs::remove(file, ignored);
}

}  // namespace

void touch_artifact(const fs::path& artifacts, const std::string& digest, const fs::path& source_entry) {
  const Time now = Time::clock::now();
  std::error_code ignored;
  for (const char* ending : {".so", ".cubin", ".json"})
    fs::last_write_time(artifacts / (digest + ending), now, ignored);
  fs::last_write_time(source_entry, now, ignored);
}

int64_t prune_artifacts(const fs::path& artifacts, const CacheLimits& limits) {
  const std::vector<Group> made = groups_of(artifacts), sources = groups_of(artifacts / "by_source");
  int64_t left = total(made) + total(sources);
  if (left <= limits.most_bytes) return left;
  const int64_t wanted = limits.most_bytes / 4 * 3;
  const Time young = Time::clock::now() - limits.kept_for;
  // Entries that lead to an artifact are used when it is, so both lists can be gone through by age together.
  auto source = sources.begin();
  for (auto artifact = made.begin(); left > wanted;) {
    const bool take_source =
        source != sources.end() && (artifact == made.end() || source->used <= artifact->used);
    if (!take_source && artifact == made.end()) break;
    const Group& oldest = take_source ? *source : *artifact;
    if (oldest.used >= young) break;
    remove(oldest);
    left -= oldest.bytes;
    take_source ? ++source : ++artifact;
  }
  return left;
}

}  // namespace tuner
