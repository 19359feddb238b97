// Users' sources on a farm of programs: over TLS, and with builders and runners apart. What a full worker
// finds alone on the client's own machine, others find with the source that they fetch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/support/own_source.h"
#include "tests/tuner/cli/real_job.h"

namespace tuner {
namespace {

using namespace std::chrono_literals;
using testing::address_of;
using ::testing::AllOf;
using testing::eventually;
using ::testing::HasSubstr;
using testing::own_entry;
using testing::own_text;
using testing::OwnSource;
using testing::Process;
using testing::RealJob;
using ::testing::StartsWith;

constexpr int kTrials = 12;

struct Answer {
  std::set<std::string> configs;  // that were right
  std::map<Outcome, int> outcomes;
};

class OwnKernelFarm : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(job.folder.file("kernel"));
    write(source_);
  }
  void write(const OwnSource& of) {
    nlohmann::json entry = own_entry(of);
    entry["target"] = "cpu";
    entry["search"] = "random";
    entry["measure"] = {{"min_repeat_ms", 0.05}, {"repeats", 3}};
    std::ofstream(file_) << entry.dump();
    std::ofstream(job.folder.file("kernel/scale.c")) << own_text(of);
  }
  std::vector<std::string> submit(const std::vector<std::string>& more) const {
    std::vector<std::string> words =
        job.tuner({"submit", file_, "--trials", std::to_string(kTrials), "--seed", "7", "--stop-below", "0"});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::unique_ptr<Process> start(const std::vector<std::string>& words, const std::string& name) {
    return std::make_unique<Process>(words, job.folder.file(name));
  }
  std::unique_ptr<Process> worker(const std::string& program, const std::string& daemon,
                                  const std::string& id, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {std::string(TUNER_BIN_DIR) + "/" + program,
                                      "--daemon",
                                      daemon,
                                      "--work-dir",
                                      job.folder.file(id),
                                      "--shared-dir",  // nothing but the daemon is between them
                                      job.folder.file(id + "-shared")};
    words.insert(words.end(), more.begin(), more.end());
    return start(words, id);
  }
  static Answer answer_in(const std::string& db, const char* toolchain = "source:cc ") {
    Answer answer;
    const Result<std::unique_ptr<Store>> store = Store::open(db, Store::Mode::kRead);
    EXPECT_TRUE(store.is_ok()) << store.message();
    const Status read = (*store)->for_each_record("", [&](const TrialWithRecord& t) {
      ++answer.outcomes[t.record->outcome];
      if (t.record->outcome == Outcome::kOk) answer.configs.insert(t.trial.config);
      EXPECT_THAT(t.record->environment.toolchain, StartsWith(toolchain)) << t.record->message;
      return true;
    });
    EXPECT_TRUE(read.is_ok()) << read.message();
    return answer;
  }
  // Tuned by this command alone.
  Answer embedded() {
    const std::string db = job.folder.file("embedded.db");
    Process alone(submit({"--db", db}), job.folder.file("embedded"));
    EXPECT_EQ(alone.wait(240s), 0) << alone.out() << alone.err();
    const Answer answer = answer_in(db);
    EXPECT_EQ(answer.outcomes, (std::map<Outcome, int>{{Outcome::kOk, kTrials}}));
    return answer;
  }
  static std::vector<std::string> files_in(const std::string& folder) {
    std::vector<std::string> names;
    std::error_code none;
    for (const auto& file : std::filesystem::directory_iterator(folder, none))
      names.push_back(file.path().filename().string());
    std::ranges::sort(names);
    return names;
  }
  static std::vector<std::string> sources_in(const std::string& shared) {
    return files_in(shared + "/sources");
  }

  RealJob job;
  const OwnSource source_{.function = "on_a_farm"};
  const std::string file_ = job.folder.file("kernel/job.json");
};

TEST_F(OwnKernelFarm, OverTlsAWorkerFindsWhatIsFoundWithoutADaemonAndASecondJobCompilesNothing) {
  const Answer alone = embedded();
  Process ca(job.tuner({"admin", "ca", "--db", job.db}), job.folder.file("ca"));
  ASSERT_EQ(ca.wait(30s), 0) << ca.err();
  const auto serve = start(job.tuner({"serve", "--listen", "tls:127.0.0.1:0", "--db", job.db}), "serve");
  ASSERT_TRUE(eventually(30s, [&] { return !address_of(*serve).empty(); })) << serve->err();
  std::string address = address_of(*serve);
  if (address.starts_with("tls:")) address = address.substr(4);
  const std::string member = job.folder.file("worker.credentials"),
                    person = job.folder.file("red.credentials");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"admin", "worker", "w1", "--address", address, "-o", member, "--db", job.db},
        {"admin", "token", "red", "--tenant", "red", "--address", address, "-o", person, "--db", job.db}}) {
    Process let_in(job.tuner(words), job.folder.file("let_in"));
    ASSERT_EQ(let_in.wait(30s), 0) << let_in.err();
  }
  // Before the daemon has ever seen the source: an answer like that for any task nobody tuned.
  Process asks(job.tuner({"query", file_, "--daemon", person}), job.folder.file("asks"));
  EXPECT_EQ(asks.wait(60s), 1) << asks.err();
  EXPECT_THAT(asks.out(), AllOf(HasSubstr("default"), HasSubstr("FACTOR=1 REPEAT=1"))) << asks.err();
  const auto works = worker("measure_server", member, "w1");
  std::vector<std::string> compiled;  // after each job
  for (const char* time : {"first", "second"}) {
    Process tunes(submit({"--daemon", person, "--fresh"}), job.folder.file(time));
    ASSERT_EQ(tunes.wait(240s), 0) << tunes.out() << tunes.err() << works->err() << serve->err();
    const std::vector<std::string> now = files_in(job.folder.file("w1-shared/artifacts/by_source"));
    if (compiled.empty()) compiled = now;
    EXPECT_EQ(now, compiled);
  }
  EXPECT_EQ(compiled.size(), size_t{kTrials});
  const Answer farm = answer_in(job.db);
  EXPECT_EQ(farm.configs, alone.configs);
  EXPECT_EQ(farm.outcomes, (std::map<Outcome, int>{{Outcome::kOk, 2 * kTrials}}));
  EXPECT_EQ(sources_in(job.folder.file("w1-shared")).size(), 1u) << "fetched once, in its own folder";

  Process check(job.tuner({"records", "check", "--db", job.db}), job.folder.file("check"));
  EXPECT_EQ(check.wait(60s), 0) << check.out() << check.err();
}

