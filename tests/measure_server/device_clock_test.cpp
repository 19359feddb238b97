// Kernels whose device has a clock of its own: the NPU, in the runner's processes. Times are its cycles, and
// what stops it is named.
#include "compiler_core/npu/device.h"
#include "compiler_core/npu/text.h"
#include "compiler_core/runtime/npu_loader.h"
#include "tests/measure_server/candidate_fixture.h"

namespace tuner {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

constexpr int64_t kBytes = 64;
constexpr const char* kCopy = R"(
load dram=0 rows=1 bytes=64 gives=store
store dram=64 rows=1 bytes=64 waits=load
)";

npu::KernelFile kernel_of(const char* code) {
  npu::KernelFile k{.machine = "npu", .operands = {{0, kBytes, true, false}, {64, kBytes, false, true}}};
  k.dram_bytes = k.constants_at = 128;
  const Result<npu::Code> parsed = npu::parse_code(code);
  EXPECT_TRUE(parsed.is_ok()) << parsed.message();
  k.code = *parsed;
  return k;
}

Manifest copy_manifest() {
  Manifest m;
  m.kind = kNpuKernel;
  m.entry = "copy";
  m.args = {{"x", BufferRole::kInput, DType::kInt8, {kBytes}, "", kBytes},
            {"out", BufferRole::kOutput, DType::kInt8, {kBytes}, "", kBytes}};
  m.target = "npu";
  m.toolchain = "npu codegen 1";
  return m;
}

class DeviceClock : public CandidateTest {
 protected:
  void SetUp() override {
    std::vector<double> answer;
    std::ofstream file(dir_ / "x.i8", std::ios::binary);
    for (int64_t i = 0; i < kBytes; ++i) {
      const auto value = static_cast<int8_t>(3 * i - 90);
      file.put(static_cast<char>(value));
      answer.push_back(value);
    }
    ASSERT_TRUE(write_reference(dir_ / "copy.ref", answer, {kBytes}, ReferenceKind::kFull).is_ok());
  }
  RunReply run_binary(const std::string& binary) {
    const Result<std::string> digest =
        save_artifact({copy_manifest(), binary}, (dir_ / "artifacts").string());
    EXPECT_TRUE(digest.is_ok()) << digest.message();
    RunRequest r = request(*digest);
    r.inputs = {{"x", (dir_ / "x.i8").string()}};
    r.references = {{"out", (dir_ / "copy.ref").string()}};
    return run(r);
  }
  RunReply run_code(const char* code) { return run_binary(npu::write_kernel(kernel_of(code))); }
};

int64_t cycles_of(const char* code) {
  std::vector<uint8_t> dram(128);
  return npu::simulate(npu::Machine(), kernel_of(code).code, dram).cycles;
}

TEST_F(DeviceClock, TimesAreCyclesOverTheClock) {
  const RunReply r = run_code(kCopy);
  ASSERT_EQ(r.outcome, Outcome::kOk) << r.message;
  EXPECT_EQ(r.run_ns.size(), 3u) << "equal samples: the median is known";
  EXPECT_THAT(r.run_ns, Each(static_cast<double>(cycles_of(kCopy)))) << "1 GHz";
  EXPECT_EQ(r.device_state, "simulated at 1 GHz");
  EXPECT_TRUE(r.exact_clock);
}

// One turn of two samples in one process, and nothing of the host beside it.
TEST_F(DeviceClock, ARaceOfThemIsShort) {
  const std::string binary = npu::write_kernel(kernel_of(kCopy));
  const Result<std::string> digest = save_artifact({copy_manifest(), binary}, (dir_ / "artifacts").string());
  ASSERT_TRUE(digest.is_ok()) << digest.message();
  RaceRequest race{.base = request("")};
  race.base.inputs = {{"x", (dir_ / "x.i8").string()}};
  race.base.references = {{"out", (dir_ / "copy.ref").string()}};
  race.candidates = {{*digest, {}}, {*digest, {}}};
  const Result<RaceReply> reply = runner->race(race);
  ASSERT_TRUE(reply.is_ok()) << reply.message();
  ASSERT_EQ(reply->candidates.size(), 2u);
  for (const RaceReply::Candidate& c : reply->candidates) {
    EXPECT_EQ(c.outcome, Outcome::kOk) << c.message;
    EXPECT_TRUE(c.exact_clock);
    EXPECT_EQ(c.turns, 1);
    EXPECT_EQ(c.run_ns, std::vector<double>(2, static_cast<double>(cycles_of(kCopy))));
    EXPECT_EQ(c.sentinel_ns, std::vector<double>(2, 1));
    EXPECT_TRUE(c.memory_ns.empty());
  }
}

TEST_F(DeviceClock, WhatStopsTheDeviceIsNamed) {
  const RunReply r = run_code("load dram=0 rows=1 bytes=64\nstore dram=64 rows=1 bytes=64\n");
  EXPECT_EQ(r.outcome, Outcome::kCrashed);
  EXPECT_THAT(r.message, AllOf(HasSubstr("the device stopped while in its first run: #1 store "),
                               HasSubstr("reads scratchpad word 0, which may still be written by #0 load")));
}

TEST_F(DeviceClock, AnswersAreCompared) {
  const RunReply r = run_code(R"(
load dram=1 rows=1 bytes=64 gives=store
store dram=64 rows=1 bytes=64 waits=load
)");
  EXPECT_EQ(r.outcome, Outcome::kWrongAnswer) << r.message;
}

TEST_F(DeviceClock, ADamagedFileIsABuildError) {
  std::string binary = npu::write_kernel(kernel_of(kCopy));
  binary.back() = static_cast<char>(binary.back() + 1);
  const RunReply r = run_binary(binary);
  EXPECT_EQ(r.outcome, Outcome::kBuildError);
  EXPECT_THAT(r.message,
              HasSubstr("cannot be loaded: NPU binary: the checksum differs: the file is damaged"));
}

// Two kernels of one process keep their clocks apart, and a place that is free is taken again.
TEST_F(DeviceClock, KernelsOfAProcessAreApart) {
  const char* const slow =
      "load dram=0 rows=1 bytes=64\nload dram=0 rows=1 bytes=64 gives=store\n"
      "store dram=64 rows=1 bytes=64 waits=load\n";
  const auto load = [&](const char* code) {
    std::ofstream(dir_ / "kernel", std::ios::binary) << npu::write_kernel(kernel_of(code));
    Result<LoadedKernel> loaded = npu_loader().load((dir_ / "kernel").string(), copy_manifest());
    EXPECT_TRUE(loaded.is_ok()) << loaded.message();
    return *std::move(loaded);
  };
  std::vector<int8_t> x(kBytes, 5), out(kBytes);
  void* const args[] = {x.data(), out.data()};
  const LoadedKernel one = load(kCopy), two = load(slow);
  EXPECT_EQ(one.entry(args, nullptr), 0);
  EXPECT_EQ(two.entry(args, nullptr), 0);
  EXPECT_EQ(one.clock.ns(), static_cast<double>(cycles_of(kCopy)));
  EXPECT_EQ(two.clock.ns(), static_cast<double>(cycles_of(slow)));
  EXPECT_NE(one.clock.ns(), two.clock.ns());
  EXPECT_EQ(out, x);
  for (int n = 0; n < 1000; ++n) ASSERT_NE(load(kCopy).entry, one.entry);
  Manifest other = copy_manifest();
  other.args[1].bytes = 63;
  EXPECT_EQ(npu_loader().load((dir_ / "kernel").string(), other).message(),
            "operand 1 of the program is not out of its manifest");
}

}  // namespace
}  // namespace tuner
