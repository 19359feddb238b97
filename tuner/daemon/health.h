// Health: is this daemon ready for workers and clients? Judged once a second, and said by the health service
// of gRPC (grpc.health.v1), by /readyz, and by tuner_ready in /metrics.
//
// A process can live, and its threads turn, while nobody gets in: a listener that gave up looks healthy from
// the inside. So a probe comes from the outside: every few seconds a new connection to the daemon's own
// address, through the gate, and one call of the health service over it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "compiler_core/base/status.h"
#include "tuner/daemon/rooms/clock.h"

namespace tuner {

class Coordinator;
class Server;

struct Readiness {
  bool ready = false;
  std::string reason;  // one line for people; empty when ready
  bool alive = true;   // false: only a restart helps. A full disk is none of that
};

struct HealthOptions {
  int64_t turn_limit_ms = 5'000;  // the desk and the search must have turned within
  int64_t probe_every_ms = 3'000;
  int64_t probe_limit_ms = 3'000;    // of one probe
  int64_t probed_limit_ms = 15'000;  // one must have succeeded within
};

// What is judged; times by one clock.
struct HealthFacts {
  int64_t now_ms = 0, desk_turned_ms = 0, search_turned_ms = 0;
  int64_t probed_ms = 0;  // the last probe that succeeded, or the start: a young daemon has time
  Status probe;           // how the last one ended
  bool probed_once = false;
  bool commit_failed = false;
};
Readiness judge_health(const HealthFacts& facts, const HealthOptions& options);

class Health {
 public:
  // All outlive this. `server` serves, and hears of every change.
  Health(const Coordinator& coordinator, const Clock& clock, Server& server, HealthOptions options = {});
  ~Health();  // after the probe that is under way, if any
  Health(const Health&) = delete;
  Health& operator=(const Health&) = delete;

  Readiness ready() const;  // any thread

 private:
  void watch();

  const Coordinator& coordinator_;
  const Clock& clock_;
  Server& server_;
  const HealthOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false, probed_once_ = false;
  int64_t probed_ms_;
  Status probe_;
  std::thread thread_;
};

}  // namespace tuner
