// Damage to kernels that really come out of the CUDA templates: whatever place it hits, it must be caught, by
// the emulator's checks or by a wrong answer. The undamaged kernels report nothing. Each template has a case.
// Of each kind of damage a few places are tried in each case, spread over the kernel; in the long suite all
// (TUNER_TEST_ROUNDS).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "compiler_core/codegen/emulated_run.h"
#include "compiler_core/codegen/reference.h"
#include "compiler_core/lower/gpu.h"
#include "templates/cuda/cuda_templates.h"
#include "templates/schedule_template.h"
#include "templates/workload/tolerance.h"
#include "tests/random_seed.h"
#include "tests/templates/kernel_damage.h"

namespace tuner {
namespace {

using namespace tuner::testing;

// A config of a template, and what damage to its kernels must find.
struct Case {
  const char* name;
  const char* template_name;
  const char* key;
  std::map<std::string, int64_t> knobs;
  std::vector<std::string> kinds;  // each finds a place
  float scale = 1;                 // of the inputs, in every other row
  // Places, by kind and number, that are there to be safe: the answer stays right without them.
  std::map<std::string, std::set<int>> harmless = {};
  const char* target = "cuda -arch=sm_80";
  std::set<std::string> harmless_maps = {};  // of damaged_maps()
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.template_name << " for " << c.key; }

// A config of a task as kernels, its data and its answer.
struct Sample {
  GpuProgram program;
  std::vector<std::vector<float>> inputs;
  std::vector<std::vector<double>> answers;
  Tolerance tolerance;
};

// Multiples of 1 / 256 in [-1, 1), `scale` times as large in every other row.
std::vector<float> values(const Buffer& b, std::mt19937& random, float scale) {
  std::vector<float> result(static_cast<size_t>(b->elements()));
  const auto columns = static_cast<size_t>(b->shape.back());
  for (size_t i = 0; i < result.size(); ++i)
    result[i] = static_cast<float>(static_cast<int>(random() % 512) - 256) / 256.0f *
                (i / columns % 2 == 0 ? 1 : scale);
  return result;
}

// All of a byte.
std::vector<float> integers(int64_t n, std::mt19937& random, DType dtype) {
  std::vector<float> result(static_cast<size_t>(n));
  for (float& v : result)
    v = static_cast<float>(static_cast<int>(random() % 256) - (dtype == DType::kUInt8 ? 0 : 128));
  return result;
}

Sample sample(const Case& c) {
  const Workload workload = *workload_from_key(c.key);
  const Target target = *parse_target(c.target);
  const AnyTemplate* t = find_template(c.template_name);
  CHECK(t != nullptr) << c.template_name;
  const auto instance = t->apply(workload, target);
  CHECK(instance.is_ok()) << instance.message();
  const ConfigSpace& space = (*instance)->space();
  std::map<std::string, int64_t> config = space.at(space.default_index()).values();
  for (const auto& [knob, value] : c.knobs) config[knob] = value;
  const Result<Program> scheduled = (*instance)->instantiate(Config(config));
  CHECK(scheduled.is_ok()) << scheduled.message();
  const Result<GpuProgram> program = lower_gpu(*scheduled);
  CHECK(program.is_ok()) << program.message();
  Sample s{.program = *program, .inputs = {}, .answers = {}, .tolerance = tolerance_of(workload)};
  std::mt19937 random(7);
  const Program math = workload.compute();
  for (const Buffer& b : math.args)
    if (b->role != BufferRole::kOutput)
      s.inputs.push_back(is_float(b->dtype) ? values(b, random, c.scale)
                                            : integers(b->elements(), random, b->dtype));
  const auto answers = reference_answer(math, s.inputs);
  CHECK(answers.is_ok()) << answers.message();
  s.answers = *answers;
  return s;
}

// Empty when all is well, else what was found.
std::string findings(const Sample& s, const GpuProgram& program) {
  const Result<EmulatedRun> run = run_emulated(program, s.inputs);
  if (!run) return "refused: " + run.message();
  if (!run->faults.empty()) return run->faults[0];
  for (size_t o = 0; o < s.answers.size(); ++o)
    for (size_t i = 0; i < s.answers[o].size(); ++i) {
      const double expected = s.answers[o][i], found = static_cast<double>(run->outputs[o][i]);
      if (!(std::abs(found - expected) <= s.tolerance.absolute + s.tolerance.relative * std::abs(expected)))
        return str("element ", i, " is ", found, ", expected ", expected);
    }
  return {};
}

// Whether a place is one of `tried` that are spread over all; which ones, the seed says.
bool is_tried(size_t place, size_t places, size_t tried, uint32_t seed) {
  const size_t shifted = (place + seed) % places;
  return places <= tried || shifted * tried / places != (shifted + 1) * tried / places;
}

// Places of one kind of damage: some are tried, and caught.
void expect_caught(const Sample& s, const Case& c, const std::string& kind,
                   const std::vector<GpuProgram>& all, uint32_t seed) {
  const uint32_t tried = wanted_rounds(1);
  for (size_t place = 0; place < all.size(); ++place) {
    if (!is_tried(place, all.size(), tried, seed)) continue;
    const auto harmless = c.harmless.find(kind);
    const bool unseen = findings(s, all[place]).empty();
    EXPECT_EQ(unseen, harmless != c.harmless.end() && harmless->second.contains(static_cast<int>(place)))
        << kind << " went " << (unseen ? "unseen" : "seen, though it is listed as harmless") << ", number "
        << place << " in\n"
        << to_text(all[place]);
  }
}

// Damages places of every kind; returns how many of each kind there are.
std::map<std::string, size_t> expect_all_caught(const Sample& s, const Case& c) {
  const RandomSeed seed(0);
  EXPECT_EQ(findings(s, s.program), "") << to_text(s.program);
  std::map<std::string, size_t> places;
  const auto damage = [&](const std::string& kind, const std::vector<GpuProgram>& all) {
    expect_caught(s, c, kind, all, seed);
    if (!all.empty()) places[kind] = all.size();
  };
  for (const Kind& kind : kKinds) damage(kind.name, damaged(s.program, kind.damage));
  if (std::ranges::count(c.kinds, "dropped fetch") > 0)
    for (const Move& move : kMoves) damage(move.name, moved_late(s.program, move.moves));
  return places;
}

const std::vector<std::string> kTmaKinds = {"dropped barrier",
                                            "dropped intrinsic",
                                            "guard off by one",
                                            "missing predicate",
                                            "output stored twice",
                                            "loop too short",
                                            "dropped expect",
                                            "dropped fetch",
                                            "dropped await",
                                            "dropped begin of barriers",
                                            "expected twice",
                                            "fetched twice",
                                            "a row more expected",
                                            "a row less expected",
                                            "an arrival more",
                                            "an arrival less",
                                            "other parity",
                                            "parity stays",
                                            "other stage awaited",
                                            "other stage expected",
                                            "arrives at another stage",
                                            "fetched to another stage",
                                            "coordinates swapped",
                                            "box beside",
                                            "barrier late",
                                            "await late",
                                            "begin of barriers late"};

std::vector<std::string> tma_kinds_and(std::initializer_list<const char*> more) {
  std::vector<std::string> kinds = kTmaKinds;
  kinds.insert(kinds.end(), more.begin(), more.end());
  return kinds;
}

const std::vector<Case> kCases = {
    {.name = "MatmulWithDoubleBuffersAndSwizzle",
     .template_name = "matmul_cuda",
     .key = "v1 matmul b=1 m=37 n=41 k=50 ta=0 tb=0 bias=1 act=relu dtype=float32 const=none",
     .knobs = {{"layout_a", 1}, {"double_buffer", 1}, {"block_k", 8}, {"unroll_k", 8}},
     .kinds = {"dropped barrier", "guard off by one", "missing predicate", "wrong stage stored",
               "wrong stage read", "one-sided swizzle", "output stored twice", "loop too short"}},
    {.name = "ProductOnTensorCoresWithAPipeline",
     .template_name = "matmul_mma_cuda",
     .key = "v1 matmul b=1 m=37 n=40 k=168 ta=0 tb=0 bias=1 act=relu dtype=bfloat16 const=none",
     .knobs = {{"warps_m", 1},
               {"warps_n", 2},
               {"tiles_m", 2},
               {"tiles_n", 2},
               {"block_k", 32},
               {"stages", 3},
               {"ahead", 0},
               {"unroll_stages", 0},
               {"split_k", 1},
               {"group_m", 1}},
     .kinds = {"dropped barrier", "dropped intrinsic", "dropped wait", "dropped commit", "dropped copy",
               "waits for one group less", "registers of another tile", "transposed matrices",
               "copied zeros dropped", "one-sided swizzle", "output stored twice", "loop too short"}},
    {.name = "ProductOfWarpgroupsWithAPipeline",
     .template_name = "matmul_wgmma_cuda",
     .key = "v1 matmul b=1 m=37 n=60 k=168 ta=0 tb=0 bias=1 act=relu dtype=bfloat16 const=none",
     .knobs = {{"groups_m", 1},
               {"groups_n", 1},
               {"columns", 64},
               {"steps", 1},
               {"stages", 3},
               {"overlap", 0},
               {"tma", 0},
               {"split_k", 1},
               {"group_m", 1}},
     .kinds = {"dropped barrier", "dropped intrinsic", "dropped wait", "dropped commit", "dropped copy",
               "waits for one group less", "registers of another tile", "copied zeros dropped",
               "one-sided swizzle", "output stored twice", "loop too short"},
     .target = "cuda -arch=sm_90a"},
    {.name = "ProductOfWarpgroupsThatGoesOn",
     .template_name = "matmul_wgmma_cuda",
     .key = "v1 matmul b=1 m=37 n=60 k=232 ta=0 tb=0 bias=1 act=relu dtype=bfloat16 const=none",
     .knobs = {{"groups_m", 1},
               {"groups_n", 1},
               {"columns", 64},
               {"steps", 1},
               {"stages", 3},
               {"overlap", 1},
               {"tma", 0},
               {"split_k", 1},
               {"group_m", 1}},
     .kinds = {"dropped barrier", "dropped intrinsic", "dropped wait", "dropped commit", "dropped copy",
               "registers of another tile", "copied zeros dropped", "one-sided swizzle",
               "output stored twice", "loop too short"},
     .target = "cuda -arch=sm_90a"},
    {.name = "ProductOfWarpgroupsByTma",
     .template_name = "matmul_wgmma_cuda",
     .key = "v1 matmul b=1 m=37 n=60 k=328 ta=0 tb=1 bias=1 act=relu dtype=bfloat16 const=none",
     .knobs = {{"groups_m", 1},
               {"groups_n", 1},
               {"columns", 64},
               {"steps", 1},
               {"stages", 3},
               {"overlap", 0},
               {"tma", 1},
               {"split_k", 1},
               {"group_m", 1}},
     .kinds = kTmaKinds,
     // What is asked for meanwhile is for the stage that was done with a barrier earlier.
     .harmless = {{"await late", {0}}},
     .target = "cuda -arch=sm_90a"},
    // More columns than a piece, in rounds; all stages under way while products go on.
    {.name = "ProductOfWarpgroupsByTmaThatGoesOn",
     .template_name = "matmul_wgmma_cuda",
     .key = "v1 matmul b=1 m=70 n=120 k=328 ta=0 tb=0 bias=1 act=relu dtype=bfloat16 const=none",
     .knobs = {{"groups_m", 1},
               {"groups_n", 1},
               {"columns", 128},
               {"steps", 1},
               {"stages", 2},
               {"overlap", 1},
               {"tma", 1},
               {"split_k", 1},
               {"group_m", 1}},
     .kinds = kTmaKinds,
     // The last eight columns of sums are beyond out.
     .harmless = {{"loop too short", {3}}},
     .target = "cuda -arch=sm_90a"},
    // Two dimensions of the map for one of b; rows of a along m.
    {.name = "ProductOfWarpgroupsByTmaOfThreeDimensions",
     .template_name = "matmul_wgmma_cuda",
     .key = "v1 matmul b=1 m=72 n=128 k=328 ta=1 tb=0 bias=0 act=none dtype=float16 const=none",
     .knobs = {{"groups_m", 1},
               {"groups_n", 1},
               {"columns", 128},
               {"steps", 1},
               {"stages", 3},
               {"overlap", 1},
               {"tma", 1},
               {"split_k", 1},
               {"group_m", 1}},
     .kinds = kTmaKinds,
     .target = "cuda -arch=sm_90a",
     // Boxes end where the array does in these.
     .harmless_maps = {"map 1 of b: an element more in dimension 0",
                       "map 1 of b: an element more in dimension 2"}},
    // A constant that lies in memory as in the tile.
    {.name = "ProductOfWarpgroupsByTmaOfAConstant",
     .template_name = "matmul_wgmma_cuda",
     .key = "v1 matmul b=1 m=37 n=60 k=328 ta=0 tb=0 bias=0 act=none dtype=bfloat16 const=b",
     .knobs = {{"groups_m", 1},
               {"groups_n", 1},
               {"columns", 64},
               {"steps", 1},
               {"stages", 3},
               {"overlap", 1},
               {"tma", 1},
               {"split_k", 1},
               {"group_m", 1}},
     .kinds = tma_kinds_and({"one-sided swizzle", "row beside", "a row less fetched"}),
     .target = "cuda -arch=sm_90a"},
    // Warpgroups below each other, several pieces of k in a stage.
    {.name = "ProductOfTwoWarpgroupsByTma",
     .template_name = "matmul_wgmma_cuda",
     .key = "v1 matmul b=1 m=100 n=56 k=456 ta=0 tb=1 bias=0 act=none dtype=bfloat16 const=none",
     .knobs = {{"groups_m", 2},
               {"groups_n", 1},
               {"columns", 64},
               {"steps", 2},
               {"stages", 2},
               {"overlap", 1},
               {"tma", 1},
               {"split_k", 1},
               {"group_m", 1}},
     .kinds = kTmaKinds,
     // The last eight columns of sums are beyond out.
     .harmless = {{"loop too short", {8}}},
     .target = "cuda -arch=sm_90a"},
    {.name = "ProductOnTensorCoresWithAPipelineUnrolled",
     .template_name = "matmul_mma_cuda",
     .key = "v1 matmul b=1 m=37 n=40 k=168 ta=0 tb=0 bias=1 act=relu dtype=bfloat16 const=none",
     .knobs = {{"warps_m", 1},
               {"warps_n", 2},
               {"tiles_m", 2},
               {"tiles_n", 2},
               {"block_k", 32},
               {"stages", 3},
               {"ahead", 0},
               {"unroll_stages", 1},
               {"split_k", 1},
               {"group_m", 1}},
     .kinds = {"dropped barrier", "dropped intrinsic", "dropped wait", "dropped commit", "dropped copy",
               "waits for one group less", "registers of another tile", "transposed matrices",
               "copied zeros dropped", "one-sided swizzle", "output stored twice", "loop too short"}},
    {.name = "ProductOnTensorCoresWithFragmentsAhead",
     .template_name = "matmul_mma_cuda",
     .key = "v1 matmul b=1 m=37 n=40 k=168 ta=0 tb=0 bias=1 act=relu dtype=bfloat16 const=none",
     .knobs = {{"warps_m", 1},
               {"warps_n", 2},
               {"tiles_m", 2},
               {"tiles_n", 2},
               {"block_k", 32},
               {"stages", 3},
               {"ahead", 1},
               {"unroll_stages", 0},
               {"split_k", 1},
               {"group_m", 1}},
     .kinds = {"dropped barrier", "dropped intrinsic", "dropped wait", "dropped commit", "dropped copy",
               "waits for one group less", "registers of another tile", "transposed matrices",
               "copied zeros dropped", "one-sided swizzle", "output stored twice", "loop too short"},
     // Behind the last barrier of the loop nobody reads the tiles that the sums come to.
     .harmless = {{"dropped barrier", {2}}}},
    {.name = "ProductOfBytesInWords",
     .template_name = "matmul_dp4a_cuda",
     .key = "v1 matmul b=1 m=37 n=40 k=132 ta=0 tb=0 bias=1 act=relu dtype=int8 const=none",
     .knobs = {{"layout_a", 1}, {"double_buffer", 1}, {"block_k", 8}, {"unroll_k", 8}, {"split_k", 1}},
     .kinds = {"dropped barrier", "guard off by one", "missing predicate", "wrong stage stored",
               "wrong stage read", "one-sided swizzle", "output stored twice", "loop too short"}},
    // k along the rows of one operand, across those of the other: both ways to load fragments.
    {.name = "ProductOfFloat32OnTensorCores",
     .template_name = "matmul_tf32x3_cuda",
     .key = "v1 matmul b=1 m=37 n=40 k=100 ta=0 tb=0 bias=1 act=relu dtype=float32 const=none",
     .knobs = {{"warps_m", 1},
               {"warps_n", 2},
               {"tiles_m", 2},
               {"tiles_n", 2},
               {"block_k", 32},
               {"stages", 2},
               {"ahead", 0},
               {"split_k", 1},
               {"group_m", 1}},
     .kinds = {"dropped barrier", "dropped intrinsic", "dropped wait", "dropped commit", "dropped copy",
               "waits for one group less", "registers of another tile", "transposed matrices",
               "copied zeros dropped", "one-sided swizzle", "output stored twice", "loop too short"}},
    {.name = "ProductOfTf32WithAPipeline",
     .template_name = "matmul_tf32_cuda",
     .key = "v1 matmul b=1 m=37 n=40 k=100 ta=0 tb=0 bias=1 act=relu dtype=float32 allow_tf32=1 const=none",
     .knobs = {{"warps_m", 1},
               {"warps_n", 1},
               {"tiles_m", 1},
               {"tiles_n", 2},
               {"block_k", 16},
               {"stages", 3},
               {"ahead", 0},
               {"unroll_stages", 0},
               {"split_k", 1},
               {"group_m", 1}},
     .kinds = {"dropped barrier", "dropped intrinsic", "dropped wait", "dropped commit", "dropped copy",
               "waits for one group less", "registers of another tile", "transposed matrices",
               "copied zeros dropped", "one-sided swizzle", "output stored twice", "loop too short"}},
    {.name = "ConvolutionOnTensorCoresWithAPipeline",
     .template_name = "conv2d_nhwc_mma_cuda",
     .key = "v1 conv2d n=1 ic=16 ih=7 iw=6 oc=24 kh=3 kw=3 stride=1,1 pad=1,1,1,1 dil=1,1 groups=1 bias=1 "
            "act=relu dtype=bfloat16 layout=NHWC const=weight",
     .knobs = {{"warps_m", 2},
               {"warps_n", 1},
               {"tiles_m", 1},
               {"tiles_n", 2},
               {"block_k", 32},
               {"stages", 3},
               {"ahead", 0},
               {"unroll_stages", 0},
               {"split_k", 1},
               {"group_m", 1}},
     .kinds = {"dropped barrier", "dropped intrinsic", "dropped wait", "dropped commit", "dropped copy",
               "waits for one group less", "registers of another tile", "copied zeros dropped",
               "one-sided swizzle", "output stored twice", "loop too short"}},
    {.name = "ConvolutionOfTf32WithAPipeline",
     .template_name = "conv2d_nhwc_tf32_cuda",
     .key = "v1 conv2d n=1 ic=12 ih=7 iw=6 oc=20 kh=3 kw=3 stride=1,1 pad=1,1,1,1 dil=1,1 groups=1 bias=1 "
            "act=relu dtype=float32 allow_tf32=1 layout=NHWC const=none",
     .knobs = {{"warps_m", 1},
               {"warps_n", 1},
               {"tiles_m", 1},
               {"tiles_n", 2},
               {"block_k", 16},
               {"stages", 3},
               {"ahead", 0},
               {"unroll_stages", 0},
               {"split_k", 1},
               {"group_m", 1}},
     .kinds = {"dropped barrier", "dropped intrinsic", "dropped wait", "dropped commit", "dropped copy",
               "waits for one group less", "registers of another tile", "copied zeros dropped",
               "one-sided swizzle", "output stored twice", "loop too short"}},
    {.name = "ConvolutionOfFloat32OnTensorCores",
     .template_name = "conv2d_nhwc_tf32x3_cuda",
     .key = "v1 conv2d n=1 ic=10 ih=7 iw=7 oc=20 kh=3 kw=3 stride=2,1 pad=1,1,1,1 dil=1,1 groups=1 bias=1 "
            "act=relu dtype=float32 layout=NHWC const=weight",
     .knobs = {{"warps_m", 1},
               {"warps_n", 2},
               {"tiles_m", 2},
               {"tiles_n", 2},
               {"block_k", 32},
               {"stages", 2},
               {"ahead", 0},
               {"split_k", 1},
               {"group_m", 1}},
     .kinds = {"dropped barrier", "dropped intrinsic", "dropped wait", "dropped commit", "dropped copy",
               "waits for one group less", "registers of another tile", "copied zeros dropped",
               "one-sided swizzle", "output stored twice", "loop too short"}},
    {.name = "ConvolutionWithPaddingAndTails",
     .template_name = "conv2d_nchw_cuda",
     .key = "v1 conv2d n=1 ic=8 ih=9 iw=11 oc=10 kh=3 kw=3 stride=1,1 pad=1,1,1,1 dil=1,1 groups=1 bias=1 "
            "act=relu dtype=float32 layout=NCHW const=none",
     .knobs = {},
     .kinds = {"dropped barrier", "missing predicate", "output stored twice", "dropped shared store",
               "loop too short", "zero fill dropped", "stored before loaded"}},
    {.name = "ConvolutionWithDoubleBuffers",
     .template_name = "conv2d_nchw_cuda",
     .key = "v1 conv2d n=1 ic=8 ih=9 iw=11 oc=10 kh=3 kw=3 stride=1,1 pad=1,1,1,1 dil=1,1 groups=1 bias=1 "
            "act=relu dtype=float32 layout=NCHW const=none",
     .knobs = {{"double_buffer", 1}, {"tile_ic", 2}},
     .kinds = {"dropped barrier", "missing predicate", "output stored twice", "dropped shared store",
               "loop too short", "zero fill dropped", "wrong stage stored", "wrong stage read"}},
    {.name = "WeightsPackedAhead",
     .template_name = "conv2d_implicit_gemm_cuda",
     .key = "v1 conv2d n=1 ic=9 ih=6 iw=5 oc=11 kh=3 kw=3 stride=1,1 pad=1,1,1,1 dil=1,1 groups=1 bias=0 "
            "act=none dtype=float32 layout=NCHW const=weight",
     .knobs = {},
     .kinds = {"dropped barrier", "dropped output store", "output stored twice"}},
    {.name = "ImplicitProductWithDoubleBuffers",
     .template_name = "conv2d_implicit_gemm_cuda",
     .key = "v1 conv2d n=1 ic=9 ih=6 iw=5 oc=11 kh=3 kw=3 stride=1,1 pad=1,1,1,1 dil=1,1 groups=1 bias=1 "
            "act=relu dtype=float32 layout=NCHW const=none",
     .knobs = {{"double_buffer", 1}, {"unroll_stages", 0}},
     .kinds = {"dropped barrier", "missing predicate", "wrong stage stored", "wrong stage read",
               "output stored twice", "loop too short"}},
    {.name = "DepthwiseConvolution",
     .template_name = "depthwise_conv2d_nchw_cuda",
     .key = "v1 conv2d n=1 ic=3 ih=9 iw=11 oc=6 kh=3 kw=3 stride=1,1 pad=1,1,1,1 dil=1,1 groups=3 bias=1 "
            "act=relu dtype=float32 layout=NCHW const=none",
     .knobs = {{"shared", 0}},
     .kinds = {"guard off by one", "missing predicate", "dropped register store", "dropped output store",
               "output stored twice", "loop too short", "zero fill dropped", "loaded elsewhere"}},
    {.name = "DepthwiseConvolutionThroughSharedMemory",
     .template_name = "depthwise_conv2d_nchw_cuda",
     .key = "v1 conv2d n=1 ic=3 ih=9 iw=11 oc=6 kh=3 kw=3 stride=1,1 pad=1,1,1,1 dil=1,1 groups=3 bias=1 "
            "act=relu dtype=float32 layout=NCHW const=none",
     .knobs = {{"shared", 1}},
     .kinds = {"guard off by one", "missing predicate", "dropped register store", "dropped output store",
               "output stored twice", "loop too short", "dropped barrier", "dropped shared store",
               "shared read elsewhere"}},
    // Values more than 88 apart: softmax of others does not depend on the maximum that is subtracted, for exp
    // does not overflow. Many such rows, so that every part of a row holds the maximum of one. In the others
    // what is beyond the row adds to the sum.
    {.name = "SoftmaxReducedByShufflesAndSharedMemory",
     .template_name = "softmax_cuda",
     .key = "v1 softmax rows=48 columns=301 dtype=float32",
     .knobs = {{"threads", 64}},
     .kinds = {"dropped barrier", "dropped intrinsic", "dropped output store"},
     .scale = 32768},
    {.name = "LayerNormOfRowsInRegisters",
     .template_name = "layer_norm_cuda",
     .key = "v1 layer_norm rows=5 columns=259 eps=1e-05 dtype=float32",
     .knobs = {{"threads", 64}, {"rows", 1}, {"kept", 0}},
     .kinds = {"dropped barrier", "dropped intrinsic", "dropped register store", "dropped output store",
               "guard off by one", "missing predicate", "zero fill dropped", "mask dropped",
               "loaded elsewhere", "shared read elsewhere", "loop too short"}},
    {.name = "LayerNormOfRowsInSharedMemory",
     .template_name = "layer_norm_cuda",
     .key = "v1 layer_norm rows=5 columns=253 eps=1e-05 dtype=float32",
     .knobs = {{"threads", 64}, {"rows", 1}, {"kept", 1}, {"loads", 2}},
     .kinds = {"dropped barrier", "dropped intrinsic", "dropped register store", "dropped output store",
               "guard off by one", "missing predicate", "mask dropped", "loaded elsewhere",
               "shared read elsewhere", "loop too short", "dropped shared store"}},
    {.name = "ReductionInPartsOfRows",
     .template_name = "reduce_cuda",
     .key = "v1 reduce rows=3 columns=4101 reduction=sum dtype=float32",
     .knobs = {{"threads", 64}, {"splits", 2}},
     .kinds = {"dropped barrier", "dropped intrinsic", "dropped output store", "loaded elsewhere",
               "shared read elsewhere", "zero fill dropped"},
     // Of a block only the first thread stores what all combine, and of a warp the rows that there are.
     .harmless = {{"dropped register store", {5}}, {"guard off by one", {2}}, {"missing predicate", {4}}}},
    {.name = "TransposeThroughSharedMemory",
     .template_name = "transpose_cuda",
     .key = "v1 transpose rows=67 columns=70 dtype=float32",
     .knobs = {},
     .kinds = {"dropped barrier", "guard off by one", "missing predicate", "dropped shared store",
               "dropped output store", "output stored twice", "stored before loaded", "zero fill dropped",
               "loaded elsewhere", "shared read elsewhere"},
     // Zeros beyond the matrix would be stored in the tile, and read by nobody.
     .harmless = {{"guard off by one", {0}}, {"missing predicate", {0}}}},
    {.name = "ElementsInTwoRounds",
     .template_name = "elementwise_cuda",
     .key = "v1 elementwise rows=9 columns=122 scale=1 bias=1 residual=1 act=relu dtype=float32",
     .knobs = {{"threads", 128}, {"loads", 2}},
     .kinds = {"guard off by one", "missing predicate", "dropped register store", "dropped output store",
               "output stored twice", "zero fill dropped", "loaded elsewhere", "loop too short"}},
    {.name = "DepthwiseConvolutionOfChannelsLast",
     .template_name = "depthwise_conv2d_nhwc_cuda",
     .key = "v1 conv2d n=1 ic=12 ih=7 iw=9 oc=12 kh=3 kw=3 stride=1,1 pad=1,1,1,1 dil=1,1 groups=12 bias=1 "
            "act=relu "
            "dtype=float32 layout=NHWC const=weight",
     .knobs = {},
     .kinds = {"guard off by one", "missing predicate", "dropped register store", "dropped output store",
               "output stored twice", "zero fill dropped", "loaded elsewhere", "loop too short"}},
    {.name = "WindowsOfAPool",
     .template_name = "pool2d_cuda",
     .key = "v1 pool2d n=1 c=3 ih=9 iw=7 kh=3 kw=2 stride=2,1 pad=1,1,1,0 pooling=average dtype=float32 "
            "layout=NCHW",
     .knobs = {{"threads", 64}},
     .kinds = {"guard off by one", "missing predicate", "dropped register store", "dropped output store",
               "output stored twice", "loop too short"}},
    {.name = "RowsByTheirRootMeanSquare",
     .template_name = "rms_norm_cuda",
     .key = "v1 rms_norm rows=5 columns=259 eps=1e-05 dtype=float32",
     .knobs = {{"threads", 64}},
     .kinds = {"dropped intrinsic", "guard off by one", "missing predicate", "dropped output store",
               "output stored twice"}},
    {.name = "ConvolutionInGroups",
     .template_name = "conv2d_groups_cuda",
     .key = "v1 conv2d n=1 ic=6 ih=7 iw=5 oc=9 kh=3 kw=3 stride=1,1 pad=1,1,1,1 dil=1,1 groups=3 bias=1 "
            "act=relu dtype=float32 layout=NCHW const=none",
     .knobs = {{"threads", 64}},
     .kinds = {"guard off by one", "missing predicate", "dropped register store", "dropped output store",
               "output stored twice", "loop too short"}},
    {.name = "FragmentOfSeveralKernels",
     .template_name = "program_cuda",
     .key = "v1 program in=float32[3,5,70] Softmax(0){axis=1} ReduceMax(1,int64[1](2))",
     .knobs = {{"threads", 64}},
     .kinds = {"guard off by one", "missing predicate", "dropped output store", "output stored twice",
               "loop too short"}},
};

class CudaMutation : public ::testing::TestWithParam<Case> {};

TEST_P(CudaMutation, IsCaughtWhereverItIs) {
  const Case& c = GetParam();
  const std::map<std::string, size_t> places = expect_all_caught(sample(c), c);
  for (const std::string& kind : c.kinds) EXPECT_TRUE(places.contains(kind)) << kind << " found no place";
}
INSTANTIATE_TEST_SUITE_P(Kernels, CudaMutation, ::testing::ValuesIn(kCases),
                         [](const ::testing::TestParamInfo<Case>& c) { return c.param.name; });

// A wrong map brings other elements, zeros in the place of some, or another number of bytes.
TEST_P(CudaMutation, OfTensorMapsIsCaught) {
  const Case& c = GetParam();
  if (std::ranges::count(c.kinds, "dropped fetch") == 0) GTEST_SKIP() << "has no tensor maps";
  const Sample s = sample(c);
  const std::vector<DamagedMap> all = damaged_maps(s.program);
  size_t maps = 0;
  for (const GpuKernel& kernel : s.program.kernels) maps += kernel.tensor_maps.size();
  EXPECT_GE(all.size(), 13 * std::max<size_t>(maps, 1));
  const RandomSeed seed(0);
  const size_t tried = size_t{8} * wanted_rounds(1);
  for (size_t k = 0; k < all.size(); ++k)
    if (is_tried(k, all.size(), tried, seed)) {
      EXPECT_EQ(findings(s, all[k].program).empty(), c.harmless_maps.contains(all[k].what)) << all[k].what;
    }
}

// But for users' kernels: those are texts, which the emulator does not run. tuner/verify_on_host damages
// them.
TEST(CudaMutationCases, EveryTemplateHasOne) {
#define TUNER_NAME(name) #name,
  for (const std::string name : {TUNER_CUDA_TEMPLATES(TUNER_NAME)})
    EXPECT_TRUE(name == "source_kernel_cuda" ||
                std::ranges::any_of(kCases, [&](const Case& c) { return c.template_name == name; }))
        << name << " has no case in this file: damage to its kernels may go unseen";
#undef TUNER_NAME
}

TEST(CudaMutationCases, WeightsPackedAheadAreDamagedToo) {
  const Case& c = *std::ranges::find(kCases, std::string("WeightsPackedAhead"), &Case::name);
  const Sample s = sample(c);
  ASSERT_NE(s.program.packing, nullptr);
  EXPECT_EQ(damaged(packing_alone(*s.program.packing), store_elsewhere).size(), 1u);
}

}  // namespace
}  // namespace tuner
