// The strategies' makers, for make_strategy() and for tests of a single strategy. One file each.
#pragma once

#include <memory>

#include "tuner/search/search_strategy.h"

namespace tuner {

std::unique_ptr<SearchStrategy> make_random_search(const SearchSpace& space, uint64_t seed);
std::unique_ptr<SearchStrategy> make_grid_search(const SearchSpace& space, uint64_t seed);
std::unique_ptr<SearchStrategy> make_genetic_search(const SearchSpace& space, uint64_t seed);
std::unique_ptr<SearchStrategy> make_annealing_search(const SearchSpace& space, uint64_t seed);
std::unique_ptr<SearchStrategy> make_coordinate_descent_search(const SearchSpace& space, uint64_t seed);
std::unique_ptr<SearchStrategy> make_bayesian_search(const SearchSpace& space, uint64_t seed);
std::unique_ptr<SearchStrategy> make_xgb_genetic_search(const SearchSpace& space, uint64_t seed);
std::unique_ptr<SearchStrategy> make_xgb_annealing_search(const SearchSpace& space, uint64_t seed);

}  // namespace tuner
