// Job files: what the examples mean, and the one line each mistake gets.
#include "tuner/jobs/job_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "templates/cuda/cuda_templates.h"
#include "templates/schedule_template.h"

namespace tuner::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Result<std::vector<JobEntry>> parse(std::string_view text) { return parse_job_text(text, "job.json"); }

JobEntry one(std::string_view text) {
  const auto entries = parse(text);
  CHECK(entries.is_ok()) << entries.message();
  CHECK(entries->size() == 1) << entries->size();
  return entries->front();
}

// The message without its "job.json: ".
std::string refusal(std::string_view text) {
  const auto entries = parse(text);
  if (entries.is_ok()) return "(accepted)";
  EXPECT_EQ(entries.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(entries.message().find('\n'), std::string::npos) << entries.message();
  EXPECT_TRUE(entries.message().starts_with("job.json: ")) << entries.message();
  return entries.message().substr(std::string("job.json: ").size());
}

// A conv2d with `more` keys, and with `data` and `weight` unless more gives them.
std::string conv(const std::string& more) {
  std::string text = R"({"op": "conv2d")";
  if (more.find("\"data\":") == std::string::npos) text += R"(, "data": [1, 8, 7, 7])";
  if (more.find("\"weight\":") == std::string::npos) text += R"(, "weight": [16, 8, 3, 3])";
  return text + (more.empty() ? "" : ", ") + more + "}";
}
std::string matmul(const std::string& more) { return R"({"op": "matmul", )" + more + "}"; }

TEST(JobFile, TheExamplesParseAndTheirGpuTasksAreServed) {
  int files = 0;
  for (const auto& file : std::filesystem::directory_iterator(std::string(TUNER_SOURCE_DIR) + "/examples")) {
    if (file.path().extension() != ".json") continue;
    ++files;
    const auto entries = read_job_file(file.path());
    ASSERT_TRUE(entries.is_ok()) << entries.message();
    for (const JobEntry& entry : *entries) {
      const Result<Target> target = parse_target(entry.target);  // "cpu" has to be resolved, on a host
      if (!target || !target->is_cuda()) continue;
      const auto serving = templates_for(entry.workload, *target);
      EXPECT_TRUE(serving.is_ok()) << file.path() << ": " << serving.message();
    }
  }
  EXPECT_GE(files, 7);
}

// `tuner verify tests/bench/gpu_small_tasks.json --oracle` proves them all, but for users' kernels, which are
// texts: the interpreter takes none.
TEST(JobFile, TheSmallGpuTasksReachEveryGpuTemplateAndTheInterpreterTakesThem) {
  const auto entries = read_job_file(std::string(TUNER_SOURCE_DIR) + "/tests/bench/gpu_small_tasks.json");
  ASSERT_TRUE(entries.is_ok()) << entries.message();
  std::set<std::string_view> reached;
  for (const JobEntry& entry : *entries) {
    const Result<Target> target = parse_target(entry.target);
    ASSERT_TRUE(target.is_ok()) << target.message();
    const auto serving = templates_for(entry.workload, *target);
    ASSERT_TRUE(serving.is_ok()) << serving.message();
    for (const AnyTemplate* t : *serving) reached.insert(t->name());
    EXPECT_LE(entry.workload.flops(), 1'000'000) << entry.workload.key();
  }
#define TUNER_NAME(name) #name,
  for (const std::string_view name : {TUNER_CUDA_TEMPLATES(TUNER_NAME)})
    EXPECT_TRUE(name == "source_kernel_cuda" || reached.contains(name))
        << name << " serves no task of the file: add one that it serves";
#undef TUNER_NAME
}

TEST(JobFile, TheConvolutionExampleMeansWhatItSays) {
  const auto entries = read_job_file(std::string(TUNER_SOURCE_DIR) + "/examples/conv2d.json");
  ASSERT_TRUE(entries.is_ok()) << entries.message();
  const JobEntry& e = entries->front();
  EXPECT_EQ(e.workload.key(),
            "v1 conv2d n=1 ic=512 ih=7 iw=7 oc=512 kh=3 kw=3 stride=1,1 pad=1,1,1,1 dil=1,1 groups=1 bias=1 "
            "act=relu "
            "dtype=float32 layout=NCHW const=weight");
  EXPECT_EQ(e.target, "cpu");
  EXPECT_EQ(e.trials, 1000);
  EXPECT_EQ(e.search, "bayesian");
  EXPECT_EQ(e.seed, 0u);
}

TEST(JobFile, EveryKeyOfAConvolutionIsRead) {
  const JobEntry e =
      one(conv(R"("stride": [2, 1], "padding": [1, 2, 3, 4], "dilation": [1, 2], "groups": 1, "bias": true,
      "activation": null, "dtype": "float32", "layout": "NCHW", "constant": ["weight", "bias"],
      "target": "llvm -mcpu=haswell -threads=2", "trials": 7, "uses": 3, "name": "conv_2", "stop_below": 2.5, "time_limit_s": 90, "search": "grid", "seed": 18446744073709551615,
      "measure": {"min_repeat_ms": 0.5, "repeats": 3, "precision": 0, "build_timeout_s": 2, "run_timeout_s": 4.5, "memory_limit_gib": 0.5, "constants": "cold"})"));
  EXPECT_EQ(
      e.workload.key(),
      "v1 conv2d n=1 ic=8 ih=7 iw=7 oc=16 kh=3 kw=3 stride=2,1 pad=1,2,3,4 dil=1,2 groups=1 bias=1 act=none "
      "dtype=float32 layout=NCHW const=bias,weight");
  EXPECT_EQ(e.target, "llvm -mcpu=haswell -threads=2");
  EXPECT_EQ(e.trials, 7);
  EXPECT_EQ(e.uses, 3);
  EXPECT_EQ(e.name, "conv_2");
  EXPECT_EQ(e.stop, (StopOptions{.below = 0.025, .time_limit_s = 90}));
  EXPECT_EQ(e.search, "grid");
  EXPECT_EQ(e.seed, 18446744073709551615u);
  EXPECT_EQ(e.measure.min_repeat_ms, 0.5);
  EXPECT_EQ(e.measure.repeats, 3);
  EXPECT_EQ(e.measure.precision, 0);
  EXPECT_EQ(e.measure.memory_limit_bytes, int64_t{1} << 29);
  EXPECT_EQ(e.measure.build_timeout_s, 2);
  EXPECT_EQ(e.measure.run_timeout_s, 4.5);
  EXPECT_EQ(e.measure.constants, Constants::kCold);
  EXPECT_EQ(constants_of(e), Constants::kCold);
}

TEST(JobFile, ATimeLimitOfNoughtIsNone) { EXPECT_EQ(one(conv(R"("time_limit_s": 0)")).stop.time_limit_s, 0); }

TEST(JobFile, WithoutConstantsThereIsOnlyWarm) {
  const JobEntry e = one(conv(R"("measure": {"constants": "cold"})"));
  EXPECT_EQ(e.measure.constants, Constants::kCold);
  EXPECT_EQ(constants_of(e), Constants::kWarm);
}

TEST(JobFile, PaddingIsOneNumberOrTwoOrFour) {
  const auto padding = [](const std::string& text) {
    return one(conv("\"padding\": " + text)).workload.get_if<Conv2dWorkload>()->padding;
  };
  EXPECT_EQ(padding("2"), (std::array<int64_t, 4>{2, 2, 2, 2}));
  EXPECT_EQ(padding("[1, 2]"), (std::array<int64_t, 4>{1, 2, 1, 2}));
  EXPECT_EQ(padding("[1, 2, 3, 4]"), (std::array<int64_t, 4>{1, 2, 3, 4}));
  EXPECT_EQ(padding("0"), (std::array<int64_t, 4>{0, 0, 0, 0}));
}

TEST(JobFile, MatmulShapesAreAsStored) {
  EXPECT_EQ(one(matmul(R"("a": [7, 13], "b": [13, 29])")).workload.key(),
            "v1 matmul b=1 m=7 n=29 k=13 ta=0 tb=0 bias=0 act=none dtype=float32 const=none");
  EXPECT_EQ(
      one(matmul(R"("a": [13, 7], "b": [29, 13], "transpose_a": true, "transpose_b": true, "batch": 3)"))
          .workload.key(),
      "v1 matmul b=3 m=7 n=29 k=13 ta=1 tb=1 bias=0 act=none dtype=float32 const=none");
}

TEST(JobFile, MatmulIsOfFourTypes) {
  for (const char* dtype : {"float32", "bfloat16", "float16", "int8"})
    EXPECT_EQ(one(matmul(str(R"("a": [7, 13], "b": [13, 29], "dtype": ")", dtype, "\""))).workload.key(),
              str("v1 matmul b=1 m=7 n=29 k=13 ta=0 tb=0 bias=0 act=none dtype=", dtype, " const=none"));
}

TEST(JobFile, ProductsMayHaveNarrowResults) {
  const auto key = [](const char* types) {
    return one(matmul(str(R"("a": [7, 13], "b": [13, 29], )", types))).workload.key();
  };
  EXPECT_EQ(key(R"("dtype": "int8", "out_dtype": "int8")"),
            "v1 matmul b=1 m=7 n=29 k=13 ta=0 tb=0 bias=0 act=none dtype=int8 out_dtype=int8 const=none");
  EXPECT_EQ(key(R"("dtype": "int8", "out_dtype": "int32")"),
            "v1 matmul b=1 m=7 n=29 k=13 ta=0 tb=0 bias=0 act=none dtype=int8 const=none");
}

TEST(JobFile, EveryKeyOfTheOperatorsOnRowsIsRead) {
  const auto key = [](const std::string& more) {
    return one(R"({"rows": 7, "columns": 13, )" + more + "}").workload.key();
  };
  EXPECT_EQ(key(R"("op": "softmax")"), "v1 softmax rows=7 columns=13 dtype=float32");
  EXPECT_EQ(key(R"("op": "layer_norm")"), "v1 layer_norm rows=7 columns=13 eps=1e-05 dtype=float32");
  EXPECT_EQ(key(R"("op": "layer_norm", "epsilon": 0.001)"),
            "v1 layer_norm rows=7 columns=13 eps=0.001 dtype=float32");
  EXPECT_EQ(key(R"("op": "reduce", "reduction": "min", "dtype": "float32")"),
            "v1 reduce rows=7 columns=13 reduction=min dtype=float32");
  EXPECT_EQ(key(R"("op": "transpose")"), "v1 transpose rows=7 columns=13 dtype=float32");
  EXPECT_EQ(key(R"("op": "elementwise")"),
            "v1 elementwise rows=7 columns=13 scale=0 bias=0 residual=0 act=none dtype=float32");
  EXPECT_EQ(
      key(R"("op": "elementwise", "scale": true, "bias": true, "residual": true, "activation": "relu")"),
      "v1 elementwise rows=7 columns=13 scale=1 bias=1 residual=1 act=relu dtype=float32");
}

TEST(JobFile, EveryKeyOfAPoolingIsRead) {
  const auto key = [](const std::string& more) {
    return one(R"({"op": "pool2d", "data": [1, 16, 9, 8], )" + more + "}").workload.key();
  };
  EXPECT_EQ(key(R"("pooling": "max", "kernel": [3, 2], "stride": 2, "padding": [1, 0])"),
            "v1 pool2d n=1 c=16 ih=9 iw=8 kh=3 kw=2 stride=2,2 pad=1,0,1,0 pooling=max dtype=float32 "
            "layout=NCHW");
  EXPECT_EQ(key(R"("pooling": "average")"),
            "v1 pool2d n=1 c=16 ih=9 iw=8 kh=9 kw=8 stride=1,1 pad=0,0,0,0 pooling=average dtype=float32 "
            "layout=NCHW");
  EXPECT_EQ(key(R"("pooling": "average", "kernel": [2, 2], "padding": 1, "count_include_pad": true,
                   "layout": "NCHW16c", "dtype": "float32")"),
            "v1 pool2d n=1 c=16 ih=9 iw=8 kh=2 kw=2 stride=1,1 pad=1,1,1,1 pooling=average include_pad=1 "
            "dtype=float32 layout=NCHW16c");
}

TEST(JobFile, AListIsManyEntries) {
  const auto entries =
      parse("[" + conv("") + "," + matmul(R"("a": [1, 1], "b": [1, 1], "constant": ["b"])") + "]");
  ASSERT_TRUE(entries.is_ok()) << entries.message();
  EXPECT_EQ(entries->size(), 2u);
  EXPECT_TRUE((*entries)[1].workload.is_constant("b"));
}

TEST(JobFile, TheKeyHoldsNeitherTrialsNorSearchNorSeedNorMeasure) {
  EXPECT_EQ(
      one(conv("")).workload.key(),
      one(conv(R"("trials": 5, "search": "random", "seed": 9, "measure": {"repeats": 2}, "target": "cpu")"))
          .workload.key());
}

TEST(JobFile, AlgorithmsAreThoseAllowedInOneOrder) {
  EXPECT_EQ(one(conv("")).algorithms, "");
  EXPECT_EQ(one(conv(R"("algorithms": ["direct"])")).algorithms, "direct");
  EXPECT_EQ(one(conv(R"("algorithms": ["winograd", "direct"])")).algorithms, "direct,winograd");
  EXPECT_EQ(one(conv(R"("algorithms": ["tf32x3", "tf32", "winograd", "direct"])")).algorithms,
            "");  // all there are
  EXPECT_EQ(refusal(conv(R"("algorithms": ["direct", "fft"])")),
            "algorithms: no algorithm is called \"fft\"; there are direct,winograd,tf32,tf32x3; found "
            "[\"direct\",\"fft\"].");
  EXPECT_EQ(refusal(conv(R"("algorithms": [])")),
            "algorithms: expected at least one of direct,winograd,tf32,tf32x3; found [].");
  EXPECT_EQ(refusal(conv(R"("algorithms": "direct")")),
            "algorithms: expected a list of names, found \"direct\".");
}

// People write "M", "K" or "A" where a job file has "a": beside the key that is missing it names the ones it
// does not know, and no key of the operator is among them.
TEST(JobFile, BesideAMissingKeyTheUnknownOnesAreNamed) {
  const auto message = [](const nlohmann::json& entry) {
    return parse_job_text(entry.dump(), "job.json").message();
  };
  EXPECT_THAT(
      message({{"op", "matmul"}, {"A", {2, 3}}, {"b", {3, 4}}}),
      StartsWith("job.json: a: expected a value, found nothing. \"A\": unknown key; did you mean a? Known "
                 "here: a, accumulate, "));
  EXPECT_THAT(
      message({{"op", "matmul"}, {"M", 2}, {"N", 3}, {"K", 4}}),
      StartsWith("job.json: a: expected a value, found nothing. \"K\", \"M\", \"N\": unknown keys. "));
  EXPECT_EQ(message({{"a", {2, 3}}, {"b", {3, 4}}}), "job.json: op: expected a value, found nothing.");

  for (const char* text : {
           R"({"op":"matmul","a":[2,3],"b":[3,4]})",
           R"({"op":"conv2d","data":[1,8,7,7],"weight":[8,8,3,3]})",
           R"({"op":"pool2d","data":[1,1,4,4],"kernel":[2,2],"pooling":"max"})",
           R"({"op":"softmax","rows":2,"columns":8})",
           R"({"op":"layer_norm","rows":2,"columns":8})",
           R"({"op":"reduce","rows":2,"columns":8,"reduction":"sum"})",
           R"({"op":"transpose","rows":2,"columns":8})",
           R"({"op":"elementwise","rows":2,"columns":8,"activation":"relu"})",
       }) {
    const auto complete = nlohmann::json::parse(text);
    ASSERT_TRUE(parse_job_text(text, "job.json")) << text;
    nlohmann::json more = complete;
    more["ZZ"] = 1;
    const std::string unknown = message(more);
    const std::string known = unknown.substr(unknown.find("Known here: "));
    ASSERT_THAT(unknown, StartsWith("job.json: \"ZZ\": unknown key")) << text;
    for (const auto& [key, value] : complete.items()) {
      if (key == "op") continue;
      nlohmann::json less = more;
      less.erase(key);
      const std::string said = message(less);
      if (said.find(key + ": expected a value") == std::string::npos) continue;  // one that may be left out
      EXPECT_THAT(said, HasSubstr("\"ZZ\": unknown key. " + known)) << text << " without " << key;
    }
  }
}

struct Mistake {
  std::string text, message;
};

TEST(JobFile, EachMistakeGetsOneLineThatNamesKeyFoundAndExpected) {
  const Mistake mistakes[] = {
      // not JSON, not an entry
      {"",
       "line 1, column 1: not JSON: syntax error while parsing value - unexpected end of input; expected "
       "'[', '{', or a literal"},
      {"tuner-lock 1\n",
       "is a lock file, expected a job file. To use its configs: --lock, beside a job file"},
      {"3", "expected an object { ... }, found 3."},
      {"[]", "expected at least one entry, found []."},
      {"[7]", "[0]: expected an object { ... }, found 7."},
      {"{}", "op: expected a value, found nothing."},
      {R"({"op": "gemv"})", str("op: expected one of ", operator_names(), ", found \"gemv\".")},
      {R"({"op": 5})", "op: expected a text in quotes, found 5."},
      // keys
      {conv(R"("strides": 1)"),
       "\"strides\": unknown key; did you mean stride? Known here: accumulate, activation, algorithms, "
       "allow_tf32, bias, "
       "constant, "
       "data, dilation, dtype, "
       "groups, layout, "
       "measure, name, op, out_dtype, out_layout, padding, post, residual, scale, search, seed, stop_below, "
       "stride, "
       "target, time_limit_s, trials, uses, weight."},
      {conv(R"("stride": 1, "stride": 2)"), "\"stride\": the key is given twice in one object."},
      {conv(R"("measure": {"repeats": 1, "repeats": 2})"),
       "\"repeats\": the key is given twice in one object."},
      {R"({"op": "conv2d", "data": [1, 8, 7, 7]})", "weight: expected a value, found nothing."},
      {conv(R"("measure": {"memory_limit_gib": 1e9})"),
       "measure.memory_limit_gib: expected a number from 0.000976562 to 1024, found 1000000000.0."},
      {conv(R"("measure": {"precision": 1.5})"),
       "measure.precision: expected a number from 0 to 1, found 1.5."},
      {conv(R"("measure": {"constants": "icy"})"),
       "measure.constants: expected \"warm\" or \"cold\", found \"icy\"."},
      {conv(R"("measure": {"repeat": 3})"),
       "measure.\"repeat\": unknown key; did you mean repeats? Known here: build_timeout_s, constants, "
       "memory_limit_gib, min_repeat_ms, "
       "precision, repeats, "
       "run_timeout_s."},
      {conv(R"("a": [1, 1])"),
       "\"a\": unknown key. Known here: accumulate, activation, algorithms, allow_tf32, bias, constant, "
       "data, dilation, "
       "dtype, "
       "groups, layout, "
       "measure, name, op, out_dtype, out_layout, padding, post, residual, scale, search, seed, stop_below, "
       "stride, "
       "target, time_limit_s, trials, uses, weight."},
      // pairs
      {conv(R"("stride": [0, 1])"),
       "stride: expected two integers >= 1, found [0, 1]. Order is [vertical, horizontal]."},
      {conv(R"("stride": 0)"), "stride: expected an integer >= 1, found 0."},
      {conv(R"("stride": [1, 1, 1])"),
       "stride: expected two integers >= 1, found [1, 1, 1]. Order is [vertical, horizontal]."},
      {conv(R"("stride": "2")"),
       "stride: expected an integer >= 1 or two of them, found \"2\". Order is [vertical, horizontal]."},
      {conv(R"("stride": 1.5)"), "stride: expected an integer >= 1, found 1.5."},
      {conv(R"("dilation": [1, -1])"),
       "dilation: expected two integers >= 1, found [1, -1]. Order is [vertical, horizontal]."},
      {conv(R"("padding": [1, 2, 3])"),
       "padding: expected two or four integers >= 0, found [1, 2, 3]. Order is [vertical, horizontal] or "
       "[top, left, bottom, right]."},
      {conv(R"("padding": -1)"), "padding: expected an integer >= 0, found -1."},
      {conv(R"("padding": 1e30)"), "padding: expected an integer >= 0, found 1e+30."},
      {conv(R"("stride": 99999999999999999999)"), "stride: expected an integer >= 1, found 1e+20."},
      // shapes
      {conv(R"("data": [1, 8, 7])"),
       "data: expected 4 integers from 1 to 2147483648, found [1, 8, 7]. Order is [batch, channels, height, "
       "width]."},
      {conv(R"("data": [1, 8, 0, 7])"),
       "data: expected 4 integers from 1 to 2147483648, found [1, 8, 0, 7]. Order is [batch, channels, "
       "height, width]."},
      {conv(R"("weight": [16, 4, 3, 3])"),
       "weight: expected 8 channels (those of data over 1 group), found 4. Order is [output channels, "
       "channels of a group, "
       "kernel height, kernel width]."},
      {conv(R"("groups": 3)"), "groups: expected a divisor of the 8 channels of data, found 3."},
      {conv(R"("data": [1, 8, 2, 7])"),
       "data[2] (height): 2 with padding, expected at least 3 for a kernel of 3 rows at dilation 1"},
      {conv(R"("data": [1048576, 8, 1048576, 7])"),
       "data: expected fewer than 2^40 bytes, the shape asks for more"},
      {matmul(R"("a": [2, 3], "b": [4, 5])"),
       "b: expected K = 3 as in a, found K = 4 in [4, 5]. Order is [K, N], as stored."},
      {matmul(R"("a": [2, 3], "b": [4, 5], "transpose_b": true)"),
       "b: expected K = 3 as in a, found K = 5 in [4, 5]. Order is [N, K], as stored."},
      {matmul(R"("a": [2, 3])"), "b: expected a value, found nothing."},
      {matmul(R"("a": [1, 1], "b": [1, 1], "batch": 0)"),
       "batch: expected an integer from 1 to 2147483648, found 0."},
      // pooling
      {R"({"op": "pool2d", "data": [1, 1, 4, 4]})", "pooling: expected a value, found nothing."},
      {R"({"op": "pool2d", "data": [1, 1, 4, 4], "pooling": "mean"})",
       "pooling: expected \"max\" or \"average\", found \"mean\"."},
      {R"({"op": "pool2d", "data": [1, 1, 4, 4], "pooling": "max", "kernel": 3})",
       "kernel: expected 2 integers from 1 to 2147483648, found 3. Order is [height, width]."},
      // operators on rows
      {R"({"op": "softmax", "columns": 8})", "rows: expected a value, found nothing."},
      {R"({"op": "softmax", "rows": 0, "columns": 8})",
       "rows: expected an integer from 1 to 2147483648, found 0."},
      {R"({"op": "softmax", "rows": 2, "columns": 8, "epsilon": 1})",
       "\"epsilon\": unknown key. Known here: algorithms, columns, dtype, measure, name, op, rows, search, "
       "seed, "
       "stop_below, target, time_limit_s, trials, uses."},
      {R"({"op": "softmax", "rows": 2147483648, "columns": 2147483648})",
       "x: expected fewer than 2^40 bytes, the shape asks for more"},
      {R"({"op": "layer_norm", "rows": 2, "columns": 8, "epsilon": 0})",
       "epsilon: expected a number from 1e-12 to 1, found 0"},
      {R"({"op": "layer_norm", "rows": 2, "columns": 8, "epsilon": 1e-30})",
       "epsilon: expected a number from 1e-12 to 1, found 1e-30"},
      {R"({"op": "reduce", "rows": 2, "columns": 8})", "reduction: expected a value, found nothing."},
      {R"({"op": "reduce", "rows": 2, "columns": 8, "reduction": "median"})",
       "reduction: expected \"sum\", \"max\", \"min\" or \"mean\", found \"median\"."},
      {R"({"op": "transpose", "rows": 2, "columns": 8, "dtype": "int8"})",
       "dtype: expected \"float32\", found \"int8\"."},
      {R"({"op": "elementwise", "rows": 2, "columns": 8, "scale": 2})",
       "scale: expected true or false, found 2."},
      {R"({"op": "elementwise", "rows": 2, "columns": 8, "activation": "swishy"})",
       "activation: expected \"relu\", \"sigmoid\", \"silu\", \"hard_swish\", \"tanh\", \"gelu\", "
       "\"gelu_tanh\", "
       "{\"clip\": [low, high]}, {\"leaky\": alpha} or null, found \"swishy\"."},
      // the rest
      {conv(R"("bias": 1)"), "bias: expected true or false, found 1."},
      {conv(R"("activation": "swishy")"),
       "activation: expected \"relu\", \"sigmoid\", \"silu\", \"hard_swish\", \"tanh\", \"gelu\", "
       "\"gelu_tanh\", "
       "{\"clip\": [low, high]}, {\"leaky\": alpha} or null, found \"swishy\"."},
      {matmul(R"("a": [2, 3], "b": [3, 4], "dtype": "uint8")"),
       "dtype: expected \"float32\", \"bfloat16\", \"float16\" or \"int8\", found \"uint8\"."},
      {matmul(R"("a": [2, 3], "b": [3, 4], "dtype": "int8", "out_dtype": "float32")"),
       "out_dtype: expected \"int32\", \"uint8\" or \"int8\", found \"float32\"."},
      {conv(R"("dtype": "uint8")"),
       "dtype: expected \"float32\", \"bfloat16\", \"float16\" or \"int8\", found \"uint8\"."},
      {conv(R"("layout": "CHWN")"), "layout: expected NCHW, NHWC, NCHW4c, NCHW8c or NCHW16c, found CHWN"},
      {matmul(R"("a": [2, 3], "b": [3, 4], "dtype": "int8", "allow_tf32": true)"),
       "allow_tf32: expected only with float32, whose products it is about, found int8."},
      {conv(R"("constant": ["bias"])"),
       "constant: expected a list of different operands out of \"data\", \"weight\", found [\"bias\"]."},
      {conv(R"("constant": "weight")"),
       "constant: expected a list of different operands out of \"data\", \"weight\", found \"weight\"."},
      {conv(R"("constant": ["weight", "weight"])"),
       "constant: expected a list of different operands out of \"data\", \"weight\", found "
       "[\"weight\",\"weight\"]."},
      {conv(R"("trials": 0)"), "trials: expected an integer from 1 to 10000000, found 0."},
      {conv(R"("stop_below": 101)"), "stop_below: expected a number from 0 to 100, found 101."},
      {conv(R"("time_limit_s": -1)"), "time_limit_s: expected a number from 0 to 1e+09, found -1."},
      {conv(R"("name": "3x3")"),
       "name: expected a name for C: letters, digits and underscores, starting with a letter, found "
       "\"3x3\"."},
      {conv(R"("name": "double")"), "name: \"double\" is a keyword of C or C++, found \"double\"."},
      {conv(R"("name": "tuner_conv")"),
       "name: names that start with tuner_ are taken, found \"tuner_conv\"."},
      {conv(R"("name": 7)"), "name: expected a text in quotes, found 7."},
      {conv(R"("uses": 0)"), "uses: expected an integer from 1 to 1000000000, found 0."},
      {conv(R"("trials": "many")"), "trials: expected an integer from 1 to 10000000, found \"many\"."},
      {conv(R"("seed": -1)"), "seed: expected an integer from 0 to 18446744073709551615, found -1."},
      {conv(R"("search": "psychic")"),
       "search: expected one of random, grid, genetic, annealing, coordinate-descent, bayesian, xgb-genetic, "
       "xgb-annealing, found "
       "\"psychic\"."},
      {conv(R"("measure": {"run_timeout_s": 0})"),
       "measure.run_timeout_s: expected a number above 0 and at most 600, found 0."},
      {conv(R"("measure": [])"), "measure: expected an object { ... }, found []."},
      {"[" + conv("") + "," + conv(R"("trials": -5)") + "]",
       "[1].trials: expected an integer from 1 to 10000000, found -5."},
  };
  for (const Mistake& m : mistakes) EXPECT_EQ(refusal(m.text), m.message) << m.text;
}

TEST(JobFile, ATargetNobodyKnowsIsNamed) {
  const std::string message = refusal(conv(R"("target": "toaster")"));
  EXPECT_TRUE(message.starts_with("target: ")) << message;
  EXPECT_NE(message.find("\"toaster\""), std::string::npos) << message;
}

// The architecture is asked for where the entry is used; the file is right on a host without a GPU, too.
TEST(JobFile, TheGpuOfTheHostIsATarget) {
  const auto entries = parse(conv(R"("target": "cuda -arch=native")"));
  ASSERT_TRUE(entries.is_ok()) << entries.message();
  EXPECT_EQ(entries->front().target, "cuda -arch=native");
  EXPECT_EQ(refusal(conv(R"("target": "cuda -arch=natve")")),
            "target: target: -arch: expected sm_NN, found \"natve\"; found \"cuda -arch=natve\".");
}

TEST(JobFile, ASyntaxErrorSaysWhere) {
  const std::string message = refusal("{\n  \"op\": \"conv2d\",\n  \"data\": [1, 8,, 7]\n}");
  EXPECT_TRUE(message.starts_with("line 3, column 17: not JSON: ")) << message;
}

TEST(JobFile, TextAfterTheDocumentIsAMistake) { EXPECT_NE(refusal(conv("") + "x"), "(accepted)"); }

TEST(JobFile, NestingBeyondReasonIsRefused) {
  EXPECT_EQ(refusal(std::string(100'000, '[') + std::string(100'000, ']')),
            "expected at most 16 levels of brackets, found more.");
}

TEST(JobFile, ALongValueIsShortenedAndControlCharactersDoNotReachTheTerminal) {
  const std::string message = refusal(R"({"op": ")" + std::string(500, 'x') + R"("})");
  EXPECT_LT(message.size(), operator_names().size() + 96) << message;
  EXPECT_EQ(refusal("{\"op\": \"\\u001b[31m\"}").find('\x1b'), std::string::npos);
}

TEST(JobFile, AMissingFileIsTheUsersMistake) {
  const auto entries = read_job_file("/nonexistent/conv2d.json");
  EXPECT_EQ(entries.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(entries.message(),
            "/nonexistent/conv2d.json: cannot be read: No such file or directory. Expected a job file such "
            "as examples/conv2d.json");
}

TEST(JobFile, AFolderIsNoJobFile) {
  const auto entries = read_job_file("/tmp");
  EXPECT_EQ(entries.status().code(), StatusCode::kInvalidArgument) << entries.message();
}

}  // namespace
}  // namespace tuner::cli
