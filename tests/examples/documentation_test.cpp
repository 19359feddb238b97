// README.md and docs/*.md: every command runs as it is printed, or stands below with the reason why it does
// not; every job file is one; every link leads somewhere. The programs are those that README.md's first
// command builds, and no others.
#include <glob.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "compiler_core/codegen_cuda/cuda.h"
#include "templates/source_kernel/source_kernel_json.h"
#include "tests/examples/documentation.h"
#include "tests/models/networks.h"
#include "tests/models/quantized_networks.h"
#include "tests/tuner/command_line.h"
#include "tuner/jobs/job_file.h"

namespace tuner {
namespace {

using testing::Block;
using testing::CommandResult;
using testing::Document;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

constexpr char kBuilds[] = "installs and builds: .ci/run and deploy/fresh_root.sh run it";
constexpr char kPackages[] = "installs packages: deploy/package_root.sh runs it";
constexpr char kDaemon[] =
    "a daemon that stays, on a fixed port: tests/tuner/cli/three_process_test has its own";
constexpr char kPage[] = "a page that stays until Ctrl-C: tests/tuner/dashboard opens one";
constexpr char kFarm[] =
    "a farm of several hosts: tests/deploy/client_test and tests/tuner/cli/admin_cli_test have one";
constexpr char kSlurm[] = "needs a cluster: tests/slurm has one (ctest -L slurm)";
constexpr char kBoard[] = "needs an ARM board, or a cross compiler and qemu";
constexpr char kGpu[] = "needs a GPU host";
constexpr char kNvrtc[] = "needs NVRTC";
constexpr char kTimes[] =
    "its exit code tells how calm the machine is: tests/tuner/cli/cli_test has the rest";
constexpr char kJudge[] =
    "its exit code tells how calm the machine is: tests/tuner/judge/judge_cli_test judges this kernel";
constexpr char kOwn[] = "a minute of compiling: tests/deploy/package_test takes these steps";
constexpr char kCapture[] = "a program of the reader's: tests/deploy/capture_test";
constexpr char kVerify[] = "a program of the reader's: tests/deploy/runtime_verify_test";
constexpr char kWheel[] = "a minute, and a virtual environment: tests/python/wheel_test takes these steps";
constexpr char kRuntime[] = "needs ONNX Runtime: tests/bench/onnxruntime_provider_test has it";
constexpr char kHour[] = "libraries of others, and an hour";

// Commands that are not run here, and why.
const std::map<std::string, std::string>& not_run_here() {
  static const std::map<std::string, std::string> commands = {
      {"deploy/run.sh submit examples/conv2d.json --trials 128", kBuilds},
      {"deploy/test.sh", kBuilds},
      {"BENCH_LIBONNXRUNTIME=$(deploy/onnxruntime.sh) bench_model resnet50.onnx resnet50 --provider "
       "build/release/lib/libtuner_onnxruntime.so",
       kRuntime},
      {"deploy/package.sh", kPackages},
      {"apt install ./build/package/packages/*.deb", kPackages},
      {"tuner serve --listen 127.0.0.1:7070", kDaemon},
      {"measure_server --daemon 127.0.0.1:7070", kDaemon},
      {"tuner submit conv2d.json --daemon 127.0.0.1:7070", kDaemon},
      {"tuner workers --daemon 127.0.0.1:7070", kDaemon},
      {"tuner jobs --daemon 127.0.0.1:7070", kDaemon},
      {"tuner top --daemon 127.0.0.1:7070", kDaemon},
      {"tuner serve --metrics 127.0.0.1:9470 --log-format json", kDaemon},
      {"tuner dashboard", kPage},
      {"tuner dashboard --beside old.db", kPage},
      {"tuner dashboard --daemon 127.0.0.1:7070", kPage},
      {"tuner dashboard --daemon alice.credentials", kPage},
      {"tuner serve --http 127.0.0.1:7071", kPage},
      {"tuner admin ca", kFarm},
      {"tuner serve --listen tls:0.0.0.0:7070", kFarm},
      {"tuner admin worker gpu1 --address farm.example:7070 -o gpu1.credentials", kFarm},
      {"tuner admin token alice --address farm.example:7070 -o alice.credentials", kFarm},
      {"scp gpu1.credentials gpu1:", kFarm},
      {"scp alice.credentials alice@desk:", kFarm},
      {"measure_server --daemon gpu1.credentials", kFarm},
      {"tuner submit conv2d.json --daemon alice.credentials", kFarm},
      {"tuner workers --daemon alice.credentials", kFarm},
      {"tuner admin list", kFarm},
      {"tuner admin token bob --tenant vision --address farm.example:7070 -o bob.credentials", kFarm},
      {"tuner admin tenant vision --weight 3 --leases 40 --jobs 10", kFarm},
      {"tuner admin tenant vision --sources 64", kFarm},
      {"tuner admin drain gpu1", kFarm},
      {"tuner admin revoke alice", kFarm},
      {"tuner admin ca --renew", kFarm},
      {"tuner admin worker nodes --fleet --address farm.example:7070 -o nodes.credentials", kSlurm},
      {"tuner farm slurm up --credentials nodes.credentials --workers 8 --cores 4 --partition batch", kSlurm},
      {"tuner farm slurm status --daemon alice.credentials", kSlurm},
      {"tuner farm slurm scale 16", kSlurm},
      {"tuner farm slurm scale --min 0 --max 32 --daemon alice.credentials", kSlurm},
      {"tuner farm slurm down", kSlurm},
      {"measure_server --daemon nodes.credentials --worker-id nodes.$JOB-$TASK --work-dir "
       "/tmp/tuner/$JOB-$TASK "
       "--shared-dir /tmp/tuner/shared",
       kSlurm},
      {"deploy/cross.sh aarch64", kBoard},
      {"tuner admin worker pi4 --address farm.example:7070 -o pi4.credentials", kBoard},
      {"tuner admin worker builder1 --address farm.example:7070 -o builder1.credentials", kBoard},
      {"scp -r build/aarch64/worker pi4:tuner", kBoard},
      {"scp pi4.credentials pi4:tuner/", kBoard},
      {"measure_server --kind builder --daemon builder1.credentials", kBoard},
      {"./runner --probe", kBoard},
      {"./measure_runner --daemon pi4.credentials", kBoard},
      {"measure_runner --daemon pi4.credentials", kBoard},
      {"tuner submit examples/conv2d_aarch64.json --trials 128 --daemon alice.credentials", kBoard},
      {"tuner query examples/conv2d_aarch64.json --daemon alice.credentials", kBoard},
      {"aarch64-linux-gnu-g++ -O2 -std=c++17 examples/app_cpp/main.cpp -Iout_board/include -Lout_board/lib "
       "-lapp_kernels -Wl,-rpath,'$ORIGIN/lib' "
       "-pthread "
       "-o app",
       kBoard},
      {"scp -r app out_board/lib pi4:", kBoard},
      {"qemu-aarch64 -cpu cortex-a72 -L build/aarch64/sysroot build/aarch64/worker/runner --probe", kBoard},
      {"measure_server --daemon HOST:PORT", kGpu},
      {"tuner submit examples/conv2d_cuda.json", kGpu},
      {"ctest -L gpu", kGpu},
      {"tuner pack FILE -o FILE.pack --candidates 500", kGpu},
      {"runner run-pack FILE.pack -o results.jsonl --deadline 600", kGpu},
      {"tuner records import results.jsonl", kGpu},
      {"bench_gpu FILE.pack --results results.jsonl --json DATE-DEVICE.json", kGpu},
      {"tuner show examples/conv2d_cuda.json --as resources", kNvrtc},
      {"tuner show examples/conv2d_cuda.json --as sass", kNvrtc},
      {"tuner build examples/conv2d_cuda.json -o out_cuda", kNvrtc},
      {"tuner pack gpu_tasks.json -o net.pack --candidates 100", kNvrtc},
      {"runner run-pack net.pack -o net.jsonl --deadline 600", kGpu},
      {"tuner records import net.jsonl", kGpu},
      {"tuner verify job.json --times", kTimes},
      {"tuner verify job.json --times --processes 3", kTimes},
      {"tuner kernel judge examples/own_kernels/sgemm.c --job examples/own_kernels/sgemm.json", kJudge},
      {"cmake --install build/release --prefix ~/tuner", kOwn},
      {"cp -r examples/my_template mine && cd mine", kOwn},
      {"cmake -S . -B build -DCMAKE_PREFIX_PATH=$HOME/tuner && cmake --build build", kOwn},
      {"build/bin/tuner verify bias_relu.json --samples 20", kOwn},
      {"build/bin/tuner submit bias_relu.json", kOwn},
      {"build/bin/tuner query bias_relu.json", kOwn},
      {"build/bin/tuner show bias_relu.json --as loops", kOwn},
      {"build/bin/tuner build bias_relu.json -o out", kOwn},
      {"deploy/python/wheel.sh", kWheel},
      {"python3 -m venv --system-site-packages environment", kWheel},
      {"environment/bin/pip install dist/tuner-*.whl", kWheel},
      {"TUNER_CAPTURE=shapes.json ./app", kCapture},
      {"tuner submit shapes.json", kCapture},
      {"TUNER_VERIFY=1 ./app", kVerify},
      {"tuner extract model.onnx -o tasks.json --batch 1",
       "a model of the reader's: tests/tuner/model/extract_test"},
      {"deploy/install.sh --peers", kHour},
      {"deploy/build.sh release bench_cpu", kHour},
      {"build/release/bin/bench_cpu --tune 80 --rounds 40 --set cubes,bert --json RAW.json", kHour},
  };
  return commands;
}

const std::vector<Document>& pages() {
  static const std::vector<Document> all = testing::documentation(TUNER_SOURCE_DIR);
  return all;
}

// The page that a reader follows first: others go on with what it made.
constexpr char kFirstPage[] = "docs/tutorial.md";

// One folder and one database for all pages, as one reader has; those of kFirstPage come first.
class DocumentationTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    shell_ = std::make_unique<testing::CommandLine>("/usr/local/bin");
    // Copies: a program looks for others beside itself, and links would lead it to all that the build folder
    // has.
    const fs::path programs = shell_->folder() / "build/release/bin";
    fs::create_directories(programs);
    std::istringstream names(TUNER_INSTALLED_PROGRAMS);
    for (std::string name; names >> name;) fs::copy_file(fs::path(TUNER_BIN_DIR) / name, programs / name);
    fs::create_directories(programs / "../lib");
    fs::copy_file(fs::path(TUNER_BIN_DIR) / "../lib/libtuner_npu.so", programs / "../lib/libtuner_npu.so");
    fs::create_symlink(fs::path(TUNER_SOURCE_DIR) / "examples", shell_->folder() / "examples");
    for (const Document& page : pages())
      for (const Block& block : page.blocks)
        if (!block.name.empty()) shell_->write(block.name, block.text);
    const auto model = testing::network("mobilenetv2", {.image = 32, .narrower = 8});
    ASSERT_TRUE(model) << model.message();
    shell_->write("model.onnx", *model);
    const auto quantized = testing::quantized_network("mobilenetv2_int8", {.image = 32, .narrower = 8});
    ASSERT_TRUE(quantized) << quantized.message();
    shell_->write("quantized.onnx", *quantized);
    first_ = run(kFirstPage);
  }
  static void TearDownTestSuite() { shell_.reset(); }

