// The inner loops of default configs on AArch64: multiply-adds take lanes of vectors, nothing is broadcast by
// an instruction of its own, nothing is spilled, and there are few instructions beside the multiply-adds;
// products of small matrices take whole vectors. Prints how many a multiply-add, against the ideal: each
// vector is loaded once a term, in pairs, and the loop costs nothing.
#include <gtest/gtest.h>

#include <cstdio>
#include <regex>

#include "compiler_core/codegen/compile.h"
#include "templates/registry/registry.h"
#include "tuner/study/inner_loop.h"

namespace tuner {
namespace {

// Of a tile of so many rows and vectors of columns, which takes `lanes` rows of a vector (or terms of a row)
// at once.
constexpr double ideal_of_tile(double rows, double vectors, double lanes = 4) {
  return 1 + (rows / lanes + vectors) / 2 / (rows * vectors);
}

struct Case {
  const char* name;
  std::string schedule_template;
  Workload workload;
  double ideal;
  // One operand of the multiply-adds is a lane; or the product of matrices.
  const char* by_lane = R"(fmla\s+v\d+\.4s, v\d+\.4s, v\d+\.s\[)";
  bool needs_dots = false;
};

// Of blocks of small matrices, `down` x `across` of them.
constexpr double ideal_of_block(double down, double across) {
  return 1 + (down + across) / 2 / (down * across);
}

MatmulWorkload matmul(int64_t m, int64_t n, int64_t k, DType dtype = DType::kFloat32) {
  MatmulWorkload w;
  w.m = m, w.n = n, w.k = k;
  w.dtype = dtype;
  w.constant = {"b"};
  return w;
}

Conv2dWorkload convolution(int64_t channels, int64_t size, int64_t kernel, const char* layout = "NCHW",
                           int64_t stride = 1, int64_t groups = 1) {
  Conv2dWorkload w;
  w.in_channels = w.out_channels = channels;
  w.in_height = w.in_width = size;
  w.kernel_height = w.kernel_width = kernel;
  w.stride = {stride, stride};
  const int64_t pad = kernel / 2;
  w.padding = {pad, pad, pad, pad};
  w.groups = groups;
  w.layout = w.out_layout = layout;
  w.constant = {"weight"};
  return w;
}

std::vector<Case> cases() {
  constexpr double kBest = ideal_of_tile(8, 3);
  std::vector<Case> all = {
      {"matmul 512 x 512 x 512", "matmul_cpu", matmul(512, 512, 512), kBest},
      {"matmul 128 x 768 x 768", "matmul_cpu", matmul(128, 768, 768), kBest},
      {"matmul 1 x 1000 x 1024", "matmul_cpu", matmul(1, 1000, 1024), ideal_of_tile(1, 8)},
      {"matmul 384 x 384 x 384 float16", "matmul_cpu", matmul(384, 384, 384, DType::kFloat16), kBest},
      {"conv2d 3x3, 64 x 56 x 56", "conv2d_direct_cpu", convolution(64, 56, 3), kBest},
      {"conv2d 3x3, 256 x 14 x 14", "conv2d_direct_cpu", convolution(256, 14, 3), kBest},
      {"conv2d 3x3, 64 x 56 x 56 /2", "conv2d_direct_cpu", convolution(64, 56, 3, "NCHW", 2), kBest},
      {"conv2d 3x3, blocked", "conv2d_direct_cpu", convolution(64, 56, 3, "NCHW16c"), ideal_of_tile(5, 4)},
      {"conv2d 3x3, Winograd", "conv2d_winograd4_cpu", convolution(64, 56, 3), ideal_of_tile(5, 4)},
      {"conv2d 1x1, 256 x 14 x 14", "conv2d_1x1_channels_cpu", convolution(256, 14, 1), kBest},
      {"conv2d 1x1, 256 x 14 x 14", "conv2d_1x1_pixels_cpu", convolution(256, 14, 1), kBest},
      {"conv2d 1x1, blocked", "conv2d_1x1_channels_cpu", convolution(256, 14, 1, "NCHW16c"),
       ideal_of_tile(5, 4)},
      // A vector of pixels is loaded for each tap, one of three pairs them up.
      {"depthwise 3x3, 32 x 56 x 56", "depthwise_conv2d_cpu", convolution(32, 56, 3, "NCHW", 1, 32),
       2 - 1.0 / 6},
      // 14 pixels: 16 vectors of them and three of weights in 42 multiply-adds; no two of them lie side by
      // side.
      {"depthwise 3x3, blocked", "depthwise_conv2d_cpu", convolution(32, 56, 3, "NCHW16c", 1, 32),
       1 + (16 + 3) / 42.0, /*by_lane=*/""},
      // 10 x 8 sums, two more of the signed side, and four rows at once made signed.
      {"matmul 384 x 384 x 384 int8", "matmul_dot_cpu", matmul(384, 384, 384, DType::kInt8),
       1 + ((10 / 4.0 + 2) / 2 + 10 / 4.0) / 22, R"(sdot\s+v\d+\.4s, v\d+\.16b, v\d+\.4b\[)",
       /*needs_dots=*/true}};
  return all;
}

// Products of matrices in vectors (i8mm, bf16).
std::vector<Case> matrix_cases() {
  constexpr const char* kBytes = R"(usmmla\s+v\d+\.4s, v\d+\.16b, v\d+\.16b)";
  constexpr const char* kHalves = R"(bfmmla\s+v\d+\.4s, v\d+\.8h, v\d+\.8h)";
  Conv2dWorkload bytes = convolution(64, 56, 3, "NCHW8c"), narrow = convolution(256, 14, 1, "NCHW16c"),
                 halves = convolution(64, 56, 3);
  bytes.dtype = narrow.dtype = DType::kInt8;
  halves.dtype = DType::kBFloat16;
  const double best = ideal_of_block(4, 4);
  return {
      {"matmul 512 x 512 x 512 int8", "matmul_tile_cpu", matmul(512, 512, 512, DType::kInt8), best, kBytes},
      {"matmul 512 x 512 x 512 bfloat16", "matmul_tile_cpu", matmul(512, 512, 512, DType::kBFloat16), best,
       kHalves},
      {"conv2d 3x3, NCHW8c int8", "conv2d_tile_cpu", bytes, best, kBytes},
      {"conv2d 1x1, NCHW16c int8", "conv2d_tile_cpu", narrow, ideal_of_block(2, 8), kBytes},
      {"conv2d 3x3, NCHW bfloat16", "conv2d_tile_cpu", halves, best, kHalves}};
}

std::string default_assembly(const Case& c, const Target& target) {
  const auto serving = templates_for(c.workload, target);
  EXPECT_TRUE(serving.is_ok()) << serving.message();
  for (const AnyTemplate* t : *serving) {
    if (t->name() != c.schedule_template) continue;
    const auto instance = t->apply(c.workload, target);
    EXPECT_TRUE(instance.is_ok()) << instance.message();
    const ConfigSpace& space = (*instance)->space();
    const Result<Program> program = (*instance)->instantiate(space.at(space.default_index()));
    EXPECT_TRUE(program.is_ok()) << program.message();
    const Result<std::string> assembly = emit_asm(*program, target);
    EXPECT_TRUE(assembly.is_ok()) << assembly.message();
    return *assembly;
  }
  ADD_FAILURE() << c.schedule_template << " does not serve " << c.workload.key();
  return {};
}

bool found(const std::string& text, const char* pattern) {
  return std::regex_search(text, std::regex(pattern));
}

void expect_tight_loops(const char* cpu, const std::vector<Case>& cases) {
  const Target target = *parse_target(str("llvm -mcpu=", cpu, " -mtriple=aarch64-linux-gnu"));
  std::printf("%-32s %-24s %9s %6s %6s %10s %6s\n", cpu, "template", "mul-adds", "others", "loads",
              "a mul-add", "ideal");
  for (const Case& c : cases) {
    if (c.needs_dots && std::string_view(cpu) == "cortex-a72") continue;
    SCOPED_TRACE(str(c.name, " ", c.schedule_template));
    const std::string assembly = default_assembly(c, target);
    const InnerLoop loop = busiest_inner_loop(assembly);
    ASSERT_GT(loop.multiply_adds, 0);
    const double each = static_cast<double>(loop.instructions) / loop.multiply_adds;
    std::printf("%-32s %-24s %9d %6d %6d %10.2f %6.2f\n", c.name, c.schedule_template.c_str(),
                loop.multiply_adds, loop.instructions - loop.multiply_adds, loop.loads, each, c.ideal);
    EXPECT_EQ(loop.broadcasts, 0);
    EXPECT_EQ(loop.spills, 0);
    EXPECT_FALSE(found(assembly, R"(\bq\d+.*Folded (Spill|Reload))"));
    EXPECT_TRUE(found(assembly, c.by_lane));
    // Addresses and the loop itself cost some instructions.
    EXPECT_LE(each, 1.4 * c.ideal);
  }
}

class Aarch64InnerLoops : public ::testing::TestWithParam<const char*> {};

TEST_P(Aarch64InnerLoops, OfDefaultsTakeLanesAndSpillNothing) { expect_tight_loops(GetParam(), cases()); }

TEST(Aarch64MatrixLoops, OfDefaultsAreLoadsAndProducts) {
  for (const char* cpu : {"neoverse-n2", "neoverse-v1"}) expect_tight_loops(cpu, matrix_cases());
}

INSTANTIATE_TEST_SUITE_P(Cores, Aarch64InnerLoops, ::testing::Values("cortex-a72", "neoverse-n1"),
                         [](const auto& info) {
                           std::string name = info.param;
                           name[name.find('-')] = '_';
                           return name;
                         });

}  // namespace
}  // namespace tuner
