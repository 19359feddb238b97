#include "tuner/http/http_server.h"

#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <deque>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "tuner/transport/listener.h"
#include "tuner/transport/tls_context.h"

namespace tuner::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace wire = boost::beast::http;
using boost::system::error_code;
using Protocol = asio::generic::stream_protocol;
using Socket = Protocol::socket;
using PlainStream = beast::basic_stream<Protocol>;
using TlsStream = beast::ssl_stream<PlainStream>;
using SharedTls = std::shared_ptr<asio::ssl::context>;

constexpr std::chrono::milliseconds kGoodbye{200};  // for a client to say by TLS that it has ended, too
constexpr std::chrono::milliseconds kPauseAfterRefusal{250};  // of accept: for lack of descriptors, say

// A client as those see it who do not care how it is connected.
class Guest {
 public:
  virtual void close_now() = 0;                                    // ends what is awaited of it
  virtual void send(std::shared_ptr<const std::string> text) = 0;  // to a follower

 protected:
  ~Guest() = default;
};

// What the connections share. It lives as long as the last of them.
struct House {
  Handler handler;
  Limits limits;
  int connections = 0;
  std::function<void()> on_room;         // a connection has ended
  asio::io_context* io = nullptr;        // while the server lives
  asio::thread_pool* threads = nullptr;  // for what takes longer; null: none
  std::map<uint64_t, Guest*> waiting;    // those of which something is awaited, the longest first
  uint64_t waits = 0;                    // so far
  std::set<Guest*> followers;
  std::atomic<int> follower_count{0};  // of them, for other threads

  // One more has come: if all places are taken, the one that has kept us waiting longest goes.
  void make_room() {
    if (limits.makes_room && connections >= limits.connections && !waiting.empty())
      waiting.begin()->second->close_now();
  }
};

Request request_of(const wire::request<wire::string_body>& message, const transport::Peer& peer) {
  const std::string target(message.target());
  const size_t mark = target.find('?');
  Request request{.method = std::string(message.method_string()),
                  .path = target.substr(0, mark),
                  .query = mark == std::string::npos ? "" : target.substr(mark + 1),
                  .body = message.body(),
                  .peer = peer};
  const auto take = [&](wire::field field, std::string& text) {
    if (const auto found = message.find(field); found != message.end()) text = std::string(found->value());
  };
  take(wire::field::authorization, request.authorization);
  take(wire::field::host, request.host);
  take(wire::field::origin, request.origin);
  if (const auto found = message.find("Sec-Fetch-Site"); found != message.end())
    request.fetch_site = std::string(found->value());
  return request;
}

