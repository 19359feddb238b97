// DocumentFetcher: what keys of leases and orders name by digest (a user's source), brought from the daemon
// into the shared cache (templates/source_kernel/document_folder.h), where all processes of this host find
// it. Any thread; one fetches, others wait.
#pragma once

#include <mutex>
#include <string>
#include <string_view>

#include "build.pb.h"
#include "compiler_core/base/status.h"
#include "measure_server/worker/blob_link.h"
#include "measure_server/worker/shared_cache.h"
#include "templates/source_kernel/document_folder.h"

namespace tuner {

class DocumentFetcher {
 public:
  DocumentFetcher(std::string cache, int64_t cache_bytes, BlobTransfer transfer)
      : cache_(std::move(cache)),
        cache_bytes_(cache_bytes),
        transfer_(std::move(transfer)),
        folder_(cache_) {}

  // OK: what the key names is there. NotFound: the daemon does not give it to that lease or order.
  // InvalidArgument: what it gives has another digest; nothing is kept of it. Failed: the disk.
  Status for_lease(const std::string& trial_id, std::string_view workload_key, const v1::Blob& blob);
  Status for_order(const std::string& order_id, std::string_view workload_key, const v1::Blob& blob);

 private:
  template <class Fetch>
  Status have(std::string_view workload_key, const v1::Blob& blob, const Fetch& fetch);

  const std::string cache_;
  const int64_t cache_bytes_;
  const BlobTransfer transfer_;
  const DocumentFolder folder_;
  std::mutex mutex_;
  CacheKeeper keeper_;
};

}  // namespace tuner
