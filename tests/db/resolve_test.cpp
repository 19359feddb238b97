// Which config a workload gets: each kind of answer, what it says of itself, and what is refused.
#include "db/resolve/resolve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "db/learning/cover.h"
#include "db/learning/knowledge.h"
#include "db/resolve/nearest.h"
#include "db/resolve/same_family.h"
#include "tests/db/resolve_fixture.h"
#include "tests/random_seed.h"

namespace tuner {
namespace {

using testing::HasSubstr;
using testing::Not;
using Resolve = ResolveFixture;

TEST_F(Resolve, ATunedTaskIsAnsweredByItsRecords) {
  const Workload w = product(64, 64, 64);
  const std::string config = other_config(w, cpu_);
  const std::string trial = tuned(w, cpu_, {{config, 1000}})[0];
  const Result<Answer> answer = Resolver(store_.get(), {.count_outcomes = true}).resolve(w, cpu_);
  ASSERT_TRUE(answer) << answer.message();
  EXPECT_EQ(answer->kind, AnswerKind::kExact);
  EXPECT_EQ(answer->config, config);
  EXPECT_EQ(answer->predicted, 1);
  EXPECT_LT(answer->low, 1);
  EXPECT_EQ(answer->note, "");
  EXPECT_EQ(answer->tuned->trials, 1);
  ASSERT_EQ(answer->rests_on.size(), 1u);
  EXPECT_EQ(answer->rests_on[0].trial_id, trial);
  const Result<ResolvedKernel> kernel = kernel_of(*answer, w, cpu_);
  ASSERT_TRUE(kernel) << kernel.message();
  EXPECT_EQ(kernel->config.to_text(), config);
}

TEST_F(Resolve, AnOrderOfOptionsIsOneTarget) {
  const Workload w = product(64, 64, 64);
  tuned(w, target("llvm -threads=2 -mcpu=haswell"), {{other_config(w, cpu_), 1000}});
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
    EXPECT_THAT(answer->note, HasSubstr("To tune: tuner submit here.json"));
    EXPECT_THAT(answer->note, Not(HasSubstr("\n")));
    EXPECT_TRUE(kernel_of(*answer, w, cpu_));
  }
}

TEST_F(Resolve, AConfigOfAnotherTemplateVersionIsNotUsed) {
  const Workload w = product(64, 64, 64);
  tuned(w, cpu_, {{other_config(w, cpu_), 1000}}, matmul().version() + 1);
  const Result<Answer> answer = Resolver(store_.get()).resolve(w, cpu_);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->kind, AnswerKind::kDefault);
  EXPECT_THAT(answer->note, HasSubstr("of template matmul_cpu; this program has version"));
}

// An imported line, written by hand or by another program.
TEST_F(Resolve, AConfigOfNoSpaceOfOursIsNotUsed) {
  const Workload w = product(64, 64, 64);
  tuned(w, cpu_, {{"tile_m=77", 1000}});
  const Resolver resolver(store_.get());
  for (int asked = 0; asked < 2; ++asked) {
    const Result<Answer> answer = resolver.resolve(w, cpu_);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->kind, AnswerKind::kDefault);
    EXPECT_THAT(answer->note, HasSubstr("rests on a config that is not valid here: "));
  }
}

TEST_F(Resolve, ATaskThatNoTemplateServesIsNotFound) {
  const Result<Answer> answer =
      Resolver(store_.get()).resolve(product(8, 8, 8), target("cuda -arch=sm_80"), "winograd");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(answer.message(), HasSubstr("no template serves"));
}

