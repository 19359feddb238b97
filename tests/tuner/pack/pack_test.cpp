// Pack mode as a person meets it, without a GPU: tuner pack --emulate, runner run-pack, tuner records import,
// tuner query. The kernels are those of the CUDA schedules, as the emulator's CPU Programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "db/store.h"
#include "measure_server/runner/check_kernels.h"
#include "measure_server/runner/pack_file.h"
#include "measure_server/runner/reference_file.h"
#include "tests/support/temporary_folder.h"

namespace tuner {
namespace {

using nlohmann::json;
using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr char kMatmul[] =
    R"({"op":"matmul","a":[48,40],"b":[40,56],"target":"cuda -arch=sm_80","trials":10})";
constexpr char kEmulated[] = "cuda -arch=sm_80 -emulated";

struct Ended {
  int exit_code = -1;
  std::string out, err;
};

std::string contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class PackTest : public testing::Test {
 protected:
  PackTest() { std::ofstream(folder_ / "matmul.json") << kMatmul; }

  Ended shell(const std::string& line) {
    const std::string full =
        str("cd ", folder_.string(), " && { ", line, "; } >out.txt 2>err.txt </dev/null");
    const int status = std::system(full.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, contents(folder_ / "out.txt"),
            contents(folder_ / "err.txt")};
  }
  Ended tuner(const std::string& arguments) { return shell(str(TUNER_BINARY, " ", arguments)); }
  Ended run_pack(const std::string& arguments) {
    return shell(str(TUNER_RUNNER_PATH, " run-pack ", arguments));
  }

  // A shared object that takes the arguments of `like` and does this instead.
  Artifact hostile(const Artifact& like, const std::string& body) {
    const std::string base = (folder_ / str("hostile", ++made_)).string();
    std::ofstream(base + ".c") << "#include \"compiler_core/runtime/tuner_runtime.h\"\nint32_t "
                               << like.manifest.entry << "(void* const* args, const tuner_runtime* rt) {"
                               << body << "}\n";
    EXPECT_EQ(
        std::system(str("cc -w -shared -fPIC -I" TUNER_SOURCE_DIR " -o ", base, ".so ", base, ".c").c_str()),
        0);
    return {like.manifest, contents(base + ".so")};
  }

  // The pack with two bad kernels before everything else.
  void add_bad_kernels(const std::string& path) {
    const Result<PackFile> file = PackFile::open(path);
    ASSERT_TRUE(file.is_ok()) << file.message();
    Pack pack = file->pack();
    PackTask& task = pack.tasks[0];
    for (size_t c = 0; c < task.candidates.size(); ++c) {
      const Result<Artifact> artifact = file->artifact(0, c);
      ASSERT_TRUE(artifact.is_ok()) << artifact.message();
      task.candidates[c].artifact = *artifact;
    }
    for (size_t r = 0; r < task.references.size(); ++r) task.references[r].bytes = *file->reference(0, r);
    // Configs that nobody drew: only their text counts here.
    for (const char* body : {"for (;;) {}", "*(volatile int*)16 = 1; return 0;"}) {
      PackCandidate bad = task.candidates[0];
      bad.config = str("bad=", made_ + 1);
      bad.artifact = hostile(bad.artifact, body);
      task.candidates.insert(task.candidates.begin(), bad);
    }
    ASSERT_TRUE(write_pack(pack, path).is_ok());
  }

  const TemporaryFolder temporary_;
  const fs::path folder_ = temporary_.path();
  int made_ = 0;
};

TEST_F(PackTest, FromScheduleToQueryWithoutAGpu) {
  const Ended packed = tuner(
      "pack matmul.json -o a.pack --candidates 6 --seed 3 --emulate --min-repeat-ms 0.1 "
      "--run-timeout 2");
  ASSERT_EQ(packed.exit_code, 0) << packed.err;
  EXPECT_THAT(packed.out, HasSubstr("6 candidates of 1 task written to a.pack"));
  add_bad_kernels((folder_ / "a.pack").string());

  const Ended ran = run_pack("a.pack -o results.jsonl --deadline 60");
  ASSERT_EQ(ran.exit_code, 0) << ran.out << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("8 of 8 measured, 6 right"));