  static CommandResult run(const std::string& path) {
    // Not the caller's PATH, which may have a build folder. A failure says which command it was. Races of the
    // first page are as a reader has them; those of the others, which are the same, are short.
    std::string script = "export PATH=$PWD/build/release/bin:/usr/local/bin:$(getconf PATH)\n";
    if (path != kFirstPage) script += "export TUNER_RACE_LIMIT_S=0.001\n";
    script += "set -x\n";
    for (const Document& page : pages())
      for (const Block& block : page.blocks)
        if (page.path == path && block.language == "sh")
          for (const std::string& command : testing::commands_of(block))
            if (!not_run_here().contains(command)) script += command + "\n";
    return shell_->run(script);
  }
  static std::string follow(const std::string& path) {
    EXPECT_EQ(first_.exit_code, 0) << kFirstPage << "\n" << first_.out << first_.err;
    const CommandResult ran = run(path);
    EXPECT_EQ(ran.exit_code, 0) << path << "\n" << ran.out << ran.err;
    followed_.insert(path);
    return ran.out;
  }

  static std::unique_ptr<testing::CommandLine> shell_;
  static CommandResult first_;
  static std::set<std::string> followed_;
};
std::unique_ptr<testing::CommandLine> DocumentationTest::shell_;
CommandResult DocumentationTest::first_;
std::set<std::string> DocumentationTest::followed_;

