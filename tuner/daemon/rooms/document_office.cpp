#include "tuner/daemon/rooms/document_office.h"

#include <algorithm>
#include <optional>
#include <set>

#include "compiler_core/artifact/artifact.h"
#include "db/resolve/documents.h"
#include "proto/convert.h"
#include "templates/workload/key_document.h"

namespace tuner {
namespace {

constexpr size_t kMostRecent = 4;

}  // namespace

DocumentOffice::DocumentOffice(const Store& store, Guarded<FarmState>& farm)
    : store_(store), farm_(farm), in_store_(documents_in(store)) {}

Result<std::vector<KernelRow>> DocumentOffice::take(const v1::SubmitRequest& request,
                                                    const Scope& scope) const {
  RETURN_IF_ERROR(documents_fit(request));
  std::set<std::string> wanted;
  for (const v1::TaskSpec& task : request.tasks())
    if (std::optional<std::string> digest = document_of_key(task.workload_key()))
      wanted.insert(*std::move(digest));
  if (request.documents_size() > static_cast<int>(wanted.size()))
    return invalid_argument("submit.documents: found ", request.documents_size(), ", and tasks that name ",
                            wanted.size());
  std::vector<KernelRow> brought;
  for (int i = 0; i < request.documents_size(); ++i) {
    const std::string where = str("submit.documents[", i, "]: ");
    const Result<DocumentFacts> facts = read_document(request.documents(i));
    if (!facts) return facts.status().with_context(where);
    if (wanted.erase(facts->digest) == 0)
      return invalid_argument(where, "no task names it, or it is there twice");
    brought.push_back(
        {.digest = facts->digest, .tenant = scope.value_or(""), .document = request.documents(i)});
  }
  for (const std::string& digest : wanted) {
    // The same words whether or not others have it.
    const Status his = store_.kernel(digest, scope).status();
    if (his) continue;
    if (his.code() != StatusCode::kNotFound) return his;
    // Where there are no tenants: a job file that this very process has read.
    const Result<std::string> known = find_document(digest);
    if (scope || !known)
      return invalid_argument("the source of kernel ", digest,
                              " is not here; submit the job file from where the source is");
    brought.push_back({.digest = digest, .document = *known});
  }
  return brought;
}

Status DocumentOffice::know(const std::vector<JobRow::Task>& tasks, const std::string& tenant) {
  for (const JobRow::Task& task : tasks) {
    const std::optional<std::string> digest = document_of_key(task.workload_key);
    if (!digest || Locked(farm_)->documents.find(*digest) != nullptr) continue;
    Result<KernelRow> row = store_.kernel(*digest, tenant);
    if (row.status().code() == StatusCode::kNotFound) row = store_.kernel(*digest);
    RETURN_IF_ERROR(row.status());
    ASSIGN_OR_RETURN(const DocumentFacts facts, read_document(row->document, *digest));
    const BlobName blob{sha256_hex(row->document), std::ssize(row->document)};
    Locked(farm_)->documents.add({*digest, row->tenant, blob, facts.compiler});
  }
  return Status::ok();
}

Result<DocumentOffice::Bytes> DocumentOffice::bytes_of(const BlobName& name) {
  {
    const std::lock_guard lock(mutex_);
    const auto known = std::ranges::find(recent_, name, [](const auto& one) { return one.first; });
    if (known != recent_.end()) {
      recent_.splice(recent_.begin(), recent_, known);
      return recent_.front().second;
    }
  }
  std::string digest, tenant;
  {
    const Locked farm(farm_);
    const DocumentName* const document = farm->documents.of_blob(name);
    if (document == nullptr) return not_found("no document is named ", name.sha256);
    digest = document->digest;
    tenant = document->tenant;
  }
  ASSIGN_OR_RETURN(KernelRow row, store_.kernel(digest, tenant));
  const auto bytes = std::make_shared<const std::string>(std::move(row.document));
  const std::lock_guard lock(mutex_);
  recent_.emplace_front(name, bytes);
  if (recent_.size() > kMostRecent) recent_.pop_back();
  return bytes;
}

Result<std::string> DocumentOffice::read(const BlobName& name, int64_t offset, int64_t most) {
  ASSIGN_OR_RETURN(const Bytes bytes, bytes_of(name));
  if (offset < 0 || offset > std::ssize(*bytes))
    return invalid_argument("offset: found ", offset, ", expected 0 to ", bytes->size());
  return bytes->substr(static_cast<size_t>(offset), static_cast<size_t>(most));
}

const DocumentName* document_of(const FarmState& farm, std::string_view workload_key) {
  const std::optional<std::string> digest = document_of_key(workload_key);
  return digest ? farm.documents.find(*digest) : nullptr;
}

std::string compiler_of(const FarmState& farm, const JobRow::Task& task) {
  const DocumentName* const document = document_of(farm, task.workload_key);
  return document == nullptr ? std::string() : document->compiler;
}

}  // namespace tuner
