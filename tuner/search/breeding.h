// Children of the fastest measured: what the model-guided strategies share.
#pragma once

#include <random>
#include <vector>

#include "tuner/search/candidate_pool.h"

namespace tuner {

// Of candidates given fastest first: those that differ in `distance` knobs from every faster one kept, at
// most `most`. A search that sits on a local optimum goes on from the next ones too.
std::vector<Candidate> niches(const CandidatePool& pool, const std::vector<Candidate>& fastest, size_t most,
                              size_t distance);

struct Breeding {
  size_t children = 4;     // wanted; fewer when fresh ones are hard to find
  double crossover = 0.3;  // of the children; the others are one mutation away from one parent
  double mutation = 0.4;   // of the crossed children
};
// Fresh children, the better parents' more often. Few, because a model that is wrong about a region would
// else keep the search out of it for ever: the measured results lead, the model only says which child first.
std::vector<Candidate> bred(const CandidatePool& pool, const std::vector<Candidate>& parents,
                            const Breeding& breeding, std::mt19937_64& rng);

}  // namespace tuner
