// Real processes under random faults, and a ledger of what was acknowledged to whom.
//
//   clients (tuner submit) --> [ proxy ] --> tuner serve --> a database on disk
//   workers (measure_server, farm_load) --> [ proxy each ] --^
//
// Faults: processes are killed (SIGKILL) and paused (SIGSTOP), whole or a single one of their children;
// connections are reset, delayed, parted without a word; some Syncs come a second time, later. A killed
// process is started again soon. Then faults end, and every job must.
//
//   farm_chaos_test                                        40 faults
//   TUNER_TEST_ROUNDS=1000 TUNER_TEST_SEED=7 farm_chaos_test
//
// A seed draws the same faults again; what they meet is up to the machine.
#include <arpa/inet.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <sstream>
#include <utility>

#include "db/store.h"
#include "tests/chaos/fault_proxy.h"
#include "tests/random_seed.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/wait_until.h"
#include "tests/tuner/processes.h"
#include "tuning.grpc.pb.h"

namespace tuner::chaos {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using testing::eventually;
using testing::Process;
using Clock = std::chrono::steady_clock;

constexpr int kTrials = 40;  // of a job
constexpr const char* kTarget = "cpu";

// A port that nobody listens on, for a daemon that keeps it over its lives.
int free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const bool bound = ::bind(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0 &&
                     ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  EXPECT_TRUE(bound);
  ::close(fd);
  return ntohs(address.sin_port);
}

// A process of the farm that is started again whenever it ends.
struct Actor {
  std::string name;
  std::vector<std::string> words;
  std::string log;
  FaultProxy* network = nullptr;  // to the daemon; null: it is the daemon
  std::optional<Process> process;
  std::vector<pid_t> paused;
  Clock::time_point resume_at, restart_at;

  bool runs() { return process && !process->wait(0s).has_value(); }
  void start() {
    process.reset();
    paused.clear();
    process.emplace(words, log);
  }
  void resume() {
    for (const pid_t pid : std::exchange(paused, {})) ::kill(pid, SIGCONT);
  }
};

enum Fault {
  kKillDaemon,
  kPauseDaemon,
  kKillWorker,
  kKillChild,
  kPauseWorker,
  kKillClient,
  kPauseClient,
  kPart,
  kDelay,
  kCut,
  kFaults
};
constexpr std::array<const char*, kFaults> kNames = {
    "daemon killed", "daemon paused", "worker killed", "worker's child killed",
    "worker paused", "client killed", "client paused", "parted",
    "delayed",       "reset"};
constexpr std::array<int, kFaults> kWeights = {8, 6, 16, 6, 14, 12, 8, 12, 10, 8};

class FarmChaos : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("XDG_RUNTIME_DIR", folder_.path().c_str(), 1);
    setenv("XDG_CACHE_HOME", folder_.file("cache").c_str(), 1);
    setenv("XDG_DATA_HOME", folder_.file("data").c_str(), 1);
  }
  void TearDown() override {
    if (HasFailure() || std::getenv("TUNER_KEEP_LOGS") != nullptr)
      std::printf("logs: %s\n", keep_logs().c_str());
  }

  std::string program(const std::string& name) const { return TUNER_BIN_DIR "/" + name; }
  FaultProxy* new_network() { return &networks_.emplace_back(port_); }
  void start_farm();
  std::string target() const;
  void start_job(Actor& client);
  void look_after(Clock::time_point now, bool new_jobs);
  void draw_fault();
  void sleep_and_look(milliseconds pause);
  void end_faults();
  void check_workers();
  void check_answers();
  void check_ledger();
  std::map<std::string, int> ledger() const;
  std::string keep_logs() const;

  milliseconds between(int least_ms, int most_ms) {
    return milliseconds(std::uniform_int_distribution<int>(least_ms, most_ms)(random_));
  }
  template <typename T>
  T& any_of(std::list<T>& all) {
    return *std::next(all.begin(),
                      std::uniform_int_distribution<std::ptrdiff_t>(0, std::ssize(all) - 1)(random_));
  }
  void kill(Actor& actor);
  void pause(Actor& actor, milliseconds lasting);

  TemporaryFolder folder_;
  const std::string db_ = folder_.file("farm.db");
  const int port_ = free_port();
  std::mt19937_64 random_;
  std::list<FaultProxy> networks_;
  Actor daemon_;
  std::list<Actor> workers_, clients_;
  std::array<int, kFaults> faults_{};
  int jobs_ = 0;
  std::map<std::string, int> told_;  // by job: how many of its trials the daemon says are done
};

