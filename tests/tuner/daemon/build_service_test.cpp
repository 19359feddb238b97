// Builders here, runners there, as the daemon sees it: who gets what, whose bytes are whose, and what becomes
// of those that are lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler_core/artifact/artifact.h"
#include "tests/support/temporary_folder.h"
#include "tests/tuner/farm_by_hand.h"
#include "tuner/client/worker_list.h"
#include "tuner/daemon/rooms/build_office.h"

namespace tuner {
namespace {

using testing::FarmByHand;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kAnalyticKey;
using testing::kAnalyticTarget;
using testing::kAnalyticTemplates;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

class BuildService : public ::testing::Test {
 protected:
  std::string enter_runner(const std::string& worker, const std::string& life = "1") {
    v1::RegisterRequest hello = farm.hello(worker, life, /*races=*/false);
    hello.set_kind(v1::RUNNER);
    return farm.enter(hello);
  }
  static v1::RegisterRequest builder(const std::string& worker, const std::string& life = "1",
                                     const std::string& toolchain = "llvm 22") {
    v1::RegisterRequest hello;
    hello.set_worker_id(worker);
    hello.set_incarnation(life);
    hello.set_protocol(1);
    hello.set_kind(v1::BUILDER);
    v1::Compiler* const compiler = hello.add_compilers();
    compiler->set_family("llvm");
    compiler->set_toolchain(toolchain);
    for (const TemplateVersion& t : kAnalyticTemplates) {
      v1::TemplateVersion* const has = hello.add_templates();
      has->set_name(t.name);
      has->set_version(t.version);
    }
    return hello;
  }
  std::string enter_builder(const std::string& worker, const std::string& life = "1") {
    return farm.enter(builder(worker, life));
  }
  // A builder's Sync: what it holds besides, what it has made.
  v1::SyncReply orders(const std::string& session, int free, const std::vector<v1::BuildOrder>& held = {},
                       const std::vector<v1::BuildDone>& built = {}) {
    v1::SyncRequest request;
    request.set_free_builds(free);
    for (const v1::BuildOrder& order : held) {
      v1::HeldBuild* const h = request.add_builds();
      h->set_id(order.id());
      h->set_at_work(true);
    }
    for (const v1::BuildDone& done : built) *request.add_built() = done;
    return farm.sync(session, 0, std::move(request));
  }
  v1::SyncReply awaiting(const std::string& session, const std::vector<v1::Lease>& leases, int slots = 0) {
    v1::SyncRequest request;
    for (const v1::Lease& lease : leases) {
      FarmByHand::add_held(lease, v1::WAITING, request);
      request.mutable_held(request.held_size() - 1)->set_awaits_build(true);
    }
    return farm.sync(session, slots, std::move(request));
  }
  static v1::Blob name(const std::string& bytes) {
    v1::Blob blob;
    blob.set_sha256(sha256_hex(bytes));
    blob.set_bytes(std::ssize(bytes));
    return blob;
  }
  Status write(const std::string& session, const v1::BuildOrder& order, const v1::Blob& blob,
               const std::string& bytes) {
    v1::WriteBlobRequest request;
    request.set_session(session);
    request.set_order_id(order.id());
    *request.mutable_blob() = blob;
    request.set_bytes(bytes);
    v1::WriteBlobReply reply;
    return farm.coordinator->write_blob(request, &reply);
  }
  Result<std::string> read(const std::string& session, const std::string& trial, const v1::Blob& blob) {
    v1::ReadBlobRequest request;
    request.set_session(session);
    request.set_trial_id(trial);
    *request.mutable_blob() = blob;
    v1::ReadBlobReply reply;
    RETURN_IF_ERROR(farm.coordinator->read_blob(request, &reply));
    return reply.bytes();
  }
  static std::string bytes_of(const v1::BuildOrder& order) { return "made of " + order.id(); }
  // As a builder that has made the order and sent the bytes.
  v1::BuildDone made(const std::string& session, const v1::BuildOrder& order) {
    const std::string bytes = bytes_of(order);
    const Status sent = write(session, order, name(bytes), bytes);
    EXPECT_TRUE(sent.is_ok()) << sent.message();
    v1::BuildDone done;
    done.set_id(order.id());
    done.mutable_built()->set_outcome("ok");
    done.mutable_built()->set_toolchain(order.data() ? "" : "llvm 22");
    if (!order.data()) {
      *done.mutable_built()->mutable_artifact() = name(bytes);
      return done;
    }
    v1::DataSet* const set = done.mutable_built()->add_data();
    set->set_seed(1);
    v1::Reference* const reference = set->add_references();
    reference->set_arg("c");
    *reference->mutable_blob() = name(bytes);
    return done;
  }
  static std::vector<v1::BuildOrder> all(const v1::SyncReply& reply) {
    return {reply.orders().begin(), reply.orders().end()};
  }
  // A job, a runner and a builder; the runner has one lease.
  void begin() {
    job_ = farm.submit(64);
    builder_ = enter_builder("b1");
    runner_ = enter_runner("r1");
    const v1::SyncReply reply = awaiting(runner_, {}, 1);
    ASSERT_EQ(reply.leases_size(), 1);
    lease_ = reply.leases(0);
    orders_ = all(orders(builder_, 8));
    ASSERT_THAT(orders_, SizeIs(2)) << "an artifact, and the task's data";
  }
  void make_all() {
    std::vector<v1::BuildDone> done;
    for (const v1::BuildOrder& order : orders_) done.push_back(made(builder_, order));
    EXPECT_THAT(orders(builder_, 8, {}, done).build_acks(), SizeIs(2));
  }
  std::vector<std::string> told(const std::string& text) const {
    std::vector<std::string> lines;
    const auto events = farm.store->events(job_, 0, 10'000).value();
    for (const auto& [number, json] : events)
      if (json.find(text) != std::string::npos) lines.push_back(json);
    return lines;
  }

  FarmByHand farm;
  std::string job_, builder_, runner_;
  v1::Lease lease_;
  std::vector<v1::BuildOrder> orders_;
};

TEST_F(BuildService, ALeaseIsBuiltElsewhereAndItsBytesFetched) {
  begin();
  EXPECT_THAT(awaiting(runner_, {lease_}).built(), IsEmpty());
  make_all();
  const v1::SyncReply reply = awaiting(runner_, {lease_});
  ASSERT_EQ(reply.built_size(), 1);
  const v1::LeaseBuilt& built = reply.built(0);
  EXPECT_EQ(built.trial_id(), lease_.trial_id());
  ASSERT_EQ(built.artifacts_size(), 1);
  EXPECT_EQ(built.artifacts(0).toolchain(), "llvm 22");
  const std::string artifact = read(runner_, lease_.trial_id(), built.artifacts(0).artifact()).value();
  const std::string data =
      read(runner_, lease_.trial_id(), built.data().data(0).references(0).blob()).value();
  EXPECT_THAT((std::vector{artifact, data}),
              UnorderedElementsAre(bytes_of(orders_[0]), bytes_of(orders_[1])));
  EXPECT_THAT(awaiting(runner_, {lease_}).built(), SizeIs(1)) << "a reply that got lost is said again";
}

TEST_F(BuildService, WhatIsKnownIsNotBuiltAgain) {
  begin();
  make_all();
  // Another runner gets the same trial, as the first one has gone.
  (void)farm.enter(farm.hello("r1", "2", false));
  const std::string second = enter_runner("r2");
  v1::Lease lease;
  const v1::SyncReply reply = awaiting(second, {}, 64);
  for (const v1::Lease& l : reply.leases())
    if (l.trial_id() == lease_.trial_id()) lease = l;
  ASSERT_EQ(lease.trial_id(), lease_.trial_id());
  EXPECT_THAT(awaiting(second, {lease}).built(), SizeIs(1));
}

TEST_F(BuildService, ARunnerFetchesWhatItsLeaseNamesAndNothingElse) {
  begin();
  make_all();
  const v1::LeaseBuilt built = awaiting(runner_, {lease_}).built(0);
  const v1::Blob blob = built.artifacts(0).artifact();
  const std::string other = enter_runner("r2");
  const v1::SyncReply theirs = awaiting(other, {}, 1);
  ASSERT_EQ(theirs.leases_size(), 1);
  EXPECT_THAT(read(other, lease_.trial_id(), blob).message(), HasSubstr("not named by lease"));
  EXPECT_THAT(read(other, theirs.leases(0).trial_id(), blob).message(), HasSubstr("not named by lease"));
  EXPECT_THAT(read(runner_, theirs.leases(0).trial_id(), blob).message(), HasSubstr("not named by lease"));
  EXPECT_THAT(read(runner_, lease_.trial_id(), name("foreign")).message(), HasSubstr("not named by lease"));
  EXPECT_EQ(read("nobody", lease_.trial_id(), blob).status().code(), StatusCode::kAborted);
  EXPECT_TRUE(read(runner_, lease_.trial_id(), blob).is_ok());
}

TEST_F(BuildService, ABuilderSendsWhatItHoldsAndNothingElse) {
  begin();
  const std::string other = enter_builder("b2");
  const std::string bytes = bytes_of(orders_[0]);
  EXPECT_THAT(write(other, orders_[0], name(bytes), bytes).message(), HasSubstr("does not hold order"));
  EXPECT_THAT(write(runner_, orders_[0], name(bytes), bytes).message(), HasSubstr("does not hold order"));
  std::string corrupt = bytes;
  corrupt[3] ^= 1;
  const Status refused = write(builder_, orders_[0], name(bytes), corrupt);
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.message(), HasSubstr("have the digest"));
  EXPECT_TRUE(write(builder_, orders_[0], name(bytes), bytes).is_ok());
}

TEST_F(BuildService, AnAnswerWithoutItsBytesIsNotBelieved) {
  begin();
  const std::string other = enter_builder("b2");
  v1::BuildDone done;
  done.set_id(orders_[0].data() ? orders_[1].id() : orders_[0].id());
  done.mutable_built()->set_outcome("ok");
  *done.mutable_built()->mutable_artifact() = name("never sent");
  EXPECT_THAT(orders(builder_, 8, {}, {done}).build_acks(), SizeIs(1));
  EXPECT_THAT(awaiting(runner_, {lease_}).built(), IsEmpty());
  EXPECT_THAT(orders(other, 8).orders(), SizeIs(1)) << "another builder has it next";
  done.mutable_built()->set_outcome("splendid");
  EXPECT_THAT(orders(builder_, 8, {}, {done}).build_acks(), SizeIs(1));
}

TEST_F(BuildService, ACompilersRefusalIsTheCandidatesResult) {
  begin();
  std::vector<v1::BuildDone> done;
  for (const v1::BuildOrder& order : orders_) {
    done.push_back(made(builder_, order));
    if (order.data()) continue;
    done.back().mutable_built()->Clear();
    done.back().mutable_built()->set_outcome("build_error");
    done.back().mutable_built()->set_message("the compiler aborted");
  }
  (void)orders(builder_, 8, {}, done);
  const v1::SyncReply reply = awaiting(runner_, {lease_});
  ASSERT_EQ(reply.built_size(), 1);
  EXPECT_EQ(reply.built(0).artifacts(0).outcome(), "build_error");
}

TEST_F(BuildService, ALostBuilderBlamesNoTrial) {
  begin();
  for (int life = 2; life <= 4; ++life) {
    (void)awaiting(runner_, {lease_});
    builder_ = enter_builder("b1", str(life));  // its earlier life died
    EXPECT_THAT(orders(builder_, 8).orders(), SizeIs(2)) << life;
  }
  for (int i = 0; i < 60; ++i) {  // it falls silent, the runner does not
    farm.pass(250);
    (void)awaiting(runner_, {lease_});
  }
  builder_ = enter_builder("b2");
  orders_ = all(orders(builder_, 8));
  ASSERT_THAT(orders_, SizeIs(2));
  make_all();
  EXPECT_THAT(awaiting(runner_, {lease_}).built(), SizeIs(1));
  EXPECT_EQ(farm.trials(job_)[0].trial.attempt, 1) << "its lease is the first one";
}

TEST_F(BuildService, ADaemonThatStartsAnewHearsWhatIsWanted) {
  begin();
  farm.restart();
  builder_ = enter_builder("b1");
  runner_ = enter_runner("r1");
  (void)awaiting(runner_, {lease_});  // takes up its lease, and says what it awaits
  std::vector<v1::BuildDone> done;
  orders_ = all(orders(builder_, 8, orders_));
  EXPECT_THAT(orders_, IsEmpty()) << "it has them";
}

TEST_F(BuildService, WhatADaemonOfBeforeKnewIsNotBuiltAgain) {
  begin();
  make_all();
  farm.restart();
  const std::string other = enter_builder("b2");
  runner_ = enter_runner("r1");
  const v1::SyncReply reply = awaiting(runner_, {lease_});
  ASSERT_EQ(reply.built_size(), 1);
  EXPECT_EQ(reply.built(0).artifacts(0).toolchain(), "llvm 22");
  EXPECT_THAT(orders(other, 8).orders(), IsEmpty());
  EXPECT_TRUE(read(runner_, lease_.trial_id(), reply.built(0).artifacts(0).artifact()).is_ok());
}

TEST_F(BuildService, WhatAnotherCompilerMadeBeforeIsBuiltAgain) {
  begin();
  make_all();
  farm.restart();
  const std::string newer = farm.enter(builder("b1", "2", "llvm 23"));
  runner_ = enter_runner("r1");
  (void)awaiting(runner_, {lease_});
  EXPECT_THAT(awaiting(runner_, {lease_}).built(), IsEmpty());
  const std::vector<v1::BuildOrder> again = all(orders(newer, 8));
  ASSERT_THAT(again, SizeIs(1));
  EXPECT_FALSE(again[0].data()) << "answers are of no compiler";
}

// Runners are back before builders: what is known of compilers that may have gone waits for them.
TEST_F(BuildService, WhatIsKnownWaitsForItsCompiler) {
  begin();
  make_all();
  farm.restart();
  runner_ = enter_runner("r1");
  EXPECT_THAT(awaiting(runner_, {lease_}).built(), IsEmpty());
  const std::string newer = farm.enter(builder("b1", "2", "llvm 23"));
  EXPECT_THAT(orders(newer, 8).orders(), SizeIs(1)) << "the artifact, by the compiler of today";
}

TEST_F(BuildService, AnAnswerOfTheOtherKindIsNotBelieved) {
  begin();
  const std::string other = enter_builder("b2");
  v1::BuildDone first = made(builder_, orders_[0]), second = made(builder_, orders_[1]);
  std::swap(*first.mutable_built(), *second.mutable_built());
  EXPECT_THAT(orders(builder_, 8, {}, {first, second}).build_acks(), SizeIs(2));
  EXPECT_THAT(awaiting(runner_, {lease_}).built(), IsEmpty());
  EXPECT_THAT(orders(other, 8).orders(), SizeIs(2)) << "another builder has them next";
}

TEST_F(BuildService, KnownBytesThatAreGoneAreMadeAgain) {
  begin();
  make_all();
  const v1::LeaseBuilt built = awaiting(runner_, {lease_}).built(0);
  farm.remove_blob(built.artifacts(0).artifact().sha256());
  farm.restart();
  builder_ = enter_builder("b1", "2");
  runner_ = enter_runner("r1");
  (void)awaiting(runner_, {lease_});
  EXPECT_THAT(awaiting(runner_, {lease_}).built(), IsEmpty());
  EXPECT_THAT(orders(builder_, 8).orders(), SizeIs(1));
}

// Nobody builds for a lease that has run out, so that a runner whose slots are full of them would wait for
// ever.
TEST_F(BuildService, ARunnerThatWasSilentLetsGoOfWhatItAwaits) {
  begin();
  (void)awaiting(runner_, {lease_});
  for (int i = 0; i < 40; ++i) farm.pass(250);
  const v1::SyncReply reply = awaiting(runner_, {lease_});
  ASSERT_EQ(reply.revoked_size(), 1);
  EXPECT_EQ(reply.revoked(0).trial_id(), lease_.trial_id());
  EXPECT_EQ(reply.revoked(0).attempt(), 1);
  (void)orders(builder_, 8, orders_);  // it was silent, too
  const v1::SyncReply next = awaiting(runner_, {}, 1);
  ASSERT_EQ(next.leases_size(), 1);
  EXPECT_EQ(next.leases(0).attempt(), 2);
}

TEST_F(BuildService, ARunnerWithoutABuilderGetsNothingAndPeopleAreTold) {
  job_ = farm.submit(16);
  runner_ = enter_runner("board1");
  for (int i = 0; i < 40; ++i) {
    EXPECT_THAT(awaiting(runner_, {}, 4).leases(), IsEmpty());
    farm.pass(250);
  }
  EXPECT_THAT(told("no builder is here for runner board1"), SizeIs(1));
  EXPECT_THAT(told("measure_server --kind builder"), SizeIs(1));
  builder_ = enter_builder("b1");
  EXPECT_THAT(awaiting(runner_, {}, 4).leases(), SizeIs(4));
}

// A runner that has gone stays on the list for a while: a job that waits for it says so all the same.
TEST_F(BuildService, AWorkerThatHasGoneMeasuresNothing) {
  builder_ = enter_builder("b1");
  runner_ = enter_runner("r1");
  (void)awaiting(runner_, {});
  farm.pass(60'000);
  job_ = farm.submit(16);
  farm.pass(10'000);
  EXPECT_THAT(told("no worker measures"), SizeIs(1));
  EXPECT_THAT(told("r1 was last heard of 6"), SizeIs(1));
  EXPECT_THAT(told("measure_runner"), SizeIs(1));
}

TEST_F(BuildService, LeasesThatWaitForABuilderThatHasGoneAreTold) {
  begin();
  for (int i = 0; i < 200; ++i) {
    (void)awaiting(runner_, {lease_});
    farm.pass(250);
  }
  EXPECT_THAT(told("runner r1 waits for a builder"), SizeIs(1));
}

TEST_F(BuildService, WhoSaysWhatCannotBeIsRefused) {
  const auto refusal = [&](const v1::RegisterRequest& hello) {
    v1::RegisterReply reply;
    return farm.coordinator->register_worker(hello, &reply).message();
  };
  v1::RegisterRequest hello = builder("b1");
  hello.clear_compilers();
  EXPECT_THAT(refusal(hello), HasSubstr("a builder: found 0 targets, 0 compilers"));
  hello = builder("b1");
  hello.add_targets("llvm -mcpu=haswell -threads=1");
  EXPECT_THAT(refusal(hello), HasSubstr("found 1 targets"));
  hello = farm.hello("r1", "1", false);
  hello.clear_targets();
  hello.set_kind(v1::RUNNER);
  EXPECT_THAT(refusal(hello), HasSubstr("targets: found none"));
  hello.set_kind(static_cast<v1::WorkerKind>(99));
  EXPECT_THAT(refusal(hello), HasSubstr("kind: found 99"));
}

TEST_F(BuildService, TheListTellsKinds) {
  begin();
  v1::ListWorkersReply reply;
  ASSERT_TRUE(farm.coordinator->list_workers(&reply).is_ok());
  const std::string text = workers_text(reply, 80);
  EXPECT_THAT(text, HasSubstr("a builder, 2 orders, 0 built"));
  EXPECT_THAT(text, HasSubstr("a runner, 1 leases"));
  EXPECT_THAT(text, HasSubstr("compiles for llvm"));
  EXPECT_THAT(text, HasSubstr(": here, a builder"));
}

TEST_F(BuildService, TheListTellsWhoIsAwayAndLeavesOutWhoLeft) {
  begin();
  v1::ListWorkersReply reply;
  farm.clock.now += 30'000;
  ASSERT_TRUE(farm.coordinator->list_workers(&reply).is_ok());
  ASSERT_EQ(reply.workers_size(), 2);
  EXPECT_THAT(workers_text(reply, 0), HasSubstr(": away, a builder"));
  EXPECT_THAT(workers_text(reply, 0),
              HasSubstr("last heard of 30.0 s ago\n  gets nothing until it is heard of again\n"));
  EXPECT_THAT(workers_json(reply), HasSubstr("\"away\": true"));
  farm.clock.now += 2 * 3'600'000;
  reply.Clear();
  ASSERT_TRUE(farm.coordinator->list_workers(&reply).is_ok());
  EXPECT_EQ(workers_text(reply, 0),
            "no worker is connected. Start one: measure_server --daemon ADDRESS\n"
            "2 not heard of for more than 10 minutes: tuner workers --all\n");
  EXPECT_THAT(workers_text(reply, 0, /*all=*/true), HasSubstr("last heard of 2 h 0 min ago"));
}

// The office alone: a farm's state, no store, no coordinator, no thread.
class BuildOfficeAlone : public ::testing::Test {
 protected:
  BuildOfficeAlone() {
    const Locked farm(farm_);
    const Workers::Offer builder{.life = builder_life_,
                                 .templates = {{"t", 1}},
                                 .kind = WorkerKind::kBuilder,
                                 .compilers = {{"llvm", "llvm 22"}}};
    EXPECT_TRUE(farm->workers.enter("builder", builder, clock_.now));
    EXPECT_TRUE(farm->workers.enter(
        "runner", {.life = runner_life_, .targets = {kAnalyticTarget}, .kind = WorkerKind::kRunner},
        clock_.now));
    farm->leases.enqueue({.id = "t1",
                          .job_id = "j1",
                          .work = {.task = {.workload_key = kAnalyticKey, .target = kAnalyticTarget},
                                   .template_name = "t",
                                   .config = "c",
                                   .template_version = 1}});
    const LeaseTable::Asker asker{.worker_id = runner_life_.worker_id,
                                  .incarnation = runner_life_.incarnation,
                                  .serves = [](const Needs&) { return true; },
                                  .others = [](const Needs&, const std::set<std::string>&) { return false; }};
    EXPECT_THAT(farm->leases.reserve(asker, {}, 1), SizeIs(1));
    EXPECT_TRUE(farm->leases.grant("t1", runner_life_, 1, 1, clock_.now));
    office_.want(*farm, "t1");
  }

  // A Sync of the builder: the orders that it is given, and the answers that are acknowledged.
  v1::SyncReply sync(int free, const std::vector<v1::BuildDone>& built = {}) {
    v1::SyncRequest request;
    request.set_session("builder");
    request.set_free_builds(free);
    for (const v1::BuildDone& done : built) {
      *request.add_built() = done;
      held_.erase(done.id());
    }
    for (const std::string& id : held_) request.add_builds()->set_id(id);
    v1::SyncReply reply;
    SyncCalls calls;
    calls.push_back(std::make_unique<SyncCall>());
    calls[0]->request = &request;
    calls[0]->reply = &reply;
    calls[0]->life = builder_life_;
    office_.take_builds(*Locked(farm_), *calls[0]);
    office_.serve({}, calls);
    for (const v1::BuildOrder& order : reply.orders()) held_.insert(order.id());
    return reply;
  }
  Status write(const std::string& session, const std::string& order, const std::string& bytes) {
    v1::WriteBlobRequest request;
    request.set_session(session);
    request.set_order_id(order);
    request.mutable_blob()->set_sha256(sha256_hex(bytes));
    request.mutable_blob()->set_bytes(std::ssize(bytes));
    request.set_bytes(bytes);
    v1::WriteBlobReply reply;
    return office_.write_blob(request, &reply);
  }
  Status read(const std::string& session, const std::string& trial, const std::string& bytes) {
    v1::ReadBlobRequest request;
    request.set_session(session);
    request.set_trial_id(trial);
    request.mutable_blob()->set_sha256(sha256_hex(bytes));
    request.mutable_blob()->set_bytes(std::ssize(bytes));
    v1::ReadBlobReply reply;
    return office_.read_blob(request, &reply);
  }
  static v1::BuildDone artifact(const std::string& order, const std::string& bytes) {
    v1::BuildDone done;
    done.set_id(order);
    done.mutable_built()->set_outcome("ok");
    done.mutable_built()->set_toolchain("llvm 22");
    done.mutable_built()->mutable_artifact()->set_sha256(sha256_hex(bytes));
    done.mutable_built()->mutable_artifact()->set_bytes(std::ssize(bytes));
    return done;
  }

  // The two orders of the lease: an artifact, and the task's data.
  std::pair<std::string, std::string> orders() {
    const v1::SyncReply reply = sync(8);
    EXPECT_EQ(reply.orders_size(), 2);
    const bool data_first = reply.orders(0).data();
    return {reply.orders(data_first ? 1 : 0).id(), reply.orders(data_first ? 0 : 1).id()};
  }
  static v1::BuildDone data(const std::string& order, const std::string& bytes) {
    v1::BuildDone done;
    done.set_id(order);
    done.mutable_built()->set_outcome("ok");
    v1::Reference* const reference = done.mutable_built()->add_data()->add_references();
    reference->set_arg("c");
    reference->mutable_blob()->set_sha256(sha256_hex(bytes));
    reference->mutable_blob()->set_bytes(std::ssize(bytes));
    return done;
  }

  std::set<std::string> held_;  // by the builder
  const WorkerLife builder_life_{"b1", "1"}, runner_life_{"r1", "1"};
  struct : Clock {
    int64_t now = 1'000'000;
    int64_t now_ms() const override { return now; }
  } clock_;
  TemporaryFolder folder_;
  std::unique_ptr<BlobStore> blobs_ = BlobStore::open(folder_.file("artifacts"), int64_t{1} << 30).value();
  const CoordinatorOptions options_{.templates = {{"t", 1}}, .blobs = blobs_.get()};
  Guarded<FarmState> farm_{options_};
  std::unique_ptr<Store> store_ = Store::open(folder_.file("db"), Store::Mode::kWrite).value();
  DocumentOffice documents_{*store_, farm_};
  int woken_ = 0;
  BuildOffice office_{farm_, clock_, options_, documents_, [this] { ++woken_; }};
};

TEST_F(BuildOfficeAlone, WhatABuilderSaysCountsOnceItsBytesHaveArrived) {
  const auto [order, data_order] = orders();
  EXPECT_THAT(sync(0, {artifact(order, "bytes")}).build_acks(), SizeIs(1));
  EXPECT_EQ(Locked(farm_)->builds.waiting(), 1) << "its bytes never came: the order waits again";
  EXPECT_THAT(sync(8).orders(), SizeIs(1));
  ASSERT_TRUE(write("builder", order, "bytes").is_ok());
  ASSERT_TRUE(write("builder", data_order, "answer").is_ok());
  EXPECT_THAT(sync(0, {artifact(order, "bytes"), data(data_order, "answer")}).build_acks(), SizeIs(2));
  EXPECT_EQ(Locked(farm_)->builds.waiting(), 0);
  EXPECT_THAT(Locked(farm_)->builds.answers("t1"), SizeIs(2));
}

TEST_F(BuildOfficeAlone, BytesGoToWhoseLeaseNamesThemAndComeFromWhoHoldsTheOrder) {
  const auto [order, data_order] = orders();
  EXPECT_EQ(write("nobody", order, "bytes").code(), StatusCode::kAborted);
  EXPECT_EQ(write("runner", order, "bytes").code(), StatusCode::kUnavailable);
  ASSERT_TRUE(write("builder", order, "bytes").is_ok());
  ASSERT_TRUE(write("builder", data_order, "answer").is_ok());
  EXPECT_EQ(read("runner", "t1", "bytes").code(), StatusCode::kUnavailable) << "not said to be made";
  sync(0, {artifact(order, "bytes"), data(data_order, "answer")});
  EXPECT_TRUE(read("runner", "t1", "bytes").is_ok());
  EXPECT_EQ(read("runner", "t1", "other").code(), StatusCode::kUnavailable);
  EXPECT_EQ(read("builder", "t1", "bytes").code(), StatusCode::kUnavailable);
  EXPECT_EQ(read("nobody", "t1", "bytes").code(), StatusCode::kAborted);
  EXPECT_EQ(woken_, 0);
  ASSERT_TRUE(std::filesystem::remove(folder_.path() / "artifacts" / sha256_hex("bytes")));
  EXPECT_EQ(read("runner", "t1", "bytes").code(), StatusCode::kNotFound);
  EXPECT_EQ(woken_, 1) << "the desk is to give it to a builder once more";
  EXPECT_EQ(Locked(farm_)->builds.waiting(), 1);
}

}  // namespace
}  // namespace tuner
