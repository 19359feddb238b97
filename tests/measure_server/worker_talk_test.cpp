// A worker and a daemon that answers anything: through DaemonLink, whose answers the test writes, and through
// a real channel to a server that goes and comes.
#include "measure_server/worker/talk.h"
#include "measure_server/worker/worker_core.h"
#include "tests/support/temporary_folder.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <sstream>
#include <thread>
#include <vector>

#include "measure.grpc.pb.h"
#include "tests/support/wait_until.h"

namespace tuner {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Each;
using testing::HasSubstr;
using testing::Le;

constexpr StatusCode kAllErrors[] = {
    StatusCode::kInvalidArgument,  StatusCode::kInvalidConfig, StatusCode::kNotFound,
    StatusCode::kUnavailable,      StatusCode::kAborted,       StatusCode::kFailed,
    StatusCode::kDeadlineExceeded, StatusCode::kInternal,
};

// Answers as told, then drains.
class ScriptedLink final : public DaemonLink {
 public:
  std::vector<Status> registrations;  // the first answers; OK after them
  std::vector<Status> syncs;          // the first answers; then a drain
  size_t acknowledges_at = SIZE_MAX;  // the first Sync whose results it takes
  bool waits = false;                 // a Sync without news waits until it is interrupted

  Status register_worker(const v1::RegisterRequest& request, v1::RegisterReply* reply) override {
    ids.push_back(request.worker_id());
    if (ids.size() <= registrations.size() && !registrations[ids.size() - 1].is_ok())
      return registrations[ids.size() - 1];
    ++registered;
    reply->set_session("session");
    return Status::ok();
  }
  Status sync(const v1::SyncRequest& request, v1::SyncReply* reply, std::stop_token interrupt) override {
    std::unique_lock lock(mutex);
    if (request.leaves()) return ++goodbyes, Status::ok();
    requests.push_back(request);
    came.notify_all();
    if (requests.size() >= acknowledges_at)
      for (const v1::MeasureRecord& record : request.results()) {
        v1::Ack* ack = reply->add_acks();
        ack->set_trial_id(record.trial_id());
        ack->set_attempt(record.attempt());
      }
    if (requests.size() <= syncs.size()) return syncs[requests.size() - 1];
    if (waits && request.results_size() == 0) {
      for (int i = 0; i < 12'000 && !interrupt.stop_requested(); ++i) came.wait_for(lock, milliseconds(5));
      return unavailable("interrupted");
    }
    reply->set_drain(!waits);
    return Status::ok();
  }
  bool wait_for(size_t n) {
    std::unique_lock lock(mutex);
    return came.wait_for(lock, seconds(30), [&] { return requests.size() >= n; });
  }
  size_t count() {
    std::lock_guard lock(mutex);
    return requests.size();
  }

  std::vector<std::string> ids;  // of each registration that was tried
  int registered = 0, goodbyes = 0;
  std::vector<v1::SyncRequest> requests;  // but for goodbyes
  std::mutex mutex;
  std::condition_variable came;
};

class WorkerTalk : public testing::Test {
 protected:
  void SetUp() override {
    start();
    before_ = spdlog::default_logger();
    spdlog::set_default_logger(
        std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log_)));
  }
  void TearDown() override { spdlog::set_default_logger(before_); }
  // A new life of the worker.
  void start() {
    core_.reset();
    spool_.reset();
    spool_ = *Spool::open(temporary_.file("results.spool"));
    core_ = std::make_unique<WorkerCore>(WorkerCore::Options{}, *spool_);
  }

  // Pauses are recorded, and take no time.
  Talk::Options options() {
    Talk::Options o;
    o.hello.set_worker_id("w1");
    o.random = [] { return 0.5; };
    o.pause = [this](milliseconds pause) { pauses_.push_back(pause.count()); };
    return o;
  }
  size_t lines_with(const std::string& words) const {
    std::istringstream log(log_.str());
    size_t n = 0;
    for (std::string line; std::getline(log, line);) n += line.find(words) != std::string::npos ? 1 : 0;
    return n;
  }

  const TemporaryFolder temporary_;
  std::unique_ptr<Spool> spool_;
  std::unique_ptr<WorkerCore> core_;
  std::vector<int64_t> pauses_;
  std::ostringstream log_;
  std::shared_ptr<spdlog::logger> before_;
};

