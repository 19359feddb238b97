// The dashboard on its socket: whom it lets in, what is new, a thousand slow clients.
#include "tuner/dashboard/dashboard_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "proto/daemon_access.h"
#include "tests/support/text_client.h"
#include "tests/support/tls_client.h"
#include "tests/support/wait_until.h"
#include "tests/tuner/dashboard/dashboard_fixture.h"
#include "tuner/identity/identity_folder.h"

namespace tuner {
namespace {

using namespace std::chrono_literals;
using dashboard::DashboardServer;
using dashboard::DashboardServerOptions;
using ::testing::AllOf;
using testing::DashboardTest;
using ::testing::HasSubstr;
using testing::kMatmul;
using testing::kTarget;
using ::testing::Not;
using ::testing::StartsWith;
using testing::TextClient;

class DashboardOnASocket : public DashboardTest {
 protected:
  void SetUp() override {
    add_job("j1", "random", {{kMatmul, kTarget}});
    measure("j1", 0, 20, 1);
  }
  std::unique_ptr<DashboardServer> serve(DashboardServerOptions options) const {
    options.address = "127.0.0.1:0";
    return DashboardServer::start(options, facts_here()).value();
  }
  std::unique_ptr<DashboardServer> serve_by_token() const { return serve({.token = "tuner_secret"}); }
  static std::string request(const DashboardServer& server, const std::string& line,
                             const std::string& more) {
    return str(line, " HTTP/1.1\r\nHost: ", server.address(), "\r\nConnection: close\r\n", more, "\r\n");
  }
  static std::string said(const DashboardServer& server, const std::string& line,
                          const std::string& more = "") {
    const TextClient client(server.address());
    client.send_text(request(server, line, more));
    return client.rest();
  }
  static std::string bearer(const std::string& token) { return "Authorization: Bearer " + token + "\r\n"; }
};

TEST_F(DashboardOnASocket, ItsTokenOpensItAndNothingElseDoes) {
  const auto server = serve_by_token();
  EXPECT_EQ(server->link(), str("http://", server->address(), "/#token=tuner_secret"));
  EXPECT_THAT(said(*server, "GET /api/jobs", bearer("tuner_secret")),
              AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("\"job\":\"j1\"")));
  for (const std::string& wrong :
       {std::string(), bearer("tuner_secre"), bearer("tuner_secret2"), bearer(""),
        std::string("Authorization: tuner_secret\r\n"), std::string("Cookie: token=tuner_secret\r\n")})
    EXPECT_THAT(said(*server, "GET /api/jobs", wrong),
                AllOf(StartsWith("HTTP/1.1 401 "), Not(HasSubstr("j1\"")), HasSubstr("open the link")))
        << wrong;
  EXPECT_THAT(said(*server, "GET /api/jobs?token=tuner_secret"), StartsWith("HTTP/1.1 401 "));
  EXPECT_THAT(said(*server, "GET /metrics", bearer("tuner_secret")), StartsWith("HTTP/1.1 404 "))
      << "a daemon has these";
}

TEST_F(DashboardOnASocket, OnlyLoopbackIsServedInPlainText) {
  for (const char* address :
       {"0.0.0.0:0", "192.0.2.1:80", "[::]:0", "unix:/tmp/x", "example.org:80", ":80", "7071",
        "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:1 "})
    for (const auto access :
         {DashboardServerOptions::Access::kToken, DashboardServerOptions::Access::kIdentity}) {
      const auto server = DashboardServer::start({.address = address, .access = access}, facts_here());
      ASSERT_FALSE(server.is_ok()) << address;
      EXPECT_EQ(server.status().code(), StatusCode::kInvalidArgument) << address;
      EXPECT_THAT(server.message(),
                  AllOf(HasSubstr(address), HasSubstr("tls:HOST:PORT"), Not(HasSubstr("\n"))));
    }
  const auto tls = DashboardServer::start({.address = "tls:127.0.0.1:0", .token = "t"}, facts_here());
  ASSERT_FALSE(tls.is_ok());
  EXPECT_EQ(tls.status().code(), StatusCode::kInvalidArgument) << "one token in a link is for one person";
}

class DashboardOfAFarm : public DashboardOnASocket {
 protected:
  void SetUp() override {
    DashboardOnASocket::SetUp();
    auto made = identity::IdentityFolder::create(folder_.file("id"), 10, 10);
    ASSERT_TRUE(made.is_ok()) << made.message();
  }
  std::string token_of(const std::string& name, identity::Roles roles, const std::string& tenant = "") const {
    const identity::IdentityFolder folder = identity::IdentityFolder::open(folder_.file("id")).value();
    return parse_credentials(folder.let_in_person(name, roles, tenant, "127.0.0.1:1", 10).value().credentials,
                             "test")
        .value()
        .token;
  }
  DashboardServerOptions options() const {
    return {.access = DashboardServerOptions::Access::kIdentity, .identity = folder_.file("id")};
  }
};

TEST_F(DashboardOfAFarm, ReadingNeedsQueryAndChangesNeedSubmit) {
  const auto server = serve(options());
  EXPECT_EQ(server->link(), str("http://", server->address(), "/")) << "each has a token of his own";
  const std::string reader = bearer(token_of("reader", identity::Role::kQuery)),
                    writer = bearer(token_of("writer", identity::Role::kSubmit)),
                    worker = bearer(token_of("worker", identity::Role::kWork)),
                    tenant = bearer(token_of("seer", identity::Role::kSubmit, "vision"));
  EXPECT_THAT(said(*server, "GET /api/jobs"),
              AllOf(StartsWith("HTTP/1.1 401 "), HasSubstr("WWW-Authenticate: Bearer")));
  EXPECT_THAT(said(*server, "GET /api/jobs", reader), AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("j1")));
  EXPECT_THAT(said(*server, "GET /api/jobs", worker),
              AllOf(StartsWith("HTTP/1.1 403 "), HasSubstr("role query")));
  EXPECT_THAT(said(*server, "GET /api/jobs", tenant),
              AllOf(StartsWith("HTTP/1.1 200 "), Not(HasSubstr("\"j1\""))));
  const std::string post = "POST /api/jobs/j1/cancel";
  EXPECT_THAT(said(*server, post), StartsWith("HTTP/1.1 401 "));
  EXPECT_THAT(said(*server, post, reader), AllOf(StartsWith("HTTP/1.1 403 "), HasSubstr("role submit")));
  EXPECT_THAT(said(*server, post, tenant), AllOf(StartsWith("HTTP/1.1 403 "), HasSubstr("--daemon FILE")));
  EXPECT_THAT(said(*server, post, writer), StartsWith("HTTP/1.1 503 ")) << "he may; there is no daemon here";
}

