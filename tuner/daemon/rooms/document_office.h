// DocumentOffice: documents that keys of tasks name by digest, which users bring with their jobs: their
// sources.
//
//   take   a submission: its documents are checked as a job file's reader checks them, whoever sent them
//   know   a job goes on: leases of its tasks name their documents from now on
//   read   bytes for a worker; BuildOffice has looked whether one of his leases or orders names them
//
// A tenant submits what he brings or has brought before; what others brought is not there for him. Any thread
// may call, without the lock of the farm. It writes nothing: what take() returns is stored with the job.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler_core/base/status.h"
#include "db/store.h"
#include "tuner/daemon/rooms/farm_state.h"
#include "tuner/daemon/rooms/locked.h"
#include "tuner/daemon/tables/work.h"
#include "tuning.pb.h"

namespace tuner {

class DocumentOffice {
 public:
  // Both outlive it. While it lives, keys of tasks are read with the store's documents.
  DocumentOffice(const Store& store, Guarded<FarmState>& farm);

  // The documents that the job will need. Its keys can be read afterwards. InvalidArgument: what one of them
  // breaks, with its place; one that no task names; or a task's is neither here nor brought by that tenant
  // before.
  Result<std::vector<KernelRow>> take(const v1::SubmitRequest& request, const Scope& scope) const;
  // NotFound: the store lacks one; its trials wait.
  Status know(const std::vector<JobRow::Task>& tasks, const std::string& tenant);
  // At most `most` bytes from `offset` on. NotFound: no document has that name.
  Result<std::string> read(const BlobName& name, int64_t offset, int64_t most);

 private:
  using Bytes = std::shared_ptr<const std::string>;
  Result<Bytes> bytes_of(const BlobName& name);

  const Store& store_;
  Guarded<FarmState>& farm_;
  const std::shared_ptr<void> in_store_;
  std::mutex mutex_;
  std::list<std::pair<BlobName, Bytes>> recent_;  // read last, first: a worker asks for them part by part
};

// What a lease or order of that task names; null: nothing.
const DocumentName* document_of(const FarmState& farm, std::string_view workload_key);
// Work::compiler of the task.
std::string compiler_of(const FarmState& farm, const JobRow::Task& task);

}  // namespace tuner
