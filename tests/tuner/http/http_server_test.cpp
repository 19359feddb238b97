// The server of pages over real sockets: whole answers, connections that stay open, what is bounded, TLS.
#include "tuner/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <new>
#include <random>
#include <vector>

#include "tests/damaged_text.h"
#include "tests/random_seed.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_client.h"
#include "tests/support/tls_client.h"
#include "tests/support/wait_until.h"
#include "tuner/identity/certificates.h"

namespace tuner::http {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using testing::TextClient;
using testing::TlsClient;

Reply echo(const Request& r) {
  return {.body = str(r.method, " ", r.path, " ", r.query, " ", r.authorization, "\n")};
}
std::unique_ptr<HttpServer> serve(Handler handler = echo, const Limits& limits = {}) {
  return HttpServer::start("127.0.0.1:0", std::move(handler), {}, limits).value();
}
// All that the server says to `text` until it closes.
std::string said(const HttpServer& server, const std::string& text) {
  const TextClient client(server.address());
  client.send_text(text);
  return client.rest();
}

TEST(HttpServer, ARequestComesWholeAndItsAnswerSaysTypeAndLength) {
  const auto server = serve();
  const std::string reply =
      said(*server, "GET /a/b?c=d&e HTTP/1.0\r\nHost: x\r\nAuthorization: Bearer t1\r\n\r\n");
  EXPECT_THAT(reply, StartsWith("HTTP/1.0 200 OK\r\n"));
  EXPECT_THAT(reply, EndsWith("\r\n\r\nGET /a/b c=d&e Bearer t1\n"));
  for (const char* header : {"Content-Type: text/plain; charset=utf-8\r\n", "Content-Length: 25\r\n",
                             "Cache-Control: no-store\r\n", "X-Content-Type-Options: nosniff\r\n"})
    EXPECT_THAT(reply, HasSubstr(header));
}

TEST(HttpServer, StatusAndHeadersAreTheHandlers) {
  const auto server = serve([](const Request&) {
    return Reply{.status = 405, .type = "text/x", .body = "no\n", .headers = {{"Allow", "GET"}}};
  });
  EXPECT_THAT(said(*server, "POST / HTTP/1.0\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.0 405 Method Not Allowed\r\n"), HasSubstr("Allow: GET\r\n"),
                    HasSubstr("Content-Type: text/x\r\n"), EndsWith("\r\n\r\nno\n")));
}

TEST(HttpServer, HeadHasTheLengthAndNoBody) {
  const auto server = serve();
  EXPECT_THAT(said(*server, "HEAD /abc HTTP/1.0\r\n\r\n"),
              AllOf(HasSubstr("Content-Length: 12\r\n"), EndsWith("\r\n\r\n"), Not(HasSubstr("/abc"))));
}

