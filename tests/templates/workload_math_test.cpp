// The math of each workload, by the interpreter, against the sums written out as loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

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
    w.batch = 1 + form % 3;
    const auto args = oracle_arguments(Workload(w).compute(), static_cast<uint64_t>(form));
    ASSERT_NO_FATAL_FAILURE(expect_near(args.back(), plain_conv2d(w, args)));
  }
}

}  // namespace
}  // namespace tuner
