#include "tuner/daemon/tables/turns.h"

#include "compiler_core/base/status.h"

namespace tuner {

void Turns::wake(const std::string& job_id) {
  const auto [it, is_new] = states_.try_emplace(job_id, State::kWaiting);
  if (is_new)
    waiting_.push_back(job_id);
  else if (it->second == State::kThinking)
    it->second = State::kWokenMeanwhile;
}

std::optional<std::string> Turns::begin() {
  if (waiting_.empty()) return std::nullopt;
  std::string job_id = std::move(waiting_.front());
  waiting_.pop_front();
  states_[job_id] = State::kThinking;
  return job_id;
}

void Turns::end(const std::string& job_id) {
  const auto found = states_.find(job_id);
  CHECK(found != states_.end() && found->second != State::kWaiting) << "job " << job_id << " had no turn";
  const bool again = found->second == State::kWokenMeanwhile;
  states_.erase(found);
  if (again) wake(job_id);
}

}  // namespace tuner
