// What a target with a class of devices is answered, and what one that leaves it open, from old databases and
// new.
#include <gmock/gmock.h>

#include "db/learning/knowledge.h"
#include "db/resolve/answer_lock.h"
#include "db/resolve/resolve.h"
#include "templates/schedule_template.h"
#include "tests/db/store_fixture.h"

namespace tuner {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kOnH100[] = "NVIDIA H100 80GB HBM3 sm_90 | 132 multiprocessors | driver CUDA 13.0",
               kOnH200[] = "NVIDIA H200 sm_90 | 132 multiprocessors | driver CUDA 13.0";

Workload product(int64_t m, bool bias = false) {
  MatmulWorkload w;
  w.m = m;
  w.n = w.k = 128;
  w.bias = bias;
  return w;
}

const AnyTemplate& matmul() { return *find_template("matmul_cuda"); }

class DeviceAnswers : public testing::Test {
 protected:
  // The number-th config of the default's space, and its time on that device.
  struct Trial {
    int number;
    double ns;
    const char* hardware;
  };
  std::string config_of(const Workload& w, int number) const {
    const auto instance = matmul().apply(w, any_);
    const ConfigSpace& space = (*instance)->space();
    return space.at((space.default_index() + static_cast<ConfigIndex>(number)) % space.size()).to_text();
  }
  std::vector<std::string> tuned(const Workload& w, const Target& target, const std::vector<Trial>& trials) {
    const std::string job = str("j", ++jobs_);
    CHECK(store_->add_job(job_row(job, {{w.key(), target.name()}})).is_ok());
    std::vector<TrialRow> rows;
    for (const Trial& trial : trials) {
      rows.push_back(trial_row(job, config_of(w, trial.number)));
      rows.back().template_name = matmul().name();
      rows.back().template_version = matmul().version();
    }
    CHECK(store_->add_trials(rows).is_ok());
    std::vector<MeasureRecord> records;
    std::vector<std::string> ids;
    for (size_t i = 0; i < rows.size(); ++i) {
      records.push_back(ok_record(rows[i].id, {trials[i].ns, trials[i].ns, trials[i].ns}));
      records.back().environment.hardware = trials[i].hardware;
      records.back().environment.toolchain = "nvrtc 13.0 cuda codegen 1";
      ids.push_back(rows[i].id);
    }
    CHECK(store_->add_records(records).is_ok());
    return ids;
  }
  Answer answer(const Workload& w, const Target& target) const {
    Result<Answer> found = Resolver(store_.get(), options_).resolve(w, target);
    CHECK(found.is_ok()) << found.message();
    return *std::move(found);
  }

