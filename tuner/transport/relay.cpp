#include "tuner/transport/relay.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace tuner::transport {
namespace {

// Reads of one socket in a turn: a fast sender does not keep the others waiting.
constexpr int kReadsPerTurn = 4;
// Reads when the gate stops: what a socketpair holds, several times.
constexpr int kReadsAtTheEnd = 32;

// Whether the other end of a socketpair neither writes nor reads any more.
bool is_hung_up(int fd) {
  pollfd entry{fd, 0, 0};
  return poll(&entry, 1, 0) > 0 && (entry.revents & POLLHUP) != 0;
}

}  // namespace

std::unique_ptr<Chunk> ChunkPool::take() {
  add(in_use_);
  if (free_.empty()) return std::unique_ptr<Chunk>(new Chunk);
  std::unique_ptr<Chunk> chunk = std::move(free_.back());
  free_.pop_back();
  return chunk;
}

void ChunkPool::give(std::unique_ptr<Chunk> chunk) {
  in_use_.store(in_use() - 1, std::memory_order_relaxed);
  if (free_.size() < kKept) free_.push_back(std::move(chunk));
}

Relay::Relay(RelayHouse& house, int client_fd, bool tls, int64_t now_ms)
    : house_(house), begin_ms_(now_ms), moved_ms_(now_ms), client_took_ms_(now_ms) {
  client_ = {this, client_fd, 0};
  server_ = {this, -1, 0};
  up_.from = down_.to = &client_;
  up_.to = down_.from = &server_;
  if (tls) tls_ = house_.tls->accept();
  if (house_.limits.http2 && !tls) guard_.emplace(house_.limits.frames, &house_.budget, now_ms);
  const int on = 1;  // fails on a Unix socket, which has no such delay
  setsockopt(client_fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// A TCP socket that is closed with bytes it has not read sends a reset, which may overtake what the client
// has not read yet: the server's last words. So those bytes are read first.
Relay::~Relay() {
  if (!name_.empty()) house_.peers.leave(name_);
  shutdown(client_.fd, SHUT_WR);
  for (int i = 0; i < kReadsPerTurn; ++i)
    if (recv(client_.fd, house_.scratch->bytes.data(), kReadBytes, MSG_DONTWAIT) <= 0) break;
  close(client_.fd);
  if (server_.fd >= 0) close(server_.fd);
  for (Flow* flow : {&up_, &down_})
    if (flow->pending != nullptr) house_.pool.give(std::move(flow->pending));
}

void Relay::start() {
  if (!guard_ && !tls_ && !open_server()) return;
  watch();
}

// Makes the socketpair and hands one end over.
bool Relay::open_server() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) {
    add(house_.counters.turned_away_descriptors);
    end_with(Cause::kNone, str("no descriptor is left for its way to the server: ", std::strerror(errno)));
    return false;
  }
  server_.fd = ends[0];
  name_ = house_.peers.enter(server_.fd, peer_of_client());
  if (name_.empty()) {  // the server could not tell who it is
    close(ends[1]);
    end_with(Cause::kNone, str("its way to the server cannot be named: ", std::strerror(errno)));
    return false;
  }
  server_heard_ = true;
  house_.handover(ends[1]);
  return true;
}

