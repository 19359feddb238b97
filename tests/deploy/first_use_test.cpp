// Verification at first use, apart from any clock: when rounds decide, how turns are given, and how verdicts
// are kept.
#include "deploy/runtime/first_use.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <thread>

#include "compiler_core/codegen/compile.h"
#include "deploy/runtime/verdicts.h"
#include "templates/schedule_template.h"
#include "templates/workload/workload_json.h"
#include "tests/random_seed.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/wait_until.h"

namespace tuner::runtime {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

// Rounds in which the kernel takes `ratio` times as long as its default, off by up to `noise` either way.
std::vector<Round> rounds(int count, double ratio, double noise, uint32_t seed = 1) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> off(1 - noise, 1 + noise);
  std::vector<Round> out;
  for (int i = 0; i < count; ++i) {
    const double plain = 1000 * off(random);
    out.push_back({ratio * 1000 * off(random), plain});
  }
  return out;
}

TEST(JudgeRounds, MuchSlowerIsSlowerAndLittleSlowerIsNot) {
  EXPECT_EQ(judge_rounds(rounds(8, 1.5, 0.02), false).verdict, Verdict::kSlower);
  EXPECT_EQ(judge_rounds(rounds(8, 1.13, 0.01), false).verdict, Verdict::kSlower);
  EXPECT_EQ(judge_rounds(rounds(8, 1.05, 0.01), false).verdict, Verdict::kKept);
  EXPECT_EQ(judge_rounds(rounds(8, 1.0, 0.01), false).verdict, Verdict::kKept);
  EXPECT_EQ(judge_rounds(rounds(8, 0.4, 0.02), false).verdict, Verdict::kKept);
  const FirstUse found = judge_rounds(rounds(9, 2, 0), true);
  EXPECT_EQ(found.kernel_ns, 2000);
  EXPECT_EQ(found.default_ns, 1000);
}

TEST(JudgeRounds, NoiseDecidesNothingBeforeTheEndAndNothingAgainstTheKernelThen) {
  const std::vector<Round> noisy = rounds(5, 1.12, 0.5);
  EXPECT_EQ(judge_rounds(noisy, false).verdict, Verdict::kUndecided);
  EXPECT_EQ(judge_rounds(noisy, true).verdict, Verdict::kKept);
  // At 99.5 % confidence one in 200 may err.
  int tried = 0, slower = 0;
  for (const uint32_t seed : Seeds(/*fixed=*/1, /*rounds=*/300)) {
    ++tried;
    slower += judge_rounds(rounds(kMostRounds, 1, 0.3, seed), true).verdict == Verdict::kSlower;
  }
  EXPECT_LE(slower, 1 + tried / 60) << "of " << tried << " kernels that are as fast as their defaults";
}

TEST(JudgeRounds, OneDisturbedRoundDecidesNothing) {
  std::vector<Round> some = rounds(8, 1, 0.01);
  some[3].kernel_ns *= 50;
  EXPECT_EQ(judge_rounds(some, true).verdict, Verdict::kKept);
}

// deploy/runtime/README.md: 10 %, 4 to 16 rounds, 2 s, 512 MiB.
TEST(JudgeRounds, LimitsAreThoseOfTheManual) {
  EXPECT_EQ(judge_rounds(rounds(9, 1.11, 0), true).verdict, Verdict::kSlower);
  EXPECT_EQ(judge_rounds(rounds(9, 1.09, 0), true).verdict, Verdict::kKept);
  EXPECT_EQ(kMostRounds, 16);
  EXPECT_EQ(FirstUseLimits().race_ns, 2e9);
  EXPECT_EQ(FirstUseLimits().operand_bytes, int64_t{512} * 1024 * 1024);
}

TEST(JudgeRounds, FewRoundsAreNoVerdict) {
  const FirstUse found = judge_rounds(rounds(3, 5, 0), true);
  EXPECT_EQ(found.verdict, Verdict::kUndecided);
  EXPECT_EQ(found.why, "only 3 of at least 4 rounds fit the time for it");
  EXPECT_EQ(judge_rounds({}, true).verdict, Verdict::kUndecided);
}

// Turns of made-up times, and who had them.
struct Turns {
  double kernel_ns = 1000, default_ns = 1000, noise = 0;
  std::string given;  // K, D
  std::mt19937_64 random{7};

  Result<double> turn(bool of_kernel) {
    given += of_kernel ? 'K' : 'D';
    std::uniform_real_distribution<double> off(1 - noise, 1 + noise);
    return (of_kernel ? kernel_ns : default_ns) * off(random);
  }
  FirstUse race(int in_time = 1000) {
    return race_rounds([&](bool of_kernel) { return turn(of_kernel); },
                       [in_time]() mutable { return in_time-- > 0; });
  }
};

