#include "tuner/daemon/tables/document_names.h"

#include <utility>

namespace tuner {

void DocumentNames::add(DocumentName name) {
  const auto [place, added] = by_digest_.try_emplace(name.digest, name);
  if (added) digests_.try_emplace(name.blob, std::move(name.digest));
}

const DocumentName* DocumentNames::find(std::string_view digest) const {
  const auto found = by_digest_.find(digest);
  return found == by_digest_.end() ? nullptr : &found->second;
}

const DocumentName* DocumentNames::of_blob(const BlobName& blob) const {
  const auto found = digests_.find(blob);
  return found == digests_.end() ? nullptr : find(found->second);
}

}  // namespace tuner
