#include "tuner/search/model_guided.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <iomanip>
#include <limits>
#include <optional>
#include <sstream>

#include "tuner/search/candidate_features.h"
#include "tuner/search/tree_ensemble.h"

namespace tuner {

std::vector<float> ModelView::score(std::span<const Candidate> candidates) {
  std::vector<Candidate> unknown;
  for (const Candidate& c : candidates)
    if (scores_.emplace(c, 0.0f).second) unknown.push_back(c);
  if (!unknown.empty()) {
    const std::vector<float> found = score_(unknown);
    for (size_t i = 0; i < unknown.size(); ++i) scores_[unknown[i]] = found[i];
  }
  std::vector<float> result;
  for (const Candidate& c : candidates) result.push_back(scores_.at(c));
  return result;
}

std::vector<std::pair<float, Candidate>> ModelView::best(size_t n) const {
  std::vector<std::pair<float, Candidate>> fresh;
  for (const auto& [c, score] : scores_)
    if (!pool_.is_taken(c)) fresh.emplace_back(score, c);
  const auto better = [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  };
  n = std::min(n, fresh.size());
  std::partial_sort(fresh.begin(), fresh.begin() + static_cast<std::ptrdiff_t>(n), fresh.end(), better);
  fresh.resize(n);
  return fresh;
}

namespace {

class ModelGuidedSearch final : public SearchStrategy {
 public:
  ModelGuidedSearch(std::string_view name, const SearchSpace& space, uint64_t seed, Walk walk,
                    const ModelGuidedOptions& options)
      : name_(name),
        options_(options),
        walk_(std::move(walk)),
        pool_(space, seed),
        features_(space),
        knob_model_(options.xgboost, options.models, seed),
        program_model_(options.xgboost, options.models, seed) {}

  std::string_view name() const override { return name_; }

  std::vector<Candidate> propose(size_t n) override {
    std::vector<Candidate> batch;
    while (batch.size() < n) {
      if (planned_.empty()) plan();
      if (planned_.empty()) break;
      batch.push_back(planned_.front());
      planned_.pop_front();
    }
    return batch;
  }

  void observe(std::span<const Observation> results) override {
    for (const Observation& r : results) {
      pool_.take(r.candidate);
      std::erase(planned_, r.candidate);  // a resumed job's record may be what was planned
      results_.insert_or_assign(r.candidate, r);
      if (r.ok && !r.cut) best_ns_ = std::min(best_ns_, r.time_ns);
      if (predicted_.contains(r.candidate)) judged_.push_back(r.candidate);
    }
    if (judged_.size() >= options_.batch) judge();
  }

  std::string status_line() const override { return status_; }
  uint64_t rng_counter() const override { return pool_.taken() - planned_.size(); }
  std::string model_digest() const override {
    if (!knob_model_.fitted()) return {};
    return features_.has_program_features() ? program_model_.digest() : knob_model_.digest();
  }

 private:
  // Fills planned_ with the next batch; all of it is taken.
  void plan() {
    std::mt19937_64 rng = pool_.stream();
    while (std::optional<Candidate> c = pool_.take_default()) planned_.push_back(*c);
    const bool modelled = results_.size() >= options_.batch / 2 && pool_.taken() >= options_.batch && fit();
    if (modelled) choose(rng);
    while (planned_.size() < options_.batch) {
      const std::optional<Candidate> c = pool_.take_random(rng);
      if (!c) break;
      planned_.push_back(*c);
    }
  }

  bool fit() {
    if (best_ns_ == std::numeric_limits<double>::infinity())
      return false;  // nothing worked yet: nothing to normalise by
    if (fitted_rows_ == results_.size()) return knob_model_.fitted();
    std::vector<Candidate> candidates;
    for (const auto& [c, r] : results_) candidates.push_back(c);
    const FeatureMatrix knobs = features_.knobs(candidates);
    std::vector<float> scores = targets(candidates, knobs);
    Status status = knob_model_.fit(knobs, scores);
    if (status.is_ok() && features_.has_program_features()) {
      const FeatureMatrix rows = features_.with_program(candidates);
      program_columns_ = rows.columns;
      status = program_model_.fit(rows, scores);
    }
    if (!status.is_ok()) {
      status_ = "no model, proposing at random: " + status.message();
      return false;
    }
    fitted_rows_ = results_.size();
    return true;
  }