TEST(RaceRounds, BothHaveATurnARoundAndTheOrderAlternates) {
  Turns turns{.kernel_ns = 3000};
  EXPECT_EQ(turns.race().verdict, Verdict::kSlower);
  EXPECT_EQ(turns.given, "KDDKKDDK") << "decided after the fewest rounds";
}

TEST(RaceRounds, GoesOnWhileItIsOpenButNotForEver) {
  Turns turns{.kernel_ns = 1120, .noise = 0.5};
  EXPECT_EQ(turns.race().verdict, Verdict::kKept);
  EXPECT_EQ(turns.given.size(), 32u) << "16 rounds at most";
}

TEST(RaceRounds, EndsWithItsTime) {
  Turns turns{.kernel_ns = 3000};
  EXPECT_EQ(turns.race(/*in_time=*/2).verdict, Verdict::kUndecided);
  EXPECT_EQ(turns.given, "KDDK");
}

TEST(RaceRounds, AKernelThatFailsIsWrongAndADefaultThatFailsIsNoReason) {
  const auto failing = [](bool which) {
    return race_rounds(
        [which](bool of_kernel) -> Result<double> {
          if (of_kernel == which) return failed("returned -7");
          return 1000.0;
        },
        [] { return true; });
  };
  EXPECT_EQ(failing(true).verdict, Verdict::kWrong);
  EXPECT_EQ(failing(true).why, "returned -7");
  EXPECT_EQ(failing(false).verdict, Verdict::kUndecided);
  EXPECT_EQ(failing(false).why, "the default config: returned -7");
}

TEST(AreAlike, WithinTheToleranceAndNeverAnInfinityBesideANumber) {
  const double inf = std::numeric_limits<double>::infinity(), none = std::nan("");
  const Tolerance tolerance{.absolute = 0.01, .relative = 0.1};
  EXPECT_TRUE(are_alike(100, 110, tolerance));
  EXPECT_FALSE(are_alike(100, 112, tolerance));
  EXPECT_TRUE(are_alike(0, 0.009, tolerance));
  EXPECT_FALSE(are_alike(0, 0.02, tolerance));
  EXPECT_TRUE(are_alike(inf, inf, tolerance));
  EXPECT_TRUE(are_alike(none, none, tolerance));
  for (const auto& [a, b] : {std::pair(inf, 1.0), {1.0, -inf}, {inf, -inf}, {none, 1.0}, {inf, none}})
    EXPECT_FALSE(are_alike(a, b, tolerance)) << a << " and " << b;
}

TEST(VerdictNames, AreReadBack) {
  for (const Verdict v : {Verdict::kKept, Verdict::kSlower, Verdict::kWrong, Verdict::kUndecided})
    EXPECT_EQ(verdict_from_name(verdict_name(v)), v);
  EXPECT_EQ(verdict_from_name("fast"), std::nullopt);
}

class KeptVerdicts : public ::testing::Test {
 protected:
  FirstUse ask(const Verdicts& verdicts, const std::string& subject, FirstUse found,
               std::chrono::milliseconds patience = std::chrono::seconds(60)) {
    return verdicts.of(
        subject,
        [&] {
          ++races_;
          return found;
        },
        patience);
  }
  const TemporaryFolder temporary_;
  const std::string folder_ = (temporary_.path() / "kernels").string();
  const Verdicts verdicts_{folder_};
  std::atomic<int> races_ = 0;
  const FirstUse slower_{.verdict = Verdict::kSlower, .kernel_ns = 12345.5, .default_ns = 999.25};
};

TEST_F(KeptVerdicts, AKernelIsRacedOnce) {
  EXPECT_EQ(ask(verdicts_, "a\nb\n", slower_).verdict, Verdict::kSlower);
  // Another process: an object of its own on the same folder.
  const FirstUse again = ask(Verdicts(folder_), "a\nb\n", {.verdict = Verdict::kKept});
  EXPECT_EQ(again.verdict, Verdict::kSlower);
  EXPECT_EQ(again.kernel_ns, 12345.5);
  EXPECT_EQ(again.default_ns, 999.25);
  EXPECT_EQ(races_, 1);
  ask(verdicts_, "a\nc\n", slower_);
  EXPECT_EQ(races_, 2) << "another machine or kernel";
  EXPECT_EQ(fs::status(verdicts_.file("a\nb\n") + ".lock").permissions(), fs::perms(0600))
      << "its owner's only";
}

TEST_F(KeptVerdicts, TheReasonIsKeptInOneLine) {
  ask(verdicts_, "a\n", {.verdict = Verdict::kWrong, .why = "out[3] is 1,\nnot 2"});
  EXPECT_EQ(ask(verdicts_, "a\n", slower_).why, "out[3] is 1, not 2");
}

