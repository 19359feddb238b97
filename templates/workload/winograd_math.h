// Winograd's minimal filtering F(m, 3): computes m outputs of a filter with 3 taps from m + 2 inputs with m +
// 2 products.
//
//   y = A ((G g) * (B d))         g: 3 taps, d: m + 2 inputs, *: element by element, y: m outputs
//
// y[i] = sum over t of d[i + t] * g[t], exactly. In two dimensions every matrix is applied to rows and to
// columns. The matrices follow from interpolation points: the first m + 1 of 0, 1, -1, 2, -2, 1/2, -1/2, and
// infinity. A and B hold multiples of powers of two, so their entries are exact; rows of G are divided by
// small numbers.
#pragma once

#include <array>
#include <cstdint>
#include <string>
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
// `m` must be 2, 4, 5 or 6.
Winograd winograd(int64_t m);

// Outputs of a tile in two dimensions: F(rows, 3) down an image and F(columns, 3) along it.
struct WinogradTile {
  int64_t rows = 2, columns = 2;
};
std::string text_of(WinogradTile tile);  // "2", where both are: as in F(2, 3); "2x4"

// Returns row `row` of matrix * values. `row` may be a loop variable: the result is then a choice among all
// rows, which folds when the loop is unrolled. Two rows of opposite points (p and -p) use the same
// expressions for what they share, so code generators compute it once: for b and g half their sum and half
// their difference (of even m the even and the odd columns), for a the sums and differences of the two values
// that belong to opposite points.
Expr transformed(const WinogradMatrix& matrix, const Expr& row, const std::vector<Expr>& values);

}  // namespace tuner