  // Normalised throughput; 0 for a failure. A cut row was at least as slow as its time says, so its score is
  // a bound from above: the previous model's opinion stands when it is lower.
  std::vector<float> targets(const std::vector<Candidate>& candidates, const FeatureMatrix& knobs) const {
    std::vector<float> opinion;
    if (knob_model_.fitted()) opinion = knob_model_.predict(knobs).mean;
    std::vector<float> scores;
    for (size_t i = 0; i < candidates.size(); ++i) {
      const Observation& r = results_.at(candidates[i]);
      float score = score_of(r);
      if (r.ok && r.cut && !opinion.empty()) score = std::clamp(opinion[i], 0.0f, score);
      scores.push_back(score);
    }
    return scores;
  }
  float score_of(const Observation& r) const {
    if (!r.ok) return 0;
    return static_cast<float>(std::min(1.0, best_ns_ / std::max(r.time_ns, 1e-3)));
  }

  struct Ranked {
    float mean, value;  // predicted score; with the share of uncertainty
    Candidate candidate;
    std::vector<float> features;
  };

  void choose(std::mt19937_64& rng) {
    ModelView view(pool_, fastest(32), [&](std::span<const Candidate> candidates) {
      return values(knob_model_.predict(features_.knobs(candidates)));
    });
    score_everything_near(view, rng);
    const size_t want = options_.batch > planned_.size() ? options_.batch - planned_.size() : 0;
    std::vector<Ranked> ranking = rank(candidates_of(view.best(options_.program_feature_budget)));
    const std::vector<Candidate> parents = fastest(options_.parents);

    std::uniform_real_distribution<double> chance(0, 1);
    std::vector<Ranked> chosen;
    for (size_t slot = 0; slot < want; ++slot) {
      const double draw = chance(rng);
      if (draw < options_.random_share) {
        if (const auto c = pool_.take_random(rng)) planned_.push_back(*c);
        continue;
      }
      std::optional<Ranked> next;
      if (draw < options_.random_share + options_.local_share) {
        std::vector<Ranked> children = rank(bred(parents, rng));
        next = take_best(children, chosen);
      }
      if (!next) next = take_best(ranking, chosen);
      if (!next) break;
      planned_.push_back(next->candidate);
      predicted_[next->candidate] = next->mean;
      chosen.push_back(std::move(*next));
    }
  }

  void score_everything_near(ModelView& view, std::mt19937_64& rng) {
    const SearchSpace& space = pool_.space();
    if (space.size() > options_.rank_whole) return walk_(view, rng);
    std::vector<Candidate> all;
    for (size_t part = 0; part < space.parts.size(); ++part)
      for (ConfigIndex i = 0; i < space.parts[part].space->size(); ++i)
        if (const Candidate c{static_cast<int>(part), i}; !pool_.is_taken(c)) all.push_back(c);
    view.score(all);
  }

  // A few children of the fastest measured, fresh ones. Few, because a model that is wrong about a region
  // would else keep the search out of it for ever: the measured results lead, the model only says which child
  // first.
  std::vector<Candidate> bred(const std::vector<Candidate>& parents, std::mt19937_64& rng) const {
    std::vector<Candidate> children;
    std::uniform_real_distribution<double> chance(0, 1);
    std::uniform_int_distribution<size_t> any(0, parents.size() - 1);
    for (size_t attempt = 0; attempt < 8 * options_.children && children.size() < options_.children;
         ++attempt) {
      const Candidate& a = parents[std::min(any(rng), any(rng))];
      const Candidate& b = parents[std::min(any(rng), any(rng))];
      const ConfigSpace& space = pool_.space_of(a);
      Candidate child = a;
      const bool crossed = a != b && a.template_index == b.template_index && chance(rng) < options_.crossover;
      if (crossed) child.config = space.crossover(a.config, b.config, rng);
      if (!crossed || chance(rng) < options_.mutation) child.config = space.mutate(child.config, rng);
      if (!pool_.is_taken(child) && std::find(children.begin(), children.end(), child) == children.end())
        children.push_back(child);
    }
    return children;
  }

  static std::vector<Candidate> candidates_of(const std::vector<std::pair<float, Candidate>>& scored) {
    std::vector<Candidate> candidates;
    for (const auto& [score, c] : scored) candidates.push_back(c);
    return candidates;
  }

