// Which config a workload gets: each kind of answer, what it says of itself, and what is refused.
#include "db/resolve/resolve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/db/store_fixture.h"

namespace tuner {
namespace {

using testing::HasSubstr;

Workload product(int64_t m, int64_t n, int64_t k) {
  MatmulWorkload w;
  w.m = m;
  w.n = n;
  w.k = k;
  return w;
}

Target target(const std::string& text) {
  Result<Target> parsed = parse_target(text);
  CHECK(parsed.is_ok()) << parsed.message();
  return *std::move(parsed);
}

const AnyTemplate& matmul() { return *find_template("matmul_cpu"); }

// Some valid config, not the default.
std::string other_config(const Workload& w, const Target& t) {
  const auto instance = matmul().apply(w, t);
  const ConfigSpace& space = (*instance)->space();
  const ConfigIndex index = space.default_index() == 0 ? 1 : 0;
  return space.at(index).to_text();
}

class Resolve : public testing::Test {
 protected:
  // One measured trial of a task, in a job of its own.
  std::string tuned(const Workload& w, const Target& t, const std::string& config, double time_ns,
                    int version = matmul().version()) {
    const std::string job = "j" + std::to_string(++jobs_);
    EXPECT_TRUE(store_->add_job(job_row(job, {{w.key(), t.name()}})));
    std::vector<TrialRow> rows = {trial_row(job, config)};
    rows[0].template_name = "matmul_cpu";
    rows[0].template_version = version;
    EXPECT_TRUE(store_->add_trials(rows));
    EXPECT_TRUE(store_->lease_trial(rows[0].id, "w1"));
    MeasureRecord record = ok_record(rows[0].id, {time_ns, time_ns * 1.01, time_ns * 0.99});
    EXPECT_TRUE(store_->add_records({record}));
    return rows[0].id;
  }

  TemporaryFolder folder_;
  std::unique_ptr<Store> store_ = must_open(folder_.file("t.db"));
  int jobs_ = 0;
  const Target cpu_ = target("llvm -mcpu=haswell -threads=1");
};

TEST_F(Resolve, ATunedTaskIsAnsweredByItsRecords) {
  const Workload w = product(64, 64, 64);
  const std::string config = other_config(w, cpu_);
  const std::string trial = tuned(w, cpu_, config, 1000);
  const Result<Answer> answer = Resolver(store_.get()).resolve(w, cpu_);
  ASSERT_TRUE(answer) << answer.message();
  EXPECT_EQ(answer->kind, AnswerKind::kExact);
  EXPECT_EQ(answer->config, config);
  EXPECT_EQ(answer->predicted, 1);
  EXPECT_LT(answer->low, 1);
  EXPECT_EQ(answer->note, "");
  ASSERT_EQ(answer->rests_on.size(), 1u);
  EXPECT_EQ(answer->rests_on[0].trial_id, trial);
  const Result<ResolvedKernel> kernel = kernel_of(*answer, w, cpu_);
  ASSERT_TRUE(kernel) << kernel.message();
  EXPECT_EQ(kernel->config.to_text(), config);
}

TEST_F(Resolve, AnOrderOfOptionsIsOneTarget) {
  const Workload w = product(64, 64, 64);
  tuned(w, target("llvm -threads=2 -mcpu=haswell"), other_config(w, cpu_), 1000);
  const Result<Answer> answer = Resolver(store_.get()).resolve(w, target("llvm -mcpu=haswell -threads=2"));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->kind, AnswerKind::kExact);
}

TEST_F(Resolve, NothingTunedIsTheDefaultAndSaysHowToTune) {
  const Workload w = product(64, 64, 64);
  for (const Store* store : {static_cast<const Store*>(store_.get()), static_cast<const Store*>(nullptr)}) {
    const Result<Answer> answer = Resolver(store, {.fix = "tuner submit here.json"}).resolve(w, cpu_);
    ASSERT_TRUE(answer) << answer.message();
    EXPECT_EQ(answer->kind, AnswerKind::kDefault);
    EXPECT_FALSE(answer->known);
    EXPECT_THAT(answer->note, HasSubstr("To tune it: tuner submit here.json"));
    EXPECT_EQ(answer->note.find('\n'), std::string::npos);
    EXPECT_TRUE(kernel_of(*answer, w, cpu_));
  }
}

TEST_F(Resolve, AConfigOfAnotherTemplateVersionIsNotUsed) {
  const Workload w = product(64, 64, 64);
  tuned(w, cpu_, other_config(w, cpu_), 1000, matmul().version() + 1);
  const Result<Answer> answer = Resolver(store_.get()).resolve(w, cpu_);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->kind, AnswerKind::kDefault);
  EXPECT_THAT(answer->note, HasSubstr("of template matmul_cpu; this program has version"));
}

TEST_F(Resolve, ATaskThatNoTemplateServesIsNotFound) {
  const Result<Answer> answer =
      Resolver(store_.get()).resolve(product(8, 8, 8), target("cuda -arch=sm_80"), "winograd");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(answer.message(), HasSubstr("no template serves"));
}

TEST(AnswerKinds, NamesReadBack) {
  for (const AnswerKind kind : {AnswerKind::kExact, AnswerKind::kSameFamily, AnswerKind::kNearest,
                                AnswerKind::kPortable, AnswerKind::kDefault})
    EXPECT_EQ(answer_kind_from_name(answer_kind_name(kind)), kind);
  EXPECT_EQ(answer_kind_from_name("guess"), std::nullopt);
}

}  // namespace
}  // namespace tuner
