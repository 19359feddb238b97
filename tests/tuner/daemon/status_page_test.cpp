// The status pages: what is answered to whom. HTTP itself: tests/tuner/http.
#include "tuner/daemon/status_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "proto/daemon_access.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_client.h"
#include "tests/support/tls_client.h"
#include "tuner/daemon/status_server.h"
#include "tuner/identity/identity_folder.h"

namespace tuner {
namespace {

using namespace std::chrono_literals;
using identity::IdentityFolder;
using identity::Role;
using identity::Roles;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using ::testing::StartsWith;

StatusPages pages(Readiness ready = {true, ""}) {
  return {.metrics = [] { return std::string("a 1\n"); }, .ready = [ready] { return ready; }};
}
http::Reply get(const std::string& path, const StatusPages& of = pages()) {
  return answer_status({.method = "GET", .path = path}, of);
}

TEST(StatusPage, MetricsComeWithTheirType) {
  EXPECT_EQ(get("/metrics").type, "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_EQ(get("/metrics").body, "a 1\n");
}

TEST(StatusPage, ReadinessComesWithItsReason) {
  EXPECT_EQ(get("/readyz").status, 200);
  EXPECT_EQ(get("/readyz").body, "ready\n");
  const http::Reply no = get("/readyz", pages({false, "the desk has not turned for 9 s"}));
  EXPECT_EQ(no.status, 503);
  EXPECT_EQ(no.body, "not ready: the desk has not turned for 9 s\n");
  EXPECT_EQ(get("/healthz", pages({false, "x"})).status, 200);
}

TEST(StatusPage, EverythingElseIsRefused) {
  for (const char* path : {"/", "/metrics/", "/metric", "/../metrics", "/readyz/x", "", "metrics"})
    EXPECT_EQ(get(path).status, 404) << path;
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "get", ""}) {
    const http::Reply reply = answer_status({.method = method, .path = "/metrics"}, pages());
    EXPECT_EQ(reply.status, 405) << method;
    EXPECT_THAT(reply.headers, ::testing::ElementsAre(Pair("Allow", "GET, HEAD")));
  }
  EXPECT_EQ(answer_status({.method = "HEAD", .path = "/metrics"}, pages()).status, 200);
}

TEST(StatusPage, WhoMayNotQueryIsToldWhetherAndNotWhy) {
  StatusPages guarded = pages({false, "the disk"});
  guarded.refusal = [](const http::Request&) { return http::Reply{.status = 401, .body = "who?\n"}; };
  EXPECT_EQ(get("/metrics", guarded).status, 401);
  EXPECT_EQ(get("/metrics", guarded).body, "who?\n");
  EXPECT_EQ(get("/readyz", guarded).status, 503);
  EXPECT_EQ(get("/readyz", guarded).body, "not ready\n");
  EXPECT_EQ(get("/healthz", guarded).body, "ok\n");
}

TEST(StatusServer, AnswersOnLoopback) {
  const auto server = StatusServer::start("127.0.0.1:0", pages()).value();
  const testing::TextClient client(server->address());
  client.send_text("GET /metrics?x=1 HTTP/1.0\r\n\r\n");
  EXPECT_THAT(client.rest(), AllOf(StartsWith("HTTP/1.0 200 OK\r\n"), EndsWith("\r\n\r\na 1\n")));
}

// A farm with an identity, and its pages by TLS.
class StatusServerTls : public ::testing::Test {
 protected:
  std::string token(const std::string& name, Roles roles) {
    const auto in = folder_.let_in_person(name, roles, "", "farm:1", 1).value();
    return parse_credentials(in.credentials, name).value().token;
  }
  // The answer to a GET of `path`; `more` are further headers.
  std::string get(const std::string& path, const std::string& more = "") {
    testing::TlsClient client(server_->address(), {.protocol = "http/1.1"});
    EXPECT_TRUE(client.shake_hands()) << client.fault();
    client.send(str("GET ", path, " HTTP/1.0\r\n", more, "\r\n"));
    EXPECT_TRUE(client.closes_within(20'000ms));
    return client.received();
  }
  static std::string bearer(const std::string& token) { return str("Authorization: Bearer ", token, "\r\n"); }

  const TemporaryFolder temporary_;
  const IdentityFolder folder_ = IdentityFolder::create(temporary_.file("identity"), 30, 20).value();
  const std::unique_ptr<StatusServer> server_ =
      StatusServer::start("tls:127.0.0.1:0", pages({false, "a secret"}), folder_.path()).value();
};

TEST_F(StatusServerTls, MetricsAskForTheRoleQuery) {
  EXPECT_THAT(get("/metrics"), AllOf(StartsWith("HTTP/1.0 401 "), HasSubstr("WWW-Authenticate: Bearer"),
                                     HasSubstr("give it as the header Authorization: Bearer TOKEN\n"),
                                     Not(HasSubstr("--daemon")), Not(HasSubstr("a 1"))));
  EXPECT_THAT(get("/metrics", bearer("tuner_nonsense")),
              AllOf(StartsWith("HTTP/1.0 401 "), HasSubstr("the token is not known here")));
  for (const Role role : {Role::kQuery, Role::kSubmit, Role::kAdmin})
    EXPECT_THAT(get("/metrics", bearer(token("alice", role))), EndsWith("\r\n\r\na 1\n"));
  EXPECT_THAT(get("/metrics", bearer(token("w", Role::kWork))),
              AllOf(StartsWith("HTTP/1.0 403 "),
                    HasSubstr("w may work: expected a token with the role query"), Not(HasSubstr("a 1"))));
}

TEST_F(StatusServerTls, ARevokedTokenCountsNoMore) {
  const std::string alice = token("alice", Role::kQuery);
  ASSERT_THAT(get("/metrics", bearer(alice)), StartsWith("HTTP/1.0 200"));
  ASSERT_TRUE(folder_.revoke("alice").is_ok());
  const auto limit = std::chrono::steady_clock::now() + 20s;
  while (get("/metrics", bearer(alice)).starts_with("HTTP/1.0 200"))
    ASSERT_LT(std::chrono::steady_clock::now(), limit) << "the folder is looked at once a second";
  EXPECT_THAT(get("/metrics", bearer(alice)), HasSubstr("the token of alice was revoked"));
}

TEST_F(StatusServerTls, ProbesNeedNoTokenAndLearnNoReason) {
  EXPECT_THAT(get("/healthz"), EndsWith("\r\n\r\nok\n"));
  EXPECT_THAT(get("/readyz"), AllOf(StartsWith("HTTP/1.0 503"), EndsWith("\r\n\r\nnot ready\n")));
  EXPECT_THAT(get("/readyz", bearer(token("alice", Role::kQuery))), EndsWith("not ready: a secret\n"));
}

TEST_F(StatusServerTls, ARenewedCertificateIsShown) {
  const auto serial = [&] {
    testing::TlsClient client(server_->address(), {.protocol = "http/1.1"});
    EXPECT_TRUE(client.shake_hands()) << client.fault();
    return client.server_serial();
  };
  const std::string before = serial();
  ASSERT_TRUE(folder_.renew_daemon(5).is_ok());
  const auto limit = std::chrono::steady_clock::now() + 20s;
  while (serial() == before) ASSERT_LT(std::chrono::steady_clock::now(), limit);
}

TEST(StatusServer, TlsNeedsAnIdentity) {
  const TemporaryFolder temporary;
  const auto server = StatusServer::start("tls:127.0.0.1:0", pages(), temporary.file("none"));
  ASSERT_FALSE(server.is_ok());
  EXPECT_EQ(server.status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace tuner
