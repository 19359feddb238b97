// A bad network between two processes: TCP on loopback, and every byte passes here. Unless told otherwise it
// is a good one. What a byte stream can suffer is done here; messages that come twice are not among it (they
// are sent twice: WorkersPlan::repeated).
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <list>
#include <mutex>
#include <string>
#include <thread>

namespace tuner::chaos {

class FaultProxy {
 public:
  // Listens on a port of its own. `to`: a port on 127.0.0.1; need not be there yet.
  explicit FaultProxy(int to);
  ~FaultProxy();
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;

  std::string address() const;  // 127.0.0.1:PORT

  using ms = std::chrono::milliseconds;
  // All bytes arrive `late` later, for as long as said.
  void delay(ms late, ms lasting);
  // So many bytes a second in each direction, of all connections together, from now on; 0: as many as come.
  void limit(int64_t bytes_per_s);
  // Nothing arrives, and nobody is told: connections stay open, new ones wait.
  void part(ms lasting);
  // Every connection is reset, bytes under way are lost.
  void cut();
  // No fault from now on; a limit stays.
  void heal();

 private:
  using Clock = std::chrono::steady_clock;
  struct Chunk {
    Clock::time_point due;
    std::string bytes;
  };
  // One direction of a connection.
  struct Stream {
    std::deque<Chunk> under_way;
    size_t size = 0;     // bytes under way
    bool ended = false;  // the sender has no more
    bool told = false;   // the receiver knows
  };
  struct Connection {
    int caller = -1, callee = -1;
    Stream to_callee, to_caller;
    bool broken = false;
  };

  void run();
  void accept_all();
  void move(Connection& connection, Clock::time_point now, ms late);
  // A link that is busy until then; bytes that come later wait for it.
  struct Lane {
    Clock::time_point free{};
  };
  void read_from(int from, Stream& stream, Lane& lane, Clock::time_point now, ms late, bool& broken) const;
  static void write_to(int to, Stream& stream, Clock::time_point now, bool& broken);
  static void reset(Connection& connection);

  const int to_;
  int listener_ = -1, port_ = 0;
  std::mutex mutex_;  // guards the faults
  ms late_{0};
  Clock::time_point late_until_, parted_until_;
  bool cut_ = false;
  std::atomic<int64_t> bytes_per_s_{0};
  Lane to_callee_, to_caller_;  // of the thread
  std::atomic<bool> stopped_{false};
  std::list<Connection> connections_;  // of the thread
  std::thread thread_;
};

}  // namespace tuner::chaos
