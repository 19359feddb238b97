// The installed package: examples/my_template is copied out of the tree, built on an installation in a
// temporary folder, and its programs tune, verify, show and build with a template that this repository does
// not have.
#include <gmock/gmock.h>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/deploy/installed_example.h"
#include "tests/deploy/runtime_fixture.h"

namespace tuner {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::InstalledExample;
using Outcome = InstalledExample::Outcome;
using ::testing::HasSubstr;

// Installs and builds once for all tests of this file.
class PackageTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
#ifndef TUNER_SANITIZED
    example_ = std::make_unique<InstalledExample>("my_template");
#endif
  }
  static void TearDownTestSuite() { example_.reset(); }
  void SetUp() override {
#ifdef TUNER_SANITIZED
    GTEST_SKIP() << "built with sanitizers, which the programs built here have not";
#endif
    ASSERT_EQ(example_->built().exit_code, 0) << example_->built().out << example_->built().err;
  }
  static std::string path(const std::string& name) { return example_->path(name); }
  static Outcome shell(const std::string& line) { return example_->shell(line); }
  static Outcome mine(const std::string& arguments) { return example_->tuner(arguments); }

  static std::unique_ptr<InstalledExample> example_;
};
std::unique_ptr<InstalledExample> PackageTest::example_;

// Odd sizes: rows and columns that no block divides.
constexpr char kSmall[] =
    R"({"op":"elementwise","rows":7,"columns":45,"scale":true,"bias":true,"residual":true,"activation":"relu",)"
    R"("measure":{"min_repeat_ms":0.05}})";

TEST_F(PackageTest, ATemplateOfOnesOwnIsTunedVerifiedShownAndBuilt) {
  std::ofstream(path("small.json")) << kSmall;
  const Outcome verified = mine("verify small.json --samples 20");
  EXPECT_EQ(verified.exit_code, 0) << verified.err;
  EXPECT_THAT(verified.out, HasSubstr("elementwise_rows_cpu"))
      << "random configs of it, against the reference";

  const Outcome tuned = mine("submit small.json --trials all");
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  const Outcome exported = mine("records export");
  ASSERT_EQ(exported.exit_code, 0) << exported.err;
  int own = 0, others = 0;
  std::string trial;
  std::istringstream lines(exported.out);
  for (std::string line; std::getline(lines, line);) {
    const json row = json::parse(line, nullptr, false);
    if (!row.is_object() || !row.contains("template")) continue;
    const bool is_own = row["template"] == "elementwise_rows_cpu";
    (is_own ? own : others) += 1;
    EXPECT_EQ(row["outcome"], "ok") << line;
    if (is_own) trial = row["trial"];
  }
  EXPECT_GE(own, 4) << exported.out;
  EXPECT_GE(others, 1) << "elementwise_cpu competes";

  const Outcome query = mine("query small.json --json");
  EXPECT_EQ(query.exit_code, 0) << query.err;
  const Outcome schedule = mine(str("show ", trial, " --as schedule"));
  EXPECT_EQ(schedule.exit_code, 0) << schedule.err;
  EXPECT_THAT(schedule.out, HasSubstr("unroll(")) << "what only this template does";
  const Outcome built = mine("build small.json -o out");
  EXPECT_EQ(built.exit_code, 0) << built.err;
  EXPECT_TRUE(fs::exists(path("out/manifest.json")));

  const Outcome without = shell(str(TUNER_BINARY, " show ", trial, " --db ", path("data/tuner/tuner.db")));
  EXPECT_EQ(without.exit_code, 1);
  EXPECT_THAT(without.err, HasSubstr("template elementwise_rows_cpu, which this program does not have"));
}

// What the Debian packages are made of, too (deploy/package/cpack.cmake).
TEST_F(PackageTest, ManualPagesCompletionAndLicencesComeAlong) {
  for (const char* file :
       {"man/man1/tuner.1.gz", "man/man1/tuner-records-export.1.gz", "man/man1/runner.1.gz",
        "man/man1/measure_server.1.gz", "bash-completion/completions/tuner",
        "fish/vendor_completions.d/tuner.fish", "zsh/site-functions/_tuner", "doc/tuner/copyright",
        "doc/tuner-worker/copyright", "doc/tuner-runtime/changelog.gz"})
    EXPECT_TRUE(fs::exists(path("prefix/share/") + file)) << file;
  EXPECT_THAT(InstalledExample::contents(path("prefix/share/doc/tuner/copyright")),
              HasSubstr("Apache License, Version 2.0"));
}

