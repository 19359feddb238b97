// The header of a library follows the job file alone: whatever template and config win, it declares the same
// functions and macros, and one program is right with any of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <sstream>

#include "compiler_core/codegen/compile.h"
#include "db/store.h"
#include "templates/schedule_template.h"
#include "tests/tuner/command_line.h"
#include "tuner/bundle/bundle_package.h"
#include "tuner/bundle/c_header.h"
#include "tuner/bundle/c_signature.h"
#include "tuner/study/present.h"

namespace tuner {
namespace {

using testing::CommandResult;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kJob[] = R"([
  {"name":"conv","op":"conv2d","data":[1,5,9,11],"weight":[20,5,3,3],"padding":[1,1],"bias":true,"activation":"relu",
   "constant":["weight"],"target":"cpu"},
  {"name":"dense","op":"matmul","a":[7,33],"b":[33,40],"bias":true,"constant":["b"],"target":"cpu"},
  {"name":"fixed","op":"matmul","a":[7,33],"b":[33,40],"bias":true,"constant":["a","b","bias"],"target":"cpu"},
  {"name":"soft","op":"softmax","rows":7,"columns":19,"target":"cpu"},
  {"name":"sum","op":"matmul","a":[7,33],"b":[33,40],"accumulate":true,"target":"cpu"}
])";
constexpr char kConv[] =
    "v1 conv2d n=1 ic=5 ih=9 iw=11 oc=20 kh=3 kw=3 stride=1,1 pad=1,1,1,1 dil=1,1 groups=1 bias=1 act=relu "
    "dtype=float32 layout=NCHW const=weight";
constexpr char kDense[] = "v1 matmul b=1 m=7 n=40 k=33 ta=0 tb=0 bias=1 act=none dtype=float32 const=b";
constexpr char kFixed[] =
    "v1 matmul b=1 m=7 n=40 k=33 ta=0 tb=0 bias=1 act=none dtype=float32 const=a,b,bias";

// Every kernel by its function and out of the table, against plain loops.
constexpr char kProgram[] = R"(
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "net.h"

enum { IC = 5, OC = 20, H = 9, W = 11, M = 7, N = 40, K = 33 };

static void* make(size_t bytes) {
  void* p = aligned_alloc(64, (bytes + 127) / 64 * 64);
  if (!p) exit(9);
  return p;
}
static float* make_random(int bytes, unsigned seed) {
  float* p = (float*)make((size_t)bytes);
  int i;
  for (i = 0; i < bytes / 4; ++i) {
    seed = seed * 1664525u + 1013904223u;
    p[i] = (float)(seed >> 8) / (1 << 24) - 0.5f;
  }
  return p;
}
static void check(const char* what, const float* out, const float* right, int count) {
  int i;
  for (i = 0; i < count; ++i)
    if (!(fabs((double)out[i] - (double)right[i]) <= 1e-4)) {
      printf("%s: element %d is %g, expected %g\n", what, i, (double)out[i], (double)right[i]);
      exit(1);
    }
}
static float conv_right(const float* data, const float* weight, const float* bias, int o, int y, int x) {
  double sum = (double)bias[o];
  int c, r, s;
  for (c = 0; c < IC; ++c)
    for (r = 0; r < 3; ++r)
      for (s = 0; s < 3; ++s)
        if (y + r >= 1 && y + r <= H && x + s >= 1 && x + s <= W)
          sum += (double)data[(c * H + y + r - 1) * W + x + s - 1] * (double)weight[((o * IC + c) * 3 + r) * 3 + s];
  return sum > 0 ? (float)sum : 0;
}
static float dense_right(const float* a, const float* b, const float* bias, int i, int j) {
  double sum = (double)bias[j];
  int k;
  for (k = 0; k < K; ++k) sum += (double)a[i * K + k] * (double)b[k * N + j];
  return (float)sum;
}

