// The math of each workload, by the interpreter, against the sums written out as loops, and against the
// operator of networks that means the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <random>
#include <span>

#include "tests/templates/template_check.h"

namespace tuner {
namespace {

double activated(Activation a, double x) { return a == Activation::kRelu ? std::max(x, 0.0) : x; }

void expect_near(const std::vector<double>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 1e-9) << "out[" << i << "]";
}

std::vector<double> plain_matmul(const MatmulWorkload& w, const std::vector<std::vector<double>>& args) {
  std::vector<double> out;
  for (int64_t b = 0; b < w.batch; ++b)
    for (int64_t i = 0; i < w.m; ++i)
      for (int64_t j = 0; j < w.n; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < w.k; ++k) {
          const int64_t a_at = b * w.m * w.k + (w.transpose_a ? k * w.m + i : i * w.k + k);
          const int64_t b_at = b * w.k * w.n + (w.transpose_b ? j * w.k + k : k * w.n + j);
          sum += args[0][static_cast<size_t>(a_at)] * args[1][static_cast<size_t>(b_at)];
        }
        if (w.bias) sum += args[2][static_cast<size_t>(j)];
        out.push_back(activated(w.activation, sum));
      }
  return out;
}

std::vector<double> plain_conv2d(const Conv2dWorkload& w, const std::vector<std::vector<double>>& args) {
  const int64_t ic_group = w.in_channels / w.groups, oc_group = w.out_channels / w.groups;
  std::vector<double> out;
  for (int64_t n = 0; n < w.batch; ++n)
    for (int64_t oc = 0; oc < w.out_channels; ++oc)
      for (int64_t oh = 0; oh < w.out_height(); ++oh)
        for (int64_t ow = 0; ow < w.out_width(); ++ow) {
          double sum = 0;
          for (int64_t ic = 0; ic < ic_group; ++ic)
            for (int64_t kh = 0; kh < w.kernel_height; ++kh)
              for (int64_t kw = 0; kw < w.kernel_width; ++kw) {
                const int64_t h = oh * w.stride[0] + kh * w.dilation[0] - w.padding[0];
                const int64_t x = ow * w.stride[1] + kw * w.dilation[1] - w.padding[1];
                if (h < 0 || h >= w.in_height || x < 0 || x >= w.in_width) continue;
                const int64_t channel = oc / oc_group * ic_group + ic;
                sum += args[0][static_cast<size_t>(
                           ((n * w.in_channels + channel) * w.in_height + h) * w.in_width + x)] *
                       args[1][static_cast<size_t>(
                           ((oc * ic_group + ic) * w.kernel_height + kh) * w.kernel_width + kw)];
              }
          if (w.bias) sum += args[2][static_cast<size_t>(oc)];
          out.push_back(activated(w.activation, sum));
        }
  return out;
}

std::vector<double> plain_pool2d(const Pool2dWorkload& w, const std::vector<double>& data) {
  std::vector<double> out;
  for (int64_t c = 0; c < w.batch * w.channels; ++c)
    for (int64_t oh = 0; oh < w.out_height(); ++oh)
      for (int64_t ow = 0; ow < w.out_width(); ++ow) {
        double sum = 0, most = -INFINITY;
        int64_t count = 0;
        for (int64_t kh = 0; kh < w.kernel_height; ++kh)
          for (int64_t kw = 0; kw < w.kernel_width; ++kw) {
            const int64_t h = oh * w.stride[0] + kh - w.padding[0], x = ow * w.stride[1] + kw - w.padding[1];
            if (h < 0 || h >= w.in_height || x < 0 || x >= w.in_width) continue;
            const double value = data[static_cast<size_t>((c * w.in_height + h) * w.in_width + x)];
            sum += value;
            most = std::max(most, value);
            ++count;
          }
        if (w.count_include_pad) count = w.kernel_height * w.kernel_width;
        out.push_back(w.pooling == Pooling::kMax ? most : sum / static_cast<double>(count));
      }
  return out;
}

