// RemoteMaker: what a runner has in a builder's place. The daemon tells with a Sync what became of a build
// (LeaseBuilt); the bytes are fetched when the maker is asked. Inputs are made here, from their seeds;
// nothing is used whose digest is not the one that was told.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "build.pb.h"
#include "measure_server/worker/blob_link.h"
#include "measure_server/worker/maker.h"
#include "measure_server/worker/shared_cache.h"
#include "measure_server/worker/task_files.h"

namespace tuner {

// What the daemon told of builds, and where it is fetched from. Any thread.
class RemoteBuilds {
 public:
  // `hello`: what this host can run, in the words of a builder (Builder::hello), without toolchains.
  RemoteBuilds(BuildReply hello, BlobTransfer transfer)
      : hello_(std::move(hello)), transfer_(std::move(transfer)) {}

  // Of a Sync's reply; the latest of a trial counts.
  void take(const v1::LeaseBuilt& built);
  // BuildRequest as of a Worker. NotFound: nothing was told of that lease, or it cannot be fetched any more.
  Result<BuildReply> answer(const BuildRequest& request);
  const BuildReply& hello() const { return hello_; }

 private:
  Result<BuildReply> artifact(const BuildRequest& request, const v1::Built& built);
  Result<BuildReply> data(const BuildRequest& request, const v1::Built& built);
  Result<std::string> fetch_artifact(const BuildRequest& request, const v1::Blob& blob);
  Status fetch_references(const BuildRequest& request, const v1::DataSet& set, const TaskData::Files& files);
  void added(const BuildRequest& request, int64_t bytes);

  const BuildReply hello_;
  const BlobTransfer transfer_;
  std::mutex mutex_;
  std::map<std::string, v1::LeaseBuilt> told_;  // by trial
  std::mutex data_mutex_;                       // one fetches the data of a task, others wait
  CacheKeeper cache_;
};

// Asks them; one for each fetching thread.
class RemoteMaker final : public Maker {
 public:
  explicit RemoteMaker(std::shared_ptr<RemoteBuilds> builds) : builds_(std::move(builds)) {}
  // The limit is of a build, and was kept by the builder.
  Result<BuildReply> ask(const BuildRequest& request, std::chrono::milliseconds) override {
    return builds_->answer(request);
  }
  const BuildReply& hello() const override { return builds_->hello(); }

 private:
  std::shared_ptr<RemoteBuilds> builds_;
};

}  // namespace tuner
