// Winograd's minimal filtering F(m, 3): m outputs of a filter with 3 taps from m + 2 inputs by m + 2
// products.
//
//   y = A ((G g) * (B d))         g: 3 taps, d: m + 2 inputs, *: element by element, y: m outputs
//
// y[i] = sum over t of d[i + t] * g[t], exactly; in two dimensions every matrix is applied to rows and to
// columns. The matrices follow from interpolation points: 0, 1, -1, 2, -2, 1/2, -1/2 as many as m + 1, and
// infinity. A and B hold multiples of powers of two, so their entries are exact; rows of G are divided by
// small numbers.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "compiler_core/ir/expr.h"

namespace tuner {

using WinogradMatrix = std::vector<std::vector<double>>;  // rows

struct Winograd {
  int64_t m = 2;
  WinogradMatrix a;  // m x (m + 2)
  WinogradMatrix b;  // (m + 2) x (m + 2)
  WinogradMatrix g;  // (m + 2) x 3
  int64_t tile() const { return m + 2; }
};
// m is 2, 4 or 6.
Winograd winograd(int64_t m);

// Row `row` of matrix * values, where row may be a loop variable: a choice among all rows, which folds when
// the loop is unrolled. What two rows of opposite points (p and -p) share is the same expression in both, so
// that code generators compute it once: of b and g the sums over even and over odd columns, of a the sums and
// differences of the two values that belong to opposite points.
Expr transformed(const WinogradMatrix& matrix, const Expr& row, const std::vector<Expr>& values);

}  // namespace tuner
