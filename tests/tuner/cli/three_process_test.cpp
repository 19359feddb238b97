// Daemon, worker and client as three processes over TCP on loopback; the worker is killed and restarted in
// mid-job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tuner/cli/real_job.h"

namespace tuner {
namespace {

using namespace std::chrono_literals;
using testing::address_of;
using testing::eventually;
using testing::Process;
using testing::RealJob;

TEST(ThreeProcesses, AJobSurvivesItsWorkerBeingKilled) {
  RealJob job;
  Process serve(job.tuner({"serve", "--listen", "127.0.0.1:0", "--db", job.db}), job.folder.file("serve"));
  ASSERT_TRUE(eventually(30s, [&] { return !address_of(serve).empty(); })) << serve.err();
  const std::string address = address_of(serve);
  const std::vector<std::string> worker_words = {std::string(TUNER_BIN_DIR) + "/measure_server",
                                                 "--daemon",
                                                 address,
                                                 "--worker-id",
                                                 "w1",
                                                 "--work-dir",
                                                 job.folder.file("worker")};
  Process submit(job.submit(96, {"--daemon", address}), job.folder.file("submit"));
  {
    Process worker(worker_words, job.folder.file("worker1"));
    ASSERT_TRUE(eventually(120s, [&] { return job.recorded().size() >= 20; }))
        << worker.err() << submit.err();
  }  // killed, with its builder and its runner
  const size_t before = job.recorded().size();
  EXPECT_LT(before, 96u) << "the worker was to be killed in mid-job";
  Process worker(worker_words, job.folder.file("worker2"));
  EXPECT_EQ(submit.wait(180s), 0) << submit.err() << worker.err();
  EXPECT_THAT(submit.out(), ::testing::HasSubstr("GFLOP/s"));
  job.expect_complete(96);

  Process workers(job.tuner({"workers", "--daemon", address}), job.folder.file("workers"));
  EXPECT_EQ(workers.wait(30s), 0);
  EXPECT_THAT(workers.out(), ::testing::HasSubstr("w1"));
  worker.signal(SIGTERM);
  EXPECT_TRUE(worker.wait(20s).has_value()) << "a worker without work leaves when asked";
  serve.signal(SIGTERM);
  EXPECT_EQ(serve.wait(20s), 0) << serve.err();
}

}  // namespace
}  // namespace tuner