// One client. Alive as long as something is awaited of it.
template <class Stream>
class Session final : public Guest, public std::enable_shared_from_this<Session<Stream>> {
 public:
  Session(std::shared_ptr<House> house, Socket socket, transport::Peer peer)
      : house_(std::move(house)), stream_(std::move(socket)), peer_(std::move(peer)) {
    ++house_->connections;
  }
  Session(std::shared_ptr<House> house, Socket socket, SharedTls tls)
      : house_(std::move(house)), tls_(std::move(tls)), stream_(std::move(socket), *tls_) {
    ++house_->connections;
    transport::note_certificate_fault(stream_.native_handle(), fault_);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() {
    waits_no_more();
    if (house_->followers.erase(this) > 0) --house_->follower_count;
    --house_->connections;
    if (house_->on_room) house_->on_room();
  }

  void start() {
    waits();
    beast::get_lowest_layer(stream_).expires_after(house_->limits.deadline);
    if constexpr (std::is_same_v<Stream, TlsStream>)
      stream_.async_handshake(asio::ssl::stream_base::server,
                              [self = this->shared_from_this()](error_code error) {
                                if (error) return;
                                self->peer_ = transport::peer_of(self->stream_.native_handle(), self->fault_);
                                self->read();
                              });
    else
      read();
  }

  void close_now() override {
    waits_no_more();
    beast::get_lowest_layer(stream_).close();
  }

  void send(std::shared_ptr<const std::string> text) override {
    unread_bytes_ += text->size();
    if (unread_bytes_ > house_->limits.unread_bytes) return close_now();
    unread_.push_back(std::move(text));
    if (unread_.size() == 1) write_next();
  }

 private:
  // Something is awaited of the client from now on, until waits_no_more().
  void waits() {
    waits_no_more();
    turn_ = ++house_->waits;
    house_->waiting.emplace(turn_, this);
  }
  void waits_no_more() { house_->waiting.erase(turn_); }

  void read() {
    waits();
    parser_.emplace();
    parser_->header_limit(house_->limits.head_bytes);
    parser_->body_limit(house_->limits.body_bytes);
    beast::get_lowest_layer(stream_).expires_after(house_->limits.deadline);
    wire::async_read(stream_, buffer_, *parser_,
                     [self = this->shared_from_this()](error_code error, size_t) { self->have_read(error); });
  }

  void have_read(error_code error) {
    waits_no_more();
    if (!error && parser_->get().count(wire::field::host) > 1) {
      close_after_ = true;
      return answer({.status = 400, .body = "expected one header Host, found several\n"});
    }
    if (!error) return answer(house_->handler(request_of(parser_->get(), peer_)));
    if (error.category() != wire::make_error_code(wire::error::bad_method).category() ||
        error == wire::error::end_of_stream)
      return;  // gone, or late
    close_after_ = true;
    if (error == wire::error::header_limit)
      return answer({.status = 431,
                     .body = str("expected a head of at most ", house_->limits.head_bytes,
                                 " bytes, found a longer one\n")});
    if (error == wire::error::body_limit)
      return answer({.status = 413,
                     .body = str("expected a body of at most ", house_->limits.body_bytes,
                                 " bytes, found a longer one\n")});
    answer({.status = 400, .body = "expected a request of HTTP/1.1, as GET /healthz HTTP/1.1\n"});
  }

  // A handler that throws on another thread costs its client the connection, as one does on ours.
  void answer_later(std::function<Reply()> make) {
    asio::post(*house_->threads, [self = this->shared_from_this(), make = std::move(make)]() mutable {
      std::optional<Reply> made;
      try {
        made = make();
      } catch (const std::exception& error) {
        spdlog::error("pages: {}", error.what());
      }
      House& house = *self->house_;
      asio::post(*house.io, [self = std::move(self), made = std::move(made)] {
        if (made) self->answer(*made);
      });
    });
  }

  void answer(const Reply& reply) {
    if (reply.later && house_->threads != nullptr) return answer_later(reply.later);
    if (reply.later) return answer(reply.later());
    if (reply.follows && parser_->get().method() != wire::verb::head) return begin_to_follow(reply);
    waits();
    const auto& request = parser_->get();
    const bool head_only = request.method() == wire::verb::head;
    reply_ = {};
    reply_.version(close_after_ ? 11 : request.version());
    reply_.result(static_cast<unsigned>(reply.status));
    reply_.keep_alive(!close_after_ && request.keep_alive());
    reply_.set(wire::field::content_type, reply.type);
    reply_.set(wire::field::cache_control, "no-store");
    reply_.set("X-Content-Type-Options", "nosniff");
    for (const auto& [name, value] : reply.headers) reply_.set(name, value);
    reply_.content_length(reply.body.size());
    if (!head_only) reply_.body() = reply.body;
    beast::get_lowest_layer(stream_).expires_after(house_->limits.deadline);
    wire::async_write(stream_, reply_, [self = this->shared_from_this()](error_code error, size_t) {
      if (error) return;
      if (self->reply_.keep_alive()) return self->read();
      self->say_goodbye();
    });
  }

  void begin_to_follow(const Reply& reply) {
    if (house_->follower_count >= house_->limits.followers)
      return answer({.status = 503,
                     .body = str("expected at most ", house_->limits.followers,
                                 " who follow what is new, found one more. Close another page\n")});
    house_->followers.insert(this);
    ++house_->follower_count;
    std::string head = str("HTTP/1.1 200 OK\r\nContent-Type: ", reply.type,
                           "\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n");
    for (const auto& [name, value] : reply.headers) head += str(name, ": ", value, "\r\n");
    send(std::make_shared<const std::string>(head + "Connection: close\r\n\r\n" + reply.body));
    beast::get_lowest_layer(stream_).expires_never();
    listen_for_end();
  }
  // Who follows says nothing more: what comes is the end, or has no meaning.
  void listen_for_end() {
    stream_.async_read_some(asio::buffer(said_), [self = this->shared_from_this()](error_code error, size_t) {
      if (error) return self->close_now();
      self->listen_for_end();
    });
  }
  void write_next() {
    beast::get_lowest_layer(stream_).expires_after(house_->limits.deadline);
    asio::async_write(stream_, asio::buffer(*unread_.front()),
                      [self = this->shared_from_this()](error_code error, size_t) {
                        if (error) return self->close_now();
                        self->unread_bytes_ -= self->unread_.front()->size();
                        self->unread_.pop_front();
                        if (!self->unread_.empty()) self->write_next();
                      });
  }

  void say_goodbye() {
    if constexpr (std::is_same_v<Stream, TlsStream>) {
      beast::get_lowest_layer(stream_).expires_after(kGoodbye);
      stream_.async_shutdown([self = this->shared_from_this()](error_code) {});
    } else {
      error_code ignored;
      stream_.socket().shutdown(Socket::shutdown_send, ignored);
    }
  }

  const std::shared_ptr<House> house_;
  const SharedTls tls_;  // of this connection, though it was renewed since
  std::string fault_;    // of the client's certificate
  Stream stream_;
  beast::flat_buffer buffer_;
  std::optional<wire::request_parser<wire::string_body>> parser_;
  wire::response<wire::string_body> reply_;
  transport::Peer peer_;
  bool close_after_ = false;
  uint64_t turn_ = 0;                                      // its key in House::waiting
  std::deque<std::shared_ptr<const std::string>> unread_;  // of a follower
  size_t unread_bytes_ = 0;
  std::array<char, 64> said_{};
};

// Who is at the other end of a socket without TLS.
transport::Peer plain_peer(int fd, bool tcp) {
  transport::Peer peer{.way = tcp ? transport::Peer::Way::kPlain : transport::Peer::Way::kUnix};
  ucred process{};
  socklen_t size = sizeof process;
  if (!tcp && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &process, &size) == 0) peer.uid = process.uid;
  return peer;
}

