// Capture: writes the workloads that an application asked for, and how often it ran them, as a job file.
//
// A process has one Capture per file. It writes the file when the first workload comes, every few seconds
// while something changes, and at exit, always whole (rename). Several processes may share the file: each
// adds its counts under a lock (FILE.lock). Keys that people added to the entries ("trials", ...) stay. A
// file that is not a job file is left alone, and a message says so.
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
#include <vector>

#include "compiler_core/base/status.h"
#include "templates/workload/workload.h"

namespace tuner::runtime {

struct CapturedUse {
  Workload workload;
  std::string target;
  uint64_t uses;
};

class Capture {
 public:
  using Calls = std::shared_ptr<const std::atomic<uint64_t>>;

  // Returns the Capture of this file, made at the first call. It lives until the process ends. Each problem
  // is reported once, to the `message` of the first caller.
  static Capture& of(const std::string& path, std::function<void(const std::string&)> message);

  explicit Capture(std::string path, std::function<void(const std::string&)> message,
                   std::chrono::milliseconds period = std::chrono::seconds(3));
  ~Capture();  // writes the file
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  // `calls` grows with every run. A workload that is asked for but never run counts as one use.
  void asked(const Workload& workload, const std::string& target, const Calls& calls);
  // OK if the file can be written now: there is none, or a job file that may be replaced. Else the reason,
  // which is also reported.
  Status check();
  // Adds new counts to the file. Failed: the reason; the counts are kept for the next attempt.
  Status flush();

  // Call these around fork(). The child has no thread, and its parent writes what was counted so far.
  void before_fork() { mutex_.lock(); }
  void after_fork(bool is_child);

 private:
  struct Entry {
    Workload workload;
    std::map<const void*, std::pair<Calls, uint64_t>> counters;  // each counter with its value at the start
    uint64_t least = 1;    // asking counts as one use; the first run then adds none
    uint64_t written = 0;  // how many of our uses the file already has

    uint64_t uses() const;
  };
  using Key = std::pair<std::string, std::string>;  // workload, target

  // The text of the file as it is, with these uses. Call with the lock of the file held.
  Result<std::string> with_uses(const std::vector<CapturedUse>& added) const;
  Status reported(const Status& status);  // returns it; the first problem goes to message_
  Status merge();                         // call with the mutex held
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

// Adds these uses to `text`, a job file or empty, and returns the new text of the whole file. InvalidArgument
// if `text` is not a list of job entries. Keeps everything in the entries. Used by Capture and its tests.
Result<std::string> add_uses(const std::string& text, const std::vector<CapturedUse>& added);

}  // namespace tuner::runtime
