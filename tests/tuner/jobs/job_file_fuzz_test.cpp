// The job file parser against damaged input: whatever comes, it answers with entries or with one line.
#include <gtest/gtest.h>

#include "tests/damaged_text.h"
#include "tuner/jobs/job_file.h"

namespace tuner::cli {
namespace {

const std::string kSeeds[] = {
    R"({"op":"conv2d","data":[1,8,7,7],"weight":[16,8,3,3],"stride":[2,1],"padding":[1,2,3,4],"dilation":1,"groups":1,"bias":true,"activation":"relu","dtype":"float32","layout":"NCHW","constant":["weight","bias"],"target":"cpu","trials":1000,"search":"xgb-annealing","seed":0,"measure":{"min_repeat_ms":1.5,"repeats":9,"precision":0.05,"build_timeout_s":10,"run_timeout_s":10}})",
    R"([{"op":"matmul","a":[13,7],"b":[29,13],"transpose_a":true,"transpose_b":true,"batch":3,"constant":["b"],"target":"llvm -mcpu=haswell -threads=2"},{"op":"matmul","a":[1,1],"b":[1,1],"activation":null}])",
    R"([{"op":"pool2d","data":[1,8,7,7],"kernel":[3,2],"stride":[2,1],"padding":[1,0],"pooling":"average","count_include_pad":true,"layout":"NCHW8c"},{"op":"softmax","name":"soft_1","rows":7,"columns":13},{"op":"layer_norm","rows":7,"columns":13,"epsilon":1e-6},{"op":"reduce","rows":7,"columns":13,"reduction":"mean"},{"op":"transpose","rows":7,"columns":13,"dtype":"float32"},{"op":"elementwise","rows":1,"columns":99,"scale":true,"bias":false,"residual":true,"activation":"relu","target":"cpu"}])",
};
constexpr std::string_view kPieces[] = {"\"op\"",       "\"conv2d\"",
                                        "\"matmul\"",   "\"layer_norm\"",
                                        "\"reduce\"",   "\"reduction\":\"max\",",
                                        "\"stride\"",   "\"epsilon\":1e-300,",
                                        "\"measure\"",  "/*",
                                        "\"groups\":8,"};

TEST(JobFileFuzz, AnyTextIsAnsweredWithEntriesOrOneLine) {
  const int accepted = testing::check_damaged(kSeeds, kPieces, 6, [](const std::string& text) -> bool {
    const auto entries = parse_job_text(text, "fuzz");
    if (!entries.is_ok()) {
      EXPECT_EQ(entries.status().code(), StatusCode::kInvalidArgument);
      EXPECT_TRUE(testing::one_line(entries.message())) << entries.message();
      EXPECT_LT(entries.message().size(), 1000u);
      return false;
    }
    for (const JobEntry& e : *entries) {
      EXPECT_TRUE(validate(e.workload).is_ok());
      const auto again = workload_from_key(e.workload.key());
      EXPECT_TRUE(again.is_ok() && again->key() == e.workload.key()) << e.workload.key();
    }
    return true;
  });
  // The damage reaches the workloads, and not all of it is harmless.
  EXPECT_GT(accepted, testing::kDamagedRounds / 20);
  EXPECT_LT(accepted, testing::kDamagedRounds);
}

}  // namespace
}  // namespace tuner::cli
