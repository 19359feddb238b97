// Runs that look closely (RunRequest::wary): what a kernel may keep, change or leave changed.
#include <functional>

#include "tests/measure_server/hostile_fixture.h"

namespace tuner {
namespace {

using testing::HasSubstr;

// About 50 us of work that no compiler leaves out.
constexpr const char* kWork = "for (volatile int w = 0; w < 30000; ++w);";

class WaryRuns : public HostileTest, public testing::WithParamInterface<Isolation> {
 protected:
  Isolation level() const override { return GetParam(); }
  void SetUp() override {
    HostileTest::SetUp();
    if (IsSkipped()) return;
    write_set("other", [](int64_t i) { return -0.5f - static_cast<float>((i * 6007) % 997) / 997.0f; });
    // As the first set (candidate_fixture.h), but for one element.
    write_set("near", [](int64_t i) {
      return i == 700 ? 9 : 0.25f + static_cast<float>((i * 7919) % 1009) / 1009.0f;
    });
  }
  void write_set(const std::string& name, const std::function<float(int64_t)>& of) {
    std::vector<float> x(kCount);
    std::vector<double> answer(kCount);
    for (int64_t i = 0; i < kCount; ++i) answer[i] = 2.0 * (x[i] = of(i));
    std::ofstream(dir_ / (name + ".f32"), std::ios::binary)
        .write(reinterpret_cast<const char*>(x.data()), kCount * sizeof(float));
    ASSERT_TRUE(write_reference(dir_ / (name + ".ref"), answer, {4, 8, 40}, ReferenceKind::kFull).is_ok());
  }
  RunReply run_warily(const std::string& body, int prove_with = 1, bool wary = true,
                      const std::string& before = "") {
    RunRequest q = request(
        build(before + "int32_t doubling(void* const* args, const tuner_runtime* rt) {" + body + "\n}"));
    for (const char* name : {"other", "near"})
      q.others.push_back({.inputs = {{"x", (dir_ / (std::string(name) + ".f32")).string()}},
                          .references = {{"out", (dir_ / (std::string(name) + ".ref")).string()}}});
    q.prove_with = prove_with;
    q.repeats = 9;
    q.wary = wary;
    return run(q);
  }
};

INSTANTIATE_TEST_SUITE_P(Level, WaryRuns,
                         testing::Values(Isolation::kNone, Isolation::kProcess, Isolation::kStrict),
                         [](const auto& info) { return std::string(isolation_name(info.param)); });

TEST_P(WaryRuns, AGoodKernelIsRight) {
  for (const char* work : {"", kWork})
    for (const int set : {1, 2}) {
      const RunReply r = run_warily(std::string(work) + "return doubling_right(args);", set);
      EXPECT_EQ(r.outcome, Outcome::kOk) << r.message;
    }
}

// It compares all of its inputs, which costs little beside its work: calls on others take longer, but not
// by so much that a single one would tell.
TEST_P(WaryRuns, AnAnswerForTheSameInputsIsDoubted) {
  const auto judged = [&] {
    return run_warily(str("static float seen[N], kept[N]; if (memcmp(seen, args[0], sizeof seen)) {", kWork,
                          "doubling_right(args); memcpy(seen, args[0], sizeof seen); memcpy(kept, args[1], "
                          "sizeof kept); } else memcpy(args[1], kept, sizeof kept); return 0;"));
  };
  RunReply r = judged();
  // A call that the machine interrupted tells by itself.
  for (int again = 0; again < 9 && r.message.find("had not seen") != std::string::npos; ++again) {
    EXPECT_TRUE(r.doubted);
    r = judged();
  }
  EXPECT_EQ(r.outcome, Outcome::kCrashed);
  EXPECT_TRUE(r.doubted);
  EXPECT_THAT(r.message, HasSubstr("after some elements of them changed"));
}

// Somebody else may have the core during most calls of one kind. What counts is the work of a call.
TEST_P(WaryRuns, ACallThatWaitedDidNoMoreWork) {
  const RunReply r =
      run_warily(str("static float seen[N]; if (memcmp(seen, args[0], sizeof seen)) {"
                     "memcpy(seen, args[0], sizeof seen); usleep(1000); } for (int i = 0; i < 20; ++i)",
                     kWork, "return doubling_right(args);"));
  EXPECT_EQ(r.outcome, Outcome::kOk) << r.message;
}

TEST_P(WaryRuns, ASampleOfTheInputsDoesNotTellThatOneElementChanged) {
  const std::string cheat =
      "static float seen, kept[N]; if (seen != *(float*)args[0]) { seen = *(float*)args[0]; "
      "doubling_right(args); "
      "memcpy(kept, args[1], sizeof kept); } else memcpy(args[1], kept, sizeof kept); return 0;";
  EXPECT_EQ(run_warily(cheat, 1, /*wary=*/false).outcome, Outcome::kOk)
      << "all elements changed, the first among them";
  const RunReply r = run_warily(cheat, 2, /*wary=*/false);
  EXPECT_EQ(r.outcome, Outcome::kWrongAnswer);
  EXPECT_EQ(r.difference.output, "out");
  EXPECT_EQ(r.difference.index, (std::vector<int64_t>{2, 1, 20}));
  EXPECT_EQ(r.difference.expected, "18");
}

// What it finds in its output, and where that is, does not tell whether the call is checked.
TEST_P(WaryRuns, WorkWhereThereIsPoisonIsNotEnough) {
  for (const bool wary : {false, true}) {
    const RunReply r = run_warily(
        "static float kept[N]; float* out = args[1]; if (out[3] != out[3]) { doubling_right(args); "
        "memcpy(kept, out, sizeof kept); } else memcpy(out, kept, sizeof kept); return 0;",
        1, wary);
    EXPECT_EQ(r.outcome, Outcome::kWrongAnswer) << r.message;
    // Where inputs change while it is timed it may be found then.
    if (!wary) {
      EXPECT_THAT(r.message, HasSubstr("on inputs it had not seen"));
    }
  }
}
TEST_P(WaryRuns, WorkAtOtherAddressesIsNotEnough) {
  const RunReply r = run_warily(
      "static float kept[N]; static void* last; float* out = args[1]; if (out != last || out[0] != out[0]) { "
      "doubling_right(args); memcpy(kept, out, sizeof kept); } else memcpy(out, kept, sizeof kept); last = "
      "out; return 0;");
  EXPECT_EQ(r.outcome, Outcome::kWrongAnswer) << r.message;
}

TEST_P(WaryRuns, TheFloatingPointModeIsLeftAsItWas) {
#if defined(__x86_64__)
  const char* const change =
      "unsigned mode; __asm__ volatile(\"stmxcsr %0\" : \"=m\"(mode)); mode |= 0x8040; "
      "__asm__ volatile(\"ldmxcsr %0\" : : \"m\"(mode));";
  const RunReply r = run_warily(std::string(change) + "return doubling_right(args);");
  EXPECT_EQ(r.outcome, Outcome::kCrashed);
  EXPECT_FALSE(r.doubted);
  EXPECT_THAT(r.message, HasSubstr("floating-point mode"));
  // What loading it changes is its own, as with -ffast-math.
  const RunReply loaded =
      run_warily("return doubling_right(args);", 1, true,
                 str("__attribute__((constructor)) static void fast(void) {", change, "}"));
  EXPECT_EQ(loaded.outcome, Outcome::kOk) << loaded.message;
#endif
}

TEST_P(WaryRuns, InputsThatWereUnprotectedAndChangedAreFound) {
  const RunReply r = run_warily(
      "doubling_right(args); mprotect((void*)((long)args[0] & -4096), 4096, PROT_READ | PROT_WRITE);"
      "((float*)args[0])[0] += 0; ((float*)args[0])[1] = 0.26f; return 0;");
  EXPECT_THAT(r.outcome, testing::AnyOf(Outcome::kCrashed, Outcome::kWrongAnswer));
  EXPECT_THAT(r.message, testing::AnyOf(HasSubstr("changed its input x"), HasSubstr("out[")));
}

}  // namespace
}  // namespace tuner
