// T1 files (tests/tuner/data/t1, written after the schema and the documentation of KTT, BAT and Kernel Tuner)
// as job files. What each must become was written down by hand.
#include "tuner/jobs/t1/t1_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "compiler_core/base/input_file.h"
#include "templates/source_kernel/source_kernel_json.h"
#include "tests/damaged_text.h"
#include "tuner/jobs/t1/t1_sizes.h"

namespace tuner::t1 {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

const std::string kFolder = std::string(TUNER_SOURCE_DIR) + "/tests/tuner/data/t1/";

Result<KernelDraft> draft(const std::string& text) {
  ASSIGN_OR_RETURN(const T1Document document, read_t1(text));
  T1Wish wish{.source = document.kernel.file, .text = {}};
  const std::string source = kFolder + document.kernel.file;
  if (document.kernel.file == "saxpy.cu" || document.kernel.file == "host.c")
    wish.text = read_whole(source).value();
  return draft_t1_job(document, wish);
}
KernelDraft draft_of(const std::string& file) {
  const Result<KernelDraft> made = draft(read_whole(kFolder + file).value());
  EXPECT_TRUE(made.is_ok()) << file << ": " << made.message();
  return made.is_ok() ? *made : KernelDraft{.job = "{}", .to_fill = {}, .guesses = {}};
}
// The parts of the job that are named.
json parts(const json& job, const std::vector<std::string>& keys) {
  json some = json::object();
  for (const std::string& key : keys) some[key] = job.value(key, json());
  return some;
}

TEST(T1Job, HasAllThatTheFileSays) {
  const KernelDraft made = draft_of("saxpy.json");
  EXPECT_EQ(json::parse(made.job), json::parse(R"({
    "op": "kernel", "language": "cuda", "source": "saxpy.cu", "function": "saxpy",
    "arguments": [{"name": "x", "type": "float32", "shape": [65536], "contents": "iota"},
                  {"name": "noise", "type": "float32", "shape": [65536], "contents": "FILL_IN"},
                  {"name": "y", "type": "float32", "shape": [65536], "role": "out"},
                  {"name": "a", "type": "float32", "value": 2.5}],
    "grid": ["65536 // BLOCK"], "block": ["BLOCK"],
    "knobs": {"BLOCK": [64, 128, 256, 512]}, "default": {"BLOCK": 64},
    "reference": "default"})"));
  EXPECT_THAT(made.to_fill,
              ElementsAre(StartsWith("arguments[1].contents: write what noise.bin has as a file NAME.npy")));
  EXPECT_THAT(made.guesses, ElementsAre(StartsWith("reference: the file has right answers for y; ")));
  EXPECT_THAT(made.job, HasSubstr("\n    {\"name\": \"a\", \"type\": \"float32\", \"value\": 2.5}\n"));
}

TEST(T1Job, RangesConditionsAndThreadsAreInOurWords) {
  const KernelDraft made = draft_of("ranges.json");
  const json job = json::parse(made.job);
  EXPECT_EQ(
      parts(job, {"knobs", "constraints", "default", "grid", "block", "shared_bytes", "flags", "trials"}),
      json::parse(R"({
    "knobs": {"bx": [1, 2, 4, 8, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256],
              "by": {"from": 1, "to": 32, "powers_of": 2}, "unroll": [1, 2, 5, 10], "depth": {"from": 1, "to": 8},
              "padded": [1, 0], "width": [2048]},
    "constraints": ["32 <= bx*by <= 1024", "padded == 0 or bx % 32 == 0"],
    "default": {"bx": 32, "by": 1, "unroll": 1, "depth": 1, "padded": 0, "width": 2048},
    "grid": ["(width + bx - 1) // bx", "(1000 + by - 1) // by"], "block": ["bx", "by"],
    "shared_bytes": "(bx + 2) * (by + 2) * 4", "flags": ["-std=c++17", "--use_fast_math"], "trials": 75})"));
  EXPECT_EQ(job["arguments"], json::parse(R"([
    {"name": "in", "type": "float64", "shape": [2048000], "contents": {"from": 0.0, "to": 8.0}},
    {"name": "out", "type": "float64", "shape": [2048000], "role": "out"}])"));
  EXPECT_THAT(made.guesses, Contains(StartsWith("arguments[1].role: the file says that it is read, too")));
  EXPECT_THAT(made.guesses, Contains(StartsWith("default.by: the file's own, 3, is not among its values")));
  EXPECT_THAT(made.guesses, Contains(StartsWith("flags: the file's option -o /tmp/x is left out")));
  EXPECT_THAT(made.to_fill, ElementsAre(StartsWith("source: there is no file absent.cu; copy it there")));
}

TEST(T1Job, AProblemSizeOfKernelTunerGivesTheGrid) {
  const KernelDraft made = draft_of("problem_size.json");
  const json job = json::parse(made.job);
  EXPECT_EQ(job["grid"], json::parse(R"x(["(1920 + (block_x * tile) - 1) // (block_x * tile)",
                                          "(1080 + block_y - 1) // block_y"])x"));
  EXPECT_EQ(job["block"], json::parse(R"(["block_x", "block_y"])"));
  EXPECT_EQ(job["arguments"], json::parse(R"([
    {"name": "out", "type": "float32", "shape": [2073600], "role": "out"},
    {"name": "in", "type": "float32", "shape": [2095488], "contents": {"from": 0.0, "to": 1.0}},
    {"name": "weights", "type": "float32", "shape": ["FILL_IN"], "contents": "FILL_IN"}])"));
  EXPECT_THAT(made.guesses, Contains(StartsWith("grid: it is ProblemSize over GridDiv")));
  EXPECT_THAT(made.to_fill, Contains(StartsWith("arguments[2].shape: how many elements it has: its Size, ")));
  EXPECT_THAT(made.to_fill,
              Contains(StartsWith("arguments[2]: it is memory of the device that the source names")));
}

TEST(T1Job, WordsAndNumbersAndADefaultThatNoConditionForbids) {
  const KernelDraft made = draft_of("words.json");
  const json job = json::parse(made.job);
  EXPECT_EQ(parts(job, {"knobs", "constraints", "default", "arguments"}), json::parse(R"({
    "knobs": {"ORDER": ["rows", "columns"], "SCALE": [0.5, 1.0, 2.25], "THREADS": [32, 64, 128], "SPLIT": [1, 2, 4]},
    "constraints": ["ORDER != 'rows' or SPLIT < 4"],
    "default": {"ORDER": "rows", "SCALE": 0.5, "THREADS": 64, "SPLIT": 1},
    "arguments": [{"name": "argument1", "type": "int32", "shape": [4096], "role": "FILL_IN",
                   "contents": {"from": 3.0, "to": 3.0}}]})"));
  EXPECT_THAT(made.guesses, Contains(StartsWith("default: the file's own breaks a condition")));
  EXPECT_THAT(made.to_fill,
              Contains(StartsWith("arguments[0].role: \"in\" or \"out\"; the file does not say")));
}

TEST(T1Job, TypesOfTheSchemaAreThoseOfTheSameBits) {
  const KernelDraft made = draft_of("types.json");
  const json job = json::parse(made.job);
  EXPECT_EQ(job["arguments"], json::parse(R"([
    {"name": "four", "type": "float32", "shape": [10, 4]},
    {"name": "sixteen", "type": "float32", "shape": [10, 16]},
    {"name": "half", "type": "float16", "shape": [10]},
    {"name": "body", "type": "uint8", "shape": [10, 12]},
    {"name": "digest", "type": "int32", "shape": [4], "role": "out"},
    {"name": "seed", "type": "int32", "value": -1},
    {"name": "big", "type": "int64", "value": "FILL_IN"},
    {"name": "double_", "type": "float64", "value": -0.001},
    {"name": "B_2", "type": "int32", "value": "FILL_IN"}])"));
  EXPECT_EQ(job["shared_bytes"], "128 + 48");
  EXPECT_EQ(job["grid"], json::parse(R"(["4"])"));
  EXPECT_THAT(made.guesses,
              Contains(StartsWith("arguments[4].type: uint32 is taken as int32: the same bits")));
}

TEST(T1Job, WithoutArgumentsSaysWhoDraftsThem) {
  const KernelDraft made = draft_of("no_arguments.json");
  const json job = json::parse(made.job);
  EXPECT_EQ(job["arguments"], json::parse(R"(["FILL_IN"])"));
  EXPECT_EQ(job["knobs"]["block"], json::parse(R"({"from": 32, "to": 992, "step": 32})"));
  EXPECT_EQ(job["knobs"]["tile"], json::parse("[1, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20]"));
  EXPECT_THAT(made.to_fill, Contains(HasSubstr("tuner kernel new SOURCE drafts them")));
}

TEST(T1Job, OfAHostFunctionIsAJobAsItStands) {
  const KernelDraft made = draft_of("host.json");
  EXPECT_THAT(made.to_fill, IsEmpty());
  const json job = json::parse(made.job);
  EXPECT_EQ(job["time_limit_s"], 30);
  EXPECT_EQ(job["flags"], json::parse(R"(["-O3", "-march=native", "-O2"])"));
  EXPECT_THAT(made.guesses, Contains(StartsWith("flags: the file's option -fplugin=x.so is left out")));
  json_input::Reader in(job, "");
  for (const char* key : {"op", "time_limit_s"}) in.get(key);
  const std::unique_ptr<JobFolder> folder = job_folder(kFolder);
  const auto kernel = read_source_kernel(in, *folder);
  ASSERT_TRUE(in.finish().is_ok()) << in.finish().message();
  EXPECT_EQ(kernel->knobs[0].numbers, (std::vector<int64_t>{1, 2, 4, 8, 16}));
}

TEST(T1Job, OfACudaKernelIsAJobOnceItsMarksAreFilledIn) {
  json job = json::parse(draft_of("saxpy.json").job);
  job["arguments"][1]["contents"] = "random";
  json_input::Reader in(job, "");
  in.get("op");
  const std::unique_ptr<JobFolder> folder = job_folder(kFolder);
  const auto kernel = read_source_kernel(in, *folder);
  ASSERT_TRUE(in.finish().is_ok()) << in.finish().message();
  ASSERT_TRUE(kernel->launch.has_value());
  EXPECT_EQ(kernel->launch->grid[0].text(), "65536 // BLOCK");
  EXPECT_EQ(kernel->launch->block[0].text(), "BLOCK");
}

// What the source says otherwise is told.
TEST(T1Job, LooksAtTheSource) {
  const T1Document document = read_t1(read_whole(kFolder + "host.json").value()).value();
  const auto guesses = [&](const std::string& text) {
    return draft_t1_job(document, {.source = "host.c", .text = text}).value().guesses;
  };
  EXPECT_THAT(guesses("void other(float* y) { STEP; }"),
              Contains(StartsWith("function: no function twice is seen")));
  EXPECT_THAT(
      guesses("\nvoid twice(float* y) { STEP; }"),
      Contains(StartsWith("arguments: the file lists 3, and the function in line 2 of host.c has 1")));
  EXPECT_THAT(guesses("void twice(float* x, float* y, int n) { /* STEP */ }"),
              Contains(StartsWith("knobs: host.c does not mention STEP")));
}

TEST(T1Job, WhatCannotBeReadIsOneLineWithItsPlace) {
  const std::pair<const char*, const char*> cases[] = {
      {"bad_opencl.json",
       "KernelSpecification.Language: tuner compiles CUDA, C and C++; found \"OpenCL\". Port"},
      {"bad_division.json",
       "ConfigurationSpace.Conditions[1].Expression: column 3: expected // (a quotient rounded down), found "
       "/"},
      {"bad_zero.json", "ConfigurationSpace.Conditions[0].Expression: column 3: the divisor may be 0"},
      {"bad_name.json", "KernelSpecification.GlobalSize.X: there is no parameter M; found \"64 // M\""},
      {"bad_loops.json", "ConfigurationSpace.TuningParameters[0].Values: column 26: expected one for"},
      {"bad_import.json", "ConfigurationSpace.TuningParameters[0].Values: column 1: expected a list"},
      {"bad_type.json", "KernelSpecification.Arguments[1].Type: buffers have no type \"int16\" here"},
      {"bad_local_size.json", "KernelSpecification.LocalSize.X: "},
      {"bad_cut.json", "line 5, column "},
      {"bad_results.json", "holds results of another tuner, expected the description of a kernel (T1)"},
  };
  for (const auto& [file, expected] : cases) {
    const Result<KernelDraft> made = draft(read_whole(kFolder + file).value());
    EXPECT_EQ(made.status().code(), StatusCode::kInvalidArgument) << file;
    EXPECT_THAT(made.message(), HasSubstr(expected)) << file;
    EXPECT_TRUE(testing::one_line(made.message())) << file;
  }
}

// Single mistakes in a good file, each by its path.
TEST(T1Job, EachMistakeHasItsPlace) {
  const struct {
    const char *at, *value, *message;
  } cases[] = {
      {"/ConfigurationSpace/TuningParameters", "[]", "TuningParameters: expected 1 to 64 of them, found 0"},
      {"/ConfigurationSpace/TuningParameters/0/Name", R"("a b")", "TuningParameters[0].Name: "},
      {"/ConfigurationSpace/TuningParameters/0/Name", R"("max")", "\"max\" is a function of expressions"},
      {"/ConfigurationSpace/TuningParameters/0/Values", "7", "Values: expected a list in quotes; found 7"},
      {"/ConfigurationSpace/TuningParameters/0/Values", "[1, null]", "Values: expected numbers and words"},
      {"/ConfigurationSpace/TuningParameters/0/Default", "[1]", "Default: expected a number or a word"},
      {"/ConfigurationSpace/Conditions", R"([{"Expression": "BLOCK <"}])",
       "Conditions[0].Expression: column 8: "},
      {"/ConfigurationSpace/Conditions", R"([{"Expression": "BLOCK == 'x'"}])",
       "Conditions[0].Expression: column 10: "},
      {"/KernelSpecification/KernelFile", "null", "KernelSpecification.KernelFile: "},
      {"/KernelSpecification/SharedMemory", R"("4 * NONE")", "SharedMemory: there is no parameter NONE"},
      {"/KernelSpecification/CompilerOptions", "[7]", "CompilerOptions: expected words, found 7"},
      {"/KernelSpecification/KernelTypeNames", R"(["float"])",
       "KernelTypeNames: templates are not instantiated"},
      {"/KernelSpecification/Arguments/0/MemoryType", R"("Texture")",
       "Arguments[0].MemoryType: expected one of Scalar"},
      {"/KernelSpecification/Arguments/0/AccessType", R"("Never")",
       "Arguments[0].AccessType: expected one of ReadOnly"},
      {"/KernelSpecification/Arguments/0/FillType", R"("Wish")",
       "Arguments[0].FillType: expected one of Constant"},
      {"/KernelSpecification/Arguments/0/Size", "0", "Arguments[0].Size: expected at least 1, found 0"},
      {"/KernelSpecification/Arguments/0/Size", R"x("max(OTHER)")x", "Arguments[0].Size: "},
      {"/KernelSpecification/Arguments/3/Type", R"("float4")",
       "Arguments[3].Type: scalars have no type \"float4\""},
      {"/KernelSpecification/Arguments/3/Type", R"("int32")",
       "Arguments[3].FillValue: expected an integer, found 2.5"},
      {"/KernelSpecification/ProblemSize", "[0]", "ProblemSize: expected integers of at least 1, found 0"},
      {"/Budget", R"([{"Type": "TuningDuration"}])", "Budget[0].BudgetValue: "},
      {"/Budget", R"([{"Type": "TuningDuration", "BudgetValue": -1}])",
       "Budget[0].BudgetValue: expected a number >= 0, found -1"},
  };
  for (const auto& [at, value, message] : cases) {
    json file = json::parse(read_whole(kFolder + "saxpy.json").value());
    file[json::json_pointer(at)] = json::parse(value);
    const Result<KernelDraft> made = draft(file.dump());
    EXPECT_EQ(made.status().code(), StatusCode::kInvalidArgument) << at << " " << value;
    EXPECT_THAT(made.message(), HasSubstr(message)) << at << " " << value;
  }
  EXPECT_THAT(draft(std::string(kMostT1Bytes + 1, ' ')).message(),
              StartsWith("expected at most 1048576 bytes"));
  EXPECT_THAT(draft(std::string(100, '[')).message(), HasSubstr("at most 16 levels of brackets"));
  EXPECT_THAT(draft(R"({"op": "kernel"})").message(), StartsWith("is a job file already"));
}

TEST(T1Sizes, UseTheProblemAndParametersWithOneValue) {
  const std::vector<Parameter> parameters = {{"w", {int64_t{7}}, {}},
                                             {"b", {int64_t{2}, int64_t{9}, int64_t{4}}, {}}};
  EXPECT_EQ(size_of(parameters, {30, 20}, "ProblemSize[0]*ProblemSize[1]").value(), 600);
  EXPECT_EQ(size_of(parameters, {30}, "(ProblemSize[0]+max(b)-1) * w").value(), 266);
  EXPECT_EQ(size_of(parameters, {}, "min(b) + max(3, 5)").value(), 7);
  EXPECT_EQ(size_of(parameters, {}, "b * 2").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(size_of(parameters, {}, "ProblemSize[0]").status().code(), StatusCode::kInvalidArgument);
}

constexpr std::string_view kPieces[] = {"\"Values\":",    "\"[i for i in range(",
                                        "\"Size\":",      "\"ProblemSize\":[",
                                        "\"GridDivX\":[", "\"Local\"",
                                        "max(",           "\"Conditions\":[",
                                        "1e300",          "{}"};

TEST(T1Fuzz, AnyTextIsAJobOrOneLine) {
  std::vector<std::string> seeds;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder))
    if (entry.path().extension() == ".json") seeds.push_back(read_whole(entry.path()).value());
  ASSERT_GE(seeds.size(), 10u);
  const int good = testing::check_damaged(seeds, kPieces, 62, [](const std::string& text) {
    const Result<KernelDraft> made = draft(text);
    if (!made) {
      EXPECT_EQ(made.status().code(), StatusCode::kInvalidArgument) << made.message();
      EXPECT_TRUE(testing::one_line(made.message())) << made.message();
      EXPECT_LT(made.message().size(), 2'000u);
      return false;
    }
    EXPECT_TRUE(json::accept(made->job)) << made->job;
    for (const std::string& line : made->to_fill) EXPECT_TRUE(testing::one_line(line)) << line;
    for (const std::string& line : made->guesses) EXPECT_TRUE(testing::one_line(line)) << line;
    return true;
  });
  EXPECT_GT(good, testing::kDamagedRounds / 40);
}

}  // namespace
}  // namespace tuner::t1
