// One library for several CPUs: a program, compiled once, takes the variant of the CPU on which it runs.
// Other CPUs than this one are qemu's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "compiler_core/backend.h"
#include "db/store.h"
#include "templates/schedule_template.h"
#include "tests/tuner/command_line.h"
#include "tuner/bundle/cpu_variants.h"

namespace tuner {
namespace {

using testing::CommandResult;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> mcpus(const std::string& text) {
  const auto cpus = parse_cpus(text);
  EXPECT_TRUE(cpus) << cpus.message();
  std::vector<std::string> names;
  for (const CpuVariant& cpu : *cpus) names.push_back(cpu.mcpu);
  return names;
}

TEST(CpuVariants, WhatHasMoreComesFirst) {
  EXPECT_THAT(mcpus("avx2,amx,avx512"), ElementsAre("sapphirerapids", "x86-64-v4", "x86-64-v3"));
  EXPECT_THAT(mcpus("x86-64,znver4,nehalem"), ElementsAre("znver4", "nehalem", "x86-64"));
}

TEST(CpuVariants, WordsThatAreNoCpuAreNamed) {
  for (const auto& [text, says] : std::vector<std::pair<std::string, std::string>>{
           {"", "found \"\""},
           {"avx2,", "found \"\""},
           {"avx3", "expected avx2, avx512, amx, or LLVM's name of an x86-64 CPU, as znver4; found \"avx3\""},
           {"avx2,neoverse-n1", "found \"neoverse-n1\""},
           {"avx2 -threads=4", "found \"avx2 -threads=4\""},
           {"avx2,\x1b[31m", "found \"\\x1b[31m\""},
           {"avx2,x86-64-v3", "expected each CPU once, found \"x86-64-v3\" (x86-64-v3) again"},
           {"x86-64,nehalem,haswell,skylake,znver1,znver2,znver3,znver4,amx",
            "expected at most 8 CPUs, found 9"}}) {
    const auto cpus = parse_cpus(text);
    ASSERT_FALSE(cpus) << text;
    EXPECT_THAT(cpus.message(), HasSubstr(says)) << text;
  }
}

// One thread each. The rows of `dense` are few, so that templates differ by their vectors.
constexpr char kJob[] = R"([
  {"name":"conv","op":"conv2d","data":[1,5,9,11],"weight":[20,5,3,3],"padding":[1,1],"constant":["weight"],
   "target":"llvm -mcpu=haswell"},
  {"name":"dense","op":"matmul","a":[7,33],"b":[33,64],"constant":["b"],"target":"llvm -mcpu=haswell -threads=2"}
])";

constexpr char kDense[] = "v1 matmul b=1 m=7 n=64 k=33 ta=0 tb=0 bias=0 act=none dtype=float32 const=b";
constexpr char kConv[] =
    "v1 conv2d n=1 ic=5 ih=9 iw=11 oc=20 kh=3 kw=3 stride=1,1 pad=1,1,1,1 dil=1,1 groups=1 bias=0 act=none "
    "dtype=float32 layout=NCHW const=weight";

