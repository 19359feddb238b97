#include "tuner/daemon/status_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <list>
#include <thread>
#include <utility>
#include <vector>

#include "tuner/transport/listener.h"

namespace tuner {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr size_t kMostConnections = 16;
constexpr milliseconds kDeadline{2'000};
constexpr milliseconds kPause{250};  // after an accept that failed, for lack of descriptors say

struct Connection {
  int fd = -1;
  steady_clock::time_point end;
  std::string received, answer;
  size_t sent = 0;
  bool answered = false;
  int events() const { return answered ? POLLOUT : POLLIN; }
};

class PollingServer final : public StatusServer {
 public:
  PollingServer(transport::Listening listening, StatusPages pages, int wake)
      : listening_(std::move(listening)), pages_(std::move(pages)), wake_(wake), thread_([this] { run(); }) {}
  ~PollingServer() override {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = write(wake_, &one, sizeof one);
    thread_.join();
    close(wake_);
  }
  const std::string& address() const override { return listening_.address; }

 private:
  void run() {
    while (true) {
      std::vector<pollfd> polled{{wake_, POLLIN, 0}};
      const auto now = steady_clock::now();
      const bool accepts = connections_.size() < kMostConnections && now >= pause_until_;
      milliseconds wait = connections_.empty() && accepts ? milliseconds(60'000) : kPause;
      for (const Connection& c : connections_) polled.push_back({c.fd, static_cast<int16_t>(c.events()), 0});
      if (accepts)
        for (const transport::Listener& listener : listening_.listeners)
          polled.push_back({listener.fd(), POLLIN, 0});
      poll(polled.data(), polled.size(), static_cast<int>(wait.count()));
      if (polled[0].revents != 0) break;
      size_t i = 1;
      for (auto c = connections_.begin(); c != connections_.end(); ++i) {
        const bool done = (polled[i].revents != 0 && !serve(*c)) || steady_clock::now() >= c->end;
        if (done) close(c->fd);
        c = done ? connections_.erase(c) : std::next(c);
      }
      for (; i < polled.size(); ++i)
        if ((polled[i].revents & POLLIN) != 0) accept_from(polled[i].fd);
    }
    for (const Connection& c : connections_) close(c.fd);
  }

  void accept_from(int listener) {
    if (connections_.size() >= kMostConnections) return;
    const int fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0)
      connections_.push_back({.fd = fd, .end = steady_clock::now() + kDeadline});
    else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR && errno != ECONNABORTED)
      pause_until_ = steady_clock::now() + kPause;
  }

  // False: the connection is over.
  bool serve(Connection& c) {
    if (!c.answered && !receive(c)) return false;
    while (c.answered && c.sent < c.answer.size()) {
      const ssize_t n = send(c.fd, c.answer.data() + c.sent, c.answer.size() - c.sent, MSG_NOSIGNAL);
      if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
      c.sent += static_cast<size_t>(n);
    }
    if (!c.answered) return true;
    shutdown(c.fd, SHUT_WR);
    return false;
  }

  bool receive(Connection& c) {
    char buffer[2048];
    while (true) {
      const ssize_t n = recv(c.fd, buffer, sizeof buffer, 0);
      if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
      if (n == 0) return false;
      c.received.append(buffer, static_cast<size_t>(n));
      if (request_is_complete(c.received)) break;
      if (c.received.size() >= kMostRequestBytes) return false;
    }
    c.answer = answer_request(c.received, pages_);
    return c.answered = true;
  }

  transport::Listening listening_;
  const StatusPages pages_;
  const int wake_;
  std::list<Connection> connections_;  // of the thread
  steady_clock::time_point pause_until_{};
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<StatusServer>> StatusServer::start(const std::string& address, StatusPages pages) {
  ASSIGN_OR_RETURN(transport::Listening listening, transport::listen_on(address));
  const int wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake < 0) return failed("metrics on ", address, ": no descriptor is left");
  return std::unique_ptr<StatusServer>(
      std::make_unique<PollingServer>(std::move(listening), std::move(pages), wake));
}

}  // namespace tuner
