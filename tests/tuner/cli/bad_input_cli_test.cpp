// What `tuner extract` and `tuner cover` say of input that is none: one clear line, exit code 2, and no file
// is written. And of a cache that cannot be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/damaged_text.h"
#include "tests/tuner/command_line.h"

namespace tuner {
namespace {

using testing::CommandLine;
using testing::CommandResult;
using ::testing::HasSubstr;

class BadInput : public ::testing::Test {
 protected:
  BadInput() {
    line_.write("text.onnx", "this is no model\n");
    line_.write("empty.onnx", "");
    line_.write("no_table.csv", "tile,time_ms,status\n4,fast,ok\n");
    line_.write("knobs.csv", "tile,time_ms,status\n4,0.5,ok\n8,0.4,ok\n");
  }

  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(line_.folder()))
      if (entry.path().string().find("/.home/") == std::string::npos) names.insert(entry.path().string());
    return names;
  }
  // The line that says why.
  std::string refused(const std::string& command) const {
    SCOPED_TRACE(command);
    const std::set<std::string> before = files();
    const CommandResult r = line_.run("tuner " + command);
    EXPECT_EQ(r.exit_code, 2) << r.out << r.err;
    EXPECT_EQ(r.out, "");
    EXPECT_EQ(files(), before);
    std::string why = r.err.substr(0, r.err.find('\n'));
    EXPECT_EQ(why.size() + 1, r.err.size()) << r.err;
    EXPECT_TRUE(testing::one_line(why)) << r.err;
    EXPECT_LT(why.size(), 300u) << why;
    return why;
  }

  CommandLine line_{TUNER_BIN_DIR};
};

TEST_F(BadInput, ExtractRefusesFilesThatAreNoModel) {
  EXPECT_THAT(refused("extract none.onnx -o out.json"), HasSubstr("none.onnx: cannot be read: No such file"));
  EXPECT_THAT(refused("extract empty.onnx -o out.json"),
              HasSubstr("empty.onnx: is empty, expected an ONNX model"));
  EXPECT_THAT(refused("extract text.onnx -o out.json"), HasSubstr("text.onnx: this is no ONNX model"));
  EXPECT_THAT(refused("extract text.onnx -o out.json --json"), HasSubstr("text.onnx: this is no ONNX model"));
  EXPECT_THAT(refused("extract . -o out.json"), HasSubstr("expected an ONNX model"));
}

TEST_F(BadInput, ExtractRefusesOptionsByName) {
  EXPECT_THAT(refused("extract -o out.json"), HasSubstr("MODEL is required"));
  EXPECT_THAT(refused("extract text.onnx -o out.json --batch zero"),
              HasSubstr("--batch: expected a whole number from 1 to 2147483648, found zero"));
  EXPECT_THAT(refused("extract text.onnx -o out.json --batch 0"),
              HasSubstr("--batch: expected a whole number from 1 to 2147483648, found 0"));
  EXPECT_THAT(refused("extract text.onnx -o out.json --dim sequence"),
              HasSubstr("--dim: expected NAME=N, as sequence=128, found \"sequence\""));
  EXPECT_THAT(refused("extract text.onnx -o out.json --dim n=1 --dim n=2"),
              HasSubstr("--dim n: found twice"));
  EXPECT_THAT(refused("extract text.onnx -o out.json --target abacus"), HasSubstr("--target: "));
  EXPECT_THAT(refused("extract text.onnx -o out.json --colour red"), HasSubstr("--colour"));
}

TEST_F(BadInput, CoverRefusesFilesItCannotRead) {
  EXPECT_THAT(refused("cover --spaces none.csv -o out.h"), HasSubstr("none.csv"));
  EXPECT_THAT(refused("cover --spaces no_table.csv -o out.h"), HasSubstr("no_table.csv"));
  EXPECT_THAT(refused("cover --spaces knobs.csv text.onnx -o out.h"), HasSubstr("text.onnx"));
}

TEST_F(BadInput, CoverRefusesOptionsByName) {
  EXPECT_THAT(refused("cover -o out.h"), HasSubstr("found 0 of --tasks, --op and --spaces"));
  EXPECT_THAT(refused("cover --op conv2d --spaces knobs.csv -o out.h"), HasSubstr("found 2 of"));
  EXPECT_THAT(refused("cover --spaces knobs.csv --store -o out.h"), HasSubstr("--store: "));
  EXPECT_THAT(refused("cover --spaces knobs.csv --target cpu -o out.h"), HasSubstr("--target: "));
  EXPECT_THAT(refused("cover --spaces knobs.csv --k 0 -o out.h"),
              HasSubstr("--k: expected a whole number from 1 to 64, found 0"));
  EXPECT_THAT(refused("cover --spaces knobs.csv --k three -o out.h"),
              HasSubstr("--k: expected a whole number from 1 to 64, found three"));
  EXPECT_THAT(refused("cover --spaces knobs.csv --within half -o out.h"), HasSubstr("--within: "));
}

// No fault of the worker's program, which is there.
TEST_F(BadInput, AWorkersFolderThatCannotBeMadeIsNamed) {
  line_.write("job.json", R"({"op": "softmax", "rows": 8, "columns": 64})");
  const CommandResult r =
      line_.run("env XDG_CACHE_HOME=/dev/null timeout 30 tuner submit job.json --trials 1 --db new.db");
  EXPECT_EQ(r.exit_code, 1) << r.out << r.err;
  EXPECT_THAT(r.err,
              ::testing::ContainsRegex("the worker's folder /dev/null/tuner/worker-[0-9a-f]+ cannot be made: "
                                       "Not a directory. XDG_CACHE_HOME names another place"));
  EXPECT_THAT(r.err, ::testing::Not(HasSubstr("cannot be started")));
}

}  // namespace
}  // namespace tuner
