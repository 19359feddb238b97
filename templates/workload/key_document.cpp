#include "templates/workload/key_document.h"

#include "templates/source_kernel/known_kernels.h"

namespace tuner {

std::optional<std::string> document_of_key(std::string_view workload_key) {
  constexpr std::string_view kDigest = " source=";
  const size_t at = workload_key.rfind(kDigest);
  if (!workload_key.starts_with("v1 kernel ") || at == std::string_view::npos) return std::nullopt;
  const std::string_view digest = workload_key.substr(at + kDigest.size());
  return is_digest(digest) ? std::optional<std::string>(digest) : std::nullopt;
}

}  // namespace tuner
