// The frame guard: what it lets pass, what it closes a connection for, and that neither depends on how the
// bytes are cut.
#include "tuner/transport/frame_guard.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/damaged_text.h"
#include "tests/random_seed.h"
#include "tests/support/http2_attack.h"
#include "tuner/transport/gate_limits.h"

namespace tuner::transport {
namespace {

using namespace testing::http2;

constexpr char kPath[] = "/tuner.v1.Workers/Sync";

std::span<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// One connection with a time that the test moves.
struct Connection {
  explicit Connection(FrameLimits l = {}, SharedBudget* budget = nullptr, int64_t begin_ms = 0)
      : limits(l), now_ms(begin_ms), guard(limits, budget, begin_ms) {
    guard.feed(bytes_of(preface() + settings()), begin_ms);
  }
  Cause feed(std::string_view bytes) { return guard.feed(bytes_of(bytes), now_ms).cause; }
  // A whole unary call.
  Cause call(std::string_view message = "hello") {
    stream += 2;
    return feed(headers(stream, kPath, false) + data(stream, grpc_message(message), true));
  }
  Cause open() { return feed(headers(stream += 2, kPath, false)); }
  Cause cancelled_call() {
    const Cause cause = call();
    return cause == Cause::kNone ? feed(reset(stream)) : cause;
  }

