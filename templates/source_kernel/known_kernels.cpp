#include "templates/source_kernel/known_kernels.h"

#include <map>
#include <mutex>
#include <vector>

#include "compiler_core/base/printable.h"
#include "templates/source_kernel/source_document.h"

namespace tuner {
namespace {

struct Known {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<const SourceKernel>, std::less<>> by_digest;
  std::map<int, KernelSource::Look> sources;
  int next = 1;
};
Known& known() {
  static Known all;
  return all;
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
  ASSIGN_OR_RETURN(std::shared_ptr<const SourceKernel> kernel, parse_source_document(document));
  if (!digest.empty())
    if (const std::string found = source_digest(*kernel); found != digest)
      return invalid_argument("a kernel's document has the digest ", found, ", expected ", printable(digest));
  return know_kernel(std::move(kernel));
}

Result<std::shared_ptr<const SourceKernel>> find_kernel(std::string_view digest) {
  std::vector<KernelSource::Look> sources;
  {
    const std::lock_guard lock(known().mutex);
    if (const auto found = known().by_digest.find(digest); found != known().by_digest.end())
      return found->second;
    for (auto source = known().sources.rbegin(); source != known().sources.rend(); ++source)
      sources.push_back(source->second);
  }
  for (const KernelSource::Look& look : sources) {
    const Result<std::string> document = look(std::string(digest));
    if (!document && document.status().code() == StatusCode::kNotFound) continue;
    if (!document) return document.status();
    RETURN_IF_ERROR(know_document(*document, digest).status());
    return find_kernel(digest);
  }
  return not_found("the source of kernel ", printable(digest.substr(0, 80)), " is not here");
}

KernelSource::KernelSource(Look look) {
  const std::lock_guard lock(known().mutex);
  id_ = known().next++;
  known().sources[id_] = std::move(look);
}

KernelSource::~KernelSource() {
  const std::lock_guard lock(known().mutex);
  known().sources.erase(id_);
}

}  // namespace tuner
