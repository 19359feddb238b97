// FrameReader: where one HTTP/2 frame ends and the next begins, however the bytes are cut. Payloads are not
// kept.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

namespace tuner::transport {

// Types and flags of RFC 9113, section 6.
enum class FrameType : uint8_t {
  kData = 0,
  kHeaders = 1,
  kPriority = 2,
  kRstStream = 3,
  kSettings = 4,
  kPushPromise = 5,
  kPing = 6,
  kGoaway = 7,
  kWindowUpdate = 8,
  kContinuation = 9,
};
inline constexpr uint8_t kAck = 0x1, kEndStream = 0x1, kEndHeaders = 0x4;

struct FrameHead {
  uint32_t length = 0;
  FrameType type{};
  uint8_t flags = 0;
  uint32_t stream = 0;
};

class FrameReader {
 public:
  // Cuts `bytes` into frames: on_head() after the 9 bytes of each, on_payload(count) for every run of its
  // payload, on_end() after the last byte. Any of them returning false stops the reading; it must not go on
  // afterwards.
  template <class OnHead, class OnPayload, class OnEnd>
  bool read(std::span<const uint8_t> bytes, OnHead on_head, OnPayload on_payload, OnEnd on_end) {
    while (!bytes.empty()) {
      if (head_bytes_ < kHeadBytes) {
        const size_t count = std::min(kHeadBytes - head_bytes_, bytes.size());
        std::memcpy(head_ + head_bytes_, bytes.data(), count);
        head_bytes_ += count;
        bytes = bytes.subspan(count);
        if (head_bytes_ < kHeadBytes) return true;
        parse_head();
        left_ = frame_.length;
        if (!on_head(frame_)) return false;
      }
      const auto count = static_cast<uint32_t>(std::min<size_t>(left_, bytes.size()));
      if (count > 0) {
        left_ -= count;
        bytes = bytes.subspan(count);
        if (!on_payload(frame_, count)) return false;
      }
      if (left_ > 0) return true;
      head_bytes_ = 0;
      if (!on_end(frame_)) return false;
    }
    return true;
  }

 private:
  static constexpr size_t kHeadBytes = 9;

  void parse_head() {
    frame_.length = static_cast<uint32_t>(head_[0]) << 16 | static_cast<uint32_t>(head_[1]) << 8 | head_[2];
    frame_.type = static_cast<FrameType>(head_[3]);
    frame_.flags = head_[4];
    frame_.stream = static_cast<uint32_t>(head_[5] & 0x7f) << 24 | static_cast<uint32_t>(head_[6]) << 16 |
                    static_cast<uint32_t>(head_[7]) << 8 | head_[8];
  }

  uint8_t head_[kHeadBytes] = {};
  size_t head_bytes_ = 0;
  uint32_t left_ = 0;  // of the payload
  FrameHead frame_;
};

}  // namespace tuner::transport
