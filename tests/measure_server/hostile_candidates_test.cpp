// Candidates that misbehave: each gets the right verdict, leaves no process behind, and the next candidate is
// unaffected.
#include "tests/measure_server/hostile_fixture.h"

namespace tuner {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::StartsWith;

class HostileCandidate : public HostileTest, public testing::WithParamInterface<Isolation> {
 protected:
  Isolation level() const override { return GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(Level, HostileCandidate,
                         testing::Values(Isolation::kNone, Isolation::kProcess, Isolation::kStrict),
                         [](const auto& info) { return std::string(isolation_name(info.param)); });

TEST_P(HostileCandidate, SegmentationFault) {
  const RunReply r = run_kernel("*(volatile int*)16 = 1; return 0;");
  EXPECT_EQ(r.outcome, Outcome::kCrashed);
  EXPECT_EQ(r.message, "signal 11 (SIGSEGV) while in its first run");
}

TEST_P(HostileCandidate, IllegalInstruction) {
  const RunReply r = run_kernel("__builtin_trap(); return 0;");
  EXPECT_EQ(r.outcome, Outcome::kCrashed);
  EXPECT_THAT(r.message, StartsWith("signal 4 (SIGILL)"));
}

TEST_P(HostileCandidate, Abort) {
  const RunReply r = run_kernel("abort();");
  EXPECT_EQ(r.outcome, Outcome::kCrashed);
  EXPECT_THAT(r.message, StartsWith("signal 6 (SIGABRT)"));
}

TEST_P(HostileCandidate, DivisionByZero) {
  const RunReply r = run_kernel("volatile int zero = 0, many = 1234; return many / zero;");
  EXPECT_EQ(r.outcome, Outcome::kCrashed);
  EXPECT_THAT(r.message, StartsWith("signal 8 (SIGFPE)"));
}

TEST_P(HostileCandidate, EarlyExit) {
  const RunReply r = run_kernel("doubling_right(args); exit(0);");
  EXPECT_EQ(r.outcome, Outcome::kCrashed);
  EXPECT_EQ(r.message, "exited with status 0 before finishing, while in its first run");
}

TEST_P(HostileCandidate, EarlyExitWhileTimed) {
  const RunReply r = run_kernel("static int calls; if (++calls > 3) _exit(0); return doubling_right(args);");
  EXPECT_EQ(r.outcome, Outcome::kCrashed);
  EXPECT_EQ(r.message, "exited with status 0 before finishing, while being timed");
}

TEST_P(HostileCandidate, StackOverflow) {
  const RunReply r = run(request(build(R"(
    static int deep(volatile char* above, int n) { volatile char here[4096]; here[0] = above[0]; return n == 0 ? 0 : deep(here, n - 1) + here[0]; }
    int32_t doubling(void* const* args, const tuner_runtime* rt) { return deep(args[0], 1 << 30); })")));
  EXPECT_EQ(r.outcome, Outcome::kCrashed);
  EXPECT_THAT(r.message, StartsWith("signal 11 (SIGSEGV)"));
}

TEST_P(HostileCandidate, ClosingDescriptors) {
  const RunReply r = run_kernel("for (int fd = 0; fd < 1024; ++fd) close(fd); return doubling_right(args);");
  EXPECT_EQ(r.outcome, Outcome::kCrashed);
  EXPECT_THAT(r.message, StartsWith("closed descriptors that are not its own"));
}

TEST_P(HostileCandidate, WriteIntoTheGuardPastTheOutput) {
  const RunReply r = run_kernel("doubling_right(args); ((float*)args[1])[N] = 1; return 0;");
  EXPECT_EQ(r.outcome, Outcome::kCrashed);
  EXPECT_THAT(r.message, StartsWith("signal 11 (SIGSEGV)"));
}

TEST_P(HostileCandidate, WriteIntoTheGuardBeforeTheOutput) {
  const RunReply r = run_kernel("doubling_right(args); ((float*)args[1])[-4096 / 4 - N] = 1; return 0;");
  EXPECT_EQ(r.outcome, Outcome::kCrashed);
  EXPECT_THAT(r.message, StartsWith("signal 11 (SIGSEGV)"));
}

TEST_P(HostileCandidate, WriteJustBeforeTheOutput) {
  const RunReply r = run_kernel("doubling_right(args); ((float*)args[1])[-1] = 1; return 0;");
  EXPECT_EQ(r.outcome, Outcome::kCrashed);
  EXPECT_EQ(r.message, "wrote beside output out");
}

TEST_P(HostileCandidate, ReadPastTheInput) {
  const RunReply r = run_kernel("doubling_right(args); return ((volatile float*)args[0])[N] > 1e9;");
  EXPECT_EQ(r.outcome, Outcome::kCrashed);
  EXPECT_THAT(r.message, StartsWith("signal 11 (SIGSEGV)"));
}

TEST_P(HostileCandidate, WriteIntoTheInput) {
  const RunReply r = run_kernel("((float*)args[0])[0] = 3; return doubling_right(args);");
  EXPECT_EQ(r.outcome, Outcome::kCrashed);
  EXPECT_THAT(r.message, StartsWith("signal 11 (SIGSEGV)"));
}

TEST_P(HostileCandidate, EndlessLoop) {
  RunRequest q = request(build_kernel("for (volatile int i = 0;; ++i); return 0;"));
  q.run_timeout_s = 0.3;
  const RunReply r = run(q);
  EXPECT_EQ(r.outcome, Outcome::kRunTimeout);
  EXPECT_EQ(r.message, "still running after 0.3 s while in its first run");
}

TEST_P(HostileCandidate, Sleep) {
  RunRequest q = request(build_kernel("sleep(1000); return 0;"));
  q.run_timeout_s = 0.3;
  EXPECT_EQ(run(q).outcome, Outcome::kRunTimeout);
}

TEST_P(HostileCandidate, LoopThatIgnoresEverySignalItMay) {
  RunRequest q =
      request(build_kernel("for (int s = 1; s < 65; ++s) signal(s, SIG_IGN); for (;;) pause(); return 0;"));
  q.run_timeout_s = 0.3;
  EXPECT_EQ(run(q).outcome, Outcome::kRunTimeout);
}

TEST_P(HostileCandidate, TouchingAHundredGigabytes) {
  RunRequest q = request(build_kernel(R"(
    for (long done = 0; done < 100l << 30; done += 64l << 20) {
      char* p = mmap(0, 64l << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (p == MAP_FAILED) return -1;
      for (long i = 0; i < 64l << 20; i += 4096) p[i] = 1;
    }
    return doubling_right(args);)"));
  q.memory_limit_bytes = int64_t{256} << 20;
  const RunReply r = run(q);
  EXPECT_EQ(r.outcome, Outcome::kOutOfMemory);
  EXPECT_THAT(r.message, HasSubstr("limit 0.25 GiB while in its first run"));
}

// Shared pages stay when they are given back, and are then in nobody's resident size.
TEST_P(HostileCandidate, EatsMemoryThatIsSharedAndGivenBack) {
  if (level() == Isolation::kNone) GTEST_SKIP() << "this level refuses no system call";
  RunRequest q = request(build_kernel(R"(
    const long size = 4l << 30, part = 64l << 20;
    char* p = mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (long at = 0; at < size; at += part) {
      for (long i = 0; i < part; i += 4096) p[at + i] = 1;
      madvise(p + at, part, MADV_DONTNEED);
    }
    return doubling_right(args);)"));
  q.memory_limit_bytes = int64_t{256} << 20;
  const RunReply r = run(q);
  EXPECT_EQ(r.outcome, Outcome::kOutOfMemory);
  EXPECT_THAT(r.message, HasSubstr("asked for shared memory or huge pages"));
  EXPECT_THAT(r.message, HasSubstr("limit of 0.25 GiB"));
}

// It fails in small pieces, goes on without them, and is right.
TEST_P(HostileCandidate, AsksForALittleSharedMemory) {
  if (level() == Isolation::kNone) GTEST_SKIP() << "this level refuses no system call";
  const RunReply r = run_kernel(
      "if (mmap(0, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0) != MAP_FAILED) return 1;"
      "return doubling_right(args);");
  EXPECT_EQ(r.outcome, Outcome::kOutOfMemory) << r.message;
}

// One page of zeros, seen at ever more places: each 2 MiB of addresses has a page table of its own.
TEST_P(HostileCandidate, EatsMemoryByPageTables) {
  RunRequest q = request(build_kernel(R"(
    const long size = 1l << 40;
    volatile char* p = mmap(0, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return 1;
    madvise((void*)p, size, MADV_NOHUGEPAGE);
    for (long at = 0; at < size; at += 2l << 20) (void)p[at];
    return doubling_right(args);)"));
  q.memory_limit_bytes = int64_t{256} << 20;
  const RunReply r = run(q);
  EXPECT_EQ(r.outcome, Outcome::kOutOfMemory);
  EXPECT_THAT(r.message, HasSubstr("limit 0.25 GiB while in its first run"));
}

// The same with little address space: many mappings far from each other.
TEST_P(HostileCandidate, EatsMemoryByPageTablesOfManyMappings) {
  RunRequest q = request(build_kernel(R"(
    for (long i = 1; i < 60000; ++i) {
      volatile char* p = mmap((void*)(i << 30), 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
      if (p != MAP_FAILED) (void)*p;
    }
    for (;;) pause();)"));
  q.memory_limit_bytes = int64_t{256} << 20;
  const RunReply r = run(q);
  EXPECT_EQ(r.outcome, Outcome::kOutOfMemory);
  EXPECT_THAT(r.message, HasSubstr("limit 0.25 GiB while in its first run"));
}

TEST_P(HostileCandidate, OneWrongElement) {
  const RunReply r =
      run_kernel("doubling_right(args); ((float*)args[1])[(2 * 8 + 5) * 40 + 17] += 0.5f; return 0;");
  EXPECT_EQ(r.outcome, Outcome::kWrongAnswer);
  EXPECT_THAT(r.message, StartsWith("out[2, 5, 17] is "));
  EXPECT_GT(r.max_error, 100);
  EXPECT_TRUE(r.run_ns.empty());
}

TEST_P(HostileCandidate, OneElementNeverWritten) {
  const RunReply r = run_kernel(
      "float* out = args[1]; const float* x = args[0]; for (int i = 0; i < N - 1; ++i) out[i] = 2 * x[i]; "
      "return 0;");
  EXPECT_EQ(r.outcome, Outcome::kWrongAnswer);
  // The comparison finds it, or sooner, one run in a hundred, a spot that was drawn there.
  EXPECT_THAT(r.message, AnyOf(AllOf(StartsWith("out[3, 7, 39] is "), HasSubstr("nan")),
                               HasSubstr("a timed call did not write all of output out")));
}

TEST_P(HostileCandidate, RightAtFirstWrongLater) {
  const RunReply r = run_kernel(
      "static int calls; doubling_right(args); if (++calls > 1) ((float*)args[1])[7] = 0; return 0;");
  EXPECT_EQ(r.outcome, Outcome::kWrongAnswer);
  EXPECT_THAT(r.message, StartsWith("out[0, 0, 7] is 0, reference "));
  EXPECT_THAT(r.message, HasSubstr("right in the first run, wrong while being timed"));
}

TEST_P(HostileCandidate, DoesNothingAfterTheFirstCall) {
  // The answer of the first call must not be found again where the second one should have written.
  const RunReply r = run_kernel("static int calls; return calls++ == 0 ? doubling_right(args) : 0;");
  EXPECT_EQ(r.outcome, Outcome::kWrongAnswer);
}

TEST_P(HostileCandidate, ForkedChildThatSleeps) {
  const RunReply r =
      run_kernel("if (fork() == 0) { setsid(); sleep(1000); _exit(0); } return doubling_right(args);");
  EXPECT_EQ(r.outcome, Outcome::kOk)
      << r.message;  // it cannot fork; what it left behind is looked for in TearDown
}

TEST_P(HostileCandidate, ForkBomb) {
  RunRequest q = request(build_kernel("for (;;) fork();"));
  q.run_timeout_s = 0.3;
  EXPECT_EQ(run(q).outcome, Outcome::kRunTimeout);
}

TEST_P(HostileCandidate, KillsItsParent) {
  if (level() == Isolation::kNone) GTEST_SKIP() << "promised from level process on";
  const RunReply r = run_kernel(
      "kill(getppid(), SIGKILL); kill(-1, SIGKILL); kill(0, SIGTERM); return doubling_right(args);");
  EXPECT_EQ(r.outcome, Outcome::kOk)
      << r.message;  // none of the signals was sent; the runner is the same one, see TearDown
}

TEST_P(HostileCandidate, PrintsWithoutEnd) {
  const RunReply r = run_kernel(
      "for (int i = 0; i < 20000; ++i) { puts(\"out\"); fputs(\"err\\n\", stderr); } return "
      "doubling_right(args);");
  EXPECT_EQ(r.outcome, Outcome::kOk) << r.message;
}

TEST_P(HostileCandidate, OpensSocketsAndWritesFiles) {
  if (level() == Isolation::kNone) GTEST_SKIP() << "promised from level process on";
  const std::string file = (dir_ / "written").string();
  const RunReply r = run_kernel("if (socket(AF_INET, SOCK_STREAM, 0) >= 0 || open(\"" + file +
                                "\", O_CREAT | O_WRONLY, 0600) >= 0) abort(); return doubling_right(args);");
  EXPECT_EQ(r.outcome, Outcome::kOk) << r.message;
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST_P(HostileCandidate, ConstructorThatCrashes) {
  const RunReply r = run(request(build(R"(
    __attribute__((constructor)) static void load(void) { *(volatile int*)16 = 1; }
    int32_t doubling(void* const* args, const tuner_runtime* rt) { return doubling_right(args); })")));
  EXPECT_EQ(r.outcome, Outcome::kCrashed);
  EXPECT_EQ(r.message, "signal 11 (SIGSEGV) while loading");
}

TEST_P(HostileCandidate, ConstructorThatExits) {
  const RunReply r = run(request(build(R"(
    __attribute__((constructor)) static void load(void) { _exit(0); }
    int32_t doubling(void* const* args, const tuner_runtime* rt) { return doubling_right(args); })")));
  EXPECT_EQ(r.outcome, Outcome::kCrashed);
  EXPECT_EQ(r.message, "exited with status 0 before finishing, while loading");
}

TEST_P(HostileCandidate, KernelThatRefuses) {
  const RunReply r = run_kernel("return -7;");
  EXPECT_EQ(r.outcome, Outcome::kCrashed);
  EXPECT_EQ(r.message, "the kernel returned -7 while in its first run");
}

TEST_P(HostileCandidate, EntryMissing) {
  const RunReply r = run(request(build("int32_t something_else(void) { return 0; }")));
  EXPECT_EQ(r.outcome, Outcome::kBuildError);
  EXPECT_EQ(r.message, "cannot be loaded: entry \"doubling\" is not in the shared object");
}

TEST_P(HostileCandidate, UnresolvedSymbol) {
  const RunReply r =
      run(request(build("int nowhere(void); int32_t doubling(void* const* args, const tuner_runtime* rt) { "
                        "return nowhere(); }")));
  EXPECT_EQ(r.outcome, Outcome::kBuildError);
  EXPECT_THAT(r.message, HasSubstr("nowhere"));
}

TEST_P(HostileCandidate, AlteredSharedObjectIsNotRun) {
  // Not the good candidate of TearDown(), which has to stay whole.
  const std::string digest = build_kernel("static volatile int calls; ++calls; return doubling_right(args);");
  std::ofstream(dir_ / "artifacts" / (digest + ".so"), std::ios::app) << "x";
  const Result<RunReply> r = runner->run(request(digest));
  EXPECT_EQ(r.status().code(), StatusCode::kFailed);
  EXPECT_THAT(r.message(), HasSubstr("digest"));
}

TEST_P(HostileCandidate, CrashInAThreadOfThePool) {
  Manifest m = doubling_manifest();
  m.threads = 2;
  const RunReply r = run(request(build(R"(
    static void share(void* closure, int32_t begin, int32_t end, int32_t thread) { if (thread == 1) *(volatile int*)16 = 1; }
    int32_t doubling(void* const* args, const tuner_runtime* rt) {
      rt->parallel_for(rt->pool, N, share, (void*)args);
      return 0;
    })",
                                       m)));
  EXPECT_EQ(r.outcome, Outcome::kCrashed);
  EXPECT_THAT(r.message, StartsWith("signal 11 (SIGSEGV)"));
}

TEST_P(HostileCandidate, WritesPastItsWorkspace) {
  Manifest m = doubling_manifest();
  m.workspace_bytes = 4096;
  const RunReply r =
      run(request(build("int32_t doubling(void* const* args, const tuner_runtime* rt) { "
                        "((char*)rt->workspace)[4096] = 1; return 0; }",
                        m)));
  EXPECT_EQ(r.outcome, Outcome::kCrashed);
  EXPECT_THAT(r.message, StartsWith("signal 11 (SIGSEGV)"));
}

TEST_P(HostileCandidate, OperandsBeyondTheMemoryLimitAreNotEvenMade) {
  Manifest m = doubling_manifest();
  m.workspace_bytes_per_thread = int64_t{1} << 45;
  const RunReply r =
      run(request(build("int32_t doubling(void* const* args, const tuner_runtime* rt) { return 0; }", m)));
  EXPECT_EQ(r.outcome, Outcome::kOutOfMemory);
}

TEST_P(HostileCandidate, KillsItselfSmall) {
  const RunReply r = run_kernel("kill(getpid(), SIGKILL); return 0;");
  EXPECT_EQ(r.outcome, Outcome::kCrashed);
  EXPECT_THAT(r.message, StartsWith("signal 9 (SIGKILL)"));
}

}  // namespace
}  // namespace tuner
