// The lock file: its text as people see and edit it, what is refused and where, and how entries are found and
// changed.
#include "db/resolve/answer_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "templates/workload/workload_json.h"

namespace tuner {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char kDense[] = "v1 matmul b=1 m=64 n=96 k=128 ta=0 tb=0 bias=0 act=none dtype=float32 const=b";
constexpr char kPlain[] = "v1 matmul b=1 m=64 n=96 k=128 ta=0 tb=0 bias=0 act=none dtype=float32 const=none";
constexpr char kHaswell[] = "llvm -mcpu=haswell -threads=1";

// As `tuner lock` would write it, in order.
const std::string kFile =
    str("tuner-lock 1\n# Kernels of the small network.\n\n",  // line 1
        kHaswell, " | ", kDense, " | warm | any | matmul_cpu v3 | tile_m=8 tile_n=32\n",
        "# Slower by 2 %, but the same sums as on the old machines.\n",  // line 5
        kHaswell, " | ", kDense, " | cold | direct | matmul_cpu v3 | tile_m=4 tile_n=32\n", kHaswell, " | ",
        kPlain, " | warm | any | matmul_dot_cpu v12 | tile_m=1\n", "llvm -mcpu=znver4 -threads=2 | ", kDense,
        " | warm | any | matmul_cpu v3 | tile_m=2\n");

AnswerLock parsed(const std::string& text) {
  Result<AnswerLock> lock = AnswerLock::parse(text, "answers.lock");
  CHECK(lock.is_ok()) << lock.message();
  return *std::move(lock);
}
std::string refusal(const std::string& text) {
  const Result<AnswerLock> lock = AnswerLock::parse(text, "answers.lock");
  EXPECT_FALSE(lock) << text;
  if (lock) return "";
  EXPECT_EQ(lock.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(lock.message(), Not(HasSubstr("\n")));
  return lock.message();
}
Target target(const std::string& text) { return parse_target(text).is_ok() ? *parse_target(text) : Target(); }
Workload workload(const std::string& key) {
  Result<Workload> found = workload_from_key(key);
  CHECK(found.is_ok()) << found.message();
  return *found;
}
LockedTask asked(const char* key, const char* on = kHaswell, const char* algorithms = "",
                 Constants constants = Constants::kWarm) {
  return locked_task(workload(key), target(on), algorithms, constants);
}

TEST(AnswerLock, AFileIsWrittenAsItWasRead) { EXPECT_EQ(parsed(kFile).text(), kFile); }

TEST(AnswerLock, ATaskIsFoundByTargetWorkloadConstantsAndAlgorithms) {
  const AnswerLock lock = parsed(kFile);
  const auto found = [&](const LockedTask& task) {
    const LockEntry* entry = lock.find(task);
    return entry == nullptr ? "none" : str(lock.place(*entry), ": ", described(entry->choice));
  };
  EXPECT_EQ(found(asked(kDense)), "answers.lock:4: matmul_cpu v3, tile_m=8 tile_n=32");
  EXPECT_EQ(found(asked(kDense, kHaswell, "direct", Constants::kCold)),
            "answers.lock:6: matmul_cpu v3, tile_m=4 tile_n=32");
  EXPECT_EQ(found(asked(kPlain)), "answers.lock:7: matmul_dot_cpu v12, tile_m=1");
  EXPECT_EQ(found(asked(kDense, "llvm -threads=2 -mcpu=znver4")), "answers.lock:8: matmul_cpu v3, tile_m=2");
  EXPECT_EQ(found(asked(kDense, kHaswell, "", Constants::kCold)), "none");
  EXPECT_EQ(found(asked(kDense, kHaswell, "direct")), "none");
  EXPECT_EQ(found(asked(kDense, "llvm -mcpu=znver5 -threads=1")), "none");
  // Nothing is constant there, so there is one kind of time.
  EXPECT_EQ(found(asked(kPlain, kHaswell, "", Constants::kCold)), found(asked(kPlain)));
  const std::string plain = str(kHaswell, " | ", kPlain, " | cold | any | matmul_dot_cpu v12 | tile_m=1\n");
  EXPECT_NE(parsed("tuner-lock 1\n" + plain).find(asked(kPlain)), nullptr) << "written by a hand";
}

// Order of entries, options and knobs, blanks, ends of lines: none of it means anything.
TEST(AnswerLock, WhatIsEditedByHandBecomesTheSameFile) {
  const std::string edited =
      str("tuner-lock 1\r\n# Kernels of the small network.\r\n\r\n", "llvm -threads=2 -mcpu=znver4|", kDense,
          "|warm|any|matmul_cpu v3|tile_m=2\r\n", kHaswell, " | ", kPlain,
          " | warm | any | matmul_dot_cpu  v12 | tile_m=1   \r\n\r\n\r\n", "  ", kHaswell, "   |   ", kDense,
          " | warm | any | matmul_cpu v3 | tile_n=32 tile_m=8\r\n",
          "# Slower by 2 %, but the same sums as on the old machines.\r\n", kHaswell, " | ", kDense,
          " | cold | direct | matmul_cpu v3 | tile_m=4 tile_n=32");
  EXPECT_EQ(parsed(edited).text(), kFile);
}

TEST(AnswerLock, ACommentGoesWhereItsEntryGoes) {
  AnswerLock lock = parsed(kFile);
  lock.put(
      {.task = asked(kDense, kHaswell, "direct", Constants::kCold), .choice = {"matmul_cpu", 4, "tile_m=5"}});
  lock.put({.task = asked(kPlain, "llvm -mcpu=haswell -threads=4"), .choice = {"matmul_cpu", 3, "tile_m=6"}});
  EXPECT_THAT(lock.text(), HasSubstr(str("old machines.\n", kHaswell, " | ", kDense,
                                         " | cold | direct | matmul_cpu v4 | tile_m=5\n")));
  EXPECT_EQ(lock.entries().size(), 5u);
  EXPECT_EQ(parsed(lock.text()).text(), lock.text());
  const std::vector<LockEntry> removed = lock.keep_only({asked(kPlain)});
  EXPECT_EQ(removed.size(), 4u);
  EXPECT_EQ(lock.text(), str("tuner-lock 1\n# Kernels of the small network.\n\n", kHaswell, " | ", kPlain,
                             " | warm | any | matmul_dot_cpu v12 | tile_m=1\n"));
}

TEST(AnswerLock, ANewFileSaysWhatItIs) {
  AnswerLock lock("answers.lock");
  lock.put({.task = asked(kPlain), .choice = {"matmul_cpu", 3, "tile_m=6"}});
  EXPECT_THAT(
      lock.text(),
      AllOf(StartsWith("tuner-lock 1\n# "), HasSubstr("`tuner lock`"),
            EndsWith(str("\n\n", kHaswell, " | ", kPlain, " | warm | any | matmul_cpu v3 | tile_m=6\n"))));
  // The comment is the file's from then on: who takes it away has it away.
  EXPECT_EQ(
      parsed(str("tuner-lock 1\n\n", kHaswell, " | ", kPlain, " | warm | any | matmul_cpu v3 | tile_m=6\n"))
          .text(),
      str("tuner-lock 1\n\n", kHaswell, " | ", kPlain, " | warm | any | matmul_cpu v3 | tile_m=6\n"));
}

TEST(AnswerLock, AMistakeIsToldWithItsLine) {
  const std::string start = "tuner-lock 1\n\n";
  const auto entry = [](const std::string& on, const std::string& key, const std::string& rest) {
    return str(on, " | ", key, " | ", rest, "\n");
  };
  const std::string good = entry(kHaswell, kDense, "warm | any | matmul_cpu v3 | tile_m=8");
  const std::pair<std::string, std::string> cases[] = {
      {"", R"(answers.lock:1: expected "tuner-lock 1", found "")"},
      {good, R"(answers.lock:1: expected "tuner-lock 1", found "llvm)"},
      {"tuner-lock one\n", R"(answers.lock:1: expected "tuner-lock 1", found "tuner-lock one")"},
      {"tuner-lock 2\n" + good, "answers.lock:1: format: expected 1, found 2; a newer tuner wrote this file"},
      {"\xef\xbb\xbftuner-lock 1\n", "answers.lock:1: expected \"tuner-lock 1\""},
      {start + "# ok\n" + entry(kHaswell, kDense, "warm | any | matmul_cpu v3"),
       "answers.lock:4: expected 6 fields with | between them"},
      {start + entry(kHaswell, kDense, "warm | any | matmul_cpu v3 | tile_m=8 | 12 us"), "found 7"},
      {start + entry("cpu", kDense, "warm | any | matmul_cpu v3 | tile_m=8"),
       R"(answers.lock:3: target: expected the full name, as "llvm -mcpu=haswell -threads=1", found "cpu")"},
      {start + entry("llvm -mcpu", kDense, "warm | any | matmul_cpu v3 | tile_m=8"),
       "answers.lock:3: target: "},
      {start + entry("", kDense, "warm | any | matmul_cpu v3 | tile_m=8"), "target: expected the full name"},
      {start + entry(kHaswell, "v1 matmul m=64", "warm | any | matmul_cpu v3 | tile_m=8"),
       "answers.lock:3: workload: "},
      {start + entry(kHaswell, "matmul", "warm | any | matmul_cpu v3 | tile_m=8"),
       "answers.lock:3: workload: "},
      {start + entry(kHaswell, kDense, "hot | any | matmul_cpu v3 | tile_m=8"),
       R"(answers.lock:3: constants: expected warm or cold, found "hot")"},
      {start + entry(kHaswell, kDense, "warm | fast | matmul_cpu v3 | tile_m=8"),
       R"(answers.lock:3: algorithms: no algorithm is called "fast")"},
      {start + entry(kHaswell, kDense, "warm | any | matmul_cpu | tile_m=8"),
       R"(answers.lock:3: template: expected a name and a version, as "matmul_cpu v7", found "matmul_cpu")"},
      {start + entry(kHaswell, kDense, "warm | any | matmul_cpu v0 | tile_m=8"),
       "answers.lock:3: template: version: expected a number from 1 on, found \"0\""},
      {start + entry(kHaswell, kDense, "warm | any | matmul_cpu v99999999999 | tile_m=8"),
       "template: version: "},
      {start + entry(kHaswell, kDense, "warm | any | matmul_cpu v3 | tile_m=eight"),
       R"(answers.lock:3: config: expected knob=integer, found "tile_m=eight")"},
      {start + entry(kHaswell, kDense, "warm | any | matmul_cpu v3 | tile_m=8 tile_m=4"),
       "answers.lock:3: config: knob tile_m is given twice"},
      {start + good + "\n" + entry(kHaswell, kDense, "warm | any | matmul_cpu v3 | tile_m=4"),
       str("answers.lock:5: ", kDense, " on \"", kHaswell,
           "\" stands in line 3 already. Keep one of the two lines")},
      // The same task by another spelling.
      {start + good + entry("llvm -threads=1 -mcpu=haswell", kDense, "warm | any | matmul_cpu v3 | tile_m=8"),
       "answers.lock:4: "},
      {start + "<<<<<<< HEAD\n" + good + "=======\n" + good + ">>>>>>> theirs\n",
       R"(answers.lock:3: expected an entry, found "<<<<<<< HEAD": a merge is not finished)"},
      {std::string("\x7f"
                   "ELF\t\2\0",
                   7),
       "answers.lock:1: expected \"tuner-lock 1\", found "},
      {start + "\x1b[2J\n", "answers.lock:3: expected text, found a control character with the number 27"},
      {start + std::string("a\0b", 3) + "\n", "found a control character with the number 0"},
  };
  for (const auto& [text, message] : cases) {
    SCOPED_TRACE(text);
    EXPECT_THAT(refusal(text), HasSubstr(message));
  }
}

TEST(AnswerLock, AnEntryOfABackEndThatIsNotHereIsKept) {
  const std::string file =
      str("tuner-lock 1\n\nquantum -qubits=4 | ", kPlain, " | warm | any | matmul_quantum v1 | spin=1\n");
  EXPECT_EQ(parsed(file).text(), file);
}

TEST(AnswerLock, WhatIsMissingIsToldWithWhatIsThere) {
  const AnswerLock lock = parsed(kFile);
  const auto missing = [&](const LockedTask& task) {
    const Status status = lock.missing(task, "tuner lock job.json -o answers.lock");
    EXPECT_EQ(status.code(), StatusCode::kNotFound);
    return status.message();
  };
  EXPECT_EQ(missing(asked(kPlain, "llvm -mcpu=znver5 -threads=1")),
            str("answers.lock has no entry for ", kPlain,
                " on \"llvm -mcpu=znver5 -threads=1\"; it has this workload for "
                "\"llvm -mcpu=haswell -threads=1\". To add it: tuner lock job.json -o answers.lock"));
  EXPECT_THAT(missing(asked(kDense, kHaswell, "", Constants::kCold)),
              AllOf(HasSubstr("\", constants cold; it has this workload for "),
                    HasSubstr("\"llvm -mcpu=haswell -threads=1\" with constants cold by direct"),
                    HasSubstr("\"llvm -mcpu=znver4 -threads=2\"")));
  EXPECT_EQ(missing(asked("v1 softmax rows=8 columns=64 dtype=float32")),
            "answers.lock has no entry for v1 softmax rows=8 columns=64 dtype=float32 on \"llvm "
            "-mcpu=haswell -threads=1\". "
            "To add it: tuner lock job.json -o answers.lock");
}

TEST(AnswerLock, AFileThatCannotBeReadIsOneLine) {
  const Result<AnswerLock> none = AnswerLock::read("/no/such/answers.lock");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(none.message(),
              AllOf(StartsWith("/no/such/answers.lock: "), HasSubstr("Expected a lock file")));
}

}  // namespace
}  // namespace tuner