  const Target any_ = *parse_target("cuda -arch=sm_90a"),
               h100_ = *parse_target("cuda -arch=sm_90a -device=h100"),
               h200_ = *parse_target("cuda -arch=sm_90a -device=h200");
  TemporaryFolder folder_;
  std::unique_ptr<Store> store_ = must_open(folder_.file("t.db"));
  ResolverOptions options_;
  int jobs_ = 0;
};

// An old database: all that was measured stands under the architecture.
TEST_F(DeviceAnswers, AnOldDatabaseAnswersEachDeviceWithItsOwn) {
  const Workload w = product(256);
  tuned(w, any_, {{1, 30, kOnH100}, {2, 20, kOnH200}, {3, 10, kOnH100}});
  const Answer before = answer(w, any_), h100 = answer(w, h100_), h200 = answer(w, h200_);
  for (const Answer* a : {&before, &h100, &h200}) EXPECT_EQ(a->kind, AnswerKind::kExact) << a->note;
  EXPECT_EQ(before.config, config_of(w, 3));
  EXPECT_EQ(before.note, "");
  EXPECT_EQ(h100.config, config_of(w, 3));
  EXPECT_EQ(h200.config, config_of(w, 2));
  EXPECT_EQ(h200.target, "cuda -arch=sm_90a -device=h200") << "what was asked for";
  EXPECT_EQ(h200.note, "recorded under \"cuda -arch=sm_90a\", on a device of the class h200");
  EXPECT_EQ(h200.rests_on[0].time_ns, 20);
  EXPECT_TRUE(kernel_of(h200, w, h200_));
}

TEST_F(DeviceAnswers, AcrossClassesIsSameFamilyAndSaysSo) {
  const Workload w = product(256);
  const auto ids = tuned(w, h100_, {{1, 30, kOnH100}});
  Answer a = answer(w, h200_);
  EXPECT_EQ(a.kind, AnswerKind::kSameFamily);
  EXPECT_EQ(a.config, config_of(w, 1));
  EXPECT_EQ(a.rests_on[0].trial_id, ids[0]);
  EXPECT_THAT(a.note, AllOf(HasSubstr("nothing tuned for"), HasSubstr("-device=h100\" is used (tuned for the "
                                                                      "device class h100, trial ")));
  // The same of a row of before.
  const Workload old = product(320);
  tuned(old, any_, {{1, 30, kOnH100}});
  a = answer(old, h200_);
  EXPECT_EQ(a.kind, AnswerKind::kSameFamily);
  EXPECT_THAT(a.note, HasSubstr("(tuned for a device that is not named, measured on h100, trial "));
}

TEST_F(DeviceAnswers, WhereTheDeviceIsOpenAClassAnswersExactly) {
  const Workload w = product(256);
  tuned(w, h200_, {{2, 20, kOnH200}});
  const Answer a = answer(w, any_);
  EXPECT_EQ(a.kind, AnswerKind::kExact);
  EXPECT_EQ(a.config, config_of(w, 2));
  EXPECT_EQ(a.note,
            "recorded under \"cuda -arch=sm_90a -device=h200\", one of the devices that the target means");
}

// An H200's own times with another epilogue go before those of another device without.
TEST_F(DeviceAnswers, AnotherEpilogueOnTheDeviceIsNearerThanAnotherDevice) {
  const Workload asked = product(256, /*bias=*/true);
  tuned(product(256), any_, {{1, 20, kOnH200}, {2, 10, kOnH100}});
  tuned(asked, h100_, {{3, 10, kOnH100}});
  const Answer a = answer(asked, h200_);
  EXPECT_EQ(a.kind, AnswerKind::kSameFamily);
  EXPECT_EQ(a.config, config_of(asked, 1)) << a.note;
  EXPECT_THAT(a.note, AllOf(HasSubstr("another epilogue"), Not(HasSubstr("device class"))));
}

// Where the device is open, the default may have been measured on another one than the best.
TEST_F(DeviceAnswers, AGainIsOfOneDevice) {
  options_.count_outcomes = true;
  const Workload w = product(256);
  tuned(w, any_, {{0, 100, kOnH100}, {1, 20, kOnH200}});
  EXPECT_EQ(answer(w, h200_).tuned->default_time_ns, 0) << "the default's 100 ns are of an H100";
  EXPECT_EQ(answer(w, h200_).tuned->trials, 1);
  tuned(w, h200_, {{0, 50, kOnH200}, {2, 10, kOnH200}});
  const Answer a = answer(w, h200_);
  EXPECT_EQ(a.tuned->time_ns, 10);
  EXPECT_EQ(a.tuned->default_time_ns, 50);
}

TEST_F(DeviceAnswers, WhatWasLearnedForAnyDeviceServesAClass) {
  for (const int64_t m : {64, 128, 192, 320, 384}) {
    std::vector<Trial> trials;
    for (int i = 0; i < 24; ++i)
      trials.push_back({i, 100.0 + 10 * ((i * 7) % 24), i % 3 == 0 ? kOnH100 : kOnH200});
    tuned(product(m), any_, trials);
  }
  // Learned here: of the records of the class alone.
  const Result<Knowledge> of_class = learn(*store_, "matmul", h200_), of_any = learn(*store_, "matmul", any_);
  ASSERT_TRUE(of_class && of_any);
  const auto rows = [](const Knowledge& k) {
    return k.variants.empty() ? 0 : k.variants.begin()->second.rows();
  };
  EXPECT_EQ(of_class->shapes.size(), 5u);
  EXPECT_EQ(rows(*of_any), 5u * 24);
  EXPECT_EQ(rows(*of_class), 5u * 16);
  EXPECT_EQ(learn(*store_, "matmul", *parse_target("cuda -arch=sm_90a -device=gh200"))->shapes.size(), 0u);
  // Stored for any device.
  const Workload asked = product(256);
  EXPECT_FALSE(answer(asked, h200_).known);
  ASSERT_TRUE(learn_and_store(*store_, "matmul", any_.name()).value());
  EXPECT_TRUE(answer(asked, h200_).known);
  EXPECT_EQ(answer(asked, h200_).config, answer(asked, any_).config);
  // A document of the class goes before it.
  LearnedRow own{.kind = "predictor", .op = "matmul", .target = h200_.name(), .document = "none"};
  ASSERT_OK(store_->add_learned(own));
  EXPECT_FALSE(Resolver(store_.get()).resolve(asked, h200_)) << "it is read, and it is damaged";
  EXPECT_TRUE(Resolver(store_.get()).resolve(asked, h100_));
}

TEST_F(DeviceAnswers, ALockForAnyDeviceLocksEach) {
  const Workload w = product(256);
  const auto lock = [&](const Target& target, int number) {
    AnswerLock made("answers.lock");
    made.put({.task = locked_task(w, target, "", Constants::kWarm),
              .choice = {std::string(matmul().name()), matmul().version(), config_of(w, number)}});
    return made;
  };
  const AnswerLock open = lock(any_, 1), h200 = lock(h200_, 2);
  options_.lock = &open;
  EXPECT_EQ(answer(w, any_).config, config_of(w, 1));
  EXPECT_EQ(answer(w, h200_).config, config_of(w, 1));
  EXPECT_EQ(answer(w, h200_).kind, AnswerKind::kLocked);
  options_.lock = &h200;
  EXPECT_EQ(answer(w, h200_).config, config_of(w, 2));
  EXPECT_FALSE(Resolver(store_.get(), options_).resolve(w, any_))
      << "one device's lock is not every device's";
  EXPECT_FALSE(Resolver(store_.get(), options_).resolve(w, h100_));
}

}  // namespace
}  // namespace tuner
