// FrameGuard: judges what one client sends over HTTP/2, before the server behind sees it.
//
// It reads the preface and the 9 bytes at the head of each frame, skips the payloads, and counts. Header
// blocks stay packed. What it does not judge (window arithmetic, wrong lengths, wrong states) is left to the
// server, which bounds that itself. The verdict does not depend on how the bytes are cut into pieces. It has
// no clock and no socket, and is used from one thread. A first bad verdict is final.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tuner/transport/frame_limits.h"
#include "tuner/transport/frame_reader.h"
#include "tuner/transport/shared_budget.h"

namespace tuner::transport {

// What an HTTP/2 client sends first.
inline constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

class FrameGuard {
 public:
  // `limits` and `budget` (nullptr: none) outlive this. Times are of any steady clock, in milliseconds.
  FrameGuard(const FrameLimits& limits, SharedBudget* budget, int64_t now_ms);

  // Judges the next bytes of the client, also whether it is late with anything. Pass them on only if the
  // verdict is ok.
  const FrameVerdict& feed(std::span<const uint8_t> from_client, int64_t now_ms);
  // Reads what the server answers: a request that the server ended is open no longer.
  void feed_reply(std::span<const uint8_t> from_server);

  // When on_time() has something to judge if nothing comes before, or nothing.
  std::optional<int64_t> next_deadline() const;
  const FrameVerdict& on_time(int64_t now_ms);
  // Moves the deadlines of requests: for `ms` it was the server that did not read.
  void forgive(int64_t ms);
  // For how long the client should not be read, because it sends more than it may for long. 0: read on.
  int64_t wait_ms(int64_t now_ms);

  // The last verdict, or that of the shared budget.
  const FrameVerdict& verdict() const { return verdict_.is_ok() ? member_.verdict() : verdict_; }
  // True when the preface has come: until then nothing says that this is HTTP/2.
  bool has_preface() const { return preface_bytes_ == kPreface.size(); }
  // How many bytes of the preface have come.
  size_t preface_bytes() const { return preface_bytes_; }
  size_t open_requests() const { return open_.size(); }

 private:
  // A request that the client has not finished sending.
  struct Request {
    uint32_t stream;
    int64_t begin_ms;
    int64_t announced;  // DATA bytes, by the heads of frames
    int64_t bytes;      // DATA bytes that came
  };

  bool read_preface(std::span<const uint8_t>& bytes);
  bool on_head(const FrameHead& frame);
  bool on_payload(const FrameHead& frame, uint32_t count);
  bool on_end(const FrameHead& frame);
  bool on_data(const FrameHead& frame);
  bool on_headers(const FrameHead& frame);
  bool on_continuation(const FrameHead& frame);
  bool on_reset(const FrameHead& frame);
  bool on_new_request(const FrameHead& frame);
  // Takes a token, or says that `what` comes too often.
  bool count(TokenBucket& bucket, Rate rate, Cause cause, std::string_view what);
  bool bad(Cause cause, std::string reason);

  Request* find(uint32_t stream);
  void end_request(uint32_t stream);
  int64_t deadline_of(const Request& request) const;

  const FrameLimits& limits_;
  const int64_t begin_ms_;
  int64_t now_ms_;
  FrameVerdict verdict_;
  SharedBudget::Member member_;

  size_t preface_bytes_ = 0;
  bool has_settings_ = false;
  FrameReader reader_, reply_reader_;
  uint32_t last_stream_ = 0;
  std::vector<Request> open_;

  // The header block that is being sent. `block_stream_` is 0 if there is none.
  uint32_t block_stream_ = 0;
  bool block_ends_request_ = false;
  int64_t block_begin_ms_ = 0;
  int64_t block_bytes_ = 0;
  int block_continuations_ = 0;

  bool old_ = false;
  TokenBucket requests_, frames_, header_bytes_, resets_, pings_, acks_, settings_, priorities_,
      window_updates_, no_effect_;
};

}  // namespace tuner::transport