  // What was expected stands beside what was found.
  const Result<PackFile> file = PackFile::open((folder_ / "a.pack").string());
  ASSERT_TRUE(file.is_ok()) << file.message();
  std::ifstream lines(folder_ / "results.jsonl");
  for (std::string line; std::getline(lines, line);) {
    const json result = json::parse(line);
    const PackCandidate& c = file->pack().tasks[0].candidates[result.at("candidate").get<size_t>()];
    EXPECT_EQ(result.at("estimated_ns").get<double>(), c.estimated_ns);
    EXPECT_EQ(result.at("predicted_rank").get<int>(), c.predicted_rank);
    EXPECT_EQ(result.at("picked").get<std::string>(), pack_pick_name(c.picked));
  }

  const Ended imported = tuner("records import results.jsonl --db t.db");
  ASSERT_EQ(imported.exit_code, 0) << imported.err;
  EXPECT_THAT(imported.out, HasSubstr("8 new trials"));
  const Ended again = tuner("records import results.jsonl --db t.db");
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_THAT(again.out, HasSubstr("0 new trials, 0 new records"));

  // Results of before: what is "caches" now was "cold", and "none" when they were warm.
  const Ended old = shell(str(R"(sed 's/"caches":"warm"/"cold":"none"/; s/"format":3/"format":1/' )",
                              "results.jsonl > old.jsonl && grep -q '\"cold\":\"none\"' old.jsonl && ",
                              TUNER_BINARY, " records import old.jsonl --db old.db"));
  EXPECT_EQ(old.exit_code, 0) << old.err;
  EXPECT_THAT(old.out, HasSubstr("8 new trials"));

  // One trial for each bad kernel, whatever the rounds.
  const auto store = Store::open((folder_ / "t.db").string(), Store::Mode::kRead);
  ASSERT_TRUE(store.is_ok()) << store.message();
  const auto jobs = (*store)->jobs();
  ASSERT_EQ(jobs->size(), 1u);
  EXPECT_EQ(jobs->front().search, "import");
  EXPECT_EQ(jobs->front().state, JobState::kFinished);
  EXPECT_EQ(jobs->front().trials, 8);
  std::map<Outcome, int> outcomes;
  const auto trials = (*store)->trials(jobs->front().id);
  for (const TrialWithRecord& t : *trials) {
    ASSERT_TRUE(t.record.has_value()) << t.trial.id;
    ++outcomes[t.record->outcome];
    EXPECT_EQ(t.task.target, kEmulated);
  }
  EXPECT_EQ(outcomes,
            (std::map<Outcome, int>{{Outcome::kOk, 6}, {Outcome::kRunTimeout, 1}, {Outcome::kCrashed, 1}}));

  const Ended found = tuner(str("query matmul.json --db t.db --json --target '", kEmulated, "'"));
  ASSERT_EQ(found.exit_code, 0) << found.err;
  EXPECT_THAT(found.out, HasSubstr("matmul_cuda"));
  // Times of the emulator are nobody's times of a GPU.
  const Ended real = tuner("query matmul.json --db t.db");
  EXPECT_EQ(real.exit_code, 1);
}

// What was fastest by the records comes first, today's answer before all, in its order; then what is drawn.
TEST_F(PackTest, TheFastestConfigsOfADatabaseComeFirst) {
  ASSERT_EQ(
      tuner("pack matmul.json -o a.pack --candidates 8 --seed 3 --emulate --min-repeat-ms 0.1").exit_code, 0);
  ASSERT_EQ(run_pack("a.pack -o results.jsonl --deadline 60").exit_code, 0);
  ASSERT_EQ(tuner("records import results.jsonl --db t.db").exit_code, 0);
  const auto store = Store::open((folder_ / "t.db").string(), Store::Mode::kRead);
  ASSERT_TRUE(store.is_ok()) << store.message();
  const auto tasks = (*store)->tasks();
  ASSERT_EQ(tasks->size(), 1u);
  const Result<TunedConfig> answer = (*store)->best(tasks->front().workload_key, kEmulated);
  ASSERT_TRUE(answer.is_ok()) << answer.message();
  const Result<PackFile> first = PackFile::open((folder_ / "a.pack").string());
  ASSERT_TRUE(first.is_ok()) << first.message();
  std::set<std::string> measured;
  for (const PackCandidate& c : first->pack().tasks[0].candidates) measured.insert(c.config);

  const Ended again = tuner(
      "pack matmul.json -o b.pack --candidates 6 --seed 9 --known 3 --db t.db --emulate --min-repeat-ms 0.1");
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr("1 default, 3 known, "));
  const Result<PackFile> second = PackFile::open((folder_ / "b.pack").string());
  ASSERT_TRUE(second.is_ok()) << second.message();
  const std::vector<PackCandidate>& candidates = second->pack().tasks[0].candidates;
  ASSERT_EQ(candidates.size(), 6u);
  EXPECT_EQ(candidates[0].picked, PackPick::kDefault);
  bool has_answer = candidates[0].config == answer->config;
  std::set<std::string> all;
  for (size_t i = 0; i < candidates.size(); ++i) {
    EXPECT_TRUE(all.insert(candidates[i].config).second) << candidates[i].config;
    if (candidates[i].picked != PackPick::kKnown) continue;
    EXPECT_LE(i, 3u);
    EXPECT_TRUE(measured.contains(candidates[i].config));
    has_answer = has_answer || (i == 1 && candidates[i].config == answer->config);
  }
  EXPECT_TRUE(has_answer) << answer->config;
  // Records of the emulator are no records of the GPU, and a database must be there.
  EXPECT_THAT(tuner("pack matmul.json -o c.pack --known 3 --db none.db --emulate").err, HasSubstr("none.db"));
}

