// TUNER_VERIFY as an application meets it: a kernel that sleeps, one that computes something else, one that
// is fine; the verdict is kept, told once, and a locked kernel stays. Bundles do the same when they carry
// their default kernels.
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "db/resolve/answer_lock.h"
#include "tests/deploy/heard.h"
#include "tests/deploy/runtime_fixture.h"

namespace tuner {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
namespace fs = std::filesystem;
using testing::use_once;

// Of `rows` rows: messages are said once for each workload, so each test has one of its own.
std::string task(int rows) { return str(R"({"op":"matmul","a":[)", rows, R"(,37],"b":[37,51]})"); }

// The product, right, but each call sleeps: thousands of times as long as any kernel of ours takes for it.
constexpr char kSleeps[] = R"(
#include <stdint.h>
#include <time.h>
int32_t sleeps(void* const* args, const void* runtime) {
  const float *a = args[0], *b = args[1];
  float* out = args[2];
  const struct timespec wait = {0, 3000000};
  (void)runtime;
  nanosleep(&wait, 0);
  for (int i = 0; i < ROWS; ++i)
    for (int j = 0; j < 51; ++j) {
      float sum = 0;
      for (int k = 0; k < 37; ++k) sum += a[i * 37 + k] * b[k * 51 + j];
      out[i * 51 + j] = sum;
    }
  return 0;
}
)";

class RuntimeVerify : public testing::ListeningTest {
 protected:
  RuntimeVerify() {
    ::unsetenv("TUNER_LOCK");
    ::unsetenv("TUNER_VERIFY");
    ::setenv("XDG_DATA_HOME", (folder_ / "data").c_str(), 1);
  }
  ~RuntimeVerify() override { ::unsetenv("TUNER_VERIFY"); }

