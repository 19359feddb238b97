#include "tuner/client/job_watch.h"

#include <chrono>
#include <utility>

#include "tuner/client/job_events.h"

namespace tuner {

JobWatch::JobWatch(std::unique_ptr<JobEvents> events) : events_(std::move(events)) {
  thread_ = std::thread([this] { follow(); });
}

JobWatch::~JobWatch() {
  events_->cancel();
  thread_.join();
}

void JobWatch::follow() {
  v1::JobEvent event;
  while (events_->read(event)) {
    const std::lock_guard lock(mutex_);
    if (event.has_progress() && !waiting_.empty() && waiting_.back().has_progress()) waiting_.pop_back();
    waiting_.push_back(event);
    ready_.notify_all();
  }
  Status status = events_->finish();
  const std::lock_guard lock(mutex_);
  status_ = std::move(status);
  ended_ = true;
  ready_.notify_all();
}

JobWatch::Next JobWatch::next(int wait_ms) {
  std::unique_lock lock(mutex_);
  ready_.wait_for(lock, std::chrono::milliseconds(wait_ms), [&] { return ended_ || !waiting_.empty(); });
  Next next;
  if (!waiting_.empty()) {
    next.event = std::move(waiting_.front());
    waiting_.pop_front();
  } else if (ended_) {
    next.ended = true;
    next.status = status_;
  }
  return next;
}

}  // namespace tuner
