// Workers under Slurm, without Slurm: the script, what squeue and sinfo say, what is shown, how it scales;
// and the acts, with Slurm's programs played by scripts. tests/slurm has the real ones.
#include "tuner/farm/slurm_farm.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temporary_folder.h"
#include "tuner/farm/slurm_view.h"

namespace tuner::slurm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

WorkerWish wish() {
  return {.fleet = "nodes",
          .credentials = "/shared/nodes.credentials",
          .program = "/shared/bin/measure_server",
          .logs = "/shared/farm/logs",
          .cores = 4,
          .partition = "batch",
          .constraint = "zen4|zen5",
          .gres = "gpu:1",
          .time = "1-00:00:00"};
}

// --- the script ---

TEST(SlurmScript, HasEveryWishAndBecomesTheWorker) {
  WorkerWish w = wish();
  ASSERT_TRUE(check_wish(w).is_ok()) << check_wish(w).message();
  const std::string script = worker_script(w);
  for (const char* line :
       {"#SBATCH --job-name=tuner-workers\n", "#SBATCH --partition=batch\n",
        "#SBATCH --constraint=zen4|zen5\n", "#SBATCH --gres=gpu:1\n", "#SBATCH --time=1-00:00:00\n",
        "#SBATCH --cpus-per-task=4\n", "#SBATCH --hint=nomultithread\n", "#SBATCH --requeue\n",
        "#SBATCH --open-mode=append\n", "#SBATCH --signal=B:TERM@60\n",
        "#SBATCH --output=/shared/farm/logs/%A_%a.log\n",
        "id=nodes.s$SLURM_ARRAY_JOB_ID-$SLURM_ARRAY_TASK_ID-${SLURM_RESTART_COUNT:-0}\n",
        "exec /shared/bin/measure_server --daemon /shared/nodes.credentials --worker-id \"$id\""})
    EXPECT_THAT(script, HasSubstr(line));
  EXPECT_THAT(script, Not(HasSubstr("--account")));
  w.cores = 0;
  EXPECT_THAT(worker_script(w), HasSubstr("#SBATCH --exclusive\n"));
}

TEST(SlurmScript, WhatWouldBecomeAnotherLineOrCommandIsRefused) {
  const auto refused = [](std::string WorkerWish::*part, const std::string& value) {
    WorkerWish w = wish();
    w.*part = value;
    return check_wish(w).message();
  };
  EXPECT_THAT(refused(&WorkerWish::partition, "a\n#SBATCH --uid=0"), HasSubstr("--partition: found"));
  EXPECT_THAT(refused(&WorkerWish::constraint, "$(id)"), HasSubstr("--constraint: found"));
  EXPECT_THAT(refused(&WorkerWish::gres, "gpu 1"), HasSubstr("--gres: found"));
  EXPECT_THAT(refused(&WorkerWish::name, "a/b"), HasSubstr("--name: found"));
  EXPECT_THAT(refused(&WorkerWish::credentials, "relative"), HasSubstr("expected an absolute path"));
  EXPECT_THAT(refused(&WorkerWish::program, "/bin/a;b"), HasSubstr("--program: found"));
  EXPECT_THAT(refused(&WorkerWish::logs, "/a/%j"), HasSubstr("--folder: found"));
  EXPECT_THAT(refused(&WorkerWish::fleet, ""), HasSubstr("tuner admin worker nodes --fleet"));
}

// --- the queue ---

constexpr char kQueue[] =
    "12|12|2|PENDING||0|Resources|\n"
    "13|12|1|RUNNING|n1|2|None|\n"
    "9|9|1|COMPLETING|n2|0|None|\n";

