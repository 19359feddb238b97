#include "tuner/transport/frame_guard.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "compiler_core/base/status.h"

namespace tuner::transport {
namespace {

// DATA frames of fewer bytes, for a request that has ended, count as frames without effect. Longer ones may
// be on their way when the server refuses a long message; the server's windows bound those.
constexpr uint32_t kShortData = 1024;

constexpr std::array<std::string_view, kCauses> kCauseNames = {
    "none",         "handshake",  "not_http2",    "protocol",         "open_requests",  "slow_request",
    "resets",       "pings",      "settings",     "priorities",       "window_updates", "no_effect",
    "header_block", "frame_size", "message_size", "unfinished_bytes", "shared_resets",  "shared_bytes"};

}  // namespace

std::string_view cause_name(Cause cause) { return kCauseNames[static_cast<size_t>(cause)]; }

FrameGuard::FrameGuard(const FrameLimits& limits, SharedBudget* budget, int64_t now_ms)
    : limits_(limits),
      begin_ms_(now_ms),
      now_ms_(now_ms),
      member_(budget),
      requests_(limits.requests, now_ms),
      frames_(limits.frames, now_ms),
      header_bytes_(limits.header_bytes, now_ms),
      resets_({limits.resets.per_s, std::min(limits.young_resets, limits.resets.burst)}, now_ms),
      pings_(limits.pings, now_ms),
      acks_(limits.acks, now_ms),
      settings_(limits.settings, now_ms),
      priorities_(limits.priorities, now_ms),
      window_updates_(limits.window_updates, now_ms),
      no_effect_(limits.no_effect, now_ms) {}

const FrameVerdict& FrameGuard::feed(std::span<const uint8_t> from_client, int64_t now_ms) {
  if (!on_time(now_ms).is_ok()) return verdict();
  if (!old_ && now_ms - begin_ms_ >= limits_.young_ms) {
    old_ = true;
    resets_.set_burst(limits_.resets.burst);
  }
  if (read_preface(from_client))
    reader_.read(
        from_client, [this](const FrameHead& frame) { return on_head(frame); },
        [this](const FrameHead& frame, uint32_t count) { return on_payload(frame, count); },
        [this](const FrameHead& frame) { return on_end(frame); });
  return verdict();
}

void FrameGuard::feed_reply(std::span<const uint8_t> from_server) {
  reply_reader_.read(
      from_server,
      [this](const FrameHead& frame) {
        const bool may_end = frame.type == FrameType::kData || frame.type == FrameType::kHeaders;
        if (frame.type == FrameType::kRstStream || (may_end && (frame.flags & kEndStream) != 0))
          end_request(frame.stream);
        return true;
      },
      [](const FrameHead&, uint32_t) { return true; }, [](const FrameHead&) { return true; });
}

std::optional<int64_t> FrameGuard::next_deadline() const {
  if (!has_settings_) return begin_ms_ + limits_.handshake_ms;
  std::optional<int64_t> next;
  if (block_stream_ != 0) next = block_begin_ms_ + limits_.request_ms;
  for (const Request& request : open_) {
    const int64_t deadline = deadline_of(request);
    if (!next || deadline < *next) next = deadline;
  }
  return next;
}

const FrameVerdict& FrameGuard::on_time(int64_t now_ms) {
  now_ms_ = std::max(now_ms_, now_ms);
  if (!verdict().is_ok()) return verdict();
  const std::optional<int64_t> deadline = next_deadline();
  if (!deadline || now_ms_ < *deadline) return verdict();
  if (!has_settings_)
    bad(Cause::kHandshake, str("no HTTP/2 preface and SETTINGS within ", limits_.handshake_ms, " ms"));
  else
    bad(Cause::kSlowRequest, str("a request was not sent completely within ", limits_.request_ms,
                                 " ms and the time of its bytes at ", limits_.request_bytes_per_s,
                                 " bytes a second; ", open_.size(), " are open"));
  return verdict();
}

void FrameGuard::forgive(int64_t ms) {
  for (Request& request : open_) request.begin_ms += ms;
  block_begin_ms_ += ms;
}

int64_t FrameGuard::wait_ms(int64_t now_ms) {
  return std::max({requests_.wait_ms(now_ms), frames_.wait_ms(now_ms), header_bytes_.wait_ms(now_ms),
                   member_.wait_ms(now_ms)});
}

bool FrameGuard::bad(Cause cause, std::string reason) {
  verdict_ = {cause, std::move(reason)};
  return false;
}

bool FrameGuard::count(TokenBucket& bucket, Rate rate, Cause cause, std::string_view what) {
  return bucket.take(now_ms_) || bad(cause, str(what, " more often than ", rate.per_s, " times a second"));
}

// Takes what belongs to the preface off `bytes`. False: it is none.
bool FrameGuard::read_preface(std::span<const uint8_t>& bytes) {
  const size_t count = std::min(kPreface.size() - preface_bytes_, bytes.size());
  if (count == 0) return true;
  if (std::memcmp(bytes.data(), kPreface.data() + preface_bytes_, count) != 0)
    return bad(Cause::kNotHttp2, "something else than HTTP/2 came. Is the client one of gRPC, without TLS?");
  preface_bytes_ += count;
  bytes = bytes.subspan(count);
  return true;
}

bool FrameGuard::on_head(const FrameHead& frame) {
  frames_.spend(now_ms_);
  const bool ack = (frame.flags & kAck) != 0;
  if (!has_settings_ && (frame.type != FrameType::kSettings || ack))
    return bad(Cause::kProtocol, "the first frame is not SETTINGS");
  if (block_stream_ != 0 && (frame.type != FrameType::kContinuation || frame.stream != block_stream_))
    return bad(Cause::kProtocol, "a header block is interrupted by another frame");
  const bool is_data = frame.type == FrameType::kData, is_headers = frame.type == FrameType::kHeaders;
  const int64_t most = is_data ? limits_.data_frame_bytes : limits_.other_frame_bytes;
  if (frame.length > most && !is_headers && frame.type != FrameType::kContinuation)
    return bad(Cause::kFrameSize, str("a frame of kind ", static_cast<int>(frame.type), " has ", frame.length,
                                      " bytes, at most ", most, " are taken"));
  switch (frame.type) {
    case FrameType::kData:
      return on_data(frame);
    case FrameType::kHeaders:
      return on_headers(frame);
    case FrameType::kContinuation:
      return on_continuation(frame);
    case FrameType::kRstStream:
      return on_reset(frame);
    case FrameType::kPing:
      return ack ? count(acks_, limits_.acks, Cause::kPings, "PING acknowledgements came")
                 : count(pings_, limits_.pings, Cause::kPings, "PING came");
    case FrameType::kSettings:
      return ack ? count(acks_, limits_.acks, Cause::kSettings, "SETTINGS acknowledgements came")
                 : count(settings_, limits_.settings, Cause::kSettings, "SETTINGS came");
    case FrameType::kPriority:
      return count(priorities_, limits_.priorities, Cause::kPriorities, "PRIORITY came");
    case FrameType::kWindowUpdate:
      return count(window_updates_, limits_.window_updates, Cause::kWindowUpdates, "WINDOW_UPDATE came");
    case FrameType::kPushPromise:
      return bad(Cause::kProtocol, "PUSH_PROMISE came, which no client may send");
    default:
      return count(no_effect_, limits_.no_effect, Cause::kNoEffect, "frames without effect came");
  }
}

bool FrameGuard::on_data(const FrameHead& frame) {
  const bool ends = (frame.flags & kEndStream) != 0;
  Request* request = find(frame.stream);
  if ((request == nullptr && frame.length < kShortData) || (frame.length == 0 && !ends))
    if (!count(no_effect_, limits_.no_effect, Cause::kNoEffect, "frames without effect came")) return false;
  if (request == nullptr) return true;
  request->announced += frame.length;
  if (request->announced > limits_.message_bytes)
    return bad(Cause::kMessageSize, str("a request has ", request->announced, " bytes or more, at most ",
                                        limits_.message_bytes, " are taken"));
  return true;
}

bool FrameGuard::on_headers(const FrameHead& frame) {
  block_stream_ = frame.stream;
  block_ends_request_ = (frame.flags & kEndStream) != 0;
  block_begin_ms_ = now_ms_;
  block_bytes_ = frame.length;
  block_continuations_ = 0;
  header_bytes_.spend(now_ms_, frame.length);
  if (block_bytes_ > limits_.header_block_bytes)
    return bad(Cause::kHeaderBlock, str("a header block has ", block_bytes_, " bytes, at most ",
                                        limits_.header_block_bytes, " are taken"));
  if (frame.stream % 2 == 0)
    return bad(Cause::kProtocol, str("HEADERS of stream ", frame.stream, ", which no client may open"));
  if (frame.stream > last_stream_) return on_new_request(frame);
  if (find(frame.stream) == nullptr || !block_ends_request_)  // else these are its trailers
    return count(no_effect_, limits_.no_effect, Cause::kNoEffect, "frames without effect came");
  return true;
}

bool FrameGuard::on_new_request(const FrameHead& frame) {
  last_stream_ = frame.stream;
  requests_.spend(now_ms_);
  member_.request(now_ms_);
  if (block_ends_request_) return true;  // the deadline of its header block is enough
  if (static_cast<int>(open_.size()) >= limits_.open_requests)
    return bad(Cause::kOpenRequests,
               str("more than ", limits_.open_requests, " requests were begun and not finished"));
  open_.push_back({frame.stream, now_ms_, 0, 0});
  return true;
}

bool FrameGuard::on_continuation(const FrameHead& frame) {
  if (block_stream_ == 0) return bad(Cause::kProtocol, "CONTINUATION without HEADERS");
  block_bytes_ += frame.length;
  header_bytes_.spend(now_ms_, frame.length);
  if (++block_continuations_ > limits_.continuations)
    return bad(Cause::kHeaderBlock,
               str("a header block has more than ", limits_.continuations, " CONTINUATION frames"));
  if (block_bytes_ > limits_.header_block_bytes)
    return bad(Cause::kHeaderBlock, str("a header block has ", block_bytes_, " bytes, at most ",
                                        limits_.header_block_bytes, " are taken"));
  return true;
}

bool FrameGuard::on_reset(const FrameHead& frame) {
  end_request(frame.stream);
  if (!count(resets_, limits_.resets, Cause::kResets, "RST_STREAM came")) return false;
  member_.reset(now_ms_, !old_);
  return member_.verdict().is_ok();
}

bool FrameGuard::on_payload(const FrameHead& frame, uint32_t count) {
  if (frame.type != FrameType::kData) return true;
  Request* request = find(frame.stream);
  if (request == nullptr) return true;
  request->bytes += count;
  member_.bytes(count);
  if (member_.unfinished_bytes() > limits_.unfinished_bytes)
    return bad(Cause::kUnfinishedBytes,
               str("its unfinished requests hold more than ", limits_.unfinished_bytes, " bytes"));
  return member_.verdict().is_ok();
}

bool FrameGuard::on_end(const FrameHead& frame) {
  if (frame.type == FrameType::kSettings) has_settings_ = true;
  if (frame.type == FrameType::kData && (frame.flags & kEndStream) != 0) end_request(frame.stream);
  if (block_stream_ != 0 && (frame.flags & kEndHeaders) != 0) {
    if (block_ends_request_) end_request(block_stream_);
    block_stream_ = 0;
  }
  return true;
}

FrameGuard::Request* FrameGuard::find(uint32_t stream) {
  for (Request& request : open_)
    if (request.stream == stream) return &request;
  return nullptr;
}

void FrameGuard::end_request(uint32_t stream) {
  Request* request = find(stream);
  if (request == nullptr) return;
  member_.bytes(-request->bytes);
  *request = open_.back();
  open_.pop_back();
}

int64_t FrameGuard::deadline_of(const Request& request) const {
  return request.begin_ms + limits_.request_ms + request.bytes * 1000 / limits_.request_bytes_per_s;
}

}  // namespace tuner::transport