int main(void) {
  float *data = make_random(CONV_DATA_BYTES, 1), *weight = make_random(CONV_WEIGHT_BYTES, 2);
  float *conv_bias = make_random(CONV_BIAS_BYTES, 3), *conv_out = make_random(CONV_OUT_BYTES, 4);
  float *a = make_random(DENSE_A_BYTES, 5), *b = make_random(DENSE_B_BYTES, 6);
  float *bias = make_random(DENSE_BIAS_BYTES, 7), *out = make_random(DENSE_OUT_BYTES, 8);
  float *right_conv = (float*)make(CONV_OUT_BYTES), *right = (float*)make(DENSE_OUT_BYTES);
  void *weight_packed = make(CONV_WEIGHT_PACKED_BYTES), *b_packed = make(DENSE_B_PACKED_BYTES);
  void *fixed_a = make(FIXED_A_PACKED_BYTES), *fixed_b = make(FIXED_B_PACKED_BYTES);
  void *fixed_bias = make(FIXED_BIAS_PACKED_BYTES);
  static const float no_bias[N] = {0};
  int i;
  int32_t count = 0;
  const tuner_kernel* kernels = net_kernels(&count);
  for (i = 0; i < OC * H * W; ++i)
    right_conv[i] = conv_right(data, weight, conv_bias, i / (H * W), i / W % H, i % W);
  for (i = 0; i < M * N; ++i) right[i] = dense_right(a, b, bias, i / N, i % N);

  if (conv_prepack(weight, weight_packed) != 0 ||
      conv(data, weight_packed, conv_bias, conv_out, make(CONV_WORKSPACE_BYTES)) != 0)
    return 2;
  check("conv", conv_out, right_conv, OC * H * W);
  if (dense_prepack(b, b_packed) != 0 || dense(a, b_packed, bias, out, make(DENSE_WORKSPACE_BYTES)) != 0)
    return 3;
  check("dense", out, right, M * N);
  out = make_random(DENSE_OUT_BYTES, 9);
  if (fixed_prepack(a, b, bias, fixed_a, fixed_b, fixed_bias) != 0 ||
      fixed(fixed_a, fixed_b, fixed_bias, out, make(FIXED_WORKSPACE_BYTES)) != 0)
    return 4;
  check("fixed", out, right, M * N);
  /* In and out: two calls leave twice the product beside what was there. */
  for (i = 0; i < M * N; ++i) {
    right[i] = 2 * dense_right(a, b, no_bias, i / N, i % N) + (float)i;
    out[i] = (float)i;
  }
  if (sum(a, b, out, make(SUM_WORKSPACE_BYTES)) != 0 || sum(a, b, out, make(SUM_WORKSPACE_BYTES)) != 0) return 7;
  check("sum", out, right, M * N);

  /* By the table: the same arguments in the same order. */
  for (i = 0; i < count; ++i) {
    const tuner_runtime runtime = tuner_serial_runtime(make((size_t)tuner_workspace_bytes(&kernels[i], 1)));
    if (strcmp(kernels[i].name, "conv") == 0) {
      void *pack[] = {weight, weight_packed}, *args[] = {data, weight_packed, conv_bias, conv_out};
      memset(weight_packed, 0xff, (size_t)kernels[i].args[1].bytes);
      memset(conv_out, 0xff, CONV_OUT_BYTES);
      if (kernels[i].pack(pack, &runtime) != 0 || kernels[i].entry(args, &runtime) != 0) return 5;
      check("conv of the table", conv_out, right_conv, OC * H * W);
    } else if (strcmp(kernels[i].name, "soft") == 0) {
      if (kernels[i].pack != NULL) return 6;
    }
  }
  printf("right: %d kernels\n", (int)count);
  return 0;
}
)";

// What a program can name: functions with their arguments, and macros without their values.
std::string declarations(const std::string& header) {
  std::string out;
  std::istringstream lines(header);
  const std::regex macro(R"(#define (\w+)( .*)?)");
  for (std::string line; std::getline(lines, line);) {
    std::smatch found;
    if (std::regex_match(line, found, macro)) out += "#define " + found[1].str() + "\n";
    if (line.starts_with("static inline ") || line.starts_with("int32_t ")) out += line + "\n";
  }
  return out;
}

class CHeaderTest : public ::testing::Test {
 protected:
  CHeaderTest() {
    shell_.write("net.json", kJob);
    shell_.write("program.c", kProgram);
    shell_.write("program.cpp", kProgram);
  }

  // The config of a template's default with these knobs instead, or of the default where there are none.
  std::string config_of(const std::string& key, const std::string& name, const std::string& knob,
                        const std::string& value) {
    const Result<Workload> workload = workload_from_key(key);
    const auto instance = find_template(name)->apply(*workload, host_target());
    CHECK(instance.is_ok()) << instance.message();
    const ConfigSpace& space = (*instance)->space();
    std::string text = space.at(space.first_index()).to_text();
    if (knob.empty()) return text;
    text = std::regex_replace(text, std::regex(knob + "=[0-9]+"), str(knob, "=", value));
    return text;
  }

