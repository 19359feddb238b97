// Printed CUDA text gives right values: compiled for this host and run, kernels written by hand.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "tests/compiler_core/gpu_kernels.h"
#include "tests/compiler_core/host_cuda.h"

namespace tuner::testing {
namespace {

Target target() { return *parse_target("cuda -arch=sm_90a"); }

std::vector<float> random_values(int64_t n, uint64_t seed) {
  std::mt19937_64 rng(seed);
  std::vector<float> values;
  for (int64_t i = 0; i < n; ++i)
    values.push_back(static_cast<float>(rng() >> 40) / static_cast<float>(1 << 23) - 1);
  return values;
}

void expect_product(const MatmulTile& p, const std::vector<std::vector<float>>& args) {
  for (int64_t i = 0; i < p.m; i += 7)
    for (int64_t j = 0; j < p.n; j += 3) {
      double sum = 0;
      for (int64_t k = 0; k < p.k; ++k)
        sum += static_cast<double>(args[0][static_cast<size_t>(i * p.k + k)]) *
               args[1][static_cast<size_t>(k * p.n + j)];
      ASSERT_NEAR(args[2][static_cast<size_t>(i * p.n + j)], sum, 1e-4) << "out[" << i << ", " << j << "]";
    }
}

// dst[i] = src[(i*3 - 20) mod 40 as floor says] + floor((25 - i) / 7): indices below zero.
GpuProgram floors() {
  const Buffer x = input("x", {40}), y = output("y", {60});
  const Var i = make_var("i");
  GpuKernel k{.name = "floors"};
  k.block = {64, 1, 1}, k.thread_vars[0] = i;
  k.params = {x, y};
  const Expr quotient = cast(DType::kFloat32, floor_div(Expr(25) - i, 7));
  k.body =
      make_if(Expr(i) < Expr(60), make_store(y, {i}, load(x, {floor_mod(Expr(i) * 3 - 20, 40)}) + quotient));
  return program_of(std::move(k));
}

// All scalar functions, and an infinity.
GpuProgram functions() {
  const Buffer x = input("x", {32}), y = output("y", {12, 32});
  const Var i = make_var("i");
  const Expr v = load(x, {i});
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<Expr> values = {unary(UnaryOp::kExp, v),
                                    unary(UnaryOp::kTanh, v),
                                    unary(UnaryOp::kErf, v),
                                    unary(UnaryOp::kSqrt, unary(UnaryOp::kAbs, v)),
                                    unary(UnaryOp::kRsqrt, unary(UnaryOp::kAbs, v) + float_imm(0.5)),
                                    unary(UnaryOp::kLog, unary(UnaryOp::kAbs, v) + float_imm(1)),
                                    unary(UnaryOp::kFloor, v * float_imm(10)),
                                    unary(UnaryOp::kRound, v * float_imm(10)),
                                    unary(UnaryOp::kTf32, v),
                                    max(v, float_imm(-infinity)),
                                    min(unary(UnaryOp::kNeg, v), float_imm(0.25)),
                                    v - (v - float_imm(1.5e-3)) / (v + float_imm(3))};
  std::vector<Stmt> stores;
  for (size_t n = 0; n < values.size(); ++n)
    stores.push_back(make_store(y, {static_cast<int>(n), i}, values[n]));
  GpuKernel k{.name = "functions"};
  k.block = {32, 1, 1}, k.thread_vars[0] = i;
  k.params = {x, y};
  k.body = make_seq(std::move(stores));
  return program_of(std::move(k));
}

TEST(CodegenCudaValues, TextRunsRight) {
  HostCuda host;
  const std::vector<int64_t> sizes = {1000, 1002, 7};
  const std::vector<MatmulTile> tiles = {
      {.m = 128, .n = 128, .k = 32},
      {.m = 128, .n = 192, .k = 32, .b_layout = "pad:4"},
      {.m = 128, .n = 128, .k = 48, .double_buffer = true},
      {.m = 128, .n = 128, .k = 32, .b_layout = "xor:4,8"},
      {.m = 128, .n = 128, .k = 32, .double_buffer = true, .b_layout = "xor:4,4"}};
  for (const int64_t n : sizes) host.add(elementwise(n, /*lanes=*/4, /*threads=*/64), target());
  for (const MatmulTile& tile : tiles) host.add(tiled_matmul(tile), target());
  const int sum = host.add(row_sum(9, 96), target());
  const int floor = host.add(floors(), target()), scalar = host.add(functions(), target());
  bool is_text = false;
  const Status built = host.build(&is_text);
  if (!built.is_ok() && !is_text) GTEST_SKIP() << built.message();
  ASSERT_TRUE(built.is_ok()) << built.message();

  int number = 0;
  for (const int64_t n : sizes) {
    std::vector<std::vector<float>> args = {random_values(n, 1), std::vector<float>(static_cast<size_t>(n))};
    host.run(number++, args);
    for (size_t i = 0; i < args[1].size(); ++i)
      ASSERT_EQ(args[1][i], std::max(args[0][i], 0.0f)) << n << ": " << i;
  }
  for (const MatmulTile& tile : tiles) {
    SCOPED_TRACE(str("layout \"", tile.b_layout, "\", double buffer ", tile.double_buffer));
    std::vector<std::vector<float>> args = {random_values(tile.m * tile.k, 2),
                                            random_values(tile.k * tile.n, 3),
                                            std::vector<float>(static_cast<size_t>(tile.m * tile.n))};
    host.run(number++, args);
    expect_product(tile, args);
  }
  std::vector<std::vector<float>> rows = {random_values(9 * 96, 4), std::vector<float>(9)};
  host.run(sum, rows);
  for (size_t r = 0; r < 9; ++r) {
    double total = 0;
    for (size_t c = 0; c < 96; ++c) total += rows[0][r * 96 + c];
    EXPECT_NEAR(rows[1][r], total, 1e-4);
  }
  std::vector<std::vector<float>> shifted = {random_values(40, 5), std::vector<float>(60)};
  host.run(floor, shifted);
  for (int i = 0; i < 60; ++i) {
    const int from = ((i * 3 - 20) % 40 + 40) % 40;
    EXPECT_EQ(shifted[1][static_cast<size_t>(i)],
              shifted[0][static_cast<size_t>(from)] + std::floor(static_cast<float>(25 - i) / 7))
        << i;
  }
  std::vector<std::vector<float>> scalars = {random_values(32, 6), std::vector<float>(384)};
  host.run(scalar, scalars);
  for (size_t i = 0; i < 32; ++i) {
    const float v = scalars[0][i];
    const float expected[] = {std::exp(v),
                              std::tanh(v),
                              std::erf(v),
                              std::sqrt(std::abs(v)),
                              1 / std::sqrt(std::abs(v) + 0.5f),
                              std::log(std::abs(v) + 1),
                              std::floor(v * 10),
                              std::nearbyint(v * 10),
                              std::bit_cast<float>(std::bit_cast<uint32_t>(v) & 0xffffe000u),
                              v,
                              std::min(-v, 0.25f),
                              v - (v - 1.5e-3f) / (v + 3)};
    for (size_t n = 0; n < 12; ++n)
      EXPECT_NEAR(scalars[1][n * 32 + i], expected[n], 1e-5) << "function " << n;
  }
}

}  // namespace
}  // namespace tuner::testing
