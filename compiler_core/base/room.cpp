#include "compiler_core/base/room.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "compiler_core/base/input_file.h"

namespace tuner {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& file) {
  const Result<std::string> text = read_whole(file);
  return text ? *text : std::string();
}

int64_t number_at(std::string_view text) {
  int64_t value = -1;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

const char* absolute_path(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && value[0] == '/' ? value : nullptr;
}

}  // namespace

int64_t memory_left_in_groups(const std::string& root, std::string_view self) {
  if (!self.starts_with("0::/")) return INT64_MAX;
  int64_t left = INT64_MAX;
  for (fs::path path = self.substr(3, self.find('\n') - 3);; path = path.parent_path()) {
    const fs::path folder = root + path.string();
    const int64_t most = number_at(text_of(folder / "memory.max"));  // "max": none
    const int64_t used = number_at(text_of(folder / "memory.current"));
    if (most >= 0 && used >= 0) left = std::min(left, std::max<int64_t>(most - used, 0));
    if (path == path.parent_path()) return left;
  }
}

std::string user_cache_folder() {
  if (const char* cache = absolute_path("XDG_CACHE_HOME")) return str(cache, "/tuner");
  if (const char* home = absolute_path("HOME")) return str(home, "/.cache/tuner");
  return str("/tmp/tuner-", getuid(), "/tuner");
}

std::string shared_cache_folder() { return user_cache_folder() + "/shared"; }

int64_t available_memory_in(std::string_view meminfo) {
  constexpr std::string_view kKey = "MemAvailable:";
  const size_t at = meminfo.find(kKey);
  if (at == std::string_view::npos) return -1;
  std::string_view rest = meminfo.substr(at + kKey.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  const int64_t kib = number_at(rest);
  return kib < 0 ? -1 : kib * 1024;
}

int64_t available_memory() {
  const int64_t of_system = available_memory_in(text_of("/proc/meminfo"));
  return std::min(of_system < 0 ? INT64_MAX : of_system,
                  memory_left_in_groups("/sys/fs/cgroup", text_of("/proc/self/cgroup")));
}

int64_t available_disk(const std::string& path) {
  std::error_code error;
  fs::path folder = fs::absolute(path, error);
  while (!fs::exists(folder, error) && folder.has_parent_path() && folder != folder.parent_path())
    folder = folder.parent_path();
  const fs::space_info space = fs::space(folder, error);
  if (error || space.available > static_cast<uintmax_t>(INT64_MAX)) return INT64_MAX;
  return static_cast<int64_t>(space.available);
}

std::string bytes_text(int64_t bytes) {
  char text[32];
  const double mib = static_cast<double>(bytes) / (1 << 20);
  if (mib >= 1024)
    std::snprintf(text, sizeof text, "%.1f GiB", mib / 1024);
  else
    std::snprintf(text, sizeof text, "%.0f MiB", mib);
  return text;
}

}  // namespace tuner