TEST_F(OwnKernelFarm, ABuilderCompilesAndARunnerThatHasNoCompilerFindsTheSame) {
  const Answer alone = embedded();
  const auto serve = start(job.tuner({"serve", "--listen", "127.0.0.1:0", "--db", job.db}), "serve");
  ASSERT_TRUE(eventually(30s, [&] { return !address_of(*serve).empty(); })) << serve->err();
  const std::string address = address_of(*serve);
  const auto builds = worker("measure_server", address, "builder", {"--kind", "builder"}),
             runs = worker("measure_runner", address, "runner");
  Process tunes(submit({"--daemon", address}), job.folder.file("tunes"));
  ASSERT_EQ(tunes.wait(240s), 0) << tunes.out() << tunes.err() << builds->err() << runs->err()
                                 << serve->err();
  const Answer farm = answer_in(job.db);
  EXPECT_EQ(farm.configs, alone.configs);
  EXPECT_EQ(farm.outcomes, (std::map<Outcome, int>{{Outcome::kOk, kTrials}}));
  EXPECT_EQ(sources_in(job.folder.file("builder-shared")), sources_in(job.folder.file("runner-shared")));
}

// Builder and runner each ask their own operator's list; without it neither has anything to do.
TEST_F(OwnKernelFarm, AProgramIsMeasuredWhereOperatorsAllowItAsOnTheMachineOfItsUser) {
  nlohmann::json entry = testing::own_program_entry(/*made=*/false);
  entry["target"] = "cpu";
  entry["search"] = "random";
  std::ofstream(file_) << entry.dump();
  std::ofstream(job.folder.file("kernel/scale.c")) << testing::kProgramText;
  const std::string db = job.folder.file("embedded.db");
  Process alone(submit({"--db", db}), job.folder.file("embedded"));
  ASSERT_EQ(alone.wait(240s), 0) << alone.out() << alone.err();
  const Answer expected = answer_in(db, "command:./");
  EXPECT_EQ(expected.outcomes, (std::map<Outcome, int>{{Outcome::kOk, 6}}));

  const auto serve = start(job.tuner({"serve", "--listen", "127.0.0.1:0", "--db", job.db}), "serve");
  ASSERT_TRUE(eventually(30s, [&] { return !address_of(*serve).empty(); })) << serve->err();
  const std::string address = address_of(*serve);
  const auto never = worker("measure_server", address, "never");
  ASSERT_TRUE(eventually(60s, [&] { return never->err().find("registered as") != std::string::npos; }))
      << never->err();
  Process tunes(submit({"--daemon", address}), job.folder.file("tunes"));
  EXPECT_TRUE(eventually(
      60s,
      [&] {
        return (tunes.out() + tunes.err()).find("no worker has permission to run users' programs") !=
               std::string::npos;
      }))
      << tunes.out() << tunes.err();
  ::setenv("TUNER_COMMANDS", "./", 1);
  const auto builds = worker("measure_server", address, "builder", {"--kind", "builder"}),
             runs = worker("measure_runner", address, "runner");
  ::unsetenv("TUNER_COMMANDS");
  ASSERT_EQ(tunes.wait(240s), 0) << tunes.out() << tunes.err() << builds->err() << runs->err()
                                 << serve->err();
  EXPECT_THAT(tunes.out(), HasSubstr("not checked by us"));
  const Answer farm = answer_in(job.db, "command:./");
  EXPECT_EQ(farm.configs, expected.configs);
  EXPECT_EQ(farm.outcomes, expected.outcomes);
}

