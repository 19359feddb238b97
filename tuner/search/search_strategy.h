// SearchStrategy: proposes configs, observes what they measured. One file a strategy; they share nothing but
// this page.
//
// Asynchronous: results arrive in any order, several proposals may be open at once. Seeded: the same seed and
// the same sequence of calls give the same proposals. Not thread-safe: the job that owns it calls it from one
// thread at a time.
//
// A candidate is (template, config): several templates may serve a task, and the template is the first choice
// of the search.
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

// What was measured of a similar task: another shape, another machine, an earlier job. A strategy without a
// model ignores it. Times of different tasks are never compared, only normalised within their own.
struct PriorTask {
  struct Row {
    std::string template_name;
    Config config;  // knobs are matched by name; it need not be valid in the space that is searched
    bool ok = false;
    double time_ns = 0;  // when ok
  };
  std::string source;  // for people: where the rows are from
  std::vector<Row> rows;
  double weight = 1;       // how much is expected of it before anything is measured, in (0, 1]
  bool same_task = false;  // other jobs of the very task that is searched
};

// The best of them: what is used when nobody says otherwise.
inline constexpr std::string_view kDefaultStrategy = "bayesian";

// The union of the applicable templates' spaces. Borrowed; outlives the strategy.
struct SearchSpace {
  struct Part {
    std::string template_name;
    const ConfigSpace* space;
    // Features beyond the knobs, from the scheduled Program (may be empty: knob features only). Same length
    // for every config of the task; cached by the caller. Called for at most a few hundred promising
    // candidates a round.
    std::function<std::vector<float>(const Config&)> program_features;
  };
  std::vector<Part> parts;
  std::vector<PriorTask> priors;
  uint64_t size() const;
};

struct Observation {
  Candidate candidate;
  bool ok = false;     // false: failed in whatever way; it is data, not silence
  double time_ns = 0;  // when ok; lower is better
  bool cut = false;    // ok, but stopped early: time_ns is only a lower bound of how slow it is
};

class SearchStrategy {
 public:
  virtual ~SearchStrategy() = default;
  virtual std::string_view name() const = 0;
  // Up to n candidates never proposed before. Fewer, or none, when the space is exhausted. A first call with
  // n = 1 gives the default config of the first template: what a task without any record is answered with.
  virtual std::vector<Candidate> propose(size_t n) = 0;
  // Every proposal is observed at most once. Candidates not proposed here (a resumed job's records) are
  // welcome.
  virtual void observe(std::span<const Observation> results) = 0;
  // One line about the model for people: "rank correlation on the last batch 0.71 (16 trials)"; empty without
  // a model.
  virtual std::string status_line() const { return {}; }
  // Draws made so far: stored with the trials they proposed, so that a resumed job can say where it stood.
  virtual uint64_t rng_counter() const = 0;
  // Digest of the model in use; empty without a model.
  virtual std::string model_digest() const { return {}; }
};

// name: random | grid | genetic | annealing | coordinate-descent | bayesian | xgb-genetic | xgb-annealing.
// InvalidArgument lists the names.
Result<std::unique_ptr<SearchStrategy>> make_strategy(std::string_view name, const SearchSpace& space,
                                                      uint64_t seed);
const std::vector<std::string>& strategy_names();
// Whether make_strategy() knows it: one of strategy_names(), or known-best, which searches nothing
// (known_best.h).
bool is_strategy(std::string_view name);

}  // namespace tuner
