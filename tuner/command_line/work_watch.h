// WorkWatch: what a long command shows while it works, and that it stops when it is asked to.
//
// A thread prints what is done every two seconds. Compiling one kernel, or one run of the library, may take
// longer than a person waits for Ctrl-C: what does not stop by itself within half a second is ended, and what
// it has written so far is removed.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace tuner {

class WorkWatch {
 public:
  // `stopped`: the line that is printed when the process is ended.
  explicit WorkWatch(std::string stopped);
  ~WorkWatch();
  WorkWatch(const WorkWatch&) = delete;

  // What is done from now on. Any thread.
  void at(const std::string& what);
  // Whether the process may be ended, and what removes its files then.
  void guard(std::function<void()> remove);
  void release();  // it may not: what follows stops in order by itself, or must be done as a whole

 private:
  void watch();
  void end_process();

  const std::string stopped_;
  std::mutex mutex_;
  std::condition_variable over_;
  std::string what_;
  std::function<void()> remove_;
  bool is_guarded_ = false, is_over_ = false;
  std::thread thread_;
};

}  // namespace tuner