// Without an identity, whoever has an account here may read, as on every plain port of a daemon.
TEST_F(DashboardOnASocket, WithoutAnIdentityAllMayReadAndNobodyMayChange) {
  const auto server =
      serve({.access = DashboardServerOptions::Access::kIdentity, .identity = folder_.file("none")});
  EXPECT_THAT(said(*server, "GET /api/jobs"), StartsWith("HTTP/1.1 200 "));
  for (const std::string& token : {std::string(), bearer("tuner_any")})
    EXPECT_THAT(said(*server, "POST /api/jobs/j1/cancel", token),
                AllOf(Not(StartsWith("HTTP/1.1 200 ")), Not(StartsWith("HTTP/1.1 503 "))))
        << token;
}

TEST_F(DashboardOfAFarm, ByTlsMetricsNeedARoleAndProbesDoNot) {
  DashboardServerOptions with = options();
  with.address = "tls:127.0.0.1:0";
  with.status_pages = [](const http::Request& request, const DashboardServerOptions::Refusal& refusal) {
    const std::optional<http::Reply> refused = refusal(request);
    return refused && request.path == "/metrics" ? *refused
                                                 : http::Reply{.body = "status of " + request.path + "\n"};
  };
  const auto server = DashboardServer::start(with, facts_here()).value();
  const std::string reader = bearer(token_of("reader", identity::Role::kQuery));
  const auto tls_said = [&](const std::string& path, const std::string& more, const std::string& expected) {
    testing::TlsClient client(server->address(), {.protocol = "http/1.1"});
    EXPECT_TRUE(client.shake_hands()) << client.fault();
    EXPECT_TRUE(client.send(request(*server, "GET " + path, more)));
    EXPECT_TRUE(client.receives(expected, 10'000ms)) << client.received();
  };
  tls_said("/metrics", "", "HTTP/1.1 401 ");
  tls_said("/metrics", reader, "status of /metrics");
  tls_said("/healthz", "", "status of /healthz");
  tls_said("/api/jobs", reader, "\"job\":\"j1\"");
  tls_said("/api/jobs", "", "HTTP/1.1 401 ");
}

TEST_F(DashboardOfAFarm, ARenewedCertificateIsShownToWhoComesThen) {
  DashboardServerOptions with = options();
  with.address = "tls:127.0.0.1:0";
  const auto server = DashboardServer::start(with, facts_here()).value();
  const std::string reader = bearer(token_of("reader", identity::Role::kQuery));
  const auto serial = [&] {
    testing::TlsClient client(server->address(), {.protocol = "http/1.1"});
    EXPECT_TRUE(client.shake_hands()) << client.fault();
    EXPECT_TRUE(client.send(request(*server, "GET /api/jobs", reader)));
    EXPECT_TRUE(client.receives("HTTP/1.1 200 ", 10'000ms)) << client.received();
    return client.server_serial();
  };
  const std::string before = serial();
  ASSERT_NE(before, "");
  ASSERT_TRUE(identity::IdentityFolder::open(folder_.file("id")).value().renew_daemon(10).is_ok());
  EXPECT_TRUE(wait_until(20s, [&] { return serial() != before; })) << "it is looked at once a second";
}

TEST_F(DashboardOnASocket, ALinkThatMayOnlyReadChangesNothing) {
  const auto server = serve({.token = "tuner_secret", .may_change = false});
  EXPECT_THAT(said(*server, "GET /api/jobs", bearer("tuner_secret")), StartsWith("HTTP/1.1 200 "));
  for (const char* post : {"POST /api/jobs", "POST /api/jobs/j1/cancel", "POST /api/task/library"})
    EXPECT_THAT(said(*server, post, bearer("tuner_secret")),
                AllOf(StartsWith("HTTP/1.1 403 "), HasSubstr("this page only reads")))
        << post;
  EXPECT_THAT(said(*server, "POST /api/jobs/j1/cancel", bearer("tuner_other")), StartsWith("HTTP/1.1 401 "));
  EXPECT_THAT(said(*server, "GET /api/about", bearer("tuner_secret")),
              HasSubstr(R"("may_change":false,"why_not_change":"this page only reads")"));
  EXPECT_THAT(said(*serve_by_token(), "GET /api/about", bearer("tuner_secret")),
              HasSubstr(R"("may_change":true,"why_not_change":"")"));
}

// A page of another site that gets here by a name of its own reads no metrics; probes ask by any name.
TEST_F(DashboardOnASocket, MetricsAreForNoForeignPage) {
  DashboardServerOptions with{.access = DashboardServerOptions::Access::kIdentity,
                              .identity = folder_.file("none")};
  with.status_pages = [](const http::Request& request, const DashboardServerOptions::Refusal&) {
    return http::Reply{.body = "status of " + request.path + "\n"};
  };
  const auto server = serve(with);
  const auto said_as = [&](const std::string& path, const std::string& headers) {
    const TextClient client(server->address());
    client.send_text("GET " + path + " HTTP/1.1\r\nConnection: close\r\n" + headers + "\r\n");
    return client.rest();
  };
  const std::string own = "Host: " + server->address() + "\r\n", foreign = "Host: evil.example\r\n";
  EXPECT_THAT(said_as("/metrics", own), HasSubstr("status of /metrics"));
  for (const std::string& headers :
       {foreign, own + "Origin: http://evil.example\r\n", own + "Sec-Fetch-Site: cross-site\r\n"})
    EXPECT_THAT(said_as("/metrics", headers), AllOf(StartsWith("HTTP/1.1 403 "), Not(HasSubstr("status of"))))
        << headers;
  for (const char* probe : {"/healthz", "/readyz"})
    EXPECT_THAT(said_as(probe, foreign), HasSubstr(str("status of ", probe)));
  EXPECT_THAT(said_as("/api/jobs", foreign), StartsWith("HTTP/1.1 403 "));
}

TEST_F(DashboardOnASocket, WhatIsNewReachesFollowers) {
  const auto server = serve_by_token();
  TextClient follower(server->address());
  follower.send_text(request(*server, "GET /api/events", bearer("tuner_secret")));
  ASSERT_TRUE(follower.says("text/event-stream"));
  ASSERT_TRUE(follower.says("event: news\n")) << "how it is now";
  measure("j1", 0, 1, 77);
  const std::string latest = std::to_string(store_->last_record_id().value());
  EXPECT_TRUE(follower.says("\"mark\":\"" + latest + " j1 ", 5s))
      << "sooner than the line that says it is alive";
}

// 1,000 clients say half of a request each, and hold on. Others are answered all the while.
TEST_F(DashboardOnASocket, AThousandSlowClientsKeepNobodyWaiting) {
  const auto server = serve_by_token();
  std::vector<std::unique_ptr<TextClient>> slow;
  std::vector<double> waits_ms;
  for (int i = 0; i < 1'000; ++i) {
    slow.push_back(std::make_unique<TextClient>(server->address()));
    slow.back()->send_text("GET /api/jobs HTTP/1.1\r\nHost: ");
    if (i % 5 != 0) continue;
    const auto since = std::chrono::steady_clock::now();
    ASSERT_THAT(said(*server, "GET /api/jobs", bearer("tuner_secret")), StartsWith("HTTP/1.1 200 ")) << i;
    waits_ms.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - since).count());
  }
  std::ranges::sort(waits_ms);
  const double p99 = waits_ms[waits_ms.size() * 99 / 100];
  std::printf("200 requests beside 1,000 slow clients: p99 %.1f ms\n", p99);
  EXPECT_LE(p99, 250);
}

}  // namespace
}  // namespace tuner
