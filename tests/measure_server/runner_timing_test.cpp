// A good candidate: what is timed, how often, and when timing stops. No figure here depends on how busy the
// machine is.
#include <signal.h>
#include <sys/resource.h>

#include <atomic>
#include <thread>

#include "compiler_core/base/cpu_affinity.h"
#include "tests/measure_server/candidate_fixture.h"
#include "tests/support/process_tree.h"
#include "tests/support/wait_until.h"

namespace tuner {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::Each;
using testing::Gt;
using testing::HasSubstr;

constexpr const char* kGood = "return doubling_right(args);";

class RunnerTiming : public CandidateTest {};

TEST_F(RunnerTiming, GoodKernelHasSamplesAndSentinels) {
  const RunReply r = run_kernel(kGood);
  ASSERT_EQ(r.outcome, Outcome::kOk) << r.message;
  EXPECT_EQ(r.message, "");
  EXPECT_GE(r.run_ns.size(), 3u);
  EXPECT_LE(r.run_ns.size(), 5u);
  EXPECT_EQ(r.cpu_ns.size(), r.run_ns.size());
  EXPECT_THAT(r.run_ns, Each(Gt(0)));
  EXPECT_THAT(r.cpu_ns, Each(Gt(0)));
  EXPECT_FALSE(r.cut);
  EXPECT_LE(r.max_error, 1);
  EXPECT_GT(r.sentinel_before_ns, 0);
  EXPECT_GT(r.sentinel_after_ns, 0);
  EXPECT_GT(r.run_ms, 0);
}

TEST_F(RunnerTiming, FreshPagesOfAKernelAreCountedWhileItIsSampled) {
  const RunReply good = run_kernel(kGood);
  ASSERT_EQ(good.outcome, Outcome::kOk) << good.message;
  // 100 pages a call, which are given back at its end.
  const RunReply fresh = run_kernel(
      "char* p = mmap(0, 100 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);"
      "for (int i = 0; i < 100; ++i) p[i * 4096] = 1;"
      "munmap(p, 100 * 4096); return doubling_right(args);");
  ASSERT_EQ(fresh.outcome, Outcome::kOk) << fresh.message;
  const double samples = static_cast<double>(fresh.run_ns.size());
  EXPECT_GE(fresh.facts.at("page_faults"), 100 * samples);  // and those of warming up
  // The good one calls more often in the same time and touches what is there already.
  EXPECT_LT(good.facts.at("page_faults"), 100);
}

TEST_F(RunnerTiming, SamplesAreFilledWithCallsAndGivenPerCall) {
  // The kernel sleeps 0.5 ms; a sample of at least 5 ms holds about ten calls, and each is given as one call.
  RunRequest q = request(build_kernel("usleep(500); return doubling_right(args);"));
  q.min_repeat_ms = 5;
  const RunReply r = run(q);
  ASSERT_EQ(r.outcome, Outcome::kOk) << r.message;
  EXPECT_THAT(r.run_ns, Each(Gt(0.5e6)));
  for (double ns : r.cpu_ns) EXPECT_LT(ns, 0.5e6) << "sleeping takes no CPU time";
}

TEST_F(RunnerTiming, NeverMoreThanTheRepeatsAskedFor) {
  RunRequest q = request(build_kernel(kGood));
  q.repeats = 1;
  EXPECT_EQ(run(q).run_ns.size(), 1u);
  q = request(q.digest);
  q.repeats = 2;
  EXPECT_EQ(run(q).run_ns.size(), 2u);
}

TEST_F(RunnerTiming, StopsEarlyWhenTheMedianIsKnown) {
  // Whatever the samples are, they are near enough to each other for this precision; 200 would be allowed.
  RunRequest q = request(build_kernel(kGood));
  q.repeats = 200;
  q.precision = 1;
  const RunReply r = run(q);
  ASSERT_EQ(r.outcome, Outcome::kOk) << r.message;
  EXPECT_EQ(r.run_ns.size(), 3u);
}

TEST_F(RunnerTiming, PrecisionZeroTakesAllSamples) {
  RunRequest q =
      request(build_kernel("for (volatile int i = 0; i < 100000; ++i); return doubling_right(args);"));
  q.repeats = 20;
  q.precision = 0;
  q.slow_above_ns = 10;
  const RunReply r = run(q);
  ASSERT_EQ(r.outcome, Outcome::kOk) << r.message;
  // Of samples that stayed disturbed for all its patience the runner keeps none, when there are calm ones
  // enough.
  if (r.retaken == 0) {
    EXPECT_EQ(r.run_ns.size(), 20u);
  }
  EXPECT_GE(r.run_ns.size(), 3u);
}

// Somebody on the same core, who runs while the kernel waits: pulses of a few microseconds beside calls of
// milliseconds do not see him. That the core was lost does.
TEST_F(RunnerTiming, CallsThatLostTheirCoreAreTakenAnew) {
  RunRequest q =
      request(build_kernel("for (volatile int i = 0; i < 10000000; ++i); return doubling_right(args);"));
  q.min_repeat_ms = 0;
  q.repeats = 10;
  q.precision = 0;
  q.cpus = {usable_cpus().back()};
  std::atomic<bool> over{false};
  rusage used{};
  std::thread other([&] {
    const OnCpus there(q.cpus);
    while (!over) {
    }
    getrusage(RUSAGE_THREAD, &used);
  });
  const RunReply r = run(q);
  over = true;
  other.join();
  ASSERT_EQ(r.outcome, Outcome::kOk) << r.message;
  if (used.ru_nivcsw == 0) GTEST_SKIP() << "this system does not count involuntary context switches";
  EXPECT_GT(r.retaken, 0);
  EXPECT_GT(r.slices, r.retaken);
}

// Others may have its core most of the time. One that never ends comes to its end all the same.
TEST_F(RunnerTiming, WhatItWaitsForItsCoreIsNotItsOwnTime) {
  const int cpu = usable_cpus().back();
  std::atomic<bool> over = false;
  std::vector<std::thread> others;
  for (int i = 0; i < 2; ++i)
    others.emplace_back([&] {
      const OnCpus here({cpu});
      while (!over) {
      }
    });
  const auto run_for = [&](const std::string& body, double limit_s) {
    RunRequest q = request(build_kernel(body));
    q.cpus = {cpu};
    q.run_timeout_s = limit_s;
    return run(q);
  };
  const RunReply slow = run_for(
      "static struct timespec t; while (t.tv_sec == 0 && t.tv_nsec < 300000000) clock_gettime("
      "CLOCK_THREAD_CPUTIME_ID, &t); return doubling_right(args);",
      0.5);
  const RunReply endless = run_for("for (;;) {}", 0.2);
  over = true;
  for (std::thread& other : others) other.join();
  EXPECT_EQ(slow.outcome, Outcome::kOk) << slow.message;
  EXPECT_EQ(endless.outcome, Outcome::kRunTimeout);
  EXPECT_LT(endless.run_ms, 2000);
}

TEST_F(RunnerTiming, ClearlySlowerCandidateIsTimedWithFewerSamples) {
  RunRequest q =
      request(build_kernel("for (volatile int i = 0; i < 100000; ++i); return doubling_right(args);"));
  q.repeats = 200;
  q.precision = 1e-9;
  q.slow_above_ns = 10;
  const RunReply r = run(q);
  ASSERT_EQ(r.outcome, Outcome::kOk) << r.message;
  EXPECT_FALSE(r.cut);
  EXPECT_GE(r.run_ns.size(), 2u);
  EXPECT_LT(r.run_ns.size(), 20u);
}

TEST_F(RunnerTiming, HopelessCandidateIsCutAfterOneWarmSample) {
  RunRequest q =
      request(build_kernel("for (volatile int i = 0; i < 100000; ++i); return doubling_right(args);"));
  q.cut_above_ns = 10;
  const RunReply r = run(q);
  ASSERT_EQ(r.outcome, Outcome::kOk) << r.message;
  EXPECT_TRUE(r.cut);
  ASSERT_EQ(r.run_ns.size(), 1u);
  EXPECT_GT(r.run_ns[0], q.cut_above_ns);
}

TEST_F(RunnerTiming, ColdFirstCallsDecideNothing) {
  // The first call sleeps longer than the limit, every later one does next to nothing.
  RunRequest q = request(
      build_kernel("static int calls; if (calls++ == 0) usleep(900000); return doubling_right(args);"));
  q.cut_above_ns = 800e6;
  const RunReply r = run(q);
  ASSERT_EQ(r.outcome, Outcome::kOk) << r.message;
  EXPECT_FALSE(r.cut);
}

TEST_F(RunnerTiming, WrongAnswerIsNotHiddenByTheCut) {
  RunRequest q = request(build_kernel("doubling_right(args); ((float*)args[1])[0] = 9; return 0;"));
  q.cut_above_ns = 1;
  EXPECT_EQ(run(q).outcome, Outcome::kWrongAnswer);
}

TEST_F(RunnerTiming, SlowKernelLeavesTimeForTheLastRun) {
  // 0.2 s a call and 6 s in all: sampling stops at half of the limit, so the run after timing fits. All 100
  // samples would not.
  RunRequest q = request(build_kernel("usleep(200000); return doubling_right(args);"));
  q.run_timeout_s = 6;
  q.repeats = 100;
  const RunReply r = run(q);
  ASSERT_EQ(r.outcome, Outcome::kOk) << r.message;
  EXPECT_LT(r.run_ns.size(), 100u);
}

TEST_F(RunnerTiming, PackingRunsOnceBeforeTheFirstCall) {
  Manifest m = doubling_manifest();
  m.args = {m.args[0], {"packed_w", BufferRole::kPacked, DType::kFloat32, {4}, "", 16}, m.args[1]};
  m.pack_entry = "doubling_pack";
  m.pack_args = {{"w", BufferRole::kConstant, DType::kFloat32, {4}, "", 16},
                 {"packed_w", BufferRole::kPacked, DType::kFloat32, {4}, "", 16}};
  m.workspace_bytes = 100;
  const std::vector<float> w = {2, 4, 8, 16};
  std::ofstream(dir_ / "w.f32", std::ios::binary).write(reinterpret_cast<const char*>(w.data()), 16);
  RunRequest q = request(build(R"(
    static int packed;
    int32_t doubling_pack(void* const* args, const tuner_runtime* rt) {
      if (packed++) abort();
      for (int i = 0; i < 4; ++i) ((float*)args[1])[i] = ((float*)args[0])[i] / (1 << i);
      return 0;
    }
    int32_t doubling(void* const* args, const tuner_runtime* rt) {
      if (packed != 1) return -1;
      float* buffer = rt->workspace;
      for (int i = 0; i < 25; ++i) buffer[i] = 0;
      const float* x = args[0], *scale = args[1];
      float* out = args[2];
      for (int i = 0; i < N; ++i) out[i] = scale[i % 4] * x[i] + buffer[i % 25];
      return 0;
    })",
                               m));
  q.inputs.push_back({"w", (dir_ / "w.f32").string()});
  const RunReply r = run(q);
  ASSERT_EQ(r.outcome, Outcome::kOk) << r.message;
  EXPECT_GT(r.run_ns.size(), 1u) << "samples, none of them of packing: a second call of it aborts";
}