// Of the one algorithm that a job names, with its own error bound; of several it is the direct sums.
TEST_F(PackTest, OneNamedAlgorithmMakesItsPack) {
  const auto templates_in = [&](const std::string& algorithms, CheckSpec& check) {
    std::ofstream(folder_ / "one.json")
        << R"({"op":"matmul","a":[48,40],"b":[40,56],"target":"cuda -arch=sm_80")" << algorithms << "}";
    const Ended packed = tuner("pack one.json -o one.pack --candidates 2 --emulate");
    EXPECT_EQ(packed.exit_code, 0) << packed.err;
    const Result<PackFile> file = PackFile::open((folder_ / "one.pack").string());
    EXPECT_TRUE(file.is_ok()) << file.message();
    if (!file.is_ok()) return std::set<std::string>();
    check = file->pack().tasks[0].check;
    std::set<std::string> names;
    for (const PackCandidate& c : file->pack().tasks[0].candidates) names.insert(c.template_name);
    return names;
  };
  CheckSpec direct, three;
  EXPECT_EQ(templates_in("", direct), std::set<std::string>{"matmul_cuda"});
  EXPECT_EQ(templates_in(R"(,"algorithms":["direct","tf32x3"])", direct),
            std::set<std::string>{"matmul_cuda"});
  EXPECT_EQ(templates_in(R"(,"algorithms":["tf32x3"])", three), std::set<std::string>{"matmul_tf32x3_cuda"});
  EXPECT_GT(three.absolute, 0);
}

TEST_F(PackTest, TheSameSeedDrawsTheSameCandidates) {
  for (const char* name : {"a.pack", "b.pack"})
    ASSERT_EQ(tuner(str("pack matmul.json --candidates 3 --seed 7 --emulate -o ", name)).exit_code, 0);
  const Result<PackFile> a = PackFile::open((folder_ / "a.pack").string());
  const Result<PackFile> b = PackFile::open((folder_ / "b.pack").string());
  ASSERT_TRUE(a.is_ok() && b.is_ok());
  for (size_t c = 0; c < 3; ++c)
    EXPECT_EQ(a->pack().tasks[0].candidates[c].config, b->pack().tasks[0].candidates[c].config);
}

// The candidates of a pack of 11 made with `options`.
class RankedPackTest : public PackTest {
 protected:
  std::vector<PackCandidate> pack(const std::string& options) {
    const Ended packed = tuner("pack matmul.json -o a.pack --candidates 11 --seed 5 --emulate " + options);
    EXPECT_EQ(packed.exit_code, 0) << packed.err;
    told_ = packed.err;
    const Result<PackFile> file = PackFile::open((folder_ / "a.pack").string());
    EXPECT_TRUE(file.is_ok()) << file.message();
    return file.is_ok() ? file->pack().tasks[0].candidates : std::vector<PackCandidate>();
  }
  static double mean_estimate(const std::vector<PackCandidate>& candidates) {
    double sum = 0;
    for (const PackCandidate& c : candidates) sum += c.estimated_ns;
    return sum / static_cast<double>(candidates.size());
  }
  std::string told_;
};

