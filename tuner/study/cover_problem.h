// The question of `tuner cover` (places to be served, configs that might serve them, and how well each did
// where it was measured) and its answer.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler_core/base/status.h"
#include "db/learning/cover.h"
#include "db/learning/cover_set.h"
#include "db/store.h"
#include "tuner/search/recorded_space.h"

namespace tuner {

// One shape on one device.
struct CoverPlace {
  std::string name;                  // for people
  std::string workload_key, target;  // of the database; empty for a recorded space
  CoverFeatures features;            // also has the word "target", or "space"
  double best_ns = 0;                // time of the fastest known config here
};

struct CoverProblem {
  std::string op;  // "conv2d"; "recorded" for recorded spaces
  std::vector<CoverConfig> configs;
  std::vector<CoverPlace> places;        // each with at least one timed config
  ScoreTable scores;                     // rows: configs, columns: places
  std::set<std::pair<int, int>> failed;  // (config, place) that was measured, but wrong or cut short: it
                                         // scores 0
  int64_t outdated = 0;                  // records left out because their version of the template is gone
  int64_t until_record_id = 0;           // the records have ids up to this
};

// Each space becomes one place. InvalidArgument: fewer than two spaces, different knobs, the same file twice,
// or a space whose configs all fail.
Result<CoverProblem> problem_of_spaces(const std::vector<RecordedSpace>& spaces);

// Selects what of a database is to be covered. Empty lists select everything.
struct CoverScope {
  std::string op;                    // only this operator
  std::vector<JobRow::Task> tasks;   // only workload_key and algorithms are used, not target
  std::vector<std::string> targets;  // canonical
};
struct CoverProblems {
  std::vector<CoverProblem> problems;   // one per operator, by name
  std::vector<std::string> unmeasured;  // workloads of the scope without a timed config, with their target
};
// Records of machines with different fingerprints become different places with the same features.
Result<CoverProblems> problems_of_store(const Store& store, const CoverScope& scope);

struct CoverSolution {
  CoverSet set;                        // rows of the problem's table
  int at_least = 0;                    // no set of fewer configs reaches the level; 0: no level was asked for
  std::vector<double> worst_of_fewer;  // [k - 1]: best_cover() of k configs, for each k below the set's size
  CoverTree tree;                      // answers are positions in set.rows
  std::vector<int> use;                // per place: the tree's answer
  std::vector<double> score;           // per place: the score of that config there
  double worst = 0, mean = 0;          // of these scores
  int unknown_pairs = 0;               // pairs of a config in the set and a place that were never measured,
                                       // and count as 0
  Cover::LeftOut left_out;  // hides each place in turn; columns 0: fewer than three places, or too many
};
struct CoverWish {
  std::optional<double> level;  // find the smallest set that scores this much in every place
  int most = 0;                 // at most this many configs, at least 1; without a level: exactly this many
                                // if possible
};
CoverSolution solve(const CoverProblem& problem, const CoverWish& wish);

// Returns the documents to store: one per target. Only for problems of a database.
std::vector<Cover> covers_to_store(const CoverProblem& problem, const CoverSolution& solution);
// Stores them, and returns what each serves: "conv2d on TARGET".
Result<std::vector<std::string>> store_covers(Store& store, const CoverProblem& problem,
                                              const CoverSolution& solution);

}  // namespace tuner