TEST_F(Resolve, AnotherCompilerMakesAnAnswerStaleAndSaysSo) {
  const Workload w = product(64, 64, 64);
  tuned(w, cpu_, {{other_config(w, cpu_), 1000}});
  const Resolver resolver(
      store_.get(), {.present = [](const Target&) { return Present{.toolchains = {"llvm 99 codegen 7"}}; }});
  const Result<Answer> answer = resolver.resolve(w, cpu_);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->kind, AnswerKind::kExact);
  EXPECT_TRUE(answer->stale);
  EXPECT_THAT(answer->stale_reason, HasSubstr("llvm 99 codegen 7"));
  EXPECT_THAT(answer->note, HasSubstr("tuner revalidate"));
}

// The host calls itself icelake-server today; last year's LLVM called it rocketlake.
TEST_F(Resolve, AMachineWhoseTargetHasAnotherNameKeepsItsAnswers) {
  const Workload w = product(64, 64, 64);
  const Target before = target("llvm -mcpu=rocketlake"), now = target("llvm -mcpu=icelake-server");
  const std::string config = other_config(w, before);
  const std::vector<std::string> ids = tuned(w, before, {{config, 1000}});
  const std::string hardware = store_->trial(ids[0])->record->environment.hardware;
  ASSERT_FALSE(hardware.empty());
  const auto asked_on = [&](const std::string& machine, const Target& t) {
    const Resolver resolver(store_.get(),
                            {.present = [machine](const Target&) { return Present{.hardware = machine}; }});
    return resolver.resolve(w, t).value();
  };
  const Answer answer = asked_on(hardware, now);
  EXPECT_EQ(answer.kind, AnswerKind::kExact);
  EXPECT_EQ(answer.config, config);
  EXPECT_EQ(answer.target, now.name());
  EXPECT_FALSE(answer.stale) << answer.stale_reason;
  EXPECT_THAT(answer.note, HasSubstr("whose target was called \"llvm -mcpu=rocketlake -threads=1\" then"));
  ASSERT_EQ(answer.rests_on.size(), 1u);
  EXPECT_EQ(answer.rests_on[0].trial_id, ids[0]);
  // Another machine, other threads, other vectors: relatives at most.
  EXPECT_EQ(asked_on("another cpu | 2 cpus", now).kind, AnswerKind::kSameFamily);
  EXPECT_EQ(asked_on("", now).kind, AnswerKind::kSameFamily);
  EXPECT_EQ(asked_on(hardware, target("llvm -mcpu=icelake-server -threads=2")).kind, AnswerKind::kSameFamily);
  EXPECT_EQ(asked_on(hardware, target("llvm -mcpu=haswell")).kind, AnswerKind::kDefault);
}

// Measured on this machine, but for an older CPU: another kernel's time, and no name of this machine.
TEST_F(Resolve, CodeOfAnOlderCpuMeasuredHereIsNotThisMachinesAnswer) {
  const Workload w = product(64, 64, 64);
  const Target older = target("llvm -mcpu=skylake-avx512"), here = target("llvm -mcpu=icelake-server");
  EXPECT_TRUE(store_->add_job(job_row("j1", {{w.key(), older.name()}})));
  TrialRow row = trial_row("j1", other_config(w, older));
  row.template_name = "matmul_cpu";
  row.template_version = matmul().version();
  std::vector<TrialRow> rows = {row};
  EXPECT_TRUE(store_->add_trials(rows));
  EXPECT_TRUE(store_->lease_trials({rows[0].id}, "w1"));
  MeasureRecord record = ok_record(rows[0].id, {1000, 1010, 990});
  record.device_state =
      "code for \"llvm -mcpu=skylake-avx512 -threads=1\" measured on \"" + here.name() + "\"";
  const std::string hardware = record.environment.hardware;
  EXPECT_TRUE(store_->add_records({record}));
  const Resolver resolver(store_.get(),
                          {.present = [&](const Target&) { return Present{.hardware = hardware}; }});
  const Answer answer = resolver.resolve(w, here).value();
  EXPECT_EQ(answer.kind, AnswerKind::kSameFamily) << answer.note;
  // Who asks for the older CPU is told where its time is from.
  const Resolver telling(store_.get(), {.count_outcomes = true});
  const Answer told = telling.resolve(w, older).value();
  EXPECT_EQ(told.kind, AnswerKind::kExact);
  EXPECT_THAT(told.note, HasSubstr("measured on \"llvm -mcpu=icelake-server -threads=1\""));
}