TEST_F(DocumentationTest, Tutorial) {
  EXPECT_EQ(first_.exit_code, 0) << first_.out << first_.err;
  EXPECT_THAT(first_.out, HasSubstr("certified")) << "the answer says so, or why not";
  EXPECT_FALSE(shell_->read("out/manifest.json").empty());
  EXPECT_THAT(first_.out, HasSubstr("largest difference: ")) << "the C program ran";
}

TEST_F(DocumentationTest, TutorialOfAModel) {
  const std::string out = follow("docs/tutorial_model.md");
  EXPECT_THAT(out, HasSubstr("checked: largest error"));
  EXPECT_THAT(out, HasSubstr("whole, before/now: "));
  EXPECT_THAT(out, HasSubstr("class 9: ")) << "the C program ran";
}

TEST_F(DocumentationTest, Applications) {
  EXPECT_THAT(follow("docs/applications.md"),
              HasSubstr("right: conv and dense, 50 calls each from 8 threads at once"));
}

TEST_F(DocumentationTest, Commands) {
  follow("docs/commands.md");
  EXPECT_THAT(shell_->read("report.html"), HasSubstr("</html>"));
}

TEST_F(DocumentationTest, OwnKernels) {
  const std::string out = follow("docs/own_kernels.md");
  EXPECT_THAT(out, HasSubstr("source_kernel_cpu"));
  EXPECT_THAT(out, HasSubstr("largest difference: ")) << "the C program ran";
  EXPECT_THAT(out, HasSubstr("4 configs compared, 0 wrong"));
  EXPECT_THAT(out, HasSubstr("not checked by us"));
  EXPECT_THAT(out, HasSubstr("16 new trials"));
}

