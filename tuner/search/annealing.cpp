// annealing: simulated annealing on the device, without a model; the baseline printed beside every other
// strategy.
//
// A few chains take turns, so that several proposals may be open. A move changes one knob. A slower result is
// accepted with probability exp(-log(time / current time) / temperature): a ratio of times, so no scale of
// time has to be known. A chain that is stuck starts again from the fastest config found, or from a random
// one.
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "tuner/search/candidate_pool.h"
#include "tuner/search/strategies.h"

namespace tuner {
namespace {

constexpr size_t kWalkers = 3;
constexpr size_t kStartsPerChain = 3;       // random configs a chain begins with; it goes on from the fastest
constexpr double kFirstTemperature = 0.25;  // a config 25 % slower is accepted with probability 1/e
constexpr double kCooling = 0.93;           // a move of the chain
constexpr double kLastTemperature = 0.01;
constexpr int kPatience = 24;  // moves of a chain without a better config of its own before it starts again

class AnnealingSearch final : public SearchStrategy {
 public:
  AnnealingSearch(const SearchSpace& space, uint64_t seed) : pool_(space, seed), chains_(kWalkers) {}
  std::string_view name() const override { return "annealing"; }

  std::vector<Candidate> propose(size_t n) override {
    std::vector<Candidate> batch;
    while (batch.size() < n) {
      std::mt19937_64 rng = pool_.stream();
      const size_t turn = turn_++ % kWalkers;
      std::optional<Candidate> next = pool_.take_default();
      if (!next) next = take_move(chains_[turn], rng);
      if (!next) next = pool_.take_random(rng);
      if (!next) break;
      chain_of_[*next] = turn;
      batch.push_back(*next);
    }
    return batch;
  }

  void observe(std::span<const Observation> results) override {
    for (const Observation& r : results) {
      pool_.take(r.candidate);
      // What was not proposed here (a resumed job's records) belongs to the chains in turn.
      const auto proposed = chain_of_.find(r.candidate);
      const size_t index = proposed == chain_of_.end() ? observed_ % kWalkers : proposed->second;
      if (proposed != chain_of_.end()) chain_of_.erase(proposed);
      ++observed_;
      step(chains_[index], r);
    }
  }
  uint64_t rng_counter() const override { return pool_.taken(); }

 private:
  struct Chain {
    bool started = false;  // has a current config
    Candidate current;
    double time_ns = 0;
    double best_ns = 0;  // since the last start
    double temperature = kFirstTemperature;
    size_t starts = 0;  // results seen since the (re)start from random
    int stale = 0;      // moves since best_ns improved
  };

  std::optional<Candidate> take_move(Chain& chain, std::mt19937_64& rng) {
    if (chain.starts < kStartsPerChain || !chain.started) return std::nullopt;
    std::uniform_real_distribution<double> chance(0, 1);
    if (chain.stale >= kPatience) {
      if (chance(rng) < 0.2) {
        chain = Chain{};
        return std::nullopt;
      }
      restart_at_best(chain, rng);
    }
    if (std::optional<Candidate> near = pool_.take_neighbour(chain.current, rng)) return near;
    // Everything one knob away is measured: step over it.
    for (int hop = 2; hop <= 4; ++hop) {
      Candidate c = chain.current;
      for (int i = 0; i < hop; ++i) c.config = pool_.space_of(c).mutate(c.config, rng);
      if (pool_.take(c)) return c;
    }
    return std::nullopt;
  }

  void restart_at_best(Chain& chain, std::mt19937_64& rng) {
    const size_t pick = std::uniform_int_distribution<size_t>(0, best_.size() - 1)(rng);
    chain.current = best_[pick].second;
    chain.time_ns = chain.best_ns = best_[pick].first;
    chain.temperature = 0.3 * kFirstTemperature;
    chain.stale = 0;
  }

  void step(Chain& chain, const Observation& r) {
    ++chain.starts;
    ++chain.stale;
    chain.temperature = std::max(kLastTemperature, chain.temperature * kCooling);
    if (!r.ok) return;
    if (!r.cut) remember(r);
    if (chain.started && r.time_ns >= chain.time_ns) {
      // Observation order decides the stream here: a chain is a walk, its order is part of its seed.
      std::mt19937_64 rng(observed_ * 0x9e3779b97f4a7c15ull ^ r.candidate.config);
      const double p = std::exp(-std::log(r.time_ns / chain.time_ns) / chain.temperature);
      const bool starting = chain.starts <= kStartsPerChain;
      if (r.cut || starting || std::uniform_real_distribution<double>(0, 1)(rng) >= p) return;
    }
    if (!chain.started || r.time_ns < chain.best_ns) {
      chain.best_ns = r.time_ns;
      chain.stale = 0;
    }
    chain.started = true;
    chain.current = r.candidate;
    chain.time_ns = r.time_ns;
  }

  // The few fastest, where stuck chains start again.
  void remember(const Observation& r) {
    const std::pair entry{r.time_ns, r.candidate};
    best_.insert(std::upper_bound(best_.begin(), best_.end(), entry), entry);
    if (best_.size() > kWalkers) best_.pop_back();
  }

  CandidatePool pool_;
  std::vector<Chain> chains_;
  std::unordered_map<Candidate, size_t, CandidateHash> chain_of_;  // open proposals
  std::vector<std::pair<double, Candidate>> best_;                 // fastest first
  size_t turn_ = 0, observed_ = 0;
};

}  // namespace

std::unique_ptr<SearchStrategy> make_annealing_search(const SearchSpace& space, uint64_t seed) {
  return std::make_unique<AnnealingSearch>(space, seed);
}

}  // namespace tuner
