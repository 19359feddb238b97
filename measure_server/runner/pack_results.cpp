#include "measure_server/runner/pack_results.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "compiler_core/base/base64.h"
#include "compiler_core/base/clock.h"
#include "compiler_core/base/json_reader.h"
#include "compiler_core/base/statistics.h"

namespace tuner {

using json_input::kRequired;
using json_input::Reader;
using nlohmann::json;

namespace {

// How each line begins: nlohmann::json writes keys in alphabetical order.
constexpr std::string_view kLineBegins[] = {"{\"artifact\":", "{\"document\":"};

// What a kill leaves of a line; anything else belongs to somebody.
bool is_unfinished_line(std::string_view tail) {
  return std::ranges::any_of(kLineBegins, [&](std::string_view begin) {
    const size_t n = std::min(tail.size(), begin.size());
    return tail.substr(0, n) == begin.substr(0, n);
  });
}

// Before it is opened or read: a device may do anything then, and may have no end.
Status check_regular(const std::string& path) {
  struct stat st;
  if (::stat(path.c_str(), &st) == 0 && !S_ISREG(st.st_mode))
    return invalid_argument(path, ": not a regular file; results are appended to one, name another");
  return Status::ok();
}

// "process 4711", from a line of /proc/locks: "1: FLOCK ADVISORY WRITE 4711 08:01:1234 0 EOF". Only the inode
// is compared: the device there is not always that of stat().
std::string lock_holder(int fd) {
  struct stat st;
  std::ifstream locks("/proc/locks");
  for (std::string line; ::fstat(fd, &st) == 0 && std::getline(locks, line);) {
    std::istringstream words(line);
    std::string number, kind, mode, access, pid, file;
    words >> number >> kind >> mode >> access >> pid >> file;
    if (kind == "FLOCK" && file.ends_with(str(":", st.st_ino)) && pid != "0") return "process " + pid;
  }
  return "another process";
}

// Held until the descriptor is closed, so a kill leaves none behind.
Status lock(int fd, const std::string& path) {
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return Status::ok();
  if (errno == EWOULDBLOCK)
    return invalid_argument(path, ": ", lock_holder(fd),
                            " is writing results to it; wait for it, or write to another file");
  return invalid_argument(path, ": cannot be locked: ", std::strerror(errno),
                          "; write to a file on a local disk");
}

}  // namespace

Result<PackResults> PackResults::open(const std::string& path, const PackFile& pack) {
  RETURN_IF_ERROR(check_regular(path));
  PackResults results(pack);
  results.path_ = path;
  // Close on exec: a runner left behind must not hold the lock.
  results.file_.reset(std::fopen(path.c_str(), "abe"));
  if (results.file_ == nullptr) return invalid_argument(path, ": cannot be written: ", std::strerror(errno));
  RETURN_IF_ERROR(lock(::fileno(results.file_.get()), path));
  int64_t good_bytes = 0;
  RETURN_IF_ERROR(results.read(path, good_bytes));
  if (::ftruncate(::fileno(results.file_.get()), good_bytes) != 0)
    return invalid_argument(path, ": cannot be written: ", std::strerror(errno));
  RETURN_IF_ERROR(results.add_documents());
  return results;
}

Status PackResults::add_documents() {
  for (size_t task = 0; task < pack_->pack().tasks.size(); ++task) {
    ASSIGN_OR_RETURN(const std::string document, pack_->document(task));
    const std::string text = to_base64(document);
    if (document.empty() || !documents_.insert(text).second) continue;
    RETURN_IF_ERROR(write_line(
        json{{"format", kPackResultsFormat}, {"pack", pack_->id()}, {"document", text}}.dump() + "\n"));
  }
  return Status::ok();
}

Status PackResults::write_line(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size() || std::fflush(file_.get()) != 0)
    return failed(path_, ": cannot be written: ", std::strerror(errno));
  return Status::ok();
}

Result<PackResults> PackResults::load(const std::string& path, const PackFile& pack) {
  if (::access(path.c_str(), R_OK) != 0)
    return invalid_argument(path, ": cannot be read: ", std::strerror(errno));
  RETURN_IF_ERROR(check_regular(path));
  PackResults results(pack);
  results.path_ = path;
  int64_t good_bytes = 0;
  RETURN_IF_ERROR(results.read(path, good_bytes));
  return results;
}