TEST_F(RankedPackTest, TheDefaultThenTheBestByEstimateAndAShareAtRandom) {
  const std::vector<PackCandidate> candidates = pack("");
  ASSERT_EQ(candidates.size(), 11u);
  EXPECT_THAT(told_, HasSubstr("11 of 88 configs drawn are in: 1 default, 8 by estimated time, 2 at random"));
  EXPECT_EQ(candidates[0].picked, PackPick::kDefault);
  double before = 0;
  std::set<int> ranks;
  for (const PackCandidate& c : candidates) {
    EXPECT_GT(c.estimated_ns, 0);
    ranks.insert(c.predicted_rank);
    for (const PackCandidate& other : candidates) {
      if (c.estimated_ns < other.estimated_ns) {
        EXPECT_LT(c.predicted_rank, other.predicted_rank);
      }
    }
    if (c.picked != PackPick::kEstimate) continue;
    EXPECT_GE(c.estimated_ns, before);
    before = c.estimated_ns;
  }
  EXPECT_EQ(*ranks.begin(), 0);
  EXPECT_EQ(*ranks.rbegin(), 10);
  EXPECT_EQ(ranks.size(), 11u);
  // The random ones stand among the others, so that a deadline does not cut them off.
  EXPECT_EQ(candidates[5].picked, PackPick::kRandom);
  EXPECT_EQ(candidates[10].picked, PackPick::kRandom);
}

TEST_F(RankedPackTest, WithoutARandomShareEstimatesAreLower) {
  const std::vector<PackCandidate> best = pack("--random-share 0");
  EXPECT_THAT(told_, HasSubstr(": 1 default, 10 by estimated time"));
  const std::vector<PackCandidate> even = pack("--random-share 100");
  EXPECT_THAT(told_, HasSubstr(": 1 default, 10 at random"));
  ASSERT_EQ(even.size(), 11u);
  EXPECT_EQ(best[0].config, even[0].config);
  EXPECT_LT(mean_estimate(best), 0.9 * mean_estimate(even));
}

TEST_F(PackTest, ACpuPackIsMeasuredAndQueriedAsItself) {
  const std::string target = "--target cpu";
  ASSERT_EQ(tuner("pack matmul.json -o cpu.pack --candidates 3 --min-repeat-ms 0.1 " + target).exit_code, 0);
  const Result<PackFile> file = PackFile::open((folder_ / "cpu.pack").string());
  ASSERT_TRUE(file.is_ok()) << file.message();
  EXPECT_EQ(file->pack().tasks[0].candidates[1].predicted_rank, -1);  // estimates are of GPUs
  ASSERT_EQ(run_pack("cpu.pack -o results.jsonl").exit_code, 0);
  ASSERT_EQ(tuner("records import results.jsonl --db t.db").exit_code, 0);
  const Ended found = tuner("query matmul.json --db t.db " + target);
  EXPECT_EQ(found.exit_code, 0) << found.err;
  // Without estimates, too, what is known comes before what is drawn.
  const Ended again =
      tuner("pack matmul.json -o again.pack --candidates 6 --seed 9 --known 1 --db t.db " + target);
  ASSERT_EQ(again.exit_code, 0) << again.err;
  const Result<PackFile> second = PackFile::open((folder_ / "again.pack").string());
  ASSERT_TRUE(second.is_ok()) << second.message();
  std::string picked;
  for (const PackCandidate& c : second->pack().tasks[0].candidates)
    picked += c.picked == PackPick::kDefault ? 'D' : c.picked == PackPick::kKnown ? 'K' : 'R';
  EXPECT_THAT(picked, testing::MatchesRegex("D+KR*")) << again.err;
}