// Calls every function and the table's choice, compares with plain loops, and prints the variants.
constexpr char kProgram[] = R"(
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "net.h"
static float* filled(size_t count, unsigned seed) {
  float* p = (float*)aligned_alloc(64, (4 * count + 63) / 64 * 64);
  size_t i;
  if (!p) exit(9);
  for (i = 0; i < count; ++i) p[i] = (float)(int)((seed = seed * 1664525u + 1013904223u) >> 20) / 4096 - 0.5f;
  return p;
}
static void* bytes(size_t count) { return filled(count / 4 + 16, 1); }
static int wrong;
static void check_dense(const char* what, const float* a, const float* b, const float* out) {
  int i, j, k;
  for (i = 0; i < 7; ++i)
    for (j = 0; j < 64; ++j) {
      double sum = 0;
      for (k = 0; k < 33; ++k) sum += (double)a[i * 33 + k] * (double)b[k * 64 + j];
      if (!(fabs(sum - (double)out[i * 64 + j]) < 1e-4)) printf("%s %d %d\n", what, i, j), wrong = 1;
    }
}
static void check_conv(const float* data, const float* weight, const float* out) {
  int o, y, x, c, r, s;
  for (o = 0; o < 20; ++o)
    for (y = 0; y < 9; ++y)
      for (x = 0; x < 11; ++x) {
        double sum = 0;
        for (c = 0; c < 5; ++c)
          for (r = 0; r < 3; ++r)
            for (s = 0; s < 3; ++s)
              if (y + r >= 1 && y + r <= 9 && x + s >= 1 && x + s <= 11)
                sum += (double)data[(c * 9 + y + r - 1) * 11 + x + s - 1] * (double)weight[((o * 5 + c) * 3 + r) * 3 + s];
        if (!(fabs(sum - (double)out[(o * 9 + y) * 11 + x]) < 1e-4)) printf("conv %d %d %d\n", o, y, x), wrong = 1;
      }
}
int main(void) {
  float *a = filled(7 * 33, 2), *b = filled(33 * 64, 3), *out = filled(7 * 64, 4);
  float *data = filled(5 * 99, 5), *weight = filled(900, 6), *conv_out = filled(20 * 99, 7);
  void *b_packed = bytes(DENSE_B_PACKED_BYTES), *weight_packed = bytes(CONV_WEIGHT_PACKED_BYTES);
  const tuner_kernel* found = net_find("v1 matmul b=1 m=7 n=64 k=33 ta=0 tb=0 bias=0 act=none dtype=float32 const=b", 0);
  if (dense_runs_here() != (found != NULL)) return 3;
  if (!dense_runs_here()) {
    printf("none: %d %d\n", dense_prepack(b, b_packed), dense(a, b_packed, out, NULL));
    return 0;
  }
  if (dense_prepack(b, b_packed) != 0 || dense(a, b_packed, out, bytes(DENSE_WORKSPACE_BYTES)) != 0) return 4;
  check_dense("dense", a, b, out);
  if (conv_prepack(weight, weight_packed) != 0 ||
      conv(data, weight_packed, conv_out, bytes(CONV_WORKSPACE_BYTES)) != 0)
    return 5;
  check_conv(data, weight, conv_out);
  {
    const tuner_runtime runtime = tuner_serial_runtime(bytes((size_t)tuner_workspace_bytes(found, 1)));
    void *pack[] = {b, b_packed}, *args[] = {a, b_packed, out};
    memset(out, 0xff, 4 * 7 * 64);
    if (found->pack(pack, &runtime) != 0 || found->entry(args, &runtime) != 0) return 6;
    check_dense("table", a, b, out);
  }
  if (wrong) return 7;
  printf("right: %d %d %s\n", conv_variant(), dense_variant(), found->name);
  return 0;
}
)";

class SeveralCpus : public ::testing::Test {
 protected:
  SeveralCpus() {
    shell_.write("net.json", kJob);
    shell_.write("program.c", kProgram);
  }
  // Returns what the command said.
  std::string build(const std::string& words, const std::string& db = "none.db") {
    const CommandResult made =
        shell_.run(str("tuner build net.json -o out --name net --db ", db, " ", words));
    EXPECT_EQ(made.exit_code, 0) << made.err;
    for (const char* compiler : {"c++ -x c++ -std=c++17 -Wall -Wextra -Werror -pedantic",
                                 "cc -std=c11 -Wall -Wextra -Werror -pedantic"}) {
      const CommandResult compiled =
          shell_.run(str(compiler, " program.c -x none -Iout/include out/lib/libnet.a -lm -o program"));
      EXPECT_EQ(compiled.exit_code, 0) << compiler << "\n" << compiled.err;
    }
    return made.out + made.err;
  }
  std::string run_on(const std::string& cpu) {
    const CommandResult ran =
        shell_.run(cpu.empty() ? "./program" : "qemu-x86_64 -cpu " + cpu + " ./program");
    EXPECT_EQ(ran.exit_code, 0) << cpu << ": " << ran.out << ran.err;
    return ran.out;
  }

  testing::CommandLine shell_{TUNER_BIN_DIR};
};