// Prints which template an application gets for a workload.
constexpr char kApplication[] = R"(
#include <stdio.h>
#include <tuner_runtime_api.h>
int main(int argc, char** argv) {
  tuner_options options = {.struct_bytes = sizeof options, .cache_dir = ""};
  tuner_answer answer = {.struct_bytes = sizeof answer};
  tuner_source* source;
  tuner_function* function;
  if (argc != 3 || tuner_open(argv[1], &options, &source) || tuner_find(source, argv[2], &function) ||
      tuner_describe(function, &answer)) return puts(tuner_last_error()), 1;
  printf("%s (%s)\n", answer.template_name, answer.kind);
  tuner_release(function);
  tuner_close(source);
  return 0;
}
)";

TEST_F(PackageTest, AnApplicationRunsItByTheRuntimeLibraryThatHasIt) {
  const Workload workload = ElementwiseWorkload{.rows = 6, .columns = 64, .bias = true};
  {
    auto store = Store::open(path("t.db"), Store::Mode::kWrite);
    ASSERT_TRUE(store.is_ok()) << store.message();
    ASSERT_TRUE((*store)
                    ->add_job({.id = "j1",
                               .request_id = "r1",
                               .tasks = {{workload.key(), host_target().name()}},
                               .trials = 1,
                               .search = "random"})
                    .is_ok());
    std::vector<TrialRow> trials(1);
    trials[0].job_id = "j1";
    trials[0].template_name = "elementwise_rows_cpu";
    trials[0].config = "vectors=1 rows=3";
    ASSERT_TRUE((*store)->add_trials(trials).is_ok());
    MeasureRecord record;
    record.trial_id = trials[0].id;
    record.run_ns = {100, 101, 102};
    record.environment.toolchain = toolchain_fingerprint();
    ASSERT_TRUE((*store)->add_records({record}).is_ok());
  }
  std::ofstream(path("app.c")) << kApplication;
  const auto run = [&](const std::string& folder, const std::string& name) {
    const Outcome cc = shell(str(TUNER_CC, " -Wall -Werror app.c -I prefix/include -L ", folder,
                                 " -ltuner_runtime", " -Wl,-rpath,", folder, " -o ", name));
    EXPECT_EQ(cc.exit_code, 0) << cc.err;
    return shell(str("./", name, " t.db '", workload.key(), "'"));
  };
  const Outcome with = run(path("build/lib"), "with");
  EXPECT_EQ(with.out, "elementwise_rows_cpu (exact)\n") << with.err;
  const Outcome without = run(path("prefix/lib"), "without");
  EXPECT_EQ(without.out, "elementwise_cpu (default)\n");
  EXPECT_THAT(without.err, HasSubstr("template elementwise_rows_cpu, which this program does not have"));
}

// The C API by find_package, as an application's build finds it: without gRPC or anything else of ours.
TEST_F(PackageTest, AnApplicationFindsTheRuntimeLibrary) {
  fs::create_directories(path("app"));
  std::ofstream(path("app/app.c")) << kApplication;
  std::ofstream(path("app/CMakeLists.txt"))
      << "cmake_minimum_required(VERSION 3.25)\nproject(app LANGUAGES C)\n"
         "find_package(tuner " TUNER_VERSION
         " REQUIRED COMPONENTS runtime)\n"
         "add_executable(app app.c)\n"
         "target_link_libraries(app tuner::tuner_runtime)\n";
  const Outcome built =
      shell(str(TUNER_CMAKE, " -G Ninja -S app -B app/build -DCMAKE_PREFIX_PATH=", path("prefix"), " && ",
                TUNER_CMAKE, " --build app/build && app/build/app none.db x"));
  EXPECT_EQ(built.exit_code, 1) << built.err;
  EXPECT_THAT(built.out, HasSubstr("none.db: "));

  std::ofstream(path("app/CMakeLists.txt"))
      << "cmake_minimum_required(VERSION 3.25)\nproject(app LANGUAGES C)\n"
         "find_package(tuner REQUIRED COMPONENTS kernels)\n";
  const Outcome refused = shell(str(TUNER_CMAKE, " -G Ninja -S app -B app/build"));
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_THAT(refused.err, HasSubstr("tuner has no component \"kernels\""));
}

}  // namespace
}  // namespace tuner
