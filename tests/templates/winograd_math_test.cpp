// Winograd's matrices: exact where they say so, the convolution they compute, and what rows share.
#include "templates/workload/winograd_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "compiler_core/arith/simplify.h"
#include "compiler_core/ir/stmt.h"
#include "compiler_core/ir/visitor.h"

namespace tuner {
namespace {

std::vector<double> times(const WinogradMatrix& matrix, const std::vector<double>& x) {
  std::vector<double> y;
  for (const std::vector<double>& row : matrix) {
    double sum = 0;
    for (size_t c = 0; c < row.size(); ++c) sum += row[c] * x[c];
    y.push_back(sum);
  }
  return y;
}

// Every unit vector of data with every unit vector of taps: the bilinear form itself.
void expect_convolution(const Winograd& w) {
  for (size_t tap = 0; tap < 3; ++tap)
    for (size_t at = 0; at < static_cast<size_t>(w.tile()); ++at) {
      std::vector<double> g(3, 0), d(static_cast<size_t>(w.tile()), 0);
      g[tap] = 1;
      d[at] = 1;
      std::vector<double> product = times(w.g, g);
      const std::vector<double> data = times(w.b, d);
      for (size_t i = 0; i < product.size(); ++i) product[i] *= data[i];
      const std::vector<double> y = times(w.a, product);
      for (size_t i = 0; i < y.size(); ++i)
        EXPECT_NEAR(y[i], i + tap == at ? 1 : 0, 1e-12) << "tap " << tap << ", data " << at << ", out " << i;
    }
}

TEST(WinogradMath, EverySizeComputesTheConvolution) {
  for (const int64_t m : {2, 4, 5, 6}) {
    SCOPED_TRACE(m);
    const Winograd w = winograd(m);
    EXPECT_EQ(w.a.size(), static_cast<size_t>(m));
    EXPECT_EQ(w.b.size(), static_cast<size_t>(m + 2));
    EXPECT_EQ(w.g.size(), static_cast<size_t>(m + 2));
    expect_convolution(w);
  }
}

TEST(WinogradMath, AAndBHoldFloats) {
  for (const int64_t m : {2, 4, 5, 6}) {
    const Winograd w = winograd(m);
    for (const WinogradMatrix* matrix : {&w.a, &w.b})
      for (const std::vector<double>& row : *matrix)
        for (const double x : row) EXPECT_EQ(static_cast<double>(static_cast<float>(x)), x);
  }
}

TEST(WinogradMath, F43IsTheKnownOne) {
  const Winograd w = winograd(4);
  EXPECT_EQ(w.b, (WinogradMatrix{{4, 0, -5, 0, 1, 0},
                                 {0, -4, -4, 1, 1, 0},
                                 {0, 4, -4, -1, 1, 0},
                                 {0, -2, -1, 2, 1, 0},
                                 {0, 2, -1, -2, 1, 0},
                                 {0, 4, 0, -5, 0, 1}}));
  EXPECT_EQ(w.a, (WinogradMatrix{
                     {1, 1, 1, 1, 1, 0}, {0, 1, -1, 2, -2, 0}, {0, 1, 1, 4, 4, 0}, {0, 1, -1, 8, -8, 1}}));
}

std::vector<Expr> loads(int64_t n) {
  const Buffer x = make_buffer("x", DType::kFloat32, {n});
  std::vector<Expr> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(load(x, {Expr(i)}));
  return values;
}

std::string row_text(const WinogradMatrix& matrix, int64_t row) {
  return to_text(simplify(transformed(matrix, Expr(row), loads(static_cast<int64_t>(matrix[0].size()))), {}));
}

TEST(WinogradMath, RowsOfOppositePointsShareTheirSums) {
  const Winograd w = winograd(4);
  EXPECT_EQ(row_text(w.b, 1), "x[4] + x[2] * -4 + (x[3] + x[1] * -4)");
  EXPECT_EQ(row_text(w.b, 2), "x[4] + x[2] * -4 - (x[3] + x[1] * -4)");
  EXPECT_EQ(row_text(w.a, 1), "x[1] - x[2] + (x[3] - x[4]) * 2");
  EXPECT_EQ(row_text(w.a, 2), "x[1] + x[2] + (x[3] + x[4]) * 4");
}

TEST(WinogradMath, APointWithoutItsOppositeStandsAlone) {
  const Winograd w = winograd(5);
  EXPECT_EQ(row_text(w.a, 1), "x[1] - x[2] + (x[3] - x[4]) * 2 + x[5] * 0.5");
  EXPECT_EQ(row_text(w.b, 1),
            "x[5] + x[2] * 2 + x[3] * -4 + x[4] * -0.5 + (x[4] + x[1] * 2 + x[2] * -4 + x[3] * -0.5)");
  EXPECT_EQ(row_text(w.b, 5), "x[5] + x[1] * 4 + x[3] * -5");
}

TEST(WinogradMath, RowsChosenByALoopFoldWhenItIsUnrolled) {
  const Var row = make_var("row");
  const Winograd w = winograd(6);
  const Expr any = transformed(w.b, row, loads(8));
  for (int64_t r = 0; r < 8; ++r) {
    const Expr one = simplify(substitute(any, {{row, Expr(r)}}), {});
    bool selects = false;
    visit(one, [&](const Expr& e) { selects |= e->kind == ExprKind::kSelect; });
    EXPECT_FALSE(selects) << to_text(one);
    EXPECT_EQ(to_text(one), row_text(w.b, r));
  }
}

}  // namespace
}  // namespace tuner