Peer Relay::peer_of_client() const {
  if (tls_) return tls_->peer();
  Peer peer;
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  if (getsockname(client_.fd, reinterpret_cast<sockaddr*>(&name), &size) != 0 || name.ss_family != AF_UNIX)
    return peer;
  ucred who{};
  size = sizeof who;
  if (getsockopt(client_.fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) return peer;
  peer.way = Peer::Way::kUnix;
  peer.uid = who.uid;
  return peer;
}

void Relay::on_event(Side& side, uint32_t events, int64_t now_ms) {
  // An error comes with the next read or write; what the other side wrote before it is still read.
  if ((events & EPOLLERR) != 0) events |= EPOLLHUP;
  Flow& out = &side == &client_ ? down_ : up_;
  Flow& in = &side == &client_ ? up_ : down_;
  if (out.pending != nullptr && (events & (EPOLLOUT | EPOLLHUP)) != 0) flush(out, now_ms);
  if (!end_ && (side.interest & EPOLLIN) != 0 && (events & (EPOLLIN | EPOLLHUP)) != 0) pump(in, now_ms);
  if (!end_) watch();
}

// Reads what is there and passes it on, until the other side takes no more.
void Relay::pump(Flow& flow, int64_t now_ms) {
  for (int i = 0; i < kReadsPerTurn && flow.pending == nullptr && !flow.ended && !paused_until_ms_; ++i) {
    const size_t most = most_of(flow);
    const ssize_t count = read_some(flow);
    if (count < 0) {
      if (errno != EAGAIN && errno != EINTR) end_quietly();
      break;
    }
    if (count == 0) {
      flow.ended = true;
      break;
    }
    moved_ms_ = now_ms;
    if (&flow == &up_)
      take_from_client(static_cast<size_t>(count), now_ms);
    else
      take_from_server(static_cast<size_t>(count), now_ms);
    if (end_) return;
    if (static_cast<size_t>(count) < most) break;
  }
  finish(flow);
}

// What is read of the flow at once.
size_t Relay::most_of(const Flow& flow) const {
  if (!tls_) return kReadBytes;
  return &flow == &up_ ? TlsConnection::kMostCipher : TlsConnection::kMostSend;
}

// What the client encrypts goes to the second scratch chunk, all else to the first, behind the room for the
// preface.
ssize_t Relay::read_some(Flow& flow) {
  const bool cipher = tls_ && &flow == &up_;
  uint8_t* const to = cipher ? house_.cipher->bytes.data() : house_.scratch->bytes.data() + kPreface.size();
  return recv(flow.from->fd, to, most_of(flow), MSG_DONTWAIT);
}

void Relay::take_from_client(size_t count, int64_t now_ms) {
  if (tls_)
    take_cipher(count, now_ms);
  else
    (void)pass_from_client(count, now_ms);
}

void Relay::take_cipher(size_t count, int64_t now_ms) {
  const bool was_open = tls_->is_open();
  const size_t plain =
      tls_->receive({house_.cipher->bytes.data(), count}, house_.scratch->bytes.data() + kPreface.size());
  send_cipher();  // of the handshake, also an alert that says what is wrong
  if (end_) return;
  if (!tls_->fault().empty()) {
    add(house_.counters.closed_tls);
    return end_with(was_open ? Cause::kProtocol : Cause::kHandshake, "TLS: " + tls_->fault());
  }
  if (!was_open && tls_->is_open()) {
    add(house_.counters.handshakes);
    if (house_.limits.http2)
      guard_.emplace(house_.limits.frames, &house_.budget, now_ms);
    else if (!open_server())
      return;
  }
  if (plain > 0 && !pass_from_client(plain, now_ms)) return;
  if (tls_->has_ended()) up_.ended = true;
}

void Relay::take_from_server(size_t count, int64_t now_ms) {
  const uint8_t* const data = house_.scratch->bytes.data() + kPreface.size();
  if (guard_) guard_->feed_reply({data, count});
  add(house_.counters.bytes_out, count);
  client_took_ms_ = now_ms;  // the wait for the client begins here, if it takes not all
  if (!tls_) return send_on(down_, data, count);
  tls_->send({data, count});
  send_cipher();
  if (!end_ && !tls_->fault().empty()) end_with(Cause::kProtocol, "TLS: " + tls_->fault());
}

// Sends to the client what is encrypted for it, as far as it is taken. What is not stays in `pending` and
// behind it in the TLS connection: nothing, unless a client asks for new keys again and again and does not
// read.
void Relay::send_cipher() {
  while (tls_->output_bytes() > 0 && down_.pending == nullptr && !end_) {
    const size_t count = tls_->take_output(house_.cipher->bytes.data(), house_.cipher->bytes.size());
    send_on(down_, house_.cipher->bytes.data(), count);
  }
  if (tls_->output_bytes() > kReadBytes && !end_) {
    add(house_.counters.closed_tls);
    end_with(Cause::kProtocol, "TLS: the client asks for answers and does not read them");
  }
}

// Judges what was read into the scratch chunk, and passes it on. Before the preface is complete nothing is
// passed on, and the server does not know of the client. False: the relay has ended, or has nothing to pass
// on yet.
bool Relay::pass_from_client(size_t count, int64_t now_ms) {
  uint8_t* data = house_.scratch->bytes.data() + kPreface.size();
  if (guard_) {
    const size_t before = guard_->preface_bytes();
    const FrameVerdict& verdict = guard_->feed({data, count}, now_ms);
    if (!verdict.is_ok()) {
      end_by_guard(verdict);
      return false;
    }
    if (!guard_->has_preface()) return true;
    if (server_.fd < 0) {
      if (!open_server()) return false;
      data -= before;
      count += before;
      std::memcpy(data, kPreface.data(), before);
    }
    if (const int64_t wait = guard_->wait_ms(now_ms); wait > 0) {
      paused_until_ms_ = now_ms + wait;
      add(house_.counters.slowed_down);
    }
  }
  add(house_.counters.bytes_in, count);
  send_on(up_, data, count);
  return !end_;
}

// Writes, and keeps what is not taken.
void Relay::send_on(Flow& flow, const uint8_t* data, size_t size) {
  if (!write_some(flow, data, size) || size == 0) return;
  flow.pending = house_.pool.take();
  std::memcpy(flow.pending->bytes.data(), data, size);
  flow.begin = 0;
  flow.end = size;
}

// Writes until the socket is full, moving `data` on. False: the relay has ended.
bool Relay::write_some(Flow& flow, const uint8_t*& data, size_t& size) {
  while (size > 0) {
    const ssize_t count = send(flow.to->fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == ENOBUFS)) return true;
    if (count < 0 && &flow == &up_) {  // the server reads no more; its last words may still be on their way
      flow.ended = flow.closed = true;
      size = 0;
      if (down_.closed) end_quietly();
      return !end_;
    }
    if (count < 0) {
      end_quietly();
      return false;
    }
    data += count;
    size -= static_cast<size_t>(count);
  }
  return true;
}

