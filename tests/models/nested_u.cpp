#include "tests/models/nested_u.h"

#include <algorithm>

#include "tests/models/network_writer.h"

namespace tuner::testing {
namespace {

class NestedU {
 public:
  explicit NestedU(const NetworkOptions& options) : options_(options), w_(options.seed) {}

  std::string write() {
    const int64_t size = options_.image == 0 ? 1024 : options_.image;
    Tensor x = w_.input({options_.batch, 3, size, size});
    struct Stage {
      int64_t depth, inner, channels;  // depth: halvings inside of the block
    };
    constexpr Stage kDown[] = {{5, 16, 32},  {4, 16, 64},   {3, 32, 128},
                               {2, 64, 256}, {1, 128, 256}, {0, 128, 256}};
    constexpr Stage kUp[] = {{1, 128, 256}, {2, 64, 128}, {3, 32, 64}, {4, 16, 32}, {5, 8, 32}};
    std::vector<Tensor> sizes, sides;
    for (const Stage& s : kDown) {
      if (!sizes.empty()) x = w_.max_pool(x, 2, 2);
      x = block(x, s.depth, s.inner, s.channels);
      sizes.push_back(x);
    }
    sides.push_back(side(x, 5));
    for (size_t k = 0; k < std::size(kUp); ++k) {
      const Tensor& same = sizes[std::size(kUp) - 1 - k];
      x = block(w_.concat({w_.enlarged(x), same}), kUp[k].depth, kUp[k].inner, kUp[k].channels);
      sides.push_back(side(x, static_cast<int64_t>(std::size(kUp) - 1 - k)));
    }
    std::reverse(sides.begin(), sides.end());
    w_.output(w_.unary("Sigmoid", w_.conv(w_.concat(sides), {.channels = 1, .kernel = 1, .bias = true})));
    for (const Tensor& each : sides) w_.output(w_.unary("Sigmoid", each));
    return w_.bytes();
  }

 private:
  Tensor unit(const Tensor& x, int64_t channels) {
    channels = std::max<int64_t>(4, channels / options_.narrower);
    return w_.relu(w_.batch_norm(w_.conv(x, {.channels = channels, .kernel = 3})));
  }
  // A U of `depth` halvings, added to what it begins with.
  Tensor block(const Tensor& x, int64_t depth, int64_t inner, int64_t channels) {
    const Tensor first = unit(x, channels);
    std::vector<Tensor> sizes{unit(first, inner)};
    for (int64_t k = 0; k < depth; ++k) sizes.push_back(unit(w_.max_pool(sizes.back(), 2, 2), inner));
    Tensor y = unit(sizes.back(), inner);
    for (size_t k = sizes.size(); k-- > 0;) {
      if (k + 1 < sizes.size()) y = w_.enlarged(y);
      y = unit(w_.concat({y, sizes[k]}), k == 0 ? channels : inner);
    }
    return w_.binary("Add", y, first);
  }
  // One channel of the whole size.
  Tensor side(const Tensor& x, int64_t halvings) {
    Tensor y = w_.conv(x, {.channels = 1, .kernel = 3, .bias = true});
    for (int64_t k = 0; k < halvings; ++k) y = w_.enlarged(y);
    return y;
  }

  const NetworkOptions& options_;
  NetworkWriter w_;
};

}  // namespace

std::string nested_u(const NetworkOptions& options) { return NestedU(options).write(); }

}  // namespace tuner::testing
