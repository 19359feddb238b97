// The builder process: what it makes, what it refuses, and that its hanging or dying costs one request.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <thread>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/base/child_process.h"
#include "compiler_core/base/elements.h"
#include "compiler_core/base/room.h"
#include "compiler_core/oracle/oracle.h"
#include "measure_server/runner/file_lock.h"
#include "measure_server/runner/reference_file.h"
#include "measure_server/worker/builder_client.h"
#include "measure_server/worker/task_data.h"
#include "templates/schedule_template.h"
#include "templates/workload/task_memory.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/wait_until.h"

namespace tuner {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

Conv2dWorkload small_conv() {
  Conv2dWorkload w;
  w.in_channels = 8, w.in_height = 9, w.in_width = 7, w.out_channels = 16;
  w.kernel_height = w.kernel_width = 3;
  w.padding = {1, 1, 1, 1};
  w.bias = true;
  w.activation = Activation::kRelu;
  w.constant = {"weight"};
  return w;
}

std::string slurp(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

class BuilderProcess : public testing::Test {
 protected:
  void SetUp() override {
    auto started = BuilderClient::start(TUNER_MEASURE_SERVER_PATH, {});
    ASSERT_TRUE(started.is_ok()) << started.message();
    builder_ = *std::move(started);
  }

  BuildRequest build_request() const {
    const Workload workload(small_conv());
    const Result<Target> target = parse_target(builder_->hello().backends.at(0).targets.at(0));
    EXPECT_TRUE(target.is_ok()) << target.message();
    const auto found = templates_for(workload, *target);
    EXPECT_TRUE(found.is_ok()) << found.message();
    const AnyTemplate* t = found->front();
    const auto instance = t->apply(workload, *target);
    EXPECT_TRUE(instance.is_ok()) << instance.message();
    const ConfigSpace& space = (*instance)->space();
    return {.kind = "build",
            .directory = dir_,
            .workload_key = workload.key(),
            .target = target->name(),
            .template_name = std::string(t->name()),
            .config = space.at(space.default_index()).to_text(),
            .template_version = t->version(),
            .input_seed = 1};
  }
  BuildRequest data_request(const Workload& workload) const {
    return {.kind = "data", .directory = dir_, .workload_key = workload.key(), .input_seed = 1};
  }
  BuildReply ask(const BuildRequest& request) {
    const Result<BuildReply> reply = builder_->ask(request, seconds(120));
    EXPECT_TRUE(reply.is_ok()) << reply.message();
    return reply.is_ok() ? *reply : BuildReply{};
  }

  const TemporaryFolder temporary_;
  const std::string dir_ = temporary_.path();
  std::unique_ptr<BuilderClient> builder_;
};

TEST_F(BuilderProcess, SaysWhatThisHostIs) {
  EXPECT_THAT(builder_->hello().backends.at(0).targets.at(0), HasSubstr("llvm -mcpu="));
  EXPECT_THAT(builder_->hello().backends.at(0).toolchain, HasSubstr("llvm 22"));
}

TEST_F(BuilderProcess, BuildsAnArtifactAndDoesNotBuildItTwice) {
  const BuildReply first = ask(build_request());
  ASSERT_EQ(first.outcome, BuildOutcome::kOk) << first.message;
  const auto artifact = load_artifact(dir_ + "/artifacts", first.digest);
  ASSERT_TRUE(artifact.is_ok()) << artifact.message();
  EXPECT_EQ(artifact->manifest.target, build_request().target);
  EXPECT_EQ(artifact->manifest.toolchain, builder_->hello().backends.at(0).toolchain);

  const fs::path file = dir_ + "/artifacts/" + first.digest + ".so";
  // The same file, not one of the same name; its time says that it was used (shared_cache.h).
  const auto inode = [&] {
    struct stat info {};
    EXPECT_EQ(stat(file.c_str(), &info), 0) << file;
    return info.st_ino;
  };
  const auto written = inode();
  const auto before = fs::file_time_type::clock::now();
  EXPECT_EQ(ask(build_request()).digest, first.digest);
  EXPECT_EQ(inode(), written);
  EXPECT_GE(fs::last_write_time(file), before);
}

TEST_F(BuilderProcess, ADamagedArtifactIsBuiltAgain) {
  const BuildReply first = ask(build_request());
  ASSERT_EQ(first.outcome, BuildOutcome::kOk) << first.message;
  const std::string file = dir_ + "/artifacts/" + first.digest + ".so";
  std::ofstream(file, std::ios::app) << "x";
  ASSERT_FALSE(load_artifact(dir_ + "/artifacts", first.digest).is_ok());
  EXPECT_EQ(ask(build_request()).digest, first.digest);
  const auto again = load_artifact(dir_ + "/artifacts", first.digest);
  EXPECT_TRUE(again.is_ok()) << again.message();
}

// A terabyte and more: refused by the figures, before anything is allocated or written.
TEST_F(BuilderProcess, AReferenceThatDoesNotFitIsRefusedBeforeItIsBegun) {
  MatmulWorkload w;
  w.m = w.n = w.k = 400'000;
  if (available_memory() >= task_memory(Workload(w)).making_bytes)
    GTEST_SKIP() << "this machine has " << bytes_text(available_memory()) << " available";
  const BuildReply reply =
      ask({.kind = "data", .directory = dir_, .workload_key = Workload(w).key(), .input_seed = 1});
  EXPECT_EQ(reply.outcome, BuildOutcome::kUnable);
  EXPECT_THAT(reply.message, HasSubstr("its reference answer takes about "));
  EXPECT_THAT(reply.message, HasSubstr("this machine has available"));
  EXPECT_FALSE(fs::exists(dir_ + "/references"));
}

// What task_memory() foretells against what is taken, in a process of its own.
TEST(TaskMemory, ForetellsWhatMakingTheReferenceTakes) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's own memory would count";
#endif
  constexpr int kThreads = 32;  // as on a large host: what they take beside the operands is not felt
  std::string dir = (fs::temp_directory_path() / "task_memory_test_XXXXXX").string();
  ASSERT_NE(mkdtemp(dir.data()), nullptr);
  const auto grown = [&](const Workload& w) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
      const auto peak = [] {
        rusage used{};
        getrusage(RUSAGE_SELF, &used);
        return int64_t{used.ru_maxrss} * 1024;
      };
      const int64_t before = peak();
      const bool made = task_data(w, 1, dir, kThreads).is_ok();
      const int64_t growth = made ? peak() - before : -1;
      _exit(write(ends[1], &growth, sizeof growth) == sizeof growth ? 0 : 1);
    }
    int64_t growth = -1;
    EXPECT_EQ(read(ends[0], &growth, sizeof growth), static_cast<ssize_t>(sizeof growth));
    int status = 0;
    waitpid(child, &status, 0);
    close(ends[0]);
    close(ends[1]);
    return growth;
  };
  MatmulWorkload product;
  product.m = 4000, product.n = 4000, product.k = 64;  // most of it output
  TransposeWorkload rows;
  rows.rows = 4096, rows.columns = 4096;
  Conv2dWorkload padded = small_conv();
  padded.in_channels = 16, padded.in_height = padded.in_width = 512, padded.out_channels = 8;
  for (const Workload& w : {Workload(product), Workload(rows), Workload(padded)}) {
    const int64_t foretold = task_memory(w).making_bytes, taken = grown(w);
    ASSERT_GT(taken, 0) << w.key();
    // Never much less than what is taken, and not much more.
    EXPECT_GE(static_cast<double>(foretold), 0.9 * static_cast<double>(taken)) << w.key();
    EXPECT_LE(static_cast<double>(foretold), 1.5 * static_cast<double>(taken)) << w.key();
  }
  fs::remove_all(dir);
}