TEST_F(RunnerTiming, ParallelKernelRunsOnItsThreads) {
  Manifest m = doubling_manifest();
  m.threads = 2;
  const RunReply r = run(request(build(R"(
    static int seen[2];
    static void share(void* closure, int32_t begin, int32_t end, int32_t thread) {
      void* const* args = closure;
      seen[thread] = 1;
      for (int i = begin; i < end; ++i) ((float*)args[1])[i] = 2 * ((const float*)args[0])[i];
    }
    int32_t doubling(void* const* args, const tuner_runtime* rt) {
      if (rt->abi_version != TUNER_ABI_VERSION || rt->num_threads != 2) return -1;
      rt->parallel_for(rt->pool, N, share, (void*)args);
      return seen[0] + seen[1] == 2 ? 0 : -2;
    })",
                                       m)));
  EXPECT_EQ(r.outcome, Outcome::kOk) << r.message;
}

TEST_F(RunnerTiming, PinsToTheGivenCpu) {
  RunRequest q =
      request(build_kernel("cpu_set_t s; sched_getaffinity(0, sizeof s, &s); if (CPU_COUNT(&s) != 1 || "
                           "!CPU_ISSET(0, &s)) return -3; return doubling_right(args);"));
  q.cpus = {0};
  EXPECT_EQ(run(q).message, "");
}