  // The artifact of the default config of the workload in this process' compiler.
  static Artifact default_artifact(const std::string& json) {
    const Workload w = testing::workload_of(json);
    const auto instance = templates_for(w, host_target(), "direct")->front()->apply(w, host_target());
    const ConfigSpace& space = (*instance)->space();
    auto artifact = compile(*(*instance)->instantiate(space.at(space.default_index())), host_target());
    CHECK(artifact.is_ok()) << artifact.message();
    return *std::move(artifact);
  }
  // Makes it the code that was measured of the task's tuned config. Returns the config.
  std::string measured(const std::string& json, const Artifact& artifact) {
    const auto digest = save_artifact(artifact, path("artifacts"));
    CHECK(digest.is_ok()) << digest.message();
    return tune(json, 1, *digest);
  }
  std::string sleeping(int rows) {
    write("sleeps.c", kSleeps);
    const std::string line =
        str(TUNER_CC, " -O1 -shared -fPIC -DROWS=", rows, " ", path("sleeps.c"), " -o ", path("sleeps.so"));
    CHECK(std::system(line.c_str()) == 0) << line;
    Artifact artifact = default_artifact(task(rows));
    artifact.manifest.entry = "sleeps";
    artifact.binary = contents(path("sleeps.so"));
    return measured(task(rows), artifact);
  }
  tuner_source* open_verifying(tuner_options options = {}) {
    artifacts_ = path("artifacts");
    options.artifact_dir = artifacts_.c_str();
    if (options.verify == 0) options.verify = 1;
    return open(path("t.db"), options);
  }
  struct Found {
    std::string kind, verdict, note, config;
    double raced_ns = 0, raced_default_ns = 0;
  };
  Found find(tuner_source* source, const std::string& json) {
    tuner_function* f = nullptr;
    EXPECT_EQ(tuner_find(source, json.c_str(), &f), TUNER_OK) << tuner_last_error();
    if (f == nullptr) return {};
    const tuner_answer a = describe(f);
    Found found{a.kind, a.verdict, a.note, a.config, a.raced_ns, a.raced_default_ns};
    tuner_release(f);
    return found;
  }
  std::vector<fs::path> verdict_files() const {
    std::vector<fs::path> files;
    const fs::path folder = folder_ / "cache" / "tuner" / "kernels" / "verdicts";
    if (!fs::exists(folder)) return files;
    for (const auto& entry : fs::directory_iterator(folder))
      if (entry.path().extension() != ".lock") files.push_back(entry.path());
    return files;
  }
  // Rewrites the only verdict.
  void keep_verdict(const std::string& first_line) {
    ASSERT_EQ(verdict_files().size(), 1u);
    std::string text = contents(verdict_files()[0]);
    text.replace(0, text.find('\n'), first_line);
    std::ofstream(verdict_files()[0], std::ios::binary) << text;
  }
  static std::string contents(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::string artifacts_;
};

TEST_F(RuntimeVerify, AKernelThatIsMuchSlowerHereGivesWayToItsDefault) {
  const std::string tuned = sleeping(14);
  tuner_source* source = open_verifying();
  const Found found = find(source, task(14));
  EXPECT_EQ(found.verdict, "slower");
  EXPECT_EQ(found.kind, "default");
  EXPECT_NE(found.config, tuned);
  EXPECT_GT(found.raced_ns, 0);
  EXPECT_EQ(use_once(source, task(14)), "") << "the default's answer is right";
  EXPECT_THAT(heard_.lines, ElementsAre(found.note));
  EXPECT_THAT(
      found.note,
      AllOf(StartsWith(testing::workload_of(task(14)).key() + " on \"" + host_target().name() +
                       "\": its kernel takes "),
            HasSubstr(" us here, its default config "), HasSubstr(" times as long): the default is used. "),
            HasSubstr("tuner revalidate"), HasSubstr("delete " + verdict_files().at(0).string())));
}

TEST_F(RuntimeVerify, TheVerdictIsKeptForTheNextProcess) {
  const std::string tuned = sleeping(15);
  find(open_verifying(), task(15));
  // What is kept counts, whatever a race would find: so there is none.
  keep_verdict("tuner-verdict 1 kept 1234 5678");
  const Found kept = find(open_verifying(), task(15));
  EXPECT_EQ(kept.verdict, "kept");
  EXPECT_EQ(kept.kind, "exact");
  EXPECT_EQ(kept.config, tuned);
  EXPECT_EQ(kept.raced_ns, 1234);
  EXPECT_EQ(kept.raced_default_ns, 5678);
  keep_verdict("tuner-verdict 1 wrong 0 0");
  EXPECT_EQ(find(open_verifying(), task(15)).kind, "default");
  // Another kernel is raced anew.
  const Found raced = find(open_verifying({.cache_dir = ""}), task(15));
  EXPECT_EQ(raced.verdict, "slower");
  EXPECT_GT(raced.raced_ns, 0);
}

TEST_F(RuntimeVerify, AKernelThatComputesSomethingElseGivesWayToItsDefault) {
  // The tuned config's code is that of a product with another epilogue.
  const std::string json = task(16);
  measured(json, default_artifact(R"({"op":"matmul","a":[16,37],"b":[37,51],"activation":"relu"})"));
  tuner_source* unverified = open_verifying({.verify = -1});
  EXPECT_THAT(use_once(unverified, json), HasSubstr("elements of ")) << "it is wrong";
  tuner_source* source = open_verifying();
  const Found found = find(source, json);
  EXPECT_EQ(found.verdict, "wrong");
  EXPECT_EQ(found.kind, "default");
  EXPECT_EQ(use_once(source, json), "");
  EXPECT_THAT(heard_.lines,
              ElementsAre(AllOf(HasSubstr(": its kernel is not right here: out["),
                                HasSubstr(": the default is used. To check it: tuner verify FILE"))));
}

TEST_F(RuntimeVerify, ALockedKernelThatIsSlowerStaysAndIsTold) {
  const std::string json = task(17), config = sleeping(17);
  const Workload w = testing::workload_of(json);
  const AnyTemplate& chosen = *templates_for(w, host_target(), "direct")->front();
  AnswerLock lock("answers.lock");
  lock.put({.task = locked_task(w, host_target(), "", Constants::kWarm),
            .choice = {std::string(chosen.name()), chosen.version(), config}});
  write("answers.lock", lock.text());
  const std::string file = path("answers.lock");
  const Found found = find(open_verifying({.lock = file.c_str()}), json);
  EXPECT_EQ(found.verdict, "slower");
  EXPECT_EQ(found.kind, "locked");
  EXPECT_EQ(found.config, config);
  EXPECT_THAT(heard_.lines,
              ElementsAre(AllOf(HasSubstr("; it is locked, so it is used"), HasSubstr("tuner lock"))));
}

TEST_F(RuntimeVerify, ADefaultConfigIsNotRaced) {
  const Found found = find(open_default({.verify = 1}), task(18));
  EXPECT_EQ(found.verdict, "default");
  EXPECT_THAT(verdict_files(), IsEmpty());
}

TEST_F(RuntimeVerify, IsAskedForByTheEnvironmentOrByTheProgram) {
  sleeping(19);
  const auto verdict = [&](const char* environment, int32_t option) {
    environment == nullptr ? ::unsetenv("TUNER_VERIFY") : ::setenv("TUNER_VERIFY", environment, 1);
    artifacts_ = path("artifacts");
    return find(open(path("t.db"), {.artifact_dir = artifacts_.c_str(), .verify = option}), task(19)).verdict;
  };
  EXPECT_EQ(verdict(nullptr, 0), "");
  EXPECT_EQ(verdict("0", 0), "");
  EXPECT_EQ(verdict("", 0), "");
  EXPECT_EQ(verdict("1", 0), "slower");
  EXPECT_EQ(verdict("1", -1), "");
  EXPECT_EQ(verdict("0", 1), "slower");
  EXPECT_EQ(refusal(path("t.db"), TUNER_INVALID, {.verify = 2}),
            "tuner_options.verify: expected 1, 0 or -1, found 2");
  ::setenv("TUNER_VERIFY", "yes", 1);
  EXPECT_EQ(refusal(path("t.db"), TUNER_INVALID), "TUNER_VERIFY: expected 1 or 0, found \"yes\"");
}

// Eight threads, two sources: one race, and the same kernel for all.
TEST_F(RuntimeVerify, ManyWhoAskAtOnceGetOneVerdict) {
  sleeping(20);
  tuner_source* sources[] = {open_verifying(), open_verifying()};
  std::vector<std::string> kinds(8);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kinds.size(); ++t)
    threads.emplace_back([&, t] { kinds[t] = find(sources[t % 2], task(20)).kind; });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(kinds, std::vector<std::string>(8, "default"));
  EXPECT_EQ(verdict_files().size(), 1u);
  EXPECT_EQ(heard_.lines.size(), 1u);
}

