// Which config a workload gets: each kind of answer, what it says of itself, and what is refused.
#include "db/resolve/resolve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "db/learning/cover.h"
#include "db/learning/knowledge.h"
#include "db/learning/predictor.h"
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

// Also where only cold times stand under the former name.
TEST_F(Resolve, AMachineWhoseTargetHasAnotherNameKeepsItsColdAnswers) {
  const Workload w = product(64, 64, 64);
  const Target before = target("llvm -mcpu=rocketlake"), now = target("llvm -mcpu=icelake-server");
  JobRow job = job_row("j1", {{w.key(), before.name()}});
  job.tasks[0].constants = job.options.constants = Constants::kCold;
  ASSERT_OK(store_->add_job(job));
  std::vector<TrialRow> rows = {trial_row("j1", other_config(w, before))};
  rows[0].template_name = "matmul_cpu";
  rows[0].template_version = matmul().version();
  ASSERT_OK(store_->add_trials(rows));
  ASSERT_OK(store_->add_records({ok_record(rows[0].id, {700})}));
  const Resolver resolver(store_.get(),
                          {.present = [](const Target&) { return Present{.hardware = "cpu X"}; }});
  const Answer cold = resolver.resolve(w, now, "", Constants::kCold).value();
  EXPECT_EQ(cold.kind, AnswerKind::kExact) << cold.note;
  EXPECT_EQ(cold.tuned->time_ns, 700);
  EXPECT_NE(resolver.resolve(w, now).value().kind, AnswerKind::kExact)
      << "a cold time answers no warm question";
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

// A document may be stored after the last record: whoever asks again is answered from it.
TEST_F(Nearest, AResolverThatLivesReadsANewerDocument) {
  tune_shapes();
  const Workload asked = product(80, 96, 64);
  const Resolver resolver(store_.get());
  EXPECT_EQ(resolver.resolve(asked, cpu_)->kind, AnswerKind::kDefault) << "nothing is learned yet";
  ASSERT_TRUE(learn_and_store(*store_, "matmul", cpu_.name()).value());
  EXPECT_EQ(resolver.resolve(asked, cpu_)->kind, AnswerKind::kNearest);
  LearnedRow newest{.kind = "predictor", .op = "matmul", .target = cpu_.name(), .document = "none"};
  ASSERT_OK(store_->add_learned(newest));
  EXPECT_FALSE(resolver.resolve(asked, cpu_).is_ok()) << "the newest document, which is damaged, is read";

  // The candidates: the default, then configs of other shapes, of the nearest first.
  const Knowledge knowledge = learn(*store_, "matmul", cpu_).value();
  const auto serving = serving_templates(asked, cpu_, "");
  ASSERT_TRUE(serving) << serving.message();
  const auto candidates = candidates_for(knowledge, asked, *serving);
  ASSERT_GT(candidates.size(), 3u);
  EXPECT_EQ(candidates[0].from, nullptr);
  const VariantPredictor& predictor = knowledge.variants.begin()->second;
  std::set<std::string> shapes;
  double nearest = 0;
  for (size_t i = 1; i < candidates.size(); ++i) {
    const double distance = shape_distance(shape_of(asked), candidates[i].from->shape, predictor);
    EXPECT_GE(distance, nearest);
    nearest = distance;
    shapes.insert(candidates[i].from->workload_key);
  }
  EXPECT_GE(shapes.size(), 6u) << "most of the 12 shapes have a config that no nearer one has";
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

// How well it does on shapes that it was not made from is what an unknown shape may expect.
TEST_F(Resolve, ACoverSetPromisesWhatItReachedOnShapesThatWereHidden) {
  const Workload w = product(64, 64, 64);
  LearnedRow row{.kind = "cover", .op = "matmul", .target = cpu_.name()};
  row.document = str(R"({"version": 1, "op": "matmul", "target": ")", cpu_.name(),
                     R"(", "configs": [{"template": "matmul_cpu", "template_version": )", matmul().version(),
                     R"(, "config": ")", other_config(w, cpu_),
                     R"("}], "tree": [{"use": 0}], "columns": 9, "worst": 0.8, "mean": 0.93, )",
                     R"("left_out": {"columns": 9, "known": 7, "worst": 0.5, "mean": 0.75}})");
  ASSERT_OK(store_->add_learned(row));
  const Result<Answer> answer = Resolver(store_.get()).resolve(w, cpu_);
  ASSERT_TRUE(answer) << answer.message();
  EXPECT_EQ(answer->kind, AnswerKind::kPortable);
  EXPECT_DOUBLE_EQ(answer->predicted, 0.75);
  EXPECT_DOUBLE_EQ(answer->low, 0.5);
}

