// write_model NAME FILE [IMAGE]: one of the networks of networks.h as an ONNX file, to try commands on.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <string_view>

#include "tests/models/nested_u.h"
#include "tests/models/networks.h"
#include "tests/models/quantized_networks.h"
#include "tests/models/recurrent_networks.h"
#include "tests/models/transformer_networks.h"

int main(int count, char** words) {
  tuner::testing::NetworkOptions options;
  const std::string_view image = count > 3 ? words[3] : "0";
  const auto [end, error] = std::from_chars(image.data(), image.data() + image.size(), options.image);
  if (count < 3 || count > 4 || error != std::errc() || end != image.data() + image.size() ||
      options.image < 0) {
    std::fprintf(stderr,
                 "usage: write_model NAME FILE [IMAGE]: a network, where to write it, height and width of "
                 "its images\n");
    return 2;
  }
  const std::string_view name = words[1];
  const auto& recurrent = tuner::testing::recurrent_network_names();
  const auto& quantized = tuner::testing::quantized_network_names();
  const auto& transformers = tuner::testing::transformer_names();
  const auto bytes = std::ranges::count(transformers, name) > 0
                         ? tuner::testing::transformer(name, {.tokens = options.image})
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
