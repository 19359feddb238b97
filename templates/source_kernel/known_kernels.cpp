#include "templates/source_kernel/known_kernels.h"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "compiler_core/base/printable.h"
#include "templates/source_kernel/source_document.h"

namespace tuner {
namespace {

using KernelPointer = std::shared_ptr<const SourceKernel>;

struct Known {
  std::mutex mutex;
  std::map<std::string, KernelPointer, std::less<>> by_digest;
  // Found as documents: the earliest goes first.
  struct Found {
    std::string digest;
    KernelPointer kernel;
    size_t bytes = 0;
  };
  std::deque<Found> found;
  size_t found_bytes = 0;
  std::shared_mutex asking;  // who asks a source has it shared, who takes one out alone
  std::map<int, KernelSource::Look> sources;
  int next = 1;
};
Known& known() {
  static Known all;
  return all;
}

KernelPointer known_now(std::string_view digest) {
  const std::lock_guard lock(known().mutex);
  if (const auto put_in = known().by_digest.find(digest); put_in != known().by_digest.end())
    return put_in->second;
  const auto found = std::ranges::find(known().found, digest, &Known::Found::digest);
  return found == known().found.end() ? nullptr : found->kernel;
}

void keep_found(const std::string& digest, KernelPointer kernel, size_t bytes) {
  const std::lock_guard lock(known().mutex);
  if (std::ranges::find(known().found, digest, &Known::Found::digest) != known().found.end()) return;
  known().found.push_back({digest, std::move(kernel), bytes});
  known().found_bytes += bytes;
  // The latest stays, whatever its size: somebody is about to ask for it.
  for (; known().found_bytes > kMostFoundBytes && known().found.size() > 1; known().found.pop_front())
    known().found_bytes -= known().found.front().bytes;
}

Result<std::pair<std::string, KernelPointer>> read_found(std::string_view document, std::string_view digest) {
  ASSIGN_OR_RETURN(KernelPointer kernel, parse_source_document(document));
  std::string found = source_digest(*kernel);
  if (!digest.empty() && found != digest)
    return invalid_argument("a kernel's document has the digest ", found, ", expected ", printable(digest));
  keep_found(found, kernel, document.size());
  return std::pair(std::move(found), std::move(kernel));
}

}  // namespace

bool is_digest(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string know_kernel(std::shared_ptr<const SourceKernel> kernel) {
  std::string digest = source_digest(*kernel);
  const std::lock_guard lock(known().mutex);
  known().by_digest.emplace(digest, std::move(kernel));
  return digest;
}

Result<std::string> know_document(std::string_view document, std::string_view digest) {
  ASSIGN_OR_RETURN(auto found, read_found(document, digest));
  return std::move(found.first);
}

Result<std::shared_ptr<const SourceKernel>> find_kernel(std::string_view digest) {
  if (KernelPointer kernel = known_now(digest)) return kernel;
  const std::shared_lock asking(known().asking);
  const auto& sources = known().sources;
  for (auto source = sources.rbegin(); source != sources.rend(); ++source) {
    const Result<std::string> document = source->second(std::string(digest));
    if (!document && document.status().code() == StatusCode::kNotFound) continue;
    if (!document) return document.status();
    ASSIGN_OR_RETURN(auto found, read_found(*document, digest));
    return std::move(found.second);
  }
  return not_found("the source of kernel ", printable(digest.substr(0, 80)), " is not here");
}

KernelSource::KernelSource(Look look) {
  const std::unique_lock alone(known().asking);
  id_ = known().next++;
  known().sources[id_] = std::move(look);
}

KernelSource::~KernelSource() {
  const std::unique_lock alone(known().asking);
  known().sources.erase(id_);
}

}  // namespace tuner
