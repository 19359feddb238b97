#include "tests/models/networks.h"

#include <algorithm>

#include "tests/models/network_writer.h"
#include "tests/models/sequence_networks.h"

namespace tuner::testing {
namespace {

using Conv = NetworkWriter::Conv;

// What all networks are built with: channels narrower by a factor, images of the wanted size.
struct Plan {
  const NetworkOptions& options;
  NetworkWriter w{options.seed};

  int64_t channels(int64_t published) const { return std::max<int64_t>(4, published / options.narrower); }
  Tensor image(int64_t published) {
    const int64_t size = options.image == 0 ? published : options.image;
    return w.input({options.batch, 3, size, size});
  }
  Tensor conv_norm(const Tensor& x, const Conv& c) { return w.batch_norm(w.conv(x, c)); }
};

// v1.5: the stride of a block is in its 3x3.
void resnet50(Plan& p) {
  NetworkWriter& w = p.w;
  Tensor x = w.relu(p.conv_norm(p.image(224), {p.channels(64), 7, 2}));
  x = w.max_pool(x, 3, 2);
  const int64_t blocks[] = {3, 4, 6, 3};
  for (int64_t stage = 0; stage < 4; ++stage) {
    const int64_t width = p.channels(int64_t{64} << stage);
    for (int64_t block = 0; block < blocks[stage]; ++block) {
      const int64_t stride = block == 0 && stage > 0 ? 2 : 1;
      Tensor y = w.relu(p.conv_norm(x, {width, 1}));
      y = w.relu(p.conv_norm(y, {width, 3, stride}));
      y = p.conv_norm(y, {4 * width, 1});
      const Tensor shortcut = block == 0 ? p.conv_norm(x, {4 * width, 1, stride}) : x;
      x = w.relu(w.binary("Add", y, shortcut));
    }
  }
  x = w.flattened(w.global_average(x));
  w.output(w.gemm(x, 1000));
}

void mobilenetv2(Plan& p) {
  NetworkWriter& w = p.w;
  Tensor x = w.relu6(p.conv_norm(p.image(224), {p.channels(32), 3, 2}));
  struct Stage {
    int64_t expansion, channels, blocks, stride;
  };
  for (const Stage& s : {Stage{1, 16, 1, 1},
                         {6, 24, 2, 2},
                         {6, 32, 3, 2},
                         {6, 64, 4, 2},
                         {6, 96, 3, 1},
                         {6, 160, 3, 2},
                         {6, 320, 1, 1}}) {
    for (int64_t block = 0; block < s.blocks; ++block) {
      const int64_t stride = block == 0 ? s.stride : 1, inner = x.channels() * s.expansion,
                    out = p.channels(s.channels);
      Tensor y = x;
      if (s.expansion > 1) y = w.relu6(p.conv_norm(y, {inner, 1}));
      y = w.relu6(p.conv_norm(y, {inner, 3, stride, inner}));
      y = p.conv_norm(y, {out, 1});
      x = stride == 1 && x.channels() == out ? w.binary("Add", x, y) : y;
    }
  }
  x = w.relu6(p.conv_norm(x, {p.channels(1280), 1}));
  w.output(w.gemm(w.flattened(w.global_average(x)), 1000));
}

// SiLU as Sigmoid and Mul; channels weighted by what the whole image says of them.
void efficientnet_b0(Plan& p) {
  NetworkWriter& w = p.w;
  Tensor x = w.silu(p.conv_norm(p.image(224), {p.channels(32), 3, 2}));
  struct Stage {
    int64_t expansion, channels, blocks, stride, kernel;
  };
  for (const Stage& s : {Stage{1, 16, 1, 1, 3},
                         {6, 24, 2, 2, 3},
                         {6, 40, 2, 2, 5},
                         {6, 80, 3, 2, 3},
                         {6, 112, 3, 1, 5},
                         {6, 192, 4, 2, 5},
                         {6, 320, 1, 1, 3}}) {
    for (int64_t block = 0; block < s.blocks; ++block) {
      const int64_t stride = block == 0 ? s.stride : 1, inner = x.channels() * s.expansion,
                    out = p.channels(s.channels);
      Tensor y = x;
      if (s.expansion > 1) y = w.silu(p.conv_norm(y, {inner, 1}));
      y = w.silu(p.conv_norm(y, {inner, s.kernel, stride, inner}));
      Tensor weight = w.conv(w.global_average(y),
                             {.channels = std::max<int64_t>(1, x.channels() / 4), .kernel = 1, .bias = true});
      weight = w.conv(w.silu(weight), {.channels = inner, .kernel = 1, .bias = true});
      y = w.binary("Mul", y, w.unary("Sigmoid", weight));
      y = p.conv_norm(y, {out, 1});
      x = stride == 1 && x.channels() == out ? w.binary("Add", y, x) : y;
    }
  }
  x = w.silu(p.conv_norm(x, {p.channels(1280), 1}));
  w.output(w.gemm(w.flattened(w.global_average(x)), 1000));
}

void vgg16(Plan& p) {
  NetworkWriter& w = p.w;
  Tensor x = p.image(224);
  const int64_t channels[] = {64, 128, 256, 512, 512};
  for (int64_t stage = 0; stage < 5; ++stage) {
    for (int64_t k = 0; k < (stage < 2 ? 2 : 3); ++k)
      x = w.relu(w.conv(x, {.channels = p.channels(channels[stage]), .kernel = 3, .bias = true}));
    x = w.max_pool(x, 2, 2);
  }
  x = w.flattened(x);
  for (int k = 0; k < 2; ++k) x = w.unary("Dropout", w.relu(w.gemm(x, p.channels(4096))));
  w.output(w.gemm(x, 1000));
}

// Down four times and up again, each size joined with its like.
void unet(Plan& p) {
  NetworkWriter& w = p.w;
  Tensor x = p.image(256);
  const auto twice = [&](Tensor y, int64_t channels) {
    for (int k = 0; k < 2; ++k) y = w.relu(p.conv_norm(y, {channels, 3}));
    return y;
  };
  std::vector<Tensor> sizes;
  for (int64_t level = 0; level < 4; ++level) {
    sizes.push_back(twice(x, p.channels(int64_t{32} << level)));
    x = w.max_pool(sizes.back(), 2, 2);
  }
  x = twice(x, p.channels(512));
  for (int64_t level = 3; level >= 0; --level) {
    const int64_t channels = p.channels(int64_t{32} << level);
    x = twice(w.concat({w.conv_transpose(x, channels), sizes[static_cast<size_t>(level)]}), channels);
  }
  w.output(w.unary("Sigmoid", w.conv(x, {.channels = 1, .kernel = 1, .bias = true})));
}

// A backbone of blocks that split their channels, a neck that joins three sizes, and boxes from each of them.
void yolo(Plan& p) {
  NetworkWriter& w = p.w;
  const auto unit = [&](const Tensor& x, int64_t channels, int64_t kernel, int64_t stride = 1) {
    return w.silu(p.conv_norm(x, {channels, kernel, stride}));
  };
  const auto block = [&](const Tensor& x, int64_t channels, bool residual) {
    const std::vector<Tensor> halves = w.halves(unit(x, channels, 1));
    const Tensor inner = unit(unit(halves[1], channels / 2, 3), channels / 2, 3);
    const Tensor joined = residual ? w.binary("Add", halves[1], inner) : inner;
    return unit(w.concat({halves[0], halves[1], joined}), channels, 1);
  };
  Tensor x = unit(p.image(320), p.channels(16), 3, 2);
  std::vector<Tensor> sizes;
  for (const int64_t channels : {32, 64, 128, 256}) {
    x = block(unit(x, p.channels(channels), 3, 2), p.channels(channels), true);
    if (channels >= 64) sizes.push_back(x);
  }
  const Tensor middle = block(w.concat({w.enlarged(sizes[2]), sizes[1]}), p.channels(128), false);
  const Tensor fine = block(w.concat({w.enlarged(middle), sizes[0]}), p.channels(64), false);
  std::vector<Tensor> boxes;
  for (const Tensor& size : {fine, middle, sizes[2]}) {
    const int64_t outputs = 4 + 16;  // a box, and how likely each class is
    const Tensor head =
        w.conv(unit(size, p.channels(64), 3), {.channels = outputs, .kernel = 1, .bias = true});
    boxes.push_back(w.reshaped(head, {head.shape[0], outputs, head.shape[2] * head.shape[3]}));
  }
  w.output(w.unary("Sigmoid", w.transposed(w.concat(boxes, 2), {0, 2, 1})));
}

void mlp(Plan& p) {
  NetworkWriter& w = p.w;
  const int64_t size = p.options.image == 0 ? 28 : p.options.image;
  Tensor x = w.flattened(w.input({p.options.batch, 1, size, size}));
  x = w.relu(w.gemm(x, p.channels(128)));
  w.output(w.softmax(w.gemm(x, 10)));
}

struct Known {
  const char* name;
  void (*write)(Plan&);
};
constexpr Known kNetworks[] = {{"resnet50", resnet50},
                               {"mobilenetv2", mobilenetv2},
                               {"efficientnet_b0", efficientnet_b0},
                               {"vgg16", vgg16},
                               {"unet", unet},
                               {"yolo", yolo},
                               {"mlp", mlp},
                               {"ocr", [](Plan& p) { write_ocr(p.w, p.options); }},
                               {"speech_encoder", [](Plan& p) { write_speech_encoder(p.w, p.options); }}};

}  // namespace

const std::vector<std::string>& network_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Known& k : kNetworks) all.emplace_back(k.name);
    return all;
  }();
  return names;
}

Result<std::string> network(std::string_view name, const NetworkOptions& options) {
  for (const Known& k : kNetworks) {
    if (name != k.name) continue;
    Plan plan{.options = options};
    k.write(plan);
    return plan.w.bytes();
  }
  std::string names;
  for (const std::string& n : network_names()) names += (names.empty() ? "" : ", ") + n;
  return invalid_argument("no network is called \"", name, "\"; there are ", names);
}

}  // namespace tuner::testing