TEST_F(Resolve, AnotherEpilogueIsOfTheFamilyAndComesBeforeAnotherThreadCount) {
  const Workload asked = product(64, 64, 64);
  const std::string config = other_config(asked, cpu_);
  tuned(asked, target("llvm -mcpu=haswell -threads=4"), {{config, 500}});
  Result<Answer> answer = Resolver(store_.get()).resolve(asked, cpu_);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->kind, AnswerKind::kSameFamily);
  EXPECT_THAT(answer->note, HasSubstr("4 threads there"));
  EXPECT_EQ(answer->rests_on[0].target, "llvm -mcpu=haswell -threads=4");

  const std::string trial = tuned(product(64, 64, 64, /*bias=*/true), cpu_, {{config, 900}})[0];
  answer = Resolver(store_.get()).resolve(asked, cpu_);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->kind, AnswerKind::kSameFamily);
  EXPECT_THAT(answer->note, HasSubstr("another epilogue"));
  EXPECT_EQ(answer->config, config);
  EXPECT_EQ(answer->rests_on[0].trial_id, trial);
  EXPECT_TRUE(kernel_of(*answer, asked, cpu_));
}

TEST(SameFamily, TargetsAreNearWhereVectorsOrTheGenerationAreAlike) {
  EXPECT_TRUE(near_targets(target("llvm -mcpu=haswell -threads=1"), target("llvm -mcpu=znver3 -threads=8")));
  EXPECT_FALSE(near_targets(target("llvm -mcpu=haswell -threads=1"), target("llvm -mcpu=znver5 -threads=1")));
  EXPECT_FALSE(near_targets(target("llvm -mcpu=cortex-a72 -mtriple=aarch64-linux-gnu -threads=1"),
                            target("llvm -mcpu=haswell -threads=1")));
  EXPECT_TRUE(near_targets(target("cuda -arch=sm_90"), target("cuda -arch=sm_90a")));
  EXPECT_FALSE(near_targets(target("cuda -arch=sm_80"), target("cuda -arch=sm_90")));
  EXPECT_FALSE(near_targets(target("cuda -arch=sm_90"), target("cuda -arch=sm_90 -emulated")));
  EXPECT_FALSE(near_targets(target("llvm -mcpu=cortex-a72 -mtriple=aarch64-linux-gnu"),
                            target("llvm -mcpu=cortex-a72 -mtriple=aarch64-linux-gnu -emulated")));
}

// An answer never rests on times that an emulator gave, nor one for the emulator on a device's.
TEST_F(Resolve, TimesUnderAnEmulatorAreNoNeighbours) {
  const Target board = target("llvm -mcpu=cortex-a72 -mtriple=aarch64-linux-gnu -threads=1"),
               under_qemu = target("llvm -mcpu=cortex-a72 -mtriple=aarch64-linux-gnu -threads=1 -emulated");
  const Workload asked = product(64, 64, 64);
  tuned(asked, under_qemu, {{other_config(asked, under_qemu), 500}});
  tuned(product(64, 64, 64, /*bias=*/true), under_qemu, {{other_config(asked, under_qemu), 500}});
  EXPECT_EQ(Resolver(store_.get()).resolve(asked, board).value().kind, AnswerKind::kDefault);
  EXPECT_EQ(Resolver(store_.get()).resolve(asked, under_qemu).value().kind, AnswerKind::kExact);
}

