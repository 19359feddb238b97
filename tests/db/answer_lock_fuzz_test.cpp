// The lock file's parser against damaged text: whatever comes, it answers with entries or with one line, and
// what it takes it writes so that it reads the same again.
#include <gtest/gtest.h>

#include "db/resolve/answer_lock.h"
#include "tests/damaged_text.h"

namespace tuner {
namespace {

const std::string kSeeds[] = {
    "tuner-lock 1\n# head\n\nllvm -mcpu=haswell -threads=2 | v1 matmul b=1 m=64 n=96 k=128 ta=0 tb=0 bias=0 "
    "act=none "
    "dtype=float32 const=b | cold | direct | matmul_cpu v3 | tile_m=8 tile_n=32 pack_a=0\n# why\nllvm "
    "-mcpu=znver4 "
    "-mattr=+avx512f,-amx-tile -threads=1 | v1 softmax rows=8 columns=64 dtype=float32 | warm | any | "
    "softmax_cpu v1 | "
    "unroll=2\n",
    "tuner-lock 1\ncuda -arch=sm_90a | v1 matmul b=1 m=64 n=96 k=128 ta=0 tb=0 bias=0 act=none dtype=float32 "
    "const=none | "
    "warm | direct,winograd | matmul_cuda v2 | tile_m=128\r\n\r\nother -x=1 | v1 program "
    "in=float32[1,64,56,56],"
    "float32[64,1,1] Mul(0,1) Relu(2) | warm | any | program_cpu v2 | a=1 b=-2\n",
};
constexpr std::string_view kPieces[] = {"|",
                                        " | ",
                                        "tuner-lock 2",
                                        "v1 ",
                                        "warm",
                                        "cold",
                                        "any",
                                        "direct",
                                        "llvm ",
                                        "-threads=3",
                                        "matmul_cpu v4",
                                        "#",
                                        "=",
                                        "tile_m=8",
                                        "v999999999999",
                                        "<<<<<<<",
                                        "cuda -arch=sm_80",
                                        "\r",
                                        "\t"};

TEST(AnswerLockFuzz, AnyTextIsAnsweredWithEntriesOrOneLine) {
  const int accepted = testing::check_damaged(kSeeds, kPieces, 48, [](const std::string& text) -> bool {
    const Result<AnswerLock> lock = AnswerLock::parse(text, "fuzz.lock");
    if (!lock) {
      EXPECT_EQ(lock.status().code(), StatusCode::kInvalidArgument);
      EXPECT_TRUE(testing::one_line(lock.message())) << lock.message();
      EXPECT_TRUE(lock.message().starts_with("fuzz.lock:")) << lock.message();
      EXPECT_LT(lock.message().size(), 2000u);
      return false;
    }
    const std::string written = lock->text();
    const Result<AnswerLock> again = AnswerLock::parse(written, "fuzz.lock");
    EXPECT_TRUE(again) << again.message() << "\n" << written;
    if (again) {
      EXPECT_EQ(again->text(), written);
      EXPECT_EQ(again->entries().size(), lock->entries().size());
    }
    for (const LockEntry& entry : lock->entries()) EXPECT_EQ(lock->find(entry.task), &entry);
    return true;
  });
  // The damage reaches the fields, and not all of it is harmless.
  EXPECT_GT(accepted, testing::kDamagedRounds / 20);
  EXPECT_LT(accepted, testing::kDamagedRounds * 3 / 4);
}

}  // namespace
}  // namespace tuner
