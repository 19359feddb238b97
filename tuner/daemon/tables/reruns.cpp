#include "tuner/daemon/tables/reruns.h"

namespace tuner {
namespace {

constexpr int kFirstAttempt = 1'000'000;

}  // namespace

int Reruns::attempt_at(int64_t wall_us) {
  return static_cast<int>(kFirstAttempt + wall_us / 1'000'000 % 1'000'000'000);
}

void Reruns::begin(const std::string& trial_id) { reruns_[trial_id] = {}; }

void Reruns::end(const std::string& trial_id) { reruns_.erase(trial_id); }

const Reruns::Rerun* Reruns::find(const std::string& trial_id) const {
  const auto found = reruns_.find(trial_id);
  return found == reruns_.end() ? nullptr : &found->second;
}

bool Reruns::take(const MeasureRecord& record) {
  const auto found = reruns_.find(record.trial_id);
  if (found == reruns_.end() || record.attempt < kFirstAttempt) return false;
  found->second.record = record;
  return true;
}

void Reruns::fail(const std::string& trial_id, const std::string& why) {
  if (const auto found = reruns_.find(trial_id); found != reruns_.end()) found->second.error = why;
}

}  // namespace tuner
