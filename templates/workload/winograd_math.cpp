#include "templates/workload/winograd_math.h"

#include "compiler_core/base/status.h"

namespace tuner {
namespace {

// Coefficients of the product of (x - p) over all points but `skipped`, lowest power first.
std::vector<double> product_of_roots(const std::vector<double>& points, size_t skipped) {
  std::vector<double> c = {1};
  for (size_t j = 0; j < points.size(); ++j) {
    if (j == skipped) continue;
    c.insert(c.begin(), 0);                                                  // x * c ...
    for (size_t k = 0; k + 1 < c.size(); ++k) c[k] -= points[j] * c[k + 1];  // ... - p * c
  }
  return c;
}

double power(double x, size_t n) {
  double result = 1;
  for (size_t i = 0; i < n; ++i) result *= x;
  return result;
}

// sum of coefficients[i] * values[i]; the terms with coefficient 1 first, so that the others are multiplied
// and added at once.
Expr combination(const std::vector<double>& coefficients, const std::vector<Expr>& values) {
  Expr sum;
  for (const bool plain : {true, false})
    for (size_t i = 0; i < values.size(); ++i) {
      const double c = coefficients[i];
      if (c == 0 || (c == 1) != plain) continue;
      if (plain)
        sum = sum.defined() ? sum + values[i] : values[i];
      else if (c == -1 && sum.defined())
        sum = sum - values[i];
      else
        sum = sum.defined() ? sum + values[i] * float_imm(c) : values[i] * float_imm(c);
    }
  return sum;
}

// Rows (columns) 1 and 2, 3 and 4, ... belong to opposite points; the last one to infinity, and of an odd
// `count` the one before it to a point without its opposite.
size_t first_of_pair(size_t i) { return i % 2 == 1 ? i : i - 1; }
bool in_pair(size_t i, size_t count) { return i > 0 && i + 1 < count - count % 2; }

// A row of b or g: what its pair has in common, and what differs in sign, each computed once.
Expr paired_row(const WinogradMatrix& matrix, size_t row, const std::vector<Expr>& values) {
  if (!in_pair(row, matrix.size())) return combination(matrix[row], values);
  const std::vector<double>&first = matrix[first_of_pair(row)], &second = matrix[first_of_pair(row) + 1];
  std::vector<double> same(values.size(), 0), opposite(values.size(), 0);
  for (size_t c = 0; c < values.size(); ++c) {
    same[c] = (first[c] + second[c]) / 2;
    opposite[c] = (first[c] - second[c]) / 2;
  }
  const Expr sum = combination(same, values), difference = combination(opposite, values);
  return row == first_of_pair(row) ? sum + difference : sum - difference;
}

// A row of a: sums or differences of the values of opposite points.
Expr row_of_pairs(const std::vector<double>& row, const std::vector<Expr>& values) {
  std::vector<double> coefficients;
  std::vector<Expr> terms;
  for (size_t c = 0; c < values.size(); ++c) {
    const bool pair = in_pair(c, values.size());
    if (pair && first_of_pair(c) != c) continue;
    coefficients.push_back(row[c]);
    terms.push_back(!pair                  ? values[c]
                    : row[c] == row[c + 1] ? values[c] + values[c + 1]
                                           : values[c] - values[c + 1]);
  }
  return combination(coefficients, terms);
}

}  // namespace

Winograd winograd(int64_t m) {
  CHECK(m == 2 || m == 4 || m == 5 || m == 6) << "F(" << m << ", 3)";
  const std::vector<double> all = {0, 1, -1, 2, -2, 0.5, -0.5};
  const std::vector<double> points(all.begin(), all.begin() + m + 1);
  const size_t tile = static_cast<size_t>(m) + 2, last = tile - 1;
  Winograd w{.m = m};
  for (size_t i = 0; i < static_cast<size_t>(m); ++i) {
    std::vector<double>& row = w.a.emplace_back();
    for (const double p : points) row.push_back(power(p, i));
    row.push_back(i + 1 == static_cast<size_t>(m) ? 1 : 0);
  }
  for (size_t i = 0; i < tile; ++i) {
    w.b.push_back(product_of_roots(points, i));  // the last one skips none
    w.b.back().resize(tile, 0);
    double scale = 1;
    for (size_t j = 0; i != last && j < points.size(); ++j)
      if (j != i) scale *= points[i] - points[j];
    if (i == last)
      w.g.push_back({0, 0, 1});
    else
      w.g.push_back({1 / scale, points[i] / scale, points[i] * points[i] / scale});
  }
  return w;
}

std::string text_of(WinogradTile tile) {
  return tile.rows == tile.columns ? str(tile.rows) : str(tile.rows, "x", tile.columns);
}

Expr transformed(const WinogradMatrix& matrix, const Expr& row, const std::vector<Expr>& values) {
  const bool by_columns = matrix.size() < values.size();  // a: fewer results than values
  Expr result;
  for (size_t r = matrix.size(); r-- > 0;) {
    const Expr value = by_columns ? row_of_pairs(matrix[r], values) : paired_row(matrix, r, values);
    result = result.defined()
                 ? select(binary(BinaryOp::kEq, row, Expr(static_cast<int64_t>(r))), value, result)
                 : value;
  }
  return result;
}

}  // namespace tuner