TEST_F(PackTest, DamagedLinesAreSkippedAndToldAndTheRestIsStored) {
  ASSERT_EQ(tuner("pack matmul.json -o cpu.pack --candidates 2 --min-repeat-ms 0.1 --target cpu").exit_code,
            0);
  ASSERT_EQ(run_pack("cpu.pack -o results.jsonl").exit_code, 0);
  const std::string good = contents(folder_ / "results.jsonl");
  json wrong = json::parse(good.substr(0, good.find('\n')));
  wrong["outcome"] = "fine";
  json negative = json::parse(good.substr(0, good.find('\n')));
  negative["run_ns"] = {-1};
  json foreign = json::parse(good.substr(0, good.find('\n')));
  foreign["target"] = "cuda -arch=native";
  json newer = json::parse(good.substr(0, good.find('\n')));
  newer["format"] = 99;
  newer["config"] = "one that no other line has";
  std::ofstream(folder_ / "mixed.jsonl") << "no JSON\n"
                                         << wrong << "\n"
                                         << good << negative << "\n"
                                         << foreign << "\n"
                                         << newer << "\n";
  const Ended imported = tuner("records import mixed.jsonl --db t.db");
  EXPECT_EQ(imported.exit_code, 1);
  EXPECT_THAT(imported.out, HasSubstr("2 new trials"));
  EXPECT_THAT(imported.err, HasSubstr("skipped line 1: not a result of run-pack"));
  EXPECT_THAT(imported.err, HasSubstr("skipped line 2: outcome: found \"fine\""));
  EXPECT_THAT(imported.err, HasSubstr("run_ns: found -1, expected numbers > 0"));
  EXPECT_THAT(imported.err,
              HasSubstr(": format 99, this tuner reads 1 to 3; use the tuner that wrote the pack"));
  EXPECT_THAT(imported.err, HasSubstr("expected sm_NN, found \"native\""));
}

TEST_F(PackTest, WrongUseIsTold) {
  EXPECT_EQ(tuner("records import nothing.jsonl --db t.db").exit_code, 2);
  EXPECT_EQ(tuner("pack nothing.json -o a.pack").exit_code, 2);
  EXPECT_EQ(tuner("pack matmul.json").exit_code, 2);
  std::ofstream(folder_ / "empty.jsonl") << "";
  const Ended empty = tuner("records import empty.jsonl --db t.db");
  EXPECT_EQ(empty.exit_code, 2);
  EXPECT_THAT(empty.err, HasSubstr("is empty, expected records"));
}

// What would take hours, or all memory, is refused while it costs nothing.
TEST_F(PackTest, TasksTooLargeForAReferenceAnswerAreRefusedBeforeCompiling) {
  struct Case {
    const char *entries, *why;
  };
  for (const Case& c :
       {Case{R"({"op":"matmul","a":[100000,100000],"b":[100000,100000]})", "GiB, expected at most 16;"},
        // Small operands of a product that fits nowhere.
        Case{R"({"op":"matmul","a":[70000,1],"b":[1,70000]})", "GiB, expected at most 16;"},
        Case{R"({"op":"matmul","a":[25000,45000],"b":[45000,25000]})",
             "its reference answer takes 5.625e+13 floating-point operations on the CPU, expected at most "
             "5e+13"}}) {
    std::ofstream(folder_ / "large.json") << "[" << kMatmul << "," << c.entries << "]";
    const Ended ended = shell(str("ulimit -t 10; ", TUNER_BINARY,
                                  " pack large.json -o a.pack --candidates 1 --emulate"
                                  " --target 'cuda -arch=sm_80'"));
    EXPECT_EQ(ended.exit_code, 2) << c.entries << ended.err;
    EXPECT_THAT(ended.err, HasSubstr(c.why));
    EXPECT_THAT(ended.err, Not(HasSubstr("configs drawn"))) << "the small task was compiled first";
  }
  EXPECT_FALSE(fs::exists(folder_ / "a.pack"));
}

TEST_F(PackTest, AnOutputThatCannotBeWrittenIsToldBeforeCompiling) {
  const Ended missing = tuner("pack matmul.json --candidates 1 --emulate -o not/there/a.pack");
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.err,
              HasSubstr("not/there/a.pack: cannot be written: its folder not/there does not exist"));
  EXPECT_THAT(missing.err, Not(HasSubstr("configs drawn")));
  const Ended folder = tuner("pack matmul.json --candidates 1 --emulate -o .");
  EXPECT_EQ(folder.exit_code, 2);
  EXPECT_THAT(folder.err, HasSubstr(".: is a folder"));
}