// The first tile knob of the template decides: what divides its axis and is near `best` is fast.
double tile_time(const Config& config, const ConfigSpace& space, double best) {
  double ns = 1000;
  for (const KnobInfo& knob : space.knobs()) {
    if (knob.kind != KnobKind::kSplit) continue;
    const auto inner = static_cast<double>(config.at(knob.name)), extent = static_cast<double>(knob.extent);
    const double fill = extent / (std::ceil(extent / inner) * inner);
    ns *= (1 + 0.4 * std::abs(std::log2(inner / best))) / fill;
  }
  return ns;
}

class Nearest : public Resolve {
 protected:
  // Products of many shapes, where the best tiles are of 2 and the default's are not.
  void tune_shapes() {
    for (const int64_t m : {24, 48, 96, 160})
      for (const int64_t n : {32, 64, 128})
        tune_by_formula(product(m, n, 64), cpu_, 40,
                        [](const Config& c, const ConfigSpace& s) { return tile_time(c, s, 2); });
  }
};

TEST_F(Nearest, AConfigOfAnotherShapeIsUsedWhereItIsPredictedFaster) {
  tune_shapes();
  ASSERT_TRUE(learn_and_store(*store_, "matmul", cpu_.name()).value());
  const Workload asked = product(80, 96, 64);
  const Result<Answer> answer = Resolver(store_.get(), {.fix = "tuner submit new.json"}).resolve(asked, cpu_);
  ASSERT_TRUE(answer) << answer.message();
  ASSERT_EQ(answer->kind, AnswerKind::kNearest) << answer->note;
  EXPECT_GT(answer->predicted, answer->predicted_default);
  EXPECT_LE(answer->low, answer->predicted);
  EXPECT_LE(answer->predicted, answer->high);
  EXPECT_EQ(answer->learned_shapes, 12);
  ASSERT_EQ(answer->rests_on.size(), 1u);
  EXPECT_THAT(answer->note, HasSubstr("To tune: tuner submit new.json"));
  const Result<ResolvedKernel> kernel = kernel_of(*answer, asked, cpu_);
  ASSERT_TRUE(kernel) << kernel.message();
  // The formula agrees: it is faster than the default by far.
  const ConfigSpace& space = kernel->instance->space();
  EXPECT_LT(tile_time(kernel->config, space, 2), 0.8 * tile_time(space.at(space.default_index()), space, 2));
}

TEST(FastestOf, OnlyWhatIsPredictedFasterAndIsTrustedReplacesTheDefault) {
  // fraction, score; the default first.
  const auto chosen = [](const std::vector<std::pair<double, double>>& predictions) {
    std::vector<NearestCandidate> candidates;
    candidates.reserve(predictions.size());
    for (const auto& [fraction, score] : predictions)
      candidates.push_back({.prediction = {.fraction = fraction, .score = score}});
    return fastest_of(candidates);
  };
  EXPECT_EQ(chosen({{0.8, 0.7}}), 0u);
  EXPECT_EQ(chosen({{0.8, 0.7}, {0.9, 0.8}, {0.95, 0.85}, {0.97, 0.75}}), 2u) << "the best score";
  EXPECT_EQ(chosen({{0.8, 0.7}, {0.9, 0.705}}), 0u) << "hardly better";
  EXPECT_EQ(chosen({{0.8, 0.5}, {0.79, 0.75}}), 0u) << "surer, but predicted slower";
  EXPECT_EQ(chosen({{0.8, 0.5}, {0.79, 0.75}, {0.85, 0.6}}), 2u);
  EXPECT_EQ(chosen({{0.4, 0.3}, {0.55, 0.5}}), 0u) << "of such a shape nothing is known";
}

