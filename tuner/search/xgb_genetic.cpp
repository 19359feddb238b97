// xgb-genetic: the walk over the model is a genetic algorithm of whole generations.
#include <algorithm>

#include "tuner/search/model_guided.h"
#include "tuner/search/strategies.h"

namespace tuner {
namespace {

constexpr size_t kModelPopulation = 256;
constexpr size_t kElite = 64;  // parents; the best kElite survive
constexpr int kGenerations = 10;
constexpr double kModelCrossoverShare = 0.5;

}  // namespace

void walk_genetic(ModelScores& view, std::mt19937_64& rng) {
  std::uniform_real_distribution<double> chance(0, 1);
  std::vector<Candidate> population = view.starts();
  while (population.size() < kModelPopulation) population.push_back(view.pool().random(rng));
  std::vector<std::pair<float, Candidate>> elite;
  for (int generation = 0; generation < kGenerations; ++generation) {
    const std::vector<float> scores = view.score(population);
    for (size_t i = 0; i < population.size(); ++i) elite.emplace_back(-scores[i], population[i]);
    std::sort(elite.begin(), elite.end());
    elite.erase(std::unique(elite.begin(), elite.end()), elite.end());
    if (elite.size() > kElite) elite.resize(kElite);

    std::uniform_int_distribution<size_t> any(0, elite.size() - 1);
    population.clear();
    while (population.size() < kModelPopulation) {
      const Candidate& a = elite[std::min(any(rng), any(rng))].second;
      const Candidate& b = elite[std::min(any(rng), any(rng))].second;
      const ConfigSpace& space = view.pool().space_of(a);
      Candidate child = a;
      const bool crossed =
          a != b && a.template_index == b.template_index && chance(rng) < kModelCrossoverShare;
      if (crossed) child.config = space.crossover(a.config, b.config, rng);
      if (!crossed || chance(rng) < 0.5) child.config = space.mutate(child.config, rng);
      population.push_back(child);
    }
  }
}

std::unique_ptr<SearchStrategy> make_xgb_genetic_search(const SearchSpace& space, uint64_t seed) {
  return make_model_guided_search("xgb-genetic", space, seed, walk_genetic);
}

}  // namespace tuner
