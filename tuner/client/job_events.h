// JobEvents: the Watch call, read one event at a time. It blocks; commands use job_watch.h.
#pragma once

#include <grpcpp/client_context.h>

#include <cstdint>
#include <memory>
#include <string>

#include "compiler_core/base/status.h"
#include "proto/daemon_access.h"
#include "tuning.grpc.pb.h"

namespace tuner {

class JobEvents {
 public:
  // `jobs` must outlive this.
  JobEvents(v1::Jobs::Stub& jobs, const DaemonAccess& access, std::string peer, const std::string& job_id,
            int64_t after_seq);

  bool read(v1::JobEvent& event);  // false: there are no more events
  Status finish();                 // call after the last event: tells how the call ended
  void cancel();                   // any thread may call it: the next read returns no more

 private:
  std::string peer_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::JobEvent>> reader_;
};

}  // namespace tuner