TEST_F(Nearest, WhereTheDefaultIsBestItIsTheAnswerWithItsPrediction) {
  for (const int64_t m : {24, 48, 96, 160})
    for (const int64_t n : {32, 64})
      tune_by_formula(product(m, n, 64), cpu_, 30, [](const Config& c, const ConfigSpace& s) {
        return c == s.at(s.default_index()) ? 500.0 : 2000.0;
      });
  const Result<Answer> answer =
      Resolver(store_.get(), {.learn_if_missing = true}).resolve(product(80, 48, 64), cpu_);
  ASSERT_TRUE(answer) << answer.message();
  EXPECT_EQ(answer->kind, AnswerKind::kDefault);
  EXPECT_TRUE(answer->known);
  EXPECT_EQ(answer->predicted, answer->predicted_default);
  EXPECT_THAT(answer->note, HasSubstr("predicted"));
}

// A cover set always has a config to offer: the default has to beat it by its own score.
TEST_F(Nearest, AnOfferPredictedWorseThanTheDefaultIsNotChosen) {
  for (const int64_t m : {24, 48, 96, 160})
    for (const int64_t n : {32, 64})
      tune_by_formula(product(m, n, 64), cpu_, 30, [](const Config& c, const ConfigSpace& s) {
        return c == s.at(s.default_index()) ? 500.0 : 2000.0;
      });
  const Workload asked = product(80, 48, 64);
  const std::string offered = other_config(asked, cpu_);
  LearnedRow row{.kind = "cover", .op = "matmul", .target = cpu_.name()};
  row.document = str(R"({"version": 1, "op": "matmul", "target": ")", cpu_.name(),
                     R"(", "configs": [{"template": "matmul_cpu", "template_version": )", matmul().version(),
                     R"(, "config": ")", offered,
                     R"("}], "tree": [{"use": 0}], "columns": 8, "worst": 0.2, "mean": 0.25})");
  ASSERT_OK(store_->add_learned(row));
  // Where nothing is known of the default, the offer is taken.
  EXPECT_EQ(Resolver(store_.get()).resolve(asked, cpu_)->kind, AnswerKind::kPortable);
  const Result<Answer> answer = Resolver(store_.get(), {.learn_if_missing = true}).resolve(asked, cpu_);
  ASSERT_TRUE(answer) << answer.message();
  EXPECT_EQ(answer->kind, AnswerKind::kDefault) << answer->note;
  EXPECT_NE(answer->config, offered);
  EXPECT_GT(answer->predicted_default, 0.5);
}

TEST_F(Nearest, NothingIsLearnedOfThreeShapesAndNothingTwiceOfTheSameRecords) {
  const auto ns = [](const Config& c, const ConfigSpace& s) { return tile_time(c, s, 2); };
  for (const int64_t m : {24, 48, 96}) tune_by_formula(product(m, 32, 64), cpu_, 10, ns);
  EXPECT_FALSE(learn_and_store(*store_, "matmul", cpu_.name()).value());
  tune_by_formula(product(160, 32, 64), cpu_, 10, ns);
  EXPECT_TRUE(learn_and_store(*store_, "matmul", cpu_.name()).value());
  EXPECT_FALSE(learn_and_store(*store_, "matmul", cpu_.name()).value());
  tune_by_formula(product(200, 32, 64), cpu_, 10, ns);
  EXPECT_TRUE(learn_and_store(*store_, "matmul", cpu_.name()).value());
}

TEST_F(Nearest, WhatIsStoredReadsBackAndPredictsTheSame) {
  tune_shapes();
  const Knowledge made = learn(*store_, "matmul", cpu_).value();
  const Result<Knowledge> read = Knowledge::from_text(made.to_text());
  ASSERT_TRUE(read) << read.message();
  EXPECT_EQ(read->to_text(), made.to_text());
  ASSERT_EQ(made.variants.size(), 1u);
  const Workload w = product(80, 96, 64);
  const auto instance = matmul().apply(w, cpu_);
  const ConfigSpace& space = (*instance)->space();
  std::mt19937_64 random(5);
  for (int i = 0; i < 50; ++i) {
    const CandidateFacts facts =
        candidate_facts(shape_of(w), "matmul_cpu", space, space.at(space.sample(random)));
    EXPECT_EQ(made.variants.begin()->second.predict(facts).fraction,
              read->variants.begin()->second.predict(facts).fraction);
  }
}

