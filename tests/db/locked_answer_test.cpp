// A resolver with a lock file: the file decides, the database only tells what was measured, and an entry that
// this program cannot build is one line that says where it stands and why.
#include "db/resolve/locked.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler_core/ir/stmt.h"
#include "tests/db/resolve_fixture.h"

namespace tuner {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class LockedAnswer : public ResolveFixture {
 protected:
  // The only entry of the lock, in line 1 of what it was read from.
  AnswerLock lock_of(const Workload& w, const Target& t, LockedChoice choice,
                     const std::string& algorithms = {}) {
    AnswerLock made("made.lock");
    made.put({.task = locked_task(w, t, algorithms, Constants::kWarm), .choice = std::move(choice)});
    Result<AnswerLock> lock = AnswerLock::parse(made.text(), "answers.lock");
    CHECK(lock.is_ok()) << lock.message();
    return *std::move(lock);
  }
  Result<Answer> resolve(const AnswerLock& lock, const Workload& w, const Store* store,
                         const std::string& algorithms = {}) {
    return Resolver(
               store,
               {.count_outcomes = true, .lock = &lock, .lock_fix = "tuner lock job.json -o answers.lock"})
        .resolve(w, cpu_, algorithms);
  }
  std::string refusal(const AnswerLock& lock, const Workload& w, const std::string& algorithms = {}) {
    const Result<Answer> answer = resolve(lock, w, store_.get(), algorithms);
    EXPECT_FALSE(answer);
    if (answer) return "";
    EXPECT_EQ(answer.status().code(), StatusCode::kNotFound);
    EXPECT_THAT(answer.message(), Not(HasSubstr("\n")));
    return answer.message();
  }
  const Workload w_ = product(64, 64, 64);
};

// Valid configs other than the default, each another one.
std::vector<std::string> configs(const Workload& w, const Target& t, size_t count) {
  const auto instance = matmul().apply(w, t);
  const ConfigSpace& space = (*instance)->space();
  std::vector<std::string> out;
  for (ConfigIndex i = 0; out.size() < count; i += space.size() / (count + 2))
    if (i != space.default_index()) out.push_back(space.at(i).to_text());
  return out;
}

TEST_F(LockedAnswer, TheFileDecidesWhateverTheDatabaseSays) {
  const std::vector<std::string> some = configs(w_, cpu_, 3);
  tuned(w_, cpu_, {{some[0], 1000}, {some[1], 2000}});
  const AnswerLock measured = lock_of(w_, cpu_, {"matmul_cpu", matmul().version(), some[1]});
  const AnswerLock unknown = lock_of(w_, cpu_, {"matmul_cpu", matmul().version(), some[2]});

  const Result<Answer> answer = resolve(measured, w_, store_.get());
  ASSERT_TRUE(answer) << answer.message();
  EXPECT_EQ(answer->kind, AnswerKind::kLocked);
  EXPECT_EQ(answer_kind_name(answer->kind), "locked");
  EXPECT_EQ(answer->config, some[1]);
  EXPECT_EQ(answer->locked_at, "answers.lock:4");
  EXPECT_EQ(answer->note, "");
  ASSERT_TRUE(answer->tuned) << "it was measured";
  EXPECT_EQ(answer->tuned->time_ns, 2000);
  EXPECT_EQ(answer->tuned->config, some[1]);

  const Result<Answer> other = resolve(unknown, w_, store_.get());
  ASSERT_TRUE(other) << other.message();
  EXPECT_EQ(other->config, some[2]);
  EXPECT_FALSE(other->tuned);
  EXPECT_TRUE(other->rests_on.empty());

  const Result<Answer> without = resolve(unknown, w_, nullptr);
  ASSERT_TRUE(without) << without.message();
  EXPECT_EQ(without->config, some[2]);
  EXPECT_TRUE(kernel_of(*without, w_, cpu_));
}

TEST_F(LockedAnswer, TheDatabasesOwnAnswerBringsItsRace) {
  const std::vector<std::string> some = configs(w_, cpu_, 2);
  tuned(w_, cpu_, {{some[0], 1000}, {some[1], 2000}});
  const Result<Answer> answer =
      resolve(lock_of(w_, cpu_, {"matmul_cpu", matmul().version(), some[0]}), w_, store_.get());
  ASSERT_TRUE(answer) << answer.message();
  ASSERT_TRUE(answer->tuned);
  EXPECT_EQ(answer->tuned->trials, 2) << "counted as for an exact answer";
}

TEST_F(LockedAnswer, AnotherTaskIsNotAnswered) {
  tuned(product(32, 64, 64), cpu_, {{other_config(product(32, 64, 64), cpu_), 1000}});
  const AnswerLock lock = lock_of(w_, cpu_, {"matmul_cpu", matmul().version(), other_config(w_, cpu_)});
  EXPECT_THAT(refusal(lock, product(32, 64, 64)),
              AllOf(StartsWith("answers.lock has no entry for v1 matmul b=1 m=32 "), HasSubstr("haswell"),
                    EndsWith("To add it: tuner lock job.json -o answers.lock")));
}

// The template is gone, is newer, does not serve the task, computes otherwise; its space has no such config.
TEST_F(LockedAnswer, AConfigThatNoLongerExistsIsOneLine) {
  const std::string config = other_config(w_, cpu_);
  const int version = matmul().version();
  const std::string place =
      str("answers.lock:4: ", w_.key(), " on \"llvm -mcpu=haswell -threads=1\" is locked to ");
  const std::string fix = ". To choose anew: tuner lock job.json -o answers.lock";
  EXPECT_EQ(refusal(lock_of(w_, cpu_, {"matmul_gone_cpu", 1, config}), w_),
            place + "template matmul_gone_cpu, which this program does not have" + fix);
  EXPECT_EQ(refusal(lock_of(w_, cpu_, {"matmul_cpu", version + 1, config}), w_),
            place +
                str("version ", version + 1, " of template matmul_cpu; this program has version ", version,
                    ", where the config may mean something else") +
                fix);
  EXPECT_THAT(
      refusal(lock_of(w_, cpu_, {"softmax_cpu", find_template("softmax_cpu")->version(), "a=1"}), w_),
      AllOf(StartsWith(place + "template softmax_cpu, which does not serve this task: "), EndsWith(fix)));
  EXPECT_THAT(refusal(lock_of(w_, cpu_, {"matmul_cpu", version, "tile_m=77"}), w_),
              AllOf(StartsWith(place + "a config that is not valid here: "), EndsWith(fix)));
}

TEST_F(LockedAnswer, AnEntryKeepsToItsAlgorithms) {
  Conv2dWorkload conv;
  conv.batch = 1, conv.in_channels = 8, conv.in_height = conv.in_width = 12, conv.out_channels = 16;
  conv.kernel_height = conv.kernel_width = 3;
  conv.padding = {1, 1, 1, 1};
  conv.constant = {"weight"};
  const Workload w(conv);
  const AnyTemplate* winograd = nullptr;
  const auto templates = templates_for(w, cpu_);
  ASSERT_TRUE(templates) << templates.message();
  for (const AnyTemplate* t : *templates)
    if (t->algorithm() == "winograd" && winograd == nullptr) winograd = t;
  ASSERT_NE(winograd, nullptr);
  const auto instance = winograd->apply(w, cpu_);
  ASSERT_TRUE(instance) << instance.message();
  const LockedChoice choice{std::string(winograd->name()), winograd->version(),
                            (*instance)->space().at((*instance)->space().default_index()).to_text()};
  EXPECT_TRUE(resolve(lock_of(w, cpu_, choice), w, nullptr));
  // Written by a hand.
  EXPECT_THAT(refusal(lock_of(w, cpu_, choice, "direct"), w, "direct"),
              HasSubstr("which computes by winograd; allowed is direct"));
}

// Caches decide what is worth trying, and two machines of one name may have different ones.
TEST_F(LockedAnswer, AConfigHoldsOnEveryMachineOfTheName) {
  const Workload w = product(8, 1024, 512);
  Target small = cpu_, large = cpu_;
  small.l2_bytes = 256 << 10, large.l2_bytes = 64 << 20;
  const auto space_of = [&](const Target& t) { return *matmul().apply(w, t); };
  const auto here = space_of(small), there = space_of(large);
  Config config = here->space().at(here->space().default_index());
  std::map<std::string, int64_t> values = config.values();
  values["prefetch_b"] = 64;
  config = Config(values);
  ASSERT_TRUE(here->space().index_of(config)) << "the test's config is valid beside small caches";
  ASSERT_FALSE(there->space().index_of(config)) << "and in no space beside large ones";

  const AnswerLock lock = lock_of(w, small, {"matmul_cpu", matmul().version(), config.to_text()});
  std::vector<std::string> programs;
  for (const Target& t : {small, large, cpu_}) {
    const Result<Answer> answer = Resolver(nullptr, {.lock = &lock}).resolve(w, t);
    ASSERT_TRUE(answer) << answer.message();
    const Result<ResolvedKernel> kernel = kernel_of(*answer, w, t);
    ASSERT_TRUE(kernel) << kernel.message();
    const Result<Program> program = kernel->instance->instantiate(kernel->config);
    ASSERT_TRUE(program) << program.message();
    programs.push_back(to_text(*program));
  }
  EXPECT_EQ(programs[0], programs[1]) << "the kernel is the same on both";
  EXPECT_EQ(programs[0], programs[2]);
}

}  // namespace
}  // namespace tuner
