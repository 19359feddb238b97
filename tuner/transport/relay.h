// Relay: one connection of a gate: the client's socket, the server's end of a socketpair, and the bytes
// between them. Part of the gate, on its thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tuner/transport/frame_guard.h"
#include "tuner/transport/gate.h"
#include "tuner/transport/peer_book.h"
#include "tuner/transport/tls.h"

namespace tuner::transport {

inline constexpr size_t kReadBytes = 64 << 10;

// GateStats, written by the gate's thread only.
struct GateCounters {
  std::atomic<uint64_t> accepted{0}, turned_away_full{0}, turned_away_descriptors{0}, accept_pauses{0},
      slowed_down{0}, closed_slow_reader{0}, closed_half_open{0}, closed_tls{0}, handshakes{0}, bytes_in{0},
      bytes_out{0}, open_now{0};
  std::array<std::atomic<uint64_t>, kCauses> closed_by_guard{};
};

// One event more (or `by`). One thread writes, so no atomic addition is needed.
inline void add(std::atomic<uint64_t>& counter, uint64_t by = 1) {
  counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

// A piece read and not yet taken by the other side. The preface goes before the first one.
struct Chunk {
  std::array<uint8_t, kReadBytes + kPreface.size()> bytes;
};

// Chunks that wait to be used again: reading allocates nothing, and what is not used is not held for long.
class ChunkPool {
 public:
  std::unique_ptr<Chunk> take();
  void give(std::unique_ptr<Chunk> chunk);
  uint64_t in_use() const { return in_use_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kKept = 32;
  std::vector<std::unique_ptr<Chunk>> free_;
  std::atomic<uint64_t> in_use_{0};
};

// What all relays of a gate share.
struct RelayHouse {
  RelayHouse(const GateLimits& l, Handover h, TlsServer* t, int64_t now_ms)
      : limits(l), handover(std::move(h)), tls(t), budget(l.shared, now_ms) {}

  const GateLimits limits;
  const Handover handover;
  TlsServer* const tls;  // null: no listener wants it
  int epoll = -1;
  ChunkPool pool;
  std::unique_ptr<Chunk> scratch = std::make_unique<Chunk>();  // every read goes here first
  std::unique_ptr<Chunk> cipher = std::make_unique<Chunk>();   // but what is encrypted: that goes here
  PeerBook peers;
  SharedBudget budget;
  GateCounters counters;
};

class Relay {
 public:
  // What epoll reports of: one of the two sockets.
  struct Side {
    Relay* relay = nullptr;  // nullptr: a listener or the wake-up, not of a relay
    int fd = -1;
    uint32_t interest = 0;  // what epoll watches; 0: nothing, and it does not know the socket
  };
  // How a relay ended. With a reason it is worth a line in the log.
  struct End {
    Cause cause = Cause::kNone;
    std::string reason;
  };

  // Takes over the client's socket. `tls`: the client speaks TLS, which ends here.
  Relay(RelayHouse& house, int client_fd, bool tls, int64_t now_ms);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  // Opens the server's end (not HTTP/2), watches the client. The following calls may end the relay: end()
  // tells.
  void start();
  void on_event(Side& side, uint32_t events, int64_t now_ms);
  // From time to time: deadlines, also the verdict of the shared budget. `since_ms`: since the last call for
  // all relays.
  void on_tick(int64_t now_ms, int64_t since_ms);
  // When to call on_event() again for a client that is read more slowly: call resume() then. Nothing: it is
  // not slowed down.
  std::optional<int64_t> paused_until_ms() const { return paused_until_ms_; }
  void resume(int64_t now_ms);
  // The gate stops: passes on what the server has written, as far as the client takes it at once.
  void drain();

  const std::optional<End>& end() const { return end_; }
  int64_t begin_ms() const { return begin_ms_; }
  // Whether the server has got its end: with HTTP/2 once the preface has come.
  bool server_heard() const { return server_heard_; }
  // Ends a relay of which the server has not heard: another client needs the place.
  void give_way() { end_with(Cause::kHandshake, "it said nothing, and another needs its place"); }
  // Who the client is, for the log, as "127.0.0.1:4711" or "pid 812".
  std::string peer() const;
  size_t index = 0;  // in the gate's list

 private:
  // One direction. `pending` holds what `to` did not take; while it does, `from` is not read.
  struct Flow {
    Side* from = nullptr;
    Side* to = nullptr;
    std::unique_ptr<Chunk> pending;
    size_t begin = 0, end = 0;  // of what is left in `pending`
    bool ended = false;         // nothing comes from `from` any more
    bool closed = false;        // and `to` was told so
  };

  void pump(Flow& flow, int64_t now_ms);
  void flush(Flow& flow, int64_t now_ms);
  size_t most_of(const Flow& flow) const;
  ssize_t read_some(Flow& flow);
  void take_from_client(size_t count, int64_t now_ms);
  void take_cipher(size_t count, int64_t now_ms);
  void take_from_server(size_t count, int64_t now_ms);
  bool pass_from_client(size_t count, int64_t now_ms);
  void send_cipher();
  Peer peer_of_client() const;
  void send_on(Flow& flow, const uint8_t* data, size_t size);
  bool write_some(Flow& flow, const uint8_t*& data, size_t& size);
  bool open_server();
  void finish(Flow& flow);
  void watch();
  void watch_side(Side& side, uint32_t interest);
  void end_with(Cause cause, std::string reason);
  void end_quietly() { end_with(Cause::kNone, ""); }
  void end_by_guard(const FrameVerdict& verdict);

  RelayHouse& house_;
  const int64_t begin_ms_;
  Side client_, server_;
  std::unique_ptr<TlsConnection> tls_;  // null: the client's bytes are plain
  std::string name_;                    // in the book of peers; empty: not there
  Flow up_, down_;                      // client to server, server to client
  std::optional<FrameGuard> guard_;
  int64_t moved_ms_;  // when bytes last went either way, or down to the client
  int64_t client_took_ms_;
  std::optional<int64_t> paused_until_ms_;
  std::optional<End> end_;
  bool server_heard_ = false;
};

}  // namespace tuner::transport
