// Plays a strategy on a space in which every time is known.
#pragma once

#include <functional>
#include <vector>

#include "tuner/search/search_strategy.h"

namespace tuner {

struct SimulationRun {
  std::vector<double> share;     // best time of the space / best time found so far, after each trial; 0: none
                                 // found
  std::vector<double> think_ms;  // CPU time of the strategy for each round of in_flight trials
  // Returns the trials until the share was reached; the run's trials + 1 if it never was.
  size_t trials_to(double share_wanted) const;
  double think_ms_per_trial() const;  // mean, with refits
};

// `in_flight` configs are proposed before the results of any of them are seen. A run that proposes nothing
// more (the space is exhausted) keeps its last share to the end.
SimulationRun simulate(SearchStrategy& search, const std::function<Observation(const Candidate&)>& measure,
                       double best_ns, size_t trials, size_t in_flight);

// Summarises many runs: one row of the table.
class SimulationSummary {
 public:
  void add(const SimulationRun& run) { runs_.push_back(run); }
  size_t runs() const { return runs_.size(); }
  double mean_share(size_t trials) const;
  double median_share(size_t trials) const;
  double worst_share(size_t trials) const;
  double median_trials_to(double share) const;  // trials + 1 if fewer than half of the runs reached it
  double think_ms_per_trial() const;

 private:
  std::vector<SimulationRun> runs_;
};

}  // namespace tuner