TEST_F(RunnerTiming, MissingAndMisfittingDataAreNotTheCandidatesFault) {
  RunRequest q = request(build_kernel(kGood));
  q.inputs[0].path = (dir_ / "absent").string();
  Result<RunReply> r = runner->run(q);
  EXPECT_EQ(r.status().code(), StatusCode::kFailed);
  EXPECT_THAT(r.message(), HasSubstr("absent: cannot be read"));
  q = request(q.digest);
  std::ofstream(dir_ / "x.f32", std::ios::app) << "more";
  r = runner->run(q);
  EXPECT_EQ(r.status().code(), StatusCode::kFailed);
  EXPECT_THAT(r.message(), HasSubstr("has 5124 bytes, input x of the artifact 5120"));
}

TEST_F(RunnerTiming, ReplacedDataFileIsReadAgain) {
  const std::string digest = build_kernel(kGood);
  EXPECT_EQ(run(request(digest)).outcome, Outcome::kOk);
  std::vector<double> other(kCount, 1.0);
  ASSERT_TRUE(write_reference(dir_ / "out.ref", other, {4, 8, 40}, ReferenceKind::kFull).is_ok());
  EXPECT_EQ(run(request(digest)).outcome, Outcome::kWrongAnswer);
}

TEST_F(RunnerTiming, ChecksumReferenceIsEnough) {
  std::vector<double> answer(kCount);
  for (int64_t i = 0; i < kCount; ++i)
    answer[i] = 2.0 * (0.25f + static_cast<float>((i * 7919) % 1009) / 1009.0f);
  ASSERT_TRUE(write_reference(dir_ / "out.ref", answer, {4, 8, 40}, ReferenceKind::kChecksums).is_ok());
  EXPECT_EQ(run_kernel(kGood).outcome, Outcome::kOk);
  EXPECT_EQ(run_kernel("doubling_right(args); ((float*)args[1])[777] += 1; return 0;").outcome,
            Outcome::kWrongAnswer);
}

