// grid: the default, then every config in index order, template after template. For exhaustive sweeps of
// small spaces.
#include "tuner/search/candidate_pool.h"
#include "tuner/search/strategies.h"

namespace tuner {
namespace {

class GridSearch final : public SearchStrategy {
 public:
  GridSearch(const SearchSpace& space, uint64_t seed) : pool_(space, seed) {}
  std::string_view name() const override { return "grid"; }

  std::vector<Candidate> propose(size_t n) override {
    std::vector<Candidate> batch;
    if (n > 0 && !begun_) {
      begun_ = true;
      if (const std::optional<Candidate> c = pool_.take_default()) batch.push_back(*c);
    }
    const std::vector<SearchSpace::Part>& parts = pool_.space().parts;
    while (batch.size() < n && static_cast<size_t>(next_.template_index) < parts.size()) {
      if (next_.config == parts[next_.template_index].space->size()) {
        next_ = {next_.template_index + 1, 0};
        continue;
      }
      if (pool_.take(next_)) batch.push_back(next_);
      ++next_.config;
    }
    return batch;
  }

  void observe(std::span<const Observation> results) override {
    for (const Observation& r : results) pool_.take(r.candidate);
  }
  uint64_t rng_counter() const override { return pool_.taken(); }

 private:
  CandidatePool pool_;
  Candidate next_;
  bool begun_ = false;
};

}  // namespace

std::unique_ptr<SearchStrategy> make_grid_search(const SearchSpace& space, uint64_t seed) {
  return std::make_unique<GridSearch>(space, seed);
}

}  // namespace tuner