// What each operator on rows makes of row `row`; operands as Program::args.
using PlainRow = std::function<std::vector<double>(std::span<const double> row, int64_t i)>;

void expect_rows(const Workload& w, int64_t rows, int64_t columns, uint64_t seed,
                 const std::function<PlainRow(const std::vector<std::vector<double>>& args)>& plain) {
  SCOPED_TRACE(str(w.key(), ", seed ", seed));
  const auto args = oracle_arguments(w.compute(), seed);
  const PlainRow of_row = plain(args);
  std::vector<double> expected;
  for (int64_t i = 0; i < rows; ++i) {
    const std::vector<double> row =
        of_row(std::span(args[0]).subspan(static_cast<size_t>(i * columns), static_cast<size_t>(columns)), i);
    expected.insert(expected.end(), row.begin(), row.end());
  }
  expect_near(args.back(), expected);
}

const std::pair<int64_t, int64_t> kShapes[] = {{1, 1}, {1, 7}, {5, 1}, {3, 13}};

TEST(WorkloadMath, Pool2dIsTheMaximumOrTheAverage) {
  using Sides = std::array<int64_t, 4>;
  uint64_t seed = 1;
  for (const bool include_pad : {false, true})
    for (const Pooling pooling : {Pooling::kMax, Pooling::kAverage})
      for (const Sides& padding : {Sides{0, 0, 0, 0}, Sides{1, 2, 0, 1}, Sides{1, 1, 1, 1}})
        for (const int64_t stride : {1, 2}) {
          Pool2dWorkload w{.batch = 2, .channels = 3, .in_height = 7, .in_width = 8};
          w.kernel_height = 2;
          w.kernel_width = 3;
          w.stride = {stride, 3 - stride};
          w.padding = padding;
          w.pooling = pooling;
          w.count_include_pad = include_pad && pooling == Pooling::kAverage;
          SCOPED_TRACE(Workload(w).key());
          const auto args = oracle_arguments(Workload(w).compute(), seed++);
          expect_near(args.back(), plain_pool2d(w, args[0]));
        }
}

// Windows that reach beyond the image below and right alone: the last ones have 2, 2 and 1 elements of 4.
TEST(WorkloadMath, AnAverageIsOfWhatLiesInTheImageOnEachSide) {
  Pool2dWorkload w{.in_height = 2, .in_width = 2, .kernel_height = 2, .kernel_width = 2};
  w.padding = {0, 0, 1, 1};
  w.pooling = Pooling::kAverage;
  const auto averages = [&] {
    std::vector<std::vector<double>> args{{1, 2, 3, 4}, {}};
    EXPECT_TRUE(interpret(Workload(w).compute(), args).is_ok());
    return args[1];
  };
  EXPECT_EQ(averages(), (std::vector<double>{2.5, 3, 3.5, 4}));
  w.count_include_pad = true;
  EXPECT_EQ(averages(), (std::vector<double>{2.5, 1.5, 1.75, 1}));
}

// Channels in blocks are the same numbers elsewhere.
TEST(WorkloadMath, Pool2dOfABlockedLayout) {
  Pool2dWorkload w{.batch = 2, .channels = 8, .in_height = 5, .in_width = 4};
  w.kernel_height = 3;
  w.kernel_width = 2;
  w.padding = {1, 1, 1, 1};
  w.layout = "NCHW4c";
  const auto blocked = oracle_arguments(Workload(w).compute(), 1);
  const auto plain = [&](const std::vector<double>& from, int64_t pixels) {
    std::vector<double> to;
    for (int64_t c = 0; c < w.batch * w.channels; ++c)
      for (int64_t p = 0; p < pixels; ++p)
        to.push_back(from[static_cast<size_t>((c / 4 * pixels + p) * 4 + c % 4)]);
    return to;
  };
  expect_near(plain(blocked[1], w.out_height() * w.out_width()), plain_pool2d(w, plain(blocked[0], 20)));
}

