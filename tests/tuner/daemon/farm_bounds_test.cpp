// What one caller may cost the others: large texts, garbage, memory, workers, long lists. The daemon's
// bounds, tried on the program itself. Times of the others are printed. A longer attack:
// TUNER_ATTACK_SECONDS=6.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <list>
#include <random>

#include "measure.grpc.pb.h"
#include "tests/support/http2_attack.h"
#include "tests/support/wait_until.h"
#include "tests/tuner/daemon/attacked_daemon.h"

namespace tuner {
namespace {

using namespace std::chrono_literals;
using testing::attack_time;
using testing::AttackedDaemon;
using testing::Clock;
using testing::Honest;
namespace http2 = testing::http2;

constexpr int kMostAboveRestMib = 256;
constexpr double kMostKeptMs = 250, kMostNewMs = 1'000;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kJudged = false;  // a sanitizer takes memory and time of its own
#else
constexpr bool kJudged = true;
#endif

std::shared_ptr<grpc::Channel> dial(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxSendMessageSize(-1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

std::string repeated(const std::string& word, size_t times) {
  std::string all;
  all.reserve(word.size() * times);
  for (size_t i = 0; i < times; ++i) all += word;
  return all;
}
std::string empty_objects(size_t count) { return "[" + repeated("{},", count - 1) + "{}]"; }

grpc::Status read_text(v1::Jobs::Stub& jobs, const std::string& text) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + 30s);
  v1::ReadJobFileRequest request;
  request.set_text(text);
  v1::ReadJobFileReply reply;
  return jobs.ReadJobFile(&context, request, &reply);
}

// So many callers, each with a connection, make the call again and again.
void call_all_the_time(const std::string& address, int callers,
                       const std::function<void(v1::Jobs::Stub&)>& call) {
  const auto end = Clock::now() + attack_time();
  std::vector<std::thread> threads;
  for (int i = 0; i < callers; ++i)
    threads.emplace_back([&] {
      const auto jobs = v1::Jobs::NewStub(dial(address));
      while (Clock::now() < end) call(*jobs);
    });
  for (std::thread& thread : threads) thread.join();
}

void expect_served(const AttackedDaemon& daemon, Honest& kept, Honest* fresh, int rest_mib) {
  kept.stop();
  if (fresh != nullptr) fresh->stop();
  std::printf("kept connections: %s\n", kept.times().c_str());
  if (fresh != nullptr) std::printf("new connections: %s\n", fresh->times().c_str());
  std::printf("memory: %d MiB at rest, %d MiB at most\n", rest_mib, daemon.most_mib());
  ASSERT_TRUE(daemon.runs()) << daemon.log();
  EXPECT_EQ(kept.failed(), 0) << kept.last_failure();
  EXPECT_EQ(fresh == nullptr ? 0 : fresh->failed(), 0) << fresh->last_failure();
  if (!kJudged) return;
  EXPECT_LE(kept.p99_ms(), kMostKeptMs);
  EXPECT_LE(fresh == nullptr ? 0 : fresh->most_ms(), kMostNewMs);
  EXPECT_LE(daemon.most_mib(), rest_mib + kMostAboveRestMib);
}

TEST(FarmBounds, B1TextsOfMillionsOfValuesCostOthersNothing) {
  // As many as one message used to hold; as many as one may hold now, in lists, in objects and one in the
  // other.
  const std::string texts[] = {empty_objects(5'000'000), empty_objects(1'300'000),
                               "[" + repeated("[0],", 900'000) + "0]",
                               "{" + repeated("\"a\":0,", 600'000) + "\"b\":0}", repeated("[", 3'000'000)};
  for (const std::string& text : texts) {
    const AttackedDaemon daemon;
    Honest kept(daemon.address()), fresh(daemon.address(), /*anew=*/true);
    const int rest = daemon.now_mib();
    std::atomic<int> answered{0};
    call_all_the_time(daemon.address(), 6, [&](v1::Jobs::Stub& jobs) {
      const grpc::Status status = read_text(jobs, text);
      EXPECT_TRUE(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT ||
                  status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED)
          << status.error_code() << ": " << status.error_message();
      EXPECT_FALSE(status.error_message().empty());
      EXPECT_LT(status.error_message().size(), 1'000u);
      ++answered;
    });
    std::printf("%zu bytes that begin with %s: %d calls answered\n", text.size(), text.substr(0, 6).c_str(),
                answered.load());
    EXPECT_GE(answered, 6);
    expect_served(daemon, kept, &fresh, rest);
  }
}

// 64 random bytes, and then nothing; each connection is kept open for as long as it lets us.
void garbage(const std::string& address, int per_s, const std::string& first) {
  std::mt19937 random(7);
  std::vector<std::unique_ptr<http2::Http2Attack>> all;
  const auto end = Clock::now() + 3 * attack_time();
  while (Clock::now() < end) {
    std::string bytes = first;
    for (int i = 0; i < 64; ++i) bytes += static_cast<char>(random());
    all.push_back(std::make_unique<http2::Http2Attack>(address));
    all.back()->send(bytes);
    let_pass(std::chrono::microseconds(1'000'000 / per_s));
  }
}

// A daemon that gets garbage, and those it serves meanwhile.
struct Littered {
  Littered(const std::string& listen_at, const std::string& bytes_before)
      : listen(listen_at), first(bytes_before), daemon("", listen) {}
  const std::string listen, first;
  const AttackedDaemon daemon;
  Honest kept{daemon.address()}, fresh{daemon.address(), /*anew=*/true};
  const int rest = daemon.now_mib();
};

TEST(FarmBounds, B3GarbageLocksNeitherThePlainPortNorTheSocket) {
  const std::string hello = http2::preface() + http2::settings();
  std::list<Littered> all;
  for (const std::string listen : {"127.0.0.1:0", "unix"})
    for (const std::string& first : {std::string(), hello})  // `hello`: the server hears of it
      all.emplace_back(listen, first);
  std::vector<std::thread> attackers;  // at once, since they mostly wait
  for (const Littered& to : all)
    attackers.emplace_back([&to] { garbage(to.daemon.address(), 50, to.first); });
  for (std::thread& attacker : attackers) attacker.join();
  let_pass(1s);  // and afterwards
  for (Littered& of : all) {
    std::printf("%s, %s:\n", of.listen.c_str(), of.first.empty() ? "no HTTP/2" : "after the preface");
    expect_served(of.daemon, of.kept, &of.fresh, of.rest);
    EXPECT_GT(of.fresh.asked(), 50) << "a client that waits is served";
  }
}

TEST(FarmBounds, B10LargeCallsAtOnceDoNotEndADaemonOfLittleMemory) {
  // A sanitizer reserves terabytes of addresses.
  const AttackedDaemon daemon(kJudged ? "ulimit -v 1200000; " : "");
  Honest kept(daemon.address());
  const int rest = daemon.now_mib();
  std::atomic<int> refused{0}, told{0};
  for (const size_t bytes : {size_t{14} << 20, size_t{3} << 20}) {
    const std::string text = empty_objects(bytes / 3);
    const auto ask = [&](v1::Jobs::Stub& jobs) {
      const grpc::Status status = read_text(jobs, text);
      EXPECT_NE(status.error_code(), grpc::StatusCode::OK);
      refused += 1;
      told += status.error_code() != grpc::StatusCode::UNAVAILABLE && !status.error_message().empty() ? 1 : 0;
    };
    call_all_the_time(daemon.address(), bytes > (8u << 20) ? 8 : 24, ask);
    ASSERT_TRUE(daemon.runs()) << daemon.log();
  }
  std::printf("%d calls refused, %d of them in words\n", refused.load(), told.load());
  EXPECT_GE(told, 8);
  expect_served(daemon, kept, nullptr, rest);
}

TEST(FarmBounds, B11OneClientRegistersABoundedNumberOfWorkers) {
  const AttackedDaemon daemon;
  const auto stub = v1::Workers::NewStub(dial(daemon.address()));
  const auto enter = [](v1::Workers::Stub& at, const std::string& id) {
    v1::RegisterRequest hello;
    hello.set_worker_id(id);
    hello.set_incarnation("1");
    hello.set_protocol(1);
    hello.add_targets("llvm -mcpu=haswell -threads=1");
    v1::RegisterReply welcome;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + 20s);
    return at.Register(&context, hello, &welcome);
  };
  int in = 0;
  grpc::Status refusal;
  for (int i = 0; i < 6'000; ++i) {
    const grpc::Status status = enter(*stub, "w" + std::to_string(i));
    if (status.ok())
      ++in;
    else
      refusal = status;
  }
  std::printf("of 6000 workers %d are registered; the others: %s\n", in, refusal.error_message().c_str());
  EXPECT_EQ(in, 128) << "a connection carries 100 calls";
  EXPECT_EQ(refusal.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refusal.error_message(), ::testing::HasSubstr("has 128 workers here, expected at most 128"));
  EXPECT_TRUE(enter(*stub, "w5").ok()) << "one that is known comes back";
  const auto other = v1::Workers::NewStub(dial(daemon.address()));
  EXPECT_TRUE(enter(*other, "other").ok()) << "another client has its own";
}

TEST(FarmBounds, B12AThousandJobsAreListedWithATokenInASecond) {
  constexpr int kJobs = 1'050;
  const std::string tuner = std::string(TUNER_BIN_DIR) + "/tuner";
  const AttackedDaemon daemon(tuner + " admin ca --db farm.db >/dev/null; ",
                              "tls:127.0.0.1:0 --listen unix:s");
  const auto run = [&](const std::string& words) {
    return std::system(("cd " + daemon.file("") + " && " + tuner + " " + words).c_str());
  };
  const std::string address = daemon.address();
  ASSERT_EQ(run("admin token alice --db farm.db --address " + address + " -o alice.credentials >/dev/null"),
            0);
  const auto jobs = v1::Jobs::NewStub(dial("unix:" + daemon.file("s")));
  for (int i = 0; i < kJobs; ++i) {
    v1::SubmitRequest request;
    request.set_request_id("r" + std::to_string(i));
    v1::TaskSpec* const task = request.add_tasks();
    task->set_workload_key("v1 matmul b=1 m=" + std::to_string(1 + i) +
                           " n=96 k=128 ta=0 tb=0 bias=0 act=none dtype=float32 const=none");
    task->set_target("llvm -mcpu=haswell -threads=1");
    request.set_trials(1);
    request.set_search("random");
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + 60s);
    v1::SubmitReply reply;
    const grpc::Status status = jobs->Submit(&context, request, &reply);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
  double least_s = 1e9;
  for (int i = 0; i < 5; ++i) {
    const auto begin = Clock::now();
    ASSERT_EQ(run("jobs --daemon alice.credentials > jobs.txt"), 0);
    least_s = std::min(least_s, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  const std::string out = testing::read_text(daemon.file("jobs.txt"));
  EXPECT_EQ(std::ranges::count(out, '\n'), 2 * kJobs) << out.substr(0, 1'000);
  std::printf("%d jobs are listed in %.3f s\n", kJobs, least_s);
  EXPECT_LE(least_s, kJudged ? 1 : 30);
}

}  // namespace
}  // namespace tuner
