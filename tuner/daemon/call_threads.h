// CallThreads: where calls run that block. Short ones share a few threads; a long one has a thread of its
// own. Both are bounded: beyond that a call is turned away at once, so that many callers cost one another
// time, not the daemon its memory. Heavy ones (large messages, lists of all jobs) share a part of the
// threads, so the others need not wait for them, and what they hold is bounded together.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tuner {

class CallThreads {
 public:
  struct Limits {
    int short_threads = 4, heavy_at_once = 2;
    size_t most_short = 256;                // that wait for one of them
    size_t most_heavy = 64;                 // likewise
    size_t heavy_bytes = size_t{16} << 20;  // of their messages: those that wait and those that run
    int most_long = 160;                    // watchers, and measurements that somebody waits for
  };
  explicit CallThreads(Limits limits);
  ~CallThreads();  // join()

  // Runs `call` soon, on another thread. False: there are too many, and it will not be run.
  bool run_short(std::function<void()> call);
  // The same for a heavy call, with the bytes that its message holds until it has returned.
  bool run_heavy(std::function<void()> call, size_t bytes);
  bool run_long(std::function<void()> call);

  // Waits until all have returned; whoever calls it has ended what they wait for. None is run after it.
  void join();

 private:
  struct Heavy {
    std::function<void()> call;
    size_t bytes = 0;
  };
  void serve();
  bool may_begin_heavy() const { return !heavy_.empty() && heavy_running_ < limits_.heavy_at_once; }

  const Limits limits_;
  std::mutex mutex_;
  std::condition_variable work_, idle_;
  std::deque<std::function<void()>> queue_;
  std::deque<Heavy> heavy_;
  int heavy_running_ = 0;
  size_t heavy_bytes_ = 0;
  int long_calls_ = 0;
  bool ended_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tuner
