// coordinate-descent: every value of one knob at the fastest config, then of the next knob, and so on; a
// local search without a model, for spaces whose knobs hardly interact.
//
// The knob is the next one in turn; its sweep ends when all fresh configs that differ in this knob alone are
// proposed. Results may come in any order: what is swept is always the fastest config known. When no knob of
// it has a fresh value left, the search goes on from a random config that is fast for its start: the fastest
// of a few draws.
#include <algorithm>
#include <deque>
#include <map>

#include "tuner/search/candidate_pool.h"
#include "tuner/search/strategies.h"

namespace tuner {
namespace {

constexpr size_t kStarts = 6;  // random configs a descent chooses its start from

class CoordinateDescentSearch final : public SearchStrategy {
 public:
  CoordinateDescentSearch(const SearchSpace& space, uint64_t seed) : pool_(space, seed) {}
  std::string_view name() const override { return "coordinate-descent"; }

  std::vector<Candidate> propose(size_t n) override {
    std::vector<Candidate> batch;
    while (batch.size() < n) {
      std::optional<Candidate> next = pool_.take_default();
      if (!next && draws_ >= kStarts && !this_descent_.empty()) next = take_from_sweep();
      if (!next) {
        std::mt19937_64 rng = pool_.stream();
        if (!(next = pool_.take_random(rng))) break;
        ++draws_;
      }
      if (!next) break;
      batch.push_back(*next);
    }
    return batch;
  }

  void observe(std::span<const Observation> results) override {
    for (const Observation& r : results) {
      pool_.take(r.candidate);
      std::erase(sweep_, r.candidate);
      if (!r.ok || r.cut) continue;
      const std::pair entry{r.time_ns, r.candidate};
      if (this_descent_.empty() || entry < this_descent_.front()) this_descent_ = {entry};
    }
  }
  uint64_t rng_counter() const override { return pool_.taken(); }

 private:
  // The next config of the sweep under way; of the next knob's when it is done. None: the fastest of this
  // descent has no fresh neighbour, and the next descent begins.
  std::optional<Candidate> take_from_sweep() {
    const Candidate at = this_descent_.front().second;
    if (at != swept_) {  // something faster came: its knobs from the one after the last swept
      swept_ = at;
      sweep_.clear();
    }
    const size_t knobs = pool_.space_of(at).knobs().size();
    for (size_t tried = 0; tried <= knobs; ++tried) {
      while (!sweep_.empty()) {
        const Candidate c = sweep_.front();
        sweep_.pop_front();
        if (pool_.take(c)) return c;
      }
      fill_sweep(at, knob_++ % std::max<size_t>(knobs, 1));
    }
    this_descent_.clear();
    draws_ = 0;
    return std::nullopt;
  }

  void fill_sweep(const Candidate& at, size_t knob) {
    const ConfigSpace& space = pool_.space_of(at);
    if (knob >= space.knobs().size()) return;
    const std::string& name = space.knobs()[knob].name;
    const Config config = space.at(at.config);
    const int64_t own = config.at(name);
    std::vector<std::pair<int64_t, Candidate>> values;
    for (const Candidate& near : pool_.fresh_neighbours(at)) {
      const int64_t value = space.at(near.config).at(name);
      if (value != own) values.emplace_back(value, near);
    }
    // Nearby values first.
    std::sort(values.begin(), values.end(), [&](const auto& a, const auto& b) {
      const int64_t da = std::abs(a.first - own), db = std::abs(b.first - own);
      return da != db ? da < db : a < b;
    });
    for (const auto& [value, candidate] : values) sweep_.push_back(candidate);
  }

  CandidatePool pool_;
  std::vector<std::pair<double, Candidate>> this_descent_;  // its fastest result; empty: none yet
  std::deque<Candidate> sweep_;                             // not yet taken
  Candidate swept_{-1, 0};
  size_t knob_ = 0, draws_ = 0;
};

}  // namespace

std::unique_ptr<SearchStrategy> make_coordinate_descent_search(const SearchSpace& space, uint64_t seed) {
  return std::make_unique<CoordinateDescentSearch>(space, seed);
}

}  // namespace tuner
