// xgb-annealing: the walk over the model is simulated annealing, many chains in step so that the model scores
// them together.
#include <algorithm>
#include <cmath>

#include "tuner/search/model_guided.h"
#include "tuner/search/strategies.h"

namespace tuner {
namespace {

constexpr size_t kModelChains = 96;
constexpr int kModelSteps = 32;
constexpr double kFirstModelTemperature = 0.15;  // in score, whose scale is 0..1
constexpr double kLastModelTemperature = 0.005;

}  // namespace

void walk_annealing(ModelScores& view, std::mt19937_64& rng) {
  std::uniform_real_distribution<double> chance(0, 1);
  // A third of the chains start at the fastest measured, the others anywhere.
  std::vector<Candidate> at;
  for (const Candidate& start : view.starts())
    if (at.size() < kModelChains / 3) at.push_back(start);
  while (at.size() < kModelChains) at.push_back(view.pool().random(rng));
  std::vector<float> scores = view.score(at);

  for (int step = 0; step < kModelSteps; ++step) {
    const double temperature =
        kFirstModelTemperature * std::pow(kLastModelTemperature / kFirstModelTemperature,
                                          static_cast<double>(step) / (kModelSteps - 1));
    std::vector<Candidate> moved = at;
    for (Candidate& c : moved) c.config = view.pool().space_of(c).mutate(c.config, rng);
    const std::vector<float> moved_scores = view.score(moved);
    for (size_t i = 0; i < at.size(); ++i) {
      if (chance(rng) >= std::exp((moved_scores[i] - scores[i]) / temperature)) continue;
      at[i] = moved[i];
      scores[i] = moved_scores[i];
    }
  }
}

std::unique_ptr<SearchStrategy> make_xgb_annealing_search(const SearchSpace& space, uint64_t seed) {
  return make_model_guided_search("xgb-annealing", space, seed, walk_annealing);
}

}  // namespace tuner
