// BuilderWorker: a worker that only builds. Compiles what leases of runners need, in builder processes, one a
// CPU, and sends what they made to the daemon. It measures nothing and runs no candidate.
//
//   talk    Sync: orders in, answers out (talk.h)
//   make    one thread a builder process: order -> artifact or reference answer
//   send    a few threads: what was made -> daemon -> answer; so that no compiler waits for a slow link
//   tend    while this worker cannot work: looks whether it can again (fitness.h)
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "compiler_core/base/line_limit.h"
#include "measure_server/worker/blob_link.h"
#include "measure_server/worker/builder_client.h"
#include "measure_server/worker/builder_core.h"
#include "measure_server/worker/daemon_link.h"
#include "measure_server/worker/document_fetcher.h"
#include "measure_server/worker/fitness.h"
#include "measure_server/worker/talk.h"
#include "measure_server/worker/work_folder.h"

namespace tuner {

struct BuilderOptions {
  // As WorkerOptions.
  std::string worker_id, worker_name, work_dir, shared_dir;
  bool next_work_dir = false;
  int64_t cache_bytes = int64_t{4} << 30;
  std::string program;  // path of measure_server
  int builders = 0;     // processes; 0: one for each CPU
};

class BuilderWorker {
 public:
  // Starts the builder processes: call it before any gRPC. InvalidArgument: another worker uses the work
  // folder.
  static Result<std::unique_ptr<BuilderWorker>> start(BuilderOptions options);
  ~BuilderWorker();

  // As Worker.
  Status run(DaemonLink& link, BlobLink& blobs);
  void drain() { core_->drain(); }
  void stop();

 private:
  explicit BuilderWorker(BuilderOptions options) : options_(std::move(options)) {}
  Status open();
  v1::RegisterRequest hello(const std::vector<BuildReply::Compiler>& compilers,
                            const std::vector<BuildReply::SourceCompiler>& source_compilers) const;
  Status able() const;
  void make_orders(BuilderClient& client, DocumentFetcher& documents);
  void make(BuilderClient& client, const v1::BuildOrder& order);
  struct ToSend {
    v1::BuildOrder order;
    BuildReply reply;
  };
  size_t senders_n() const;
  void send_made(const BlobTransfer& transfer);
  void send(const BlobTransfer& transfer, const ToSend& what);
  void could_not(const v1::BuildOrder& order, const Status& why, bool no_builder = false);
  Result<v1::Built> made(const BuildReply& reply, const BlobTransfer& transfer,
                         const v1::BuildOrder& order) const;
  Status send_file(const std::string& path, const BlobTransfer& transfer, const v1::BuildOrder& order,
                   v1::Blob* name) const;
  std::string shared_dir() const {
    return options_.shared_dir.empty() ? folder_->path() : options_.shared_dir;
  }

  const BuilderOptions options_;
  std::optional<WorkFolder> folder_;
  std::string worker_id_, host_, incarnation_;
  std::unique_ptr<BuilderCore> core_;
  std::unique_ptr<Talk> talk_;
  std::unique_ptr<Fitness> fitness_;
  std::vector<std::unique_ptr<BuilderClient>> clients_;
  LineLimit trouble_;
  std::stop_source ending_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<ToSend> to_send_;
};

}  // namespace tuner
