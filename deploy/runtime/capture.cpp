#include "deploy/runtime/capture.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "compiler_core/base/input_file.h"
#include "compiler_core/base/output_file.h"
#include "deploy/runtime/pools.h"
#include "templates/workload/workload_json.h"

namespace tuner::runtime {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// What a job file takes.
constexpr size_t kMostEntries = 4096;
constexpr uint64_t kMostUses = 1'000'000'000;
constexpr size_t kMostBytes = 16 << 20;

// Held while the file is read and replaced.
class Lock {
 public:
  static Result<Lock> of(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) return failed(path, ": cannot be opened: ", std::strerror(errno));
    Lock lock(fd);
    constexpr int kTries = 200;
    constexpr std::chrono::milliseconds kPause{10};
    for (int i = 0; i < kTries; ++i, std::this_thread::sleep_for(kPause))
      if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return lock;
    return failed(path, ": another process has held this lock for two seconds");
  }
  Lock(Lock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Lock& operator=(Lock&&) = delete;
  ~Lock() {
    if (fd_ >= 0) ::close(fd_);
  }

 private:
  explicit Lock(int fd) : fd_(fd) {}
  int fd_;
};

// The workload and target of an entry: what makes two the same.
Result<std::pair<std::string, std::string>> key_of(const ordered_json& entry, size_t index) {
  const json object = entry;
  json_input::ObjectReader in(object, str("[", index, "]."));
  const Workload workload = read_workload(in);
  std::string target = "cpu";
  in.read("target", target);
  if (in.failed()) return in.status();
  return std::pair(workload.key(), target);
}

}  // namespace

Result<std::string> add_uses(const std::string& text, const std::vector<CapturedUse>& added) {
  ordered_json entries = ordered_json::array();
  if (text.find_first_not_of(" \t\r\n") != std::string::npos) {
    if (const Result<json> strict = json_input::parse(text); !strict) return strict.status();
    entries = ordered_json::parse(text);
    if (entries.is_object()) entries = ordered_json::array({entries});
    if (!entries.is_array()) return invalid_argument("expected a list of job entries");
  }
  std::map<std::pair<std::string, std::string>, size_t> known;
  for (size_t i = 0; i < entries.size(); ++i) {
    ASSIGN_OR_RETURN(auto key, key_of(entries[i], i));
    known.emplace(std::move(key), i);
  }
  for (const CapturedUse& use : added) {
    const auto [at, is_new] = known.emplace(std::pair(use.workload.key(), use.target), entries.size());
    if (is_new && entries.size() >= kMostEntries) {
      known.erase(at);
      continue;  // a job file holds no more
    }
    if (is_new) {
      entries.push_back(workload_json(use.workload));
      entries.back()["target"] = use.target;
      entries.back()["uses"] = uint64_t{0};
    }
    ordered_json& entry = entries[at->second];
    const auto uses = entry.find("uses");
    const uint64_t before = uses == entry.end() ? 1 : uses->is_number_unsigned() ? uses->get<uint64_t>() : 0;
    entry["uses"] = std::min(kMostUses, std::min(before, kMostUses) + use.uses);
  }
  std::string out = "[";
  for (size_t i = 0; i < entries.size(); ++i) out += str(i == 0 ? "\n  " : ",\n  ", entries[i].dump());
  return out + "\n]\n";
}

// --- one for each file, for the life of the process ---

struct CaptureRegistry {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<Capture>> captures;

  // Never destroyed: calls may come while the process ends.
  static CaptureRegistry& get() {
    static CaptureRegistry* const registry = [] {
      std::atexit([] { get().flush_all(); });
      ::pthread_atfork([] { get().before_fork(); }, [] { get().after_fork(false); },
                       [] { get().after_fork(true); });
      return new CaptureRegistry();
    }();
    return *registry;
  }
  void before_fork() {
    mutex.lock();
    for (auto& [path, capture] : captures) capture->before_fork();
  }
  void after_fork(bool is_child) {
    for (auto& [path, capture] : captures) capture->after_fork(is_child);
    mutex.unlock();
  }
  void flush_all() {
    const std::lock_guard lock(mutex);
    for (auto& [path, capture] : captures) static_cast<void>(capture->flush());
  }
};