TEST_F(Nearest, ACutOrChangedDocumentIsRefusedOrPredictsSomethingFinite) {
  for (const int64_t m : {24, 48, 96, 160, 200})
    tune_by_formula(product(m, 32, 64), cpu_, 6,
                    [](const Config& c, const ConfigSpace& s) { return tile_time(c, s, 2); });
  const std::string good = learn(*store_, "matmul", cpu_).value().to_text();
  const Workload w = product(80, 96, 64);
  const auto instance = matmul().apply(w, cpu_);
  const ConfigSpace& space = (*instance)->space();
  const CandidateFacts facts =
      candidate_facts(shape_of(w), "matmul_cpu", space, space.at(space.default_index()));
  const RandomSeed seed(11);
  std::mt19937_64 random(seed);
  int refused = 0, accepted = 0;
  for (int i = 0; i < 400; ++i) {
    std::string text = good;
    for (int change = 0; change < 3; ++change) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(random() % 256);
          break;
        case 1:
          text[at] = static_cast<char>('0' + random() % 10);
          break;
        case 2:
          text.erase(at, 1 + random() % 20);
          break;
        default:
          text.resize(at + 1);
      }
    }
    const Result<Knowledge> read = Knowledge::from_text(text);
    if (!read) {
      ++refused;
      EXPECT_EQ(read.status().code(), StatusCode::kInvalidArgument);
      continue;
    }
    ++accepted;
    for (const auto& [variant, predictor] : read->variants)
      EXPECT_TRUE(std::isfinite(predictor.predict(facts).fraction));
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(accepted + refused, 399);
}

TEST_F(Resolve, ACoverSetAnswersWhereNothingElseDoes) {
  const Workload w = product(64, 64, 64);
  const std::string config = other_config(w, cpu_);
  const std::string document = str(R"({"version": 1, "op": "matmul", "target": ")", cpu_.name(),
                                   R"(", "configs": [{"template": "matmul_cpu", "template_version": )",
                                   matmul().version(), R"(, "config": ")", config,
                                   R"("}], "tree": [{"use": 0}], "columns": 9, "worst": 0.8, "mean": 0.93})");
  LearnedRow row{.kind = "cover", .op = "matmul", .target = cpu_.name(), .document = document};
  ASSERT_OK(store_->add_learned(row));
  const Result<Answer> answer = Resolver(store_.get()).resolve(w, cpu_);
  ASSERT_TRUE(answer) << answer.message();
  EXPECT_EQ(answer->kind, AnswerKind::kPortable);
  EXPECT_EQ(answer->config, config);
  EXPECT_DOUBLE_EQ(answer->predicted, 0.93);
  EXPECT_DOUBLE_EQ(answer->low, 0.8);
  EXPECT_THAT(answer->note, HasSubstr("serves 9 shapes"));
}

TEST_F(Resolve, ADamagedLearnedDocumentIsAnErrorThatNamesIt) {
  LearnedRow row{.kind = "predictor", .op = "matmul", .target = cpu_.name(), .document = "{\"format\": 1"};
  ASSERT_OK(store_->add_learned(row));
  const Result<Answer> answer = Resolver(store_.get()).resolve(product(64, 64, 64), cpu_);
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.message(), HasSubstr(str("learned document ", row.id)));
}

TEST(AnswerKinds, NamesReadBack) {
  for (const AnswerKind kind : {AnswerKind::kExact, AnswerKind::kSameFamily, AnswerKind::kNearest,
                                AnswerKind::kPortable, AnswerKind::kDefault})
    EXPECT_EQ(answer_kind_from_name(answer_kind_name(kind)), kind);
  EXPECT_EQ(answer_kind_from_name("guess"), std::nullopt);
}

}  // namespace
}  // namespace tuner