  struct Winner {
    std::string key, template_name, knob, value;
  };
  // A database in which each of these is the fastest of its task.
  void record(const std::string& db, const std::vector<Winner>& winners) {
    auto store = Store::open(shell_.folder() / db, Store::Mode::kWrite);
    ASSERT_TRUE(store.is_ok()) << store.message();
    const Present now = present_here(host_target());
    JobRow job{.id = "j1", .request_id = "r1", .trials = 1, .search = "random"};
    for (const Winner& w : winners) job.tasks.push_back({w.key, host_target().name()});
    ASSERT_TRUE((*store)->add_job(job).is_ok());
    for (size_t i = 0; i < winners.size(); ++i) {
      std::vector<TrialRow> trials(1);
      trials[0].job_id = "j1";
      trials[0].task_index = static_cast<int>(i);
      trials[0].template_name = winners[i].template_name;
      trials[0].template_version = find_template(winners[i].template_name)->version();
      trials[0].config =
          config_of(winners[i].key, winners[i].template_name, winners[i].knob, winners[i].value);
      ASSERT_TRUE((*store)->add_trials(trials).is_ok());
      std::vector<MeasureRecord> records(1);
      records[0].trial_id = trials[0].id;
      records[0].run_ns = {1000, 1001, 1002};
      records[0].environment = {
          .hardware = now.hardware, .toolchain = toolchain_fingerprint(), .harness_abi = now.harness_abi};
      records[0].finished_at_us = 1'700'000'000'000'000;
      ASSERT_TRUE((*store)->add_records(records).is_ok());
    }
  }
  // The library in `folder`, built on the database; what its header declares.
  std::string built(const std::string& db, const std::string& folder) {
    const CommandResult made = shell_.run(str("tuner build net.json -o ", folder, " --name net --db ", db));
    EXPECT_EQ(made.exit_code, 0) << made.err;
    return declarations(shell_.read(folder + "/include/net.h"));
  }
  void expect_right(const std::string& folder) {
    for (const char* compiler : {"cc -std=c11 -Wall -Wextra -Werror -pedantic program.c",
                                 "c++ -std=c++17 -Wall -Wextra -Werror -pedantic program.cpp"}) {
      const CommandResult ran = shell_.run(
          str(compiler, " -I", folder, "/include ", folder, "/lib/libnet.a -lm -o program && ./program"));
      EXPECT_EQ(ran.exit_code, 0) << folder << ", " << compiler << "\n" << ran.err << ran.out;
      EXPECT_EQ(ran.out, "right: 5 kernels\n") << folder;
    }
  }

  testing::CommandLine shell_{TUNER_BIN_DIR};
};

TEST_F(CHeaderTest, AnotherTemplateOrPackingChangesNoDeclaration) {
  record("direct.db", {{kConv, "conv2d_direct_cpu", "", ""},
                       {kDense, "matmul_cpu", "tile_n", "16"},
                       {kFixed, "matmul_cpu", "tile_n", "16"}});
  record("winograd.db", {{kConv, "conv2d_winograd2_cpu", "", ""},
                         {kDense, "matmul_cpu", "tile_n", "32"},
                         {kFixed, "matmul_cpu", "tile_n", "32"}});
  const std::string direct = built("direct.db", "direct"), winograd = built("winograd.db", "winograd");
  EXPECT_EQ(direct, winograd);
  EXPECT_EQ(direct, built("none.db", "default"));
  // They do differ below: in what is packed, and how much.
  EXPECT_THAT(shell_.read("direct/manifest.json"), HasSubstr("\"weight.packed\""));
  EXPECT_THAT(shell_.read("winograd/manifest.json"), HasSubstr("\"u.packed\""));
  // 33 rows of 48 and 64 columns; vectors of 8 numbers need no more than the 40 that there are.
  const bool is_wide = host_target().f32_lanes() == 16;
  EXPECT_THAT(shell_.read("direct/include/net.h"),
              HasSubstr(str("#define DENSE_B_PACKED_BYTES ", is_wide ? 6336 : 5280, "\n")));
  EXPECT_THAT(shell_.read("winograd/include/net.h"),
              HasSubstr(str("#define DENSE_B_PACKED_BYTES ", is_wide ? 8448 : 5280, "\n")));
  for (const char* folder : {"direct", "winograd", "default"}) expect_right(folder);
}