Capture& Capture::of(const std::string& path, std::function<void(const std::string&)> message) {
  CaptureRegistry& registry = CaptureRegistry::get();
  const std::lock_guard lock(registry.mutex);
  std::unique_ptr<Capture>& capture = registry.captures[path];
  if (capture == nullptr) capture = std::make_unique<Capture>(path, std::move(message));
  return *capture;
}

Capture::Capture(std::string path, std::function<void(const std::string&)> message,
                 std::chrono::milliseconds period)
    : path_(std::move(path)), message_(std::move(message)), period_(period) {}

Capture::~Capture() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_ != nullptr) thread_->join();
  static_cast<void>(flush());
}

void Capture::asked(const Workload& workload, const std::string& target, const Calls& calls) {
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[{workload.key(), target}];
  entry.workload = workload;
  const void* const id = calls.get();
  entry.counters.try_emplace(id, calls, 0);
  start();
}

void Capture::start() {
  if (thread_ == nullptr) thread_ = std::make_unique<std::thread>([this] { watch(); });
}

void Capture::after_fork(bool is_child) {
  if (is_child) {
    static_cast<void>(thread_.release());
    for (auto& [key, entry] : entries_) {
      entry.least = entry.written = 0;
      for (auto& [id, counter] : entry.counters) counter.second = counter.first->load();
    }
  }
  mutex_.unlock();
}

void Capture::watch() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    static_cast<void>(merge());
    wake_.wait_for(lock, period_, [this] { return stopping_; });
  }
}

Status Capture::flush() {
  const std::lock_guard lock(mutex_);
  return merge();
}

uint64_t Capture::Entry::uses() const {
  uint64_t runs = 0;
  for (const auto& [id, counter] : counters)
    runs += counter.first->load(std::memory_order_relaxed) - counter.second;
  return std::max(runs, least);
}

Status Capture::merge() {
  std::vector<CapturedUse> added;
  std::vector<std::pair<Entry*, uint64_t>> now;  // what the file then has of ours
  for (auto& [key, entry] : entries_) {
    const uint64_t uses = entry.uses();
    if (uses == entry.written) continue;
    added.push_back({entry.workload, key.second, uses - entry.written});
    now.emplace_back(&entry, uses);
  }
  if (added.empty()) return Status::ok();
  const auto write = [&]() -> Status {
    ASSIGN_OR_RETURN(const Lock lock, Lock::of(path_ + ".lock"));
    ASSIGN_OR_RETURN(const std::string after, with_uses(added));
    return replace_file(path_, after);
  };
  const Status status = write();
  if (status.is_ok())
    for (const auto& [entry, uses] : now) entry->written = uses;
  return reported(status);
}

Result<std::string> Capture::with_uses(const std::vector<CapturedUse>& added) const {
  const Result<std::string> before = read_whole(path_, kMostBytes);
  if (!before && before.status().code() != StatusCode::kNotFound) return before.status();
  Result<std::string> after = add_uses(before ? *before : std::string(), added);
  if (!after) return after.status().with_context(path_ + ": is no job file, and is left as it is: ");
  return after;
}

Status Capture::reported(const Status& status) {
  if (!status.is_ok() && !complained_) {
    complained_ = true;
    if (message_) message_(json_input::one_line("TUNER_CAPTURE: " + status.message()));
  }
  return status;
}

Status Capture::check() {
  const std::lock_guard lock(mutex_);
  Status status = check_output(path_);
  if (status.is_ok()) status = with_uses({}).status();
  return reported(status);
}

}  // namespace tuner::runtime
