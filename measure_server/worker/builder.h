// The builder process: turns requests into artifacts and reference data. See builder_protocol.h.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "measure_server/worker/builder_protocol.h"
#include "templates/schedule_template.h"

namespace tuner {

class Builder {
 public:
  BuildReply answer(const BuildRequest& request);

 private:
  static BuildReply hello(const BuildRequest& request);
  BuildReply build(const BuildRequest& request);
  BuildReply data(const BuildRequest& request);
  Result<const TemplateInstance*> instance(const BuildRequest& request, const Workload& workload,
                                           const Target& target);

  // Declaring a space takes milliseconds; a job's tasks share the instances.
  std::map<std::string, std::unique_ptr<TemplateInstance>> instances_;
  int64_t builds_ = 0;  // artifacts made
};

// Answers requests on kBuilderFd until the worker closes it. Returns the exit status.
int run_builder();

}  // namespace tuner
