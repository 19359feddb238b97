// DocumentNames: which bytes stand for the documents that keys of tasks name by digest, and what compiles
// them. A plain table.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "db/blobs/blob_store.h"

namespace tuner {

struct DocumentName {
  std::string digest;    // as keys say it
  std::string tenant;    // whose row of the store it is
  BlobName blob;         // the bytes of that row
  std::string compiler;  // "cc"
};

class DocumentNames {
 public:
  // The first of a digest stays: what leases have named does not change.
  void add(DocumentName name);
  // Null: it is not known. Good for as long as the table lives.
  const DocumentName* find(std::string_view digest) const;
  const DocumentName* of_blob(const BlobName& blob) const;

 private:
  std::map<std::string, DocumentName, std::less<>> by_digest_;
  std::map<BlobName, std::string> digests_;
};

}  // namespace tuner
