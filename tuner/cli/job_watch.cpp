#include "tuner/cli/job_watch.h"

#include <utility>

#include "tuner/daemon/grpc_status.h"

namespace tuner::cli {

JobWatch::JobWatch(Connection& connection, const std::string& job_id, int64_t after_seq)
    : peer_(connection.name) {
  v1::WatchRequest request;
  request.set_job_id(job_id);
  request.set_after_seq(after_seq);
  thread_ = std::thread([this, request, &connection] {
    const auto reader = connection.jobs->Watch(&context_, request);
    v1::JobEvent event;
    while (reader->Read(&event)) {
      const std::lock_guard lock(mutex_);
      // Only the latest progress counts for somebody who was busy elsewhere.
      if (event.has_progress() && !events_.empty() && events_.back().has_progress()) events_.pop_back();
      events_.push_back(event);
      ready_.notify_all();
    }
    const grpc::Status status = reader->Finish();
    const std::lock_guard lock(mutex_);
    status_ = from_grpc(status, peer_);
    ended_ = true;
    ready_.notify_all();
  });
}

JobWatch::~JobWatch() {
  context_.TryCancel();
  thread_.join();
}

JobWatch::Next JobWatch::next(int wait_ms) {
  std::unique_lock lock(mutex_);
  ready_.wait_for(lock, std::chrono::milliseconds(wait_ms), [&] { return ended_ || !events_.empty(); });
  Next next;
  if (!events_.empty()) {
    next.event = std::move(events_.front());
    events_.pop_front();
  } else if (ended_) {
    next.ended = true;
    next.status = status_;
  }
  return next;
}

}  // namespace tuner::cli