Status PackResults::read(const std::string& path, int64_t& good_bytes) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return invalid_argument(path, ": cannot be read: ", std::strerror(errno));
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (in.eof()) {  // without its end
      if (is_unfinished_line(line)) break;
      return invalid_argument(path, ": line ", number,
                              ": not a result of run-pack; write to another file, or remove this one");
    }
    RETURN_IF_ERROR(read_line(line).with_context(str(path, ": line ", number, ": ")));
    good_bytes += static_cast<int64_t>(line.size()) + 1;
  }
  return Status::ok();
}

Status PackResults::read_line(const std::string& line) {
  const auto foreign = [] {
    return invalid_argument("not a result of run-pack; write to another file, or remove this one");
  };
  const Result<json> document = json_input::parse(line);
  if (!document) return foreign();
  Reader in(*document, "");
  int format = 0;
  in.read("format", format, kRequired);
  if (in.failed()) return foreign();
  if (format < kOldestPackResultsFormat || format > kPackResultsFormat)
    return invalid_argument("format ", format, ", this runner writes ", kPackResultsFormat,
                            "; write to another file");
  std::string pack, outcome;
  size_t task = 0, candidate = 0, round = 0;
  std::vector<double> run_ns;
  in.read("pack", pack, kRequired);
  if (!in.failed() && pack != pack_->id())
    return invalid_argument("of another pack; write to another file, or remove this one");
  if (std::string text; in.get("document") != nullptr) {
    in.read("document", text);
    if (in.failed()) return foreign();
    documents_.insert(std::move(text));
    return Status::ok();
  }
  in.read("task", task, kRequired);
  in.read("candidate", candidate, kRequired);
  in.read("round", round, kRequired);
  in.read("outcome", outcome, kRequired);
  in.read("run_ns", run_ns, kRequired);
  if (in.failed()) return foreign();
  known_[{task, candidate, round}] = {.ok = outcome_from_name(outcome) == Outcome::kOk,
                                      .time_ns = median(run_ns)};
  return Status::ok();
}

const PackOutcome* PackResults::find(size_t task, size_t candidate, size_t round) const {
  const auto it = known_.find({task, candidate, round});
  return it == known_.end() ? nullptr : &it->second;
}

Status PackResults::add(size_t task, size_t candidate, size_t round, const RunRequest& request,
                        const RunReply& r, const PackEnvironment& e) {
  if (file_ == nullptr) return failed(path_, ": was opened for reading only");
  const PackTask& t = pack_->pack().tasks[task];
  const PackCandidate& c = t.candidates[candidate];
  const json line = {
      {"format", kPackResultsFormat},
      {"pack", pack_->id()},
      {"task", task},
      {"candidate", candidate},
      {"round", round},
      {"workload", t.workload_key},
      {"target", t.target},
      {"template", c.template_name},
      {"template_version", c.template_version},
      {"config", c.config},
      {"outcome", outcome_name(*r.outcome)},
      {"cut", r.cut},
      {"message", r.message},
      {"run_ns", r.run_ns},
      {"cpu_ns", r.cpu_ns},
      {"sentinel_before_ns", r.sentinel_before_ns},
      {"sentinel_after_ns", r.sentinel_after_ns},
      {"build_ms", c.build_ms},
      {"picked", pack_pick_name(c.picked)},
      {"estimated_ns", c.estimated_ns},
      {"predicted_rank", c.predicted_rank},
      {"run_ms", r.run_ms},
      // JSON has no infinity, which is the error of a NaN.
      {"max_error", std::isfinite(r.max_error) ? r.max_error : std::numeric_limits<double>::max()},
      {"peak_gflops", e.peak_gflops},
      {"artifact", c.artifact.manifest.digest},
      {"hardware", e.hardware},
      {"toolchain", c.artifact.manifest.toolchain},
      {"harness_abi", kHarnessAbi},
      {"host", e.host},
      {"device_state", r.device_state},
      {"caches", caches_name(request.caches)},
      {"options",
       {{"min_repeat_ms", request.min_repeat_ms},
        {"repeats", request.repeats},
        {"precision", request.precision},
        {"run_timeout_s", request.run_timeout_s},
        {"memory_limit_bytes", request.memory_limit_bytes},
        {"cut_factor", pack_->pack().plan.cut_factor}}},
      {"finished_at_us", wall_time_us()}};
  RETURN_IF_ERROR(write_line(line.dump(-1, ' ', false, json::error_handler_t::replace) + "\n"));
  known_[{task, candidate, round}] = {r.outcome == Outcome::kOk, median(r.run_ns)};
  return Status::ok();
}

}  // namespace tuner
