// The results of a pack on disk: one line of JSON per candidate and round, appended and flushed at once.
// `tuner records import` reads it.
//
// A line has the fields of a measure record and says what was measured: "pack" (its id), "task", "candidate",
// "round", "workload", "target", "template", "template_version", "config". It also has what was expected:
// "picked", "estimated_ns", "predicted_rank" (pack_file.h). Where keys of workloads name documents, those
// come first, a line each: "format", "pack", and the document in base64. A last line without a newline was
// left by a kill: it is dropped and measured again. But if that line does not begin like a result, the file
// is somebody else's and is refused.
#pragma once

#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>

#include "measure_server/runner/pack_file.h"

namespace tuner {

// The "format" of each line, and the oldest that is still read. The meaning of a line does not change within
// one format.
//   2: "caches"
//   3: documents
inline constexpr int kPackResultsFormat = 3, kOldestPackResultsFormat = 1;

// The part of a result that the plan needs.
struct PackOutcome {
  bool ok = false;
  double time_ns = 0;  // median
};

// Where and with what the pack ran: the part of a line that is the same for all.
struct PackEnvironment {
  std::string hardware, host;
  double peak_gflops = 0;
};

class PackResults {
 public:
  // Opens or creates the file and keeps it locked while this lives. InvalidArgument: it holds something else
  // (and is left as it is) or results of another pack; it is not a regular file; or another process holds it.
  static Result<PackResults> open(const std::string& path, const PackFile& pack);
  // Opens for reading: the file must exist, is not changed, and add() fails.
  static Result<PackResults> load(const std::string& path, const PackFile& pack);

  const PackOutcome* find(size_t task, size_t candidate, size_t round) const;
  // When it returns OK, the line is flushed to the system.
  Status add(size_t task, size_t candidate, size_t round, const RunRequest& request, const RunReply& reply,
             const PackEnvironment& environment);
  size_t count() const { return known_.size(); }

 private:
  explicit PackResults(const PackFile& pack) : pack_(&pack) {}
  Status read(const std::string& path, int64_t& good_bytes);
  Status read_line(const std::string& line);
  Status add_documents();
  Status write_line(const std::string& text);

  const PackFile* pack_;
  std::string path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_{nullptr, std::fclose};
  std::map<std::tuple<size_t, size_t, size_t>, PackOutcome> known_;
  std::set<std::string> documents_;  // in base64, those that are in the file
};

}  // namespace tuner