TEST_F(DocumentationTest, Judge) {
  if (const Status there = nvrtc_available(); !there) {
    followed_.insert("docs/judge.md");
    GTEST_SKIP() << there.message();
  }
  EXPECT_THAT(follow("docs/judge.md"), HasSubstr("right, not timed"));
}

TEST_F(DocumentationTest, Models) {
  const std::string out = follow("docs/models.md");
  EXPECT_THAT(out, HasSubstr("whole, before/now: "));
  EXPECT_THAT(out, HasSubstr("my_layer of libmine.so takes "));
}

TEST_F(DocumentationTest, GpuModels) {
  if (const Status there = nvrtc_available(); !there) {
    followed_.insert("docs/gpu_models.md");
    GTEST_SKIP() << there.message();
  }
  EXPECT_THAT(follow("docs/gpu_models.md"), HasSubstr("checked in the emulator: "));
}

TEST_F(DocumentationTest, JobsAndTargets) {
  EXPECT_THAT(follow("docs/jobs_and_targets.md"), HasSubstr("valid"));
}

TEST_F(DocumentationTest, Records) {
  follow("docs/records.md");
  EXPECT_THAT(shell_->read("autotvm.log"), HasSubstr("\"version\":0.2"));
}

TEST_F(DocumentationTest, Boards) {
  EXPECT_THAT(follow("docs/boards.md"), HasSubstr("fmla"));
  EXPECT_FALSE(shell_->read("out_board/include/app_kernels.h").empty());
}

TEST_F(DocumentationTest, Farm) {
  EXPECT_THAT(follow("docs/farm.md"), HasSubstr("TENANT")) << "what tenants have used";
}

TEST_F(DocumentationTest, Backends) {
  EXPECT_THAT(follow("docs/backends.md"), HasSubstr("% of the array's peak"));
  EXPECT_THAT(shell_->read("trace.json"), HasSubstr("\"traceEvents\""));
}

TEST_F(DocumentationTest, Gpus) {
  follow("docs/gpus.md");
  EXPECT_FALSE(shell_->read("small.jsonl").empty());
}

// Pages all of whose commands stand in the list above have nothing to follow.
TEST_F(DocumentationTest, EveryPageWithCommandsIsFollowed) {
  if (followed_.empty()) GTEST_SKIP() << "only part of the tests was asked for";
  for (const Document& page : pages())
    for (const Block& block : page.blocks)
      for (const std::string& command :
           block.language == "sh" ? testing::commands_of(block) : std::vector<std::string>()) {
        EXPECT_TRUE(page.path == kFirstPage || followed_.contains(page.path) ||
                    not_run_here().contains(command))
            << page.path << ":" << block.line << ": \"" << command
            << "\" is neither run by a test of this file nor listed in not_run_here()";
      }
}