void Relay::flush(Flow& flow, int64_t now_ms) {
  const uint8_t* data = flow.pending->bytes.data() + flow.begin;
  size_t size = flow.end - flow.begin;
  const size_t before = size;
  if (!write_some(flow, data, size)) return;
  flow.begin = flow.end - size;
  if (size < before) {
    moved_ms_ = now_ms;
    if (&flow == &down_) client_took_ms_ = now_ms;
  }
  if (size == 0) {
    house_.pool.give(std::move(flow.pending));
    if (tls_ && &flow == &down_) send_cipher();
    if (!end_) finish(flow);
  }
}

// Once a side has sent its last byte and the other has it, tells the other. When both have, the relay ends;
// also when the server has closed its end, not just its half: a client that is not awake may take long to
// notice and close.
void Relay::finish(Flow& flow) {
  if (!flow.ended || flow.pending != nullptr || flow.closed) return;
  if (tls_ && &flow == &down_) {
    tls_->close();
    send_cipher();
    if (end_ || flow.pending != nullptr) return;
  }
  flow.closed = true;
  if (flow.to->fd < 0) return end_quietly();  // a client that left before its preface
  shutdown(flow.to->fd, SHUT_WR);
  if ((up_.closed && down_.closed) || (&flow == &down_ && is_hung_up(server_.fd))) end_quietly();
}

