// CandidatePool: knows which candidates are taken, and draws fresh ones at random. It is the book-keeping
// that every strategy needs: nothing is proposed twice, the templates' default configs come first, small
// spaces are exhausted completely.
#pragma once

#include <optional>
#include <random>
#include <unordered_set>
#include <vector>

#include "tuner/search/search_strategy.h"

namespace tuner {

struct CandidateHash {
  size_t operator()(const Candidate& c) const {
    uint64_t h = (c.config + 0x9e3779b97f4a7c15ull * static_cast<uint64_t>(c.template_index + 1));
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ull;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebull;
    return static_cast<size_t>(h ^ (h >> 31));
  }
};

class CandidatePool {
 public:
  CandidatePool(const SearchSpace& space, uint64_t seed);  // `space` outlives this. For one thread at a time

  const ConfigSpace& space_of(const Candidate& c) const;
  const SearchSpace& space() const { return space_; }
  // Marks a candidate as proposed or observed; returns false if it already was. One that is not in the space
  // is a bug, and ends the process.
  bool take(const Candidate& c);
  bool is_taken(const Candidate& c) const { return taken_.contains(c); }
  uint64_t taken() const { return taken_.size(); }
  uint64_t left() const { return space_.size() - taken_.size(); }
  // Returns the random numbers for the next call of propose(). They depend only on the seed and on how many
  // candidates are taken, so a job resumed from its records continues as if it had not been interrupted;
  // asked for twice with no candidate taken in between, they are the same.
  std::mt19937_64 stream() const;

  // Draws a template with weight log2(1 + its configs), then one of its configs uniformly: a huge space does
  // not starve a small one. The candidate may be taken already.
  Candidate random(std::mt19937_64& rng) const;
  // These return a fresh candidate and take it; nothing if none is left.
  std::optional<Candidate> take_default();
  std::optional<Candidate> take_random(std::mt19937_64& rng);
  // Takes a fresh config that differs from `c` in one knob; nothing if there is none.
  std::optional<Candidate> take_neighbour(const Candidate& c, std::mt19937_64& rng);
  // Returns all fresh configs that differ from `c` in one knob, without taking them.
  std::vector<Candidate> fresh_neighbours(const Candidate& c) const;

 private:
  bool exhausted(size_t part) const { return taken_of_[part] == space_.parts[part].space->size(); }

  const SearchSpace& space_;
  uint64_t seed_;
  std::unordered_set<Candidate, CandidateHash> taken_;
  std::vector<uint64_t> taken_of_;  // per template
  size_t next_default_ = 0;         // template whose default is offered next
};

}  // namespace tuner
