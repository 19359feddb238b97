// random: the defaults, then uniform draws without repetition. The floor every other strategy is compared
// with.
#include "tuner/search/candidate_pool.h"
#include "tuner/search/strategies.h"

namespace tuner {
namespace {

class RandomSearch final : public SearchStrategy {
 public:
  RandomSearch(const SearchSpace& space, uint64_t seed) : pool_(space, seed) {}
  std::string_view name() const override { return "random"; }

  std::vector<Candidate> propose(size_t n) override {
    std::vector<Candidate> batch;
    while (batch.size() < n) {
      std::optional<Candidate> next = pool_.take_default();
      if (!next) {
        // A stream for each draw: the same sequence of configs whatever the batch sizes.
        std::mt19937_64 rng = pool_.stream();
        next = pool_.take_random(rng);
      }
      if (!next) break;
      batch.push_back(*next);
    }
    return batch;
  }

  void observe(std::span<const Observation> results) override {
    for (const Observation& r : results) pool_.take(r.candidate);
  }
  uint64_t rng_counter() const override { return pool_.taken(); }

 private:
  CandidatePool pool_;
};

}  // namespace

std::unique_ptr<SearchStrategy> make_random_search(const SearchSpace& space, uint64_t seed) {
  return std::make_unique<RandomSearch>(space, seed);
}

}  // namespace tuner
