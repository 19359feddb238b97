#include "tuner/search/known_best.h"

#include <algorithm>
#include <cmath>

#include "tuner/search/candidate_pool.h"

namespace tuner {
namespace {

// 0 for the same values; of numbers the doublings between them, of others 1 each.
double distance(const std::vector<KnobInfo>& knobs, const Config& a, const Config& b) {
  double sum = 0;
  for (const KnobInfo& knob : knobs) {
    const auto va = a.values().find(knob.name), vb = b.values().find(knob.name);
    if (va == a.values().end() || vb == b.values().end() || va->second == vb->second) continue;
    const bool number = knob.kind == KnobKind::kOrdered || knob.kind == KnobKind::kSplit;
    if (number && va->second >= 0 && vb->second >= 0)
      sum += std::abs(
          std::log2((static_cast<double>(va->second) + 0.5) / (static_cast<double>(vb->second) + 0.5)));
    else
      sum += 1;
  }
  return sum;
}

class KnownBestSearch final : public SearchStrategy {
 public:
  KnownBestSearch(const SearchSpace& space, uint64_t seed) : pool_(space, seed) {
    std::vector<std::vector<PriorTask::Row>> machines;
    for (const PriorTask& prior : space.priors) {
      if (!prior.same_task) continue;
      std::vector<PriorTask::Row>& rows = machines.emplace_back();
      for (const PriorTask::Row& row : prior.rows)
        if (row.ok) rows.push_back(row);
      std::stable_sort(rows.begin(), rows.end(), [](const PriorTask::Row& a, const PriorTask::Row& b) {
        return a.time_ns < b.time_ns;
      });
    }
    for (size_t rank = 0, left = 1; left > 0; ++rank) {
      left = 0;
      for (const std::vector<PriorTask::Row>& rows : machines) {
        if (rank >= rows.size()) continue;
        ++left;
        if (const auto known = known_candidate(space, rows[rank].template_name, rows[rank].config))
          known_.push_back(known->candidate);
      }
    }
  }
  std::string_view name() const override { return kKnownBestStrategy; }

  std::vector<Candidate> propose(size_t n) override {
    std::vector<Candidate> batch;
    // One place is a default's: it is what everybody gets without a database.
    const size_t places = default_given_ || n == 0 ? n : n - 1;
    for (; batch.size() < places && next_ < known_.size(); ++next_)
      if (pool_.take(known_[next_])) batch.push_back(known_[next_]);
    while (batch.size() < n) {
      const std::optional<Candidate> next = pool_.take_default();
      if (!next) break;
      default_given_ = true;
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
  std::vector<Candidate> known_;  // fastest first; may hold one twice
  size_t next_ = 0;
  bool default_given_ = false;
};

}  // namespace

ConfigIndex nearest_config(const ConfigSpace& space, const Config& config) {
  if (const Result<ConfigIndex> index = space.index_of(config)) return *index;
  ConfigIndex at = space.default_index();
  double best = distance(space.knobs(), space.at(at), config);
  for (bool nearer = true; nearer;) {
    nearer = false;
    for (const ConfigIndex next : space.neighbours(at)) {
      const double d = distance(space.knobs(), space.at(next), config);
      if (d >= best) continue;
      best = d;
      at = next;
      nearer = true;
    }
  }
  return at;
}

std::optional<KnownCandidate> known_candidate(const SearchSpace& space, std::string_view template_name,
                                              const Config& config) {
  for (size_t i = 0; i < space.parts.size(); ++i) {
    if (space.parts[i].template_name != template_name) continue;
    const ConfigSpace& part = *space.parts[i].space;
    const bool valid = part.index_of(config).is_ok();
    return KnownCandidate{{static_cast<int>(i), nearest_config(part, config)}, !valid};
  }
  return std::nullopt;
}

std::unique_ptr<SearchStrategy> make_known_best_search(const SearchSpace& space, uint64_t seed) {
  return std::make_unique<KnownBestSearch>(space, seed);
}

}  // namespace tuner