TEST_F(PackTest, PlansThatRunPackRefusesAreNotMade) {
  for (const char* option : {"--run-timeout 1e7", "--run-timeout nan", "--run-timeout inf", "--run-timeout 0",
                             "--deadline 1e10", "--deadline nan", "--deadline 0", "--min-repeat-ms 1e7",
                             "--min-repeat-ms nan", "--min-repeat-ms -1"}) {
    const Ended ended = tuner(str("pack matmul.json --candidates 1 --emulate -o a.pack ", option));
    EXPECT_EQ(ended.exit_code, 2) << option << ended.err;
    EXPECT_FALSE(fs::exists(folder_ / "a.pack")) << option;
  }
  const Ended most = tuner(
      "pack matmul.json --candidates 1 --emulate -o a.pack --run-timeout 600 --deadline 1e9 "
      "--min-repeat-ms 60000");
  ASSERT_EQ(most.exit_code, 0) << most.err;
  EXPECT_TRUE(PackFile::open((folder_ / "a.pack").string()).is_ok());
}

// What a candidate may take is the job file's, task by task, unless the command says otherwise.
TEST_F(PackTest, LimitsAreThoseOfTheJobFile) {
  std::ofstream(folder_ / "two.json")
      << R"([{"op":"matmul","a":[8,8],"b":[8,8],"measure":{"run_timeout_s":10,"memory_limit_gib":1}},)"
      << R"({"op":"matmul","a":[8,8],"b":[8,16],"measure":{"repeats":3}}])";
  const auto limits = [&](const std::string& more) {
    const Ended ended = tuner("pack two.json --candidates 1 --target cpu -o two.pack " + more);
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    std::vector<std::pair<double, int64_t>> found;
    if (const Result<PackFile> file = PackFile::open((folder_ / "two.pack").string()); file.is_ok())
      for (const PackTask& task : file->pack().tasks)
        found.emplace_back(file->pack().limits_of(task).run_timeout_s,
                           file->pack().limits_of(task).memory_limit_bytes >> 20);
    return found;
  };
  using Limits = std::vector<std::pair<double, int64_t>>;
  EXPECT_EQ(limits(""), (Limits{{10, 1024}, {2, 4096}}));
  EXPECT_EQ(limits("--run-timeout 5"), (Limits{{5, 1024}, {5, 4096}}));
}

// A million elements in double are 8 MB; a pack travels.
TEST_F(PackTest, LargeAnswersArePackedAsChecksums) {
  std::ofstream(folder_ / "large.json")
      << R"([{"op":"elementwise","rows":1,"columns":1000000,"target":"cuda -arch=sm_80"},)"
      << R"({"op":"softmax","rows":4096,"columns":16,"target":"cuda -arch=sm_80"}])";
  const Ended packed =
      tuner("pack large.json -o large.pack --candidates 1 --emulate --min-repeat-ms 0.1 --run-timeout 20");
  ASSERT_EQ(packed.exit_code, 0) << packed.err;
  const Result<PackFile> file = PackFile::open((folder_ / "large.pack").string());
  ASSERT_TRUE(file.is_ok()) << file.message();
  const Result<std::string> large = file->reference(0, 0), small = file->reference(1, 0);
  ASSERT_TRUE(large.is_ok() && small.is_ok());
  EXPECT_LT(large->size(), 150'000u);
  EXPECT_GT(small->size(), 4096u * 16 * 8) << "65,536 elements are kept whole";
  const Ended ran = run_pack("large.pack -o large.jsonl --deadline 60");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("task 1 of 2, round 1 of 3: 1 of 1 measured, 1 right"));
}

// Scales as large as other numbers would take nearly every output to a limit, and what lies there hides what
// is wrong.
TEST_F(PackTest, RequantisedAnswersLieWithinWhatOutHolds) {
  std::ofstream(folder_ / "bytes.json")
      << R"({"op":"matmul","a":[48,40],"b":[56,40],"transpose_b":true,"dtype":"int8","out_dtype":"uint8",)"
      << R"("target":"cuda -arch=sm_80"})";
  const Ended packed = tuner("pack bytes.json -o a.pack --candidates 2 --emulate --min-repeat-ms 0.1");
  ASSERT_EQ(packed.exit_code, 0) << packed.err;
  const Result<PackFile> file = PackFile::open((folder_ / "a.pack").string());
  ASSERT_TRUE(file.is_ok()) << file.message();
  const Result<std::string> bytes = file->reference(0, 0);
  ASSERT_TRUE(bytes.is_ok()) << bytes.message();
  const Result<ReferenceView> answer = parse_reference(*bytes);
  ASSERT_TRUE(answer.is_ok()) << answer.message();
  EXPECT_GT(std::ranges::count_if(answer->full, [](double x) { return x > 0 && x < 255; }), 0.95 * 48 * 56);
  const auto [least, most] = std::ranges::minmax(answer->full);
  EXPECT_GT(most - least, 20) << "and are not all the same";
  // The runner draws the same scales.
  const Ended ran = run_pack("a.pack -o results.jsonl --deadline 60");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("2 of 2 measured, 2 right"));
}

