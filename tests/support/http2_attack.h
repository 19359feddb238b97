// A raw HTTP/2 client for tests that attack a server: frames as bytes, and a socket that sends them. It does
// nothing by itself: it answers no PING, keeps no window, and sends whatever it is told.
//
//   Http2Attack attack("127.0.0.1:7070");
//   attack.send(preface() + settings());
//   for (uint32_t stream = 1; !attack.is_closed(); stream += 2)
//     attack.send(headers(stream, "/tuner.v1.Workers/Sync", /*end_stream=*/false) + reset(stream));
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace tuner::testing::http2 {

// Frames as bytes.
std::string preface();
std::string frame(uint8_t type, uint8_t flags, uint32_t stream, std::string_view payload = {});
std::string settings();
std::string settings_ack();
// A header block of a gRPC request for `path`, such as "/tuner.v1.Workers/Sync": literals that are never
// indexed, no Huffman codes.
std::string request_block(std::string_view path);
// HEADERS with END_HEADERS and that block.
std::string headers(uint32_t stream, std::string_view path, bool end_stream);
std::string data(uint32_t stream, std::string_view bytes, bool end_stream);
// A gRPC message: its five bytes of length, then `bytes`.
std::string grpc_message(std::string_view bytes);
std::string reset(uint32_t stream);
std::string ping(bool ack = false);
std::string priority(uint32_t stream);
std::string window_update(uint32_t stream, uint32_t by);

class Http2Attack {
 public:
  // Connects to "unix:/path" or "127.0.0.1:PORT"; is_closed() if that fails.
  explicit Http2Attack(const std::string& address);
  ~Http2Attack();
  Http2Attack(const Http2Attack&) = delete;
  Http2Attack& operator=(const Http2Attack&) = delete;

  // Sends all of it, reading away what the server answers meanwhile. Returns false when the server has closed
  // the connection, or takes nothing for ten seconds.
  bool send(std::string_view bytes);
  // Reads away what there is. True once the server has closed the connection.
  bool is_closed();
  // Waits for that, at most for `limit`.
  bool closes_within(std::chrono::milliseconds limit);
  // Returns what the server has sent so far, at most its first 64 KiB.
  const std::string& received() const { return received_; }
  int fd() const { return fd_; }

 private:
  bool wait(short events, int limit_ms) const;

  int fd_ = -1;
  bool closed_ = false;
  std::string received_;
};

}  // namespace tuner::testing::http2
