// What `tuner cover` is asked: places to be served, configs that might, and how well each did where it was
// measured; and what it answers.
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
  std::string workload_key, target;  // of the database's; a recorded space has neither
  CoverFeatures features;            // also the word "target", or "space"
  double best_ns = 0;                // the fastest config known here
};

struct CoverProblem {
  std::string op;  // "conv2d"; of recorded spaces "recorded"
  std::vector<CoverConfig> configs;
  std::vector<CoverPlace> places;        // each with at least one timed config
  ScoreTable scores;                     // rows: configs, columns: places
  std::set<std::pair<int, int>> failed;  // config and place: measured, and not right or cut short: scores 0
  int64_t outdated = 0;                  // records left out: of a version of a template that is gone
  int64_t until_record_id = 0;           // the records are those up to this one
};

// One place a space. InvalidArgument: fewer than two spaces, other knobs, the same file twice, a space whose
// configs all fail.
Result<CoverProblem> problem_of_spaces(const std::vector<RecordedSpace>& spaces);

// What of a database is to be covered. Empty lists: all there is.
struct CoverScope {
  std::string op;                    // of this operator only
  std::vector<JobRow::Task> tasks;   // workload_key and algorithms count; target does not
  std::vector<std::string> targets;  // canonical
};
struct CoverProblems {
  std::vector<CoverProblem> problems;   // one an operator, by name
  std::vector<std::string> unmeasured;  // workloads of the scope without a timed config, with the target
};
// Records of machines of different fingerprints are different places, with the same features.
Result<CoverProblems> problems_of_store(const Store& store, const CoverScope& scope);

struct CoverSolution {
  CoverSet set;      // rows of the problem's table
  int at_least = 0;  // sets of fewer configs do not reach the level; 0: no level was asked for
  std::vector<double> worst_of_fewer;  // [k - 1]: best_cover() of k configs, for each k below the set's size
  CoverTree tree;                      // answers are positions in set.rows
  std::vector<int> use;                // by place: the tree's answer
  std::vector<double> score;           // by place: of that config there
  double worst = 0, mean = 0;          // of these
  int unknown_pairs = 0;               // of a config of the set and a place: never measured, counted as 0
  Cover::LeftOut left_out;  // each place hidden in turn; columns 0: fewer than three places, or too many
};
struct CoverWish {
  std::optional<double> level;  // as small a set as serves every place so well
  int most = 0;                 // configs, at least 1; without a level: as many as this
};
CoverSolution solve(const CoverProblem& problem, const CoverWish& wish);

// What the database keeps of a solution: one document a target. Only of problems of a database.
std::vector<Cover> covers_to_store(const CoverProblem& problem, const CoverSolution& solution);

}  // namespace tuner
