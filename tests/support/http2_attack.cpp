#include "tests/support/http2_attack.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tuner::testing::http2 {
namespace {

constexpr int kSendLimitMs = 10'000;
constexpr size_t kKept = 64 << 10;

void add_uint32(std::string& out, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xff);
}

// An HPACK string without Huffman code (RFC 7541, 5.2): its length in 7 bits, or 127 and the rest in groups
// of 7.
void add_string(std::string& out, std::string_view text) {
  if (text.size() < 127) {
    out += static_cast<char>(text.size());
  } else {
    out += static_cast<char>(127);
    size_t rest = text.size() - 127;
    for (; rest >= 128; rest /= 128) out += static_cast<char>(rest % 128 + 128);
    out += static_cast<char>(rest);
  }
  out += text;
}

// A literal field, never indexed, with a new name (RFC 7541, 6.2.3).
void add_field(std::string& out, std::string_view name, std::string_view value) {
  out += static_cast<char>(0x10);
  add_string(out, name);
  add_string(out, value);
}

int connect_unix(const std::string& path) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, path.data(), std::min(path.size(), sizeof name.sun_path - 1));
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && connect(fd, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

int connect_tcp(const std::string& address) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  const size_t colon = address.rfind(':');
  name.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(colon + 1))));
  if (inet_pton(AF_INET, address.substr(0, colon).c_str(), &name.sin_addr) != 1) return -1;
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && connect(fd, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

}  // namespace

std::string preface() { return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"; }

std::string frame(uint8_t type, uint8_t flags, uint32_t stream, std::string_view payload) {
  std::string out;
  for (int shift = 16; shift >= 0; shift -= 8) out += static_cast<char>(payload.size() >> shift & 0xff);
  out += static_cast<char>(type);
  out += static_cast<char>(flags);
  add_uint32(out, stream);
  out += payload;
  return out;
}

std::string settings() { return frame(4, 0, 0); }
std::string settings_ack() { return frame(4, 1, 0); }

std::string request_block(std::string_view path) {
  std::string block;
  add_field(block, ":method", "POST");
  add_field(block, ":scheme", "http");
  add_field(block, ":path", path);
  add_field(block, ":authority", "localhost");
  add_field(block, "te", "trailers");
  add_field(block, "content-type", "application/grpc");
  return block;
}

std::string headers(uint32_t stream, std::string_view path, bool end_stream) {
  return frame(1, end_stream ? 5 : 4, stream, request_block(path));
}

std::string data(uint32_t stream, std::string_view bytes, bool end_stream) {
  return frame(0, end_stream ? 1 : 0, stream, bytes);
}

std::string grpc_message(std::string_view bytes) {
  std::string out(1, '\0');
  add_uint32(out, static_cast<uint32_t>(bytes.size()));
  out += bytes;
  return out;
}

std::string reset(uint32_t stream) { return frame(3, 0, stream, std::string_view("\0\0\0\x08", 4)); }
std::string ping(bool ack) { return frame(6, ack ? 1 : 0, 0, "12345678"); }
std::string priority(uint32_t stream) { return frame(2, 0, stream, std::string_view("\0\0\0\0\x10", 5)); }

std::string window_update(uint32_t stream, uint32_t by) {
  std::string payload;
  add_uint32(payload, by);
  return frame(8, 0, stream, payload);
}

Http2Attack::Http2Attack(const std::string& address)
    : fd_(address.starts_with("unix:") ? connect_unix(address.substr(5)) : connect_tcp(address)),
      closed_(fd_ < 0) {}

Http2Attack::~Http2Attack() {
  if (fd_ >= 0) close(fd_);
}

bool Http2Attack::wait(short events, int limit_ms) const {
  pollfd entry{fd_, events, 0};
  return poll(&entry, 1, limit_ms) > 0;
}

bool Http2Attack::send(std::string_view bytes) {
  while (!bytes.empty() && !is_closed()) {
    const ssize_t count = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0)
      bytes.remove_prefix(static_cast<size_t>(count));
    else if (errno != EAGAIN && errno != EINTR)
      closed_ = true;
    else if (!wait(POLLIN | POLLOUT, kSendLimitMs))
      return false;
  }
  return !closed_;
}

bool Http2Attack::is_closed() {
  char buffer[16 << 10];
  while (!closed_) {
    const ssize_t count = recv(fd_, buffer, sizeof buffer, MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) break;
    if (count <= 0)
      closed_ = true;
    else if (received_.size() < kKept)
      received_.append(buffer, std::min(static_cast<size_t>(count), kKept - received_.size()));
  }
  return closed_;
}

bool Http2Attack::closes_within(std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!is_closed()) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    wait(POLLIN, static_cast<int>(std::min<int64_t>(left.count(), 100)));
  }
  return true;
}

}  // namespace tuner::testing::http2
