// TLS at the gate, with a real gRPC server behind it: who is let in with what identity, what a client may do
// wrong, and that what holds without TLS holds with it.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "measure.grpc.pb.h"
#include "proto/grpc_access.h"
#include "tests/random_seed.h"
#include "tests/support/http2_attack.h"
#include "tests/support/tls_client.h"
#include "tests/support/wait_until.h"
#include "tuner/identity/certificates.h"
#include "tuner/transport/gate.h"
#include "tuner/transport/peer_book.h"

namespace tuner::transport {
namespace {

using namespace std::chrono_literals;
namespace http2 = testing::http2;
using identity::Issued;
using identity::KeyAndCertificate;
using ::testing::HasSubstr;
using testing::TlsClient;
using Clock = std::chrono::steady_clock;

constexpr char kWho[] = "who am I?";
constexpr char kSync[] = "/tuner.v1.Workers/Sync";

// A farm's authority, and what it has signed.
struct Farm {
  KeyAndCertificate authority = identity::make_authority(10).value();
  Issued daemon = identity::issue_daemon(authority, 10).value();
  Issued worker = identity::issue_worker(authority, "gpu1", 10).value();

  TlsMaterial material() const { return material(daemon); }
  TlsMaterial material(const Issued& of) const {
    return {of.pem.certificate, of.pem.key, authority.certificate};
  }
};

// Register echoes the worker's name, or says who calls; Sync waits as long as it is asked to.
class Workers final : public v1::Workers::Service {
 public:
  grpc::Status Register(grpc::ServerContext* context, const v1::RegisterRequest* request,
                        v1::RegisterReply* reply) override {
    reply->set_session(request->worker_id() == kWho ? who(context->peer()) : request->worker_id());
    return grpc::Status::OK;
  }
  grpc::Status Sync(grpc::ServerContext* context, const v1::SyncRequest* request, v1::SyncReply*) override {
    wait_until(std::chrono::milliseconds(request->wait_ms()),
               [&] { return stopping || context->IsCancelled(); });
    return grpc::Status::OK;
  }
  std::string last_name() {
    const std::lock_guard lock(mutex_);
    return last_name_;
  }
  std::atomic<bool> stopping{false};
  std::atomic<Gate*> gate{nullptr};

 private:
  std::string who(const std::string& uri) {
    const std::string name = uri.substr(uri.find(':') + 1);
    {
      const std::lock_guard lock(mutex_);
      last_name_ = name;
    }
    const std::optional<Peer> peer = gate.load()->peer(name);
    if (!peer) return "nobody: " + uri;
    return str(peer->way == Peer::Way::kTls ? "tls" : "plain", "|", peer->certificate, "|", peer->serial, "|",
               peer->not_after_s, "|", peer->certificate_fault);
  }
  std::mutex mutex_;
  std::string last_name_;
};

// The server with the gate before it, on a TLS port and a plain one.
class Service {
 public:
  explicit Service(const Farm& farm, const GateLimits& limits = {})
      : tls(TlsServer::create(farm.material()).value()) {
    // gRPC stays started: its end waits ten seconds for a connection that ends at the same moment.
    static const auto* const kept =
        new auto(grpc::CreateChannel("unix:/nobody", grpc::InsecureChannelCredentials()));
    EXPECT_NE(*kept, nullptr);
    grpc::ServerBuilder builder;
    builder.SetMaxReceiveMessageSize(16 << 20);
    builder.SetMaxSendMessageSize(16 << 20);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 128);
    builder.RegisterService(&workers);
    acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
        grpc::InsecureServerCredentials());
    server_ = builder.BuildAndStart();
    EXPECT_NE(server_, nullptr);
    const auto hand_over = [this](int fd) {
      grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
      connection.fd = fd;
      acceptor_->HandleNewConnection(&connection);
    };
    auto started = Gate::start({"tls:127.0.0.1:0", "127.0.0.1:0"}, hand_over, limits, tls.get());
    EXPECT_TRUE(started.is_ok()) << started.message();
    gate_ = std::move(started).value();
    workers.gate = gate_.get();
  }
  ~Service() {
    gate_->stop_listening();
    workers.stopping = true;
    server_->Shutdown(std::chrono::system_clock::now() + 2s);
    server_->Wait();
    gate_->stop();
  }
  Gate& gate() { return *gate_; }
  GateStats stats() const { return gate_->stats(); }
  // As clients dial it.
  std::string address() const {
    const std::string& listening = gate_->addresses()[0];
    return listening.starts_with("tls:") ? listening.substr(4) : listening;
  }
  const std::string& plain_address() const { return gate_->addresses()[1]; }
  uint64_t closed_by_guard() const {
    const auto closed = stats().closed_by_guard;
    return std::accumulate(closed.begin(), closed.end(), uint64_t{0});
  }
  uint64_t closed_for(Cause cause) const { return stats().closed_by_guard[static_cast<size_t>(cause)]; }
  bool becomes_empty() {
    return wait_until(30s, [&] { return stats().open_now == 0; });
  }

