// The status pages: what is answered, and that any bytes are answered with a whole HTTP reply or not at all.
#include "tuner/daemon/status_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "tests/damaged_text.h"
#include "tests/support/text_client.h"
#include "tuner/daemon/status_server.h"

namespace tuner {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace std::chrono_literals;
using Client = testing::TextClient;

StatusPages pages(Readiness ready = {true, ""}) {
  return {.metrics = [] { return std::string("a 1\n"); }, .ready = [ready] { return ready; }};
}
std::string get(const std::string& target, const StatusPages& of = pages()) {
  return answer_request("GET " + target + " HTTP/1.1\r\nHost: x\r\n\r\n", of);
}

TEST(StatusPage, MetricsComeWithTheirTypeAndLength) {
  EXPECT_EQ(
      get("/metrics"),
      "HTTP/1.0 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: 4\r\n"
      "Cache-Control: no-store\r\nConnection: close\r\n\r\na 1\n");
  EXPECT_THAT(get("/metrics?x=1"), EndsWith("\r\n\r\na 1\n"));
  EXPECT_THAT(answer_request("HEAD /metrics HTTP/1.0\n\n", pages()), EndsWith("Connection: close\r\n\r\n"));
}

TEST(StatusPage, ReadinessComesWithItsReason) {
  EXPECT_THAT(get("/readyz"), AllOf(StartsWith("HTTP/1.0 200"), EndsWith("ready\n")));
  const std::string no = get("/readyz", pages({false, "the desk has not turned for 9 s"}));
  EXPECT_THAT(no,
              AllOf(StartsWith("HTTP/1.0 503"), EndsWith("not ready: the desk has not turned for 9 s\n")));
  EXPECT_THAT(get("/healthz", pages({false, "x"})), StartsWith("HTTP/1.0 200"));
}

TEST(StatusPage, EverythingElseIsRefused) {
  for (const char* target : {"/", "/metrics/", "/metric", "/../metrics", "/readyz/x"})
    EXPECT_THAT(get(target), StartsWith("HTTP/1.0 404")) << target;
  EXPECT_THAT(answer_request("POST /metrics HTTP/1.1\r\n\r\n", pages()),
              AllOf(StartsWith("HTTP/1.0 405"), HasSubstr("Allow: GET, HEAD\r\n")));
  for (const char* line :
       {"", "\r\n", "GET", "GET /metrics", "GET  /metrics HTTP/1.1", "GET /metrics HTTP/2.0",
        "GET metrics HTTP/1.1", "GET /metrics HTTP/1.1 x", "PRI * HTTP/2.0"})
    EXPECT_THAT(answer_request(str(line, "\r\n\r\n"), pages()), StartsWith("HTTP/1.0 400")) << line;
}

TEST(StatusPageFuzz, AnyBytesAreAnsweredWithOneWholeReply) {
  const std::string seeds[] = {"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:9100\r\nAccept: */*\r\n\r\n",
                               "HEAD /readyz HTTP/1.0\r\n\r\n", "GET /healthz?a=b HTTP/1.0\n\n"};
  constexpr std::string_view kPieces[] = {"GET ",      "HEAD ", "/metrics", "/readyz",
                                          " HTTP/1.0", "\r\n",  "\n\n",     " "};
  const int accepted = testing::check_damaged(seeds, kPieces, 6, [](const std::string& text) -> bool {
    request_is_complete(text);
    const std::string reply = answer_request(text, pages());
    const size_t head = reply.find("\r\n\r\n");
    EXPECT_THAT(reply, StartsWith("HTTP/1.0 "));
    EXPECT_NE(head, std::string::npos);
    const size_t length = std::stoul(reply.substr(reply.find("Content-Length: ") + 16));
    const size_t body = reply.size() - head - 4;
    EXPECT_TRUE(body == length || body == 0) << text;
    // Nothing of the request comes back: no header can be smuggled into the reply.
    EXPECT_EQ(std::ranges::count(reply.substr(0, head), '\n'), reply.starts_with("HTTP/1.0 405") ? 5 : 4);
    return reply.starts_with("HTTP/1.0 200");
  });
  EXPECT_GT(accepted, testing::kDamagedRounds / 20);
  EXPECT_LT(accepted, testing::kDamagedRounds);
}

TEST(StatusServer, AnswersInPiecesToo) {
  const auto server = StatusServer::start("127.0.0.1:0", pages()).value();
  Client client(server->address());
  client.send_text("GET /met");
  client.send_text("rics HTTP/1.0\r\n");
  client.send_text("\r\n");
  EXPECT_THAT(client.rest(), EndsWith("\r\n\r\na 1\n"));
}

TEST(StatusServer, SilentClientsAreClosedAndOthersServedMeanwhile) {
  const auto server = StatusServer::start("127.0.0.1:0", pages()).value();
  std::vector<std::unique_ptr<Client>> silent;
  for (int i = 0; i < 40; ++i) silent.push_back(std::make_unique<Client>(server->address()));
  Client client(server->address());  // behind more silent ones than it takes at once
  client.send_text("GET /healthz HTTP/1.0\r\n\r\n");
  EXPECT_THAT(client.rest(), EndsWith("ok\n"));
  EXPECT_EQ(silent.front()->rest(), "") << "closed without a word";
  EXPECT_EQ(silent.back()->rest(), "");
}

TEST(StatusServer, ALongRequestIsCutOff) {
  const auto server = StatusServer::start("127.0.0.1:0", pages()).value();
  Client client(server->address());
  client.send_text("GET /metrics HTTP/1.0\r\nX: " + std::string(20'000, 'x'));
  EXPECT_EQ(client.rest(), "");
  Client next(server->address());
  next.send_text("GET /healthz HTTP/1.0\r\n\r\n");
  EXPECT_THAT(next.rest(), EndsWith("ok\n"));
}

TEST(StatusServer, ATakenPortIsRefused) {
  const auto first = StatusServer::start("127.0.0.1:0", pages()).value();
  const auto second = StatusServer::start(first->address(), pages());
  ASSERT_FALSE(second.is_ok());
  EXPECT_THAT(second.message(), HasSubstr(first->address()));
}

}  // namespace
}  // namespace tuner
