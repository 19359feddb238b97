// Capture: the workloads that an application asked for, with how often it ran them, as a job file.
//
// One for each file in the life of a process. The file is written when the first workload comes, every few
// seconds while something changes, and at exit; always whole (rename). Several processes may share it: each
// adds what it counted, under a lock (FILE.lock). What people added to the entries ("trials", ...) stays. A
// file that is no job file is left alone, and a message says so.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "compiler_core/base/status.h"
#include "templates/workload/workload.h"

namespace tuner::runtime {

class Capture {
 public:
  using Calls = std::shared_ptr<const std::atomic<uint64_t>>;

  // The one of this file, made when first asked for. Lives until the process ends. Each problem is told to
  // `message` of the first who asked, once.
  static Capture& of(const std::string& path, std::function<void(const std::string&)> message);

  explicit Capture(std::string path, std::function<void(const std::string&)> message,
                   std::chrono::milliseconds period = std::chrono::seconds(3));
  ~Capture();  // writes
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  // `calls` grows with every run; a workload that is never run counts as one use.
  void asked(const Workload& workload, const std::string& target, Calls calls);
  // Adds what is new to the file. Failed: why it could not be written; what is new is kept for the next time.
  Status flush();

  // Around fork(): the child has no thread, and what was counted is its parent's to write.
  void before_fork() { mutex_.lock(); }
  void after_fork(bool is_child);

 private:
  struct Entry {
    Workload workload;
    std::map<const void*, std::pair<Calls, uint64_t>> counters;  // and where each stood at the start
    uint64_t least = 1;    // one that is asked for counts as one use, which its first run then is
    uint64_t written = 0;  // of ours, in the file

    uint64_t uses() const;
  };
  using Key = std::pair<std::string, std::string>;  // workload, target

  Status merge();  // with the mutex held
  void start();
  void watch();

  const std::string path_;
  const std::function<void(const std::string&)> message_;
  const std::chrono::milliseconds period_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::map<Key, Entry> entries_;
  bool complained_ = false, stopping_ = false;
  std::unique_ptr<std::thread> thread_;
};

// `text`, a job file or empty, with these uses added: the whole new file. InvalidArgument when it is no list
// of job entries; nothing is lost of what is understood. For Capture and its tests.
struct CapturedUse {
  Workload workload;
  std::string target;
  uint64_t uses;
};
Result<std::string> add_uses(const std::string& text, const std::vector<CapturedUse>& added);

}  // namespace tuner::runtime