TEST_F(KeptVerdicts, WhatMayBeGoneNextTimeIsNotKept) {
  ask(verdicts_, "a\n", {.verdict = Verdict::kUndecided, .passing = true});
  EXPECT_EQ(ask(verdicts_, "a\n", slower_).verdict, Verdict::kSlower);
  EXPECT_EQ(races_, 2);
}

TEST_F(KeptVerdicts, ADamagedFileCountsAsMissing) {
  ask(verdicts_, "a\nb\n", slower_);
  const std::string file = verdicts_.file("a\nb\n");
  std::ifstream in(file);
  const std::string good{std::istreambuf_iterator<char>(in), {}};
  ASSERT_THAT(good, HasSubstr("slower"));
  std::vector<std::string> damaged = {"",
                                      "nonsense",
                                      "\n",
                                      good + "more",
                                      "tuner-verdict 1 fast 1 2\n\na\nb\n",
                                      "tuner-verdict 2 slower 1 2\n\na\nb\n",
                                      "tuner-verdict 1 slower x y\n\na\nb\n"};
  for (size_t cut = 1; cut < good.size(); cut += 3) damaged.push_back(good.substr(0, cut));
  for (const std::string& text : damaged) {
    SCOPED_TRACE(text);
    std::ofstream(file, std::ios::binary) << text;
    const int before = races_;
    EXPECT_EQ(ask(verdicts_, "a\nb\n", slower_).verdict, Verdict::kSlower);
    EXPECT_EQ(races_, before + 1);
  }
}

TEST_F(KeptVerdicts, WithoutAFolderEachProcessRaces) {
  const Verdicts nowhere("");
  EXPECT_EQ(nowhere.file("a\n"), "");
  ask(nowhere, "a\n", slower_);
  ask(nowhere, "a\n", slower_);
  EXPECT_EQ(races_, 2);
  // Nor is a folder that cannot be made a reason not to race.
  std::ofstream(temporary_.path() / "file") << "x";
  EXPECT_EQ(ask(Verdicts((temporary_.path() / "file").string()), "a\n", slower_).verdict, Verdict::kSlower);
}

// Another process that races, played by a lock of the file.
class OtherProcess {
 public:
  explicit OtherProcess(const std::string& verdict_file) {
    fs::create_directories(fs::path(verdict_file).parent_path());
    fd_ = ::open((verdict_file + ".lock").c_str(), O_RDWR | O_CREAT, 0600);
    CHECK(fd_ >= 0 && ::flock(fd_, LOCK_EX | LOCK_NB) == 0) << "the lock of the test";
  }
  ~OtherProcess() { ::close(fd_); }

 private:
  int fd_;
};

TEST_F(KeptVerdicts, WhoWaitsForAnotherProcessGivesUpAndKeepsNothing) {
  const auto other = std::make_unique<OtherProcess>(verdicts_.file("a\n"));
  const FirstUse found = ask(verdicts_, "a\n", slower_, std::chrono::milliseconds(50));
  EXPECT_EQ(found.verdict, Verdict::kUndecided);
  EXPECT_EQ(found.why, "another process is racing it");
  EXPECT_EQ(races_, 0);
  EXPECT_FALSE(fs::exists(verdicts_.file("a\n")));
}

TEST_F(KeptVerdicts, WhoWaitsTakesTheVerdictOfAnotherProcess) {
  auto other = std::make_unique<OtherProcess>(verdicts_.file("a\n"));
  std::thread ends([&] {
    let_pass(std::chrono::milliseconds(100));
    std::ofstream(verdicts_.file("a\n") + ".new") << "tuner-verdict 1 kept 10 20\n\na\n";
    fs::rename(verdicts_.file("a\n") + ".new", verdicts_.file("a\n"));
    other.reset();
  });
  EXPECT_EQ(ask(verdicts_, "a\n", slower_).verdict, Verdict::kKept);
  ends.join();
  EXPECT_EQ(races_, 0);
}

TEST_F(KeptVerdicts, OfEightThreadsOneRaces) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] { EXPECT_EQ(ask(verdicts_, "a\n", slower_).verdict, Verdict::kSlower); });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(races_, 1);
}

// --- the race itself, on kernels of ours ---

std::shared_ptr<const Function> function_of(const Workload& workload, const std::string& config = {}) {
  const Target target = host_target();
  const auto serving = templates_for(workload, target, "direct");
  CHECK(serving.is_ok()) << serving.message();
  const auto instance = serving->front()->apply(workload, target);
  const ConfigSpace& space = (*instance)->space();
  const auto program =
      (*instance)->instantiate(config.empty() ? space.at(space.default_index()) : *config_from_text(config));
  CHECK(program.is_ok()) << program.message();
  const auto artifact = compile(*program, target);
  CHECK(artifact.is_ok()) << artifact.message();
  Choice choice{.target = target.name()};
  choice.kernel = *Kernel::load(*artifact);
  static Pools pools;
  auto f = Function::make(workload, std::move(choice), pools.of(1));
  CHECK(f.is_ok()) << f.message();
  return *f;
}
Workload workload(const std::string& json) {
  auto parsed = workload_from_json(json);
  CHECK(parsed.is_ok()) << parsed.message();
  return *parsed;
}

