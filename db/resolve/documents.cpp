#include "db/resolve/documents.h"

#include <utility>

#include "templates/source_kernel/known_kernels.h"
#include "templates/source_kernel/source_document.h"

namespace tuner {

std::shared_ptr<void> documents_in(const Store& store) {
  return std::make_shared<KernelSource>([&store](const std::string& digest) -> Result<std::string> {
    ASSIGN_OR_RETURN(KernelRow row, store.kernel(digest));
    return std::move(row.document);
  });
}

Result<DocumentFacts> read_document(std::string_view document, std::string_view digest) {
  ASSIGN_OR_RETURN(std::string found, know_document(document, digest));
  ASSIGN_OR_RETURN(const auto kernel, find_kernel(found));
  return DocumentFacts{std::move(found), kernel->compiler};
}

Result<std::string> find_document(std::string_view digest) {
  ASSIGN_OR_RETURN(const auto kernel, find_kernel(digest));
  return source_document(*kernel);
}

Status check_kernel(const KernelRow& kernel) {
  ASSIGN_OR_RETURN(const auto read, parse_source_document(kernel.document));
  const std::string found = source_digest(*read);
  if (found == kernel.digest) return Status::ok();
  return invalid_argument("a kernel's document has the digest ", found, ", expected ", kernel.digest);
}

Result<int64_t> check_kernels(const Store& store, const std::stop_token& stop,
                              const std::function<void(const std::string& line)>& wrong) {
  int64_t looked_at = 0;
  RETURN_IF_ERROR(store.for_each_kernel(
      [&](const KernelRow& kernel) {
        ++looked_at;
        if (const Status right = check_kernel(kernel); !right)
          wrong(str("row ", kernel.id, " of table kernel: ", right.message()));
        return !stop.stop_requested();
      },
      [](const Status&) {}));
  return looked_at;
}

}  // namespace tuner