TEST_F(SeveralCpus, AProgramTakesTheBestThatItsCpuRuns) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "the library is of x86-64";
#endif
  build("--for avx2,amx,avx512,nehalem");
  // What this CPU has is asked of the back end, not of the header.
  const auto cpus = parse_cpus("avx2,amx,avx512,nehalem");
  ASSERT_TRUE(cpus) << cpus.message();
  const auto best = std::ranges::find_if(*cpus, [](const CpuVariant& cpu) {
    const Target target = *parse_target("llvm -mcpu=" + cpu.mcpu);
    return backend_of(target).runs_here(target).is_ok();
  });
  ASSERT_NE(best, cpus->end());
  const auto at = best - cpus->begin();
  EXPECT_EQ(run_on(""), str("right: ", at, " ", at, " dense_", best->word, "\n"));
  if (shell_.run("qemu-x86_64 --version").exit_code != 0)
    GTEST_SKIP() << "other CPUs: no qemu-x86_64 (deploy/install.sh --emulator)";
  EXPECT_EQ(run_on("Haswell"), "right: 2 2 dense_avx2\n");
  EXPECT_EQ(run_on("Nehalem"), "right: 3 3 dense_nehalem\n");
  build("--for avx2,avx512");
  EXPECT_EQ(run_on("Nehalem"), "none: -4 -4\n");
}

// A hypervisor may hide any one of the sets that a CPU's name promises. (Not bmi1: the C library ends there.)
TEST_F(SeveralCpus, ACpuThatLacksOneSetTakesTheNextVariant) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "the library is of x86-64";
#endif
  if (shell_.run("qemu-x86_64 --version").exit_code != 0)
    GTEST_SKIP() << "other CPUs: no qemu-x86_64 (deploy/install.sh --emulator)";
  build("--for haswell,nehalem");
  EXPECT_EQ(run_on("Haswell"), "right: 0 0 dense_haswell\n");
  for (const char* hidden : {"movbe", "f16c", "avx2", "bmi2", "abm", "fma", "popcnt", "xsave"}) {
    const std::string said = run_on(str("Haswell,-", hidden));
    // qemu's Nehalem has popcnt, too.
    EXPECT_EQ(said, hidden == std::string_view("popcnt") ? "none: -4 -4\n" : "right: 1 1 dense_nehalem\n")
        << hidden;
  }
}

TEST_F(SeveralCpus, EachVariantHasTheThreadsOfItsTask) {
  build("--for avx2,avx512");
  const std::string manifest = shell_.read("out/manifest.json");
  for (const char* text : {"llvm -mcpu=x86-64-v4 -threads=1", "llvm -mcpu=x86-64-v3 -threads=2",
                           "\"variant_of\": \"dense\"", "\"function\": \"conv_avx512\""})
    EXPECT_THAT(manifest, HasSubstr(text));
  EXPECT_THAT(shell_.read("out/lib/pkgconfig/net.pc"), HasSubstr("llvm -mcpu=x86-64-v3 -threads=2"));
}

// A database in which these configs are the fastest for AVX2: the product packs wide panels, the convolution
// transforms and needs a workspace. All other variants need less.
void tune_for_avx2(const std::string& file) {
  struct Winner {
    const char *key, *target, *template_name, *knob;
  };
  const Winner winners[] = {{kDense, "llvm -mcpu=x86-64-v3 -threads=2", "matmul_cpu", "tile_m=4 tile_n=24"},
                            {kConv, "llvm -mcpu=x86-64-v3", "conv2d_winograd2_cpu", ""}};
  auto store = Store::open(file, Store::Mode::kWrite);
  ASSERT_TRUE(store) << store.message();
  JobRow job{.id = "j1", .request_id = "r1", .trials = 1, .search = "random"};
  for (const Winner& w : winners) job.tasks.push_back({w.key, parse_target(w.target)->name()});
  ASSERT_TRUE((*store)->add_job(job).is_ok());
  for (int i = 0; i < 2; ++i) {
    const Winner& w = winners[i];
    const auto instance =
        find_template(w.template_name)->apply(*workload_from_key(w.key), *parse_target(w.target));
    ASSERT_TRUE(instance) << instance.message();
    const ConfigSpace& space = (*instance)->space();
    std::string config = space.at(space.default_index()).to_text();
    if (*w.knob != 0) config = std::regex_replace(config, std::regex("tile_m=[0-9]+ tile_n=[0-9]+"), w.knob);
    std::vector<TrialRow> trials(1);
    trials[0].job_id = "j1";
    trials[0].task_index = i;
    trials[0].template_name = w.template_name;
    trials[0].template_version = find_template(w.template_name)->version();
    trials[0].config = config;
    ASSERT_TRUE((*store)->add_trials(trials).is_ok());
    std::vector<MeasureRecord> records(1);
    records[0].trial_id = trials[0].id;
    records[0].run_ns = {1000, 1001, 1002};
    records[0].environment = {.hardware = "another machine", .toolchain = "llvm", .harness_abi = 6};
    records[0].finished_at_us = 1'700'000'000'000'000;
    ASSERT_TRUE((*store)->add_records(records).is_ok());
  }
}

