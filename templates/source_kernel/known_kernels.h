// The kernels that this process knows, by digest. A task's key names a digest; who reads the key asks here
// for the kernel.
//
// A job file's reader puts kernels in. Who has documents, as a daemon its database or a worker its folder, is
// asked for them. Any thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "compiler_core/base/status.h"
#include "templates/source_kernel/source_kernel.h"

namespace tuner {

// True for 64 lower-case hexadecimal digits.
bool is_digest(std::string_view text);

// Returns its digest. As long as the process lives; knowing one twice is fine.
std::string know_kernel(std::shared_ptr<const SourceKernel> kernel);
// Parses a document and knows it until others have taken its place: it is not kept beyond kMostFoundBytes of
// them. Returns its digest. InvalidArgument: it is none, or has not `digest`, where that is not empty.
Result<std::string> know_document(std::string_view document, std::string_view digest = {});
inline constexpr size_t kMostFoundBytes = size_t{256} << 20;
// NotFound: nobody has put it in, and no source of documents has it.
Result<std::shared_ptr<const SourceKernel>> find_kernel(std::string_view digest);

// Where documents are looked for that were not put in: a store, a folder. It returns the document, or NotFound. The latest one is asked
// first. Once the destructor has returned it is called no more. It does not call find_kernel().
class KernelSource {
 public:
  using Look = std::function<Result<std::string>(const std::string& digest)>;
  explicit KernelSource(Look look);
  ~KernelSource();
  KernelSource(const KernelSource&) = delete;
  KernelSource& operator=(const KernelSource&) = delete;

 private:
  int id_ = 0;
};

}  // namespace tuner
