#include "tuner/search/candidate_pool.h"

#include <cmath>

namespace tuner {

CandidatePool::CandidatePool(const SearchSpace& space, uint64_t seed)
    : space_(space), seed_(seed), taken_of_(space.parts.size(), 0) {
  CHECK(!space.parts.empty()) << "a search needs at least one template";
}

const ConfigSpace& CandidatePool::space_of(const Candidate& c) const {
  CHECK(c.template_index >= 0 && static_cast<size_t>(c.template_index) < space_.parts.size())
      << "template " << c.template_index << " of " << space_.parts.size();
  return *space_.parts[c.template_index].space;
}

bool CandidatePool::take(const Candidate& c) {
  CHECK(c.config < space_of(c).size()) << "config " << c.config << " of " << space_of(c).size();
  if (!taken_.insert(c).second) return false;
  ++taken_of_[c.template_index];
  return true;
}

std::mt19937_64 CandidatePool::stream() const {
  std::seed_seq words{static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32),
                      static_cast<uint32_t>(taken()), static_cast<uint32_t>(taken() >> 32)};
  return std::mt19937_64(words);
}

Candidate CandidatePool::random(std::mt19937_64& rng) const {
  std::vector<double> weights;
  for (size_t i = 0; i < space_.parts.size(); ++i)
    weights.push_back(exhausted(i) ? 0 : std::log2(1.0 + static_cast<double>(space_.parts[i].space->size())));
  size_t part = 0;
  if (left() > 0) part = std::discrete_distribution<size_t>(weights.begin(), weights.end())(rng);
  return {static_cast<int>(part), space_.parts[part].space->sample(rng)};
}

std::optional<Candidate> CandidatePool::take_default() {
  while (next_default_ < space_.parts.size()) {
    const size_t part = next_default_++;
    const Candidate c{static_cast<int>(part), space_.parts[part].space->default_index()};
    if (take(c)) return c;
  }
  return std::nullopt;
}

std::optional<Candidate> CandidatePool::take_random(std::mt19937_64& rng) {
  if (left() == 0) return std::nullopt;
  Candidate c;
  for (int attempt = 0; attempt < 32; ++attempt)
    if (c = random(rng); take(c)) return c;
  // Nearly everything is taken: walk from where the last draw fell. At most taken() + 1 steps.
  while (exhausted(c.template_index)) c = random(rng);
  while (!take(c)) c.config = (c.config + 1) % space_of(c).size();
  return c;
}

std::optional<Candidate> CandidatePool::take_neighbour(const Candidate& c, std::mt19937_64& rng) {
  const ConfigSpace& space = space_of(c);
  for (int attempt = 0; attempt < 6; ++attempt) {
    const Candidate near{c.template_index, space.mutate(c.config, rng)};
    if (take(near)) return near;
  }
  const std::vector<Candidate> fresh = fresh_neighbours(c);
  if (fresh.empty()) return std::nullopt;
  const Candidate near = fresh[std::uniform_int_distribution<size_t>(0, fresh.size() - 1)(rng)];
  take(near);
  return near;
}

std::vector<Candidate> CandidatePool::fresh_neighbours(const Candidate& c) const {
  std::vector<Candidate> fresh;
  for (ConfigIndex near : space_of(c).neighbours(c.config))
    if (const Candidate other{c.template_index, near}; !is_taken(other)) fresh.push_back(other);
  return fresh;
}

}  // namespace tuner