// A raced time stands beside a raced default, one trial's beside one trial's.
TEST_F(Resolve, ARacedTimeIsNotComparedWithADefaultThatDidNotRace) {
  const Workload w = product(64, 64, 64);
  const auto instance = matmul().apply(w, cpu_);
  const ConfigSpace& space = (*instance)->space();
  const auto ids =
      tuned(w, cpu_, {{space.at(space.default_index()).to_text(), 2000}, {other_config(w, cpu_), 1000}});
  const Resolver resolver(store_.get(), {.count_outcomes = true});
  EXPECT_EQ(resolver.resolve(w, cpu_)->tuned->default_time_ns, 2000);
  RaceRow race{.job_id = "j1", .winner_trial_id = ids[1], .tie_set = {ids[1]}};
  race.finalists = {{ids[1], {1100}, {50}, {0}}};
  race.time_ns = race.time_low_ns = race.time_high_ns = 1100;
  ASSERT_OK(store_->add_race(race));
  const Answer raced = *resolver.resolve(w, cpu_);
  EXPECT_EQ(raced.tuned->time_ns, 1100);
  EXPECT_EQ(raced.tuned->default_time_ns, 0);
}

// The fastest config of a relative may be of an algorithm that was not asked for; then its next one serves.
TEST_F(Resolve, ARelativeLendsAConfigOfAnAllowedAlgorithm) {
  Conv2dWorkload conv;
  conv.batch = 1, conv.in_channels = 8, conv.in_height = conv.in_width = 12, conv.out_channels = 16;
  conv.kernel_height = conv.kernel_width = 3;
  conv.padding = {1, 1, 1, 1};
  conv.constant = {"weight"};
  const Workload asked(conv);
  conv.bias = true;
  const Workload relative(conv);
  ASSERT_OK(store_->add_job(job_row("j1", {{relative.key(), cpu_.name()}})));
  double ns = 100;
  std::string direct;
  for (const char* const algorithm : {"winograd", "direct"}) {
    const auto serving = serving_templates(relative, cpu_, algorithm);
    ASSERT_TRUE(serving) << serving.message();
    const ConfigSpace& space = serving->front().instance->space();
    std::vector<TrialRow> rows = {trial_row("j1", space.at(space.default_index()).to_text())};
    rows[0].template_name = direct = std::string(serving->front().schedule_template->name());
    rows[0].template_version = serving->front().schedule_template->version();
    ASSERT_OK(store_->add_trials(rows));
    ASSERT_OK(store_->add_records({ok_record(rows[0].id, {ns})}));
    ns *= 2;
  }
  const Result<Answer> answer = Resolver(store_.get()).resolve(asked, cpu_, "direct");
  ASSERT_TRUE(answer) << answer.message();
  EXPECT_EQ(answer->kind, AnswerKind::kSameFamily) << answer->note;
  EXPECT_EQ(answer->template_name, direct);
  EXPECT_EQ(answer->tuned->time_ns, 200);
}

class LessonRows : public Resolve {
 protected:
  struct Measured {
    std::string config;
    double ns = 0;
    std::string hardware = "cpu X";
    bool cut = false;
    Outcome outcome = Outcome::kOk;
    std::string template_name = "matmul_cpu";
  };
  void measure(const Workload& w, const std::vector<Measured>& all) {
    const std::string job = str("j", ++jobs_);
    ASSERT_OK(store_->add_job(job_row(job, {{w.key(), cpu_.name()}})));
    std::vector<TrialRow> rows;
    for (const Measured& m : all) {
      rows.push_back(trial_row(job, m.config));
      rows.back().template_name = m.template_name;
      rows.back().template_version = matmul().version();
    }
    ASSERT_OK(store_->add_trials(rows));
    std::vector<MeasureRecord> records;
    for (size_t i = 0; i < all.size(); ++i) {
      records.push_back(ok_record(rows[i].id, {}));
      records.back().outcome = all[i].outcome;
      if (all[i].outcome == Outcome::kOk) records.back().run_ns = {all[i].ns};
      records.back().cut = all[i].cut;
      records.back().environment.hardware = all[i].hardware;
    }
    ASSERT_OK(store_->add_records(records));
  }
};

