// tuner submit without a daemon: stopping, continuing, finished jobs, and two commands on one database.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tuner/cli/real_job.h"

namespace tuner {
namespace {

using namespace std::chrono_literals;
using testing::eventually;
using ::testing::HasSubstr;
using testing::Process;
using testing::RealJob;

TEST(Embedded, CtrlCStopsInOrderAndTheSameCommandContinuesThenAnswersFromTheStore) {
  RealJob job;
  // Far more trials than are wanted, so that however slow this test is, it interrupts a running job.
  Process first(job.submit(20'000), job.folder.file("first"));
  ASSERT_TRUE(eventually(120s, [&] { return job.recorded().size() >= 16; })) << first.err();
  first.signal(SIGINT);
  EXPECT_EQ(first.wait(30s), 1);
  EXPECT_THAT(first.err(), HasSubstr("To continue it"));
  const auto before = job.recorded();

  Process second(job.submit(400), job.folder.file("second"));
  EXPECT_EQ(second.wait(180s), 0) << second.err();
  EXPECT_THAT(second.err(), HasSubstr("continues"));
  const auto after = job.recorded();
  EXPECT_GE(after.size(), 400u);
  job.expect_complete(after.size());
  for (const auto& [id, t] : before)
    EXPECT_EQ(after.at(id).trial.attempt, t.trial.attempt) << id << " ran again";

  Process third(job.submit(400), job.folder.file("third"));
  EXPECT_EQ(third.wait(60s), 0) << third.err();
  EXPECT_THAT(third.out(), HasSubstr("was finished before"));
  job.expect_complete(after.size());

  const std::string trial = after.begin()->first;
  Process rerun(job.tuner({"rerun", trial, "--db", job.db}), job.folder.file("rerun"));
  EXPECT_TRUE(rerun.wait(60s).has_value());
  EXPECT_THAT(rerun.out(), HasSubstr("before "));
  EXPECT_THAT(rerun.out(), HasSubstr("now "));
}

TEST(Embedded, ASecondCommandJoinsAndGoesOnWhenItsHostEnds) {
  RealJob job(testing::Races::kInFull);  // the host's race leaves the guest time to join
  Process host(job.submit(40, {"--seed", "1"}), job.folder.file("host"));
  ASSERT_TRUE(eventually(120s, [&] { return job.recorded().size() >= 4; })) << host.err();
  Process guest(job.submit(120, {"--seed", "2"}), job.folder.file("guest"));
  EXPECT_EQ(host.wait(180s), 0) << host.err();
  EXPECT_EQ(guest.wait(240s), 0) << guest.err();
  EXPECT_THAT(guest.err(), HasSubstr("by the daemon on"));
  EXPECT_THAT(guest.err(), HasSubstr("has ended"));
  EXPECT_EQ(job.recorded().size(), 160u);
}

TEST(Embedded, ASweepMeasuresEveryConfigInFullAndIsExportedWhole) {
  RealJob job;
  std::ofstream(job.file, std::ios::trunc)
      << R"({"op": "softmax", "rows": 16, "columns": 64, "target": "cpu", "measure": {"min_repeat_ms": 0.05}})";
  Process sweep(job.tuner({"submit", job.file, "--trials", "all", "--db", job.db}), job.folder.file("sweep"));
  ASSERT_EQ(sweep.wait(180s), 0) << sweep.err();
  EXPECT_THAT(sweep.err(), HasSubstr(", grid, "));
  const auto all = job.recorded();
  for (const auto& [id, t] : all) {
    EXPECT_EQ(t.record->outcome, Outcome::kOk) << id;
    EXPECT_FALSE(t.record->cut) << id;
  }
  Process replay(job.tuner({"replay", "j1", "--db", job.db}), job.folder.file("replay"));
  EXPECT_EQ(replay.wait(30s), 0) << replay.out();
  EXPECT_THAT(replay.out(), HasSubstr("bit for bit"));
  Process whatif(job.tuner({"whatif", "j1", "--strategy", "random", "--db", job.db}),
                 job.folder.file("whatif"));
  EXPECT_EQ(whatif.wait(30s), 0) << whatif.out();
  EXPECT_THAT(whatif.out(), HasSubstr("100.0 %"));
  Process written(job.tuner({"records", "export", "--space", job.file, "--db", job.db}),
                  job.folder.file("csv"));
  EXPECT_EQ(written.wait(30s), 0);
  const std::string n = std::to_string(all.size());
  EXPECT_THAT(written.err(), HasSubstr(n + " of " + n + " valid configs: " + n + " timed, 0 failed"));
}

TEST(Embedded, CommandsWithoutADaemonSayWhatToDo) {
  RealJob job;
  Process workers(job.tuner({"workers", "--db", job.db}), job.folder.file("workers"));
  EXPECT_EQ(workers.wait(30s), 1);
  EXPECT_THAT(workers.err(), HasSubstr("there is no database yet"));
  Process lost(job.submit(8, {"--daemon", "127.0.0.1:1"}), job.folder.file("lost"));
  EXPECT_EQ(lost.wait(60s), 1);
  EXPECT_THAT(lost.err(), HasSubstr("nobody answers"));
  Process open(job.tuner({"serve", "--listen", "0.0.0.0:7070", "--db", job.db}), job.folder.file("open"));
  EXPECT_EQ(open.wait(30s), 2);
  EXPECT_THAT(open.err(), HasSubstr("only loopback"));
}

}  // namespace
}  // namespace tuner
