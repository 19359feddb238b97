// SearchHistory: what the search of one task gave and was shown, as its rows in the store tell, to be played
// to another search: a restarted job's (job_runner.h), or that of a proof (replay.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "db/records.h"
#include "tuner/search/search_strategy.h"

namespace tuner {

// As a search sees a record.
Observation observation(const Candidate& candidate, const MeasureRecord& record);

// A trial as a search looks back on it: few bytes, since there may be a million of them.
struct PastTrial {
  struct Result {
    int64_t record_id = 0;
    bool ok = false, cut = false;
    double time_ns = 0;
  };
  int64_t seq = 0;  // of its row
  Candidate candidate;
  std::optional<Result> result;
};
PastTrial::Result past_result(int64_t record_id, const MeasureRecord& record);
Observation observation(const Candidate& candidate, const PastTrial::Result& result);

class SearchHistory {
 public:
  struct Trial {
    int64_t seq = 0;
    Candidate candidate;
  };

  // A trial of the task; in seq order.
  void add(const PastTrial& trial);

  // One stored call of SearchStrategy::propose, made again.
  struct Call {
    std::span<const Trial> then;  // what it gave; of this history
    std::vector<Candidate> now;   // what it gives now, but for what trials before it had
    size_t shown = 0;             // results the search observed right before
  };
  // Shows `search` the results it had observed by then and asks for as many candidates as it was asked for. A
  // proposal that nobody asked it for (ProposalRow::asked is 0) is given as it is.
  // Proposals come in seq order, each once.
  Call play(const ProposalRow& proposal, SearchStrategy& search);

  // Results no proposal so far has observed, up to this record, in the order of their records. They are given
  // once.
  std::vector<Observation> take_results(int64_t until = std::numeric_limits<int64_t>::max());

  std::span<const Trial> trials() const { return trials_; }

 private:
  std::vector<Trial> trials_;
  std::map<int64_t, Observation> results_;  // by record id
  size_t next_ = 0;                         // the first trial that no proposal played so far gave
  std::set<Candidate> given_;               // by those before it
};

}  // namespace tuner
