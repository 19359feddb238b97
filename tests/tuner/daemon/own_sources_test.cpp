// Users' sources in a daemon: whose they are, who reads them, and which workers get their tasks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "compiler_core/artifact/artifact.h"
#include "tests/support/own_source.h"
#include "tests/support/wait_until.h"
#include "tests/tuner/farm_by_hand.h"

namespace tuner {
namespace {

using testing::FarmByHand;
using ::testing::HasSubstr;
using testing::kAnalyticTarget;
using ::testing::Not;
using testing::own_document;
using testing::own_key;
using testing::OwnSource;

constexpr int64_t kPart = int64_t{256} << 10;

v1::SubmitRequest request_for(const std::string& key, const std::vector<std::string>& documents,
                              int trials = 8) {
  v1::SubmitRequest request;
  static int requests = 0;
  request.set_request_id(str("own", ++requests));
  v1::TaskSpec* const task = request.add_tasks();
  task->set_workload_key(key);
  task->set_target(kAnalyticTarget);
  request.set_trials(trials);
  request.set_search("random");
  request.set_fresh(true);
  for (const std::string& document : documents) request.add_documents(document);
  return request;
}

class OwnSources : public ::testing::Test {
 protected:
  Result<std::string> submit(const OwnSource& of, const std::vector<std::string>& documents,
                             const Scope& scope = {}, int trials = 8) {
    v1::SubmitReply reply;
    RETURN_IF_ERROR(farm.coordinator->submit(request_for(own_key(of), documents, trials), &reply, scope));
    farm.coordinator->turn();
    return reply.job_id();
  }
  std::string enter(const std::string& id, const std::vector<std::string>& compilers = {"cc"},
                    v1::WorkerKind kind = v1::FULL) {
    v1::RegisterRequest request = farm.hello(id, "1", /*races=*/false);
    request.set_kind(kind);
    for (const std::string& name : compilers) {
      v1::SourceCompiler* const compiler = request.add_source_compilers();
      compiler->set_name(name);
      compiler->set_toolchain(str("source:", name, " 12"));
    }
    if (kind == v1::BUILDER) {
      request.clear_targets();
      v1::Compiler* const compiler = request.add_compilers();
      compiler->set_family("llvm");
      compiler->set_toolchain("llvm 22");
    }
    for (const TemplateVersion& t : testing::kAnalyticTemplates) {
      v1::TemplateVersion* const has = request.add_templates();
      has->set_name(t.name);
      has->set_version(t.version);
    }
    return farm.enter(request);
  }
  // Part by part, as workers do.
  Result<std::string> read(const std::string& session, const std::string& trial, const v1::Blob& blob,
                           const std::string& order = "") {
    std::string bytes;
    do {
      v1::ReadBlobRequest request;
      request.set_session(session);
      request.set_trial_id(trial);
      request.set_order_id(order);
      *request.mutable_blob() = blob;
      request.set_offset(std::ssize(bytes));
      v1::ReadBlobReply reply;
      RETURN_IF_ERROR(farm.coordinator->read_blob(request, &reply));
      if (reply.bytes().empty()) break;
      bytes += reply.bytes();
    } while (std::ssize(bytes) < blob.bytes());
    return bytes;
  }
  std::string events(const std::string& job) {
    std::string all;
    const auto stored = farm.store->events(job, 0, 1000).value();
    for (const auto& [seq, json] : stored) all += json + "\n";
    return all;
  }
  size_t kernels() {
    size_t n = 0;
    EXPECT_TRUE(farm.store->for_each_kernel([&](const KernelRow&) { return ++n, true; }).is_ok());
    return n;
  }