TEST_F(OwnKernelFarm, AFarmWithoutTheCompilerSaysSo) {
  write({.function = "needs_another", .compiler = "no-such-compiler"});
  const auto serve = start(job.tuner({"serve", "--listen", "127.0.0.1:0", "--db", job.db}), "serve");
  ASSERT_TRUE(eventually(30s, [&] { return !address_of(*serve).empty(); })) << serve->err();
  const auto works = worker("measure_server", address_of(*serve), "w1");
  ASSERT_TRUE(eventually(60s, [&] { return works->err().find("registered as") != std::string::npos; }))
      << works->err();
  const Process tunes(submit({"--daemon", address_of(*serve)}), job.folder.file("tunes"));
  EXPECT_TRUE(
      eventually(60s,
                 [&] {
                   return (tunes.out() + tunes.err()).find("no worker has the compiler no-such-compiler") !=
                          std::string::npos;
                 }))
      << tunes.out() << tunes.err() << works->err();
  EXPECT_TRUE(job.recorded().empty()) << "no config is blamed";
}

TEST_F(OwnKernelFarm, APackIsMeasuredByTheRunnerAlone) {
  const std::string pack = job.folder.file("all.pack"), results = job.folder.file("results.jsonl"),
                    db = job.folder.file("packed.db");
  Process packs(job.tuner({"pack", file_, "-o", pack, "--candidates", "12"}), job.folder.file("packs"));
  ASSERT_EQ(packs.wait(240s), 0) << packs.out() << packs.err();
  Process runs({std::string(TUNER_BIN_DIR) + "/runner", "run-pack", pack, "-o", results},
               job.folder.file("runs"));
  ASSERT_EQ(runs.wait(240s), 0) << runs.out() << runs.err();
  Process imports(job.tuner({"records", "import", results, "--db", db}), job.folder.file("imports"));
  ASSERT_EQ(imports.wait(60s), 0) << imports.out() << imports.err();
  const Answer found = answer_in(db);
  EXPECT_EQ(found.configs.size(), 12u);
  EXPECT_EQ(found.outcomes.size(), 1u) << "all are right, as they are where they are searched";
  EXPECT_TRUE(found.outcomes.contains(Outcome::kOk));
}

}  // namespace
}  // namespace tuner