TEST_F(WorkerTalk, AWorkerOutlivesEveryStatus) {
  for (const StatusCode code : kAllErrors) {
    SCOPED_TRACE(status_code_name(code));
    start();
    ScriptedLink link;
    link.syncs.assign(20, Status(code, "so it is"));
    const Status end = Talk(*core_, options()).run(link);
    EXPECT_TRUE(end.is_ok()) << end.message();
    EXPECT_EQ(link.requests.size(), 21u) << "twenty errors, then the drain";
  }
}

TEST_F(WorkerTalk, AWorkerOutlivesEveryStatusOfItsFirstRegistrationButARefusal) {
  for (const StatusCode code : kAllErrors) {
    if (code == StatusCode::kInvalidArgument) continue;
    SCOPED_TRACE(status_code_name(code));
    start();
    ScriptedLink link;
    link.registrations.assign(20, Status(code, "so it is"));
    const Status end = Talk(*core_, options()).run(link);
    EXPECT_TRUE(end.is_ok()) << end.message();
    EXPECT_EQ(link.ids.size(), 21u);
  }
}

TEST_F(WorkerTalk, ARefusalOfTheFirstRegistrationEndsItInTheDaemonsWords) {
  ScriptedLink link;
  link.registrations = {unavailable("not yet"), invalid_argument("harness_abi: expected 4, found 3")};
  const Status end = Talk(*core_, options()).run(link);
  EXPECT_EQ(end.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(end.message(), "harness_abi: expected 4, found 3");
}

TEST_F(WorkerTalk, ARefusalAfterWorkHasBegunIsTriedAgain) {
  ScriptedLink link;
  link.syncs = {Status::ok(), Status(StatusCode::kAborted, "unknown session")};
  link.registrations = {Status::ok(), invalid_argument("harness_abi: expected 5, found 4")};
  link.waits = false;
  // The first Sync drains; this one shall not.
  struct NoDrain final : DaemonLink {
    explicit NoDrain(ScriptedLink& l) : link(l) {}
    Status register_worker(const v1::RegisterRequest& request, v1::RegisterReply* reply) override {
      return link.register_worker(request, reply);
    }
    Status sync(const v1::SyncRequest& request, v1::SyncReply* reply, std::stop_token interrupt) override {
      const Status status = link.sync(request, reply, interrupt);
      reply->set_drain(link.registered == 2);
      return status;
    }
    ScriptedLink& link;
  } no_drain(link);
  const Status end = Talk(*core_, options()).run(no_drain);
  EXPECT_TRUE(end.is_ok()) << end.message();
  EXPECT_EQ(link.ids.size(), 3u) << "registered, refused, registered";
  EXPECT_EQ(lines_with("expected 5, found 4"), 1u) << log_.str();
}

TEST_F(WorkerTalk, PausesGrowToTenSecondsAndASyncThatWorksEndsThem) {
  ScriptedLink link;
  link.syncs.assign(12, failed("overloaded"));
  EXPECT_TRUE(Talk(*core_, options()).run(link).is_ok());
  EXPECT_EQ(pauses_,
            (std::vector<int64_t>{51, 101, 201, 401, 801, 1'601, 3'201, 5'001, 5'001, 5'001, 5'001, 5'001}))
      << "half of the limit, as this test draws";
}

TEST_F(WorkerTalk, ADaemonThatTakesRegistrationsAndForgetsThemIsNotFlooded) {
  ScriptedLink link;
  link.syncs.assign(10, Status(StatusCode::kAborted, "unknown session"));
  EXPECT_TRUE(Talk(*core_, options()).run(link).is_ok());
  EXPECT_EQ(link.registered, 11);
  ASSERT_EQ(pauses_.size(), 10u);
  EXPECT_GE(pauses_.back(), 5'000) << "91 registrations in 7 s were seen";
}

TEST_F(WorkerTalk, AnIdInUseIsAskedForEverySecondAndSaidOnce) {
  ScriptedLink link;
  link.registrations.assign(100, Status(StatusCode::kAborted, "worker ID w1 is here already from vm"));
  EXPECT_TRUE(Talk(*core_, options()).run(link).is_ok());
  EXPECT_EQ(pauses_, std::vector<int64_t>(100, 1'000));
  EXPECT_EQ(lines_with("is here already from vm"), 1u) << log_.str();
  EXPECT_EQ(lines_with("waiting until that worker is gone"), 1u);
}

TEST_F(WorkerTalk, AThousandErrorsAreOneLine) {
  ScriptedLink link;
  link.syncs.assign(1'000, failed("Server Threadpool Exhausted"));
  EXPECT_TRUE(Talk(*core_, options()).run(link).is_ok());
  EXPECT_EQ(lines_with("Server Threadpool Exhausted"), 1u) << log_.str();
  EXPECT_EQ(lines_with("the daemon answers again"), 1u);
}

// A daemon whose disk is full answers, and stores nothing.
TEST_F(WorkerTalk, ResultsThatNobodyTakesAreSentAgainAfterPausesThatGrow) {
  v1::Lease lease;
  lease.set_trial_id("a");
  v1::MeasureRecord record;
  record.set_trial_id("a");
  ASSERT_TRUE(core_->finish(lease, record).is_ok());
  ScriptedLink link;
  link.syncs.assign(8, Status::ok());
  link.acknowledges_at = 9;
  EXPECT_TRUE(Talk(*core_, options()).run(link).is_ok());
  EXPECT_EQ(link.requests.size(), 9u);
  EXPECT_EQ(pauses_, (std::vector<int64_t>{51, 101, 201, 401, 801, 1'001, 1'001, 1'001}))
      << "a lease lives for eight seconds: half of two on average";
}

TEST_F(WorkerTalk, ADrainingWorkerDoesNotWaitForADaemonThatIsGone) {
  core_->drain();
  v1::Lease lease;
  lease.set_trial_id("a");
  ASSERT_TRUE(core_->finish(lease, v1::MeasureRecord()).is_ok());  // owed: it is not idle
  ScriptedLink link;
  link.syncs.assign(100, unavailable("connection refused"));
  EXPECT_TRUE(Talk(*core_, options()).run(link).is_ok());
  EXPECT_EQ(link.requests.size(), 3u);
  EXPECT_THAT(pauses_, Each(Le(500)));
}

TEST_F(WorkerTalk, AWorkerThatIsDoneSaysGoodbyeOnceAndOneThatOwesDoesNot) {
  ScriptedLink done;  // drains it at once
  EXPECT_TRUE(Talk(*core_, options()).run(done).is_ok());
  EXPECT_EQ(done.goodbyes, 1);
  start();
  core_->drain();
  v1::Lease lease;
  lease.set_trial_id("a");
  ASSERT_TRUE(core_->finish(lease, v1::MeasureRecord()).is_ok());
  ScriptedLink gone;
  gone.syncs.assign(100, unavailable("connection refused"));
  EXPECT_TRUE(Talk(*core_, options()).run(gone).is_ok());
  EXPECT_EQ(gone.goodbyes, 0) << "its results come with its next life";
}

// Held work, a link that waits, and the callbacks of a worker.
class WorkerTalkNews : public WorkerTalk {
 protected:
  void run(const std::function<void(ScriptedLink&)>& script) {
    Talk::Options o = options();
    o.pause = {};
    o.poll_ms = o.idle_poll_ms = 60'000;
    Talk talk(*core_, o);
    core_->on_news([&] { talk.interrupt(); });
    core_->on_phase([&] { talk.phase_began(); });
    ScriptedLink link;
    link.waits = true;
    link.acknowledges_at = 0;
    std::thread thread([&] { EXPECT_TRUE(talk.run(link).is_ok()); });
    EXPECT_TRUE(link.wait_for(1));
    script(link);
    talk.stop();
    thread.join();
  }
  void deliver(const std::string& trial) {
    v1::SyncReply reply;
    v1::Lease* lease = reply.add_leases();
    lease->set_trial_id(trial);
    lease->set_attempt(1);
    lease->set_target("llvm -mcpu=haswell");
    core_->apply(reply);
  }
};

TEST_F(WorkerTalkNews, ALongPhaseIsToldSoonByASyncOfItsOwn) {
  run([&](ScriptedLink& link) {
    deliver("a");
    const auto lease = core_->next_to_build();
    ASSERT_TRUE(link.wait_for(2)) << "an idle Sync waits for a minute";
    std::lock_guard lock(link.mutex);
    ASSERT_EQ(link.requests[1].held_size(), 1);
    EXPECT_EQ(link.requests[1].held(0).phase(), v1::BUILDING);
  });
}

TEST_F(WorkerTalkNews, ShortPhasesTravelWithTheResultAndCostNoSync) {
  run([&](ScriptedLink& link) {
    constexpr int kTrials = 20;
    const auto idle = [&] { return core_->idle(); };
    for (int i = 0; i < kTrials; ++i) {
      deliver(str("t", i));
      core_->built(*core_->next_to_build(), {});
      const auto built = core_->next_to_run();
      v1::MeasureRecord record;
      record.set_trial_id(built->lease.trial_id());
      record.set_attempt(1);
      EXPECT_TRUE(core_->finish(built->lease, record).is_ok());
      ASSERT_TRUE(wait_until(seconds(30), idle, milliseconds(1))) << "the result was not taken";
    }
    // For each trial one that was cut short by its result, and the one with the result. A few more where this
    // machine took longer than 100 ms for a trial.
    EXPECT_LE(link.count(), static_cast<size_t>(3 * kTrials));
  });
}

TEST_F(WorkerTalkNews, AResultEndsTheWaitAtOnce) {
  run([&](ScriptedLink& link) {
    deliver("a");
    core_->built(*core_->next_to_build(), {});
    v1::MeasureRecord record;
    record.set_trial_id("a");
    EXPECT_TRUE(core_->finish(core_->next_to_run()->lease, record).is_ok());
    const auto reported = [&] {
      std::lock_guard lock(link.mutex);
      return std::ranges::any_of(link.requests, [](const auto& r) { return r.results_size() == 1; });
    };
    EXPECT_TRUE(wait_until(seconds(30), reported));
  });
}

// --- over gRPC ---

class EveryCode final : public v1::Workers::Service {
 public:
  grpc::Status Register(grpc::ServerContext*, const v1::RegisterRequest*, v1::RegisterReply* reply) override {
    ++registrations;
    reply->set_session("session");
    return grpc::Status(static_cast<grpc::StatusCode>(code.load()), "of a registration");
  }
  grpc::Status Sync(grpc::ServerContext*, const v1::SyncRequest*, v1::SyncReply*) override {
    return grpc::Status(static_cast<grpc::StatusCode>(code.load()), "of a sync");
  }
  std::atomic<int> code{0}, registrations{0};
};

class WorkerChannel : public WorkerTalk {
 protected:
  void serve() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address_, grpc::InsecureServerCredentials());
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }
  void TearDown() override {
    if (server_) server_->Shutdown(std::chrono::system_clock::now() + seconds(1));
    WorkerTalk::TearDown();
  }
  const std::string address_ = "unix:" + temporary_.file("daemon.sock");
  EveryCode service_;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(WorkerChannel, OnlyARefusalAnIdInUseAndALostSessionAreMoreThanTryAgain) {
  serve();
  const std::unique_ptr<DaemonLink> link = make_grpc_link({.address = address_});
  for (int code = 1; code <= 16; ++code) {
    service_.code = code;
    v1::RegisterReply registered;
    v1::SyncReply synced;
    const StatusCode registering = link->register_worker({}, &registered).code();
    const Status syncing = link->sync({}, &synced, {});
    SCOPED_TRACE(str("gRPC status ", code));
    EXPECT_NE(syncing.code(), StatusCode::kOk);
    EXPECT_THAT(syncing.message(), HasSubstr("of a sync"));
    EXPECT_EQ(registering == StatusCode::kInvalidArgument, code == grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(registering == StatusCode::kAborted, code == grpc::StatusCode::ALREADY_EXISTS);
    EXPECT_EQ(syncing.code() == StatusCode::kAborted,
              code == grpc::StatusCode::FAILED_PRECONDITION || code == grpc::StatusCode::ALREADY_EXISTS);
  }
}

TEST_F(WorkerChannel, TheChannelReconnectsWhenTheDaemonIsBack) {
  serve();
  const std::unique_ptr<DaemonLink> link = make_grpc_link({.address = address_});
  v1::RegisterReply reply;
  ASSERT_TRUE(link->register_worker({}, &reply).is_ok());
  server_->Shutdown(std::chrono::system_clock::now());
  server_.reset();
  ASSERT_FALSE(link->register_worker({}, &reply).is_ok()) << "nobody is there";
  serve();
  EXPECT_TRUE(wait_until(
      seconds(30), [&] { return link->register_worker({}, &reply).is_ok(); }, milliseconds(50)))
      << "the same link did not connect in 30 s";
}

}  // namespace
}  // namespace tuner