  FarmByHand farm;
};

v1::Blob name_of(const std::string& bytes) {
  v1::Blob blob;
  blob.set_sha256(sha256_hex(bytes));
  blob.set_bytes(std::ssize(bytes));
  return blob;
}

TEST_F(OwnSources, ALeaseNamesItsSourceAndItsWorkerAloneReadsIt) {
  // Several parts long.
  const OwnSource of{.function = "lease_names", .before = "/*" + std::string(3 * kPart, 'c') + "*/"};
  const std::string document = own_document(of);
  ASSERT_TRUE(submit(of, {document}));
  const std::string owner = enter("w1"), other = enter("w2");
  const v1::SyncReply reply = farm.sync(owner, 1);
  ASSERT_EQ(reply.leases_size(), 1);
  const v1::Lease& lease = reply.leases(0);
  EXPECT_EQ(lease.document().SerializeAsString(), name_of(document).SerializeAsString());
  const Result<std::string> bytes = read(owner, lease.trial_id(), lease.document());
  ASSERT_TRUE(bytes.is_ok()) << bytes.message();
  EXPECT_EQ(*bytes, document);

  EXPECT_THAT(read(other, lease.trial_id(), lease.document()).message(), HasSubstr("is not named by lease"));
  EXPECT_THAT(read(owner, "t999", lease.document()).message(), HasSubstr("is not named by lease"));
  EXPECT_THAT(read(owner, "", lease.document()).message(), HasSubstr("is not named by lease"));
  EXPECT_THAT(read(owner, lease.trial_id(), name_of("another")).message(),
              HasSubstr("is not named by lease"));
  EXPECT_EQ(read("s0", lease.trial_id(), lease.document()).status().code(), StatusCode::kAborted);
  v1::ReadBlobRequest beyond;
  beyond.set_session(owner);
  beyond.set_trial_id(lease.trial_id());
  *beyond.mutable_blob() = lease.document();
  v1::ReadBlobReply nothing;
  for (const int64_t offset : {int64_t{-1}, lease.document().bytes() + 1}) {
    beyond.set_offset(offset);
    EXPECT_EQ(farm.coordinator->read_blob(beyond, &nothing).code(), StatusCode::kInvalidArgument) << offset;
  }
  // The lease ends with its result.
  v1::SyncRequest done;
  *done.add_results() = FarmByHand::honest(lease);
  farm.sync(owner, 0, done);
  EXPECT_THAT(read(owner, lease.trial_id(), lease.document()).message(), HasSubstr("is not named by lease"));
}

// Both are stored, and both are leased: who has the one lease is not told the other's source.
TEST_F(OwnSources, ALeaseOrOrderOfOneSourceDoesNotReadAnother) {
  const OwnSource red{.function = "reads_red"}, blue{.function = "reads_blue"};
  const std::string document_of_red = own_document(red), document_of_blue = own_document(blue);
  ASSERT_TRUE(submit(red, {document_of_red}, "red", /*trials=*/1));
  ASSERT_TRUE(submit(blue, {document_of_blue}, "blue", /*trials=*/1));
  const std::string runner = enter("r1", {}, v1::RUNNER), builder = enter("b1", {"cc"}, v1::BUILDER);
  const v1::SyncReply leased = farm.sync(runner, 2);
  ASSERT_EQ(leased.leases_size(), 2);
  v1::SyncRequest room;
  room.set_free_builds(8);
  const v1::SyncReply ordered = farm.sync(builder, 0, room);
  ASSERT_EQ(ordered.orders_size(), 4) << "an artifact and a reference answer each";
  const std::string names[] = {name_of(document_of_red).sha256(), name_of(document_of_blue).sha256()};
  const auto other = [&](const v1::Blob& own) {
    return name_of(own.sha256() == names[0] ? document_of_blue : document_of_red);
  };
  std::set<std::string> seen;
  for (const v1::Lease& lease : leased.leases()) {
    seen.insert(lease.document().sha256());
    EXPECT_TRUE(read(runner, lease.trial_id(), lease.document()));
    EXPECT_THAT(read(runner, lease.trial_id(), other(lease.document())).message(),
                HasSubstr("is not named by lease"));
  }
  for (const v1::BuildOrder& order : ordered.orders()) {
    EXPECT_TRUE(read(builder, "", order.document(), order.id()));
    EXPECT_THAT(read(builder, "", other(order.document()), order.id()).message(),
                HasSubstr("is not named by order"));
  }
  EXPECT_EQ(seen, std::set<std::string>(std::begin(names), std::end(names)));
}

TEST_F(OwnSources, ATenantStoresSourcesWithinItsLimit) {
  constexpr size_t kLarge = size_t{700} << 10;
  const auto large = [](const char* function) {
    return OwnSource{.function = function, .before = "/*" + std::string(kLarge, 'c') + "*/"};
  };
  const OwnSource first = large("limit_first"), second = large("limit_second");
  farm.coordinator->set_shares({{"red", {.most_source_mib = 1}}});
  ASSERT_TRUE(submit(first, {own_document(first)}, "red"));
  const Result<std::string> refused = submit(second, {own_document(second)}, "red");
  EXPECT_THAT(refused.message(), HasSubstr("tenant red has "));
  EXPECT_THAT(refused.message(), HasSubstr("may have 1 MiB"));
  EXPECT_THAT(refused.message(), HasSubstr("tuner admin tenant red --sources"));
  EXPECT_EQ(kernels(), 1u);
  EXPECT_TRUE(submit(first, {own_document(first)}, "red")) << "what is there takes no more room";
  EXPECT_TRUE(submit(second, {own_document(second)}, "blue")) << "others' room is theirs";
  farm.coordinator->set_shares({{"red", {.most_source_mib = 2}}});
  EXPECT_TRUE(submit(second, {own_document(second)}, "red"));
  farm.coordinator->set_shares({{"red", {.most_source_mib = 0}}});
  const OwnSource third = large("limit_third");
  EXPECT_TRUE(submit(third, {own_document(third)}, "red")) << "0: no limit";
}

TEST_F(OwnSources, TasksOfOursNameNoSource) {
  farm.submit(4);
  const v1::SyncReply reply = farm.sync(farm.enter("w1"), 1);
  ASSERT_EQ(reply.leases_size(), 1);
  EXPECT_FALSE(reply.leases(0).has_document());
}

TEST_F(OwnSources, AWorkerGetsWhatItsCompilersCompileAndTheJobSaysOnceThatNobodyDoes) {
  const OwnSource of{.function = "which_compiler", .compiler = "clang"};
  const std::string job = submit(of, {own_document(of)}).value();
  const std::string without = enter("w1", {"cc", "c++"});
  EXPECT_EQ(farm.sync(without, 4).leases_size(), 0);
  for (int i = 0; i < 60; ++i) {
    farm.pass(250);
    farm.sync(without, 4);
  }
  const std::string said = events(job);
  const size_t at = said.find("no worker has the compiler clang");
  ASSERT_NE(at, std::string::npos) << said;
  EXPECT_EQ(said.find("no worker has the compiler clang", at + 1), std::string::npos) << "said twice";
  EXPECT_THAT(said, HasSubstr("TUNER_COMPILERS"));
  EXPECT_EQ(farm.state(job), JobState::kRunning) << "its trials wait";
  EXPECT_GT(farm.sync(enter("w2", {"clang"}), 4).leases_size(), 0);
  // What is ours needs no compiler of theirs.
  farm.submit(4);
  EXPECT_GT(farm.sync(without, 4).leases_size(), 0);
}

// Who runs a program must allow it, and so must who builds it; each needs all that the job names.
TEST_F(OwnSources, AProgramIsBuiltAndRunWhereOperatorsAllowItAndNowhereElse) {
  const auto program = testing::own_kernel(testing::own_program_entry(/*made=*/true), testing::kProgramText);
  EXPECT_EQ(program->compiler, "command:make");
  const std::string key = str("v1 kernel scale not_checked_by_us source=", source_digest(*program));
  v1::SubmitReply reply;
  ASSERT_TRUE(farm.coordinator->submit(request_for(key, {source_document(*program)}, 6), &reply));
  farm.coordinator->turn();
  const std::string without = enter("w1", {"cc", "c++", "make", "command:./", "command:sh"});
  EXPECT_EQ(farm.sync(without, 4).leases_size(), 0);
  for (int i = 0; i < 60; ++i) {
    farm.pass(250);
    farm.sync(without, 4);
  }
  EXPECT_THAT(
      events(reply.job_id()),
      HasSubstr("no worker has permission to run users' programs (make). Its trials wait; have a worker's "
                "operator allow it: TUNER_COMMANDS"));
  const std::string builder = enter("b1", {"command:./", "command:make"}, v1::BUILDER);
  EXPECT_EQ(farm.sync(enter("r1", {}, v1::RUNNER), 1).leases_size(), 0) << "its own operator allows nothing";
  EXPECT_EQ(farm.sync(enter("r2", {"command:make"}, v1::RUNNER), 1).leases_size(), 1);
  EXPECT_EQ(farm.sync(enter("w2", {"command:./", "command:make"}), 1).leases_size(), 1);
}

// A stranger's document may not say that it needs less than it runs.
TEST_F(OwnSources, WhatAProgramNeedsIsWhatItsWordsSay) {
  const auto program = testing::own_kernel(testing::own_program_entry(/*made=*/true), testing::kProgramText);
  SourceKernel changed = *program;
  changed.compiler = "command:./";
  const std::string key = str("v1 kernel scale not_checked_by_us source=", source_digest(changed));
  v1::SubmitReply reply;
  EXPECT_THAT(farm.coordinator->submit(request_for(key, {source_document(changed)}), &reply).message(),
              HasSubstr("compiler: is not what build and run need"));
}

TEST_F(OwnSources, BuildersReadItForTheirOrdersAndRunnersForTheirLeases) {
  const OwnSource of{.function = "built_elsewhere"};
  const std::string document = own_document(of);
  ASSERT_TRUE(submit(of, {document}));
  const std::string runner = enter("r1", {}, v1::RUNNER);
  const std::string useless = enter("b0", {"clang"}, v1::BUILDER);
  EXPECT_EQ(farm.sync(runner, 1).leases_size(), 0) << "no builder has its compiler";
  const std::string builder = enter("b1", {"cc"}, v1::BUILDER);
  const v1::SyncReply leased = farm.sync(runner, 1);
  ASSERT_EQ(leased.leases_size(), 1);
  EXPECT_EQ(read(runner, leased.leases(0).trial_id(), leased.leases(0).document()).value(), document);

  v1::SyncRequest room;
  room.set_free_builds(8);
  EXPECT_EQ(farm.sync(useless, 0, room).orders_size(), 0) << "neither artifact nor reference answer";
  const v1::SyncReply ordered = farm.sync(builder, 0, room);
  ASSERT_EQ(ordered.orders_size(), 2);
  for (const v1::BuildOrder& order : ordered.orders()) {
    EXPECT_EQ(order.document().SerializeAsString(), name_of(document).SerializeAsString());
    EXPECT_EQ(read(builder, "", order.document(), order.id()).value(), document);
    EXPECT_THAT(read(useless, "", order.document(), order.id()).message(),
                HasSubstr("is not named by order"));
    EXPECT_THAT(read(builder, "", name_of("another"), order.id()).message(),
                HasSubstr("is not named by order"));
  }
  EXPECT_THAT(read(builder, "", name_of(document), "no such order").message(),
              HasSubstr("is not named by order"));
  EXPECT_THAT(read(builder, leased.leases(0).trial_id(), name_of(document)).message(),
              HasSubstr("is not named by lease"));
}

TEST_F(OwnSources, WhatABuilderOfTheSameCompilerMadeIsNotMadeAgain) {
  const OwnSource of{.function = "made_once"};
  ASSERT_TRUE(submit(of, {own_document(of)}, {}, /*trials=*/1));
  const std::string runner = enter("r1", {}, v1::RUNNER), builder = enter("b1", {"cc"}, v1::BUILDER);
  ASSERT_EQ(farm.sync(runner, 1).leases_size(), 1);
  v1::SyncRequest room;
  room.set_free_builds(8);
  const v1::SyncReply ordered = farm.sync(builder, 0, room);
  v1::SyncRequest done;
  for (const v1::BuildOrder& order : ordered.orders()) {
    const std::string bytes = "bytes of " + order.id();
    v1::WriteBlobRequest write;
    write.set_session(builder);
    write.set_order_id(order.id());
    *write.mutable_blob() = name_of(bytes);
    write.set_bytes(bytes);
    v1::WriteBlobReply have;
    ASSERT_TRUE(farm.coordinator->write_blob(write, &have).is_ok());
    v1::BuildDone* const one = done.add_built();
    one->set_id(order.id());
    one->mutable_built()->set_outcome("ok");
    if (order.data()) {
      v1::DataSet* const set = one->mutable_built()->add_data();
      set->set_seed(1);
      v1::Reference* const reference = set->add_references();
      reference->set_arg("y");
      *reference->mutable_blob() = name_of(bytes);
    } else {
      one->mutable_built()->set_toolchain("source:cc 12");
      *one->mutable_built()->mutable_artifact() = name_of(bytes);
    }
  }
  farm.sync(builder, 0, done);
  // The lease once more, to another life of the runner.
  v1::RegisterRequest again = farm.hello("r1", "2", false);
  again.set_kind(v1::RUNNER);
  const std::string second = farm.enter(again);
  ASSERT_EQ(farm.sync(second, 1).leases_size(), 1);
  EXPECT_EQ(farm.sync(builder, 0, room).orders_size(), 0) << "all that it needs is known";
}

TEST_F(OwnSources, ATenantSubmitsWhatItBringsOrHasBroughtAndNothingElse) {
  const OwnSource of{.function = "of_red"};
  const std::string document = own_document(of);
  ASSERT_TRUE(submit(of, {document}, "red"));
  const Result<std::string> by_digest = submit(of, {}, "blue");
  EXPECT_EQ(by_digest.status().code(), StatusCode::kInvalidArgument);
  // The very words that it gets for what nobody has.
  const OwnSource unknown{.function = "of_nobody"};
  const std::string nobodys = submit(unknown, {}, "blue").message();
  const auto without_digest = [](std::string text) {
    const size_t at = text.find("kernel ");
    return text.erase(at, 7 + 64);
  };
  EXPECT_EQ(without_digest(by_digest.message()), without_digest(nobodys));
  EXPECT_THAT(nobodys, HasSubstr("is not here; submit the job file from where the source is"));
  // Nor by another text before the digest, which would tell what the source says.
  v1::SubmitReply reply;
  const std::string lie = "v1 kernel f source=" + source_digest(*testing::own_kernel(of));
  EXPECT_EQ(farm.coordinator->submit(request_for(lie, {}), &reply, "blue").message(), by_digest.message());
  v1::QueryRequest query;
  query.mutable_task()->set_workload_key(lie);
  query.mutable_task()->set_target(kAnalyticTarget);
  v1::QueryReply answer;
  EXPECT_THAT(farm.coordinator->answers().query(query, &answer).message(), Not(HasSubstr("float32")));

  EXPECT_TRUE(submit(of, {}, "red")) << "brought before";
  OwnSource spelled = of;
  spelled.before = "// the same, as blue writes it\n";
  ASSERT_TRUE(submit(spelled, {own_document(spelled)}, "blue"));
  EXPECT_TRUE(submit(of, {}, "blue")) << "brought by itself now";
  const std::string digest = source_digest(*testing::own_kernel(of));
  EXPECT_EQ(farm.store->kernel(digest, "red")->document, document);
  EXPECT_EQ(farm.store->kernel(digest, "blue")->document, own_document(spelled));
  EXPECT_TRUE(submit(of, {})) << "who is of no tenant sees all";
}

TEST_F(OwnSources, AJobFileThatIsReadGivesNobodyASource) {
  const OwnSource of{.function = "read_job_file"};
  ASSERT_TRUE(submit(of, {own_document(of)}, "red"));
  v1::ReadJobFileRequest request;
  request.set_text(nlohmann::json{
      {"op", "kernel"}, {"key", own_key(of).substr(sizeof "v1 kernel")}, {"target", "llvm -mcpu=x86-64"}}
                       .dump());
  v1::ReadJobFileReply reply;
  const Status status = farm.coordinator->read_job_file(request, &reply);
  ASSERT_TRUE(status.is_ok()) << status.message();
  ASSERT_EQ(reply.jobs_size(), 1);
  EXPECT_EQ(reply.jobs(0).documents_size(), 0);
  // Nor does it read files where the daemon is.
  request.set_text(testing::own_entry(of).dump());
  EXPECT_THAT(farm.coordinator->read_job_file(request, &reply).message(), HasSubstr("are not here"));
}

TEST_F(OwnSources, WhatIsForgedTornTooLargeOrNotAskedForIsRefusedAndNothingIsStored) {
  const OwnSource of{.function = "refused"}, another{.function = "another"};
  const std::string good = own_document(of);
  const auto why = [&](const std::vector<std::string>& documents) {
    const Result<std::string> job = submit(of, documents);
    EXPECT_EQ(job.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(job.message(), Not(HasSubstr("\n")));
    return job.message();
  };
  EXPECT_THAT(why({own_document(another)}), HasSubstr("submit.documents[0]: no task names it"));
  EXPECT_THAT(why({good, own_document(another)}), HasSubstr("found 2, and tasks that name 1"));
  EXPECT_THAT(why({"not a document"}), HasSubstr("submit.documents[0]: expected a kernel's document"));
  EXPECT_THAT(why({good.substr(0, good.size() - 1)}), HasSubstr("submit.documents[0]: "));
  EXPECT_THAT(why({""}), HasSubstr("submit.documents[0]: "));
  // A client's own reader does not count: the same rules hold here.
  const auto with = [&](const std::string& old, const std::string& now) {
    std::string changed = good;
    return changed.replace(changed.find(old), old.size(), now);
  };
  EXPECT_THAT(why({with("-O2", "-B/")}), HasSubstr("-B/"));
  EXPECT_THAT(why({with("\"name\":\"scale.c\"", "\"name\":\"../x.c\"")}), HasSubstr("submit.documents[0]: "));
  EXPECT_THAT(why({std::string(10 << 20, 'x')}), HasSubstr("a daemon takes at most 3145728"));
  EXPECT_EQ(kernels(), 0u);
  EXPECT_TRUE(farm.store->jobs()->empty());
  EXPECT_TRUE(submit(of, {good}));
}

TEST_F(OwnSources, AfterARestartLeasesNameTheirSourcesStill) {
  const OwnSource of{.function = "restart"};
  const std::string document = own_document(of);
  ASSERT_TRUE(submit(of, {document}, "red"));
  farm.restart();
  const std::string session = enter("w1");
  const v1::SyncReply reply = farm.sync(session, 1);
  ASSERT_EQ(reply.leases_size(), 1);
  EXPECT_EQ(read(session, reply.leases(0).trial_id(), reply.leases(0).document()).value(), document);
}

TEST_F(OwnSources, ADocumentThatNoJobOfThisLifeNamedIsFoundForARerun) {
  const OwnSource of{.function = "rerun"};
  const std::string document = own_document(of);
  const std::string job = submit(of, {document}).value();
  farm.work(enter("w1"));
  ASSERT_EQ(farm.state(job), JobState::kFinished);
  farm.restart();
  const std::string session = enter("w1");
  const std::string trial = farm.trials(job).front().trial.id;
  v1::RerunRequest request;
  request.set_trial_id(trial);
  v1::MeasureRecord record;
  Status status = failed("not answered");
  std::jthread waits([&] { status = farm.coordinator->rerun(request, &record, [] { return false; }); });
  v1::SyncReply reply;
  ASSERT_TRUE(wait_until(std::chrono::seconds(60), [&] {
    reply = farm.sync(session, 1);
    return reply.leases_size() == 1;
  }));
  EXPECT_EQ(read(session, trial, reply.leases(0).document()).value(), document);
  v1::SyncRequest done;
  *done.add_results() = FarmByHand::honest(reply.leases(0));
  farm.sync(session, 0, done);
  waits.join();
  EXPECT_TRUE(status.is_ok()) << status.message();
}

}  // namespace
}  // namespace tuner
