#include "db/prune.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace tuner {

namespace {

bool protected_by_age(const PruneCandidate& record, const PruneRules& rules) {
  return record.record_id > rules.until_record_id ||
         (rules.finished_before_us > 0 && record.finished_at_us >= rules.finished_before_us);
}

// The older record first where times are equal, as best() has it.
bool faster(const PruneCandidate* a, const PruneCandidate* b) {
  return std::tie(a->time_ns, a->record_id) < std::tie(b->time_ns, b->record_id);
}

}  // namespace

PruneCount& PruneCount::operator+=(const PruneCount& other) {
  records += other.records;
  trials += other.trials;
  kept += other.kept;
  run_s += other.run_s;
  return *this;
}

std::vector<int64_t> records_to_prune(const std::vector<PruneCandidate>& records, const PruneRules& rules) {
  std::set<int64_t> kept;  // trials
  std::map<std::string, std::vector<const PruneCandidate*>> groups;
  for (const PruneCandidate& record : records) {
    if (record.needed || protected_by_age(record, rules)) kept.insert(record.trial_seq);
    if (record.ranked) groups[record.group].push_back(&record);
  }
  for (auto& [name, group] : groups) {
    const size_t most = std::min(group.size(), static_cast<size_t>(std::max<int64_t>(rules.keep, 1)));
    std::partial_sort(group.begin(), group.begin() + static_cast<std::ptrdiff_t>(most), group.end(), faster);
    for (size_t i = 0; i < most; ++i) kept.insert(group[i]->trial_seq);
  }
  std::vector<int64_t> ids;
  for (const PruneCandidate& record : records)
    if (!kept.contains(record.trial_seq)) ids.push_back(record.record_id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

}  // namespace tuner
