// The builder process: turns requests into artifacts and reference data. See builder_protocol.h.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "measure_server/worker/builder_protocol.h"
#include "measure_server/worker/shared_cache.h"
#include "templates/schedule_template.h"
#include "templates/source_kernel/document_folder.h"

namespace tuner {

class Builder {
 public:
  BuildReply answer(const BuildRequest& request);
  // Keeps the cache below the limit of the latest request. It takes a while: call it when nobody waits.
  void keep_cache();

 private:
  static BuildReply hello(const BuildRequest& request);
  static BuildReply compilers();
  static BuildReply sources();
  BuildReply build(const BuildRequest& request);
  BuildReply data(const BuildRequest& request);
  Result<const TemplateInstance*> instance(const BuildRequest& request, const Workload& workload,
                                           const Target& target);

  // Declaring a space takes milliseconds; a job's tasks share the instances.
  std::map<std::string, std::unique_ptr<TemplateInstance>> instances_;
  CacheKeeper cache_;
  std::optional<DocumentFolder> documents_;  // of cache_folder_
  std::string cache_folder_;                 // of the latest request
  int64_t cache_bytes_ = 0;
};

// Answers requests on kBuilderFd until the worker closes it. Returns the exit status.
int run_builder();

}  // namespace tuner
