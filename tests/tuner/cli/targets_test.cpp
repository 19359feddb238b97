// Targets as people meet them: code for an older CPU is measured here and recorded so, what cannot be
// measured is refused at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler_core/backend.h"
#include "compiler_core/codegen/compile.h"
#include "tests/tuner/cli/real_job.h"

namespace tuner {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Process;
using testing::RealJob;

std::vector<std::string> submit_for(const RealJob& job, const std::string& target) {
  return job.submit(4, {"--target", target});
}

TEST(Targets, CodeForAnOlderCpuIsMeasuredHereAndRecordedSo) {
  const Target older = parse_target("llvm -mcpu=x86-64-v2").value();
  if (const Status runs = runs_here(older); !runs) GTEST_SKIP() << runs.message();
  if (host_target().name() == older.name()) GTEST_SKIP() << "this CPU is itself " << older.name();
  RealJob job;
  Process submit(submit_for(job, older.name()), job.folder.file("submit"));
  ASSERT_EQ(submit.wait(120s), 0) << submit.err();
  const auto recorded = job.recorded();
  ASSERT_EQ(recorded.size(), 4u);
  int ok = 0;
  for (const auto& [id, t] : recorded) {
    EXPECT_EQ(t.task.target, older.name());
    if (t.record->outcome != Outcome::kOk) continue;
    ++ok;
    EXPECT_EQ(t.record->device_state,
              "code for \"" + older.name() + "\" measured on \"" + host_target().name() + "\"");
  }
  EXPECT_GT(ok, 0);
  // This machine's own code says nothing of the kind.
  Process own(submit_for(job, "cpu"), job.folder.file("own"));
  ASSERT_EQ(own.wait(120s), 0) << own.err();
  for (const auto& [id, t] : job.recorded()) {
    if (t.task.target != host_target().name()) continue;
    EXPECT_EQ(t.record->device_state, "") << id;
  }
}

TEST(Targets, ThreadsMayBeSaidWithoutTheCpusName) {
  RealJob job;
  Process submit(submit_for(job, "cpu -threads=all"), job.folder.file("submit"));
  ASSERT_EQ(submit.wait(120s), 0) << submit.err();
  const auto recorded = job.recorded();
  ASSERT_FALSE(recorded.empty());
  EXPECT_EQ(recorded.begin()->second.task.target, resolve_target("cpu -threads=all")->name());
}

// Each ends at once, in one line, and makes no database.
TEST(Targets, WhatCannotBeMeasuredHereIsRefusedAtOnce) {
  const std::string too_many = std::to_string(resolve_target("cpu -threads=all")->threads + 1);
  const std::vector<std::pair<std::string, std::string>> refused = {
    {"llvm -mcpu=notacpu", "-mcpu=notacpu is not a CPU that LLVM knows"},
    {"llvm -mcpu=haswell -mattr=+nosuchunit", "LLVM knows no such feature"},
    {"cpu -threads=" + too_many, "wants " + too_many + " threads"},
    {"llvm -mcpu=haswell -threads=4096", "4096 threads"},
    {"llvm -mcpu=x86-64 -mattr=+amx-fp8,+avx10.2", "has no"},
#if defined(__x86_64__)
    {"llvm -mcpu=cortex-a72 -mtriple=aarch64-linux-gnu", "another architecture"},
#else
    {"llvm -mcpu=haswell", "another architecture"},
#endif
  };
  for (const auto& [target, why] : refused) {
    if (target.find("avx10.2") != std::string::npos && runs_here(parse_target(target).value())) continue;
    RealJob job;
    Process submit(submit_for(job, target), job.folder.file("submit"));
    EXPECT_EQ(submit.wait(20s), 2) << target << ": " << submit.err();
    const std::string said = submit.err();
    EXPECT_THAT(said, HasSubstr(why)) << target;
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
    EXPECT_TRUE(job.recorded().empty());
    EXPECT_FALSE(std::filesystem::exists(job.db)) << target;
  }
}

}  // namespace
}  // namespace tuner
