#include "db/resolve/documents.h"

#include <optional>
#include <string>
#include <vector>

#include "templates/source_kernel/known_kernels.h"
#include "templates/source_kernel/source_document.h"
#include "templates/workload/key_document.h"

namespace tuner {
namespace {

constexpr char kDocumentKind[] = "source";

Status keep(Store& store, const std::string& digest) {
  const Result<LearnedRow> there = store.learned(kDocumentKind, digest, "");
  if (there || there.status().code() != StatusCode::kNotFound) return there.status();
  ASSIGN_OR_RETURN(const auto kernel, find_kernel(digest));
  LearnedRow row{.kind = kDocumentKind, .op = digest, .document = source_document(*kernel)};
  return store.add_learned(row);
}

}  // namespace

Status keep_document(Store& store, std::string_view workload_key) {
  const std::optional<std::string> digest = document_of_key(workload_key);
  return digest ? keep(store, *digest) : Status::ok();
}

Status take_document(Store& store, std::string_view bytes) {
  ASSIGN_OR_RETURN(const std::string digest, know_document(bytes));
  return keep(store, digest);
}

std::string document_of_task(std::string_view workload_key) {
  const std::optional<std::string> digest = document_of_key(workload_key);
  if (!digest) return {};
  const auto kernel = find_kernel(*digest);
  return kernel ? source_document(**kernel) : std::string();
}

Status keep_documents(Store& store) {
  ASSIGN_OR_RETURN(const std::vector<JobRow> jobs, store.jobs());
  for (const JobRow& job : jobs)
    for (const JobRow::Task& task : job.tasks)
      if (const Status kept = keep_document(store, task.workload_key);
          !kept && kept.code() != StatusCode::kNotFound)
        return kept;
  return Status::ok();
}

std::shared_ptr<void> documents_in(const Store& store) {
  return std::make_shared<KernelSource>([&store](const std::string& digest) -> Result<std::string> {
    ASSIGN_OR_RETURN(LearnedRow row, store.learned(kDocumentKind, digest, ""));
    return std::move(row.document);
  });
}

}  // namespace tuner
