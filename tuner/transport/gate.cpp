#include "tuner/transport/gate.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "tuner/transport/listener.h"
#include "tuner/transport/relay.h"

namespace tuner::transport {
namespace {

constexpr int kEventsPerTurn = 256;
constexpr int kAcceptsPerTurn = 64;
constexpr int64_t kTickMs = 100;         // deadlines of connections are looked at this often
constexpr int64_t kMayBeSilentMs = 200;  // so old, a client that has not spoken gives way to others
constexpr int64_t kOutOfRoomMs = 100;    // pause of accepting when the system has no room for a socket at all
constexpr int64_t kPacedMs = 10'000;     // so long after a closing that could not be charged (may_accept())
constexpr int64_t kQuietLogMs = 10'000;  // lines of one kind are this far apart

int64_t steady_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Warnings of a kind at most every ten seconds, with how many there were in between: an attack must not fill
// the disk.
class QuietLog {
 public:
  void say(size_t kind, int64_t now_ms, const std::string& text) {
    Kind& k = kinds_[kind];
    if (now_ms < k.next_ms) {
      ++k.left_out;
      return;
    }
    spdlog::warn("gate: {}{}", text,
                 k.left_out == 0 ? "" : str(" (and ", k.left_out, " like it since the last line)"));
    k = {now_ms + kQuietLogMs, 0};
  }

 private:
  struct Kind {
    int64_t next_ms = std::numeric_limits<int64_t>::min();
    uint64_t left_out = 0;
  };
  std::array<Kind, kCauses + 3> kinds_;
};
// Kinds of lines; those below are causes.
constexpr size_t kFull = kCauses, kNoDescriptor = kCauses + 1, kTooFast = kCauses + 2;

uint64_t descriptor_limit() {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 1024;
}

class EpollGate final : public Gate {
 public:
  EpollGate(Handover handover, const GateLimits& limits, TlsServer* tls)
      : house_(limits, std::move(handover), tls, steady_ms()),
        most_(limits.connections > 0 ? limits.connections : most_connections(descriptor_limit())),
        accepts_(limits.accepts, steady_ms()),
        penalties_({limits.accepts.per_s / 2, limits.accepts.burst / 2}, steady_ms()),
        paced_({limits.accepts.per_s, limits.accepts.burst / 10}, steady_ms()) {}
  ~EpollGate() override {
    stop();
    for (const int fd : {house_.epoll, wake_.fd, reserve_})
      if (fd >= 0) close(fd);
  }

  Status listen(const std::vector<std::string>& addresses);
  const std::vector<std::string>& addresses() const override { return addresses_; }
  std::optional<Peer> peer(std::string_view name) const override { return house_.peers.find(name); }
  void stop_listening() override {
    stop_listening_ = true;
    wake();
  }
  void stop() override {
    const std::lock_guard lock(stop_mutex_);
    stopping_ = true;
    wake();
    if (thread_.joinable()) thread_.join();
  }
  GateStats stats() const override;

 private:
  void wake() const {
    if (wake_.fd >= 0) eventfd_write(wake_.fd, 1);
  }
  bool watch(Relay::Side& side, bool on) const;
  void run();
  void run_once();
  int timeout_ms(int64_t now_ms) const;
  void on_event(Relay::Side& side, uint32_t events);
  void accept_some(const Relay::Side& listener);
  bool accept_with_reserve(const Relay::Side& listener);
  void take(int fd, bool tls);
  bool may_accept();
  void pause_accepting(int64_t ms);
  void tick();
  void resume_paused();
  void bury(Relay& relay);
  void punish();
  bool make_room();

  RelayHouse house_;
  const int most_;
  TokenBucket accepts_;
  TokenBucket penalties_;  // what closed connections may take of it
  TokenBucket paced_;      // holds besides until paced_until_ms_
  std::vector<std::string> addresses_;
  std::vector<Listener> listeners_;
  std::vector<Relay::Side> listening_;  // what epoll knows of each listener
  Relay::Side wake_;
  int reserve_ = -1;  // closed to take, and turn away, the client that came when there was no descriptor left