// One listening socket.
class Entrance {
 public:
  // `fd` is not taken: it is the listener's.
  Entrance(asio::io_context& io, std::shared_ptr<House> house, const transport::Listener& listener,
           std::function<SharedTls()> tls)
      : io_(io),
        house_(std::move(house)),
        tls_(std::move(tls)),
        tcp_(listener.is_tcp()),
        pause_(io),
        acceptor_(io, Protocol(domain_of(listener.fd()), SOCK_STREAM), dup(listener.fd())) {}

  void accept() {
    // Who makes room takes one more to see that there is one more.
    const int most = house_->limits.connections + (house_->limits.makes_room ? 1 : 0);
    if (accepting_ || house_->connections >= most) return;
    accepting_ = true;
    acceptor_.async_accept(io_, [this](error_code error, Socket socket) {
      accepting_ = false;
      if (error == asio::error::operation_aborted) return;
      if (error) {
        pause_.expires_after(kPauseAfterRefusal);
        pause_.async_wait([this](error_code stopped) {
          if (!stopped) accept();
        });
        return;
      }
      house_->make_room();
      take(std::move(socket));
      accept();
    });
  }

 private:
  static int domain_of(int fd) {
    int domain = AF_INET;
    socklen_t size = sizeof domain;
    getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size);
    return domain;
  }

  void take(Socket socket) {
    if (SharedTls tls = tls_())
      return std::make_shared<Session<TlsStream>>(house_, std::move(socket), std::move(tls))->start();
    transport::Peer peer = plain_peer(socket.native_handle(), tcp_);
    std::make_shared<Session<PlainStream>>(house_, std::move(socket), std::move(peer))->start();
  }

  asio::io_context& io_;
  const std::shared_ptr<House> house_;
  const std::function<SharedTls()> tls_;
  const bool tcp_;
  bool accepting_ = false;
  asio::steady_timer pause_;
  asio::basic_socket_acceptor<Protocol> acceptor_;
};

