// A client of a server on this host that speaks text, such as HTTP/1.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <string>

namespace tuner::testing {

class TextClient {
 public:
  // `address`: HOST:PORT, of which the port counts.
  explicit TextClient(const std::string& address) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
  }
  ~TextClient() { close(fd_); }
  TextClient(const TextClient&) = delete;
  TextClient& operator=(const TextClient&) = delete;

  bool connected() const { return connected_; }
  void send_text(const std::string& text) const { send(fd_, text.data(), text.size(), MSG_NOSIGNAL); }
  // All until the server closes; "late" is added if it does not.
  std::string rest(std::chrono::seconds limit = std::chrono::seconds(20)) const {
    std::string all;
    const auto end = std::chrono::steady_clock::now() + limit;
    while (std::chrono::steady_clock::now() < end) {
      pollfd polled{fd_, POLLIN, 0};
      if (poll(&polled, 1, 100) <= 0) continue;
      char buffer[4096];
      const ssize_t n = recv(fd_, buffer, sizeof buffer, 0);
      if (n <= 0) return all;
      all.append(buffer, static_cast<size_t>(n));
    }
    return all + "late";
  }
  // Reads until all that came holds `text`; false: not within the limit, or the server closed.
  bool says(const std::string& text, std::chrono::seconds limit = std::chrono::seconds(20)) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (said_.find(text) == std::string::npos) {
      if (std::chrono::steady_clock::now() >= end) return false;
      pollfd polled{fd_, POLLIN, 0};
      if (poll(&polled, 1, 100) <= 0) continue;
      char buffer[4096];
      const ssize_t n = recv(fd_, buffer, sizeof buffer, 0);
      if (n <= 0) return false;
      said_.append(buffer, static_cast<size_t>(n));
    }
    return true;
  }

 private:
  int fd_;
  bool connected_ = false;
  std::string said_;  // to says()
};

}  // namespace tuner::testing