  std::unique_ptr<TlsServer> tls;
  Workers workers;

 private:
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Gate> gate_;
};

// gRPC's client with a connection of its own, as ours dial.
class Client {
 public:
  Client(const std::string& address, const std::string& authority, const KeyAndCertificate& own = {}) {
    const DaemonAccess access{.authority = authority, .certificate = own.certificate, .key = own.key};
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetMaxSendMessageSize(-1);
    const auto credentials = channel_credentials(access, arguments);
    workers = v1::Workers::NewStub(grpc::CreateCustomChannel(address, credentials, arguments));
  }
  grpc::Status call(const std::string& text, std::string* answer) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + 60s);
    v1::RegisterRequest request;
    request.set_worker_id(text);
    v1::RegisterReply reply;
    const grpc::Status status = workers->Register(&context, request, &reply);
    *answer = reply.session();
    return status;
  }
  // Sends this many bytes and expects them back.
  grpc::Status echo(size_t size = 20) {
    std::string back;
    const std::string text(size, 'x');
    const grpc::Status status = call(text, &back);
    if (status.ok()) {
      EXPECT_TRUE(back == text) << "the bytes differ";
    }
    return status;
  }
  std::string who() {
    std::string answer;
    const grpc::Status status = call(kWho, &answer);
    return status.ok() ? answer : "not answered: " + status.error_message();
  }
  std::unique_ptr<v1::Workers::Stub> workers;
};

void in_threads(int count, const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
}

// What the gate logs meanwhile.
class Log {
 public:
  Log() : before_(spdlog::default_logger()) {
    spdlog::set_default_logger(
        std::make_shared<spdlog::logger>("", std::make_shared<spdlog::sinks::ostream_sink_mt>(text_)));
  }
  ~Log() { spdlog::set_default_logger(before_); }
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::shared_ptr<spdlog::logger> before_;
};

std::string identity_of(const Issued& issued, const std::string& uri, const std::string& fault = "") {
  return str("tls|", uri, "|", issued.serial, "|", issued.until_s, "|", fault);
}

TEST(TlsIdentity, OfAWorkerArrivesWithItsCalls) {
  const Farm farm;
  Service service(farm);
  {
    Client client(service.address(), farm.authority.certificate, farm.worker.pem);
    EXPECT_EQ(client.who(), identity_of(farm.worker, "tuner://worker/gpu1"));
  }
  const std::string name = service.workers.last_name();
  EXPECT_NE(name, "");
  EXPECT_TRUE(wait_until(10s, [&] { return !service.gate().peer(name); })) << "it has left";
}

