// Job files as they are written: what is read back is what was written, for every operator.
#include "tuner/jobs/job_text.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/random_seed.h"
#include "tests/templates/random_epilogue.h"
#include "tuner/jobs/job_file.h"
#include "tuner/jobs/job_groups.h"

namespace tuner::cli {
namespace {

TEST(JobText, ReadsAsPeopleWriteIt) {
  const Conv2dWorkload conv{.batch = 1,
                            .in_channels = 64,
                            .in_height = 56,
                            .in_width = 56,
                            .out_channels = 64,
                            .kernel_height = 3,
                            .kernel_width = 3,
                            .stride = {2, 1},
                            .padding = {1, 1, 1, 1},
                            .bias = true,
                            .activation = Activation::kRelu,
                            .constant = {"weight"}};
  EXPECT_EQ(job_text({{.workload = conv, .uses = 3, .trials = 64},
                      {.workload = SoftmaxWorkload{.rows = 7, .columns = 9}, .target = "cuda -arch=sm_90a"},
                      {.workload = SoftmaxWorkload{.rows = 7, .columns = 9}, .constants = Constants::kCold}}),
            R"([
  {"op": "conv2d", "data": [1, 64, 56, 56], "weight": [64, 64, 3, 3], "stride": [2, 1], "padding": [1, 1], "bias": true, "activation": "relu", "constant": ["weight"], "target": "cpu", "uses": 3, "trials": 64},
  {"op": "softmax", "rows": 7, "columns": 9, "target": "cuda -arch=sm_90a"},
  {"op": "softmax", "rows": 7, "columns": 9, "target": "cpu", "measure": {"constants":"cold"}}
]
)");
}

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}
  int64_t number(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  bool flag() { return random_() % 2 == 0; }
  Activation activation() { return testing::kActivations[number(0, std::ssize(testing::kActivations) - 1)]; }
  std::vector<std::string> some(std::vector<std::string> names) {
    std::erase_if(names, [&](const std::string&) { return flag(); });
    return names;
  }

  template <class Product>
  Product with_types(Product w) {
    constexpr DType kTypes[] = {DType::kFloat32, DType::kBFloat16, DType::kInt8, DType::kFloat16};
    w.dtype = kTypes[number(0, std::is_same_v<Product, MatmulWorkload> ? 3 : 2)];
    const auto allowed = out_dtypes(w.dtype);
    if (const DType out = allowed[number(0, std::ssize(allowed) - 1)]; out != sum_dtype(w.dtype))
      w.narrow_out = out;
    const Activation of_integers = flag() ? Activation::kRelu : Activation::kNone;
    testing::draw_epilogue(w, w.dtype == DType::kInt8 ? of_integers : activation(), /*in_place=*/true,
                           random_);
    return w;
  }

  Workload workload() {
    switch (number(0, 7)) {
      case 0:
        return with_types(MatmulWorkload{.batch = number(1, 3),
                                         .m = number(1, 9),
                                         .n = number(1, 9),
                                         .k = number(1, 9),
                                         .transpose_a = flag(),
                                         .transpose_b = flag(),
                                         .constant = some({"a", "b"})});
      case 1: {
        const int64_t groups = number(1, 3);
        return with_types(Conv2dWorkload{.batch = number(1, 3),
                                         .in_channels = 16 * groups * number(1, 2),
                                         .in_height = number(7, 20),
                                         .in_width = number(7, 20),
                                         .out_channels = 16 * groups,
                                         .kernel_height = number(1, 3),
                                         .kernel_width = number(1, 3),
                                         .stride = {number(1, 2), number(1, 2)},
                                         .padding = {number(0, 1), number(0, 1), number(0, 1), number(0, 1)},
                                         .dilation = {number(1, 2), number(1, 2)},
                                         .groups = groups,
                                         .layout = flag() ? "NCHW" : "NCHW8c",
                                         .out_layout = flag() ? "NCHW" : "NCHW16c",
                                         .constant = some({"data", "weight"})});
      }
      case 2: {
        const bool average = flag();
        return Pool2dWorkload{.batch = number(1, 3),
                              .channels = 8,
                              .in_height = number(5, 9),
                              .in_width = number(5, 9),
                              .kernel_height = number(2, 5),
                              .kernel_width = number(2, 5),
                              .stride = {number(1, 2), number(1, 2)},
                              .padding = {number(0, 1), 0, number(0, 1), 0},
                              .pooling = average ? Pooling::kAverage : Pooling::kMax,
                              .count_include_pad = average && flag(),
                              .layout = flag() ? "NCHW" : "NCHW4c"};
      }
      case 3:
        return SoftmaxWorkload{.rows = number(1, 99), .columns = number(1, 99)};
      case 4:
        return LayerNormWorkload{
            .rows = number(1, 99), .columns = number(1, 99), .epsilon = flag() ? 1e-5 : 1e-12};
      case 5:
        return ReduceWorkload{.rows = number(1, 99),
                              .columns = number(1, 99),
                              .reduction = static_cast<RowReduction>(number(0, 3))};
      case 6:
        return TransposeWorkload{.rows = number(1, 99), .columns = number(1, 99)};
      default:
        return ElementwiseWorkload{.rows = number(1, 99),
                                   .columns = number(1, 99),
                                   .scale = flag(),
                                   .bias = flag(),
                                   .residual = flag(),
                                   .activation = activation()};
    }
  }

 private:
  std::mt19937_64 random_;
};