TEST(SlurmQueue, LinesBecomeTasksAndStrangeOnesAreCounted) {
  int strange = 0;
  const std::vector<Task> tasks = tasks_from(kQueue, strange);
  ASSERT_EQ(tasks.size(), 3u);
  EXPECT_EQ(strange, 0);
  EXPECT_EQ(tasks[1].job, "13");
  EXPECT_EQ(tasks[1].array, "12");
  EXPECT_EQ(tasks[1].task, "1");
  EXPECT_EQ(tasks[1].node, "n1");
  EXPECT_EQ(tasks[1].restarts, 2);
  EXPECT_TRUE(tasks[0].waits());
  EXPECT_TRUE(tasks[2].ends());
  for (const char* line :
       {"slurm_load_jobs error", "1|2|3|RUNNING|n1|x|None|", "1|2|N/A|RUNNING|n1|0|None|", "||||||||"}) {
    strange = 0;
    EXPECT_TRUE(tasks_from(line, strange).empty()) << line;
    EXPECT_EQ(strange, 1) << line;
  }
}

TEST(SlurmQueue, ANodeIsLostOrDrainedByItsState) {
  int strange = 0;
  const std::vector<Node> nodes = nodes_from(
      "n1|idle|none\nn1|idle|none\nn2|down*|Not responding\nn3|drained|Duplicate jobid\nn4|mixed*|none\n",
      strange);
  ASSERT_EQ(nodes.size(), 4u) << "a line per partition, a node once";
  EXPECT_FALSE(nodes[0].is_lost() || nodes[0].is_drained());
  EXPECT_TRUE(nodes[1].is_lost());
  EXPECT_TRUE(nodes[2].is_drained());
  EXPECT_TRUE(nodes[3].is_lost()) << "no answer yet";
}

// --- what is shown ---

View view_of(const std::vector<std::string>& workers) {
  int strange = 0;
  View view{
      .fleet = "nodes", .logs = "/logs", .tasks = tasks_from(kQueue, strange), .nodes = {}, .workers = {}};
  view.workers.emplace();
  for (const std::string& id : workers) {
    v1::WorkerSummary* w = view.workers->add_workers();
    w->set_worker_id(id);
    w->set_host("h");
    w->set_trials_done(7);
    w->set_leases(3);
  }
  return view;
}

TEST(SlurmView, ATaskIsShownWithItsWorkerAndItsLog) {
  const std::string text = view_text(view_of({"nodes.s12-1-2"}));
  EXPECT_THAT(text, HasSubstr("nodes.s12-1-2  n1  measures, 7 trials done, 3 held  log /logs/12_1.log\n"));
  EXPECT_THAT(text, HasSubstr("nodes.s12-2-0  -  waits: Resources  log /logs/12_2.log\n"));
  EXPECT_THAT(text, HasSubstr("3 tasks: 1 run, 1 wait\n"));
  EXPECT_THAT(view_text(view_of({})), HasSubstr("runs; the daemon does not know it: see its log"));
}

TEST(SlurmView, AWorkerThatOutlivedItsTaskIsNamed) {
  // Restart 2 runs; restart 1 lives on, on the node that Slurm lost. Others' workers are none of this farm.
  const std::string text = view_text(view_of({"nodes.s12-1-2", "nodes.s12-1-1", "desk-12345678"}));
  EXPECT_THAT(text, HasSubstr("worker nodes.s12-1-1 lives on (h) though Slurm has given its task up"));
  EXPECT_THAT(text, HasSubstr("To end it: tuner admin drain nodes.s12-1-1"));
  EXPECT_THAT(text, HasSubstr("; 1 workers outlived theirs"));
  EXPECT_THAT(text, Not(HasSubstr("desk")));
}

TEST(SlurmView, LostAndDrainedNodesSayWhatTheyAre) {
  View view = view_of({});
  view.nodes = {
      {"n1", "down*", "Not responding"}, {"n2", "drained", "Duplicate jobid"}, {"n3", "idle", "none"}};
  const std::string text = view_text(view);
  EXPECT_THAT(text, HasSubstr("node n1 is lost (down*: Not responding). Its tasks start again elsewhere"));
  EXPECT_THAT(text,
              HasSubstr("node n2 gets no work (drained: Duplicate jobid). When it is well: scontrol update "
                        "NodeName=n2 State=RESUME"));
  EXPECT_THAT(text, HasSubstr("log /logs/12_1.log  (its node is lost)"));
  EXPECT_THAT(text, Not(HasSubstr("n3")));
}