  std::vector<Ranked> rank(const std::vector<Candidate>& candidates) {
    std::vector<Ranked> ranking;
    if (candidates.empty()) return ranking;
    bool program = program_model_.fitted();
    FeatureMatrix rows = program ? features_.with_program(candidates) : features_.knobs(candidates);
    if (program && rows.columns != program_columns_) {  // the first Programs with features came after the fit
      program = false;
      rows = features_.knobs(candidates);
    }
    const TreeEnsemble::Prediction p = (program ? program_model_ : knob_model_).predict(rows);
    const std::vector<float> value = values(p);
    for (size_t i = 0; i < candidates.size(); ++i) {
      const auto row = rows.values.begin() + static_cast<std::ptrdiff_t>(i * rows.columns);
      ranking.push_back({p.mean[i], value[i], candidates[i],
                         std::vector<float>(row, row + static_cast<std::ptrdiff_t>(rows.columns))});
    }
    return ranking;
  }
  std::vector<float> values(const TreeEnsemble::Prediction& p) const {
    std::vector<float> value = p.mean;
    for (size_t i = 0; i < value.size(); ++i)
      value[i] += static_cast<float>(options_.uncertainty) * p.deviation[i];
    return value;
  }

  // Takes the candidate of highest value after the loss for likeness to what the batch already holds.
  std::optional<Ranked> take_best(std::vector<Ranked>& ranking, const std::vector<Ranked>& chosen) {
    while (!ranking.empty()) {
      size_t best = 0;
      double best_value = -std::numeric_limits<double>::infinity();
      for (size_t i = 0; i < ranking.size(); ++i) {
        double alike = 0;
        for (const Ranked& other : chosen) alike = std::max(alike, likeness(ranking[i], other));
        const double value = ranking[i].value - options_.likeness * alike;
        if (value <= best_value) continue;
        best_value = value;
        best = i;
      }
      Ranked taken = std::move(ranking[best]);
      ranking.erase(ranking.begin() + static_cast<std::ptrdiff_t>(best));
      if (pool_.take(taken.candidate)) return taken;
    }
    return std::nullopt;
  }
  // Share of equal features, sharpened so that only near twins count; 0 between templates.
  static double likeness(const Ranked& a, const Ranked& b) {
    if (a.candidate.template_index != b.candidate.template_index) return 0;
    size_t equal = 0, used = 0;
    for (size_t i = 0; i < a.features.size(); ++i) {
      if (std::isnan(a.features[i])) continue;
      ++used;
      equal += a.features[i] == b.features[i] ? 1 : 0;
    }
    const double share = used == 0 ? 0 : static_cast<double>(equal) / static_cast<double>(used);
    return share * share;
  }

  std::vector<Candidate> fastest(size_t n) const {
    std::vector<std::pair<double, Candidate>> order;
    for (const auto& [c, r] : results_)
      if (r.ok && !r.cut) order.emplace_back(r.time_ns, c);
    std::sort(order.begin(), order.end());
    std::vector<Candidate> candidates;
    for (size_t i = 0; i < std::min(n, order.size()); ++i) candidates.push_back(order[i].second);
    return candidates;
  }

  void judge() {
    std::vector<float> predicted, measured;
    for (const Candidate& c : judged_) {
      predicted.push_back(predicted_.at(c));
      measured.push_back(score_of(results_.at(c)));
      predicted_.erase(c);
    }
    std::ostringstream line;
    line << judged_text(rank_correlation(predicted, measured), judged_.size());
    status_ = line.str();
    judged_.clear();
  }

  const std::string name_;
  const ModelGuidedOptions options_;
  const Walk walk_;
  CandidatePool pool_;
  CandidateFeatures features_;
  TreeEnsemble knob_model_, program_model_;  // the second only where the space gives program features
  size_t fitted_rows_ = 0;
  size_t program_columns_ = 0;                // of the rows the program model was fitted on
  std::map<Candidate, Observation> results_;  // ordered: the fit does not depend on the order of arrival
  double best_ns_ = std::numeric_limits<double>::infinity();
  std::deque<Candidate> planned_;         // taken, not yet proposed
  std::map<Candidate, float> predicted_;  // of open proposals the model chose
  std::vector<Candidate> judged_;         // of those, the ones observed since the last status line
  std::string status_;
};

}  // namespace

std::unique_ptr<SearchStrategy> make_model_guided_search(std::string_view name, const SearchSpace& space,
                                                         uint64_t seed, Walk walk,
                                                         const ModelGuidedOptions& options) {
  return std::make_unique<ModelGuidedSearch>(name, space, seed, std::move(walk), options);
}

}  // namespace tuner