// Of one job are the tasks that are searched and measured alike in every respect.
TEST(JobGroups, HoldWhatIsSearchedAndMeasuredAlike) {
  const Workload softmax = SoftmaxWorkload{.rows = 7, .columns = 9};
  const JobRow::Task task{softmax.key(), "llvm -mcpu=haswell -threads=1"};
  const auto groups_with = [&](const auto& change) {
    JobRow other{.trials = 64, .search = "random", .seed = 1};
    std::vector<JobGroup> groups;
    add_task(groups, other, task, softmax);
    change(other);
    add_task(groups, other, task, softmax);
    return groups.size();
  };
  EXPECT_EQ(groups_with([](JobRow&) {}), 1u);
  EXPECT_EQ(groups_with([](JobRow& j) { j.trials = 65; }), 2u);
  EXPECT_EQ(groups_with([](JobRow& j) { j.search = "grid"; }), 2u);
  EXPECT_EQ(groups_with([](JobRow& j) { j.seed = 2; }), 2u);
  EXPECT_EQ(groups_with([](JobRow& j) { j.stop.time_limit_s = 5; }), 2u);
  EXPECT_EQ(groups_with([](JobRow& j) { j.stop.below = 0.5; }), 2u);
  EXPECT_EQ(groups_with([](JobRow& j) { j.options.min_repeat_ms = 5; }), 2u);
  EXPECT_EQ(groups_with([](JobRow& j) { j.options.repeats = 5; }), 2u);
  EXPECT_EQ(groups_with([](JobRow& j) { j.options.build_timeout_s = 5; }), 2u);
  EXPECT_EQ(groups_with([](JobRow& j) { j.options.run_timeout_s = 5; }), 2u);
  EXPECT_EQ(groups_with([](JobRow& j) { j.options.memory_limit_bytes = 5; }), 2u);
  EXPECT_EQ(groups_with([](JobRow& j) { j.options.precision = 0.5; }), 2u);
  EXPECT_EQ(groups_with([](JobRow& j) { j.options.constants = Constants::kCold; }), 2u);
}

TEST(JobGroups, AddUpTheUsesOfARepeatedTask) {
  const Workload softmax = SoftmaxWorkload{.rows = 7, .columns = 9};
  const JobRow job{.trials = 64, .search = "random", .seed = 1};
  std::vector<JobGroup> groups;
  JobRow::Task task{softmax.key(), "llvm -mcpu=haswell -threads=1", "", 3};
  add_task(groups, job, task, softmax);
  add_task(groups, job, task, softmax);
  for (const auto& change : {+[](JobRow::Task& t) { t.target = "cuda -arch=sm_90a"; },
                             +[](JobRow::Task& t) { t.algorithms = "winograd"; },
                             +[](JobRow::Task& t) { t.constants = Constants::kCold; }}) {
    JobRow::Task other = task;
    change(other);
    add_task(groups, job, other, softmax);
  }
  ASSERT_EQ(groups.size(), 1u);
  ASSERT_EQ(groups[0].job.tasks.size(), 4u) << "the others are tasks of their own";
  EXPECT_EQ(groups[0].workloads.size(), 4u);
  EXPECT_EQ(groups[0].job.tasks[0].uses, 6);
  EXPECT_EQ(groups[0].job.tasks[3].uses, 3);
  task.uses = 1'000'000'000;
  add_task(groups, job, task, softmax);
  EXPECT_EQ(groups[0].job.tasks[0].uses, 1'000'000'000) << "as many as a message carries";
}

TEST(JobText, EveryWorkloadReadsBackAsItself) {
  for (const uint32_t seed : Seeds(/*fixed=*/0, /*rounds=*/2000)) {
    Draw draw(seed);
    const Workload workload = draw.workload();
    ASSERT_TRUE(validate(workload).is_ok()) << "seed " << seed << ": " << validate(workload).message();
    const std::string text = job_text({{.workload = workload}});
    const auto back = parse_job_text(text, "text");
    ASSERT_TRUE(back.is_ok()) << "seed " << seed << ": " << back.message() << "\n" << text;
    ASSERT_EQ(back->front().workload.key(), workload.key()) << text;
  }
}

}  // namespace
}  // namespace tuner::cli