// Every type, constants that are packed, an output that is added to, and results that share an error.
TEST(RaceAtFirstUse, RightKernelsOfEveryKindAgree) {
  for (const char* json :
       {R"({"op":"matmul","a":[13,37],"b":[37,51],"bias":true,"activation":"relu","constant":["b","bias"]})",
        R"({"op":"matmul","a":[13,37],"b":[37,51],"accumulate":true})",
        R"({"op":"matmul","a":[13,37],"b":[37,51],"dtype":"bfloat16"})",
        R"({"op":"matmul","a":[13,37],"b":[37,51],"dtype":"float16","out_dtype":"float16"})",
        R"({"op":"matmul","a":[13,37],"b":[37,51],"dtype":"int8","constant":["b"]})",
        R"({"op":"matmul","a":[13,37],"b":[37,51],"dtype":"int8","out_dtype":"uint8","constant":["b"]})",
        R"({"op":"conv2d","data":[1,6,9,11],"weight":[20,6,3,3],"padding":1,"constant":["weight"]})",
        R"({"op":"softmax","rows":9,"columns":70})", R"({"op":"layer_norm","rows":9,"columns":70})"}) {
    SCOPED_TRACE(json);
    const Workload w = workload(json);
    const auto f = function_of(w);
    const FirstUse found = race_at_first_use(w, *f, *f, tolerance_of(w), {.race_ns = 5e7});
    EXPECT_NE(found.verdict, Verdict::kWrong) << found.why;
    EXPECT_GT(found.kernel_ns, 0) << "timed";
  }
}

// A kernel of another workload with the same operands stands for one that is wrong.
TEST(RaceAtFirstUse, AnotherAnswerIsWrongAndTheElementIsTold) {
  const Workload plain = workload(R"({"op":"matmul","a":[13,37],"b":[37,51]})");
  const Workload relu = workload(R"({"op":"matmul","a":[13,37],"b":[37,51],"activation":"relu"})");
  const FirstUse found = race_at_first_use(plain, *function_of(relu), *function_of(plain),
                                           tolerance_of(plain), {.race_ns = 5e7});
  EXPECT_EQ(found.verdict, Verdict::kWrong);
  EXPECT_THAT(found.why,
              ::testing::MatchesRegex(
                  R"(out\[[0-9]+\] is 0, and -[0-9.e-]+ by its default config, which is too far off)"));
  EXPECT_EQ(found.kernel_ns, 0) << "it was not timed";
}

// Both kernels and the machine, microcode included: another one of them is raced anew.
TEST(VerdictSubject, NamesBothKernelsAndTheMachine) {
  const Workload w = workload(R"({"op":"softmax","rows":9,"columns":70})");
  const auto kernel = function_of(w),
             plain = function_of(workload(R"({"op":"softmax","rows":9,"columns":71})"));
  const std::string digest = kernel->choice().kernel.manifest().digest,
                    other = plain->choice().kernel.manifest().digest;
  ASSERT_NE(digest, other);
  const std::string subject = verdict_subject(*kernel, *plain, "a CPU microcode 0x1");
  EXPECT_EQ(subject.find(w.key() + "\nkernel " + digest), 0U) << subject;
  EXPECT_THAT(subject, HasSubstr("\ndefault " + other));
  EXPECT_THAT(subject, HasSubstr("\non a CPU microcode 0x1\n"));
  EXPECT_NE(subject, verdict_subject(*kernel, *plain, "a CPU microcode 0x2"));
}

TEST(RaceAtFirstUse, OperandsThatAreTooLargeAreNotMade) {
  const Workload w = workload(R"({"op":"softmax","rows":9,"columns":70})");
  const auto f = function_of(w);
  const FirstUse found = race_at_first_use(w, *f, *f, tolerance_of(w), {.operand_bytes = 100});
  EXPECT_EQ(found.verdict, Verdict::kUndecided);
  EXPECT_THAT(found.why, HasSubstr("its operands take"));
}

TEST(RaceAtFirstUse, WithoutTimeThereIsNoVerdict) {
  const Workload w = workload(R"({"op":"softmax","rows":9,"columns":70})");
  const auto f = function_of(w);
  EXPECT_EQ(race_at_first_use(w, *f, *f, tolerance_of(w), {.race_ns = 0}).verdict, Verdict::kUndecided);
}

}  // namespace
}  // namespace tuner::runtime
