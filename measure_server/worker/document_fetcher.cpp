#include "measure_server/worker/document_fetcher.h"

#include <optional>

#include "templates/workload/key_document.h"

namespace tuner {

template <class Fetch>
Status DocumentFetcher::have(std::string_view workload_key, const v1::Blob& blob, const Fetch& fetch) {
  const std::optional<std::string> digest = document_of_key(workload_key);
  if (!digest) return Status::ok();
  const std::lock_guard lock(mutex_);
  // Found: its file was read and has this digest, or one that was damaged is fetched once more.
  if (tuner::has_document(cache_, *digest) && find_kernel(*digest)) return Status::ok();
  if (blob.bytes() <= 0 || blob.bytes() > static_cast<int64_t>(kMostDocumentBytes))
    return not_found("the source of kernel ", *digest, " has ", blob.bytes(), " bytes, expected 1 to ",
                     kMostDocumentBytes);
  ASSIGN_OR_RETURN(const std::string bytes, fetch());
  RETURN_IF_ERROR(put_document(cache_, *digest, bytes));
  keeper_.added(blob.bytes());
  keeper_.keep(cache_, {.most_bytes = cache_bytes_});
  return Status::ok();
}

Status DocumentFetcher::for_lease(const std::string& trial_id, std::string_view workload_key,
                                  const v1::Blob& blob) {
  return have(workload_key, blob, [&] { return transfer_.fetch(trial_id, blob); });
}

Status DocumentFetcher::for_order(const std::string& order_id, std::string_view workload_key,
                                  const v1::Blob& blob) {
  return have(workload_key, blob, [&] { return transfer_.fetch_for_order(order_id, blob); });
}

}  // namespace tuner
