// write_model NAME FILE [IMAGE [LAYERS]]: one of the networks of this folder as an ONNX file, to try
// commands on.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string_view>

#include "tests/models/nested_u.h"
#include "tests/models/networks.h"
#include "tests/models/quantized_networks.h"
#include "tests/models/recurrent_networks.h"
#include "tests/models/transformer_networks.h"

namespace {

std::optional<int64_t> number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_right = error == std::errc() && end == text.data() + text.size() && value >= 0;
  return is_right ? std::optional(value) : std::nullopt;
}

}  // namespace

int main(int count, char** words) {
  tuner::testing::NetworkOptions options;
  const auto image = number(count > 3 ? words[3] : "0"), layers = number(count > 4 ? words[4] : "0");
  if (count < 3 || count > 5 || !image || !layers) {
    std::fprintf(stderr,
                 "usage: write_model NAME FILE [IMAGE [LAYERS]]: a network, where to write it, height and "
                 "width of its images, or how many tokens a transformer has, and how many layers\n");
    return 2;
  }
  options.image = *image;
  const std::string_view name = words[1];
  const auto& recurrent = tuner::testing::recurrent_network_names();
  const auto& quantized = tuner::testing::quantized_network_names();
  std::vector<std::string> transformers = tuner::testing::transformer_names();
  std::ranges::copy(tuner::testing::names_of_narrow_transformers(), std::back_inserter(transformers));
  const auto bytes = std::ranges::count(transformers, name) > 0
                         ? tuner::testing::transformer(name, {.layers = *layers, .tokens = *image})
                     : std::ranges::count(quantized, name) > 0
                         ? tuner::testing::quantized_network(name, options)
                     : name == "nested_u" ? tuner::Result<std::string>(tuner::testing::nested_u(options))
                     : std::ranges::count(recurrent, name) > 0 ? tuner::testing::recurrent_network(name)
                                                               : tuner::testing::network(name, options);
  if (!bytes) {
    std::fprintf(stderr, "write_model: %s\n", bytes.message().c_str());
    return 2;
  }
  std::ofstream file(words[2], std::ios::binary);
  file << *bytes;
  if (!file.flush()) {
    std::fprintf(stderr, "write_model: %s cannot be written\n", words[2]);
    return 1;
  }
  return 0;
}
