// Candidates that start threads of their own, as users' kernels do: OpenMP's and pthreads. They are measured
// as others are, on the CPUs that were asked for, and start no processes.
#include <sched.h>

#include "tests/measure_server/hostile_fixture.h"

namespace tuner {
namespace {

Manifest threaded(Manifest m) {
  m.threads = 2;
  m.own_threads = true;
  m.libraries = {"libgomp.so.1"};
  return m;
}

class OwnThreads : public HostileTest, public testing::WithParamInterface<Isolation> {
 protected:
  Isolation level() const override { return GetParam(); }
  RunReply run_threaded(const std::string& before, const std::string& body, bool own_threads = true) {
    Manifest m = threaded(doubling_manifest());
    m.own_threads = own_threads;
    return run(
        request(build("#include <pthread.h>\n#include <errno.h>\n" + before +
                          "\nint32_t doubling(void* const* args, const tuner_runtime* rt) {" + body + "\n}",
                      m)));
  }
};

// The calls that GCC makes of `#pragma omp parallel`, written out: the fixture's compiler line has no
// -fopenmp.
constexpr const char* kTeam = R"(
void GOMP_parallel(void (*fn)(void*), void* data, unsigned threads, unsigned flags);
int omp_get_thread_num(void);
int omp_get_num_threads(void);
static void share(void* data) {
  void* const* args = data;
  const float* x = args[0];
  float* out = args[1];
  const int t = omp_get_thread_num(), n = omp_get_num_threads();
  for (int i = N * t / n; i < N * (t + 1) / n; ++i) out[i] = 2 * x[i];
}
)";

TEST_P(OwnThreads, OpenMpTeamsAreMeasured) {
  for (const char* threads : {"0", "2", "1", "4"}) {
    const RunReply reply =
        run_threaded(kTeam, std::string("GOMP_parallel(share, (void*)args, ") + threads + ", 0); return 0;");
    EXPECT_EQ(reply.outcome, Outcome::kOk) << threads << ": " << reply.message;
    EXPECT_FALSE(reply.run_ns.empty());
  }
  // As many as the target has, unless the kernel says otherwise.
  const RunReply two =
      run_threaded(kTeam + std::string("static int seen; static void count(void* p) { if "
                                       "(omp_get_thread_num() == 0) seen = omp_get_num_threads(); }"),
                   "GOMP_parallel(count, 0, 0, 0); if (seen != 2) return 7; return doubling_right(args);");
  EXPECT_EQ(two.outcome, Outcome::kOk) << two.message;
}

TEST_P(OwnThreads, ThreadsMayComeAndGo) {
  const RunReply reply = run_threaded(
      "static void* half(void* data) { void* const* args = data; const float* x = args[0]; float* out = "
      "args[1];"
      " for (int i = N / 2; i < N; ++i) out[i] = 2 * x[i]; return 0; }",
      "pthread_t other; if (pthread_create(&other, 0, half, (void*)args) != 0) return 5;"
      "const float* x = args[0]; float* out = args[1]; for (int i = 0; i < N / 2; ++i) out[i] = 2 * x[i];"
      "pthread_join(other, 0); return 0;");
  EXPECT_EQ(reply.outcome, Outcome::kOk) << reply.message;
}

// A kernel of ours has none to start.
TEST_P(OwnThreads, OthersMayNotStartAny) {
  if (level() == Isolation::kNone) GTEST_SKIP() << "level none has no filter";
  const RunReply reply = run_threaded("static void* nothing(void* p) { return p; }",
                                      "pthread_t other; if (pthread_create(&other, 0, nothing, 0) == 0) "
                                      "return 5; return doubling_right(args);",
                                      /*own_threads=*/false);
  EXPECT_EQ(reply.outcome, Outcome::kOk) << reply.message;
}

TEST_P(OwnThreads, NobodyStartsAProcess) {
  if (level() == Isolation::kNone) GTEST_SKIP() << "level none has no filter";
  const RunReply reply = run_threaded("",
                                      "const int child = fork(); if (child == 0) _exit(0); if (child > 0) "
                                      "return 5; return doubling_right(args);");
  EXPECT_EQ(reply.outcome, Outcome::kOk) << reply.message;
}

TEST_P(OwnThreads, TheyStayOnTheCpusThatWereAskedFor) {
  cpu_set_t here;
  ASSERT_EQ(sched_getaffinity(0, sizeof here, &here), 0);
  int last = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(static_cast<size_t>(cpu), &here)) last = cpu;
  RunRequest r = request(build(str("#include <pthread.h>\nstatic int wrong;\nstatic void* look(void* p) { "
                                   "cpu_set_t set; sched_getaffinity(0, sizeof set, &set);"
                                   " if (CPU_COUNT(&set) != 1 || !CPU_ISSET(",
                                   last, ", &set)) wrong = 1; return p; }\n",
                                   "int32_t doubling(void* const* args, const tuner_runtime* rt) { pthread_t "
                                   "other; if (pthread_create(&other, 0, look, 0) != 0) return 5;"
                                   " pthread_join(other, 0); return wrong ? 6 : doubling_right(args); }"),
                               threaded(doubling_manifest())));
  r.cpus = {last};
  const RunReply reply = run(r);
  EXPECT_EQ(reply.outcome, Outcome::kOk) << reply.message;
}

#if defined(__x86_64__)
constexpr const char* kOtherLoader = "ld-linux-aarch64.so.1";  // of another architecture
#else
constexpr const char* kOtherLoader = "ld-linux-x86-64.so.2";
#endif

TEST_P(OwnThreads, ALibraryThatIsNotHereIsTold) {
  Manifest m = threaded(doubling_manifest());
  m.libraries = {kOtherLoader};
  const RunReply reply = run(request(build(
      "int32_t doubling(void* const* args, const tuner_runtime* rt) { return doubling_right(args); }", m)));
  EXPECT_EQ(reply.outcome, Outcome::kBuildError);
  EXPECT_THAT(reply.message, testing::HasSubstr(str("this host has no ", kOtherLoader)));
}

INSTANTIATE_TEST_SUITE_P(Levels, OwnThreads,
                         testing::Values(Isolation::kNone, Isolation::kProcess, Isolation::kStrict),
                         [](const auto& info) { return std::string(isolation_name(info.param)); });

}  // namespace
}  // namespace tuner
