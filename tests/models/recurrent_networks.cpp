#include "tests/models/recurrent_networks.h"

#include <algorithm>
#include <cmath>

#include "tests/models/network_writer.h"

namespace tuner::testing {
namespace recurrent_networks {
namespace {

using Ints = std::vector<int64_t>;
const Tensor kNone{"", {}};

struct Plan {
  NetworkWriter w;
  RecurrentNetworkOptions options;

  int64_t units(int64_t published) const { return options.units == 0 ? published : options.units; }

  Tensor conv1d(const Tensor& x, int64_t channels, int64_t kernel, int64_t stride, int64_t pad,
                bool bias = true) {
    const double deviation = std::sqrt(2.0 / static_cast<double>(x.channels() * kernel));
    std::vector<Tensor> inputs{x, w.drawn({channels, x.channels(), kernel}, deviation)};
    if (bias) inputs.push_back(w.drawn({channels}, 0.1));
    const int64_t length = (x.shape[2] + 2 * pad - kernel) / stride + 1;
    return w.add("Conv", inputs, {x.shape[0], channels, length},
                 {{"dilations", Ints{1}},
                  {"group", int64_t{1}},
                  {"kernel_shape", Ints{kernel}},
                  {"pads", Ints{pad, pad}},
                  {"strides", Ints{stride}}});
  }
  // Weights as nn.LSTM and nn.GRU begin with.
  std::vector<Tensor> weights(int64_t directions, int64_t rows, int64_t inputs, int64_t hidden) {
    const double deviation = 1 / std::sqrt(3.0 * static_cast<double>(hidden));
    return {w.drawn({directions, rows, inputs}, deviation), w.drawn({directions, rows, hidden}, deviation),
            w.drawn({directions, 2 * rows}, deviation)};
  }
};

void lstm(Plan& p, int64_t steps) {
  NetworkWriter& w = p.w;
  const int64_t hidden = p.units(128);
  const Tensor x = w.input("input", {steps, 1, hidden}), h = w.input("h", {1, 1, hidden}),
               c = w.input("c", {1, 1, hidden});
  std::vector<Tensor> in = p.weights(1, 4 * hidden, hidden, hidden);
  in.insert(in.begin(), x);
  in.insert(in.end(), {kNone, h, c});
  const std::vector<Tensor> out =
      w.add("LSTM", in, {{"Y", {steps, 1, 1, hidden}}, {"hn", {1, 1, hidden}}, {"cn", {1, 1, hidden}}},
            {{"hidden_size", hidden}});
  w.output(w.add("Squeeze", {out[0], w.list({1})}, {steps, 1, hidden}));
  w.output(out[1]);
  w.output(out[2]);
}
void lstm_step(Plan& p) { lstm(p, 1); }
void lstm_sequence(Plan& p) { lstm(p, 100); }

void voice_detector(Plan& p) {
  NetworkWriter& w = p.w;
  const int64_t hidden = p.units(128), bins = 129;
  const Tensor sound = w.input("input", {1, 576}), h = w.input("h", {1, 1, hidden}),
               c = w.input("c", {1, 1, hidden});
  Tensor x = w.add("Unsqueeze", {sound, w.list({1})}, {1, 1, 576});
  x = w.add("Pad", {x, w.list({0, 0, 0, 0, 0, 64})}, {1, 1, 640}, {{"mode", std::string("reflect")}});
  const Tensor wave = p.conv1d(x, 2 * bins, 256, 128, 0, /*bias=*/false);
  const auto half = [&](int64_t first) {
    const Tensor part = w.add("Slice", {wave, w.list({first}), w.list({first + bins}), w.list({1})},
                              {1, bins, wave.shape[2]});
    return w.binary("Mul", part, part);
  };
  x = w.unary("Sqrt", w.binary("Add", half(0), half(bins)));
  x = w.relu(p.conv1d(x, 128, 3, 1, 1));
  x = w.relu(p.conv1d(x, 64, 3, 2, 1));
  x = w.relu(p.conv1d(x, 64, 3, 2, 1));
  x = w.relu(p.conv1d(x, 128, 3, 1, 1));
  x = w.add("Transpose", {x}, {x.shape[2], 1, 128}, {{"perm", Ints{2, 0, 1}}});
  std::vector<Tensor> in = p.weights(1, 4 * hidden, 128, hidden);
  in.insert(in.begin(), x);
  in.insert(in.end(), {kNone, h, c});
  const std::vector<Tensor> out =
      w.add("LSTM", in, {{"Y", {x.shape[0], 1, 1, hidden}}, {"hn", {1, 1, hidden}}, {"cn", {1, 1, hidden}}},
            {{"hidden_size", hidden}});
  x = w.add("Squeeze", {out[0], w.list({1})}, {out[0].shape[0], 1, hidden});
  x = w.relu(w.add("Transpose", {x}, {1, hidden, x.shape[0]}, {{"perm", Ints{1, 2, 0}}}));
  x = w.unary("Sigmoid", p.conv1d(x, 1, 1, 1, 0));
  w.output(w.add("ReduceMean", {x}, {1, 1}, {{"axes", Ints{2}}, {"keepdims", int64_t{0}}}));
  w.output(out[1]);
  w.output(out[2]);
}

void wake_word(Plan& p) {
  NetworkWriter& w = p.w;
  const int64_t hidden = p.units(64);
  Tensor x = w.input("mel", {1, 1, 40, 98});
  for (int k = 0; k < 2; ++k) x = w.relu(w.batch_norm(w.conv(x, {.channels = 32, .kernel = 3, .stride = 2})));
  const int64_t frames = x.shape[3], features = x.shape[1] * x.shape[2];
  x = w.reshaped(w.transposed(x, {3, 0, 1, 2}), {frames, 1, features});
  for (int layer = 0; layer < 2; ++layer) {
    std::vector<Tensor> in = p.weights(2, 3 * hidden, x.shape[2], hidden);
    in.insert(in.begin(), x);
    in.insert(in.end(), {kNone, w.add("ConstantOfShape", {w.list({2, 1, hidden})}, {2, 1, hidden})});
    const Tensor y = w.add("GRU", in, {frames, 2, 1, hidden},
                           {{"direction", std::string("bidirectional")},
                            {"hidden_size", hidden},
                            {"linear_before_reset", int64_t{1}}});
    x = w.reshaped(w.transposed(y, {0, 2, 1, 3}), {frames, 1, 2 * hidden});
  }
  x = w.add("Slice", {x, w.list({frames - 1}), w.list({frames}), w.list({0})}, {1, 1, 2 * hidden});
  w.output(w.softmax(w.gemm(w.reshaped(x, {1, 2 * hidden}), 12)));
}

// nn.LSTM in both directions, from zero: [T, N, C] to [T, N, 2 * hidden].
Tensor both_directions(Plan& p, const Tensor& x, int64_t hidden) {
  NetworkWriter& w = p.w;
  const int64_t steps = x.shape[0], batch = x.shape[1];
  std::vector<Tensor> in = p.weights(2, 4 * hidden, x.shape[2], hidden);
  in.insert(in.begin(), x);
  const Tensor zeros = w.add("ConstantOfShape", {w.list({2, batch, hidden})}, {2, batch, hidden});
  in.insert(in.end(), {kNone, zeros, zeros});
  const Tensor y = w.add("LSTM", in, {steps, 2, batch, hidden},
                         {{"direction", std::string("bidirectional")}, {"hidden_size", hidden}});
  return w.add("Reshape", {w.transposed(y, {0, 2, 1, 3}), w.list({0, 0, -1})}, {steps, batch, 2 * hidden});
}

// The layers of CRNN (Shi, Bai, Yao 2015): pooling keeps the width from the third stage on, the last
// convolution leaves a height of 1, and each LSTM has a product behind it that takes all steps as rows.
void crnn(Plan& p) {
  NetworkWriter& w = p.w;
  const int64_t hidden = p.units(256), letters = 37;
  const auto channels = [&](int64_t published) { return std::max<int64_t>(8, published * hidden / 256); };
  const auto conv = [&](const Tensor& x, int64_t published) {
    return w.conv(x, {.channels = channels(published), .kernel = 3, .bias = true});
  };
  const auto lower = [&](const Tensor& x) {  // half as high, one wider
    return w.add("MaxPool", {x}, {x.shape[0], x.shape[1], x.shape[2] / 2, x.shape[3] + 1},
                 {{"kernel_shape", Ints{2, 2}}, {"pads", Ints{0, 1, 0, 1}}, {"strides", Ints{2, 1}}});
  };
  Tensor x = w.input("image", {1, 1, 32, 100});
  x = w.max_pool(w.relu(conv(x, 64)), 2, 2);
  x = w.max_pool(w.relu(conv(x, 128)), 2, 2);
  x = w.relu(w.batch_norm(conv(x, 256)));
  x = lower(w.relu(conv(x, 256)));
  x = w.relu(w.batch_norm(conv(x, 512)));
  x = lower(w.relu(conv(x, 512)));
  const int64_t in = x.channels(), out = channels(512);
  const Tensor weights = w.drawn({out, in, 2, 2}, std::sqrt(0.5 / static_cast<double>(in)));
  x = w.add("Conv", {x, weights, w.drawn({out}, 0.1)}, {1, out, 1, x.shape[3] - 1},
            {{"dilations", Ints{1, 1}},
             {"group", int64_t{1}},
             {"kernel_shape", Ints{2, 2}},
             {"pads", Ints{0, 0, 0, 0}},
             {"strides", Ints{1, 1}}});
  x = w.relu(w.batch_norm(x));
  x = w.transposed(w.squeezed(x, 2), {2, 0, 1});
  for (const int64_t results : {hidden, letters}) {
    const Tensor y = both_directions(p, x, hidden);
    const Tensor rows = w.reshaped(y, {y.shape[0] * y.shape[1], y.shape[2]});
    x = w.reshaped(w.gemm(rows, results), {y.shape[0], y.shape[1], results});
  }
  w.output(w.unary("LogSoftmax", x, {{"axis", int64_t{2}}}));
}

// States of all layers come as one tensor each; a layer takes its part and gives the next one.
void transducer_encoder(Plan& p) {
  NetworkWriter& w = p.w;
  constexpr int64_t kFrames = 32, kBands = 80, kLayers = 3;
  const int64_t hidden = p.units(320);
  const Tensor sound = w.input("frames", {1, kFrames, kBands}), h = w.input("h", {kLayers, 1, hidden}),
               c = w.input("c", {kLayers, 1, hidden});
  Tensor x = w.add("Unsqueeze", {sound, w.list({1})}, {1, 1, kFrames, kBands});
  const int64_t channels = std::max<int64_t>(4, hidden / 10);
  for (int k = 0; k < 2; ++k)
    x = w.relu(w.conv(x, {.channels = channels, .kernel = 3, .stride = 2, .bias = true}));
  const int64_t steps = x.shape[2];
  x = w.transposed(x, {2, 0, 1, 3});
  x = w.linear(w.reshaped(x, {steps, 1, x.shape[2] * x.shape[3]}), hidden);
  std::vector<Tensor> last_h, last_c;
  for (int64_t layer = 0; layer < kLayers; ++layer) {
    const auto part = [&](const Tensor& state) {
      return w.add("Slice", {state, w.list({layer}), w.list({layer + 1}), w.list({0})}, {1, 1, hidden});
    };
    std::vector<Tensor> in = p.weights(1, 4 * hidden, hidden, hidden);
    in.insert(in.begin(), x);
    in.insert(in.end(), {kNone, part(h), part(c)});
    const std::string number = std::to_string(layer);
    const std::vector<Tensor> out = w.add("LSTM", in,
                                          {{"Y" + number, {steps, 1, 1, hidden}},
                                           {"h" + number, {1, 1, hidden}},
                                           {"c" + number, {1, 1, hidden}}},
                                          {{"hidden_size", hidden}});
    const Tensor y = w.add("Squeeze", {out[0], w.list({1})}, {steps, 1, hidden});
    x = w.layer_norm(w.binary("Add", x, y));
    last_h.push_back(out[1]);
    last_c.push_back(out[2]);
  }
  w.output(w.transposed(w.linear(x, 512), {1, 0, 2}));
  for (const std::vector<Tensor>& states : {last_h, last_c}) {
    const Tensor all = w.concat(states, 0);
    w.output(all);
  }
}

struct Known {
  const char* name;
  void (*write)(Plan&);
};
constexpr Known kNetworks[] = {{"lstm_step", lstm_step},
                               {"lstm_sequence", lstm_sequence},
                               {"voice_detector", voice_detector},
                               {"wake_word", wake_word},
                               {"crnn", crnn},
                               {"transducer_encoder", transducer_encoder}};

}  // namespace
}  // namespace recurrent_networks

const std::vector<std::string>& recurrent_network_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const auto& k : recurrent_networks::kNetworks) all.emplace_back(k.name);
    return all;
  }();
  return names;
}

Result<std::string> recurrent_network(std::string_view name, const RecurrentNetworkOptions& options) {
  for (const auto& k : recurrent_networks::kNetworks) {
    if (name != k.name) continue;
    recurrent_networks::Plan plan{.w = NetworkWriter(options.seed), .options = options};
    k.write(plan);
    return plan.w.bytes();
  }
  return invalid_argument("no network with recurrent layers is called \"", name, "\"");
}

}  // namespace tuner::testing
