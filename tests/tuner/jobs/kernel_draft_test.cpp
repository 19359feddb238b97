// A first job file for a source: what its text says stands there, and what it does not say is marked.
#include "tuner/jobs/kernel_draft.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "compiler_core/base/input_file.h"
#include "templates/source_kernel/source_kernel_json.h"

namespace tuner {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string example(const std::string& name) {
  return read_whole(std::string(TUNER_SOURCE_DIR) + "/examples/own_kernels/" + name).value();
}

KernelDraft draft(const std::string& source, const std::string& text, const std::string& function = "") {
  const Result<KernelDraft> made = draft_kernel_job({.source = source, .function = function}, text);
  EXPECT_TRUE(made.is_ok()) << made.message();
  return made.is_ok() ? *made : KernelDraft();
}

std::string refusal(const std::string& source, const std::string& text, const std::string& function = "") {
  const Result<KernelDraft> made = draft_kernel_job({.source = source, .function = function}, text);
  EXPECT_EQ(made.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(made.message(), Not(HasSubstr("\n")));
  return made.message();
}

// As `tuner submit` would read it, beside the sources of the examples.
Result<std::shared_ptr<const SourceKernel>> read_job(const json& job) {
  const std::unique_ptr<JobFolder> folder =
      job_folder(std::string(TUNER_SOURCE_DIR) + "/examples/own_kernels");
  json_input::Reader in(job, "");
  in.get("op");
  std::shared_ptr<const SourceKernel> kernel = read_source_kernel(in, *folder);
  RETURN_IF_ERROR(in.finish());
  return kernel;
}

// Each example's job file was written by hand: the draft agrees with it in all that a prototype says.
TEST(KernelDraft, OfTheExamplesAgreesWithTheirJobFiles) {
  const std::pair<const char*, const char*> examples[] = {
      {"stencil.json", ""}, {"sgemm.json", "sgemm"}, {"histogram.json", "histogram"}, {"spmv.json", "spmv"}};
  for (const auto& [file, function] : examples) {
    SCOPED_TRACE(file);
    const json by_hand = json::parse(example(file));
    const std::string source = by_hand.at("source");
    const KernelDraft made = draft(source, example(source), function);
    json job = json::parse(made.job);
    EXPECT_EQ(job.at("function"), by_hand.at("function"));
    EXPECT_EQ(job.value("language", "c"), by_hand.value("language", "c"));
    ASSERT_EQ(job.at("arguments").size(), by_hand.at("arguments").size());
    for (size_t i = 0; i < job.at("arguments").size(); ++i) {
      json& drafted = job["arguments"][i];
      const json& known = by_hand.at("arguments")[i];
      EXPECT_EQ(drafted.contains("shape"), known.contains("shape")) << i;
      // Names of parameters differ in places; what the values are is for people to say.
      if (known.contains("shape")) {
        EXPECT_EQ(drafted.value("role", "in") == "in", known.value("role", "in") == "in") << i;
      }
    }
    for (const auto& [knob, values] : by_hand.at("knobs").items())
      if (example(source).find("#define " + knob + " ") != std::string::npos) {
        EXPECT_TRUE(job.at("knobs").contains(knob)) << knob;
      }
    // As it is, nothing can be done with it: each mark is refused by its key.
    EXPECT_THAT(read_job(job).message(), HasSubstr("FILL_IN"));
    // Filled in with what the example says, it is a job.
    job["sizes"] = by_hand.at("sizes");
    job["arguments"] = by_hand.at("arguments");
    EXPECT_TRUE(read_job(job).is_ok()) << read_job(job).message();
  }
}

TEST(KernelDraft, SaysWhatToFillInAndWhatIsAGuess) {
  const KernelDraft made =
      draft("a/scale.c",
            "// %RANGE% TILE t 8:64:8\n#ifndef TILE\n#define TILE 16\n#define UNROLL 2\n#endif\n"
            "int scale(const double* x, double* y, uint16_t* half, size_t n, float alpha) {}");
  EXPECT_EQ(json::parse(made.job), json::parse(R"({
    "op": "kernel", "source": "a/scale.c", "function": "scale", "sizes": {"n": "FILL_IN"},
    "arguments": [{"name": "x", "type": "float64", "shape": ["FILL_IN"]},
                  {"name": "y", "type": "float64", "shape": ["FILL_IN"], "role": "out"},
                  {"name": "half", "type": "bfloat16", "shape": ["FILL_IN"], "role": "out"},
                  {"name": "n", "type": "int64", "value": "n"},
                  {"name": "alpha", "type": "float32", "value": "FILL_IN"}],
    "knobs": {"TILE": {"from": 8, "to": 64, "step": 8}, "UNROLL": [2]}, "flags": ["-O3", "-march=native"],
    "reference": "default", "default": {"TILE": 16}})"));
  EXPECT_THAT(made.to_fill,
              ElementsAre(StartsWith("arguments[0].shape: how many elements x has"),
                          StartsWith("arguments[1].shape: "), StartsWith("arguments[2].shape: "),
                          StartsWith("sizes.n: "), StartsWith("arguments[4].value: ")));
  EXPECT_THAT(made.guesses, ElementsAre(StartsWith("arguments[1].role: "), StartsWith("arguments[2].role: "),
                                        StartsWith("arguments[2].type: buffers of uint16_t"),
                                        StartsWith("knobs.UNROLL: add the values"), StartsWith("reference: "),
                                        StartsWith("function: what it returns, int, ")));
  // One argument a line, as people write it.
  EXPECT_THAT(made.job,
              HasSubstr("\n    {\"name\": \"x\", \"type\": \"float64\", \"shape\": [\"FILL_IN\"]},\n"));
  EXPECT_THAT(made.job, HasSubstr("\n    \"UNROLL\": [2]\n  },\n"));
}

TEST(KernelDraft, ADefaultThatNoStepReachesIsToldAndNotWritten) {
  const KernelDraft made =
      draft("f.c", "// %RANGE% T t 8:64:8\n#ifndef T\n#define T 12\n#endif\nvoid f(float* y) {}");
  EXPECT_FALSE(json::parse(made.job).contains("default"));
  EXPECT_THAT(made.guesses,
              ::testing::Contains(HasSubstr("default.T: the source's own, 12, is not in the range")));
}

// What a launch needs is no part of a prototype. Numbers reach a GPU by their bytes: of the same size.
TEST(KernelDraft, OfACudaSourceIsItsGlobalFunction) {
  const std::string text =
      "// %RANGE% TILE t 8:32:8\n__device__ void add(float* a) {}\n"
      "extern \"C\" __global__ void __launch_bounds__(256) scale(const float* x, float* y, unsigned n, "
      "size_t m) {}";
  const KernelDraft made = draft("scale.cu", text);
  EXPECT_EQ(json::parse(made.job), json::parse(R"({
    "op": "kernel", "language": "cuda", "source": "scale.cu", "function": "scale",
    "sizes": {"n": "FILL_IN", "m": "FILL_IN"},
    "arguments": [{"name": "x", "type": "float32", "shape": ["FILL_IN"]},
                  {"name": "y", "type": "float32", "shape": ["FILL_IN"], "role": "out"},
                  {"name": "n", "type": "int32", "value": "n"}, {"name": "m", "type": "int64", "value": "m"}],
    "grid": ["FILL_IN"], "block": ["FILL_IN"],
    "knobs": {"TILE": {"from": 8, "to": 32, "step": 8}}, "reference": "default"})"));
  EXPECT_THAT(made.to_fill, ::testing::Contains(StartsWith("grid: how many blocks there are")));
  EXPECT_THAT(refusal("scale.cu", text, "add"), HasSubstr("scale.cu:2: add is not __global__"));
  EXPECT_THAT(refusal("scale.cpp", text, "scale"),
              HasSubstr("scale is __global__; give the file the ending .cu"));
}

TEST(KernelDraft, AKernelWithoutMacrosHasAMarkForItsKnobs) {
  const KernelDraft made = draft("f.cpp", "void f(float* y) {}");
  EXPECT_THAT(made.to_fill,
              ElementsAre(StartsWith("arguments[0].shape"), StartsWith("knobs: macros of the source")));
}

TEST(KernelDraft, AnArgumentWithoutANameGetsOne) {
  EXPECT_EQ(json::parse(draft("f.c", "void f(const float*, int) {}").job)["arguments"][1]["name"],
            "argument2");
}

TEST(KernelDraft, WhatCannotBeDraftedIsOneLine) {
  const char* two = "void f(float* x) {}\nvoid g(float* x) {}\nvoid h(int n) {}";
  EXPECT_EQ(refusal("a.c", two), "a.c: which function? Name one by --function: f, g");
  EXPECT_EQ(refusal("a.c", two, "k"), "a.c: it defines no function k; found f, g, h");
  EXPECT_EQ(refusal("a.c", ""), "a.c: it defines no function with a pointer among its arguments; found none");
  EXPECT_THAT(refusal("a.c", "void f(float* x) {}\nvoid f(float* x, int n) {}", "f"),
              HasSubstr("in lines 1 and 2"));
  EXPECT_THAT(refusal("a.cpp", "\ntemplate <class T> void f(T* x) {}", "f"),
              HasSubstr("a.cpp:2: f is a template"));
  EXPECT_THAT(refusal("a.rs", "fn f() {}"), HasSubstr("expected a C, C++ or CUDA source"));
  EXPECT_EQ(refusal("a.c", "\nvoid f(float** x, float* y) {}"),
            "a.c:2: argument 1 of f, float** x: pointers to pointers are no arguments of kernels; write a "
            "small function "
            "around it");
  EXPECT_THAT(refusal("a.cpp", "void f(std::vector<float>& v, float* y) {}"),
              HasSubstr("references are no arguments"));
  EXPECT_THAT(refusal("a.c", "void f(struct options* o, float* y) {}"),
              HasSubstr("argument 1 of f, options* o: buffers"));
  EXPECT_THAT(refusal("a.c", "void f(float* y, options o) {}"), HasSubstr("scalars have no such type"));
  EXPECT_THAT(refusal("a.c", "void f(float* y, ...) {}"),
              HasSubstr("argument 2 of f, ...: scalars have no such type"));
  EXPECT_THAT(refusal("a.c", "// %RANGE% A a 1:0:1\nvoid f(float* y) {}"),
              StartsWith("a.c: line 1: %RANGE% A: "));
}

}  // namespace
}  // namespace tuner
