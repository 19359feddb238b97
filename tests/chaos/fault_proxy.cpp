#include "tests/chaos/fault_proxy.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "tests/support/wait_until.h"

namespace tuner::chaos {
namespace {

constexpr size_t kMostUnderWay = size_t{1} << 20;  // of one direction; then its sender waits
constexpr int kTickMs = 5;                         // how exact a delay is

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

void no_wait(int fd) {
  ::fcntl(fd, F_SETFL, O_NONBLOCK);
  const int yes = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

void reset(int& fd) {
  if (fd < 0) return;
  const linger at_once{1, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  ::close(fd);
  fd = -1;
}

bool would_wait() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

FaultProxy::FaultProxy(int to) : to_(to) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (listener_ < 0 || ::bind(listener_, reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::listen(listener_, 256) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    std::perror("fault proxy");
    std::abort();
  }
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { run(); });
}

FaultProxy::~FaultProxy() {
  stopped_ = true;
  thread_.join();
  for (Connection& connection : connections_) reset(connection);
  ::close(listener_);
}

std::string FaultProxy::address() const { return "127.0.0.1:" + std::to_string(port_); }

void FaultProxy::delay(ms late, ms lasting) {
  const std::lock_guard lock(mutex_);
  late_ = late;
  late_until_ = Clock::now() + lasting;
}

void FaultProxy::limit(int64_t bytes_per_s) { bytes_per_s_ = bytes_per_s; }

void FaultProxy::part(ms lasting) {
  const std::lock_guard lock(mutex_);
  parted_until_ = Clock::now() + lasting;
}

void FaultProxy::cut() {
  const std::lock_guard lock(mutex_);
  cut_ = true;
}

void FaultProxy::heal() {
  const std::lock_guard lock(mutex_);
  late_until_ = parted_until_ = {};
  cut_ = false;
}

void FaultProxy::run() {
  while (!stopped_) {
    std::vector<pollfd> wait{{listener_, POLLIN, 0}};
    bool due = false;  // bytes under way, or a socket that would not take all
    for (const Connection& c : connections_) {
      for (const auto& [fd, stream] : {std::pair{c.caller, &c.to_callee}, {c.callee, &c.to_caller}})
        if (!stream->ended && stream->size < kMostUnderWay) wait.push_back({fd, POLLIN, 0});
      due = due || c.to_callee.size + c.to_caller.size > 0;
    }
    ::poll(wait.data(), wait.size(), due ? kTickMs : 50);

    const Clock::time_point now = Clock::now();
    ms late{0};
    bool parted = false, cut = false;
    {
      const std::lock_guard lock(mutex_);
      if (now < late_until_) late = late_;
      parted = now < parted_until_;
      cut = std::exchange(cut_, false);
    }
    if (cut) {
      for (Connection& connection : connections_) reset(connection);
      connections_.clear();
    }
    if (parted) {
      let_pass(ms(kTickMs));
      continue;
    }
    accept_all();
    for (Connection& connection : connections_) move(connection, now, late);
    std::erase_if(connections_, [](Connection& c) {
      const bool over = c.broken || (c.to_callee.told && c.to_caller.told);
      if (over) reset(c);
      return over;
    });
  }
}

void FaultProxy::accept_all() {
  for (;;) {
    int caller = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (caller < 0) return;
    int callee = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = loopback(to_);
    // On loopback a listener answers at once, and so does its absence.
    if (::connect(callee, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      chaos::reset(caller);
      chaos::reset(callee);
      continue;
    }
    no_wait(caller);
    no_wait(callee);
    connections_.push_back({.caller = caller, .callee = callee});
  }
}

void FaultProxy::move(Connection& c, Clock::time_point now, ms late) {
  read_from(c.caller, c.to_callee, to_callee_, now, late, c.broken);
  read_from(c.callee, c.to_caller, to_caller_, now, late, c.broken);
  write_to(c.callee, c.to_callee, now, c.broken);
  write_to(c.caller, c.to_caller, now, c.broken);
}

void FaultProxy::read_from(int from, Stream& stream, Lane& lane, Clock::time_point now, ms late,
                           bool& broken) const {
  std::array<char, 16 << 10> buffer;
  while (!stream.ended && !broken && stream.size < kMostUnderWay) {
    const ssize_t n = ::recv(from, buffer.data(), buffer.size(), 0);
    if (n < 0 && would_wait()) return;
    if (n < 0) broken = true;
    if (n == 0) stream.ended = true;
    if (n <= 0) return;
    Clock::time_point due = now;
    if (const int64_t rate = bytes_per_s_; rate > 0) {
      due = std::max(now, lane.free) +
            std::chrono::nanoseconds(static_cast<int64_t>(1e9 * static_cast<double>(n)) / rate);
      lane.free = due;
    }
    stream.under_way.push_back({due + late, std::string(buffer.data(), static_cast<size_t>(n))});
    stream.size += static_cast<size_t>(n);
  }
}

void FaultProxy::write_to(int to, Stream& stream, Clock::time_point now, bool& broken) {
  while (!stream.under_way.empty() && stream.under_way.front().due <= now && !broken) {
    std::string& bytes = stream.under_way.front().bytes;
    const ssize_t n = ::send(to, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && would_wait()) return;
    if (n < 0) {
      broken = true;
      return;
    }
    stream.size -= static_cast<size_t>(n);
    bytes.erase(0, static_cast<size_t>(n));
    if (bytes.empty()) stream.under_way.pop_front();
  }
  if (!stream.ended || stream.told || !stream.under_way.empty()) return;
  ::shutdown(to, SHUT_WR);
  stream.told = true;
}

void FaultProxy::reset(Connection& connection) {
  chaos::reset(connection.caller);
  chaos::reset(connection.callee);
}

}  // namespace tuner::chaos
