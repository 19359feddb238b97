// The device side of the runner on a real GPU: right and faulty kernels, in PTX that the driver itself
// compiles, so neither NVRTC nor our code generator is needed. Skipped with the reason where there is no GPU.
#include "tests/measure_server/candidate_fixture.h"

namespace tuner {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// out[i] = 2 * x[i] for i below 1280, with `extra` done by every thread before it ends. %r4 is i, %rd3 is x,
// %rd4 is out; %f3, %r5, %p2 are free.
std::string doubling_ptx(const std::string& extra) {
  return R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 out)
{
  .reg .pred %p<3>;
  .reg .b32 %r<6>;
  .reg .f32 %f<4>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [out];
  cvta.to.global.u64 %rd3, %rd1;
  cvta.to.global.u64 %rd4, %rd2;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.s32 %r4, %r1, %r2, %r3;
  setp.ge.s32 %p1, %r4, 1280;
  @%p1 bra DONE;
  mul.wide.s32 %rd5, %r4, 4;
  add.s64 %rd6, %rd3, %rd5;
  add.s64 %rd7, %rd4, %rd5;
  ld.global.f32 %f1, [%rd6];
  add.f32 %f2, %f1, %f1;
  st.global.f32 [%rd7], %f2;
)" + extra +
         R"(
DONE:
  ret;
}
)";
}

class DeviceGpu : public CandidateTest {
 protected:
  void SetUp() override {
    CandidateTest::SetUp();
    const Result<ProbeReply> probe = runner->probe(1);
    ASSERT_TRUE(probe.is_ok()) << probe.message();
    if (probe->devices.empty()) GTEST_SKIP() << probe->no_device;
    std::printf("on %s\n", probe->devices[0].fingerprint.c_str());
  }
  std::string artifact_of(const std::string& extra) {
    Manifest m = doubling_manifest();
    m.kind = binary_kind::kCubin;
    m.target = "cuda -arch=sm_70";
    m.launches = {LaunchInfo{.kernel = "k", .grid = {5, 1, 1}, .block = {256, 1, 1}, .params = {0, 1}}};
    const Result<std::string> digest =
        save_artifact({std::move(m), doubling_ptx(extra)}, (dir_ / "artifacts").string());
    EXPECT_TRUE(digest.is_ok()) << digest.message();
    return digest.is_ok() ? *digest : "";
  }
  RunReply run_ptx(const std::string& extra, double run_timeout_s = 20) {
    RunRequest r = request(artifact_of(extra));
    r.run_timeout_s = run_timeout_s;
    return run(r);
  }
  void expect_good() {
    const RunReply r = run_ptx("");
    EXPECT_EQ(r.outcome, Outcome::kOk) << r.message;
  }
};

TEST_F(DeviceGpu, ARightKernelIsTimed) {
  const RunReply r = run_ptx("");
  ASSERT_EQ(r.outcome, Outcome::kOk) << r.message;
  ASSERT_GE(r.run_ns.size(), 1u);
  std::printf("%g ns a call, sentinel %g ns, %s\n", r.run_ns[0], r.sentinel_before_ns,
              r.device_state.c_str());
  EXPECT_GT(r.run_ns[0], 0);
  EXPECT_GT(r.sentinel_before_ns, 0);
}

TEST_F(DeviceGpu, FaultsCostOneTrialEach) {
  const RunReply illegal = run_ptx("  mov.u64 %rd1, 16;\n  st.global.f32 [%rd1], %f2;");
  EXPECT_EQ(illegal.outcome, Outcome::kCrashed);
  EXPECT_THAT(illegal.message, HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
  expect_good();
  const RunReply misaligned = run_ptx("  st.global.f32 [%rd7+1], %f2;");
  EXPECT_THAT(misaligned.message, HasSubstr("CUDA_ERROR_MISALIGNED_ADDRESS"));
  expect_good();
  const RunReply hanging = run_ptx(
      "LOOP:\n  ld.volatile.global.f32 %f3, [%rd6];\n  setp.ne.f32 %p2, %f3, 0f7F800000;\n"
      "  @%p2 bra LOOP;",
      /*run_timeout_s=*/2);
  EXPECT_EQ(hanging.outcome, Outcome::kRunTimeout) << hanging.message;
  expect_good();
  const RunReply beside = run_ptx("  st.global.f32 [%rd4+5120], %f2;");
  EXPECT_EQ(beside.outcome, Outcome::kCrashed);
  EXPECT_THAT(beside.message, StartsWith("wrote outside out"));
  expect_good();
  const RunReply wrong = run_ptx("  mov.f32 %f3, 0f00000000;\n  st.global.f32 [%rd4+20], %f3;");
  EXPECT_EQ(wrong.outcome, Outcome::kWrongAnswer) << wrong.message;
  expect_good();
}

TEST_F(DeviceGpu, FinalistsRaceBesidePulsesAndCopies) {
  RaceRequest race{.base = request(""), .rounds = 3};
  // The second one writes its output twice.
  for (const char* extra : {"", "  membar.gl;\n  st.global.f32 [%rd7], %f2;"})
    race.candidates.push_back({artifact_of(extra), {}});
  const Result<RaceReply> r = runner->race(race);
  ASSERT_TRUE(r.is_ok()) << r.message();
  for (const RaceReply::Candidate& c : r->candidates) {
    EXPECT_EQ(c.outcome, Outcome::kOk) << c.message;
    ASSERT_EQ(c.run_ns.size(), 9u);
    ASSERT_EQ(c.memory_ns.size(), 9u);
    std::printf("%g ns a call, pulse %g ns, copy %g ns\n", c.run_ns[0], c.sentinel_ns[0], c.memory_ns[0]);
    EXPECT_THAT(c.run_ns, testing::Each(testing::Gt(0)));
    EXPECT_GT(c.pulse_ns, 0) << "the driver compiles the pulse";
  }
}

TEST_F(DeviceGpu, TextThatIsNoModuleIsABuildError) {
  EXPECT_EQ(run_ptx("  this is no instruction;").outcome, Outcome::kBuildError);
  expect_good();
}

}  // namespace
}  // namespace tuner
