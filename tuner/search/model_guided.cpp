#include "tuner/search/model_guided.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <optional>

#include "tuner/search/breeding.h"
#include "tuner/search/candidate_features.h"
#include "tuner/search/feasibility.h"
#include "tuner/search/improvement.h"
#include "tuner/search/measured_results.h"
#include "tuner/search/prior_model.h"
#include "tuner/search/tree_ensemble.h"

namespace tuner {

std::vector<float> ModelScores::score(std::span<const Candidate> candidates) {
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

std::vector<std::pair<float, Candidate>> ModelScores::best(size_t n) const {
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

// As in `bayesian`: fewer results say less than what is known of similar tasks, and a random start is made up
// for when those are given up.
constexpr size_t kFewestResults = 4;
constexpr double kCatchUpShare = 0.5;
constexpr size_t kWalksFrom = 32;  // of the fastest measured

// What is predicted is a *value*, as in `bayesian`: 1 - best time / time. The trees see the value plus what
// the prior tasks say of the throughput (0 without any).
class ModelGuidedSearch final : public SearchStrategy {
 public:
  ModelGuidedSearch(std::string_view name, const SearchSpace& space, uint64_t seed, Walk walk,
                    const ModelGuidedOptions& options)
      : name_(name),
        options_(options),
        walk_(std::move(walk)),
        pool_(space, seed),
        features_(space, options.divisibility ? CandidateFeatures::Columns::kSizesAndDivisibility
                                              : CandidateFeatures::Columns::kSizes),
        prior_(space, features_, seed),
        knob_model_(options.xgboost, options.models, seed),
        program_model_(for_programs(options), options.models, seed),
        feasibility_(seed, options.caution) {
    status_ = prior_.empty() ? "" : "warm start from " + prior_.describe();
  }

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
      results_.add(r);
      check_.measured(r.candidate);
    }
    if (const std::optional<std::string> line = check_.judgement(results_))
      status_ = *line + (prior_.empty() ? "" : ", warm start from " + prior_.describe());
  }

  std::string status_line() const override { return status_; }
  uint64_t rng_counter() const override { return pool_.taken() - planned_.size(); }
  std::string model_digest() const override {
    if (!knob_model_.fitted()) return {};
    return program_model_.fitted() ? program_model_.digest() : knob_model_.digest();
  }

 private:
  static XgboostOptions for_programs(const ModelGuidedOptions& options) {
    XgboostOptions trees = options.xgboost;
    trees.column_sample = options.program_column_sample;
    return trees;
  }

  struct Ranked {
    Candidate candidate;
    float mean;                // predicted value
    std::vector<float> gains;  // what is expected to be gained, as each model sees it
    std::vector<float> features;
    float gain(size_t slot) const { return gains[slot % gains.size()]; }
  };

  // Candidates with their columns, and what similar tasks say of them.
  struct Rows {
    std::vector<Candidate> candidates;
    FeatureMatrix knobs;
    std::vector<float> prior;
  };
  Rows rows_of(std::span<const Candidate> candidates) {
    Rows rows{{candidates.begin(), candidates.end()}, features_.knobs(candidates), {}};
    rows.prior = prior_scores(rows.knobs);
    return rows;
  }

  // Fills planned_ with the next batch; all of it is taken.
  void plan() {
    std::mt19937_64 rng = pool_.stream();
    while (std::optional<Candidate> c = pool_.take_default()) planned_.push_back(*c);
    const bool blind = prior_.empty() && (pool_.taken() < options_.start || results_.ok() < 2);
    if (!blind && planned_.size() < options_.batch && pool_.left() > 0) {
      if (fitted_results_ == 0 || results_.size() >= fitted_results_ + options_.batch) refit(rng);
      // Many workers ask for several batches before results come.
      if (ranking_.size() < options_.batch) ranking_ = rank_promising(rng);
      choose(rng);
    }
    while (planned_.size() < options_.batch) {
      const std::optional<Candidate> c = pool_.take_random(rng);
      if (!c) break;
      planned_.push_back(*c);
    }
  }

  // --- the models ---

  void refit(std::mt19937_64& rng) {
    std::vector<Candidate> all;
    if (results_.size() >= kFewestResults) all = results_.candidates();
    fitted_results_ = all.size();
    if (!all.empty()) {
      std::vector<float> scores;
      for (const Candidate& c : all) scores.push_back(results_.score(c));
      const FeatureMatrix rows = features_.knobs(all);
      if (!prior_.empty() && prior_.learn(all, rows, scores)) {
        whole_.prior = prior_scores(whole_.knobs);
        if (prior_.given_up()) random_left_ = prior_.random_owed(options_.start);
      }
      if (options_.caution > 0) {
        std::vector<float> worked;
        for (const Candidate& c : all) worked.push_back(results_.at(c).ok ? 1 : 0);
        feasibility_.fit(rows, worked);
      }
      fit_trees(all);
    }
    ranking_ = rank_promising(rng);
  }

  void fit_trees(const std::vector<Candidate>& all) {
    std::vector<Candidate> used;
    for (const Candidate& c : all)
      if (!feasibility_.knows() || results_.at(c).ok) used.push_back(c);
    if (used.size() < kFewestResults) return;
    const Rows rows = rows_of(used);
    const std::vector<float> rest = targets(rows);
    fit(knob_model_, rows.knobs, rest);
    if (!features_.has_program_features()) return;
    const FeatureMatrix with_program = features_.with_program(used);
    program_columns_ = with_program.columns;
    fit(program_model_, with_program, rest);
  }
  static void fit(TreeEnsemble& model, const FeatureMatrix& rows, std::span<const float> values) {
    const Status fitted = model.fit(rows, values);
    CHECK(fitted.is_ok()) << fitted.message();
  }

  // Values plus what the prior says. A cut row was at least as slow as its time says, so its value is a bound
  // from below: the previous model's opinion stands when it is higher.
  std::vector<float> targets(const Rows& rows) const {
    std::vector<float> opinion, rest = rows.prior;
    if (knob_model_.fitted()) opinion = knob_model_.predict(rows.knobs).mean;
    for (size_t i = 0; i < rest.size(); ++i) {
      const Candidate& c = rows.candidates[i];
      const float value = results_.value(c);
      const bool bound = results_.at(c).ok && results_.at(c).cut && !opinion.empty();
      rest[i] = bound ? std::clamp(opinion[i], value + rest[i], 1 + rest[i]) : value + rest[i];
    }
    return rest;
  }

  std::vector<float> prior_scores(const FeatureMatrix& knobs) const {
    if (prior_.empty() || knobs.rows() == 0) return std::vector<float>(knobs.rows(), 0);
    return prior_.predict(knobs);
  }

  // --- one round of proposals ---

  void choose(std::mt19937_64& rng) {
    const std::vector<Candidate> parents =
        niches(pool_, results_.size() < kFewestResults ? std::vector<Candidate>() : results_.fastest(),
               options_.parents, options_.niche_distance);
    std::uniform_real_distribution<double> chance(0, 1);
    std::vector<Ranked> chosen;
    const size_t want = options_.batch > planned_.size() ? options_.batch - planned_.size() : 0;
    for (size_t slot = 0; slot < want; ++slot) {
      const double draw = chance(rng);
      if (draw < (random_left_ > 0 ? kCatchUpShare : options_.random_share)) {
        random_left_ -= random_left_ > 0 ? 1 : 0;
        if (const auto c = pool_.take_random(rng)) planned_.push_back(*c);
        continue;
      }
      std::optional<Ranked> next;
      if (draw < options_.random_share + options_.local_share && !parents.empty()) {
        const std::vector<Candidate> born =
            bred(pool_, parents, {options_.children, options_.crossover, options_.mutation}, rng);
        std::vector<Ranked> children = rank(rows_of(born), false);
        next = take_best(children, chosen);
      }
      if (!next) next = take_best(ranking_, chosen);
      if (!next) break;
      planned_.push_back(next->candidate);
      check_.predicted(next->candidate, 1 - next->mean);
      chosen.push_back(std::move(*next));
    }
  }

  // The most promising candidates; the first of them again by their Programs.
  std::vector<Ranked> rank_promising(std::mt19937_64& rng) {
    const bool programs = program_model_.fitted();
    const size_t wanted = programs ? options_.program_feature_budget : options_.ranked;
    if (pool_.space().size() > options_.rank_whole) return rank(rows_of(walked(wanted, rng)), programs);
    if (whole_.candidates.empty()) whole_ = rows_of(whole_space());
    const TreeEnsemble::Prediction p = predicted(whole_, knob_model_, whole_.knobs);
    const std::vector<float> works = feasibility_.factors(whole_.knobs);
    const std::vector<size_t> best = most_promising(promise(p, works), wanted);
    std::vector<Ranked> ranking;
    if (programs) {
      std::vector<Candidate> promising;
      for (const size_t i : best) promising.push_back(whole_.candidates[i]);
      return rank(rows_of(promising), programs);
    }
    for (const size_t i : best) ranking.push_back(ranked(whole_, i, p, works[i]));
    return ranking;
  }

  std::vector<Candidate> walked(size_t wanted, std::mt19937_64& rng) {
    std::vector<Candidate> starts = results_.fastest();
    if (starts.size() > kWalksFrom) starts.resize(kWalksFrom);
    ModelScores view(pool_, std::move(starts), [&](std::span<const Candidate> candidates) {
      const Rows rows = rows_of(candidates);
      return promise(predicted(rows, knob_model_, rows.knobs), feasibility_.factors(rows.knobs));
    });
    walk_(view, rng);
    std::vector<Candidate> found;
    for (const auto& [score, c] : view.best(wanted)) found.push_back(c);
    return found;
  }

  std::vector<Candidate> whole_space() const {
    const SearchSpace& space = pool_.space();
    std::vector<Candidate> all;
    for (size_t part = 0; part < space.parts.size(); ++part)
      for (ConfigIndex i = 0; i < space.parts[part].space->size(); ++i)
        all.push_back({static_cast<int>(part), i});
    return all;
  }

  // Of the whole space, by position: at most n fresh ones, best first.
  std::vector<size_t> most_promising(const std::vector<float>& promise, size_t n) const {
    std::vector<size_t> fresh;
    for (size_t i = 0; i < promise.size(); ++i)
      if (!pool_.is_taken(whole_.candidates[i])) fresh.push_back(i);
    n = std::min(n, fresh.size());
    std::partial_sort(
        fresh.begin(), fresh.begin() + static_cast<std::ptrdiff_t>(n), fresh.end(),
        [&](size_t a, size_t b) { return promise[a] != promise[b] ? promise[a] > promise[b] : a < b; });
    fresh.resize(n);
    return fresh;
  }

  // Predicted values with their deviations; `rows` holds the columns of `model` for each candidate.
  TreeEnsemble::Prediction predicted(const Rows& of, const TreeEnsemble& model,
                                     const FeatureMatrix& rows) const {
    const size_t n = of.candidates.size();
    TreeEnsemble::Prediction p{std::vector<float>(n, 0), std::vector<float>(n, 0), {}};
    if (model.fitted()) p = model.predict(rows);
    if (p.of_model.empty() || !options_.in_turn) p.of_model = {p.mean};
    for (size_t i = 0; i < n; ++i) {
      p.mean[i] -= of.prior[i];
      for (std::vector<float>& mean : p.of_model) mean[i] -= of.prior[i];
      p.deviation[i] =
          static_cast<float>(std::hypot(options_.uncertainty * p.deviation[i], options_.least_deviation));
    }
    return p;
  }

  // What a walk climbs: smoother than a gain, which is 0 nearly everywhere.
  static std::vector<float> promise(const TreeEnsemble::Prediction& p, const std::vector<float>& works) {
    std::vector<float> score = works;
    for (size_t i = 0; i < score.size(); ++i) score[i] *= 1 - p.mean[i] + p.deviation[i];
    return score;
  }

  std::vector<Ranked> rank(const Rows& rows, bool programs) {
    std::vector<Ranked> ranking;
    if (rows.candidates.empty()) return ranking;
    FeatureMatrix columns = programs ? features_.with_program(rows.candidates) : rows.knobs;
    // The first Programs with features may have come after the fit.
    if (programs && columns.columns != program_columns_) {
      programs = false;
      columns = rows.knobs;
    }
    const TreeEnsemble::Prediction p = predicted(rows, programs ? program_model_ : knob_model_, columns);
    const std::vector<float> works = feasibility_.factors(rows.knobs);
    for (size_t i = 0; i < rows.candidates.size(); ++i) ranking.push_back(ranked(rows, i, p, works[i]));
    return ranking;
  }

  Ranked ranked(const Rows& rows, size_t i, const TreeEnsemble::Prediction& p, float works) const {
    std::vector<float> gains;
    for (const std::vector<float>& mean : p.of_model) {
      const double gain = options_.expected_improvement ? expected_improvement(mean[i], p.deviation[i])
                                                        : 1 - mean[i] + p.deviation[i];
      gains.push_back(static_cast<float>(works * gain));
    }
    const auto row = rows.knobs.values.begin() + static_cast<std::ptrdiff_t>(i * rows.knobs.columns);
    return {rows.candidates[i], p.mean[i], std::move(gains),
            std::vector<float>(row, row + static_cast<std::ptrdiff_t>(rows.knobs.columns))};
  }

  // Takes the candidate of highest gain after the loss for likeness to what the batch already holds. The gain
  // is what one model expects, for each proposal the next: they disagree where little is known.
  std::optional<Ranked> take_best(std::vector<Ranked>& ranking, const std::vector<Ranked>& chosen) {
    const size_t slot = chosen.size();
    while (!ranking.empty()) {
      size_t best = 0;
      double best_gain = -std::numeric_limits<double>::infinity(), most = 0;
      for (const Ranked& r : ranking) most = std::max(most, static_cast<double>(r.gain(slot)));
      for (size_t i = 0; i < ranking.size(); ++i) {
        double alike = 0;
        for (const Ranked& other : chosen) alike = std::max(alike, likeness(ranking[i], other));
        const double gain = ranking[i].gain(slot) - options_.likeness * alike * most;
        if (gain <= best_gain) continue;
        best_gain = gain;
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

  const std::string name_;
  const ModelGuidedOptions options_;
  const Walk walk_;
  CandidatePool pool_;
  CandidateFeatures features_;
  PriorModel prior_;
  MeasuredResults results_;
  TreeEnsemble knob_model_, program_model_;  // the second only where the space gives program features
  Feasibility feasibility_;
  Rows whole_;  // the space, where it is ranked whole
  size_t fitted_results_ = 0;
  size_t random_left_ = 0;         // of the random start that prior tasks had saved, once those are given up
  size_t program_columns_ = 0;     // of the rows that the program model was fitted on
  std::vector<Ranked> ranking_;    // the most promising at the last fit
  std::deque<Candidate> planned_;  // taken, not yet proposed
  ModelCheck check_;
  std::string status_;
};

}  // namespace

std::unique_ptr<SearchStrategy> make_model_guided_search(std::string_view name, const SearchSpace& space,
                                                         uint64_t seed, Walk walk,
                                                         const ModelGuidedOptions& options) {
  return std::make_unique<ModelGuidedSearch>(name, space, seed, std::move(walk), options);
}

}  // namespace tuner