TEST_F(CHeaderTest, EveryConstantAndNothingElseIsPacked) {
  const std::string declared = built("none.db", "out");
  EXPECT_THAT(declared,
              HasSubstr("conv(const float* data, const void* weight_packed, const float* bias, float* out, "
                        "void* workspace)"));
  EXPECT_THAT(declared, HasSubstr("conv_prepack(const float* weight, void* weight_packed)"));
  EXPECT_THAT(declared,
              HasSubstr("fixed_prepack(const float* a, const float* b, const float* bias, void* a_packed, "
                        "void* b_packed, void* bias_packed)"));
  EXPECT_THAT(declared, HasSubstr("#define CONV_WEIGHT_BYTES\n"));
  EXPECT_THAT(declared, HasSubstr("#define CONV_WEIGHT_PACKED_BYTES\n"));
  EXPECT_THAT(declared, Not(HasSubstr("soft_prepack")));
  EXPECT_THAT(declared, HasSubstr("sum(const float* a, const float* b, float* out, void* workspace)"));
  EXPECT_THAT(shell_.read("out/include/net.h"),
              HasSubstr("out: float32 [7, 40], in and out: each call adds to what it holds, 1120 bytes"));
  EXPECT_THAT(declared,
              Not(HasSubstr("tuner_net_")));  // symbols of the library are no business of a program's
}

// A kernel of kFixed that packs some of its constants in its own way.
Manifest manifest_of(std::vector<ArgInfo> args, std::vector<ArgInfo> pack_args) {
  Manifest m;
  m.args = std::move(args);
  m.pack_args = std::move(pack_args);
  m.pack_entry = m.pack_args.empty() ? "" : "k_pack";
  return m;
}
ArgInfo arg(const std::string& name, BufferRole role, int64_t bytes) {
  return {.name = name, .role = role, .bytes = bytes};
}
// "b_packed+128" of a place.
std::string place(const std::vector<ArgInfo>& args, const ArgPlace& p) {
  return str(args[p.arg].name, p.offset == 0 ? "" : str("+", p.offset));
}
std::string places(const std::vector<ArgInfo>& args, const std::vector<ArgPlace>& of) {
  std::string out;
  for (const ArgPlace& p : of) out += str(out.empty() ? "" : " ", place(args, p));
  return out;
}

TEST(CSignature, ConstantsThatAreNotPackedAreCopied) {
  const Result<Workload> w = workload_from_key(kFixed);
  ASSERT_TRUE(w.is_ok()) << w.message();
  const CSignature s = c_signature(
      *w, manifest_of({arg("a", BufferRole::kConstant, 924), arg("b", BufferRole::kConstant, 5280),
                       arg("bias", BufferRole::kConstant, 160), arg("out", BufferRole::kOutput, 1120)},
                      {}));
  EXPECT_EQ(places(s.args, s.entry), "a_packed b_packed bias_packed out");
  EXPECT_TRUE(s.pack.empty());
  ASSERT_EQ(s.copies.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(s.copies[i].from, i);
    EXPECT_EQ(s.pack_args[i].name + "_packed", place(s.pack_args, s.copies[i].to));
    EXPECT_EQ(s.pack_args[i].bytes, s.pack_args[3 + i].bytes);
  }
}

TEST(CSignature, WhatIsPackedOfOneConstantLiesSideBySide) {
  const Result<Workload> w = workload_from_key(kFixed);
  ASSERT_TRUE(w.is_ok()) << w.message();
  // b in panels, a transform of b, and b itself.
  const CSignature s = c_signature(
      *w, manifest_of({arg("a", BufferRole::kConstant, 924), arg("b", BufferRole::kConstant, 5280),
                       arg("b.sums", BufferRole::kPacked, 100), arg("b.packed", BufferRole::kPacked, 6000),
                       arg("u.packed", BufferRole::kPacked, 640), arg("out", BufferRole::kOutput, 1120)},
                      {arg("b", BufferRole::kConstant, 5280), arg("bias", BufferRole::kConstant, 160),
                       arg("b.sums", BufferRole::kPacked, 100), arg("b.packed", BufferRole::kPacked, 6000),
                       arg("u.packed", BufferRole::kPacked, 640)}));
  EXPECT_EQ(places(s.args, s.entry), "a_packed b_packed b_packed+5312 b_packed+5440 bias_packed out");
  EXPECT_EQ(places(s.pack_args, s.pack), "b bias b_packed+5312 b_packed+5440 bias_packed");
  ASSERT_EQ(s.copies.size(), 2u);
  EXPECT_EQ(place(s.pack_args, s.copies[1].to), "b_packed");
  EXPECT_EQ(s.args[1].bytes, 5440 + 6000);
  EXPECT_EQ(s.args[2].bytes, 640);
}

