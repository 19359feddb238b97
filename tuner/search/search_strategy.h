// SearchStrategy: proposes configs and observes their results. Each strategy is one file; they share only
// this page.
//
// Asynchronous: results arrive in any order, and several proposals may be open at once. Seeded: the same seed
// and the same sequence of calls give the same proposals. Not thread-safe: the job that owns it calls it from
// one thread at a time.
//
// A candidate is a (template, config): several templates may serve a task, and the template is the first
// choice of the search.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"
#include "templates/space/config_space.h"

namespace tuner {

struct Candidate {
  int template_index = 0;  // into SearchSpace::parts
  ConfigIndex config = 0;
  bool operator==(const Candidate&) const = default;
  auto operator<=>(const Candidate&) const = default;  // NOLINT(modernize-use-nullptr)
};

// Results of a similar task: another shape, another machine, an earlier job. Strategies without a model
// ignore them. Times of different tasks are never compared, only normalised within their own.
struct PriorTask {
  struct Row {
    std::string template_name;
    Config config;  // knobs are matched by name; the config need not be valid in the searched space
    bool ok = false;
    double time_ns = 0;  // if ok
  };
  std::string source;  // where the rows are from, for people
  std::vector<Row> rows;
  double weight = 1;       // expected usefulness before anything is measured, in (0, 1]
  bool same_task = false;  // the rows are from other jobs of this very task
};

// The best strategy, used unless a job names another.
inline constexpr std::string_view kDefaultStrategy = "bayesian";

// The union of the applicable templates' spaces. The strategy borrows it; it must outlive the strategy.
struct SearchSpace {
  struct Part {
    std::string template_name;
    const ConfigSpace* space;
    // Returns features of the scheduled Program beyond the knobs, as many for every config of the task. Null:
    // knob features only. The caller caches them. It is called for at most a few hundred promising candidates
    // per round.
    std::function<std::vector<float>(const Config&)> program_features;
  };
  std::vector<Part> parts;
  std::vector<PriorTask> priors;
  uint64_t size() const;
};

struct Observation {
  Candidate candidate;
  bool ok = false;     // false: it failed, in whatever way; failures are data too
  double time_ns = 0;  // if ok; lower is better
  bool cut = false;    // ok, but stopped early: the config takes at least time_ns
};

class SearchStrategy {
 public:
  virtual ~SearchStrategy() = default;
  virtual std::string_view name() const = 0;
  // Returns up to n candidates never proposed before; fewer or none if the space is exhausted. A first call
  // with n = 1 returns the default config of the first template, which also answers a task without records.
  virtual std::vector<Candidate> propose(size_t n) = 0;
  // Takes results. A proposal is observed at most once. Candidates not proposed here (a resumed job's
  // records) are accepted.
  virtual void observe(std::span<const Observation> results) = 0;
  // One line about the model for people: "the model ranks new candidates well (0.71, of 16 trials)"; empty
  // without a model.
  virtual std::string status_line() const { return {}; }
  // Counts the random draws so far. It is stored with the proposed trials, so that a resumed job can tell
  // where it stood.
  virtual uint64_t rng_counter() const = 0;
  // Returns the digest of the model in use; empty without a model.
  virtual std::string model_digest() const { return {}; }
};

// name: random | grid | genetic | annealing | coordinate-descent | bayesian | xgb-genetic | xgb-annealing.
// InvalidArgument lists the names.
Result<std::unique_ptr<SearchStrategy>> make_strategy(std::string_view name, const SearchSpace& space,
                                                      uint64_t seed);
const std::vector<std::string>& strategy_names();
// True if make_strategy() knows the name: one of strategy_names(), or known-best, which does not search
// (known_best.h).
bool is_strategy(std::string_view name);

}  // namespace tuner
