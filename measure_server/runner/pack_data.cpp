#include "measure_server/runner/pack_data.h"

#include <algorithm>

#include "compiler_core/base/output_file.h"

namespace tuner {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kMostBytes = int64_t{8} << 30;

int64_t sensible_capacity(const fs::path& folder) {
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  return error ? kMostBytes : std::min(kMostBytes, static_cast<int64_t>(space.available / 2));
}

}  // namespace

PackData::PackData(const PackFile& pack, fs::path folder, int64_t capacity_bytes)
    : pack_(pack),
      folder_(std::move(folder)),
      capacity_bytes_(capacity_bytes > 0 ? capacity_bytes : sensible_capacity(folder_)) {}

Status PackData::prepare(size_t task, RunRequest& request) {
  const PackTask& t = pack_.pack().tasks[task];
  if (!kept_.contains(task)) {
    int64_t needed = 0;
    for (const auto& input : t.inputs) needed += input.count * dtype_bytes(input.dtype);
    make_room(needed);
    int64_t made = 0;
    RETURN_IF_ERROR(make(task, made));
    kept_[task].bytes = made;
  }
  kept_[task].used = ++clock_;
  const fs::path folder = folder_of(task);
  for (const auto& input : t.inputs) request.inputs.push_back({input.arg, folder / (input.arg + ".bin")});
  for (const auto& reference : t.references)
    request.references.push_back({reference.arg, folder / (reference.arg + ".ref")});
  ASSIGN_OR_RETURN(request.checker, checker(task));
  return Status::ok();
}

// One file for all tasks that have the same: it is loaded once.
Result<std::string> PackData::checker(size_t task) {
  const auto [known, is_new] = checkers_.try_emplace(task);
  if (!is_new) return known->second;
  ASSIGN_OR_RETURN(const std::string cubin, pack_.checker(task));
  if (cubin.empty()) return std::string();
  const fs::path path = folder_ / (sha256_hex(cubin) + ".checks");
  if (!fs::exists(path)) RETURN_IF_ERROR(replace_file(path, cubin, Durability::kCached));
  return known->second = path;
}

void PackData::make_room(int64_t bytes) {
  for (;;) {
    int64_t held = bytes;
    auto oldest = kept_.end();
    for (auto it = kept_.begin(); it != kept_.end(); ++it) {
      held += it->second.bytes;
      if (oldest == kept_.end() || it->second.used < oldest->second.used) oldest = it;
    }
    if (held <= capacity_bytes_ || oldest == kept_.end()) return;
    std::error_code ignored;
    fs::remove_all(folder_of(oldest->first), ignored);
    kept_.erase(oldest);
  }
}

Status PackData::make(size_t task, int64_t& bytes) const {
  const PackTask& t = pack_.pack().tasks[task];
  const fs::path folder = folder_of(task);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return failed(folder.string(), ": ", error.message());
  const auto write = [&](const std::string& name, const std::string& content) {
    bytes += static_cast<int64_t>(content.size());
    return replace_file(folder / name, content, Durability::kCached);
  };
  for (size_t i = 0; i < t.inputs.size(); ++i) {
    ASSIGN_OR_RETURN(const std::string content, pack_.input(task, i));
    RETURN_IF_ERROR(write(t.inputs[i].arg + ".bin", content));
  }
  for (size_t i = 0; i < t.references.size(); ++i) {
    ASSIGN_OR_RETURN(const std::string content, pack_.reference(task, i));
    RETURN_IF_ERROR(write(t.references[i].arg + ".ref", content));
  }
  return Status::ok();
}

}  // namespace tuner
