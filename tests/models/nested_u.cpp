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
    std::vector<Tensor> sizes, sides;
    for (const Stage& s : kDown) {
      if (!sizes.empty()) x = w_.max_pool(x, 2, 2);
      x = block(x, s);
      sizes.push_back(x);
    }
    sides.push_back(side(x));
    for (size_t k = 0; k < std::size(kUp); ++k) {
      const Tensor& same = sizes[std::size(kUp) - 1 - k];
      x = block(w_.concat({w_.enlarged_to(x, same), same}), kUp[k]);
      sides.push_back(side(x));
    }
    std::reverse(sides.begin(), sides.end());
    for (size_t k = 1; k < sides.size(); ++k) sides[k] = w_.enlarged_to(sides[k], sides[0]);
    w_.output(w_.unary("Sigmoid", w_.conv(w_.concat(sides), {.channels = 1, .kernel = 1, .bias = true})));
    for (const Tensor& each : sides) w_.output(w_.unary("Sigmoid", each));
    return w_.bytes();
  }

 private:
  struct Stage {
    int64_t depth, inner, channels;  // depth: halvings inside of the block; 0: dilations in their place
  };
  static constexpr Stage kDown[] = {{5, 16, 32},  {4, 16, 64},   {3, 32, 128},
                                    {2, 64, 256}, {0, 128, 256}, {0, 128, 256}};
  static constexpr Stage kUp[] = {{0, 128, 256}, {2, 64, 128}, {3, 32, 64}, {4, 16, 32}, {5, 8, 32}};

  Tensor unit(const Tensor& x, int64_t channels, int64_t dilation = 1) {
    channels = std::max<int64_t>(4, channels / options_.narrower);
    return w_.relu(w_.batch_norm(w_.conv(x, {.channels = channels, .kernel = 3, .dilation = dilation})));
  }
  // A U, added to what it begins with.
  Tensor block(const Tensor& x, const Stage& s) {
    const Tensor first = unit(x, s.channels);
    return w_.binary("Add", s.depth > 0 ? halved(first, s) : dilated(first, s), first);
  }
  Tensor halved(const Tensor& first, const Stage& s) {
    std::vector<Tensor> sizes{unit(first, s.inner)};
    for (int64_t k = 0; k < s.depth; ++k) sizes.push_back(unit(w_.max_pool(sizes.back(), 2, 2), s.inner));
    Tensor y = unit(sizes.back(), s.inner, /*dilation=*/2);
    for (size_t k = sizes.size(); k-- > 0;) {
      if (k + 1 < sizes.size()) y = w_.enlarged_to(y, sizes[k]);
      y = unit(w_.concat({y, sizes[k]}), k == 0 ? s.channels : s.inner);
    }
    return y;
  }
  Tensor dilated(const Tensor& first, const Stage& s) {
    const Tensor one = unit(first, s.inner), two = unit(one, s.inner, 2), four = unit(two, s.inner, 4);
    Tensor y = unit(w_.concat({unit(four, s.inner, 8), four}), s.inner, 4);
    y = unit(w_.concat({y, two}), s.inner, 2);
    return unit(w_.concat({y, one}), s.channels);
  }
  // One channel.
  Tensor side(const Tensor& x) { return w_.conv(x, {.channels = 1, .kernel = 3, .bias = true}); }

  const NetworkOptions& options_;
  NetworkWriter w_;
};

}  // namespace

std::string nested_u(const NetworkOptions& options) { return NestedU(options).write(); }

}  // namespace tuner::testing
