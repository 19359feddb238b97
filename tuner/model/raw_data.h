// Where the elements of a model's constants lie in its file. Nearly all of a model is these bytes: they are
// cut out before protobuf reads the rest, so that nobody copies them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tuner {

struct StrippedModel {
  std::string bytes;  // a ModelProto whose initializers have no raw_data
  // Of each initializer, in order: its raw_data in the original; no data() where it had none.
  std::vector<std::span<const std::byte>> raw;
};

// Reads the wire format, and no more of it than it needs. Nothing if the bytes are no protobuf message.
std::optional<StrippedModel> strip_raw_data(std::string_view model);

}  // namespace tuner