// --- bundles of `tuner build` ---

class VerifiedBundle : public RuntimeVerify {
 protected:
  void build(const std::string& json, const std::string& options) {
    write("job.json", json);
    const std::string line = str(TUNER_BINARY, " build ", path("job.json"), " -o ", path("out"),
                                 " --name lib --db ", path("t.db"), " ", options, " >", path("log"), " 2>&1");
    ASSERT_EQ(std::system(line.c_str()), 0) << contents(path("log"));
  }
  nlohmann::json kernel() const {
    return nlohmann::json::parse(contents(folder_ / "out/manifest.json")).at("kernels").at(0);
  }
};

TEST_F(VerifiedBundle, HasItsDefaultKernelsToBeRacedWithoutACompiler) {
  const std::string json =
      R"({"op":"matmul","a":[21,37],"b":[37,51],"bias":true,"activation":"relu","constant":["b","bias"]})";
  const std::string tuned = tune(json);
  build(json, "--with-default");
  ASSERT_TRUE(kernel().at("default_kernel").is_object());
  const Found found = find(open(path("out"), {.verify = 1}), json);
  EXPECT_THAT(found.verdict, AnyOf("kept", "slower")) << "which one is the machine's affair; " << found.note;
  EXPECT_GT(found.raced_ns, 0);
  EXPECT_GT(found.raced_default_ns, 0);
  keep_verdict("tuner-verdict 1 kept 10 20");
  tuner_source* kept = open(path("out"), {.verify = 1});
  EXPECT_EQ(find(kept, json).kind, "exact");
  EXPECT_EQ(find(kept, json).config, tuned);
  EXPECT_EQ(use_once(kept, json), "");
  keep_verdict("tuner-verdict 1 slower 2000 1000");
  tuner_source* slower = open(path("out"), {.verify = 1});
  const Found plain = find(slower, json);
  EXPECT_EQ(plain.kind, "default");
  EXPECT_NE(plain.config, tuned);
  EXPECT_EQ(use_once(slower, json), "") << "its constants are packed in its own way";
}

TEST_F(VerifiedBundle, WithoutThemItSaysHowToAddThem) {
  tune(task(22));
  build(task(22), "");
  EXPECT_FALSE(kernel().contains("default_kernel"));
  const Found found = find(open(path("out"), {.verify = 1}), task(22));
  EXPECT_EQ(found.verdict, "undecided");
  EXPECT_EQ(found.kind, "exact");
  EXPECT_THAT(heard_.lines,
              Contains(AllOf(HasSubstr(": its kernel is not verified: "), HasSubstr("has no default kernel"),
                             HasSubstr("tuner build FILE -o DIR --with-default")))
                  .Times(1));
}

TEST_F(VerifiedBundle, ADefaultConfigIsThereOnce) {
  build(task(23), "--with-default");
  EXPECT_EQ(kernel().at("default_kernel"), "same");
  EXPECT_EQ(find(open(path("out"), {.verify = 1}), task(23)).verdict, "default");
}

// The header, and what programs link by name, are as without the option.
TEST_F(VerifiedBundle, TheHeaderKnowsNothingOfThem) {
  tune(task(24));
  build(task(24), "--with-default");
  const std::string with = contents(folder_ / "out/include/lib.h");
  build(task(24), "");
  EXPECT_EQ(contents(folder_ / "out/include/lib.h"), with);
}

}  // namespace
}  // namespace tuner