// What is tuned for one of the CPUs is in its variant and in no other. A program allocates for all of them.
TEST_F(SeveralCpus, EachIsAnsweredForItselfAndTheSizesAreThoseOfAll) {
  ASSERT_NO_FATAL_FAILURE(tune_for_avx2((shell_.folder() / "known.db").string()));
  const std::string said = build("--for avx2,avx512,nehalem", "known.db");
  EXPECT_THAT(said, HasSubstr("dense_avx2: 1.001 us"));
  EXPECT_THAT(said, HasSubstr("conv_avx512: not tuned itself"));
  EXPECT_THAT(said,
              HasSubstr("tuner submit net.json --target 'llvm -mcpu=x86-64-v4 -threads=1' --db known.db"));
  const std::string header = shell_.read("out/include/net.h");
  const auto number = [&](const std::string& macro) {
    std::smatch found;
    return std::regex_search(header, found, std::regex("#define " + macro + " ([0-9]+)"))
               ? std::stol(found[1])
               : -1;
  };
  EXPECT_GT(number("DENSE_AVX2_B_PACKED_BYTES"), number("DENSE_AVX512_B_PACKED_BYTES"));
  EXPECT_EQ(number("DENSE_B_PACKED_BYTES"), number("DENSE_AVX2_B_PACKED_BYTES"));
  EXPECT_GT(number("CONV_AVX2_WORKSPACE_BYTES"), number("CONV_AVX512_WORKSPACE_BYTES"));
  EXPECT_GE(number("CONV_WORKSPACE_BYTES"), number("CONV_AVX2_WORKSPACE_BYTES"));
  if (shell_.run("qemu-x86_64 --version").exit_code == 0) {
    EXPECT_EQ(run_on("Haswell"), "right: 1 1 dense_avx2\n");
  }
}

TEST_F(SeveralCpus, BadInputIsOneLine) {
  shell_.write("arm.json", R"({"op":"matmul","a":[7,33],"b":[33,64],
    "target":"llvm -mcpu=neoverse-n1 -mtriple=aarch64-linux-gnu"})");
  shell_.write("clash.json", R"([{"name":"f","op":"softmax","rows":7,"columns":19,"target":"cpu"},
    {"name":"f_avx2","op":"softmax","rows":8,"columns":19,"target":"cpu"}])");
  for (const auto& [words, says] : std::vector<std::pair<std::string, std::string>>{
           {"net.json --for avx3", "--for: expected avx2, avx512, amx, or"},
           {"net.json --for avx2 --target cpu", "expected one of --target and --for, found both"},
           {"arm.json --for avx2", "expected a target that is an x86-64 CPU"},
           {"clash.json --for avx2", "the C name f_avx2 (or its macro F_AVX2) is needed by"}}) {
    const CommandResult ran = shell_.run("tuner build -o refused --db none.db " + words);
    EXPECT_EQ(ran.exit_code, 2) << words << ran.err;
    EXPECT_EQ(std::ranges::count(ran.err, '\n'), 1) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr(says)) << words;
    EXPECT_FALSE(std::filesystem::exists(shell_.folder() / "refused"));
  }
}

}  // namespace
}  // namespace tuner
