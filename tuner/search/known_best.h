// known-best: not a search. It proposes the configs that were the fastest of this very task in other jobs,
// fastest first, then the templates' defaults, and then is exhausted. `tuner revalidate` measures these again
// under today's compiler and templates.
//
// If a config is no longer valid, because knobs or constraints changed, the nearest valid one is proposed.
// Rows of several machines take turns, because their times cannot be compared. Reads SearchSpace::priors.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "tuner/search/search_strategy.h"

namespace tuner {

inline constexpr std::string_view kKnownBestStrategy = "known-best";

struct KnownCandidate {
  Candidate candidate;
  bool moved = false;  // the config itself is not valid here; this is the nearest valid one
};
// Finds the config of an earlier template version in this space. Empty: there is no such template.
std::optional<KnownCandidate> known_candidate(const SearchSpace& space, std::string_view template_name,
                                              const Config& config);

// Returns `config` itself if it is valid, else the nearest valid config that steps of one knob at a time
// reach from the default. Knobs that `config` does not name are ignored.
ConfigIndex nearest_config(const ConfigSpace& space, const Config& config);

std::unique_ptr<SearchStrategy> make_known_best_search(const SearchSpace& space, uint64_t seed);

}  // namespace tuner
