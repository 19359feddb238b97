// FrameLimits: what one client may send over HTTP/2, each limit with its reason; and FrameVerdict: what the
// guard says.
//
// The limits are wide enough that gRPC's own clients (C++ and Python) never meet them, also at the rates of a
// large farm, and tight enough that what passes costs the server behind them little memory and time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tuner/transport/token_bucket.h"

namespace tuner::transport {

// Why a connection is closed by the guard. Counted one by one (GateStats::closed_by_guard).
enum class Cause : uint8_t {
  kNone,             // all is well
  kHandshake,        // preface and SETTINGS did not come in time
  kNotHttp2,         // something else than HTTP/2 came
  kProtocol,         // frames no client may send, after which the rest cannot be judged
  kOpenRequests,     // too many requests begun and not finished
  kSlowRequest,      // a request was not finished in time
  kResets,           // RST_STREAM too often
  kPings,            // PING, or acknowledgements, too often
  kSettings,         // SETTINGS too often
  kPriorities,       // PRIORITY too often
  kWindowUpdates,    // WINDOW_UPDATE too often
  kNoEffect,         // frames without effect too often
  kHeaderBlock,      // a header block of too many bytes or CONTINUATION frames
  kFrameSize,        // a frame is too long
  kMessageSize,      // a request is too long
  kUnfinishedBytes,  // unfinished requests of this connection hold too many bytes
  kSharedResets,     // all connections together send too many resets, and this young one some of them
  kSharedBytes,      // unfinished requests of all connections hold too many bytes, this one's most of them
};
inline constexpr int kCauses = static_cast<int>(Cause::kSharedBytes) + 1;

// Returns the name of the cause as metrics and logs spell it, as "open_requests".
std::string_view cause_name(Cause cause);

struct FrameVerdict {
  Cause cause = Cause::kNone;
  std::string reason;  // one line for the log; empty when all is well
  bool is_ok() const { return cause == Cause::kNone; }
};

struct FrameLimits {
  // The preface and the first SETTINGS. A gRPC client sends both with its first packet.
  int64_t handshake_ms = 3'000;

  // A request must be sent completely within request_ms plus the time its bytes take at request_bytes_per_s:
  // an open request keeps a call and a stream alive in the server. 10 s of silence are longer than any pause
  // of an honest client; 64 KiB/s is a slow line (16 MiB may take 266 s). Time in which the server does not
  // read is not counted.
  int64_t request_ms = 10'000;
  int64_t request_bytes_per_s = 64 << 10;
  // Requests begun and not finished at once. A unary call of gRPC begins and ends in one packet, so an honest
  // client has some only while it sends long messages. The server should announce MAX_CONCURRENT_STREAMS of
  // at most this.
  int open_requests = 128;
  // DATA of one request. The daemon takes messages of 4 MiB, but gRPC 1.51 measures a message only when all
  // of it is there: much more is passed on, so that a client whose message is too long is told so in words.
  int64_t message_bytes = 32 << 20;
  // DATA of all unfinished requests of a connection: 64 calls of 1 MiB at once are honest, 128 of 16 MiB are
  // not.
  int64_t unfinished_bytes = 64 << 20;

  // A header block over HEADERS and CONTINUATION. Those of gRPC have some hundred bytes and no CONTINUATION.
  // gRPC 1.51 works on each one in full before it measures it (CVE-2023-33953).
  int64_t header_block_bytes = 16 << 10;
  int continuations = 8;

  // DATA frames: as long as HTTP/2 can say, because gRPC 1.51 as a server announces a SETTINGS_MAX_FRAME_SIZE
  // that grows with the measured bandwidth up to 16,777,215. It passes DATA on as it comes, so their length
  // costs nothing; message_bytes bounds them. Frames of other kinds: HTTP/2's smallest maximum, since they
  // are only a few bytes long.
  int64_t data_frame_bytes = (1 << 24) - 1;
  int64_t other_frame_bytes = 16 << 10;

  // Beyond these rates a client is read more slowly, not closed: being fast is no attack. One connection
  // of gRPC makes at most some 15,000 calls a second of about 4 frames each on our machines.
  Rate requests = {10'000, 20'000};
  Rate frames = {100'000, 100'000};
  // Bytes of header blocks, which the server unpacks one by one. A call of gRPC has 50 to 300.
  Rate header_bytes = {8 << 20, 8 << 20};

  // RST_STREAM (rapid reset, CVE-2023-44487: every HEADERS + RST_STREAM costs the server a call, which
  // outlives the stream). Honest clients do send them: a watcher that leaves, a call whose deadline passed,
  // and a worker, which cancels its waiting Sync whenever it has a result, some 100 times a second. So three
  // times that is allowed for ever and two seconds' worth at once. A connection younger than young_ms has
  // shown nothing yet: all of its calls (the server should allow 128) may time out at once, and some more.
  Rate resets = {300, 600};
  double young_resets = 200;
  int64_t young_ms = 10'000;

  // Each PING is answered. gRPC's clients send one a keepalive interval (1 to 5 s) and one a bandwidth probe
  // (at most about 10 a second).
  Rate pings = {100, 200};
  // Acknowledgements of PING and SETTINGS answer the server's own, of which there are as many as of those
  // above.
  Rate acks = {100, 500};
  // Each SETTINGS is answered, and may change the windows of all streams. gRPC sends one with each bandwidth
  // estimate.
  Rate settings = {20, 100};
  // gRPC sends none; other HTTP/2 libraries begin with a few.
  Rate priorities = {20, 100};
  // gRPC sends up to two a reply and one a chunk of a long one, and the fastest client makes 15,000 calls a
  // second.
  Rate window_updates = {50'000, 50'000};
  // Frames that change nothing: DATA without bytes that does not end the request, frames for requests that
  // have ended, GOAWAY, unknown kinds. Some come from honest races: the client has not yet seen that the
  // server ended the request.
  Rate no_effect = {200, 1'000};
};

// What all connections may do together: three hundred that each stay just below the limits above are an
// attack, too. See SharedBudget for what happens beyond.
struct SharedLimits {
  // 1,000 workers make 5,000 to 15,000 Syncs a second.
  Rate requests = {20'000, 40'000};
  // A reset costs the server far more than it costs the client. Workers of a busy farm send few, because a
  // Sync that finds work does not wait and need not be cancelled.
  Rate resets = {3'000, 6'000};
  // Bytes of unfinished requests of all connections: half of the memory that the daemon may take under
  // attack.
  int64_t unfinished_bytes = 128 << 20;
};

}  // namespace tuner::transport
