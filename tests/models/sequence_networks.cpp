#include "tests/models/sequence_networks.h"

#include <algorithm>

namespace tuner::testing {
namespace {

int64_t channels(const NetworkOptions& options, int64_t published) {
  return std::max<int64_t>(4, published / options.narrower);
}

// Attention and a product of its own for each step, both on top of what was there.
Tensor block(NetworkWriter& w, Tensor x, int64_t inner) {
  x = w.binary("Add", x, w.attention(w.layer_norm(x)));
  return w.binary("Add", x, w.linear(w.silu(w.linear(w.layer_norm(x), inner)), x.shape[2]));
}

}  // namespace

// The height goes step by step: pooling, then a convolution as high as what is left. PyTorch exports
// squeeze() as an If.
void write_ocr(NetworkWriter& w, const NetworkOptions& options) {
  constexpr int64_t kHeight = 32, kWidth = 320, kLetters = 96;
  Tensor x = w.input({options.batch, 1, kHeight, options.image == 0 ? kWidth : options.image});
  for (const int64_t published : {32, 64, 128}) {
    x = w.relu(w.batch_norm(w.conv(x, {channels(options, published), 3})));
    if (published < 128) x = w.max_pool(x, 2, 2);
  }
  while (x.shape[2] > 1) x = w.relu(w.batch_norm(w.conv(w.lower(x), {channels(options, 192), 3})));
  x = w.transposed(w.squeezed(x, 2), {0, 2, 1});  // [N, T, C]
  for (int k = 0; k < 2; ++k) x = block(w, x, channels(options, 384));
  w.output(w.softmax(w.linear(x, kLetters), 2));
}

// A quiet recording is made louder, the mean of each band follows the sound, and two convolutions leave a
// fourth of the frames.
void write_speech_encoder(NetworkWriter& w, const NetworkOptions& options) {
  // Frames fill whole cache lines, as 80 bands do.
  constexpr int64_t kFrames = 96, kSounds = 32, kLine = 16;
  const int64_t frames = options.image == 0 ? kFrames : options.image;
  const int64_t bands = (channels(options, 80) + kLine - 1) / kLine * kLine;
  Tensor x = w.louder(w.input({options.batch, frames, bands}));
  x = w.transposed(w.centered(w.transposed(x, {1, 0, 2})), {1, 0, 2});
  x = w.reshaped(x, {options.batch, 1, frames, bands});
  for (int k = 0; k < 2; ++k)
    x = w.relu(w.conv(x, {.channels = channels(options, 64), .kernel = 3, .stride = 2, .bias = true}));
  x = w.transposed(x, {0, 2, 1, 3});
  x = w.linear(w.reshaped(x, {x.shape[0], x.shape[1], x.shape[2] * x.shape[3]}), channels(options, 144));
  for (int k = 0; k < 2; ++k) x = block(w, x, channels(options, 576));
  w.output(w.softmax(w.linear(x, kSounds), 2));
}

}  // namespace tuner::testing
