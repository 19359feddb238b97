// GateLimits and GateStats: what a Gate allows, and what it has done.
#pragma once

#include <array>
#include <cstdint>

#include "tuner/transport/frame_limits.h"

namespace tuner::transport {

struct GateLimits {
  FrameLimits frames;
  SharedLimits shared;
  // False: bytes pass without being looked at, and the server has its end of a connection from the start. For
  // protocols other than HTTP/2.
  bool http2 = true;

  // With TLS the preface has its time (frames.handshake_ms) from the end of the handshake on, which has this.
  // A thousand that come back at once keep both sides busy for some seconds.
  int64_t tls_handshake_ms = 10'000;

  // Connections at once. 0: as many as the descriptors of this process allow (most_connections() in gate.h).
  int connections = 0;
  // New connections. Beyond it they wait in the kernel's queue. The burst lets a farm of 2,000 come back at
  // once.
  Rate accepts = {500, 2'000};
  // A connection that the guard closes after the server has heard of it costs as much of that as so many new
  // ones. All such costs together take half of `accepts` at most: the other half is there for those who did
  // nothing. While more are closed than can be charged, a tenth of the burst may come at once.
  double closing_costs = 25;
  // A client that does not read while there are bytes for it, or a half-closed connection without any bytes,
  // is closed after this.
  int64_t stall_ms = 20'000;
};

// Counts since the gate began, but for open_now and buffers.
struct GateStats {
  uint64_t accepted = 0;                 // taken from the kernel's queue, whatever came then
  uint64_t turned_away_full = 0;         // closed at once: as many connections as allowed were there
  uint64_t turned_away_descriptors = 0;  // closed at once: the process had no descriptor left
  uint64_t accept_pauses = 0;            // times new connections began to wait because they came too fast
  uint64_t slowed_down = 0;              // times a client was read later because it sent too much
  uint64_t closed_slow_reader = 0;       // see GateLimits::stall_ms
  uint64_t closed_half_open = 0;         // see GateLimits::stall_ms
  uint64_t closed_tls = 0;               // TLS that was not spoken, not in time, or wrongly
  uint64_t handshakes = 0;               // of TLS, done
  uint64_t bytes_in = 0;                 // from clients, passed on
  uint64_t bytes_out = 0;                // to clients
  uint64_t open_now = 0;                 // connections
  uint64_t buffers = 0;  // of 64 KiB, held now because one side reads more slowly than the other sends
  std::array<uint64_t, kCauses> closed_by_guard{};  // by Cause
};

}  // namespace tuner::transport
