// Wary runs of GPU candidates, on a driver of ours (fake_cuda): cheats that an ordinary run believes. And
// operands that a call changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/measure_server/device_fixture.h"

namespace tuner {
namespace {

using ::testing::HasSubstr;

class DeviceWary : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    // The first inputs but for one element.
    std::vector<float> x(kCount);
    std::vector<double> answer(kCount);
    for (int64_t i = 0; i < kCount; ++i) {
      x[i] = i == 700 ? 5.0f : 0.25f + static_cast<float>((i * 7919) % 1009) / 1009.0f;
      answer[i] = 2.0 * x[i];
    }
    write("other.f32", x);
    ASSERT_TRUE(write_reference(dir_ / "other.ref", answer, {4, 8, 40}, ReferenceKind::kFull).is_ok());
  }
  void write(const char* name, const std::vector<float>& values) const {
    std::ofstream(dir_ / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size() * 4));
  }
  RunRequest wary_request(const std::string& behaviour) {
    RunRequest r = device_request(module_of(behaviour));
    r.wary = true;
    r.repeats = 9;
    r.others = {{.inputs = {{"x", (dir_ / "other.f32").string()}},
                 .references = {{"out", (dir_ / "other.ref").string()}}}};
    return r;
  }
  RunReply run_warily(const std::string& behaviour) { return run(wary_request(behaviour)); }
};

TEST_F(DeviceWary, ARightKernelIsTimedAndComparedOnBothSets) {
  const RunReply r = run_warily("doubling ns=7000");
  EXPECT_EQ(r.outcome, Outcome::kOk) << r.message << r.error;
  EXPECT_FALSE(r.doubted);
  EXPECT_EQ(r.input_sets, 2);
  EXPECT_EQ(r.run_ns.size(), 9u);
  for (const double ns : r.run_ns) EXPECT_NEAR(ns, 7000, 1);
}

TEST_F(DeviceWary, CachesAreEmptyBeforeEachCall) {
  const RunReply r = run_warily("doubling ns=5000 beyond_l2_ns=9000");
  ASSERT_EQ(r.outcome, Outcome::kOk) << r.message;
  for (const double ns : r.run_ns) EXPECT_NEAR(ns, 9000, 1);
}

TEST_F(DeviceWary, EachHasAFreshContext) {
  const int before = contexts();
  EXPECT_EQ(run_warily("doubling").outcome, Outcome::kOk);
  EXPECT_EQ(run_warily("doubling").outcome, Outcome::kOk);
  EXPECT_EQ(contexts(), before + 2);
}

// Each is right for who runs it on the same inputs again and again.
TEST_F(DeviceWary, CheatsThatAnOrdinaryRunBelievesAreWrong) {
  for (const char* cheat : {"keeps_answers", "returns_if_there", "knows_addresses"}) {
    RunRequest ordinary = wary_request(cheat);
    ordinary.wary = false;
    EXPECT_EQ(run(ordinary).outcome, Outcome::kOk) << cheat;
    const RunReply r = run_warily(cheat);
    EXPECT_EQ(r.outcome, Outcome::kWrongAnswer) << cheat << ": " << r.message;
    EXPECT_THAT(r.message, HasSubstr("(right ")) << cheat;
    EXPECT_EQ(r.difference.output, "out");
    EXPECT_EQ(r.difference.index.size(), 3u);
  }
}

TEST_F(DeviceWary, WhatTakesLongerOnNewInputsIsDoubted) {
  const RunReply r = run_warily("slow_on_news");
  EXPECT_EQ(r.outcome, Outcome::kCrashed);
  EXPECT_TRUE(r.doubted);
  EXPECT_THAT(r.message, HasSubstr("after some elements of them changed"));
  EXPECT_TRUE(r.run_ns.empty());
}

TEST_F(DeviceWary, WritingToAnInputIsTold) {
  RunRequest r = wary_request("writes_input");
  r.check = {100, 100};
  EXPECT_EQ(run(r).message, "wrote to input x");
}

// --- operands that are in and out ---

class DeviceInOut : public DeviceWary {
 protected:
  void SetUp() override {
    DeviceWary::SetUp();
    std::vector<float> before(kCount);
    std::vector<double> after(kCount), other(kCount);
    for (int64_t i = 0; i < kCount; ++i) {
      const float x = 0.25f + static_cast<float>((i * 7919) % 1009) / 1009.0f;
      before[i] = static_cast<float>(i % 5);
      after[i] = before[i] + x;
      other[i] = before[i] + (i == 700 ? 5.0f : x);
    }
    write("before.f32", before);
    ASSERT_TRUE(write_reference(dir_ / "out.ref", after, {4, 8, 40}, ReferenceKind::kFull).is_ok());
    ASSERT_TRUE(write_reference(dir_ / "other.ref", other, {4, 8, 40}, ReferenceKind::kFull).is_ok());
  }
  // Takes no other candidates: their reference is another one now.
  void TearDown() override {}

  RunRequest adding_request() {
    Manifest m = device_manifest();
    m.args[1].role = BufferRole::kInOut;
    RunRequest r = device_request(module_of("accumulates ns=3000"), std::move(m));
    r.inputs.push_back({"out", (dir_ / "before.f32").string()});
    return r;
  }
};

TEST_F(DeviceInOut, ItIsAsItWasBeforeEachCall) {
  for (const Caches caches : {Caches::kWarm, Caches::kFlush, Caches::kRotate}) {
    RunRequest r = adding_request();
    r.caches = caches;
    const RunReply reply = run(r);
    EXPECT_EQ(reply.outcome, Outcome::kOk) << caches_name(caches) << ": " << reply.message << reply.error;
    for (const double ns : reply.run_ns) EXPECT_NEAR(ns, 3000, 1) << "restoring is not timed";
  }
}

TEST_F(DeviceInOut, AWaryRunRestoresItToo) {
  RunRequest r = adding_request();
  r.wary = true;
  r.others = {{.inputs = {{"x", (dir_ / "other.f32").string()}},
               .references = {{"out", (dir_ / "other.ref").string()}}}};
  const RunReply reply = run(r);
  EXPECT_EQ(reply.outcome, Outcome::kOk) << reply.message << reply.error;
}

TEST_F(DeviceInOut, ADataFileOfItIsNeeded) {
  RunRequest r = adding_request();
  r.inputs.pop_back();
  const Result<RunReply> reply = runner->run(r);
  EXPECT_THAT(reply.message(), HasSubstr("no data file for inout out"));
}

}  // namespace
}  // namespace tuner