void Relay::watch() {
  uint32_t client = 0, server = 0;
  if (!up_.ended && up_.pending == nullptr && !paused_until_ms_) client |= EPOLLIN;
  if (down_.pending != nullptr) client |= EPOLLOUT;
  if (!down_.ended && down_.pending == nullptr) server |= EPOLLIN;
  if (up_.pending != nullptr) server |= EPOLLOUT;
  watch_side(client_, client);
  if (server_.fd >= 0) watch_side(server_, server);
}

// A socket of which nothing is wanted is taken out: epoll would report its hang-up again and again.
void Relay::watch_side(Side& side, uint32_t interest) {
  if (side.interest == interest) return;
  epoll_event event{};
  event.events = interest;
  event.data.ptr = &side;
  const int what = interest == 0 ? EPOLL_CTL_DEL : side.interest == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
  side.interest = interest;
  if (epoll_ctl(house_.epoll, what, side.fd, &event) != 0)
    end_with(Cause::kNone, str("its socket cannot be watched: ", std::strerror(errno)));
}

void Relay::on_tick(int64_t now_ms, int64_t since_ms) {
  if (tls_ && !tls_->is_open() && now_ms - begin_ms_ >= house_.limits.tls_handshake_ms) {
    add(house_.counters.closed_tls);
    return end_with(Cause::kHandshake,
                    str("TLS: no handshake within ", house_.limits.tls_handshake_ms, " ms"));
  }
  if (guard_) {
    if (up_.pending != nullptr) guard_->forgive(since_ms);
    const FrameVerdict& verdict = guard_->on_time(now_ms);
    if (!verdict.is_ok()) return end_by_guard(verdict);
  }
  const int64_t stall_ms = house_.limits.stall_ms;
  if (down_.pending != nullptr && now_ms - client_took_ms_ >= stall_ms) {
    add(house_.counters.closed_slow_reader);
    return end_with(Cause::kNone,
                    str("the client read nothing for ", stall_ms, " ms while there was something for it"));
  }
  if ((up_.ended || down_.ended) && now_ms - moved_ms_ >= stall_ms) {
    add(house_.counters.closed_half_open);
    end_with(Cause::kNone, str("one side had ended and the other sent nothing for ", stall_ms, " ms"));
  }
}

void Relay::resume(int64_t now_ms) {
  paused_until_ms_.reset();
  if (const int64_t wait = guard_ ? guard_->wait_ms(now_ms) : 0; wait > 0) paused_until_ms_ = now_ms + wait;
  watch();
}

void Relay::drain() {
  if (server_.fd < 0) return;
  if (down_.pending != nullptr) flush(down_, moved_ms_);
  for (int i = 0; i < kReadsAtTheEnd && !end_ && down_.pending == nullptr; ++i) {
    const ssize_t count = read_some(down_);
    if (count <= 0) return;
    take_from_server(static_cast<size_t>(count), moved_ms_);
  }
}

void Relay::end_with(Cause cause, std::string reason) {
  if (!end_) end_ = End{cause, std::move(reason)};
}

void Relay::end_by_guard(const FrameVerdict& verdict) {
  if (end_) return;
  add(house_.counters.closed_by_guard[static_cast<size_t>(verdict.cause)]);
  end_with(verdict.cause, verdict.reason);
}

std::string Relay::peer() const {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  if (getpeername(client_.fd, reinterpret_cast<sockaddr*>(&name), &size) != 0)
    return "a client that has left";
  char text[INET6_ADDRSTRLEN] = "";
  if (name.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(name);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    return str(text, ":", ntohs(v4.sin_port));
  }
  if (name.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(name);
    inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
    return str("[", text, "]:", ntohs(v6.sin6_port));
  }
  ucred who{};
  size = sizeof who;
  if (getsockopt(client_.fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) return "a local process";
  return str("pid ", who.pid);
}

}  // namespace tuner::transport