TEST_F(RunnerTiming, ReferenceOfAnotherShapeIsNotTheCandidatesFault) {
  ASSERT_TRUE(
      write_reference(dir_ / "out.ref", std::vector<double>(6), {2, 3}, ReferenceKind::kFull).is_ok());
  const Result<RunReply> r = runner->run(request(build_kernel(kGood)));
  EXPECT_EQ(r.status().code(), StatusCode::kFailed);
  EXPECT_THAT(r.message(), HasSubstr("size is not that of output out"));
}

TEST_F(RunnerTiming, CallersQueueForTheirTurn) {
  const std::string digest = build_kernel("usleep(20000); return doubling_right(args);");
  std::vector<RunRequest> requests;
  for (int i = 0; i < 4; ++i) requests.push_back(request(digest));
  std::vector<std::string> outcomes(requests.size());
  std::vector<std::thread> callers;
  for (size_t i = 0; i < requests.size(); ++i)
    callers.emplace_back([&, i] {
      const Result<RunReply> r = runner->run(requests[i]);
      outcomes[i] = r.is_ok() ? str(*r->outcome) : r.message();
    });
  for (std::thread& t : callers) t.join();
  EXPECT_THAT(outcomes, Each(std::string("ok")));
}

TEST_F(RunnerTiming, CancelEndsTheRunAtOnce) {
  const RunRequest q = request(build_kernel("for (;;) pause();"));
  std::atomic<bool> ended = false;
  std::thread canceller([&] {
    while (!ended) {  // the first time the run may not have begun
      let_pass(milliseconds(200));
      runner->cancel(q.id + 1000);  // another run: no effect
      runner->cancel(q.id);
    }
  });
  const Result<RunReply> r = runner->run(q);
  ended = true;
  canceller.join();
  EXPECT_EQ(r.status().code(), StatusCode::kAborted) << "its own limit ends it as run_timeout";
  EXPECT_EQ(run_kernel(kGood).outcome, Outcome::kOk);
}

TEST_F(RunnerTiming, DeadRunnerIsRestartedAndTheCandidateNotBlamed) {
  const RunRequest q = request(build_kernel("for (;;) pause();"));
  const pid_t first = runner->pid();
  std::thread killer([&] {
    EXPECT_TRUE(wait_until(std::chrono::seconds(30), [&] { return !children_of(first).empty(); }));
    kill(first, SIGKILL);
  });
  const Result<RunReply> r = runner->run(q);
  killer.join();
  EXPECT_EQ(r.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(r.message(), HasSubstr("the runner died (signal 9 (SIGKILL))"));
  EXPECT_NE(runner->pid(), first);
  EXPECT_EQ(run_kernel(kGood).outcome, Outcome::kOk);
}

TEST_F(RunnerTiming, SilentRunnerIsReplacedAtTheDeadline) {
  const RunRequest q = request(build_kernel(kGood));
  const pid_t first = runner->pid();
  kill(first, SIGSTOP);
  const Result<RunReply> r = runner->run(q, steady_clock::now() + milliseconds(300));
  EXPECT_EQ(r.status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_NE(runner->pid(), first);
  EXPECT_EQ(run_kernel(kGood).outcome, Outcome::kOk);
}

TEST_F(RunnerTiming, ProbeTellsTheMachine) {
  const Result<ProbeReply> r = runner->probe(1);
  ASSERT_TRUE(r.is_ok()) << r.message();
  EXPECT_EQ(r->harness_abi, kHarnessAbi);
  EXPECT_THAT(r->hardware, HasSubstr(" cpus"));
  ASSERT_EQ(r->peaks.float32.size(), 1u);
  const bool vectors = r->peaks.float32[0] > 0;
  EXPECT_EQ(r->peaks.of(DType::kBFloat16, 1) > 0, vectors);
  EXPECT_EQ(r->peaks.of(DType::kInt8, 1) > 0, vectors);
}

TEST(RunnerStart, SomethingElseIsNoRunner) {
  EXPECT_THAT(RunnerClient::start("/nonexistent/runner").message(),
              HasSubstr("/nonexistent/runner: cannot be started"));
  EXPECT_THAT(RunnerClient::start("/bin/true").message(), HasSubstr("does not answer as a runner"));
}

}  // namespace
}  // namespace tuner
