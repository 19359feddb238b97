// The data files of a pack's tasks while it runs: inputs, made from their seeds, and reference answers. Tasks
// take turns, so files stay for the next turn as long as there is room; those used longest ago go first.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>

#include "measure_server/runner/pack_file.h"

namespace tuner {

class PackData {
 public:
  // Files lie under `folder`, which must exist; they are the caller's to remove in the end. `capacity_bytes`
  // is for all tasks together; 0: as much as is sensible on that disk.
  PackData(const PackFile& pack, std::filesystem::path folder, int64_t capacity_bytes = 0);

  // Fills inputs, references and checker of the request, after making the files of the task if they are not
  // there.
  Status prepare(size_t task, RunRequest& request);

 private:
  struct Kept {
    int64_t bytes = 0;
    uint64_t used = 0;
  };
  std::filesystem::path folder_of(size_t task) const { return folder_ / ("task" + std::to_string(task)); }
  Status make(size_t task, int64_t& bytes) const;
  Result<std::string> checker(size_t task);
  void make_room(int64_t bytes);

  const PackFile& pack_;
  const std::filesystem::path folder_;
  int64_t capacity_bytes_;
  uint64_t clock_ = 0;
  std::map<size_t, Kept> kept_;             // by task
  std::map<size_t, std::string> checkers_;  // paths by task; empty: none
};

}  // namespace tuner
