#include "tuner/search/simulation.h"

#include <algorithm>
#include <ctime>
#include <limits>

#include "compiler_core/base/statistics.h"

namespace tuner {
namespace {

// Of this thread: strategies are single-threaded, and a busy machine must not count.
double cpu_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

}  // namespace

size_t SimulationRun::trials_to(double share_wanted) const {
  const auto found =
      std::find_if(share.begin(), share.end(), [&](double reached) { return reached >= share_wanted; });
  return static_cast<size_t>(found - share.begin()) + 1;
}

double SimulationRun::think_ms_per_trial() const {
  double sum = 0;
  for (const double ms : think_ms) sum += ms;
  return share.empty() ? 0 : sum / static_cast<double>(share.size());
}

SimulationRun simulate(SearchStrategy& search, const std::function<Observation(const Candidate&)>& measure,
                       double best_ns, size_t trials, size_t in_flight) {
  SimulationRun run;
  double best = std::numeric_limits<double>::infinity();
  while (run.share.size() < trials) {
    const double begin = cpu_ms();
    const std::vector<Candidate> proposed = search.propose(std::min(in_flight, trials - run.share.size()));
    double thought = cpu_ms() - begin;
    if (proposed.empty()) break;
    std::vector<Observation> results;
    for (const Candidate& c : proposed) {
      results.push_back(measure(c));
      if (results.back().ok && !results.back().cut) best = std::min(best, results.back().time_ns);
      run.share.push_back(best_ns / best);
    }
    const double resumed = cpu_ms();
    search.observe(results);
    thought += cpu_ms() - resumed;
    run.think_ms.push_back(thought);
  }
  run.share.resize(trials, run.share.empty() ? 0 : run.share.back());
  return run;
}

double SimulationSummary::mean_share(size_t trials) const {
  double sum = 0;
  for (const SimulationRun& run : runs_) sum += run.share[trials - 1];
  return sum / static_cast<double>(runs_.size());
}

double SimulationSummary::median_share(size_t trials) const {
  std::vector<double> shares;
  for (const SimulationRun& run : runs_) shares.push_back(run.share[trials - 1]);
  return median_in_place(shares);
}

double SimulationSummary::worst_share(size_t trials) const {
  double worst = 1;
  for (const SimulationRun& run : runs_) worst = std::min(worst, run.share[trials - 1]);
  return worst;
}

double SimulationSummary::median_trials_to(double share) const {
  std::vector<double> needed;
  for (const SimulationRun& run : runs_) needed.push_back(static_cast<double>(run.trials_to(share)));
  return median_in_place(needed);
}

double SimulationSummary::think_ms_per_trial() const {
  double sum = 0;
  for (const SimulationRun& run : runs_) sum += run.think_ms_per_trial();
  return sum / static_cast<double>(runs_.size());
}

}  // namespace tuner
