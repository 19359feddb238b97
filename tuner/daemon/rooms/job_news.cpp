#include "tuner/daemon/rooms/job_news.h"

namespace tuner {

void JobNews::tell(Job& job, const std::string& message, const v1::TunedConfig* tuned, JobState state) {
  events_.add(job.id(), state, message, tuned);
  const Locked farm(farm_);
  job.note_event();
  changed_.notify_all();
}

void JobNews::note_commit(const Status& committed) {
  metrics_.commit_failed = !committed;
  const Locked farm(farm_);
  StoreTrouble& trouble = farm->store_trouble;
  (committed ? trouble.stored_ms : trouble.at_ms) = clock_.now_ms();
  if (committed) return;
  trouble.reason = committed.message();
  changed_.notify_all();
}

}  // namespace tuner