TEST_F(BuilderProcess, AConfigOutsideTheSpaceIsAnInvalidConfig) {
  BuildRequest request = build_request();
  request.config = "no_such_knob=1";
  const BuildReply reply = ask(request);
  EXPECT_EQ(reply.outcome, BuildOutcome::kInvalidConfig);
  EXPECT_NE(reply.message, "");
}

TEST_F(BuilderProcess, ATemplateOfAnotherReleaseIsAnAnswerOfItsOwnWithTheVersionThatIsHere) {
  const int here = build_request().template_version;
  BuildRequest other_version = build_request();
  other_version.template_version += 1;
  const BuildReply version = ask(other_version);
  EXPECT_EQ(version.outcome, BuildOutcome::kOtherVersion);
  EXPECT_EQ(version.found, here);
  EXPECT_THAT(version.message, HasSubstr("run the same release on daemon and worker"));
  BuildRequest unknown = build_request();
  unknown.template_name = "conv2d_abacus";
  const BuildReply no_template = ask(unknown);
  EXPECT_EQ(no_template.outcome, BuildOutcome::kOtherVersion);
  EXPECT_EQ(no_template.found, 0);
  EXPECT_THAT(no_template.message, HasSubstr("conv2d_abacus"));
  EXPECT_EQ(ask(build_request()).outcome, BuildOutcome::kOk);
}

