#include "tuner/model/model_extents.h"

#include <charconv>

namespace tuner {

Result<ModelExtents> model_extents(int64_t batch, std::span<const std::string> dims) {
  ModelExtents extents;
  if (batch > 0) extents.batch = batch;
  for (const std::string& text : dims) {
    const size_t equals = text.rfind('=');
    int64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] =
        std::from_chars(equals == std::string::npos ? end : text.data() + equals + 1, end, value);
    if (equals == std::string::npos || equals == 0 || error != std::errc() || stop != end || value < 0 ||
        value > ModelExtents::kMost)
      return invalid_argument("--dim: expected NAME=N, as sequence=128, found \"", text, "\"");
    if (!extents.named.emplace(text.substr(0, equals), value).second)
      return invalid_argument("--dim ", text.substr(0, equals), ": found twice, expected once");
  }
  return extents;
}

}  // namespace tuner
