// known-best: no search. Proposes the configs that were the fastest of this very task in other jobs, fastest
// first, then the templates' defaults, and is exhausted: what `tuner revalidate` measures again under
// today's compiler and templates.
//
// A config that is not valid any more, because knobs or their constraints changed, is proposed as the nearest
// one that is. Rows of several machines take turns: their times do not compare. Reads SearchSpace::priors.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "tuner/search/search_strategy.h"

namespace tuner {

inline constexpr std::string_view kKnownBestStrategy = "known-best";

struct KnownCandidate {
  Candidate candidate;
  bool moved = false;  // the config itself is not valid here: this is the nearest that is
};
// The config of an earlier version of the template in this space. None: there is no such template.
std::optional<KnownCandidate> known_candidate(const SearchSpace& space, std::string_view template_name,
                                              const Config& config);

// The valid config that is least far from `config`, as far as steps of one knob at a time lead from the
// default; `config` itself when it is valid. Knobs it does not name count for nothing.
ConfigIndex nearest_config(const ConfigSpace& space, const Config& config);

std::unique_ptr<SearchStrategy> make_known_best_search(const SearchSpace& space, uint64_t seed);

}  // namespace tuner