// --- how many ---

std::vector<Task> tasks(int running, int waiting) {
  std::vector<Task> out;
  for (int i = 0; i < running; ++i)
    out.push_back({.job = str(98 + i), .array = "98", .task = str(i), .state = "RUNNING"});
  for (int i = 0; i < waiting; ++i)
    out.push_back({.job = str(200 + i), .array = "200", .task = str(i), .state = "PENDING"});
  return out;
}

TEST(SlurmScale, WaitingTasksGoFirstThenTheYoungest) {
  EXPECT_EQ(scale_plan(tasks(2, 1), {}, 5).submit, 2);
  EXPECT_TRUE(scale_plan(tasks(2, 1), {}, 3).empty());
  const ScalePlan fewer = scale_plan(tasks(3, 2), {}, 1);
  EXPECT_EQ(fewer.submit, 0);
  EXPECT_THAT(fewer.cancel, ElementsAre("201", "200"));
  EXPECT_THAT(fewer.drain, ElementsAre("100", "99")) << "100 is younger than 99, as a number";
  EXPECT_THAT(scale_plan(tasks(2, 0), {}, 0).drain, ElementsAre("99", "98"));
}

TEST(SlurmScale, WhatEndsDoesNotCountAndIsNotToldTwice) {
  const ScalePlan plan = scale_plan(tasks(3, 0), {"100"}, 1);
  EXPECT_THAT(plan.drain, ElementsAre("99"));
  EXPECT_EQ(scale_plan(tasks(3, 0), {"100"}, 3).submit, 1);
}

TEST(SlurmScale, TheQueueDecidesWithinBounds) {
  EXPECT_EQ(wanted_workers(0, 8, 0, 10), 0);
  EXPECT_EQ(wanted_workers(1, 8, 0, 10), 1);
  EXPECT_EQ(wanted_workers(17, 8, 0, 10), 3);
  EXPECT_EQ(wanted_workers(1'000'000'000'000, 8, 0, 10), 10);
  EXPECT_EQ(wanted_workers(0, 8, 2, 10), 2);
}

TEST(SlurmScale, MoreAtOnceFewerOnlyAfterAWhile) {
  Follower follower(3);
  EXPECT_EQ(follower.next(4, 2), 4);
  EXPECT_EQ(follower.next(1, 4), 4);
  EXPECT_EQ(follower.next(2, 4), 4);
  EXPECT_EQ(follower.next(1, 4), 2) << "the most that was wanted meanwhile";
  EXPECT_EQ(follower.next(1, 4), 4);
  EXPECT_EQ(follower.next(4, 4), 4);
  EXPECT_EQ(follower.next(1, 4), 4) << "the count begins anew";
}

// --- the acts, with Slurm's programs played by scripts ---

class SlurmFarmTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(bin_);
    played("squeue", "cat " + folder_.file("queue") + "; echo \"squeue $@\" >> " + calls_);
    played("sinfo", "true");
    played("sbatch", "echo \"sbatch $@\" >> " + calls_ + "; echo 'sbatch: a warning'; echo '77;cluster'");
    played("scancel", "echo \"scancel $@\" >> " + calls_);
    queue("");
    ::setenv("PATH", (bin_ + ":" + path_).c_str(), 1);
  }
  void TearDown() override { ::setenv("PATH", path_.c_str(), 1); }

  void played(const std::string& name, const std::string& body) {
    const std::string file = bin_ + "/" + name;
    std::ofstream(file) << "#!/bin/sh\n" << body << "\n";
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  }
  void queue(const std::string& text) { std::ofstream(folder_.file("queue")) << text; }
  std::string calls() {
    std::ifstream file(calls_);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  Result<SlurmFarm> created() {
    WorkerWish w = wish();
    return SlurmFarm::create(folder_.file("farm/workers"), w);
  }

  TemporaryFolder folder_;
  const std::string bin_ = folder_.file("bin"), calls_ = folder_.file("calls"), path_ = ::getenv("PATH");
};