void FarmChaos::start_farm() {
  daemon_.name = "daemon";
  daemon_.words = {program("tuner"), "serve", "--listen", "127.0.0.1:" + std::to_string(port_), "--db", db_};
  daemon_.log = folder_.file("daemon");
  daemon_.start();
  for (int i = 0; i < 2; ++i) {
    Actor& worker = workers_.emplace_back();
    worker.name = "worker" + std::to_string(i);
    worker.network = new_network();
    worker.words = {program("measure_server"),
                    "--daemon",
                    worker.network->address(),
                    "--worker-id",
                    worker.name,
                    "--work-dir",
                    folder_.file(worker.name),
                    "--log-level",
                    "debug"};
    worker.log = folder_.file(worker.name + "-log");
    worker.start();
  }
  ASSERT_TRUE(eventually(120s, [&] { return !target().empty(); })) << daemon_.process->err();
  // Simulated workers beside them: quick, and they repeat themselves.
  for (int i = 0; i < 2; ++i) {
    Actor& worker = workers_.emplace_back();
    worker.name = "simulated" + std::to_string(i);
    worker.network = new_network();
    worker.words = {program("farm_load"),
                    "--daemon",
                    worker.network->address(),
                    "--workers",
                    "2",
                    "--name",
                    worker.name,
                    "--slots",
                    "2",
                    "--think-ms",
                    "150",
                    "--seconds",
                    "1000000",
                    "--wait-ms",
                    "2000",
                    "--repeated",
                    "0.1",
                    "--target",
                    target(),
                    "--ledger",
                    folder_.file(worker.name + ".ledger")};
    worker.log = folder_.file(worker.name);
    worker.start();
  }
  for (int i = 0; i < 2; ++i) {
    Actor& client = clients_.emplace_back();
    client.name = "client" + std::to_string(i);
    client.network = new_network();
    start_job(client);
  }
}

