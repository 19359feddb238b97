#include "tuner/search/search_strategy.h"

#include <algorithm>
#include <limits>

#include "tuner/search/known_best.h"
#include "tuner/search/strategies.h"

namespace tuner {
namespace {

struct Entry {
  const char* name;
  std::unique_ptr<SearchStrategy> (*make)(const SearchSpace& space, uint64_t seed);
};
constexpr Entry kStrategies[] = {
    {"random", make_random_search},
    {"grid", make_grid_search},
    {"genetic", make_genetic_search},
    {"annealing", make_annealing_search},
    {"coordinate-descent", make_coordinate_descent_search},
    {"bayesian", make_bayesian_search},
    {"xgb-genetic", make_xgb_genetic_search},
    {"xgb-annealing", make_xgb_annealing_search},
};

}  // namespace

uint64_t SearchSpace::size() const {
  uint64_t total = 0;
  for (const Part& part : parts) {
    const uint64_t size = part.space->size();
    if (size > std::numeric_limits<uint64_t>::max() - total) return std::numeric_limits<uint64_t>::max();
    total += size;
  }
  return total;
}

Result<std::unique_ptr<SearchStrategy>> make_strategy(std::string_view name, const SearchSpace& space,
                                                      uint64_t seed) {
  if (space.parts.empty()) return invalid_argument("search: no template to search in; expected at least one");
  for (const Entry& entry : kStrategies)
    if (name == entry.name) return entry.make(space, seed);
  if (name == kKnownBestStrategy) return make_known_best_search(space, seed);
  std::string names;
  for (const Entry& entry : kStrategies) names += str(names.empty() ? "" : ", ", entry.name);
  return invalid_argument("search: found \"", name, "\", expected one of ", names);
}

const std::vector<std::string>& strategy_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const Entry& entry : kStrategies) list.emplace_back(entry.name);
    return list;
  }();
  return names;
}

bool is_strategy(std::string_view name) {
  return name == kKnownBestStrategy || std::ranges::find(strategy_names(), name) != strategy_names().end();
}

}  // namespace tuner
