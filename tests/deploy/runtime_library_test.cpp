// The runtime library as an application gets it: what it needs, what it shows, and the program of its README.
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "tests/deploy/runtime_fixture.h"

namespace tuner {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

std::string contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class RuntimeLibraryTest : public testing::RuntimeTest {
 protected:
  struct Outcome {
    int exit_code;
    std::string out, err;
  };
  Outcome shell(const std::string& line) {
    const std::string full =
        str("cd ", folder_.string(), " && { ", line, "; } >out.txt 2>err.txt </dev/null");
    const int status = std::system(full.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, contents(path("out.txt")),
            contents(path("err.txt"))};
  }
  // Libraries that are loaded with it, itself not counted.
  std::string closure(const std::string& library) {
    const Outcome ldd = shell("ldd " + library);
    EXPECT_EQ(ldd.exit_code, 0) << ldd.err;
    EXPECT_THAT(ldd.out, Not(HasSubstr("not found")));
    return ldd.out;
  }
  // Symbols that others can link with.
  std::set<std::string> exported(const std::string& library) {
    const Outcome nm = shell("nm -D --defined-only " + library);
    EXPECT_EQ(nm.exit_code, 0) << nm.err;
    std::set<std::string> names;
    std::istringstream lines(nm.out);
    for (std::string address, kind, name; lines >> address >> kind >> name;) names.insert(name);
    return names;
  }
  // Those that the header declares.
  static std::set<std::string> declared() {
    const std::string header = contents(fs::path(TUNER_SOURCE_DIR) / "deploy/runtime/tuner_runtime_api.h");
    const std::regex declaration(R"(TUNER_API [^(]*?(tuner_\w+)\()");
    std::set<std::string> names;
    for (std::sregex_iterator it(header.begin(), header.end(), declaration), end; it != end; ++it)
      names.insert((*it)[1]);
    return names;
  }
};

constexpr const char* kHeavy[] = {"grpc", "protobuf", "xgboost", "absl"};

TEST_F(RuntimeLibraryTest, ExportsWhatItsHeaderDeclaresAndNothingElse) {
  const std::set<std::string> names = declared();
  ASSERT_GE(names.size(), 15u) << "the header was not read";
  EXPECT_EQ(exported(TUNER_RUNTIME_SO), names);
}

TEST_F(RuntimeLibraryTest, NeedsNeitherGrpcNorXgboost) {
  const std::string libraries = closure(TUNER_RUNTIME_SO);
  EXPECT_THAT(libraries, HasSubstr("libsqlite3"));
  for (const char* heavy : kHeavy) EXPECT_THAT(libraries, Not(HasSubstr(heavy)));
}

#ifdef TUNER_RUNTIME_LOAD_SO
TEST_F(RuntimeLibraryTest, WithoutACodeGeneratorItNeedsNoLlvm) {
  const std::string libraries = closure(TUNER_RUNTIME_LOAD_SO);
  EXPECT_THAT(libraries, Not(HasSubstr("LLVM")));
  for (const char* heavy : kHeavy) EXPECT_THAT(libraries, Not(HasSubstr(heavy)));
  EXPECT_EQ(exported(TUNER_RUNTIME_LOAD_SO), declared());
}
#endif

// The C program of README.md, compiled with warnings as errors.
class ReadmeProgram : public RuntimeLibraryTest {
 protected:
  void SetUp() override {
#ifdef TUNER_SANITIZED
    GTEST_SKIP() << "the library is built with sanitizers, which a plain program has not";
#endif
    const std::string readme = contents(fs::path(TUNER_SOURCE_DIR) / "deploy/runtime/README.md");
    const size_t begin = readme.find("```c\n"), end = readme.find("\n```\n", begin);
    ASSERT_NE(begin, std::string::npos);
    std::ofstream(path("app.c")) << readme.substr(begin + 5, end - begin - 4);
  }
  void compile_with(const std::string& library) {
    const fs::path so = library;
    const Outcome cc =
        shell(str(TUNER_CC, " -std=c11 -Wall -Wextra -Werror app.c -I ", TUNER_SOURCE_DIR, "/deploy/runtime ",
                  so.string(), " -Wl,-rpath,", so.parent_path().string(), " -o app"));
    ASSERT_EQ(cc.exit_code, 0) << cc.err;
  }
  static constexpr char kLayer[] = R"({"op": "matmul", "a": [64, 256], "b": [256, 128], "constant": ["b"]})";
  // Sum over k of (k % 7) * (128 k % 5).
  static std::string first_element() {
    double sum = 0;
    for (int k = 0; k < 256; ++k) sum += (k % 7) * ((128 * k) % 5);
    return str("out[0] = ", sum, " by ");
  }
};

TEST_F(ReadmeProgram, RunsTheTunedConfigOfADatabase) {
  ASSERT_NO_FATAL_FAILURE(compile_with(TUNER_RUNTIME_SO));
  tune(kLayer);
  const Outcome tuned = shell("./app t.db");
  EXPECT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_EQ(tuned.out, first_element() + "matmul_cpu (exact)\n");
  EXPECT_EQ(tuned.err, "");
}

TEST_F(ReadmeProgram, WithoutADatabaseItSaysWhatToDoAndRuns) {
  ASSERT_NO_FATAL_FAILURE(compile_with(TUNER_RUNTIME_SO));
  const Outcome fresh = shell("XDG_DATA_HOME=$PWD/none TUNER_CAPTURE=$PWD/shapes.json ./app");
  EXPECT_EQ(fresh.exit_code, 0) << fresh.err;
  EXPECT_EQ(fresh.out, first_element() + "matmul_cpu (default)\n");
  EXPECT_THAT(fresh.err, ::testing::MatchesRegex("tuner: [^\n]*tuner submit [^\n]*shapes.json\n"));
  EXPECT_THAT(contents(path("shapes.json")), HasSubstr(R"("constant":["b"])"));
  const Outcome missing = shell("./app none.db");
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(missing.err, ::testing::MatchesRegex("[^\n]*none.db[^\n]*\n"));
}

#ifdef TUNER_RUNTIME_LOAD_SO
TEST_F(ReadmeProgram, RunsABundleWithoutACodeGenerator) {
  ASSERT_NO_FATAL_FAILURE(compile_with(TUNER_RUNTIME_LOAD_SO));
  tune(kLayer);
  std::ofstream(path("layer.json")) << kLayer;
  const Outcome built = shell(str(TUNER_BINARY, " build layer.json --db t.db -o bundle --name layer_lib"));
  ASSERT_EQ(built.exit_code, 0) << built.err;
  for (const char* opened : {"bundle", "bundle/manifest.json"}) {
    const Outcome run = shell(str("./app ", opened));
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(run.out, first_element() + "matmul_cpu (exact)\n");
  }
}

TEST_F(ReadmeProgram, WithoutACodeGeneratorItSaysWhereKernelsComeFrom) {
  ASSERT_NO_FATAL_FAILURE(compile_with(TUNER_RUNTIME_LOAD_SO));
  tune(kLayer);
  const Outcome refused = shell("./app t.db");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("this library has no code generator"));
  EXPECT_THAT(refused.err, HasSubstr(host_target().name())) << "the targets that the database has are named";
}
#endif

}  // namespace
}  // namespace tuner
