// A farm that measures for CPUs and for the NPU at once: whichever worker takes a trial of the NPU, it counts
// the same cycles.
#include <gmock/gmock.h>

#include <chrono>
#include <cmath>

#include "tests/tuner/cli/real_job.h"

namespace tuner {
namespace {

using namespace std::chrono_literals;
using testing::address_of;
using testing::eventually;
using ::testing::HasSubstr;
using testing::Process;
using testing::RealJob;

TEST(NpuFarm, WorksBesideCpuTasks) {
  RealJob job;
  Process serve(job.tuner({"serve", "--listen", "127.0.0.1:0", "--db", job.db}), job.folder.file("serve"));
  ASSERT_TRUE(eventually(30s, [&] { return !address_of(serve).empty(); })) << serve.err();
  const std::string address = address_of(serve);
  std::vector<std::unique_ptr<Process>> workers;
  for (const std::string id : {"first", "second"})
    workers.push_back(std::make_unique<Process>(
        std::vector<std::string>{std::string(TUNER_BIN_DIR) + "/measure_server", "--daemon", address,
                                 "--worker-id", id, "--work-dir", job.folder.file(id), "--shared-dir",
                                 job.folder.file(id + "-shared")},
        job.folder.file(id)));
  const std::string npu_job = job.folder.file("npu.json");
  std::ofstream(npu_job) << R"({"op": "matmul", "a": [96, 72], "b": [72, 80], "dtype": "int8",)"
                         << R"( "out_dtype": "int8", "bias": true, "target": "npu", "trials": 16})";
  Process on_cpu(job.submit(24, {"--daemon", address}), job.folder.file("cpu"));
  Process on_npu(job.tuner({"submit", npu_job, "--daemon", address, "--stop-below", "0"}),
                 job.folder.file("npu"));
  ASSERT_EQ(on_npu.wait(240s), 0) << on_npu.out() << on_npu.err();
  ASSERT_EQ(on_cpu.wait(240s), 0) << on_cpu.out() << on_cpu.err();
  EXPECT_THAT(on_npu.out(), HasSubstr("certified: the device's clock is exact"));
  size_t of_npu = 0, of_cpu = 0;
  for (const auto& [id, t] : job.recorded()) {
    const bool is_npu = t.record->environment.toolchain.starts_with("npu ");
    (is_npu ? of_npu : of_cpu) += t.record->outcome == Outcome::kOk ? 1 : 0;
    if (!is_npu || t.record->outcome != Outcome::kOk) continue;
    EXPECT_EQ(record_time_ns(*t.record), std::floor(record_time_ns(*t.record))) << "cycles at 1 GHz";
  }
  EXPECT_EQ(of_npu, 16u);
  EXPECT_GT(of_cpu, 12u);
}

}  // namespace
}  // namespace tuner
