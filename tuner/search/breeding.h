// Breeds children of the fastest measured configs, for the strategies with a model.
#pragma once

#include <random>
#include <vector>

#include "tuner/search/candidate_pool.h"

namespace tuner {

// Takes candidates fastest first and keeps those that differ in at least `distance` knobs from every faster
// one kept, at most `most`. So a search at a local optimum also continues from the next ones.
std::vector<Candidate> niches(const CandidatePool& pool, const std::vector<Candidate>& fastest, size_t most,
                              size_t distance);

struct Breeding {
  size_t children = 4;     // wanted; fewer if fresh ones are hard to find
  double crossover = 0.3;  // share of the children that are crossed; the others are one mutation away from a
                           // parent
  double mutation = 0.4;   // share of the crossed children that are also mutated
};
// Returns fresh children, more of the better parents. They are few on purpose: the measured results lead, and
// the model only picks the first child. Otherwise a model that is wrong about a region would keep the search
// out of it for ever.
std::vector<Candidate> bred(const CandidatePool& pool, const std::vector<Candidate>& parents,
                            const Breeding& breeding, std::mt19937_64& rng);

struct Drawing {
  size_t anywhere = 1500;  // drawn from the whole space
  size_t near = 40;        // drawn around each parent: in turn one mutation away, and two
};
// Returns candidates of a space too large to be ranked whole, each once and in order; some may be taken.
std::vector<Candidate> drawn(const CandidatePool& pool, const std::vector<Candidate>& parents,
                             const Drawing& drawing, std::mt19937_64& rng);

}  // namespace tuner