Result<SharedTls> tls_of(const transport::TlsMaterial& material) {
  ASSIGN_OR_RETURN(transport::TlsContext made, transport::make_tls_context(material, "http/1.1"));
  return std::make_shared<asio::ssl::context>(made.release());  // which frees it
}

class BeastServer final : public HttpServer {
 public:
  BeastServer(transport::Listening listening, Handler handler, SharedTls tls, const Limits& limits)
      : listening_(std::move(listening)), tls_(std::move(tls)), house_(std::make_shared<House>()) {
    house_->handler = std::move(handler);
    house_->limits = limits;
    house_->io = &io_;
    if (limits.slow_threads > 0) {
      threads_.emplace(static_cast<size_t>(limits.slow_threads));
      house_->threads = &*threads_;
    }
    for (const transport::Listener& listener : listening_.listeners)
      entrances_.emplace_back(io_, house_, listener, [this] { return present_tls(); });
    house_->on_room = [this] {
      for (Entrance& each : entrances_) each.accept();
    };
    for (Entrance& each : entrances_) each.accept();
    thread_ = std::thread([this] { run(); });
  }
  ~BeastServer() override {
    io_.stop();
    thread_.join();
    if (threads_) threads_->stop(), threads_->join();
    house_->on_room = nullptr;  // what is left of the sessions goes with io_
  }
  const std::string& address() const override { return listening_.address; }
  Status renew(const transport::TlsMaterial& material) override {
    ASSIGN_OR_RETURN(SharedTls fresh, tls_of(material));
    const std::lock_guard lock(mutex_);
    if (tls_ != nullptr) tls_ = std::move(fresh);
    return Status::ok();
  }
  void publish(const std::string& text) override {
    if (house_->follower_count == 0) return;
    asio::post(io_, [house = house_, shared = std::make_shared<const std::string>(text)] {
      // Sending may end a follower.
      const std::vector<Guest*> all(house->followers.begin(), house->followers.end());
      for (Guest* each : all) each->send(shared);
    });
  }
  int followers() const override { return house_->follower_count; }

 private:
  SharedTls present_tls() {
    const std::lock_guard lock(mutex_);
    return tls_;
  }

  // A handler that throws, as where there is no memory, costs its own client the connection.
  void run() {
    while (!io_.stopped()) {
      try {
        io_.run();
      } catch (const std::exception& error) {
        spdlog::error("pages: {}", error.what());
      }
    }
  }

  transport::Listening listening_;
  std::mutex mutex_;
  SharedTls tls_;  // null: plain text
  const std::shared_ptr<House> house_;
  asio::io_context io_{1};
  std::optional<asio::thread_pool> threads_;
  std::list<Entrance> entrances_;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::start(const std::string& address, Handler handler,
                                                      const std::optional<transport::TlsMaterial>& tls,
                                                      const Limits& limits) {
  SharedTls context;
  if (address.starts_with("tls:")) {
    if (!tls) return invalid_argument("listen ", address, ": expected a certificate for TLS, found none");
    ASSIGN_OR_RETURN(context, tls_of(*tls));
  }
  ASSIGN_OR_RETURN(transport::Listening listening, transport::listen_on(address));
  return std::unique_ptr<HttpServer>(
      std::make_unique<BeastServer>(std::move(listening), std::move(handler), std::move(context), limits));
}

}  // namespace tuner::http