TEST_F(SlurmFarmTest, UpSubmitsAnArrayAndTheFolderRemembersTheRest) {
  Result<SlurmFarm> farm = created();
  ASSERT_TRUE(farm.is_ok()) << farm.message();
  const auto scaled = farm->scale(3);
  ASSERT_TRUE(scaled.is_ok()) << scaled.message();
  EXPECT_EQ(scaled->array, "77");
  EXPECT_THAT(calls(), HasSubstr("sbatch --parsable --array=1-3 " + farm->folder() + "/worker.sh\n"));
  EXPECT_THAT(calls(), HasSubstr("--me --name=tuner-workers\n"));
  const Result<SlurmFarm> again = SlurmFarm::open(farm->folder());
  ASSERT_TRUE(again.is_ok()) << again.message();
  EXPECT_EQ(again->fleet(), "nodes");
  EXPECT_EQ(again->name(), "workers");
}

TEST_F(SlurmFarmTest, ASecondFarmOfThatNameIsRefusedWhileTheFirstIsThere) {
  ASSERT_TRUE(created().is_ok());
  queue(kQueue);
  EXPECT_THAT(created().message(), HasSubstr("3 workers of workers are in Slurm's queue already"));
  EXPECT_THAT(SlurmFarm::open(folder_.file("nothing")).message(), HasSubstr("tuner farm slurm up"));
}

TEST_F(SlurmFarmTest, DownCancelsWhatWaitsAndTellsWorkersOnce) {
  Result<SlurmFarm> farm = created();
  ASSERT_TRUE(farm.is_ok()) << farm.message();
  queue(kQueue);
  const Result<int> down = farm->down(/*now=*/false);
  ASSERT_TRUE(down.is_ok()) << down.message();
  EXPECT_EQ(*down, 2) << "one ends by itself";
  EXPECT_THAT(calls(), HasSubstr("scancel 12\n"));
  EXPECT_THAT(calls(), HasSubstr("scancel --batch --signal=TERM 13\n"));
  queue("13|12|1|RUNNING|n1|2|None|\n");
  EXPECT_EQ(*SlurmFarm::open(farm->folder())->down(false), 0) << "a second TERM would end it at once";
  queue("");
  ASSERT_TRUE(SlurmFarm::open(farm->folder())->scale(0).is_ok());
  EXPECT_EQ(std::filesystem::file_size(farm->folder() + "/draining"), 0u)
      << "jobs that have ended are forgotten";
  queue(kQueue);
  EXPECT_EQ(*farm->down(/*now=*/true), 3);
  EXPECT_THAT(calls(), HasSubstr("scancel 12 13 9\n"));
}

TEST_F(SlurmFarmTest, WhatSlurmSaysIsWhatIsTold) {
  Result<SlurmFarm> farm = created();
  ASSERT_TRUE(farm.is_ok()) << farm.message();
  played("sbatch", "echo 'sbatch: error: invalid partition specified: batch'; exit 1");
  EXPECT_THAT(farm->scale(1).message(),
              HasSubstr("sbatch (exit status 1): sbatch: error: invalid partition specified: batch"));
  played("sbatch", "echo nothing");
  EXPECT_THAT(farm->scale(1).message(), HasSubstr("expected the number of a job"));
  queue("slurm_load_jobs error: Unable to contact slurm controller\n");
  EXPECT_THAT(farm->tasks().message(), HasSubstr("squeue: 1 lines are not as expected"));
  std::filesystem::remove(bin_ + "/squeue");
  ::setenv("PATH", bin_.c_str(), 1);
  EXPECT_THAT(farm->tasks().message(), HasSubstr("squeue: not found in PATH"));
}

}  // namespace
}  // namespace tuner::slurm
