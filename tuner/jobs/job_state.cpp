#include "tuner/jobs/job_state.h"

#include "db/writer_lock.h"

namespace tuner {

JobStates::JobStates(const std::string& db) : has_writer_(db::has_writer(db)) {}

bool JobStates::is_interrupted(const JobRow& job) const {
  return !has_writer_ && (job.state == JobState::kQueued || job.state == JobState::kRunning);
}

std::string JobStates::name(const JobRow& job) const {
  return is_interrupted(job) ? "interrupted" : std::string(job_state_name(job.state));
}

std::string JobStates::message(const JobRow& job) const {
  return is_interrupted(job) ? "its process is gone; submit the same file again to continue" : job.message;
}

}  // namespace tuner