TEST_F(LessonRows, TimesOfAMachineAreComparedWithItsOwnAndWhatFailedIsWorst) {
  const Workload w = product(64, 64, 64);
  const auto instance = matmul().apply(w, cpu_);
  const ConfigSpace& space = (*instance)->space();
  std::vector<std::string> c;
  for (ConfigIndex i = 0; i < 4; ++i) c.push_back(space.at(i).to_text());
  measure(w, {{c[0], 100, "fast"},
              {c[1], 200, "fast"},
              {c[0], 1000, "slow"},
              {c[1], 4000, "slow"},
              {c[2], 500, "third", /*cut=*/true},
              {c[3], 0, "fast", false, Outcome::kCrashed}});
  const auto lessons = lesson_rows(*store_, "matmul", cpu_);
  ASSERT_TRUE(lessons) << lessons.message();
  ASSERT_EQ(lessons->size(), 1u);
  std::multiset<double> fractions;
  for (const Lesson& lesson : lessons->begin()->second.rows) fractions.insert(lesson.fraction);
  // 100 / 100, 100 / 200, 1000 / 1000, 1000 / 4000, a crash. A bound alone is no time to compare with.
  EXPECT_EQ(fractions, (std::multiset<double>{0, 0.25, 0.5, 1, 1}));
}

TEST_F(LessonRows, ThreeConfigsOfEveryTemplateAreKept) {
  std::vector<Measured> all;
  for (int i = 0; i < 5; ++i)
    for (const char* const name : {"matmul_cpu", "other_cpu"})
      all.push_back({str("a=", i), 100.0 + i, "cpu X", false, Outcome::kOk, name});
  all.push_back({"a=0", 90, "cpu X"});  // the fastest again: one config, once
  measure(product(64, 64, 64), all);
  const Knowledge knowledge = learn(*store_, "matmul", cpu_).value();
  ASSERT_EQ(knowledge.shapes.size(), 1u);
  std::map<std::string, std::vector<std::string>> kept;
  for (const TopConfig& top : knowledge.shapes[0].tops) kept[top.template_name].push_back(top.config);
  const std::vector<std::string> fastest = {"a=0", "a=1", "a=2"};
  EXPECT_EQ(kept["matmul_cpu"], fastest);
  EXPECT_EQ(kept["other_cpu"], fastest);
}

TEST_F(LessonRows, OfManyTasksTheNewestTeach) {
  JobRow job = job_row("j1", {});
  for (int64_t m = 1; m <= 402; ++m) job.tasks.push_back({product(m, 64, 64).key(), cpu_.name()});
  ASSERT_OK(store_->add_job(job));
  std::vector<TrialRow> rows;
  for (int i = 0; i < 402; ++i) rows.push_back(trial_row("j1", "a=1", i));
  ASSERT_OK(store_->add_trials(rows));
  std::vector<MeasureRecord> records;
  for (const TrialRow& row : rows) records.push_back(ok_record(row.id, {100}));
  ASSERT_OK(store_->add_records(records));
  const Knowledge knowledge = learn(*store_, "matmul", cpu_).value();
  ASSERT_EQ(knowledge.shapes.size(), 400u);
  EXPECT_EQ(knowledge.shapes.front().workload_key, product(3, 64, 64).key());
  EXPECT_EQ(knowledge.shapes.back().workload_key, product(402, 64, 64).key());
}

// Candidates are ordered by a score that is lower where the models disagree.
TEST(VariantPredictor, DoubtLowersTheScore) {
  std::vector<Lesson> rows;
  for (int shape = 0; shape < 8; ++shape)
    for (int knob = 0; knob < 6; ++knob)
      rows.push_back({{{"knob", static_cast<float>(knob)}, {"log2 m", static_cast<float>(shape)}},
                      shape,
                      0.1 + 0.05 * ((shape * 5 + knob * 3) % 7)});
  const auto predictor = VariantPredictor::learn(rows, /*calibrate=*/false);
  ASSERT_TRUE(predictor) << predictor.message();
  int doubtful = 0;
  for (const Lesson& row : rows) {
    const Prediction p = predictor->predict(row.facts);
    EXPECT_LE(p.score, p.fraction * 1.000001);
    doubtful += p.score < 0.99 * p.fraction ? 1 : 0;
  }
  EXPECT_GT(doubtful, 5);
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
