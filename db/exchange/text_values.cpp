// Names of formats.
#include <array>

#include "db/exchange/formats.h"

namespace tuner::exchange {

namespace {

constexpr std::array<std::string_view, 5> kNames = {"jsonl", "autotvm", "t4", "csv", "kernel-tuner"};

}  // namespace

std::string_view format_name(Format format) { return kNames.at(static_cast<size_t>(format)); }

std::optional<Format> format_from_name(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == name) return static_cast<Format>(i);
  return std::nullopt;
}

}  // namespace tuner::exchange