// Returns an image of NHWC as one of NCHW.
std::vector<double> channels_first(const std::vector<double>& from, int64_t n, int64_t c, int64_t pixels) {
  std::vector<double> to;
  for (int64_t image = 0; image < n; ++image)
    for (int64_t channel = 0; channel < c; ++channel)
      for (int64_t p = 0; p < pixels; ++p)
        to.push_back(from[static_cast<size_t>((image * pixels + p) * c + channel)]);
  return to;
}

TEST(WorkloadMath, Pool2dOfChannelsLast) {
  Pool2dWorkload w{.batch = 2, .channels = 3, .in_height = 5, .in_width = 4};
  w.kernel_height = 3;
  w.kernel_width = 2;
  w.padding = {1, 1, 1, 0};
  w.layout = "NHWC";
  for (const Pooling pooling : {Pooling::kMax, Pooling::kAverage}) {
    w.pooling = pooling;
    const auto args = oracle_arguments(Workload(w).compute(), 1);
    expect_near(channels_first(args[1], 2, 3, w.out_height() * w.out_width()),
                plain_pool2d(w, channels_first(args[0], 2, 3, 20)));
  }
}

// The same numbers elsewhere: with padding, strides, groups, a residual of another layout than data.
TEST(WorkloadMath, Conv2dOfChannelsLast) {
  Conv2dWorkload w{.batch = 2, .in_channels = 4, .in_height = 5, .in_width = 6};
  w.out_channels = 6;
  w.kernel_height = 3;
  w.kernel_width = 2;
  w.stride = {2, 1};
  w.padding = {1, 0, 2, 1};
  w.groups = 2;
  w.residual = true;
  for (const auto& [in, out] :
       {std::pair("NHWC", "NHWC"), std::pair("NHWC", "NCHW"), std::pair("NCHW", "NHWC")}) {
    w.layout = in;
    w.out_layout = out;
    const auto args = oracle_arguments(Workload(w).compute(), 1);
    const int64_t pixels = w.out_height() * w.out_width();
    auto plain = args;
    if (w.layout == "NHWC") plain[0] = channels_first(args[0], 2, 4, 30);
    if (w.out_layout == "NHWC")
      for (const size_t i : {2, 3}) plain[i] = channels_first(args[i], 2, 6, pixels);
    const std::vector<double> expected = plain[3];
    plain[3].clear();
    Conv2dWorkload first = w;
    first.layout = first.out_layout = "NCHW";
    ASSERT_TRUE(interpret(Workload(first).compute(), plain).is_ok());
    expect_near(plain[3], expected);
  }
}

TEST(WorkloadMath, SoftmaxSumsToOneOverEachRow) {
  for (const auto& [rows, columns] : kShapes)
    expect_rows(SoftmaxWorkload{rows, columns}, rows, columns, 1, [](const auto&) {
      return [](std::span<const double> row, int64_t) {
        double sum = 0;
        for (const double x : row) sum += std::exp(x);
        std::vector<double> out;
        for (const double x : row) out.push_back(std::exp(x) / sum);
        return out;
      };
    });
}

TEST(WorkloadMath, SoftmaxOfLargeNumbersDoesNotOverflow) {
  std::vector<std::vector<double>> args = {{1000, 1000, -1000}, {}};
  const Status status = interpret(Workload(SoftmaxWorkload{1, 3}).compute(), args);
  ASSERT_TRUE(status.is_ok()) << status.message();
  expect_near(args.back(), {0.5, 0.5, 0});
}