// Its out is given and an answer.
TEST_F(PackTest, AProductThatIsAddedToOutIsChecked) {
  std::ofstream(folder_ / "sum.json")
      << R"({"op":"matmul","a":[48,40],"b":[40,56],"accumulate":true,"target":"cpu"})";
  const Ended packed = tuner("pack sum.json -o a.pack --candidates 2 --min-repeat-ms 0.1");
  ASSERT_EQ(packed.exit_code, 0) << packed.err;
  const Ended ran = run_pack("a.pack -o results.jsonl --deadline 60");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("2 of 2 measured, 2 right"));
}

TEST_F(PackTest, PacksForAGpuBringTheKernelsThatCompareThere) {
  if (const Ended there = tuner("pack matmul.json -o a.pack --candidates 1");
      there.err.find("no NVRTC") != std::string::npos)
    GTEST_SKIP() << there.err;
  const Result<PackFile> file = PackFile::open((folder_ / "a.pack").string());
  ASSERT_TRUE(file.is_ok()) << file.message();
  const Result<std::string> checker = file->checker(0);
  ASSERT_TRUE(checker.is_ok()) << checker.message();
  for (const std::string& kernel :
       {sums_kernel(DType::kFloat32), samples_kernel(DType::kFloat32), std::string(kEqualKernel),
        std::string(kHashKernel), std::string(kFfmaKernel), std::string(kMmaBrainKernel),
        std::string(kMmaTf32Kernel), std::string(kMmaByteKernel)})
    EXPECT_THAT(*checker, HasSubstr(kernel));
  // Those of the emulator run on the CPU.
  ASSERT_EQ(tuner("pack matmul.json -o e.pack --candidates 1 --emulate").exit_code, 0);
  EXPECT_EQ(*PackFile::open((folder_ / "e.pack").string())->checker(0), "");
}

// Without a GPU here a job for one would wait for ever: said at once, with what can be done.
TEST_F(PackTest, SubmittingAGpuTaskWithoutAGpuSaysWhatToDo) {
  const Ended submitted =
      shell(str("TUNER_LIBCUDA=/not/there.so ", TUNER_BINARY, " submit matmul.json --db t.db"));
  EXPECT_EQ(submitted.exit_code, 2);
  EXPECT_THAT(submitted.err, HasSubstr("no worker on this machine measures \"cuda -arch=sm_80\": no GPU: "));
  EXPECT_THAT(submitted.err, HasSubstr("tuner pack"));
  const Ended native = shell(
      str("TUNER_LIBCUDA=/not/there.so ", TUNER_BINARY, " query matmul.json --target 'cuda -arch=native'"));
  EXPECT_EQ(native.exit_code, 2);
  EXPECT_THAT(native.err, HasSubstr("target \"cuda -arch=native\": no GPU: "));
}

// In a file as on the command line: the first GPU, or one line that says why there is none.
TEST_F(PackTest, AFileMayAskForTheGpuOfThisHost) {
  std::ofstream(folder_ / "native.json")
      << R"({"op":"matmul","a":[48,40],"b":[40,56],"target":"cuda -arch=native"})";
  const Ended none = shell(str("TUNER_LIBCUDA=/not/there.so ", TUNER_BINARY,
                               " pack native.json -o a.pack --candidates 1 --emulate"));
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("native.json: target: target \"cuda -arch=native\": no GPU: "));
  EXPECT_THAT(none.err, HasSubstr("Or name an architecture: \"cuda -arch=sm_80\""));
  EXPECT_EQ(std::count(none.err.begin(), none.err.end(), '\n'), 1) << none.err;
  const Ended there = shell(str("TUNER_LIBCUDA=", TUNER_FAKE_CUDA, " ", TUNER_BINARY,
                                " pack native.json -o a.pack --candidates 1 --emulate"));
  EXPECT_EQ(there.exit_code, 0) << there.err;
  EXPECT_THAT(there.err, HasSubstr("on cuda -arch=sm_90a -emulated: "));
}

}  // namespace
}  // namespace tuner
