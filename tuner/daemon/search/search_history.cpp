#include "tuner/daemon/search/search_history.h"

#include <algorithm>

namespace tuner {

Observation observation(const Candidate& candidate, const MeasureRecord& record) {
  return {candidate, record.outcome == Outcome::kOk, record_time_ns(record), record.cut};
}

PastTrial::Result past_result(int64_t record_id, const MeasureRecord& record) {
  return {record_id, record.outcome == Outcome::kOk, record.cut, record_time_ns(record)};
}

Observation observation(const Candidate& candidate, const PastTrial::Result& result) {
  return {candidate, result.ok, result.time_ns, result.cut};
}

void SearchHistory::add(const PastTrial& trial) {
  trials_.push_back({trial.seq, trial.candidate});
  if (trial.result) results_[trial.result->record_id] = observation(trial.candidate, *trial.result);
}

SearchHistory::Call SearchHistory::play(const ProposalRow& proposal, SearchStrategy& search) {
  const int64_t first = proposal.count > 0 ? proposal.first_trial_seq : proposal.seq;
  const bool by_search = proposal.asked > 0;
  // Those of the proposal before, and cancelled ones that were given once more without a proposal.
  for (; next_ < trials_.size() && trials_[next_].seq < first; ++next_)
    given_.insert(trials_[next_].candidate);
  size_t end = next_;
  while (end < trials_.size() && trials_[end].seq < first + proposal.count) ++end;
  Call call{.then = trials().subspan(next_, end - next_), .now = {}, .shown = 0};
  if (!by_search) {
    for (const Trial& t : call.then) call.now.push_back(t.candidate);
    return call;
  }
  const std::vector<Observation> seen = take_results(proposal.observed_record_id);
  if (!seen.empty()) search.observe(seen);
  call.shown = seen.size();
  call.now = search.propose(static_cast<size_t>(proposal.asked));
  std::erase_if(call.now, [&](const Candidate& c) { return given_.contains(c); });
  return call;
}

std::vector<Observation> SearchHistory::take_results(int64_t until) {
  std::vector<Observation> taken;
  while (!results_.empty() && results_.begin()->first <= until)
    taken.push_back(results_.extract(results_.begin()).mapped());
  return taken;
}

}  // namespace tuner