TEST(DocumentationText, EveryBlockSaysWhatItIsAndJobFilesAreRight) {
  ASSERT_GE(pages().size(), 9u);
  const auto own_kernels = job_folder(TUNER_SOURCE_DIR "/examples/own_kernels");
  for (const Document& page : pages())
    for (const Block& block : page.blocks) {
      const std::string place = str(page.path, ":", block.line);
      EXPECT_TRUE(
          std::set<std::string>({"sh", "json", "text", "c", "yaml", "python", "py"}).contains(block.language))
          << place << ": a block of \"" << block.language << "\", expected sh, json, text, c, yaml or python";
      if (block.language != "json") continue;
      const auto entries = parse_job_text(block.text, place, own_kernels.get());
      EXPECT_TRUE(entries.is_ok()) << entries.message();
    }
}

TEST(DocumentationText, NothingIsListedThatIsNotPrinted) {
  std::set<std::string> printed;
  for (const Document& page : pages())
    for (const Block& block : page.blocks)
      for (const std::string& command : testing::commands_of(block)) printed.insert(command);
  for (const auto& [command, reason] : not_run_here())
    EXPECT_TRUE(printed.contains(command)) << "\"" << command << "\" stands in no page";
}

// Models are read, compiled, run and shown by every build: the two pages about them are never excused from
// it.
TEST(DocumentationText, ModelsNeedNothingThatTheFirstCommandDoesNotBuild) {
  const std::regex of_models(R"(\btuner (compile|run|show net)\b)");
  const auto is_of_models = [&](const std::string& command) { return std::regex_search(command, of_models); };
  for (const auto& [command, reason] : not_run_here())
    EXPECT_FALSE(is_of_models(command)) << "\"" << command << "\" is listed as not run: " << reason;
  std::map<std::string, int> found;  // by page
  for (const Document& page : pages())
    for (const Block& block : page.blocks)
      if (block.language == "sh")
        found[page.path] +=
            static_cast<int>(std::ranges::count_if(testing::commands_of(block), is_of_models));
  EXPECT_GE(found["docs/tutorial_model.md"], 3);
  EXPECT_GE(found["docs/models.md"], 8);
}

TEST(DocumentationText, EveryLinkAndEveryNamedFileIsThere) {
  const fs::path top = TUNER_SOURCE_DIR;
  std::vector<Document> documents = pages();
  for (const char* more : {"CONTRIBUTING.md", "CHANGELOG.md"})
    documents.push_back(testing::read_document(top, more));
  int links = 0;
  for (const Document& page : documents) {
    for (const std::string& link : testing::relative_links(page)) {
      EXPECT_TRUE(fs::exists(top / fs::path(page.path).parent_path() / link)) << page.path << ": " << link;
      ++links;
    }
    for (const std::string& file : testing::named_files(page)) {
      glob_t found{};
      EXPECT_EQ(::glob((top / file).c_str(), 0, nullptr, &found), 0) << page.path << ": " << file;
      ::globfree(&found);
    }
  }
  EXPECT_GE(links, 40);
}

TEST(DocumentationText, ReadmeIsAPageForAMinute) {
  std::ifstream in(fs::path(TUNER_SOURCE_DIR) / "README.md");
  int lines = 0;
  for (std::string line; std::getline(in, line); ++lines)
    EXPECT_LE(line.size(), 120u) << "line " << lines + 1;
  EXPECT_LE(lines, 110);
}

TEST(DocumentationText, BlocksCommandsAndLinksAreFound) {
  const Document page = testing::parse_document(
      "a.md",
      "# A\n[x](b.md#c) [y](https://d) `deploy/run.sh X` `other/z`\n```sh\none  # why\n# no\ntwo 'a#b'\n```\n"
      "```json job.json\n{}\n```\n");
  ASSERT_EQ(page.blocks.size(), 2u);
  EXPECT_THAT(testing::commands_of(page.blocks[0]), ElementsAre("one", "two 'a#b'"));
  EXPECT_EQ(page.blocks[0].line, 3);
  EXPECT_EQ(page.blocks[1].name, "job.json");
  EXPECT_THAT(testing::relative_links(page), ElementsAre("b.md"));
  EXPECT_THAT(testing::named_files(page), ElementsAre("deploy/run.sh"));
}

}  // namespace
}  // namespace tuner
