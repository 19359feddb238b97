// Networks with recurrent layers, weights drawn from a seed, as PyTorch exports them.
//
//   lstm_step           an LSTM alone, one step of 128 units, whose state comes with each call and goes back
//   lstm_sequence       the same, 100 steps
//   voice_detector      512 samples of 16 kHz and 64 before them; is somebody speaking? A window's spectrum,
//                       four convolutions, one step of an LSTM. Its state comes with each call and goes back.
//   wake_word           98 frames of 40 mel bands; which of 12 words? Two convolutions, two GRUs in both
//                       directions, the last frame decides.
//   crnn                a word as an image 32 high and 100 wide: which of 37 letters, or none, stands where?
//                       Seven convolutions, two LSTMs in both directions, each with a product behind it.
//   transducer_encoder  32 frames of 80 bands of a stream, as eight vectors of 512. Two convolutions, three
//                       LSTMs with sums and norms. The states of all layers come with each call and go back.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner::testing {

struct RecurrentNetworkOptions {
  int64_t units = 0;  // of its recurrent layers; 0: as published
  uint32_t seed = 1;
};

const std::vector<std::string>& recurrent_network_names();
// The bytes of an ONNX model, operator set 17. InvalidArgument: no network of this name.
Result<std::string> recurrent_network(std::string_view name, const RecurrentNetworkOptions& options = {});

}  // namespace tuner::testing