  const FrameLimits limits;
  int64_t now_ms;
  uint32_t stream = UINT32_MAX;  // the last one; the first is 1
  FrameGuard guard;
};

// How often `act` passes at this moment, at most `most` times; the cause of the first refusal.
template <class Act>
std::pair<int, Cause> how_often(int most, Act act) {
  for (int i = 0; i < most; ++i)
    if (const Cause cause = act(); cause != Cause::kNone) return {i, cause};
  return {most, Cause::kNone};
}

TEST(FrameGuard, CallsOfAnHonestClientPass) {
  Connection c;
  for (int i = 0; i < 5'000; ++i) {
    ASSERT_EQ(c.call(std::string(1 + i % 3'000, 'x')), Cause::kNone);
    ASSERT_EQ(c.feed(window_update(0, 100) + window_update(c.stream, 100)), Cause::kNone);
    c.now_ms += 1;
  }
  EXPECT_EQ(c.guard.open_requests(), 0u);
  EXPECT_EQ(c.guard.wait_ms(c.now_ms), 0);
  EXPECT_EQ(c.guard.next_deadline(), std::nullopt);
}

TEST(FrameGuard, ClosesWhatIsNotHttp2) {
  FrameLimits limits;
  FrameGuard guard(limits, nullptr, 0);
  EXPECT_EQ(guard.feed(bytes_of("PRI * HTTP/1.1\r\n"), 0).cause, Cause::kNotHttp2);
  EXPECT_EQ(guard.feed(bytes_of(preface()), 0).cause, Cause::kNotHttp2) << "a bad verdict is final";
  EXPECT_FALSE(guard.has_preface());
}

TEST(FrameGuard, ClosesAHandshakeThatTakesTooLong) {
  FrameLimits limits;
  for (const std::string& sent : {std::string(), preface(), preface() + settings().substr(0, 8)}) {
    FrameGuard guard(limits, nullptr, 1'000);
    EXPECT_TRUE(guard.feed(bytes_of(sent), 1'000).is_ok());
    EXPECT_EQ(guard.next_deadline(), 4'000);
    EXPECT_TRUE(guard.on_time(3'999).is_ok());
    EXPECT_EQ(guard.on_time(4'000).cause, Cause::kHandshake);
  }
}

TEST(FrameGuard, WantsSettingsFirst) {
  for (const std::string& first : {ping(), settings_ack(), headers(1, kPath, true)}) {
    FrameLimits limits;
    FrameGuard guard(limits, nullptr, 0);
    EXPECT_EQ(guard.feed(bytes_of(preface() + first), 0).cause, Cause::kProtocol);
  }
}

TEST(FrameGuard, ClosesTooManyOpenRequests) {
  Connection c;
  EXPECT_EQ(how_often(200, [&] { return c.open(); }), std::pair(128, Cause::kOpenRequests));
}

TEST(FrameGuard, AnEndedRequestIsNotOpen) {
  Connection c;
  for (int i = 0; i < 4 * 120; ++i) {
    ASSERT_EQ(c.open(), Cause::kNone);
    switch (i % 4) {
      case 0:  // by DATA
        ASSERT_EQ(c.feed(data(c.stream, "", true)), Cause::kNone);
        break;
      case 1:  // by trailers
        ASSERT_EQ(c.feed(headers(c.stream, kPath, true)), Cause::kNone);
        break;
      case 2:  // by RST_STREAM
        c.now_ms += 10;
        ASSERT_EQ(c.feed(reset(c.stream)), Cause::kNone);
        break;
      default:  // by the server, which refused it
        c.guard.feed_reply(
            bytes_of(settings() + (i % 8 == 3 ? reset(c.stream) : headers(c.stream, kPath, true))));
    }
    ASSERT_EQ(c.guard.open_requests(), 0u) << i;
  }
}

TEST(FrameGuard, ClosesARequestThatIsNotFinishedInTime) {
  Connection c;
  c.now_ms = 500;
  ASSERT_EQ(c.open(), Cause::kNone);
  c.now_ms = 2'000;
  ASSERT_EQ(c.open(), Cause::kNone);
  EXPECT_EQ(c.guard.next_deadline(), 10'500);
  EXPECT_TRUE(c.guard.on_time(10'499).is_ok());
  EXPECT_EQ(c.guard.on_time(10'500).cause, Cause::kSlowRequest);
}

TEST(FrameGuard, ALongRequestHasTheTimeOfItsBytes) {
  Connection c;
  ASSERT_EQ(c.open(), Cause::kNone);
  // 10 MiB at just more than 64 KiB a second.
  for (int i = 0; i < 10 * 64; ++i) {
    c.now_ms += 249;
    ASSERT_EQ(c.feed(data(c.stream, std::string(16 << 10, 'x'), false)), Cause::kNone) << i;
  }
  c.now_ms += 10'700;
  EXPECT_EQ(c.guard.on_time(c.now_ms).cause, Cause::kSlowRequest);
}

TEST(FrameGuard, TimeInWhichTheServerDoesNotReadIsForgiven) {
  Connection c;
  ASSERT_EQ(c.open(), Cause::kNone);
  c.guard.forgive(5'000);
  EXPECT_EQ(c.guard.next_deadline(), 15'000);
  Connection half;  // of a header block
  ASSERT_EQ(half.feed(frame(1, 1, 1, "x")), Cause::kNone);
  half.guard.forgive(5'000);
  EXPECT_EQ(half.guard.next_deadline(), 15'000);
}

TEST(FrameGuard, ClosesAHeaderBlockThatIsNotFinishedInTime) {
  Connection c;
  // The whole head of HEADERS, and one byte less than its block.
  const std::string request = headers(1, kPath, true);
  ASSERT_EQ(c.feed(std::string_view(request).substr(0, request.size() - 1)), Cause::kNone);
  EXPECT_EQ(c.guard.on_time(9'999).cause, Cause::kNone);
  EXPECT_EQ(c.guard.on_time(10'000).cause, Cause::kSlowRequest);
}

TEST(FrameGuard, ClosesALongHeaderBlock) {
  Connection whole;
  EXPECT_EQ(whole.feed(frame(1, 5, 1, std::string(16 << 10, 'x'))), Cause::kNone);
  EXPECT_EQ(whole.feed(frame(1, 5, 3, std::string((16 << 10) + 1, 'x'))), Cause::kHeaderBlock);
  Connection parts;
  EXPECT_EQ(
      parts.feed(frame(1, 1, 1, std::string(12 << 10, 'x')) + frame(9, 0, 1, std::string(4 << 10, 'x'))),
      Cause::kNone);
  EXPECT_EQ(parts.feed(frame(9, 4, 1, "x")), Cause::kHeaderBlock);
  Connection many;
  EXPECT_EQ(many.feed(frame(1, 1, 1, "x")), Cause::kNone);
  EXPECT_EQ(how_often(20, [&] { return many.feed(frame(9, 0, 1)); }), std::pair(8, Cause::kHeaderBlock));
}

TEST(FrameGuard, ClosesWhatNoClientMaySend) {
  const std::string half_block = frame(1, 1, 1, "x");
  for (const std::string& frames :
       {frame(9, 4, 1), half_block + ping(), half_block + frame(9, 4, 3), half_block + data(1, "", true),
        headers(2, kPath, true), headers(0, kPath, true), frame(5, 4, 1, "1234")})
    EXPECT_EQ(Connection().feed(frames), Cause::kProtocol);
}

TEST(FrameGuard, ClosesLongFrames) {
  for (const uint8_t type : {3, 4, 6, 8, 200}) {
    EXPECT_EQ(Connection().feed(frame(type, 0, 0, std::string(16 << 10, 'x'))), Cause::kNone);
    EXPECT_EQ(Connection().feed(frame(type, 0, 0, std::string((16 << 10) + 1, 'x'))), Cause::kFrameSize);
  }
  // gRPC 1.51 as a server announces longer and longer DATA frames.
  Connection c;
  ASSERT_EQ(c.open(), Cause::kNone);
  EXPECT_EQ(c.feed(data(c.stream, std::string(10 << 20, 'x'), true)), Cause::kNone);
}

TEST(FrameGuard, ClosesALongRequest) {
  Connection c;
  ASSERT_EQ(c.open(), Cause::kNone);
  const std::string mebibyte = data(c.stream, std::string(1 << 20, 'x'), false);
  EXPECT_EQ(how_often(40, [&] { return c.feed(mebibyte); }), std::pair(32, Cause::kMessageSize));
}

TEST(FrameGuard, ClosesManyLongRequestsAtOnce) {
  Connection c;
  const std::string mebibyte(1 << 20, 'x');
  EXPECT_EQ(how_often(100,
                      [&] {
                        const Cause cause = c.open();
                        return cause == Cause::kNone ? c.feed(data(c.stream, mebibyte, false)) : cause;
                      }),
            std::pair(64, Cause::kUnfinishedBytes));
}

TEST(FrameGuard, AFinishedRequestHoldsNoBytes) {
  Connection c;
  for (int i = 0; i < 100; ++i) ASSERT_EQ(c.call(std::string(1 << 20, 'x')), Cause::kNone) << i;
}

// A worker that cancels its waiting Sync whenever it has a result.
TEST(FrameGuard, HundredsOfCancelledCallsASecondPass) {
  Connection c;
  for (int i = 0; i < 250 * 60; ++i) {
    ASSERT_EQ(c.cancelled_call(), Cause::kNone) << i;
    c.now_ms += 4;
  }
}

TEST(FrameGuard, ClosesRapidResetSoonOnAYoungConnection) {
  Connection young;
  EXPECT_EQ(how_often(5'000, [&] { return young.cancelled_call(); }), std::pair(200, Cause::kResets));
  Connection old;
  old.now_ms = 60'000;
  EXPECT_EQ(old.call(), Cause::kNone);  // sees that it is old
  old.now_ms = 70'000;
  EXPECT_EQ(how_often(5'000, [&] { return old.cancelled_call(); }), std::pair(600, Cause::kResets));
}

TEST(FrameGuard, FastClientsAreReadMoreSlowly) {
  Connection c;
  int calls = 0;
  while (c.guard.wait_ms(c.now_ms) == 0 && calls < 100'000) {
    ASSERT_EQ(c.call(), Cause::kNone);
    ++calls;
  }
  EXPECT_EQ(calls, 20'001);
  EXPECT_EQ(c.guard.wait_ms(c.now_ms), 1);
  EXPECT_EQ(c.guard.wait_ms(c.now_ms + 1), 0);
  for (int i = 0; i < 4'999; ++i) ASSERT_EQ(c.call(), Cause::kNone);
  EXPECT_EQ(c.guard.wait_ms(c.now_ms), 499) << "4,990 too many at 10,000 a second";
  Connection long_headers;
  for (int i = 0; i < 512; ++i)
    ASSERT_EQ(long_headers.feed(frame(1, 5, 1 + 2 * i, std::string(16 << 10, 'x'))), Cause::kNone);
  EXPECT_EQ(long_headers.guard.wait_ms(0), 0);
  ASSERT_EQ(long_headers.feed(frame(1, 5, 2'001, "x")), Cause::kNone);
  EXPECT_EQ(long_headers.guard.wait_ms(0), 1);
  for (int i = 0; i < 256; ++i)
    ASSERT_EQ(long_headers.feed(frame(1, 5, 2'003 + 2 * i, std::string(16 << 10, 'x'))), Cause::kNone);
  EXPECT_EQ(long_headers.guard.wait_ms(0), 501) << "4 MiB and a byte too many at 8 MiB a second";
  Connection tiny;
  ASSERT_EQ(tiny.open(), Cause::kNone);
  for (int i = 0; i < 100'500; ++i) ASSERT_EQ(tiny.feed(data(tiny.stream, "x", false)), Cause::kNone);
  EXPECT_EQ(tiny.guard.wait_ms(0), 6) << "502 too many at 100,000 a second";
}

TEST(FrameGuard, BoundsFramesThatCostTheServerWork) {
  const auto after = [](const std::string& frames) {
    Connection c;
    EXPECT_EQ(c.call(), Cause::kNone);
    return how_often(100'000, [&] { return c.feed(frames); });
  };
  EXPECT_EQ(after(ping()), std::pair(200, Cause::kPings));
  EXPECT_EQ(after(ping(/*ack=*/true)), std::pair(500, Cause::kPings));
  EXPECT_EQ(after(settings()), std::pair(99, Cause::kSettings));  // the handshake took one
  EXPECT_EQ(after(settings_ack()), std::pair(500, Cause::kSettings));
  EXPECT_EQ(after(priority(1)), std::pair(100, Cause::kPriorities));
  EXPECT_EQ(after(window_update(0, 1)), std::pair(50'000, Cause::kWindowUpdates));
  EXPECT_EQ(after(data(1, "x", false)), std::pair(1'000, Cause::kNoEffect)) << "stream 1 has ended";
  EXPECT_EQ(after(headers(1, kPath, true)), std::pair(1'000, Cause::kNoEffect)) << "stream 1 has ended";
  EXPECT_EQ(after(headers(1, kPath, false)), std::pair(1'000, Cause::kNoEffect)) << "stream 1 has ended";
  EXPECT_EQ(after(frame(77, 0, 0)), std::pair(1'000, Cause::kNoEffect));
  EXPECT_EQ(after(frame(7, 0, 0, "12345678")), std::pair(1'000, Cause::kNoEffect)) << "GOAWAY";
  Connection again;
  ASSERT_EQ(again.open(), Cause::kNone);
  EXPECT_EQ(how_often(5'000, [&] { return again.feed(headers(again.stream, kPath, false)); }),
            std::pair(1'000, Cause::kNoEffect));
  Connection empty;
  ASSERT_EQ(empty.open(), Cause::kNone);
  EXPECT_EQ(how_often(5'000, [&] { return empty.feed(data(empty.stream, "", false)); }),
            std::pair(1'000, Cause::kNoEffect));
}

// What was used up comes back at the rate of the page, not in an instant and not never.
TEST(FrameGuard, AfterABurstFramesMayComeAtTheirRate) {
  const auto in_the_next_second = [](const std::string& frames, int at_once) {
    Connection c;
    EXPECT_EQ(c.call(), Cause::kNone);
    EXPECT_EQ(how_often(at_once, [&] { return c.feed(frames); }), std::pair(at_once, Cause::kNone));
    c.now_ms += 1'000;
    return how_often(100'000, [&] { return c.feed(frames); }).first;
  };
  EXPECT_EQ(in_the_next_second(ping(), 200), 100);
  EXPECT_EQ(in_the_next_second(ping(/*ack=*/true), 500), 100);
  EXPECT_EQ(in_the_next_second(settings(), 99), 20);
  EXPECT_EQ(in_the_next_second(settings_ack(), 500), 100);
  EXPECT_EQ(in_the_next_second(priority(1), 100), 20);
  EXPECT_EQ(in_the_next_second(window_update(0, 1), 50'000), 50'000);
  EXPECT_EQ(in_the_next_second(frame(77, 0, 0), 1'000), 200);
  EXPECT_EQ(in_the_next_second(reset(1), 200), 200) << "300 a second, of which a young one has room for 200";
}

std::pair<double, double> numbers(const Rate& rate) { return {rate.per_s, rate.burst}; }

// The table of tuner/transport/README.md, for which no other test of limits speaks: they set limits of their
// own.
TEST(GateLimits, AreThoseOfThePage) {
  const GateLimits gate;
  EXPECT_TRUE(gate.http2);
  EXPECT_EQ(gate.connections, 0) << "as the descriptors of the process allow";
  EXPECT_EQ(numbers(gate.accepts), std::pair(500.0, 2'000.0));
  EXPECT_EQ(gate.closing_costs, 25);
  EXPECT_EQ(gate.stall_ms, 20'000);
  EXPECT_EQ(gate.tls_handshake_ms, 10'000);
  const FrameLimits& frames = gate.frames;
  EXPECT_EQ(frames.handshake_ms, 3'000);
  EXPECT_EQ(frames.request_ms, 10'000);
  EXPECT_EQ(frames.request_bytes_per_s, 65'536);
  EXPECT_EQ(frames.data_frame_bytes, 16'777'215);
  EXPECT_EQ(numbers(frames.resets), std::pair(300.0, 600.0));
  EXPECT_EQ(frames.young_resets, 200);
  EXPECT_EQ(frames.young_ms, 10'000);
  EXPECT_EQ(numbers(gate.shared.requests), std::pair(20'000.0, 40'000.0));
  EXPECT_EQ(numbers(gate.shared.resets), std::pair(3'000.0, 6'000.0));
  EXPECT_EQ(gate.shared.unfinished_bytes, 134'217'728);
}

TEST(FrameGuard, PingsOfKeepalivePass) {
  Connection c;
  for (int i = 0; i < 3'600; ++i) {
    ASSERT_EQ(c.feed(ping() + ping(/*ack=*/true)), Cause::kNone);
    c.now_ms += 1'000;
  }
}

TEST(FrameGuard, EveryCauseHasAName) {
  std::set<std::string_view> names;
  for (int i = 0; i < kCauses; ++i) names.insert(cause_name(static_cast<Cause>(i)));
  EXPECT_EQ(names.size(), static_cast<size_t>(kCauses));
  EXPECT_FALSE(names.contains(""));
}

// Cancels calls until the guard slows the connection down, at most `most`. Returns how many there were.
int cancels_until_slow(Connection& c, int most) {
  for (int i = 0; i < most; ++i) {
    if (c.guard.wait_ms(c.now_ms) > 0) return i;
    EXPECT_EQ(c.cancelled_call(), Cause::kNone);
  }
  return most;
}

TEST(SharedBudget, WhoeverResetsMoreThanItsShareIsReadMoreSlowly) {
  FrameLimits limits;
  limits.young_ms = 0;
  SharedLimits shared;
  shared.resets = {100, 100};
  SharedBudget budget(shared, 0);
  Connection honest(limits, &budget), attacker(limits, &budget), other(limits, &budget);
  for (int i = 0; i < 15; ++i) ASSERT_EQ(honest.cancelled_call(), Cause::kNone);
  for (int i = 0; i < 15; ++i) ASSERT_EQ(other.cancelled_call(), Cause::kNone);
  EXPECT_EQ(cancels_until_slow(attacker, 500), 71) << "the first one that is not there";
  EXPECT_EQ(attacker.guard.wait_ms(0), 10);
  EXPECT_EQ(honest.guard.wait_ms(0), 0);
  EXPECT_EQ(other.guard.wait_ms(0), 0);
  EXPECT_EQ(attacker.guard.wait_ms(10), 0);
  EXPECT_TRUE(attacker.guard.verdict().is_ok());
  EXPECT_FALSE(budget.take_condemned());
}

TEST(SharedBudget, OnlyThoseAboveTheirShareWait) {
  SharedLimits shared;
  shared.requests = {1'000, 1'000};
  SharedBudget budget(shared, 0);
  Connection busy({}, &budget), quiet({}, &budget);
  for (int i = 0; i < 900; ++i) ASSERT_EQ(quiet.call(), Cause::kNone);
  for (int i = 0; i < 1'100; ++i) ASSERT_EQ(busy.call(), Cause::kNone);
  EXPECT_EQ(busy.guard.wait_ms(0), 1'000);
  EXPECT_EQ(quiet.guard.wait_ms(0), 0) << "two share 2,000 in two seconds";
  for (int i = 0; i < 500; ++i) ASSERT_EQ(quiet.call(), Cause::kNone);
  EXPECT_EQ(quiet.guard.wait_ms(0), 1'000) << "a debt is of at most a second";
}

// A connection that is closed is replaced by the next one: an attacker gets a handful of resets from each.
TEST(SharedBudget, NewConnectionsThatResetAreClosedWhileTheBudgetIsUsedUp) {
  SharedLimits shared;
  shared.resets = {100, 100};
  SharedBudget budget(shared, 0);
  Connection young({}, &budget, /*begin_ms=*/0);
  for (int i = 0; i < 5; ++i) ASSERT_EQ(young.cancelled_call(), Cause::kNone);
  Connection first({}, &budget);
  EXPECT_EQ(how_often(190, [&] { return first.cancelled_call(); }), std::pair(95, Cause::kSharedResets));
  EXPECT_TRUE(budget.take_condemned());
  EXPECT_FALSE(budget.take_condemned());
  Connection second({}, &budget);
  EXPECT_EQ(how_often(190, [&] { return second.cancelled_call(); }), std::pair(5, Cause::kSharedResets));
  EXPECT_TRUE(young.guard.on_time(0).is_ok()) << "others are not closed for it";
}

// A farm whose workers all cancel a little, together more than the budget.
TEST(SharedBudget, NobodyIsSlowedDownWhoSendsLittle) {
  FrameLimits limits;
  limits.young_ms = 0;
  SharedBudget budget(SharedLimits{}, 0);
  std::vector<std::unique_ptr<Connection>> workers;
  for (int i = 0; i < 1'000; ++i) workers.push_back(std::make_unique<Connection>(limits, &budget));
  for (int64_t now_ms = 0; now_ms < 10'000; now_ms += 125)  // 8,000 a second
    for (const auto& worker : workers) {
      worker->now_ms = now_ms;
      ASSERT_EQ(worker->cancelled_call(), Cause::kNone);
      ASSERT_EQ(worker->guard.wait_ms(now_ms), 0);
    }
}

TEST(SharedBudget, BoundsTheBytesOfUnfinishedRequests) {
  SharedLimits shared;
  shared.unfinished_bytes = 4 << 20;
  SharedBudget budget(shared, 0);
  const std::string mebibyte(1 << 20, 'x');
  {
    Connection much({}, &budget), little({}, &budget);
    ASSERT_EQ(little.open(), Cause::kNone);
    ASSERT_EQ(much.open(), Cause::kNone);
    for (int i = 0; i < 3; ++i) ASSERT_EQ(much.feed(data(much.stream, mebibyte, false)), Cause::kNone);
    ASSERT_EQ(little.feed(data(little.stream, mebibyte, false)), Cause::kNone);
    EXPECT_EQ(little.feed(data(little.stream, "x", false)), Cause::kNone);
    EXPECT_EQ(much.guard.verdict().cause, Cause::kSharedBytes);
    EXPECT_EQ(budget.unfinished_bytes(), (1 << 20) + 1);
    EXPECT_EQ(little.feed(data(little.stream, "", true)), Cause::kNone);
    EXPECT_EQ(budget.unfinished_bytes(), 0);
    ASSERT_EQ(little.open(), Cause::kNone);
    ASSERT_EQ(little.feed(data(little.stream, mebibyte, false)), Cause::kNone);
  }
  EXPECT_EQ(budget.unfinished_bytes(), 0) << "connections that are gone hold nothing";
}

// A stream of frames of all kinds, most of them in order, one kind more often than the others.
std::string random_frames(std::mt19937_64& random) {
  std::string out = preface() + settings();
  uint32_t stream = 1;
  const auto some = [&] { return std::string(random() % 3 == 0 ? random() % 20'000 : random() % 60, 'x'); };
  const uint64_t favourite = random() % 12;
  for (uint64_t i = random() % 150; i > 0; --i) {
    const uint32_t earlier = 1 + 2 * static_cast<uint32_t>(random() % (stream / 2 + 1));
    switch (random() % 3 == 0 ? favourite : random() % 12) {
      case 0:
      case 1:
        out += headers(stream, kPath, random() % 2 == 0);
        stream += 2;
        break;
      case 2:
        out +=
            frame(1, random() % 2 == 0 ? 1 : 0, stream, some().substr(0, 3'000)) + frame(9, 4, stream, "x");
        stream += 2;
        break;
      case 3:
      case 4:
      case 5:
        out += data(earlier, some(), random() % 3 == 0);
        break;
      case 6:
        out += reset(earlier);
        break;
      case 7:
        out += ping(random() % 2 == 0);
        break;
      case 8:
        out += window_update(earlier, 7);
        break;
      case 9:
        out += random() % 2 == 0 ? settings() : priority(earlier);
        break;
      default:
        if (random() % 40 == 0)
          out += frame(static_cast<uint8_t>(random()), static_cast<uint8_t>(random()), earlier, some());
    }
  }
  return out;
}

// Limits that random frames reach.
FrameLimits small_limits() {
  FrameLimits limits;
  limits.open_requests = 20;
  limits.message_bytes = 60'000;
  limits.unfinished_bytes = 150'000;
  limits.header_block_bytes = 2'900;
  limits.young_resets = 15;
  limits.no_effect.burst = 40;
  limits.pings.burst = limits.settings.burst = limits.priorities.burst = 20;
  return limits;
}

TEST(FrameGuardFuzz, AnyCutOfTheBytesGivesTheSameVerdict) {
  std::set<Cause> seen;
  const FrameLimits limits = small_limits();
  Seeds seeds(/*fixed=*/1, /*rounds=*/2'000);
  for (const uint32_t seed : seeds) {
    std::mt19937_64 random(seed);
    const std::string stream = random_frames(random);
    FrameGuard whole(limits, nullptr, 0), cut(limits, nullptr, 0);
    const FrameVerdict expected = whole.feed(bytes_of(stream), 5);
    const uint64_t longest = uint64_t{1} << random() % 14;
    for (size_t at = 0; at < stream.size();) {
      const size_t size = std::min<size_t>(1 + random() % longest, stream.size() - at);
      cut.feed(bytes_of(std::string_view(stream).substr(at, size)), 5);
      at += size;
    }
    EXPECT_EQ(cut.verdict().cause, expected.cause) << expected.reason << " / " << cut.verdict().reason;
    EXPECT_EQ(cut.verdict().reason, expected.reason);
    EXPECT_EQ(cut.wait_ms(5), whole.wait_ms(5));
    if (expected.is_ok()) {
      EXPECT_EQ(cut.open_requests(), whole.open_requests());
      EXPECT_EQ(cut.next_deadline(), whole.next_deadline());
    }
    seen.insert(expected.cause);
  }
  if (seeds.all()) {
    EXPECT_TRUE(seen.contains(Cause::kNone));
    EXPECT_GE(seen.size(), 8u) << "the frames are too tame to show anything";
  }
}

TEST(FrameGuardFuzz, DamagedBytesAreAnsweredWithAVerdict) {
  const RandomSeed seed(20'261'123);
  std::mt19937_64 random(seed);
  const FrameLimits limits = small_limits();
  int good = 0, bad = 0;
  for (int i = 0; i < 5'000; ++i) {
    std::string stream = random_frames(random);
    for (uint64_t edits = random() % 4; edits > 0; --edits) {
      const size_t at = random() % stream.size();
      switch (random() % 3) {
        case 0:
          stream[at] = static_cast<char>(random());
          break;
        case 1:
          stream.erase(at, 1 + random() % 20);
          break;
        default:
          stream.insert(at, std::string(1 + random() % 20, static_cast<char>(random())));
      }
      if (stream.empty()) break;
    }
    SharedBudget budget(SharedLimits{}, 0);
    FrameGuard guard(limits, &budget, 0);
    for (int64_t now_ms = 0; !stream.empty(); now_ms += static_cast<int64_t>(random() % 50)) {
      const size_t size = std::min<size_t>(1 + random() % 5'000, stream.size());
      guard.feed(bytes_of(std::string_view(stream).substr(0, size)), now_ms);
      guard.feed_reply(bytes_of(std::string_view(stream).substr(0, size)));  // as hostile as can be
      stream.erase(0, size);
    }
    ASSERT_EQ(guard.verdict().is_ok(), guard.verdict().reason.empty());
    if (!guard.verdict().is_ok()) {
      ASSERT_TRUE(testing::one_line(guard.verdict().reason)) << guard.verdict().reason;
    }
    ASSERT_LE(guard.open_requests(), static_cast<size_t>(limits.open_requests));
    ASSERT_GE(budget.unfinished_bytes(), 0);
    ++(guard.verdict().is_ok() ? good : bad);
  }
  EXPECT_GT(good, 100);
  EXPECT_GT(bad, 100);
}

}  // namespace
}  // namespace tuner::transport
