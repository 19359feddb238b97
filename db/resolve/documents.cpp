#include "db/resolve/documents.h"

#include <optional>
#include <string>

#include "templates/source_kernel/known_kernels.h"
#include "templates/source_kernel/source_document.h"
#include "templates/workload/key_document.h"

namespace tuner {
namespace {

constexpr char kDocumentKind[] = "source";

}  // namespace

Status keep_document(Store& store, std::string_view workload_key) {
  const std::optional<std::string> digest = document_of_key(workload_key);
  if (!digest) return Status::ok();
  const Result<LearnedRow> there = store.learned(kDocumentKind, *digest, "");
  if (there || there.status().code() != StatusCode::kNotFound) return there.status();
  ASSIGN_OR_RETURN(const auto kernel, find_kernel(*digest));
  LearnedRow row{.kind = kDocumentKind, .op = *digest, .document = source_document(*kernel)};
  return store.add_learned(row);
}

std::shared_ptr<void> documents_in(const Store& store) {
  return std::make_shared<KernelSource>([&store](const std::string& digest) -> Result<std::string> {
    ASSIGN_OR_RETURN(LearnedRow row, store.learned(kDocumentKind, digest, ""));
    return std::move(row.document);
  });
}

}  // namespace tuner
