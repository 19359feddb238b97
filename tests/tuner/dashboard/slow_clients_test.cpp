// A daemon whose page has a thousand slow clients: whoever else asks, by the page or as a client of the
// daemon, waits no longer than 250 ms in 99 of 100 calls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "tests/tuner/dashboard/pages.h"
#include "tuner/client/daemon_client.h"

namespace tuner {
namespace {

using namespace std::chrono_literals;
using testing::eventually;
using testing::Pages;
using ::testing::StartsWith;
using testing::TextClient;

constexpr int kClients = 1'000, kMostMs = 250;

// What each of them says, and then nothing more.
std::string begin_of_request(int client, const std::string& address) {
  switch (client % 5) {
    case 0:
      return "";
    case 1:
      return "GET /api/jobs HTTP/1.1\r\nHost: ";
    case 2:  // a body that does not come
      return "POST /api/jobs HTTP/1.1\r\nHost: " + address + "\r\nContent-Length: 1000000\r\n\r\n{";
    case 3:  // answers that nobody reads
      return "GET /metrics HTTP/1.1\r\nHost: " + address + "\r\n\r\n";
    default:
      return "GET /api/events HTTP/1.1\r\nHost: " + address + "\r\n\r\n";
  }
}

double p99(std::vector<double> waits_ms) {
  std::ranges::sort(waits_ms);
  return waits_ms[waits_ms.size() * 99 / 100];
}

template <class Call>
double ms_of(const Call& call) {
  const auto since = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - since).count();
}

TEST(SlowClients, AThousandOfThemLeaveTheDaemonQuick) {
  testing::CommandLine shell{TUNER_BIN_DIR};
  const std::string socket = "unix:" + shell.folder().string() + "/d.sock";
  Pages daemon(shell, "serve --db t.db --http 127.0.0.1:0 --listen " + socket, "serve");
  ASSERT_TRUE(eventually(30s, [&] { return daemon.said("GET /readyz").starts_with("HTTP/1.1 200 "); }));
  const Result<DaemonClient> client = DaemonClient::connect({.daemon = socket});
  ASSERT_TRUE(client.is_ok()) << client.message();
  std::vector<std::unique_ptr<TextClient>> slow;
  std::vector<double> page_ms, call_ms;
  for (int i = 0; i < kClients; ++i) {
    slow.push_back(std::make_unique<TextClient>(daemon.address()));
    ASSERT_TRUE(slow.back()->connected()) << i;
    slow.back()->send_text(begin_of_request(i, daemon.address()));
    if (i % 5 != 0) continue;
    page_ms.push_back(
        ms_of([&] { EXPECT_THAT(daemon.said("GET /api/jobs"), StartsWith("HTTP/1.1 200 ")) << i; }));
    call_ms.push_back(ms_of([&] { EXPECT_TRUE(client->known_jobs().is_ok()) << i; }));
  }
  // The thousand are there, and hold on.
  for (int i = 0; i < 200; ++i) {
    page_ms.push_back(
        ms_of([&] { EXPECT_THAT(daemon.said("GET /api/jobs"), StartsWith("HTTP/1.1 200 ")) << i; }));
    call_ms.push_back(ms_of([&] { EXPECT_TRUE(client->known_jobs().is_ok()) << i; }));
  }
  std::printf("%zu requests and as many calls beside %d slow clients: p99 %.1f ms, %.1f ms\n", page_ms.size(),
              kClients, p99(page_ms), p99(call_ms));
  EXPECT_LE(p99(page_ms), kMostMs);
  EXPECT_LE(p99(call_ms), kMostMs);
  daemon.program().signal(SIGTERM);
  EXPECT_EQ(daemon.program().wait(30s), 0) << daemon.program().err();
}

}  // namespace
}  // namespace tuner
