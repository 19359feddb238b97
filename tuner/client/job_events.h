// JobEvents: the Watch call, one event after another. Blocks; job_watch.h is what commands use.
#pragma once

#include <grpcpp/client_context.h>

#include <cstdint>
#include <memory>
#include <string>

#include "compiler_core/base/status.h"
#include "tuning.grpc.pb.h"

namespace tuner {

class JobEvents {
 public:
  // `jobs` outlives this.
  JobEvents(v1::Jobs::Stub& jobs, std::string peer, const std::string& job_id, int64_t after_seq);

  bool read(v1::JobEvent& event);  // false: there are no more
  Status finish();                 // after the last: how the call ended
  void cancel();                   // any thread: the next read gives no more

 private:
  std::string peer_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::JobEvent>> reader_;
};

}  // namespace tuner
