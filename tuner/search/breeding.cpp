#include "tuner/search/breeding.h"

#include <algorithm>
#include <set>

namespace tuner {
namespace {

// Of two configs of one template.
size_t differing_knobs(const Config& a, const Config& b) {
  size_t differ = 0;
  auto other = b.values().begin();
  for (const auto& [name, value] : a.values()) differ += (other++)->second != value ? 1 : 0;
  return differ;
}

}  // namespace

std::vector<Candidate> niches(const CandidatePool& pool, const std::vector<Candidate>& fastest, size_t most,
                              size_t distance) {
  std::vector<Candidate> kept;
  std::vector<Config> configs;
  for (const Candidate& c : fastest) {
    if (kept.size() >= most) break;
    Config config = pool.space_of(c).at(c.config);
    bool near = false;
    for (size_t i = 0; i < kept.size() && !near; ++i)
      near = kept[i].template_index == c.template_index && differing_knobs(config, configs[i]) < distance;
    if (near) continue;
    kept.push_back(c);
    configs.push_back(std::move(config));
  }
  return kept;
}

std::vector<Candidate> bred(const CandidatePool& pool, const std::vector<Candidate>& parents,
                            const Breeding& breeding, std::mt19937_64& rng) {
  std::vector<Candidate> children;
  std::uniform_real_distribution<double> chance(0, 1);
  std::uniform_int_distribution<size_t> any(0, parents.size() - 1);
  for (size_t attempt = 0; attempt < 8 * breeding.children && children.size() < breeding.children;
       ++attempt) {
    const Candidate& a = parents[std::min(any(rng), any(rng))];
    const Candidate& b = parents[std::min(any(rng), any(rng))];
    const ConfigSpace& space = pool.space_of(a);
    Candidate child = a;
    const bool crossed = a != b && a.template_index == b.template_index && chance(rng) < breeding.crossover;
    if (crossed) child.config = space.crossover(a.config, b.config, rng);
    if (!crossed || chance(rng) < breeding.mutation) child.config = space.mutate(child.config, rng);
    if (!pool.is_taken(child) && std::find(children.begin(), children.end(), child) == children.end())
      children.push_back(child);
  }
  return children;
}

std::vector<Candidate> drawn(const CandidatePool& pool, const std::vector<Candidate>& parents,
                             const Drawing& drawing, std::mt19937_64& rng) {
  std::set<Candidate> found;
  for (size_t i = 0; i < drawing.anywhere; ++i) found.insert(pool.random(rng));
  for (const Candidate& c : parents) {
    const ConfigSpace& space = pool.space_of(c);
    for (size_t i = 0; i < drawing.near; ++i) {
      Candidate near{c.template_index, space.mutate(c.config, rng)};
      if (i % 2 == 1) near.config = space.mutate(near.config, rng);
      found.insert(near);
    }
  }
  return {found.begin(), found.end()};
}

}  // namespace tuner
