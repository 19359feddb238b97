// Plays search strategies on recorded spaces and compares what they find: `tuner study simulate`.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "tuner/search/recorded_space.h"
#include "tuner/search/search_strategy.h"
#include "tuner/search/simulation.h"

namespace tuner {

struct SimulateOptions {
  std::vector<std::string> spaces, warm;  // files: played, known beforehand
  std::vector<std::string> strategies{std::string(kDefaultStrategy)};
  bool warm_others = false, json = false;
  size_t trials = 512, in_flight = 8, warm_rows = 200;
  uint64_t seeds = 10, first_seed = 0;
};

class Simulator {
 public:
  // `options` must outlive it.
  explicit Simulator(const SimulateOptions& options) : options_(options) {}

  // Told before each run, counted from 1, and once more, with an empty `what`, after the last.
  using Progress = std::function<void(size_t done, size_t runs, const std::string& what)>;
  // Reads the spaces and plays every strategy on each; the baseline is always among them. An error: a space
  // cannot be read or has no config that is right, one known beforehand has other knobs, or there is no such
  // strategy.
  Status run(const Progress& progress);

  // Tables of the runs: for people, ending with a newline, and as one document.
  std::string text() const;
  nlohmann::ordered_json json() const;

 private:
  struct Table {
    std::string space, strategy;
    SimulationSummary summary;
  };
  // Returns the spaces whose rows are known before the first trial on `space`.
  Result<std::vector<const RecordedSpace*>> donors_of(const RecordedSpace& space) const;
  std::string donor_names(const RecordedSpace& space) const;
  Result<SimulationRun> play(const RecordedSpace& space, const std::string& strategy, uint64_t seed) const;

  const SimulateOptions& options_;
  std::vector<RecordedSpace> spaces_, donors_;
  std::vector<Table> tables_;
};

}  // namespace tuner