TEST(HttpServer, AConnectionServesManyRequestsInPieces) {
  const auto server = serve();
  const TextClient client(server->address());
  client.send_text("GET /one HTTP/1.1\r\nHost: x\r\n\r\nGET /tw");
  client.send_text("o HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const std::string all = client.rest();
  EXPECT_THAT(all, HasSubstr("GET /one  \n"));
  EXPECT_THAT(all, EndsWith("GET /two  \n"));
}

TEST(HttpServer, SilentClientsAreClosedAndOthersServedMeanwhile) {
  const auto server = serve(echo, {.connections = 4, .deadline = 300ms});
  std::vector<std::unique_ptr<TextClient>> silent;
  for (int i = 0; i < 10; ++i) silent.push_back(std::make_unique<TextClient>(server->address()));
  EXPECT_THAT(said(*server, "GET /x HTTP/1.0\r\n\r\n"), EndsWith("GET /x  \n"))
      << "behind more silent ones than it takes at once";
  for (const auto& client : silent) EXPECT_EQ(client->rest(), "") << "closed without a word";
}

TEST(HttpServer, NoMoreConnectionsThanTheLimitAreOpen) {
  std::atomic<int> asked{0};
  const auto server = serve(
      [&](const Request& r) {
        ++asked;
        return echo(r);
      },
      {.connections = 2, .deadline = 1'500ms});
  const TextClient one(server->address()), two(server->address());
  one.send_text("GET /1 HTTP/1.1\r\nHost: x\r\n\r\n");
  two.send_text("GET /2 HTTP/1.1\r\nHost: x\r\n\r\n");
  const TextClient third(server->address());
  third.send_text("GET /3 HTTP/1.0\r\n\r\n");
  const auto since = std::chrono::steady_clock::now();
  EXPECT_THAT(third.rest(), EndsWith("GET /3  \n"));
  EXPECT_GT(std::chrono::steady_clock::now() - since, 500ms)
      << "it waited until one of the others was closed";
  EXPECT_EQ(asked, 3);
}

// 300 clients say half of a request each and hold on to their connections, of which there are eight.
TEST(HttpServer, WhoMakesRoomServesOthersBesideAnyNumberOfSlowOnes) {
  const auto server = serve(echo, {.connections = 8, .deadline = 60'000ms, .makes_room = true});
  std::vector<std::unique_ptr<TextClient>> slow;
  const auto since = std::chrono::steady_clock::now();
  for (int i = 0; i < 300; ++i) {
    slow.push_back(std::make_unique<TextClient>(server->address()));
    slow.back()->send_text("GET /slow HT");
    if (i % 30 == 0) {
      EXPECT_THAT(said(*server, "GET /x HTTP/1.0\r\n\r\n"), EndsWith("GET /x  \n"));
    }
  }
  EXPECT_LT(std::chrono::steady_clock::now() - since, 20s) << "nobody waits for the deadline of another";
  EXPECT_EQ(slow[0]->rest(), "") << "the one that was slow for longest was closed";
}

TEST(HttpServer, WhatTakesLongerLeavesTheServersThreadFree) {
  std::atomic<bool> go{false};
  const auto server = serve(
      [&](const Request& r) -> Reply {
        if (r.path != "/slow") return echo(r);
        return {.later = [&] {
          wait_until(20s, [&] { return go.load(); });
          return Reply{.status = 202, .body = "slow\n"};
        }};
      },
      {.slow_threads = 1});
  const TextClient slow(server->address());
  slow.send_text("GET /slow HTTP/1.0\r\n\r\n");
  EXPECT_THAT(said(*server, "GET /quick HTTP/1.0\r\n\r\n"), EndsWith("GET /quick  \n"));
  go = true;
  EXPECT_THAT(slow.rest(), AllOf(StartsWith("HTTP/1.0 202 "), EndsWith("slow\n")));
}

TEST(HttpServer, ALateAnswerThatThrowsCostsItsClientOnly) {
  const auto server = serve(
      [](const Request& r) -> Reply {
        if (r.path == "/x") return echo(r);
        return {.later = []() -> Reply { throw std::bad_alloc(); }};
      },
      {.slow_threads = 1});
  EXPECT_EQ(said(*server, "GET /throws HTTP/1.0\r\n\r\n"), "");
  EXPECT_THAT(said(*server, "GET /x HTTP/1.0\r\n\r\n"), EndsWith("GET /x  \n"));
}

TEST(HttpServer, FollowersGetWhatIsPublishedAndTheirNumberIsBounded) {
  const auto server = serve(
      [](const Request&) { return Reply{.type = "text/event-stream", .body = "hello\n\n", .follows = true}; },
      {.connections = 8, .deadline = 300ms, .followers = 2});
  std::vector<std::unique_ptr<TextClient>> followers;
  for (int i = 0; i < 2; ++i) {
    followers.push_back(std::make_unique<TextClient>(server->address()));
    followers.back()->send_text("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  }
  ASSERT_TRUE(wait_until(10s, [&] { return server->followers() == 2; }));
  EXPECT_THAT(said(*server, "GET / HTTP/1.0\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.0 503 "), HasSubstr("at most 2 who follow")));
  EXPECT_THAT(said(*server, "HEAD / HTTP/1.0\r\n\r\n"), StartsWith("HTTP/1.0 200 ")) << "and ends";
  EXPECT_EQ(TextClient(server->address()).rest(), "") << "the deadline of others has passed";
  server->publish("data: one\n\n");
  server->publish("data: two\n\n");
  for (const auto& each : followers)
    EXPECT_TRUE(each->says("HTTP/1.1 200 OK")) << "a follower is not closed for being quiet";
  for (const auto& each : followers) EXPECT_TRUE(each->says("hello\n\ndata: one\n\ndata: two\n\n"));
  followers.pop_back();
  EXPECT_TRUE(wait_until(10s, [&] { return server->followers() == 1; })) << "one has gone";
}

TEST(HttpServer, AFollowerThatReadsNothingIsClosed) {
  const auto server = serve([](const Request&) { return Reply{.follows = true}; },
                            {.deadline = 60'000ms, .followers = 1, .unread_bytes = 1 << 16});
  const TextClient follower(server->address());
  follower.send_text("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(wait_until(10s, [&] { return server->followers() == 1; }));
  const std::string news(60'000, 'x');
  EXPECT_TRUE(wait_until(20s, [&] {
    server->publish(news);  // the kernel takes some MiB for it
    return server->followers() == 0;
  }));
}

TEST(HttpServer, TwoHostsAreRefused) {
  const auto server = serve();
  EXPECT_THAT(said(*server, "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
}

TEST(HttpServer, WhatIsTooLongIsRefused) {
  std::atomic<int> asked{0};
  const auto server = serve(
      [&](const Request& r) {
        ++asked;
        return echo(r);
      },
      {.head_bytes = 1'000, .body_bytes = 10});
  EXPECT_THAT(said(*server, "GET / HTTP/1.1\r\nX: " + std::string(2'000, 'x') + "\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 431 "), HasSubstr("at most 1000 bytes")));
  EXPECT_THAT(said(*server, "POST / HTTP/1.1\r\nContent-Length: 11\r\n\r\n12345678901"),
              AllOf(StartsWith("HTTP/1.1 413 "), HasSubstr("at most 10 bytes")));
  EXPECT_EQ(asked, 0);
  EXPECT_THAT(said(*server, "POST / HTTP/1.0\r\nContent-Length: 10\r\n\r\n1234567890"),
              StartsWith("HTTP/1.0 200"));
}

TEST(HttpServer, WhatIsNoHttpIsToldSoAndClosed) {
  const auto server = serve();
  for (const char* line : {"GET", "GET /metrics", "hello", "GET  / HTTP/1.1", "GET / HTTP/9.1"})
    EXPECT_THAT(said(*server, str(line, "\r\n\r\n")),
                AllOf(StartsWith("HTTP/1.1 400 "), HasSubstr("Connection: close\r\n")))
        << line;
}

TEST(HttpServer, AHandlerWithoutMemoryCostsItsClientOnly) {
  const auto server = serve([](const Request& r) -> Reply {
    if (r.path == "/large") throw std::bad_alloc();
    return echo(r);
  });
  EXPECT_EQ(said(*server, "GET /large HTTP/1.0\r\n\r\n"), "");
  EXPECT_THAT(said(*server, "GET /small HTTP/1.0\r\n\r\n"), EndsWith("GET /small  \n"));
}

TEST(HttpServer, ATakenPortIsRefused) {
  const auto first = serve();
  const auto second = HttpServer::start(first->address(), echo);
  ASSERT_FALSE(second.is_ok());
  EXPECT_THAT(second.message(), HasSubstr(first->address()));
}

TEST(HttpServer, OnAUnixSocketTheKernelSaysWho) {
  const TemporaryFolder folder;
  std::string way = "nobody asked";
  const auto server = HttpServer::start("unix:" + folder.file("s"), [&](const Request& r) {
                        way = str(r.peer.way == transport::Peer::Way::kUnix ? "unix " : "tcp ", r.peer.uid);
                        return echo(r);
                      }).value();
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un to{.sun_family = AF_UNIX};
  folder.file("s").copy(to.sun_path, sizeof to.sun_path - 1);
  ASSERT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  const std::string request = "GET / HTTP/1.0\r\n\r\n";
  ASSERT_EQ(write(fd, request.data(), request.size()), static_cast<ssize_t>(request.size()));
  char byte = 0;
  ASSERT_EQ(read(fd, &byte, 1), 1);
  close(fd);
  EXPECT_EQ(way, str("unix ", getuid()));
}

TEST(HttpServerFuzz, AnyBytesAreAnsweredWholeOrNotAtAll) {
  const auto server = serve(echo, {.deadline = 30ms});
  const std::string seeds[] = {"GET /metrics HTTP/1.0\r\nHost: 127.0.0.1:9100\r\nAccept: */*\r\n\r\n",
                               "HEAD /readyz HTTP/1.1\r\nConnection: close\r\n\r\n",
                               "POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"};
  constexpr std::string_view kPieces[] = {"GET ",
                                          "HEAD ",
                                          "/metrics",
                                          " HTTP/1.0",
                                          "\r\n",
                                          "\n\n",
                                          "Content-Length: 5",
                                          "Transfer-Encoding: chunked",
                                          "ffffffffffffffff"};
  constexpr int kTried = 300;  // each has a connection of its own, of 30 ms where it says too little
  const RandomSeed seed(1);
  std::mt19937_64 random(seed);
  int answered = 0;
  for (int i = 0; i < kTried; ++i) {
    const std::string text = testing::damaged(seeds[random() % std::size(seeds)], kPieces, random);
    const std::string reply = said(*server, text);
    if (reply.empty()) continue;
    ++answered;
    EXPECT_THAT(reply, StartsWith("HTTP/1.")) << text;
    EXPECT_THAT(reply, Not(EndsWith("late"))) << text;
    EXPECT_NE(reply.find("\r\n\r\n"), std::string::npos) << text;
  }
  EXPECT_GT(answered, 30);
  EXPECT_LT(answered, kTried);
  EXPECT_THAT(said(*server, "GET /alive HTTP/1.0\r\n\r\n"), EndsWith("GET /alive  \n"));
}

// A farm's authority and what it has signed.
struct Farm {
  identity::KeyAndCertificate authority = identity::make_authority(10).value();
  identity::Issued daemon = identity::issue_daemon(authority, 10).value();
  identity::Issued worker = identity::issue_worker(authority, "gpu1", 10).value();
  transport::TlsMaterial material(const identity::Issued& of) const {
    return {of.pem.certificate, of.pem.key, authority.certificate};
  }
};

std::unique_ptr<HttpServer> serve_tls(const Farm& farm) {
  return HttpServer::start(
             "tls:127.0.0.1:0",
             [](const Request& r) {
               return Reply{.body = str("<", r.peer.certificate, "|", r.peer.certificate_fault, ">\n")};
             },
             farm.material(farm.daemon), {.deadline = 10'000ms})
      .value();
}
constexpr char kGet[] = "GET / HTTP/1.0\r\n\r\n";

TEST(HttpServerTls, SpeaksHttp11AndTellsWhoseCertificateItSees) {
  const Farm farm;
  const auto server = serve_tls(farm);
  TlsClient nobody(server->address(), {.protocol = "http/1.1"});
  ASSERT_TRUE(nobody.shake_hands()) << nobody.fault();
  EXPECT_EQ(nobody.protocol(), "http/1.1");
  EXPECT_EQ(nobody.server_serial(), farm.daemon.serial);
  ASSERT_TRUE(nobody.send(kGet));
  EXPECT_TRUE(nobody.receives("\r\n\r\n<|>\n", 10'000ms)) << nobody.received();

  TlsClient worker(server->address(),
                   {.certificate = farm.worker.pem.certificate, .key = farm.worker.pem.key, .protocol = ""});
  ASSERT_TRUE(worker.shake_hands()) << worker.fault();
  ASSERT_TRUE(worker.send(kGet));
  EXPECT_TRUE(worker.receives("gpu1|>\n", 10'000ms)) << worker.received();
}

TEST(HttpServerTls, AForeignCertificateIsNotedAndOtherProtocolsAreRefused) {
  const Farm farm, other;
  const auto server = serve_tls(farm);
  TlsClient foreign(
      server->address(),
      {.certificate = other.worker.pem.certificate, .key = other.worker.pem.key, .protocol = "http/1.1"});
  ASSERT_TRUE(foreign.shake_hands()) << foreign.fault();
  ASSERT_TRUE(foreign.send(kGet));
  EXPECT_TRUE(foreign.receives("|unable to ", 10'000ms)) << foreign.received();
  TlsClient http2(server->address(), {.protocol = "h2"});
  EXPECT_FALSE(http2.shake_hands());
  TlsClient old(server->address(), {.protocol = "http/1.1", .only_tls12 = true});
  EXPECT_FALSE(old.shake_hands());
  EXPECT_THAT(said(*server, kGet), Not(HasSubstr("HTTP/1.0 200"))) << "plain text";
}

TEST(HttpServerTls, NewConnectionsSeeTheRenewedCertificate) {
  const Farm farm;
  const auto server = serve_tls(farm);
  const identity::Issued fresh = identity::issue_daemon(farm.authority, 10).value();
  EXPECT_FALSE(server->renew({"no", "PEM", "at all"}).is_ok());
  ASSERT_TRUE(server->renew(farm.material(fresh)).is_ok());
  TlsClient client(server->address(), {.protocol = "http/1.1"});
  ASSERT_TRUE(client.shake_hands()) << client.fault();
  EXPECT_EQ(client.server_serial(), fresh.serial);
}

TEST(HttpServerTls, NeedsACertificate) {
  const auto server = HttpServer::start("tls:127.0.0.1:0", echo);
  ASSERT_FALSE(server.is_ok());
  EXPECT_THAT(server.message(), HasSubstr("expected a certificate"));
}

}  // namespace
}  // namespace tuner::http