TEST(WorkloadMath, LayerNormCentresAndScalesEachRow) {
  for (const auto& [rows, columns] : kShapes)
    expect_rows(LayerNormWorkload{.rows = rows, .columns = columns, .epsilon = 0.01}, rows, columns, 2,
                [](const auto& args) {
                  return [&args](std::span<const double> row, int64_t) {
                    const auto n = static_cast<double>(row.size());
                    double mean = 0, variance = 0;
                    for (const double x : row) mean += x / n;
                    for (const double x : row) variance += (x - mean) * (x - mean) / n;
                    std::vector<double> out;
                    for (size_t j = 0; j < row.size(); ++j)
                      out.push_back((row[j] - mean) / std::sqrt(variance + 0.01) * args[1][j] + args[2][j]);
                    return out;
                  };
                });
}

TEST(WorkloadMath, ReduceIsTheSumTheExtremesOrTheMean) {
  for (const auto& [rows, columns] : kShapes)
    for (const RowReduction r :
         {RowReduction::kSum, RowReduction::kMax, RowReduction::kMin, RowReduction::kMean})
      expect_rows(ReduceWorkload{rows, columns, r}, rows, columns, 3, [r](const auto&) {
        return [r](std::span<const double> row, int64_t) -> std::vector<double> {
          double sum = 0;
          for (const double x : row) sum += x;
          if (r == RowReduction::kMax) return {*std::ranges::max_element(row)};
          if (r == RowReduction::kMin) return {*std::ranges::min_element(row)};
          return {r == RowReduction::kMean ? sum / static_cast<double>(row.size()) : sum};
        };
      });
}

TEST(WorkloadMath, TransposeTurnsRowsIntoColumns) {
  for (const auto& [rows, columns] : kShapes) {
    const auto args = oracle_arguments(Workload(TransposeWorkload{rows, columns}).compute(), 4);
    std::vector<double> expected;
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t i = 0; i < rows; ++i) expected.push_back(args[0][static_cast<size_t>(i * columns + j)]);
    ASSERT_NO_FATAL_FAILURE(expect_near(args.back(), expected));
  }
}

TEST(WorkloadMath, ElementwiseAppliesThePartsThatAreWanted) {
  for (int form = 0; form < 16; ++form) {
    const ElementwiseWorkload w{
        .rows = 3,
        .columns = 5,
        .scale = (form & 1) != 0,
        .bias = (form & 2) != 0,
        .residual = (form & 4) != 0,
        .activation = (form & 8) != 0 ? Activation::kRelu : Activation::kNone,
    };
    expect_rows(w, 3, 5, 5, [w](const auto& args) {
      return [w, &args](std::span<const double> row, int64_t i) {
        std::vector<double> out;
        for (size_t j = 0; j < row.size(); ++j) {
          double x = row[j];
          size_t next = 1;
          if (w.scale) x *= args[next++][j];
          if (w.bias) x += args[next++][j];
          if (w.residual) x += args[next++][static_cast<size_t>(i) * row.size() + j];
          out.push_back(activated(w.activation, x));
        }
        return out;
      };
    });
  }
}

// Their formulas, as papers and ONNX have them, from numbers near 0 to those where exp overflows a float32.
TEST(WorkloadMath, ActivationsAreTheirFormulas) {
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  const auto gelu_tanh = [](double x) {
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  };
  const std::pair<Activation, std::function<double(double)>> kFormulas[] = {
      {Activation::kNone, [](double x) { return x; }},
      {Activation::kRelu, [](double x) { return x > 0 ? x : 0; }},
      {Activation::clip(-1.5F, 2), [](double x) { return std::clamp(x, -1.5, 2.0); }},
      {Activation::leaky(0.25F), [](double x) { return x > 0 ? x : 0.25 * x; }},
      {Activation::kSigmoid, sigmoid},
      {Activation::kSilu, [&](double x) { return x * sigmoid(x); }},
      {Activation::kHardSwish, [](double x) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); }},
      {Activation::kTanh, [](double x) { return std::tanh(x); }},
      {Activation::kGelu, [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }},
      {Activation::kGeluTanh, gelu_tanh}};
  EXPECT_EQ(std::size(kFormulas), static_cast<size_t>(kActivationKinds));
  std::vector<double> numbers = {0, -0.0, 1e-6, -1e-6, 100, -100};
  for (double x = -8; x <= 8; x += 0.375) numbers.push_back(x);
  for (const auto& [activation, formula] : kFormulas) {
    const ElementwiseWorkload w{.columns = std::ssize(numbers), .activation = activation};
    std::vector<std::vector<double>> args{numbers, {}};
    ASSERT_TRUE(interpret(Workload(w).compute(), args).is_ok());
    for (size_t i = 0; i < numbers.size(); ++i)
      EXPECT_NEAR(args[1][i], formula(numbers[i]), 1e-7 * (1e-3 + std::abs(numbers[i])))
          << activation_text(activation) << " of " << numbers[i];
  }
}

