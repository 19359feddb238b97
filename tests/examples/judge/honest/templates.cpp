// gemm: right
// C++ with templates, containers and an object that is made when it is loaded.
#include <algorithm>
#include <array>
#include <numeric>
#include <vector>
namespace {
template <int kRows, int kColumns>
struct Tile {
  std::array<float, kRows * kColumns> sums{};
};
struct Order {
  std::vector<int> rows = std::vector<int>(96);
  Order() { std::iota(rows.begin(), rows.end(), 0); }
} order;
}  // namespace
void gemm(const float* a, const float* b, float* c) {
  for (const int i : order.rows) {
    Tile<1, 96> tile;
    for (int k = 0; k < 96; ++k)
      for (int j = 0; j < 96; ++j) tile.sums[j] += a[i * 96 + k] * b[k * 96 + j];
    std::copy(tile.sums.begin(), tile.sums.end(), c + i * 96);
  }
}