TEST_F(BuilderProcess, ItSaysAtItsStartWhichTemplatesItHas) {
  std::map<std::string, int> said;
  for (const BuildReply::Template& t : builder_->hello().templates) said[t.name] = t.version;
  std::map<std::string, int> all;
  for (const AnyTemplate* t : all_templates()) all[std::string(t->name())] = t->version();
  EXPECT_EQ(said, all);
  EXPECT_TRUE(said.contains(build_request().template_name));
}

TEST_F(BuilderProcess, ABuildThatTakesTooLongEndsAndTheNextOneGoesOn) {
  const pid_t before = builder_->pid();
  const Result<BuildReply> late =
      builder_->ask(data_request(MatmulWorkload{.m = 4096, .n = 4096, .k = 4096}), milliseconds(50));
  ASSERT_FALSE(late.is_ok());
  EXPECT_EQ(late.status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(late.message(), HasSubstr("0.05 s"));
  EXPECT_NE(::kill(before, 0), 0) << "the builder that hung is gone";
  EXPECT_EQ(ask(build_request()).outcome, BuildOutcome::kOk);
  EXPECT_NE(builder_->pid(), before);
}

TEST_F(BuilderProcess, ABuilderThatDiesInABuildSaysHowAndTheNextOneGoesOn) {
  std::thread killer([pid = builder_->pid(), before = ticks_of_tree(builder_->pid())] {
    EXPECT_TRUE(wait_until(seconds(30), [&] { return ticks_of_tree(pid) > before + 2; })) << "it builds";
    ::kill(pid, SIGABRT);
  });
  const Result<BuildReply> died =
      builder_->ask(data_request(MatmulWorkload{.m = 4096, .n = 4096, .k = 4096}), seconds(60));
  killer.join();
  ASSERT_FALSE(died.is_ok());
  EXPECT_EQ(died.status().code(), StatusCode::kFailed);
  EXPECT_THAT(died.message(), HasSubstr("the builder died: signal 6 (SIGABRT)"));
  EXPECT_EQ(ask(build_request()).outcome, BuildOutcome::kOk);
}

TEST_F(BuilderProcess, ABuilderThatIsKilledOnceCostsNothingButTime) {
  const pid_t before = builder_->pid();
  ::kill(before, SIGSTOP);  // it takes the request and does not answer
  std::thread killer([before] {
    let_pass(milliseconds(200));
    ::kill(before, SIGKILL);
  });
  EXPECT_EQ(ask(build_request()).outcome, BuildOutcome::kOk);
  killer.join();
  EXPECT_NE(builder_->pid(), before);
}

// Slurm sends them to every process of a job, systemd to every process of a unit; they mean the worker.
TEST_F(BuilderProcess, ABuilderIsDeafToWhatAsksAllProcessesOfAJobToEnd) {
  const pid_t before = builder_->pid();
  std::thread other([before] {
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
      let_pass(milliseconds(20));
      ::kill(before, signal);
    }
  });
  EXPECT_EQ(ask(data_request(MatmulWorkload{.m = 512, .n = 512, .k = 512})).outcome, BuildOutcome::kOk);
  other.join();
  EXPECT_EQ(ask(build_request()).outcome, BuildOutcome::kOk);
  EXPECT_EQ(builder_->pid(), before);
}

TEST_F(BuilderProcess, WhoeverKillsEveryBuilderIsThisHostsTrouble) {
  std::atomic<bool> done = false;
  // Whoever builds is killed: the first one, and the one that is asked next.
  std::thread killer([&] {
    while (!done) {
      let_pass(milliseconds(20));
      std::ifstream children(str("/proc/self/task/", ::getpid(), "/children"));
      for (pid_t child; children >> child;) ::kill(child, SIGKILL);
    }
  });
  const Result<BuildReply> died =
      builder_->ask(data_request(MatmulWorkload{.m = 4096, .n = 4096, .k = 4096}), seconds(60));
  done = true;
  killer.join();
  ASSERT_FALSE(died.is_ok());
  EXPECT_EQ(died.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(died.message(), HasSubstr("the builder was ended by somebody else (signal 9 (SIGKILL))"));
}

TEST_F(BuilderProcess, ABuilderEndsWithItsStarterInTheMiddleOfABuild) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // an orphan becomes ours
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t starter = ::fork();
  if (starter == 0) {
    const Result<std::unique_ptr<BuilderClient>> own = BuilderClient::start(TUNER_MEASURE_SERVER_PATH, {});
    const pid_t pid = own.is_ok() ? (*own)->pid() : -1;
    if (::write(ends[1], &pid, sizeof pid) != sizeof pid || pid < 0) ::_exit(1);
    (void)(*own)->ask(data_request(MatmulWorkload{.m = 4096, .n = 4096, .k = 4096}), seconds(60));
    ::_exit(1);
  }
  pid_t builder = -1;
  EXPECT_EQ(::read(ends[0], &builder, sizeof builder), ssize_t{sizeof builder});
  let_pass(milliseconds(200));
  ::kill(starter, SIGKILL);
  ::waitpid(starter, nullptr, 0);
  ASSERT_GT(builder, 0);
  const std::optional<int> status = wait_for_end(builder, seconds(5));
  ASSERT_TRUE(status) << "it goes on";
  EXPECT_TRUE(WIFEXITED(*status) && WEXITSTATUS(*status) == 1) << ending_text(*status);
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
  ::close(ends[0]), ::close(ends[1]);
}