// The target that "cpu" means here, as a worker offers it; empty while none has come.
std::string FarmChaos::target() const {
  const auto stub = v1::Jobs::NewStub(
      grpc::CreateChannel("127.0.0.1:" + std::to_string(port_), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + 2s);
  v1::ReadJobFileRequest request;
  request.set_text(R"({"op": "matmul", "a": [8, 8], "b": [8, 8], "target": "cpu"})");
  request.set_name("target");
  v1::ReadJobFileReply reply;
  if (!stub->ReadJobFile(&context, request, &reply).ok() || reply.jobs_size() == 0) return "";
  return reply.jobs(0).tasks(0).target();
}

// Shapes that no other job has: its trials are its own.
void FarmChaos::start_job(Actor& client) {
  constexpr std::array kSearches = {"xgb-genetic", "random", "annealing", "bayesian"};
  const int n = ++jobs_;
  const std::string file = folder_.file("job" + std::to_string(n) + ".json");
  std::ofstream(file) << "{\"op\": \"matmul\", \"a\": [" << 24 + 8 * (n % 7) << ", " << 32 + 4 * n
                      << "], \"b\": [" << 32 + 4 * n << ", " << 48 + 16 * (n % 3) << "], \"target\": \""
                      << kTarget << "\", \"search\": \"" << kSearches[n % kSearches.size()]
                      << "\", \"measure\": {\"min_repeat_ms\": 0.05, \"repeats\": 3}}\n";
  client.words = {program("tuner"),         "submit",       file, "--trials",
                  std::to_string(kTrials),  "--stop-below", "0",  "--daemon",
                  client.network->address()};
  client.log = folder_.file(client.name);
  client.start();
}

void FarmChaos::kill(Actor& actor) {
  if (actor.process) actor.process->kill_tree();
  actor.paused.clear();
  actor.restart_at = Clock::now() + between(0, 700);
}

void FarmChaos::pause(Actor& actor, milliseconds lasting) {
  if (!actor.runs() || !actor.paused.empty()) return;
  actor.paused = actor.process->tree();
  for (const pid_t pid : actor.paused) ::kill(pid, SIGSTOP);
  actor.resume_at = Clock::now() + lasting;
}

void FarmChaos::draw_fault() {
  const int fault = std::discrete_distribution<int>(kWeights.begin(), kWeights.end())(random_);
  ++faults_[fault];
  Actor& worker = any_of(workers_);
  Actor& client = any_of(clients_);
  FaultProxy& network = any_of(networks_);
  switch (fault) {
    case kKillDaemon:
      return kill(daemon_);
    case kPauseDaemon:
      return pause(daemon_, between(50, 4'000));
    case kKillWorker:
      return kill(worker);
    case kKillChild: {
      // Its builder or its runner, or a candidate; the worker itself where it has none.
      const std::vector<pid_t> tree = worker.process ? worker.process->tree() : std::vector<pid_t>{};
      if (!tree.empty()) ::kill(tree[random_() % tree.size()], SIGKILL);
      return;
    }
    case kPauseWorker:
      return pause(worker, between(50, 12'000));
    case kKillClient:
      return kill(client);
    case kPauseClient:
      return pause(client, between(50, 5'000));
    case kPart:
      return network.part(between(50, 12'000));
    case kDelay:
      return network.delay(between(20, 500), between(500, 5'000));
    case kCut:
      return network.cut();
    default:
      FAIL();
  }
}

// Resumes who has been paused long enough and starts again who has ended.
void FarmChaos::look_after(Clock::time_point now, bool new_jobs) {
  const auto look = [&](Actor& actor) {
    if (!actor.paused.empty() && now >= actor.resume_at) actor.resume();
    if (!actor.runs() && now >= actor.restart_at) actor.start();
  };
  look(daemon_);
  for (Actor& worker : workers_) look(worker);
  for (Actor& client : clients_) {
    if (client.words.empty()) continue;
    if (client.runs() || client.process->wait(0s) != 0) {
      EXPECT_NE(client.process->wait(0s), 2) << client.process->err();
      look(client);
      continue;
    }
    client.paused.clear();
    if (new_jobs)
      start_job(client);
    else
      client.words.clear();
  }
}

void FarmChaos::sleep_and_look(milliseconds pause) {
  const auto end = Clock::now() + pause;
  for (auto now = Clock::now(); now < end; now = Clock::now()) {
    look_after(now, /*new_jobs=*/true);
    let_pass(10ms);
  }
}

void FarmChaos::end_faults() {
  for (FaultProxy& network : networks_) network.heal();
  daemon_.resume();
  for (Actor& worker : workers_) worker.resume();
  for (Actor& actor : clients_) actor.resume();
  EXPECT_TRUE(eventually(300s, [&] {
    look_after(Clock::now(), /*new_jobs=*/false);
    return std::ranges::all_of(clients_, [](const Actor& client) { return client.words.empty(); });
  })) << "a job does not end without faults either";
}

// Whoever lives comes back by itself once the network is well.
void FarmChaos::check_workers() {
  const auto stub = v1::Jobs::NewStub(
      grpc::CreateChannel("127.0.0.1:" + std::to_string(port_), grpc::InsecureChannelCredentials()));
  std::string away;
  const auto all_here = [&] {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + 5s);
    v1::ListWorkersReply reply;
    const grpc::Status status = stub->ListWorkers(&context, {}, &reply);
    away = status.error_message();
    for (const Actor& worker : workers_) {
      const bool here = std::ranges::any_of(reply.workers(), [&](const v1::WorkerSummary& w) {
        return w.worker_id().starts_with(worker.name) && w.silent_s() < 5;
      });
      if (!here) away += " " + worker.name;
    }
    return away.empty();
  };
  EXPECT_TRUE(eventually(60s, all_here)) << "not here a minute after the last fault:" << away;
}

// Every job has ended well, and every task has an answer that was raced, or says why it is not certified.
void FarmChaos::check_answers() {
  const auto stub = v1::Jobs::NewStub(
      grpc::CreateChannel("127.0.0.1:" + std::to_string(port_), grpc::InsecureChannelCredentials()));
  v1::ListReply list;
  {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + 30s);
    const grpc::Status status = stub->List(&context, {}, &list);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
  EXPECT_EQ(list.jobs_size(), jobs_) << "a job for each file, however often it was submitted";
  int raced = 0;
  std::map<std::string, int> unraced;  // by reason
  for (const v1::JobSummary& job : list.jobs()) {
    EXPECT_EQ(job.state(), v1::FINISHED) << job.job_id() << ": " << job.message();
    EXPECT_GE(job.trials_done(), kTrials) << job.job_id();
    told_[job.job_id()] = static_cast<int>(job.trials_done());
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + 30s);
    v1::WatchRequest request;
    request.set_job_id(job.job_id());
    const auto events = stub->Watch(&context, request);
    int answers = 0;
    for (v1::JobEvent event; events->Read(&event);) {
      if (!event.has_tuned()) continue;
      ++answers;
      raced += event.tuned().race_id() > 0 ? 1 : 0;
      EXPECT_TRUE(event.tuned().race_id() > 0 || !event.tuned().uncertified_why().empty()) << job.job_id();
      if (event.tuned().race_id() == 0) ++unraced[event.tuned().uncertified_why()];
    }
    EXPECT_GE(answers, job.tasks_size()) << job.job_id();
  }
  std::printf("%d jobs, %d answers raced\n", list.jobs_size(), raced);
  for (const auto& [why, count] : unraced) std::printf("  %d not certified: %s\n", count, why.c_str());
}

// Trial and attempt of every result that a worker was told is stored.
std::map<std::string, int> FarmChaos::ledger() const {
  std::map<std::string, int> all;
  for (const Actor& worker : workers_) {
    std::ifstream file(folder_.file(worker.name + ".ledger"));
    std::string trial;
    for (int attempt = 0; file >> trial >> attempt;) all[trial] = attempt;
    std::istringstream log(testing::read_text(worker.log + ".err"));
    constexpr std::string_view kWord = "acknowledged ";
    for (std::string line; std::getline(log, line);) {
      const size_t at = line.find(kWord);
      if (at == std::string::npos) continue;
      std::istringstream words(line.substr(at + kWord.size()));
      int attempt = 0;
      if (words >> trial >> attempt) all[trial] = attempt;
    }
  }
  return all;
}

void FarmChaos::check_ledger() {
  const Result<std::unique_ptr<Store>> store = Store::open(db_, Store::Mode::kRead);
  ASSERT_TRUE(store.is_ok()) << store.message();
  const std::map<std::string, int> acknowledged = ledger();
  std::map<std::string, int> lost = acknowledged;
  std::map<Outcome, int> outcomes;
  std::map<std::string, int> stored;  // by job
  std::set<std::string> seen;
  int doubled = 0;
  const Status read = (*store)->for_each_record("", [&](const TrialWithRecord& t) {
    doubled += seen.insert(t.trial.id).second ? 0 : 1;
    lost.erase(t.trial.id);
    ++stored[t.trial.job_id];
    ++outcomes[t.record->outcome];
    if (t.record->outcome != Outcome::kOk)
      std::printf("%s of %s: %s, %s\n", t.trial.id.c_str(), t.record->environment.worker_id.c_str(),
                  std::string(outcome_name(t.record->outcome)).c_str(), t.record->message.c_str());
    return true;
  });
  ASSERT_TRUE(read.is_ok()) << read.message();
  int poisoned = 0;
  for (const auto& [outcome, count] : outcomes)
    if (outcome != Outcome::kOk && outcome != Outcome::kInvalidConfig) poisoned += count;
  std::printf("%zu results acknowledged, %zu records: %zu lost, %d doubled, %d innocents blamed\n",
              acknowledged.size(), seen.size(), lost.size(), doubled, poisoned);
  EXPECT_EQ(lost.size(), 0u) << "first: " << lost.begin()->first;
  EXPECT_EQ(doubled, 0);
  EXPECT_EQ(told_, stored) << "a result was counted twice, or not at all";
  EXPECT_EQ(poisoned, 0) << "all candidates are right; only the faults are to blame";
  EXPECT_GT(acknowledged.size(), 0u);
}

std::string FarmChaos::keep_logs() const {
  std::string kept = std::filesystem::temp_directory_path() / "farm_chaos_XXXXXX";
  if (mkdtemp(kept.data()) == nullptr) return "not kept";
  std::error_code error;
  std::filesystem::copy(folder_.path(), kept, std::filesystem::copy_options::recursive, error);
  return kept;
}

TEST_F(FarmChaos, NothingIsLostDoubledOrBlamedAndEveryJobEnds) {
  const RandomSeed seed(7);
  const uint32_t faults = wanted_rounds(40);
  random_.seed(seed);
  ASSERT_NO_FATAL_FAILURE(start_farm());
  const auto begin = Clock::now();
  for (uint32_t i = 0; i < faults && !HasFatalFailure(); ++i) {
    draw_fault();
    sleep_and_look(between(50, 600));
  }
  end_faults();
  std::printf("%u faults in %.0f s:", faults, std::chrono::duration<double>(Clock::now() - begin).count());
  for (int i = 0; i < kFaults; ++i)
    std::printf(" %d %s%s", faults_[i], kNames[i], i + 1 < kFaults ? "," : "\n");
  check_workers();
  check_answers();
  daemon_.process->signal(SIGTERM);
  EXPECT_EQ(daemon_.process->wait(30s), 0) << daemon_.process->err();
  check_ledger();
}

}  // namespace
}  // namespace tuner::chaos
