// Extents that a model leaves open, as a person gives them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "compiler_core/base/status.h"

namespace tuner {

struct ModelExtents {
  static constexpr int64_t kMost = int64_t{1} << 31;

  std::optional<int64_t> batch;          // first extent of every input
  std::map<std::string, int64_t> named;  // "sequence" = 128
};

// `batch`: 0 is not given. `dims`: "NAME=N" each. InvalidArgument: another form, an extent that is not 1 to
// kMost, a name twice.
Result<ModelExtents> model_extents(int64_t batch, std::span<const std::string> dims);

}  // namespace tuner