TEST_F(BuilderProcess, ABuilderThatDiedBetweenBuildsIsReplacedAndNobodyIsBlamed) {
  const pid_t before = builder_->pid();
  ::kill(before, SIGKILL);
  siginfo_t dead{};
  ASSERT_TRUE(wait_until(seconds(30), [&] {
    return ::waitid(P_PID, static_cast<id_t>(before), &dead, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           dead.si_pid == before;
  }));
  EXPECT_EQ(ask(build_request()).outcome, BuildOutcome::kOk);
  EXPECT_NE(builder_->pid(), before);
}

TEST_F(BuilderProcess, ReferenceDataIsTheInterpretersAnswerToTheInputsOnDisk) {
  const Workload workload(small_conv());
  const BuildReply reply = ask(data_request(workload));
  ASSERT_EQ(reply.outcome, BuildOutcome::kOk) << reply.message;
  const Program program = workload.compute();
  ASSERT_EQ(reply.inputs.size() + reply.references.size(), program.args.size());
  std::vector<std::vector<double>> args;
  for (size_t i = 0; i < reply.inputs.size(); ++i) {
    EXPECT_EQ(reply.inputs[i].arg, program.args[i]->name);
    const std::string bytes = slurp(reply.inputs[i].path);
    ASSERT_EQ(static_cast<int64_t>(bytes.size()), program.args[i]->elements() * 4);
    const auto* values = reinterpret_cast<const float*>(bytes.data());
    args.emplace_back(values, values + bytes.size() / 4);
    double largest = 0;
    for (const double v : args.back()) largest = std::max(largest, std::abs(v));
    EXPECT_LE(largest, 1.0);
    EXPECT_GT(largest, 0.5) << "random, not zeros";
  }
  args.emplace_back();
  ASSERT_TRUE(interpret(program, args).is_ok());
  const std::string bytes = slurp(reply.references[0].path);
  const auto reference = parse_reference(bytes);
  ASSERT_TRUE(reference.is_ok()) << reference.message();
  ASSERT_EQ(reference->full.size(), args.back().size());
  for (size_t i = 0; i < reference->full.size(); ++i) EXPECT_NEAR(reference->full[i], args.back()[i], 1e-12);
}

// What a candidate is asked at a moment it cannot know: other numbers, with their own answer.
TEST_F(BuilderProcess, SecondInputsAreOfAnotherSeedAndHaveTheirOwnAnswer) {
  const Workload workload(small_conv());
  const BuildReply reply = ask(data_request(workload));
  ASSERT_EQ(reply.outcome, BuildOutcome::kOk) << reply.message;
  ASSERT_EQ(reply.others.size(), 1u);
  const Program program = workload.compute();
  std::vector<std::vector<double>> args;
  size_t next = 0;
  for (size_t i = 0; i < reply.inputs.size(); ++i) {
    std::string bytes = slurp(reply.inputs[i].path);
    if (program.args[i]->role == BufferRole::kInput) {
      const BuildReply::Data& other = reply.others[0].inputs.at(next++);
      EXPECT_EQ(other.arg, reply.inputs[i].arg);
      EXPECT_NE(slurp(other.path), bytes);
      bytes = slurp(other.path);
    }
    const auto* values = reinterpret_cast<const float*>(bytes.data());
    args.emplace_back(values, values + bytes.size() / 4);
  }
  EXPECT_EQ(next, reply.others[0].inputs.size()) << "constants are the same in every call";
  args.emplace_back();
  ASSERT_TRUE(interpret(program, args).is_ok());
  const std::string bytes = slurp(reply.others[0].references.at(0).path);
  const auto reference = parse_reference(bytes);
  ASSERT_TRUE(reference.is_ok()) << reference.message();
  ASSERT_EQ(reference->full.size(), args.back().size());
  for (size_t i = 0; i < reference->full.size(); ++i) EXPECT_NEAR(reference->full[i], args.back()[i], 1e-12);
  // Asked again it is the same pair.
  EXPECT_EQ(slurp(ask(data_request(workload)).others.at(0).references.at(0).path), bytes);
}

TEST_F(BuilderProcess, OneElementWrongByAPercentIsOutsideTheTolerance) {
  const Workload workload(Conv2dWorkload{.in_channels = 512,
                                         .in_height = 4,
                                         .in_width = 4,
                                         .out_channels = 32,
                                         .kernel_height = 3,
                                         .kernel_width = 3});
  const BuildReply reply = ask(data_request(workload));
  ASSERT_EQ(reply.outcome, BuildOutcome::kOk) << reply.message;
  const std::string bytes = slurp(reply.references[0].path);
  const auto reference = parse_reference(bytes);
  ASSERT_TRUE(reference.is_ok()) << reference.message();
  std::vector<float> out(reference->full.begin(), reference->full.end());
  const CheckSpec spec{reply.absolute, reply.relative};
  const auto check = [&] { return check_output(*reference, out.data(), DType::kFloat32, spec, "out"); };
  EXPECT_TRUE(check().ok);
  int caught = 0;
  for (float& value : out) {
    const float right = value;
    value *= 1.01f;
    caught += check().ok ? 0 : 1;
    value = right;
  }
  // All but values so near to zero that a percent of them is less than rounding.
  EXPECT_GE(caught, static_cast<int>(out.size()) * 99 / 100);
}

TEST_F(BuilderProcess, ReferenceDataIsKeptAndMadeAgainWhenDamaged) {
  const Workload workload(small_conv());
  const BuildReply first = ask(data_request(workload));
  ASSERT_EQ(first.outcome, BuildOutcome::kOk) << first.message;
  const std::string path = first.inputs[0].path, whole = slurp(path);
  const auto written = fs::last_write_time(path);
  EXPECT_EQ(ask(data_request(workload)).inputs[0].path, path);
  EXPECT_EQ(fs::last_write_time(path), written);
  std::string damaged = whole;
  damaged[100] = static_cast<char>(damaged[100] ^ 1);
  std::ofstream(path, std::ios::binary | std::ios::trunc) << damaged;
  EXPECT_EQ(ask(data_request(workload)).outcome, BuildOutcome::kOk);
  EXPECT_EQ(slurp(path), whole);
}

TEST(RandomValues, FollowFromSeedAndArgumentAlone) {
  EXPECT_EQ(random_values(1, 0, 100), random_values(1, 0, 100));
  EXPECT_NE(random_values(1, 0, 100), random_values(1, 1, 100));
  EXPECT_NE(random_values(1, 0, 100), random_values(2, 0, 100));
  double sum = 0;
  for (const float v : random_values(7, 3, 100'000)) {
    ASSERT_GE(v, -1.0f);
    ASSERT_LT(v, 1.0f);
    sum += v;
  }
  EXPECT_NEAR(sum / 100'000, 0, 0.01);
}

TEST(RandomValues, AreNumbersOfTheirType) {
  const auto range = [](DType dtype) {
    const std::vector<float> values = random_values(7, 3, 100'000, dtype);
    // What is stored is what was drawn.
    const std::vector<double> stored = load_elements(element_bytes(values, dtype).data(), 100'000, dtype);
    EXPECT_TRUE(std::equal(values.begin(), values.end(), stored.begin(), stored.end())) << dtype;
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    return std::pair(*least, *most);
  };
  EXPECT_EQ(range(DType::kUInt8), std::pair(0.0f, 255.0f));
  EXPECT_EQ(range(DType::kInt8), std::pair(-128.0f, 127.0f));
  EXPECT_EQ(range(DType::kBFloat16), std::pair(-1.0f, 1.0f));
  const auto [least, most] = range(DType::kInt32);
  EXPECT_GE(least, -0x1p20f);
  EXPECT_LT(most, 0x1p20f);
  EXPECT_LT(least, -0x1p19f);
  EXPECT_GT(most, 0x1p19f);
}

}  // namespace
}  // namespace tuner
