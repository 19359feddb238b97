// The math of operators stands twice, written differently: here for templates, and in
// compiler_core/graph/operators for networks. Each is the other's check, on random shapes and inputs.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "compiler_core/oracle/oracle.h"
#include "templates/workload/workload.h"
#include "tests/random_seed.h"

namespace tuner {
namespace {

// A workload, and the operator of a network that does the same to the same operands in the same order.
struct Pair {
  Workload workload;
  std::string node;  // "Softmax(0){axis=-1}"
};

class Draw {
 public:
  explicit Draw(uint32_t seed) : random_(seed) {}

  Pair pair() {
    switch (number(0, 5)) {
      case 0:
        return matmul();
      case 1:
        return conv2d();
      case 2:
        return pool2d();
      case 3:
        return {SoftmaxWorkload{number(1, 9), number(1, 40)}, "Softmax(0){axis=-1}"};
      case 4:
        return {LayerNormWorkload{.rows = number(1, 9), .columns = number(1, 40), .epsilon = 0.015625},
                "LayerNormalization(0,1,2){axis=-1,epsilon=0.015625f}"};
      default:
        return reduce();
    }
  }
  double value() { return std::uniform_real_distribution<double>(-1, 1)(random_); }

 private:
  int64_t number(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  bool flag() { return number(0, 1) == 1; }

  // A product of matrices is a Gemm where one is transposed or there is a bias; else a MatMul, with or
  // without a batch.
  Pair matmul() {
    MatmulWorkload w{.m = number(1, 9), .n = number(1, 9), .k = number(1, 9)};
    if (flag()) {
      w.batch = number(1, 4);
      return {w, "MatMul(0,1)"};
    }
    w.transpose_a = flag(), w.transpose_b = flag(), w.bias = flag();
    return {w,
            str("Gemm(0,1", w.bias ? ",2" : "", "){transA=", w.transpose_a, ",transB=", w.transpose_b, "}")};
  }
  Pair conv2d() {
    Conv2dWorkload w{.batch = number(1, 2),
                     .in_height = number(5, 9),
                     .in_width = number(5, 9),
                     .kernel_height = number(1, 3),
                     .kernel_width = number(1, 3),
                     .stride = {number(1, 3), number(1, 3)},
                     .padding = {number(0, 2), number(0, 2), number(0, 2), number(0, 2)},
                     .dilation = {number(1, 2), number(1, 2)},
                     .groups = number(1, 3),
                     .bias = flag()};
    w.in_channels = w.groups * number(1, 3), w.out_channels = w.groups * number(1, 3);
    return {w, str("Conv(0,1", w.bias ? ",2" : "", "){dilations=", list(w.dilation), ",group=", w.groups,
                   ",pads=", list(w.padding), ",strides=", list(w.stride), "}")};
  }
  Pair pool2d() {
    Pool2dWorkload w{.batch = number(1, 2),
                     .channels = number(1, 3),
                     .in_height = number(3, 9),
                     .in_width = number(3, 9),
                     .kernel_height = number(1, 3),
                     .kernel_width = number(1, 3),
                     .stride = {number(1, 3), number(1, 3)},
                     .pooling = flag() ? Pooling::kMax : Pooling::kAverage};
    for (size_t side = 0; side < 4; ++side)
      w.padding[side] = number(0, (side % 2 == 0 ? w.kernel_height : w.kernel_width) - 1);
    const bool average = w.pooling == Pooling::kAverage;
    w.count_include_pad = average && flag();
    return {w, str(average ? "AveragePool" : "MaxPool", "(0){",
                   average ? str("count_include_pad=", w.count_include_pad, ",") : "", "kernel_shape=[",
                   w.kernel_height, ";", w.kernel_width, "],pads=", list(w.padding),
                   ",strides=", list(w.stride), "}")};
  }
  Pair reduce() {
    const ReduceWorkload w{number(1, 9), number(1, 40), static_cast<RowReduction>(number(0, 3))};
    const char* const names[] = {"ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean"};
    return {w, str(names[static_cast<size_t>(w.reduction)], "(0,int64[1](1)){keepdims=0}")};
  }

  template <size_t N>
  static std::string list(const std::array<int64_t, N>& numbers) {
    std::string text;
    for (const int64_t n : numbers) text += str(text.empty() ? "[" : ";", n);
    return text + "]";
  }

  std::mt19937_64 random_;
};

// The node with the operands of the workload's math.
std::string fragment_of(const Program& math, const std::string& node) {
  std::string in;
  for (size_t i = 0; i + 1 < math.args.size(); ++i) {
    std::string shape;
    for (const int64_t extent : math.args[i]->shape) shape += str(shape.empty() ? "" : ",", extent);
    in += str(i == 0 ? "in=" : ",", "float32[", shape, "]");
  }
  return in + " " + node;
}

TEST(TwoMaths, AWorkloadAnswersAsTheOperatorOfANetworkDoes) {
  for (const uint32_t seed : Seeds(/*fixed=*/1, /*rounds=*/300)) {
    Draw draw(seed);
    const auto [workload, node] = draw.pair();
    const Program math = workload.compute();
    const std::string text = fragment_of(math, node);
    const Result<Workload> network = program_from_text(text);
    ASSERT_TRUE(network.is_ok()) << text << ": " << network.message();

    std::vector<std::vector<double>> args(math.args.size());
    for (size_t i = 0; i + 1 < args.size(); ++i)
      for (int64_t n = math.args[i]->elements(); n > 0; --n) args[i].push_back(draw.value());
    std::vector<std::vector<double>> others = args;
    ASSERT_TRUE(interpret(math, args).is_ok()) << workload.key();
    ASSERT_TRUE(interpret(network->compute(), others).is_ok()) << text;
    ASSERT_EQ(args.back().size(), others.back().size()) << workload.key() << " and " << text;
    for (size_t i = 0; i < args.back().size(); ++i)
      ASSERT_NEAR(args.back()[i], others.back()[i], 1e-9 * std::max(1.0, std::fabs(others.back()[i])))
          << "out[" << i << "] of " << workload.key() << " and " << text;
  }
}

}  // namespace
}  // namespace tuner
