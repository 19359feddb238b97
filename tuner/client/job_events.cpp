#include "tuner/client/job_events.h"

#include <utility>

#include "proto/grpc_access.h"
#include "proto/grpc_status.h"

namespace tuner {

JobEvents::JobEvents(v1::Jobs::Stub& jobs, const DaemonAccess& access, std::string peer,
                     const std::string& job_id, int64_t after_seq)
    : peer_(std::move(peer)) {
  add_token(access, context_);
  v1::WatchRequest request;
  request.set_job_id(job_id);
  request.set_after_seq(after_seq);
  reader_ = jobs.Watch(&context_, request);
}

bool JobEvents::read(v1::JobEvent& event) { return reader_->Read(&event); }
Status JobEvents::finish() { return from_grpc(reader_->Finish(), peer_); }
void JobEvents::cancel() { context_.TryCancel(); }

}  // namespace tuner
