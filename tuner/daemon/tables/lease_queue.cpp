#include "tuner/daemon/tables/lease_queue.h"

#include <algorithm>

namespace tuner {
namespace {

constexpr int64_t kAge_ms = 300'000;  // of waiting raises a line by one priority
constexpr int kBatch = 16;            // leases of one job that a worker has in a row while others wait, too
constexpr size_t kMostBatches = 65'536;

}  // namespace

void LeaseQueue::put(const Item& item) {
  const LineKey key{item.needs, item.tenant, item.job_id, item.priority, item.urgent};
  const int64_t place = item.first ? --first_place_ : ++last_place_;
  if (!where_.try_emplace(item.id, key, place).second) return;
  lines_[key].emplace(place, Waiting{item.id, item.queued_ms});
}

void LeaseQueue::take(const std::string& id) {
  const auto found = where_.find(id);
  if (found == where_.end()) return;
  const auto line = lines_.find(found->second.first);
  line->second.erase(found->second.second);
  if (line->second.empty()) lines_.erase(line);
  where_.erase(found);
}

void LeaseQueue::for_each(const std::function<void(const std::string&)>& f) const {
  for (const auto& [key, line] : lines_)
    for (const auto& [place, waiting] : line) f(waiting.id);
}

std::optional<int64_t> LeaseQueue::oldest_queued_ms() const {
  std::optional<int64_t> oldest;
  for (const auto& [key, line] : lines_)
    oldest = std::min(oldest.value_or(line.begin()->second.queued_ms), line.begin()->second.queued_ms);
  return oldest;
}

std::vector<LeaseQueue::JobLine> LeaseQueue::lines_of(const std::string& job_id) const {
  std::vector<JobLine> lines;
  for (const auto& [key, line] : lines_)
    if (key.job_id == job_id) lines.push_back({key.needs, line.size()});
  return lines;
}

std::vector<std::string> LeaseQueue::ids_of(const std::string& job_id, const Needs& needs) const {
  std::vector<std::string> ids;
  for (const auto& [key, line] : lines_)
    if (key.job_id == job_id && key.needs == needs)
      for (const auto& [place, waiting] : line) ids.push_back(waiting.id);
  return ids;
}

std::map<std::string, int64_t> LeaseQueue::waiting_by_tenant() const {
  std::map<std::string, int64_t> waiting;
  for (const auto& [key, line] : lines_) waiting[key.tenant] += std::ssize(line);
  return waiting;
}

std::optional<std::string> LeaseQueue::choose(const Chooser& chooser, const Shares& shares) {
  const auto batch = batches_.find(chooser.worker_id);
  const std::string* const sticky =
      batch != batches_.end() && batch->second.left > 0 ? &batch->second.job_id : nullptr;
  const LineKey* best_line = nullptr;
  const Waiting* best = nullptr;
  Rank best_rank;
  for (const auto& [key, line] : lines_) {
    if (!chooser.serves(key.needs) || !shares.has_room(key.tenant)) continue;
    const auto next =
        std::ranges::find_if(line, [&](const auto& waiting) { return chooser.may_have(waiting.second.id); });
    if (next == line.end()) continue;
    const auto& [place, waiting] = *next;
    const int64_t aged = std::max<int64_t>(0, chooser.now_ms - waiting.queued_ms) / kAge_ms;
    const Rank rank{shares.clock(key.tenant),
                    !key.urgent,
                    -(key.priority + aged),
                    place >= 0,
                    sticky == nullptr || key.job_id != *sticky,
                    place};
    if (best != nullptr && best_rank <= rank) continue;
    best_line = &key;
    best = &waiting;
    best_rank = rank;
  }
  if (best == nullptr) return std::nullopt;
  note_choice(chooser.worker_id, best_line->job_id);
  std::string id = best->id;
  take(id);
  return id;
}

void LeaseQueue::note_choice(const std::string& worker_id, const std::string& job_id) {
  if (batches_.size() >= kMostBatches && !batches_.contains(worker_id)) batches_.clear();
  Batch& batch = batches_[worker_id];
  if (batch.job_id != job_id || batch.left <= 0) batch = {job_id, kBatch};
  --batch.left;
}

}  // namespace tuner