TEST(WorkloadMath, MatmulIsTheSum) {
  for (int form = 0; form < 32; ++form) {
    SCOPED_TRACE(form);
    MatmulWorkload w;
    w.m = 3;
    w.n = 5;
    w.k = 4;
    w.transpose_a = (form & 1) != 0;
    w.transpose_b = (form & 2) != 0;
    w.bias = (form & 4) != 0;
    w.activation = (form & 8) != 0 ? Activation::kRelu : Activation::kNone;
    w.batch = (form & 16) != 0 ? 2 : 1;
    const auto args = oracle_arguments(Workload(w).compute(), static_cast<uint64_t>(form));
    ASSERT_NO_FATAL_FAILURE(expect_near(args.back(), plain_matmul(w, args)));
  }
}

TEST(WorkloadMath, Conv2dIsTheSum) {
  for (int form = 0; form < 32; ++form) {
    SCOPED_TRACE(form);
    Conv2dWorkload w;
    w.in_channels = 4;
    w.in_height = 7;
    w.in_width = 6;
    w.out_channels = 6;
    w.kernel_height = 3;
    w.kernel_width = 2;
    w.bias = (form & 1) != 0;
    w.activation = (form & 2) != 0 ? Activation::kRelu : Activation::kNone;
    if ((form & 4) != 0) w.padding = {2, 0, 1, 3};
    if ((form & 8) != 0) w.stride = {2, 3};
    if ((form & 16) != 0) w.dilation = {1, 2};
    w.groups = 1 + form % 2;
    if (form % 3 == 2) w.out_channels = 2 * (w.groups = w.in_channels);  // depthwise, two outputs a channel
    w.batch = 1 + form % 3;
    const auto args = oracle_arguments(Workload(w).compute(), static_cast<uint64_t>(form));
    ASSERT_NO_FATAL_FAILURE(expect_near(args.back(), plain_conv2d(w, args)));
  }
}

// --- against compiler_core/graph/operators, where the math of operators stands a second time, written
// differently ---

// A workload, and the operator of a network that does the same to the same operands in the same order.
struct SameMath {
  Workload workload;
  std::string node;  // "Softmax(0){axis=-1}"
};

class SameMathDraw {
 public:
  explicit SameMathDraw(uint32_t seed) : random_(seed) {}

  SameMath pair() {
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
  SameMath matmul() {
    MatmulWorkload w{.m = number(1, 9), .n = number(1, 9), .k = number(1, 9)};
    if (flag()) {
      w.batch = number(1, 4);
      return {w, "MatMul(0,1)"};
    }
    w.transpose_a = flag(), w.transpose_b = flag(), w.bias = flag();
    return {w,
            str("Gemm(0,1", w.bias ? ",2" : "", "){transA=", w.transpose_a, ",transB=", w.transpose_b, "}")};
  }
  SameMath conv2d() {
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
  SameMath pool2d() {
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
  SameMath reduce() {
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

TEST(WorkloadMath, IsThatOfTheOperatorOfANetwork) {
  for (const uint32_t seed : Seeds(/*fixed=*/1, /*rounds=*/300)) {
    SameMathDraw draw(seed);
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
