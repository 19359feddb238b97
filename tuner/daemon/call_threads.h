// CallThreads: where calls run that block. Short ones share a few threads; a long one has a thread of its own.
// Both are bounded: beyond that a call is turned away at once, so that many callers cost one another time, not
// the daemon its memory.
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
    int short_threads = 4;
    size_t most_short = 256;  // that wait for one of them
    int most_long = 160;      // watchers, and measurements that somebody waits for
  };
  explicit CallThreads(Limits limits);
  ~CallThreads();  // join()

  // Runs `call` soon, on another thread. False: there are too many, and it will not be run.
  bool run_short(std::function<void()> call);
  bool run_long(std::function<void()> call);

  // Waits until all have returned; whoever calls it has ended what they wait for. None is run after it.
  void join();

 private:
  void serve();

  const Limits limits_;
  std::mutex mutex_;
  std::condition_variable work_, idle_;
  std::deque<std::function<void()>> queue_;
  int long_calls_ = 0;
  bool ended_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tuner