std::string header_of(std::vector<std::string> instruction_sets, const std::string& target) {
  BundleKernel kernel{.function = "soft"};
  kernel.task.workload = *workload_from_key("v1 softmax rows=7 columns=19 dtype=float32");
  kernel.task.target = *parse_target(target);
  Manifest& m = kernel.code.manifest;
  m.entry = "tuner_net_soft";
  m.args = {arg("x", BufferRole::kInput, 532), arg("out", BufferRole::kOutput, 532)};
  m.workspace_bytes = 100;
  m.workspace_bytes_per_thread = 3000;
  kernel.code.instruction_sets = std::move(instruction_sets);
  return c_header("net", {&kernel});
}

TEST(CHeader, RunsHereAsksForEveryInstructionSet) {
  const auto asks = [](const std::vector<std::string>& sets, const char* target) {
    std::string header = header_of(sets, target);
    const size_t begin = header.find("tuner_cpu_has_sets("), end = header.find(");", begin);
    EXPECT_NE(end, std::string::npos) << header;
    std::string words = header.substr(begin, end - begin);
    return std::regex_replace(words, std::regex("\"\n *\""), "");  // strings side by side are one
  };
  EXPECT_THAT(asks({"avx2", "fma", "amx-int8"}, "llvm -mcpu=haswell"), HasSubstr("\"avx2 fma amx-int8\""));
  EXPECT_THAT(asks({"bf16", "sve"}, "llvm -mcpu=cortex-a72 -mtriple=aarch64-linux-gnu"),
              HasSubstr("\"bf16 sve\""));
  EXPECT_THAT(asks({}, "llvm -mcpu=x86-64"), HasSubstr("\"\""));
  std::vector<std::string> many;
  std::string expected;
  for (int i = 0; i < 60; ++i) {
    many.push_back(str("set", i));
    expected += str(i == 0 ? "\"" : " ", many.back());
  }
  EXPECT_THAT(asks(many, "llvm -mcpu=haswell"), HasSubstr(expected + "\""));
  EXPECT_THAT(header_of(many, "llvm -mcpu=haswell"), Not(::testing::ContainsRegex("[^\n]{112}")));
}

TEST(CHeader, OneThreadNeedsTheSharedWorkspaceAndItsOwn) {
  const std::string header = header_of({}, "llvm -mcpu=haswell");
  EXPECT_THAT(header, HasSubstr("#define SOFT_WORKSPACE 100\n"));
  EXPECT_THAT(header, HasSubstr("#define SOFT_WORKSPACE_PER_THREAD 3000\n"));
  EXPECT_THAT(header, HasSubstr("#define SOFT_WORKSPACE_BYTES 3100\n"));
}

TEST(PkgConfig, AStaticLibraryNamesTheMathLibraryThatItNeeds) {
  PackageText package{.name = "net", .about = "kernels", .shared = false, .math = true};
  EXPECT_THAT(pkg_config(package), HasSubstr("Libs: -L${libdir} -lnet -lm -pthread\n"));
  EXPECT_THAT(cmake_config(package), HasSubstr("INTERFACE_LINK_LIBRARIES \"Threads::Threads;m\""));
  package.shared = true;
  EXPECT_THAT(pkg_config(package), HasSubstr("Libs: -L${libdir} -lnet -pthread\nLibs.private: -lm\n"));
  package.math = false;
  EXPECT_THAT(pkg_config(package), Not(HasSubstr("-lm")));
}

TEST_F(CHeaderTest, NamesThatTheHeaderNeedsAreTaken) {
  for (const char* ending : {"_pack", "_call"}) {
    shell_.write("two.json", str(R"([{"name":"k","op":"softmax","rows":2,"columns":3},{"name":"k)", ending,
                                 R"(","op":"softmax","rows":2,"columns":5}])"));
    const CommandResult refused = shell_.run("tuner build two.json -o two --name lib --db none.db");
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.err, HasSubstr(str("the C name k", ending)));
  }
}

}  // namespace
}  // namespace tuner
