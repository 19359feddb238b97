// Talk: keeps a worker in touch with its daemon, whatever the daemon answers. It registers, then Syncs until
// the worker is drained or stopped.
//
//   a wait          a result, a drain or a lease given back interrupts a Sync that waits, and is sent at once
//   a phase         that began (building, running) travels with the next Sync. One that nobody was told for
//                   100 ms gets a Sync of its own: at most ten more a second, and none where trials are short
//   an error        of any code: a pause (Backoff), then again. Held work goes on meanwhile. The same where
//                   the daemon acknowledges none of the results it is told: its disk may be full
//   a refusal       InvalidArgument at the first registration: run() returns it. Later it is an error like
//                   any
//   an id in use    Aborted at a registration: asked again every second, for as long as it takes
//   a lost session  Aborted at a Sync: registers again, and keeps the work
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <stop_token>

#include "compiler_core/base/line_limit.h"
#include "measure.pb.h"
#include "measure_server/worker/backoff.h"
#include "measure_server/worker/daemon_link.h"
#include "measure_server/worker/work_book.h"

namespace tuner {

class Talk {
 public:
  struct Options {
    v1::RegisterRequest hello;                 // who this worker is and what it offers
    std::function<void()> registered = [] {};  // called after each registration
    // How long a Sync waits for news: with work or results in hand well below a lease's life, without any for
    // as long as a dead connection may go unnoticed. A thousand idle workers then cost little.
    int poll_ms = 2'000, idle_poll_ms = 10'000;
    std::function<double()> random = random_fraction();
    // Waits between tries; tests replace it. Empty: really waits, but not longer than until stop() or a
    // drain.
    std::function<void(std::chrono::milliseconds)> pause;
  };
  // `core` must outlive this. Its callbacks for news and phases should call interrupt() and phase_began().
  Talk(WorkBook& core, Options options);

  // Returns when the worker is drained and has nothing left to say, or stop() was called (OK); when it drains
  // and the daemon has not answered several times in a row (OK: results stay in the spool); or with the
  // daemon's refusal. One call at a time.
  Status run(DaemonLink& link);
  // Ends a Sync that only waits. Any thread.
  void interrupt();
  void phase_began();
  void stop();

 private:
  Status enroll(DaemonLink& link);
  // What a Sync that did not fail brought.
  enum class Answer : uint8_t { kHeard, kCutShort, kNothingTaken };
  Status sync(DaemonLink& link, Answer& answer);
  bool over() const;
  void say_goodbye(DaemonLink& link);
  void pause(int64_t pause_ms);
  void tell_phases();
  void say_trouble(const Status& status, bool registering);

  WorkBook& core_;
  const Options options_;
  Backoff backoff_, nothing_taken_;
  bool registered_ = false, ever_registered_ = false;  // now; in this life
  bool said_trouble_ = false;
  LineLimit trouble_, refused_, in_use_, lost_, entered_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::stop_source wait_;  // ends the Sync that waits
  bool ended_ = false;     // run() is about to return
  std::atomic<bool> stopped_{false};
};

}  // namespace tuner