  // The thread's.
  int64_t now_ms_ = 0, last_tick_ms_ = 0;
  int64_t accept_again_ms_ = 0;  // 0: accepting is not paused
  int64_t paced_until_ms_ = 0;
  std::vector<std::unique_ptr<Relay>> relays_;
  std::vector<std::unique_ptr<Relay>> ended_;  // freed after the turn: events of it may name them
  std::vector<Relay*> paused_;
  QuietLog log_;

  std::atomic<bool> stopping_{false}, stop_listening_{false};
  std::mutex stop_mutex_;
  std::thread thread_;
};

Status EpollGate::listen(const std::vector<std::string>& addresses) {
  house_.epoll = epoll_create1(EPOLL_CLOEXEC);
  wake_.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  reserve_ = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (house_.epoll < 0 || wake_.fd < 0 || reserve_ < 0 || !watch(wake_, true))
    return failed("the gate has no descriptors to begin with: ", std::strerror(errno), ". Raise ulimit -n");
  for (const std::string& address : addresses) {
    ASSIGN_OR_RETURN(Listening listening, listen_on(address));
    if (listening.tls && house_.tls == nullptr)
      return invalid_argument("listen ", address, ": there is no certificate for TLS");
    addresses_.push_back(listening.address);
    for (Listener& listener : listening.listeners) listeners_.push_back(std::move(listener));
  }
  listening_.reserve(listeners_.size());  // epoll keeps their addresses
  for (const Listener& listener : listeners_) {
    listening_.push_back({nullptr, listener.fd(), 0});
    if (!watch(listening_.back(), true))
      return failed("a listening socket cannot be watched: ", std::strerror(errno));
  }
  thread_ = std::thread([this] { run(); });
  return Status::ok();
}

bool EpollGate::watch(Relay::Side& side, bool on) const {
  const uint32_t interest = on ? uint32_t{EPOLLIN} : 0;
  if (side.interest == interest) return true;
  epoll_event event{};
  event.events = interest;
  event.data.ptr = &side;
  side.interest = interest;
  return epoll_ctl(house_.epoll, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, side.fd, &event) == 0;
}

void EpollGate::run() {
  now_ms_ = last_tick_ms_ = steady_ms();
  while (!stopping_) run_once();
  listening_.clear();
  listeners_.clear();
  for (const auto& relay : relays_) relay->drain();
  paused_.clear();
  relays_.clear();
  ended_.clear();
  house_.counters.open_now = 0;
}

void EpollGate::run_once() {
  std::array<epoll_event, kEventsPerTurn> events;
  const int count = epoll_wait(house_.epoll, events.data(), kEventsPerTurn, timeout_ms(now_ms_));
  now_ms_ = steady_ms();
  if (stop_listening_ && !listeners_.empty()) {
    for (Relay::Side& side : listening_) watch(side, false);
    listeners_.clear();
    accept_again_ms_ = 0;
  }
  for (int i = 0; i < count; ++i) on_event(*static_cast<Relay::Side*>(events[i].data.ptr), events[i].events);
  if (accept_again_ms_ != 0 && now_ms_ >= accept_again_ms_) {
    accept_again_ms_ = 0;
    for (Relay::Side& side : listening_) watch(side, true);
  }
  if (house_.budget.take_condemned() || now_ms_ - last_tick_ms_ >= kTickMs) tick();
  if (!paused_.empty()) resume_paused();
  ended_.clear();
}

int EpollGate::timeout_ms(int64_t now_ms) const {
  int64_t until = std::numeric_limits<int64_t>::max();
  if (!relays_.empty()) until = last_tick_ms_ + kTickMs;
  if (accept_again_ms_ != 0) until = std::min(until, accept_again_ms_);
  for (const Relay* relay : paused_) until = std::min(until, relay->paused_until_ms().value_or(until));
  if (until == std::numeric_limits<int64_t>::max()) return -1;
  return static_cast<int>(std::max<int64_t>(until - now_ms, 0));
}

void EpollGate::on_event(Relay::Side& side, uint32_t events) {
  if (side.fd == wake_.fd) {
    eventfd_t ignored;
    eventfd_read(wake_.fd, &ignored);
    return;
  }
  if (side.relay == nullptr) {
    if (!listeners_.empty()) accept_some(side);
    return;
  }
  Relay& relay = *side.relay;
  if (relay.end()) return;  // by an event earlier in this turn
  const bool was_paused = relay.paused_until_ms().has_value();
  relay.on_event(side, events, now_ms_);
  if (relay.end())
    bury(relay);
  else if (!was_paused && relay.paused_until_ms())
    paused_.push_back(&relay);
}

// The server frees a connection's calls some time after it was closed. So while clients come back as fast as
// they are closed, fewer may come at once. Otherwise hundreds of connections would be served and freed at a
// time.
bool EpollGate::may_accept() {
  if (now_ms_ < paced_until_ms_ && !paced_.take(now_ms_)) return false;
  return accepts_.take(now_ms_);
}

// Takes what waits in the kernel's queue, at the rate that is allowed.
void EpollGate::accept_some(const Relay::Side& listener) {
  // Sides stand in the order of their listeners.
  const bool tls = listeners_[static_cast<size_t>(&listener - listening_.data())].is_tls();
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    if (!may_accept()) {
      add(house_.counters.accept_pauses);
      log_.say(
          kTooFast, now_ms_,
          str("clients connect more often than ", house_.limits.accepts.per_s, " times a second; they wait"));
      return pause_accepting(std::max<int64_t>(10, static_cast<int64_t>(1000 / house_.limits.accepts.per_s)));
    }
    const int fd = accept4(listener.fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      take(fd, tls);
      continue;
    }
    if (errno == EAGAIN) {
      paced_.give(1);
      return accepts_.give(1);
    }
    if (errno == EMFILE || errno == ENFILE) {
      if (!accept_with_reserve(listener)) return pause_accepting(kOutOfRoomMs);
    } else if (errno == ENOBUFS || errno == ENOMEM) {
      return pause_accepting(kOutOfRoomMs);
    }  // else that client has left already
  }
}

// Without a descriptor the client cannot be taken, and stays in the queue: the listener would be ready for
// ever. The reserve makes room for it, so it is closed and knows. False: another thread was faster, and there
// is no room now.
bool EpollGate::accept_with_reserve(const Relay::Side& listener) {
  if (reserve_ >= 0) close(reserve_);
  const int fd = accept4(listener.fd, nullptr, nullptr, SOCK_CLOEXEC);
  const bool room = fd >= 0 || (errno != EMFILE && errno != ENFILE);
  if (fd >= 0) {
    add(house_.counters.accepted);
    add(house_.counters.turned_away_descriptors);
    close(fd);
  }
  reserve_ = open("/dev/null", O_RDONLY | O_CLOEXEC);
  log_.say(kNoDescriptor, now_ms_,
           "a client is turned away: this process has no descriptor left. Raise ulimit -n");
  return room && reserve_ >= 0;
}

void EpollGate::take(int fd, bool tls) {
  add(house_.counters.accepted);
  if (relays_.size() >= static_cast<size_t>(most_) && !make_room()) {
    add(house_.counters.turned_away_full);
    close(fd);
    return log_.say(kFull, now_ms_,
                    str("a client is turned away: there are ", most_,
                        " connections, as many as ulimit -n allows. Raise it, or end other clients"));
  }
  auto relay = std::make_unique<Relay>(house_, fd, tls, now_ms_);
  relay->index = relays_.size();
  relays_.push_back(std::move(relay));
  house_.counters.open_now.store(relays_.size(), std::memory_order_relaxed);
  Relay& taken = *relays_.back();
  taken.start();
  if (taken.end()) bury(taken);
}

void EpollGate::pause_accepting(int64_t ms) {
  accept_again_ms_ = now_ms_ + ms;
  for (Relay::Side& side : listening_) watch(side, false);
}

void EpollGate::tick() {
  const int64_t since_ms = now_ms_ - last_tick_ms_;
  last_tick_ms_ = now_ms_;
  for (size_t i = 0; i < relays_.size();) {
    Relay& relay = *relays_[i];
    relay.on_tick(now_ms_, since_ms);
    if (relay.end())
      bury(relay);  // puts another one at this index
    else
      ++i;
  }
}

void EpollGate::resume_paused() {
  std::erase_if(paused_, [this](Relay* relay) {
    if (relay->end()) return true;
    if (now_ms_ < *relay->paused_until_ms()) return false;
    relay->resume(now_ms_);
    if (relay->end()) bury(*relay);
    return relay->end() || !relay->paused_until_ms();
  });
}

// What a connection has cost that was closed for cause. Whose it was is not known, so others pay, too: within
// bounds.
void EpollGate::punish() {
  if (penalties_.wait_ms(now_ms_) > 0) {
    paced_until_ms_ = now_ms_ + kPacedMs;
    return;
  }
  penalties_.spend(now_ms_, house_.limits.closing_costs);
  accepts_.spend(now_ms_, house_.limits.closing_costs);
}

// Closes the connection that has been here longest without a word that the server may hear. False: all have
// spoken.
bool EpollGate::make_room() {
  Relay* oldest = nullptr;
  for (const auto& relay : relays_)
    if (!relay->server_heard() && now_ms_ - relay->begin_ms() >= kMayBeSilentMs &&
        (oldest == nullptr || relay->begin_ms() < oldest->begin_ms()))
      oldest = relay.get();
  if (oldest == nullptr) return false;
  add(house_.counters.turned_away_full);
  oldest->give_way();
  bury(*oldest);
  return true;
}

void EpollGate::bury(Relay& relay) {
  const Relay::End& end = *relay.end();
  if (!end.reason.empty())
    log_.say(static_cast<size_t>(end.cause), now_ms_,
             str("connection of ", relay.peer(), " is closed: ", end.reason));
  if (end.cause != Cause::kNone && relay.server_heard()) punish();
  const size_t index = relay.index;
  ended_.push_back(std::move(relays_[index]));
  if (index + 1 < relays_.size()) {
    relays_[index] = std::move(relays_.back());
    relays_[index]->index = index;
  }
  relays_.pop_back();
  house_.counters.open_now.store(relays_.size(), std::memory_order_relaxed);
}

GateStats EpollGate::stats() const {
  const GateCounters& c = house_.counters;
  GateStats stats{.accepted = c.accepted,
                  .turned_away_full = c.turned_away_full,
                  .turned_away_descriptors = c.turned_away_descriptors,
                  .accept_pauses = c.accept_pauses,
                  .slowed_down = c.slowed_down,
                  .closed_slow_reader = c.closed_slow_reader,
                  .closed_half_open = c.closed_half_open,
                  .closed_tls = c.closed_tls,
                  .handshakes = c.handshakes,
                  .bytes_in = c.bytes_in,
                  .bytes_out = c.bytes_out,
                  .open_now = c.open_now,
                  .buffers = house_.pool.in_use()};
  for (size_t i = 0; i < stats.closed_by_guard.size(); ++i) stats.closed_by_guard[i] = c.closed_by_guard[i];
  return stats;
}

}  // namespace

int most_connections(uint64_t descriptors) {
  const uint64_t others = std::clamp<uint64_t>(descriptors / 4, 16, 512);
  return static_cast<int>(std::clamp<uint64_t>((descriptors - std::min(others, descriptors)) / 3, 1, 4096));
}

Result<std::unique_ptr<Gate>> Gate::start(const std::vector<std::string>& addresses, Handover handover,
                                          const GateLimits& limits, TlsServer* tls) {
  auto gate = std::make_unique<EpollGate>(std::move(handover), limits, tls);
  RETURN_IF_ERROR(gate->listen(addresses));
  return std::unique_ptr<Gate>(std::move(gate));
}

}  // namespace tuner::transport
