// What measuring a task takes, from its shapes, and what is said when there is not enough.
#include "templates/workload/task_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tuner {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Workload product(int64_t n, DType dtype = DType::kFloat32) {
  MatmulWorkload w;
  w.m = w.n = w.k = n;
  w.dtype = dtype;
  return w;
}

TEST(TaskMemory, CountsOperandsFilesAndTheReference) {
  const TaskMemory m = task_memory(product(1000));
  EXPECT_EQ(m.operand_bytes, 3 * 4'000'000);
  EXPECT_EQ(m.disk_bytes, 2 * 4'000'000 + 8'000'000);
  EXPECT_EQ(m.making_bytes, (64 << 20) + 12 * 2'000'000 + 24 * 1'000'000);
  // Small types are small on disk and as operands, not while the reference is made.
  const TaskMemory b = task_memory(product(1000, DType::kBFloat16));
  EXPECT_EQ(b.operand_bytes, 2 * 2'000'000 + 4'000'000);
  EXPECT_EQ(b.making_bytes, m.making_bytes);
}

// One argument, which is an input on disk and an answer, too.
TEST(TaskMemory, AnOutputInPlaceIsBoth) {
  MatmulWorkload w{.m = 1000, .n = 1000, .k = 1000, .accumulate = true};
  const TaskMemory m = task_memory(w);
  EXPECT_EQ(m.operand_bytes, 3 * 4'000'000);
  EXPECT_EQ(m.disk_bytes, 3 * 4'000'000 + 8'000'000);
  EXPECT_EQ(m.making_bytes, (64 << 20) + 12 * 3'000'000 + 24 * 1'000'000);
}

// The reference keeps the padded image and the sums at the same time, in doubles.
TEST(TaskMemory, PaddedImagesOfAConvolutionCount) {
  const Conv2dWorkload w{.in_channels = 64,
                         .in_height = 100,
                         .in_width = 100,
                         .out_channels = 16,
                         .kernel_height = 3,
                         .kernel_width = 3,
                         .padding = {1, 1, 1, 1}};
  const int64_t in = 640'000 + 64 * 16 * 9, out = 160'000, padded = int64_t{64} * 102 * 102;
  EXPECT_EQ(task_memory(w).making_bytes, (64 << 20) + 12 * in + 16 * out + 8 * (padded + out));
}

TEST(TaskMemory, SaysWhatDoesNotFitAndWhatToDo) {
  const Workload w = product(60'000);
  EXPECT_TRUE(fits(w, {}));
  EXPECT_THAT(
      fits(w, {.candidate_bytes = int64_t{4} << 30}).message(),
      AllOf(HasSubstr("m=60000"), HasSubstr("its operands take 40.2 GiB, a candidate may take 4.0 GiB"),
            HasSubstr("memory_limit_gib")));
  EXPECT_TRUE(fits(w, {.candidate_bytes = int64_t{42} << 30, .program_bytes = kCandidateProgramBytes}));
  // 40.234 GiB of operands; the process beside them.
  EXPECT_THAT(fits(w, {.candidate_bytes = 43'200'000'000 + (8 << 20), .program_bytes = 16 << 20}).message(),
              AllOf(HasSubstr("its operands and the process that holds them take 40.2 GiB"),
                    HasSubstr("memory_limit_gib")));
  EXPECT_THAT(fits(w, {.memory_bytes = int64_t{16} << 30}).message(),
              AllOf(HasSubstr("takes about 161.0 GiB"), HasSubstr("available 16.0 GiB")));
  EXPECT_THAT(fits(w, {.disk_bytes = int64_t{1} << 30}).message(),
              AllOf(HasSubstr("53.6 GiB"), HasSubstr("disk has free 1.0 GiB"), HasSubstr("XDG_CACHE_HOME")));
  EXPECT_EQ(fits(w, {.disk_bytes = 1}).code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tuner
