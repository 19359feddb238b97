// The job file parser against damaged input: whatever comes, it answers with entries or with one line, and
// does so again.
#include <gtest/gtest.h>

#include <random>

#include "tuner/cli/job_file.h"

namespace tuner::cli {
namespace {

const std::string kSeeds[] = {
    R"({"op":"conv2d","data":[1,8,7,7],"weight":[16,8,3,3],"stride":[2,1],"padding":[1,2,3,4],"dilation":1,"groups":1,"bias":true,"activation":"relu","dtype":"float32","layout":"NCHW","constant":["weight","bias"],"target":"cpu","trials":1000,"search":"xgb-annealing","seed":0,"measure":{"min_repeat_ms":1.5,"repeats":9,"precision":0.05,"build_timeout_s":10,"run_timeout_s":10}})",
    R"([{"op":"matmul","a":[13,7],"b":[29,13],"transpose_a":true,"transpose_b":true,"batch":3,"constant":["b"],"target":"llvm -mcpu=haswell -threads=2"},{"op":"matmul","a":[1,1],"b":[1,1],"activation":null}])",
    R"([{"op":"pool2d","data":[1,8,7,7],"kernel":[3,2],"stride":[2,1],"padding":[1,0],"pooling":"average","count_include_pad":true,"layout":"NCHW8c"},{"op":"softmax","name":"soft_1","rows":7,"columns":13},{"op":"layer_norm","rows":7,"columns":13,"epsilon":1e-6},{"op":"reduce","rows":7,"columns":13,"reduction":"mean"},{"op":"transpose","rows":7,"columns":13,"dtype":"float32"},{"op":"elementwise","rows":1,"columns":99,"scale":true,"bias":false,"residual":true,"activation":"relu","target":"cpu"}])",
};
// Pieces that are likelier to get far into the parser than random bytes.
const std::string kPieces[] = {"{",
                               "}",
                               "[",
                               "]",
                               ",",
                               ":",
                               "null",
                               "true",
                               "-1",
                               "0",
                               "1e999",
                               "-0",
                               "18446744073709551616",
                               "9223372036854775808",
                               "\"op\"",
                               "\"conv2d\"",
                               "\"matmul\"",
                               "\"layer_norm\"",
                               "\"reduce\"",
                               "\"reduction\":\"max\",",
                               "\"epsilon\":1e-300,",
                               "\"stride\"",
                               "\"measure\"",
                               "\"",
                               "\\u0000",
                               "\\ud800",
                               "\xff",
                               "\xef\xbb\xbf",
                               "NaN",
                               "/*",
                               "1.5",
                               "\"groups\":8,",
                               "[[[[[[[["};

std::string mutated(std::mt19937_64& random) {
  std::string text = kSeeds[random() % std::size(kSeeds)];
  for (uint64_t edits = 1 + random() % 6; edits > 0; --edits) {
    const size_t at = random() % (text.size() + 1);
    switch (random() % 6) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(random());
        break;
      case 1:
        if (at < text.size()) text[at] ^= static_cast<char>(1 << random() % 8);
        break;
      case 2:
        text.insert(at, kPieces[random() % std::size(kPieces)]);
        break;
      case 3:
        text.erase(at, 1 + random() % 12);
        break;
      case 4:
        text.insert(at, text.substr(random() % (text.size() + 1), random() % 40));
        break;
      default:
        text.resize(at);
        break;
    }
  }
  return text;
}

TEST(JobFileFuzz, AnyTextIsAnsweredWithEntriesOrOneLine) {
  int accepted = 0;
  for (uint64_t seed = 0; seed < 40'000; ++seed) {
    std::mt19937_64 random(seed);
    const std::string text = mutated(random);
    const auto entries = parse_job_text(text, "fuzz");
    if (entries.is_ok()) {
      ++accepted;
      for (const JobEntry& e : *entries) {
        ASSERT_TRUE(validate(e.workload).is_ok()) << "seed " << seed;
        const auto again = workload_from_key(e.workload.key());
        ASSERT_TRUE(again.is_ok() && again->key() == e.workload.key())
            << "seed " << seed << ": " << e.workload.key();
      }
      continue;
    }
    ASSERT_EQ(entries.status().code(), StatusCode::kInvalidArgument) << "seed " << seed;
    for (const char c : entries.message()) ASSERT_GE(static_cast<unsigned char>(c), 0x20) << "seed " << seed;
    ASSERT_LT(entries.message().size(), 1000u) << "seed " << seed;
  }
  EXPECT_GT(accepted, 100) << "the mutations no longer reach the workloads";
}

}  // namespace
}  // namespace tuner::cli
