// Candidates that make their times look better than their work is.
#include "tests/measure_server/hostile_fixture.h"

namespace tuner {
namespace {

using testing::AnyOf;
using testing::Each;
using testing::Gt;
using testing::HasSubstr;

// About a millisecond of work that no compiler leaves out.
constexpr const char* kWork = "for (volatile int w = 0; w < 600000; ++w);";

class ForgedTimes : public HostileTest, public testing::WithParamInterface<Isolation> {
 protected:
  Isolation level() const override { return GetParam(); }
  void SetUp() override {
    HostileTest::SetUp();
    if (IsSkipped()) return;
    std::vector<float> x(kCount);
    std::vector<double> answer(kCount);
    for (int64_t i = 0; i < kCount; ++i) {
      x[i] = -0.5f - static_cast<float>((i * 6007) % 997) / 997.0f;
      answer[i] = 2.0 * x[i];
    }
    std::ofstream(dir_ / "other.f32", std::ios::binary)
        .write(reinterpret_cast<const char*>(x.data()), kCount * sizeof(float));
    ASSERT_TRUE(write_reference(dir_ / "other.ref", answer, {4, 8, 40}, ReferenceKind::kFull).is_ok());
  }
  RunReply run_on_two(const std::string& body, const std::string& before = "") {
    RunRequest q = request(
        build(before + "int32_t doubling(void* const* args, const tuner_runtime* rt) {" + body + "\n}"));
    q.others = {{.inputs = {{"x", (dir_ / "other.f32").string()}},
                 .references = {{"out", (dir_ / "other.ref").string()}}}};
    q.repeats = 9;
    return run(q);
  }
};

INSTANTIATE_TEST_SUITE_P(Level, ForgedTimes, testing::Values(Isolation::kProcess, Isolation::kStrict),
                         [](const auto& info) { return std::string(isolation_name(info.param)); });

TEST_P(ForgedTimes, AGoodKernelIsRightOnBothInputs) {
  const RunReply r = run_on_two(std::string(kWork) + "return doubling_right(args);");
  ASSERT_EQ(r.outcome, Outcome::kOk) << r.message;
  EXPECT_EQ(r.input_sets, 2);
  EXPECT_THAT(r.run_ns, Each(Gt(1e4)));
}

TEST_P(ForgedTimes, AQuickKernelIsRightOnBothInputs) {
  const RunReply r = run_on_two("return doubling_right(args);");
  EXPECT_EQ(r.outcome, Outcome::kOk) << r.message;
}

TEST_P(ForgedTimes, TheAnswerOfTheFirstCallIsCopied) {
  const RunReply r = run_on_two(str("static float kept[N]; static int known; if (!known++) {", kWork,
                                    "doubling_right(args); memcpy(kept, args[1], sizeof kept); } else "
                                    "memcpy(args[1], kept, sizeof kept); return 0;"));
  EXPECT_EQ(r.outcome, Outcome::kWrongAnswer);
  EXPECT_THAT(r.message, HasSubstr("on inputs it had not seen"));
}

TEST_P(ForgedTimes, ReturnsIfTheOutputLooksRight) {
  const RunReply r =
      run_on_two(str("const float* x = args[0]; float* out = args[1];"
                     "if (out[0] == 2 * x[0] && out[N - 1] == 2 * x[N - 1]) return 0;",
                     kWork, "return doubling_right(args);"));
  EXPECT_EQ(r.outcome, Outcome::kWrongAnswer);
  EXPECT_THAT(r.message, HasSubstr("a timed call did not write all of output out again"));
}

TEST_P(ForgedTimes, ReturnsIfTheWholeOutputIsRight) {
  const RunReply r =
      run_on_two(str("const float* x = args[0]; const float* out = args[1]; int right = 1;"
                     "for (int i = 0; i < N; ++i) right &= out[i] == 2 * x[i];"
                     "if (right) return 0;",
                     kWork, "return doubling_right(args);"));
  // What is not written again is found to be wrong by itself, and done anew: as slow as it is.
  EXPECT_THAT(r.outcome, AnyOf(Outcome::kOk, Outcome::kCrashed)) << r.message;
  if (r.outcome == Outcome::kOk) {
    EXPECT_THAT(r.run_ns, Each(Gt(1e4)));
  }
}

TEST_P(ForgedTimes, KeepsAnAnswerForEveryInputItHasSeen) {
  const RunReply r =
      run_on_two(str("static float seen[4][N], kept[4][N]; static int known;"
                     "for (int k = 0; k < known; ++k)"
                     "  if (memcmp(seen[k], args[0], sizeof seen[k]) == 0) { memcpy(args[1], kept[k], sizeof "
                     "kept[k]); return 0; }",
                     kWork,
                     "doubling_right(args);"
                     "if (known < 4) { memcpy(seen[known], args[0], sizeof seen[0]); memcpy(kept[known++], "
                     "args[1], sizeof seen[0]); }"
                     "return 0;"));
  EXPECT_EQ(r.outcome, Outcome::kCrashed);
  EXPECT_THAT(r.message, HasSubstr("its times do not add up: a call on inputs that it had not seen took"));
}

TEST_P(ForgedTimes, WorksInEveryTenthCall) {
  const RunReply r = run_on_two("static int calls; return ++calls % 10 ? 0 : doubling_right(args);");
  EXPECT_EQ(r.outcome, Outcome::kWrongAnswer) << r.message;
}

TEST_P(ForgedTimes, WorksInEveryTenthCallAndWhereItSeesThatItMust) {
  const RunReply r = run_on_two(
      "static int calls; const float first = *(float*)args[1];"
      "return first == first && first == 2 * *(float*)args[0] && ++calls % 10 ? 0 : doubling_right(args);");
  EXPECT_EQ(r.outcome, Outcome::kWrongAnswer) << r.message;
  EXPECT_THAT(r.message, HasSubstr("a timed call did not write all of output out again"));
}

// The clock of the process is ours to ask, but its code is the candidate's to change.
constexpr const char* kSlowClock = R"(
  #include <dlfcn.h>
  #include <sys/syscall.h>
  static int slow(clockid_t id, struct timespec* t) {
    static struct timespec first[16];
    long r = syscall(SYS_clock_gettime, id, t);
    struct timespec* f = &first[id & 15];
    if (f->tv_sec == 0 && f->tv_nsec == 0) *f = *t;
    long ns = ((t->tv_sec - f->tv_sec) * 1000000000l + t->tv_nsec - f->tv_nsec) * SPEED + f->tv_nsec;
    t->tv_sec = f->tv_sec + ns / 1000000000l, t->tv_nsec = ns % 1000000000l;
    return r;
  }
  static void patch(void) {
    static int done; if (done++) return;
    char* at = dlsym(RTLD_DEFAULT, "clock_gettime");
    mprotect((void*)((long)at & -4096), 8192, PROT_READ | PROT_WRITE | PROT_EXEC);
#if defined(__x86_64__)
    at[0] = 0x48, at[1] = 0xb8; void* to = slow; memcpy(at + 2, &to, 8); at[10] = 0xff, at[11] = 0xe0;
#else
    unsigned jump[] = {0x58000050, 0xd61f0200}; void* to = slow;
    memcpy(at, jump, 8), memcpy(at + 8, &to, 8); __builtin___clear_cache(at, at + 16);
#endif
  }
)";

std::string slow_clock(double speed) { return str("#define SPEED ", speed, "\n", kSlowClock); }

TEST_P(ForgedTimes, AClockThatIsTwentyTimesSlow) {
  const RunReply r = run_on_two(str("patch();", kWork, "return doubling_right(args);"), slow_clock(0.05));
  EXPECT_EQ(r.outcome, Outcome::kCrashed) << r.message;
  EXPECT_THAT(r.message, HasSubstr("its times do not add up: its clock"));
}

// Nothing but the clocks shows it where there is one set of inputs: the call on others is not there.
TEST_P(ForgedTimes, ASlowClockIsFoundWithOneSetOfInputsForCallsOfAnyLength) {
  for (const char* const work : {"", "for (volatile int w = 0; w < 6000; ++w);", kWork}) {
    for (const double speed : {0.96, 0.9, 0.8, 0.7, 0.6}) {
      RunRequest q = request(build(slow_clock(speed) +
                                   "int32_t doubling(void* const* args, const tuner_runtime* rt) { patch();" +
                                   work + "return doubling_right(args); }"));
      q.repeats = 9;
      const RunReply r = run(q);
      EXPECT_EQ(r.outcome, Outcome::kCrashed) << work << " at " << speed;
    }
  }
}

// The wall clock is right: what the kernel says of its CPU time shows it.
TEST_P(ForgedTimes, AClockOfCpuTimeThatIsSlowIsFound) {
  const std::string clock = slow_clock(0.7);
  const size_t first_line = clock.find("long r = syscall");
  const std::string of_cpu = "if (id == CLOCK_MONOTONIC) return syscall(SYS_clock_gettime, id, t);";
  const RunReply r = run_on_two(str("static int begun; patch(); struct timespec t;"
                                    "if (!begun++) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);",
                                    "for (int i = 0; i < 8; ++i)", kWork, "return doubling_right(args);"),
                                str(clock.substr(0, first_line), of_cpu, clock.substr(first_line)));
  EXPECT_EQ(r.outcome, Outcome::kCrashed) << r.message;
  EXPECT_THAT(r.message, HasSubstr("of CPU time, ours "));
}

// The system may stop a process between the readings of two clocks. Once or twice says nothing; whoever hides
// his work there has to do it again and again.
TEST_P(ForgedTimes, AStopBetweenTwoClocksIsNoForgeryUnlessItComesOften) {
  const std::string clock = slow_clock(1), patch = clock.substr(clock.find("static void patch"));
  const auto stopped = [&](const std::string& when, int ns) {
    const std::string patched =
        str("#include <dlfcn.h>\n#include <sys/syscall.h>\n",
            "static int ran; static int slow(clockid_t id, struct timespec* t) {",
            "  static int pieces; long r = syscall(SYS_clock_gettime, id, t);",
            "  const struct timespec wait = {0, ", ns, "};",
            // The first reading behind a call.
            "  if (id == CLOCK_MONOTONIC && ran) { ran = 0; ++pieces;", "    if (", when,
            ") syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &wait, 0); }", "  return r; }\n", patch);
    return run_on_two(str("patch(); ran = 1;", kWork, "return doubling_right(args);"), patched);
  };
  const RunReply once = stopped("pieces == 4", 20'000'000);
  EXPECT_EQ(once.outcome, Outcome::kOk) << once.message;
  const RunReply often = stopped("pieces % 3 == 0", 1'000'000);
  EXPECT_EQ(often.outcome, Outcome::kCrashed);
  EXPECT_TRUE(often.doubted);
  EXPECT_THAT(often.message, HasSubstr("its times do not add up: its clock"));
}

TEST_P(ForgedTimes, EndsBeforeItsLastTurnWasGiven) {
  const RunReply r = run_on_two("doubling_right(args); _exit(0);");
  EXPECT_EQ(r.outcome, Outcome::kCrashed);
  EXPECT_THAT(r.message, HasSubstr("exited with status 0 before finishing"));
}

TEST_P(ForgedTimes, FurtherInputsThatDoNotFitAreNotItsFault) {
  RunRequest q = request(build_kernel("return doubling_right(args);"));
  q.others = {{.inputs = {}, .references = {{"out", (dir_ / "other.ref").string()}}}};
  Result<RunReply> r = runner->run(q);
  EXPECT_EQ(r.status().code(), StatusCode::kFailed);
  EXPECT_THAT(r.message(), HasSubstr("a further set of inputs lacks x"));
  q.others = {{.inputs = {{"x", (dir_ / "other.ref").string()}},
               .references = {{"out", (dir_ / "other.ref").string()}}}};
  r = runner->run(q);
  EXPECT_EQ(r.status().code(), StatusCode::kFailed);
  EXPECT_THAT(r.message(), HasSubstr("input x of the artifact"));
}

}  // namespace
}  // namespace tuner
