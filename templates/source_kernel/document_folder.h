// A folder of kernels' documents, in files named by their digests: sources/DIGEST below a cache that processes of a user share.
#pragma once

#include <string>
#include <string_view>

#include "compiler_core/base/status.h"
#include "templates/source_kernel/known_kernels.h"

namespace tuner {

// A longer one is none: files have 64 MiB together.
inline constexpr size_t kMostDocumentBytes = size_t{80} << 20;

// Puts the document of a kernel that this process can find there; one that is there is marked as used now. Whole, whoever reads meanwhile.
// NotFound: no such kernel. Failed: the disk.
Status put_document(const std::string& cache, std::string_view digest);

// The same with a document from elsewhere, which must have that digest: InvalidArgument if it has not, and
// nothing is put there.
Status put_document(const std::string& cache, std::string_view digest, std::string_view document);
// True if it is there; then it is marked as used now.
bool has_document(const std::string& cache, std::string_view digest);

// While it lives, find_kernel() also looks there.
class DocumentFolder {
 public:
  explicit DocumentFolder(std::string cache);

 private:
  KernelSource source_;
};

}  // namespace tuner
