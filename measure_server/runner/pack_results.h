// The results of a pack, on disk: a line of JSON for each candidate and round, appended and flushed as it is
// found. `tuner records import` reads it.
//
// A line has what a measure record has and what it is of: "pack" (its id), "task", "candidate", "round",
// "workload", "target", "template", "template_version", "config". Beside the time stands what was expected:
// "picked", "estimated_ns", "predicted_rank" (pack_file.h). A last line without its end is what a kill left:
// it is dropped, and measured again; one that does not begin as a result does is somebody's, and refused.
#pragma once

#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "measure_server/runner/pack_file.h"

namespace tuner {

// "format" of each line, and the oldest that is still read. What a line means does not change within one.
inline constexpr int kPackResultsFormat = 2, kOldestPackResultsFormat = 1;

// What the plan needs to know of a result.
struct PackOutcome {
  bool ok = false;
  double time_ns = 0;  // the median
};

// Where and with what: the part of a line that is the same for all.
struct PackEnvironment {
  std::string hardware, host;
  double peak_gflops = 0;
};

class PackResults {
 public:
  // Opens or creates, and keeps the file locked for as long as this lives. InvalidArgument: it holds
  // something else (which is left as it is), or results of another pack; it is no regular file; another
  // process has it.
  static Result<PackResults> open(const std::string& path, const PackFile& pack);
  // For reading only: the file must be there, is not changed, and add() fails.
  static Result<PackResults> load(const std::string& path, const PackFile& pack);

  const PackOutcome* find(size_t task, size_t candidate, size_t round) const;
  // On disk (flushed to the system) when it returns OK.
  Status add(size_t task, size_t candidate, size_t round, const RunRequest& request, const RunReply& reply,
             const PackEnvironment& environment);
  size_t count() const { return known_.size(); }

 private:
  explicit PackResults(const PackFile& pack) : pack_(&pack) {}
  Status read(const std::string& path, int64_t& good_bytes);
  Status read_line(const std::string& line);

  const PackFile* pack_;
  std::string path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_{nullptr, std::fclose};
  std::map<std::tuple<size_t, size_t, size_t>, PackOutcome> known_;
};

}  // namespace tuner