// Who can foretell the next names could take them, and nobody would be let in any more.
TEST(TlsIdentity, NamesOfConnectionsCannotBeForetold) {
  PeerBook book;
  std::vector<int> sockets;
  std::set<std::string> names;
  for (int i = 0; i < 100; ++i) {
    sockets.push_back(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const std::string name = book.enter(sockets.back(), {.serial = str(i)});
    ASSERT_NE(name, "");
    ASSERT_TRUE(book.find(name).has_value());
    EXPECT_EQ(book.find(name)->serial, str(i));
    // Names in order would share all but their end.
    for (const std::string& other : names) EXPECT_NE(other.substr(0, 19), name.substr(0, 19));
    names.insert(name);
  }
  for (const std::string& name : names) {
    book.leave(name);
    EXPECT_FALSE(book.find(name).has_value());
  }
  for (const int fd : sockets) close(fd);
}

TEST(TlsIdentity, IsEmptyWithoutACertificate) {
  const Farm farm;
  Service service(farm);
  EXPECT_EQ(Client(service.address(), farm.authority.certificate).who(), "tls|||0|");
}

TEST(TlsIdentity, SaysWhatIsWrongWithACertificate) {
  const Farm farm, other;
  Service service(farm);
  const auto who = [&](const Issued& issued) {
    return Client(service.address(), farm.authority.certificate, issued.pem).who();
  };
  EXPECT_EQ(who(other.worker),
            identity_of(other.worker, "tuner://worker/gpu1", "unable to get local issuer certificate"));
  const Issued ended = identity::issue_worker(farm.authority, "gpu1", -1).value();
  EXPECT_EQ(who(ended), identity_of(ended, "tuner://worker/gpu1", "certificate has expired"));
  EXPECT_EQ(who(farm.daemon), identity_of(farm.daemon, "", "unsuitable certificate purpose"));
}

TEST(TlsIdentity, OfManyClientsAtOnceAreNotMixedUp) {
  const Farm farm;
  Service service(farm);
  in_threads(16, [&](int i) {
    const std::string name = str("w", i);
    const Issued own = identity::issue_worker(farm.authority, name, 1).value();
    for (int k = 0; k < 5; ++k) {
      Client client(service.address(), farm.authority.certificate, own.pem);
      EXPECT_EQ(client.who(), identity_of(own, "tuner://worker/" + name));
    }
  });
  EXPECT_EQ(service.stats().handshakes, 80u);
}

TEST(TlsHandshake, AServerOfAnotherAuthorityIsNotBelieved) {
  const Farm farm, other;
  Service service(other);
  Client client(service.address(), farm.authority.certificate, farm.worker.pem);
  EXPECT_EQ(client.echo().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(service.stats().bytes_in, 0u);
}

// A worker's certificate is signed by the same authority: it must not do as the daemon's.
TEST(TlsHandshake, AWorkerCannotPassForTheDaemon) {
  Farm farm;
  farm.daemon = farm.worker;
  Service service(farm);
  Client client(service.address(), farm.authority.certificate);
  EXPECT_EQ(client.echo().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(service.stats().bytes_in, 0u);
}

TEST(TlsHandshake, PlainTextOnATlsPortIsClosedInWords) {
  const Farm farm;
  const Log log;
  Service service(farm);
  EXPECT_EQ(Client(service.address(), "").echo().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_GT(service.stats().closed_tls, 0u);
  EXPECT_EQ(service.stats().bytes_in, 0u);
  EXPECT_THAT(log.text(), HasSubstr("is closed: TLS: "));
}

TEST(TlsHandshake, TlsOnAPlainPortIsClosed) {
  const Farm farm;
  Service service(farm);
  TlsClient client(service.plain_address(), {});
  EXPECT_FALSE(client.shake_hands());
  EXPECT_TRUE(client.closes_within(10s));
  EXPECT_EQ(service.closed_for(Cause::kNotHttp2), 1u);
}

TEST(TlsHandshake, OlderVersionsAreRefused) {
  const Farm farm;
  Service service(farm);
  TlsClient client(service.address(), {.only_tls12 = true});
  EXPECT_FALSE(client.shake_hands());
  EXPECT_THAT(client.fault(), HasSubstr("protocol version"));
  EXPECT_TRUE(client.closes_within(10s));
  EXPECT_EQ(service.stats().closed_tls, 1u);
}

TEST(TlsHandshake, OnlyHttp2IsSpoken) {
  const Farm farm;
  Service service(farm);
  TlsClient other(service.address(), {.protocol = "http/1.1"});
  EXPECT_FALSE(other.shake_hands());
  EXPECT_THAT(other.fault(), HasSubstr("no application protocol"));
  EXPECT_TRUE(other.closes_within(10s));
  TlsClient same(service.address(), {});
  EXPECT_TRUE(same.shake_hands()) << same.fault();
  EXPECT_EQ(same.protocol(), "h2");
  // Without the extension the preface decides.
  TlsClient none(service.address(), {.protocol = ""});
  EXPECT_TRUE(none.shake_hands()) << none.fault();
  EXPECT_TRUE(none.send("GET / HTTP/1.1\r\n\r\n"));
  EXPECT_TRUE(none.closes_within(10s));
  EXPECT_EQ(service.closed_for(Cause::kNotHttp2), 1u);
}

GateLimits short_handshake() {
  GateLimits limits;
  limits.tls_handshake_ms = 500;
  return limits;
}

TEST(TlsHandshake, ASilentClientIsClosed) {
  const Farm farm;
  const Log log;
  Service service(farm, short_handshake());
  http2::Http2Attack silent(service.address());
  EXPECT_TRUE(silent.closes_within(10s));
  EXPECT_EQ(service.stats().closed_tls, 1u);
  EXPECT_EQ(service.stats().handshakes, 0u);
  EXPECT_THAT(log.text(), HasSubstr("is closed: TLS: no handshake within 500 ms"));
}

TEST(TlsHandshake, ASlowOneIsClosedAtTheSameTime) {
  const Farm farm;
  Service service(farm, short_handshake());
  TlsClient client(service.address(), {.bytes_at_once = 1, .pause = 10ms});
  EXPECT_FALSE(client.shake_hands()) << "its first message has more than 200 bytes";
  EXPECT_TRUE(client.closes_within(10s));
  EXPECT_EQ(service.stats().closed_tls, 1u);
}

TEST(TlsHandshake, AfterItThePrefaceIsDue) {
  const Farm farm;
  GateLimits limits;
  limits.frames.handshake_ms = 500;
  Service service(farm, limits);
  TlsClient client(service.address(), {});
  ASSERT_TRUE(client.shake_hands()) << client.fault();
  EXPECT_TRUE(client.closes_within(10s));
  EXPECT_EQ(service.closed_for(Cause::kHandshake), 1u);
}

TEST(TlsHandshake, ByteByByteItIsUnderstood) {
  const Farm farm;
  Service service(farm);
  TlsClient client(
      service.address(),
      {.certificate = farm.worker.pem.certificate, .key = farm.worker.pem.key, .bytes_at_once = 1});
  ASSERT_TRUE(client.shake_hands()) << client.fault();
  const std::string message = std::string("\x0a\x09") + kWho;
  ASSERT_TRUE(client.send(http2::preface() + http2::settings() +
                          http2::headers(1, "/tuner.v1.Workers/Register", false) +
                          http2::data(1, http2::grpc_message(message), true)));
  EXPECT_TRUE(client.receives(identity_of(farm.worker, "tuner://worker/gpu1"), 10s)) << client.fault();
}

TEST(TlsBytes, LongMessagesPassBothWays) {
  const Farm farm;
  Service service(farm);
  Client client(service.address(), farm.authority.certificate, farm.worker.pem);
  for (int i = 0; i < 3; ++i) {
    const grpc::Status status = client.echo(10 << 20);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
  in_threads(16, [&](int) { EXPECT_TRUE(client.echo(1 << 20).ok()); });
  EXPECT_EQ(service.stats().accepted, 1u);
  EXPECT_EQ(service.closed_by_guard(), 0u);
  EXPECT_EQ(service.stats().closed_tls, 0u);
}

TEST(TlsBytes, ManySmallCallsPass) {
  const Farm farm;
  Service service(farm);
  Client client(service.address(), farm.authority.certificate, farm.worker.pem);
  in_threads(32, [&](int) {
    for (int i = 0; i < 50; ++i) ASSERT_TRUE(client.echo(static_cast<size_t>(1 + i * 100)).ok());
  });
  EXPECT_EQ(service.stats().accepted, 1u);
  EXPECT_EQ(service.closed_by_guard(), 0u);
}

TEST(TlsBytes, SomeNewKeysAreFine) {
  const Farm farm;
  Service service(farm);
  TlsClient client(service.address(), {});
  ASSERT_TRUE(client.shake_hands()) << client.fault();
  ASSERT_TRUE(client.send(http2::preface() + http2::settings()));
  ASSERT_TRUE(client.ask_for_keys(20));
  const std::string message = std::string("\x0a\x08") + "it works";
  ASSERT_TRUE(client.send(http2::headers(1, "/tuner.v1.Workers/Register", false) +
                          http2::data(1, http2::grpc_message(message), true)));
  EXPECT_TRUE(client.receives("it works", 10s)) << client.fault();
}

TEST(TlsBytes, ThirtyTwoNewKeysAreFreeAndTheNextOneEndsTheConnection) {
  const Farm farm;
  Service service(farm);
  TlsClient client(service.address(), {});
  ASSERT_TRUE(client.shake_hands()) << client.fault();
  ASSERT_TRUE(client.send(http2::preface() + http2::settings()));
  ASSERT_TRUE(client.ask_for_keys(32));
  EXPECT_FALSE(client.closes_within(50ms));
  EXPECT_EQ(service.stats().closed_tls, 0u);
  ASSERT_TRUE(client.ask_for_keys(1));
  EXPECT_TRUE(client.closes_within(10s));
  EXPECT_EQ(service.stats().closed_tls, 1u);
}

TEST(TlsBytes, AClientThatAsksForNewKeysEndlesslyIsClosed) {
  const Farm farm;
  const Log log;
  Service service(farm);
  for (const bool reads : {true, false}) {
    TlsClient client(service.address(), {});
    ASSERT_TRUE(client.shake_hands()) << client.fault();
    ASSERT_TRUE(client.send(http2::preface() + http2::settings()));
    if (!reads) client.stop_reading();
    int rounds = 0;
    while (rounds < 10'000 && client.ask_for_keys(100)) ++rounds;
    EXPECT_LT(rounds, 10'000) << "a million new keys were given";
  }
  EXPECT_TRUE(service.becomes_empty());
  EXPECT_EQ(service.stats().closed_tls, 2u);
  EXPECT_EQ(service.stats().buffers, 0u);
  EXPECT_THAT(log.text(), HasSubstr("TLS: new keys are asked for too often"));
}

// What arrives damaged, wherever it is, ends that connection and nothing else.
TEST(TlsBytes, DamagedOnesEndTheConnection) {
  const Farm farm;
  Service service(farm);
  Client honest(service.address(), farm.authority.certificate, farm.worker.pem);
  const std::string request = http2::preface() + http2::settings() +
                              http2::headers(1, "/tuner.v1.Workers/Register", false) +
                              http2::data(1, http2::grpc_message(std::string("\x0a\x08") + "it works"), true);
  int damaged = 0, answered = 0;
  Seeds seeds(/*fixed=*/1, /*rounds=*/150);
  for (const uint32_t seed : seeds) {
    std::mt19937_64 random(seed);
    const auto at = static_cast<int64_t>(random() % 1'200);
    TlsClient client(service.address(), {.certificate = farm.worker.pem.certificate,
                                         .key = farm.worker.pem.key,
                                         .bytes_at_once = 1 + random() % 500,
                                         .damage_at = at});
    const bool is_answered = client.shake_hands() && client.send(request) && client.receives("it works", 10s);
    EXPECT_TRUE(is_answered || client.closes_within(10s));
    if (at >= client.sent_bytes()) continue;  // what was sent was shorter
    ++damaged;
    answered += is_answered ? 1 : 0;
  }
  // Versions in heads of records may be anything, and there are few of them.
  EXPECT_LE(answered, damaged / 10 + 1);
  if (seeds.all()) {
    EXPECT_GT(damaged, 75);
  }
  EXPECT_TRUE(honest.echo().ok());
  EXPECT_TRUE(wait_until(10s, [&] { return service.stats().open_now == 1; }));
}

TEST(TlsRenewal, OpenConnectionsGoOnAndNewOnesMeetTheNewCertificate) {
  const Farm farm;
  Service service(farm);
  Client open(service.address(), farm.authority.certificate, farm.worker.pem);
  ASSERT_TRUE(open.echo().ok());
  TlsClient before(service.address(), {});
  ASSERT_TRUE(before.shake_hands());
  EXPECT_EQ(before.server_serial(), farm.daemon.serial);

  const Issued fresh = identity::issue_daemon(farm.authority, 10).value();
  ASSERT_TRUE(service.tls->renew(farm.material(fresh)).is_ok());
  EXPECT_TRUE(open.echo(1 << 20).ok());
  TlsClient after(service.address(), {});
  ASSERT_TRUE(after.shake_hands());
  EXPECT_EQ(after.server_serial(), fresh.serial);
  EXPECT_TRUE(Client(service.address(), farm.authority.certificate).echo().ok());
  EXPECT_EQ(service.stats().closed_tls, 0u);
}

TEST(TlsRenewal, WhatIsNoCertificateChangesNothing) {
  const Farm farm, other;
  Service service(farm);
  const TlsMaterial good = farm.material();
  const std::string key = good.key, certificate = good.certificate;
  EXPECT_THAT(service.tls->renew({"", key, good.authority}).message(),
              HasSubstr("the daemon's certificate: "));
  EXPECT_THAT(service.tls->renew({certificate, "none", good.authority}).message(),
              HasSubstr("the daemon's key: "));
  EXPECT_THAT(service.tls->renew({certificate, other.daemon.pem.key, good.authority}).message(),
              HasSubstr("the daemon's key: "));
  EXPECT_THAT(service.tls->renew({certificate, key, "none"}).message(),
              HasSubstr("the authority's certificate: "));
  EXPECT_THAT(service.tls->renew({certificate, key, other.authority.certificate}).message(),
              HasSubstr("expected one that the farm's authority has signed"));
  EXPECT_TRUE(Client(service.address(), farm.authority.certificate).echo().ok());
}

// A gate before a server of lines: what it is sent comes back, and "bye" when nothing follows.
class EchoService {
 public:
  explicit EchoService(const Farm& farm, GateLimits limits = {})
      : tls_(TlsServer::create(farm.material()).value()) {
    limits.http2 = false;
    gate_ = Gate::start(
                {"tls:127.0.0.1:0"}, [this](int fd) { threads_.emplace_back([fd] { echo(fd); }); }, limits,
                tls_.get())
                .value();
  }
  ~EchoService() {
    gate_->stop();
    for (std::thread& thread : threads_) thread.join();
  }
  std::string address() const { return gate_->addresses()[0].substr(gate_->addresses()[0].find(':') + 1); }
  Gate& gate() { return *gate_; }

 private:
  static void echo(int fd) {
    std::string bytes(64 << 10, '\0');
    for (;;) {
      pollfd_wait(fd);
      const ssize_t count = recv(fd, bytes.data(), bytes.size(), 0);
      if (count < 0 && errno == EAGAIN) continue;
      if (count <= 0) break;
      for (ssize_t at = 0; at < count;) {
        const ssize_t sent =
            send(fd, bytes.data() + at, static_cast<size_t>(count - at), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0)
          at += sent;
        else if (errno == EAGAIN)
          let_pass(1ms);
        else
          break;
      }
    }
    (void)!send(fd, "bye", 3, MSG_NOSIGNAL);
    close(fd);
  }
  static void pollfd_wait(int fd) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    select(fd + 1, &set, nullptr, nullptr, nullptr);
  }

  std::unique_ptr<TlsServer> tls_;
  std::vector<std::thread> threads_;  // written by the gate's thread, read after it has ended
  std::unique_ptr<Gate> gate_;
};

TEST(TlsEnds, AfterTheClientsEndTheServersLastWordsStillCome) {
  const Farm farm;
  EchoService service(farm);
  TlsClient client(service.address(), {});
  ASSERT_TRUE(client.shake_hands()) << client.fault();
  ASSERT_TRUE(client.send(std::string(300'000, 'x') + "end"));
  ASSERT_TRUE(client.end());
  EXPECT_TRUE(client.closes_within(10s));
  EXPECT_EQ(client.received().size(), 300'006u);
  EXPECT_TRUE(client.received().ends_with("endbye"));
  EXPECT_TRUE(client.has_ended()) << "the end is said, not just the socket closed";
  EXPECT_EQ(client.fault(), "");
}

TEST(TlsEnds, BothEndsMayCloseWithoutAWord) {
  const Farm farm;
  EchoService service(farm);
  {
    TlsClient client(service.address(), {});
    ASSERT_TRUE(client.shake_hands()) << client.fault();
    ASSERT_TRUE(client.send("hello"));
    EXPECT_TRUE(client.receives("hello", 10s));
  }
  EXPECT_TRUE(wait_until(10s, [&] { return service.gate().stats().open_now == 0; }));
  EXPECT_EQ(service.gate().stats().closed_tls, 0u);
}

TEST(TlsEnds, ManyConnectionsAtOnce) {
  const Farm farm;
  Service service(farm);
  constexpr int kThreads = 8, kEach = 40;
  std::vector<std::unique_ptr<TlsClient>> clients(kThreads * kEach);
  in_threads(kThreads, [&](int thread) {
    for (int i = 0; i < kEach; ++i) {
      auto client = std::make_unique<TlsClient>(service.address(), TlsClient::Options{});
      EXPECT_TRUE(client->shake_hands()) << client->fault();
      EXPECT_TRUE(client->send(http2::preface() + http2::settings()));
      clients[static_cast<size_t>(thread * kEach + i)] = std::move(client);
    }
  });
  // The last message of a handshake is the client's.
  EXPECT_TRUE(wait_until(30s, [&] { return service.stats().handshakes == kThreads * kEach; }));
  EXPECT_EQ(service.stats().open_now, uint64_t{kThreads * kEach});
  for (const auto& client : clients) EXPECT_FALSE(client->is_closed());
  clients.clear();
  EXPECT_TRUE(service.becomes_empty());
}

TEST(TlsGuard, RapidResetIsClosedAndOthersAreServed) {
  const Farm farm;
  Service service(farm);
  Client honest(service.address(), farm.authority.certificate, farm.worker.pem);
  ASSERT_TRUE(honest.echo().ok());
  for (int i = 0; i < 3; ++i) {
    TlsClient attacker(service.address(), {});
    ASSERT_TRUE(attacker.shake_hands()) << attacker.fault();
    ASSERT_TRUE(attacker.send(http2::preface() + http2::settings()));
    for (uint32_t stream = 1; stream < 2'000'000; stream += 2)
      if (!attacker.send(http2::headers(stream, kSync, false) + http2::reset(stream))) break;
    EXPECT_TRUE(attacker.closes_within(15s));
    EXPECT_TRUE(honest.echo().ok());
  }
  EXPECT_EQ(service.closed_for(Cause::kResets) + service.closed_for(Cause::kSharedResets), 3u);
  EXPECT_TRUE(honest.echo().ok());
}

TEST(TlsGuard, RequestsWithoutEndAreClosed) {
  const Farm farm;
  Service service(farm);
  TlsClient attacker(service.address(), {});
  ASSERT_TRUE(attacker.shake_hands()) << attacker.fault();
  ASSERT_TRUE(attacker.send(http2::preface() + http2::settings()));
  for (uint32_t stream = 1; stream < 2'000'000; stream += 2)
    if (!attacker.send(http2::headers(stream, kSync, false))) break;
  EXPECT_TRUE(attacker.closes_within(15s));
  EXPECT_EQ(service.closed_for(Cause::kOpenRequests), 1u);
}

TEST(TlsGuard, AClientThatDoesNotReadIsClosedAndHoldsLittle) {
  const Farm farm;
  GateLimits limits;
  limits.stall_ms = 1'000;
  EchoService service(farm, limits);
  TlsClient client(service.address(), {});
  ASSERT_TRUE(client.shake_hands()) << client.fault();
  client.stop_reading();
  uint64_t most_buffers = 0;
  // What comes back fills all buffers on its way, then nothing is taken any more.
  for (int i = 0; i < 2'000 && client.send(std::string(256 << 10, 'x')); ++i)
    most_buffers = std::max(most_buffers, service.gate().stats().buffers);
  EXPECT_TRUE(wait_until(20s, [&] { return service.gate().stats().open_now == 0; }));
  EXPECT_EQ(service.gate().stats().closed_slow_reader, 1u);
  EXPECT_LE(most_buffers, 2u);
}

TEST(TlsGate, WithoutACertificateItDoesNotListen) {
  const auto gate = Gate::start({"tls:127.0.0.1:0"}, [](int fd) { close(fd); });
  EXPECT_EQ(gate.message(), "listen tls:127.0.0.1:0: there is no certificate for TLS");
}

}  // namespace
}  // namespace tuner::transport
