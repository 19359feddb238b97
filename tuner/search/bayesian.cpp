#include "tuner/search/bayesian.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <sstream>
#include <unordered_map>

#include "tuner/cost_model/gaussian_process.h"
#include "tuner/search/breeding.h"
#include "tuner/search/candidate_features.h"
#include "tuner/search/candidate_pool.h"
#include "tuner/search/feasibility.h"
#include "tuner/search/improvement.h"
#include "tuner/search/knob_inputs.h"
#include "tuner/search/measured_results.h"
#include "tuner/search/prior_model.h"
#include "tuner/search/strategies.h"
#include "tuner/search/tree_ensemble.h"

namespace tuner {
namespace {

constexpr float kNoFeature = std::numeric_limits<float>::quiet_NaN();
// Fewer results say nothing that what is known of similar tasks does not say better: a default alone, the
// fastest so far, makes everything else look like a gain.
constexpr size_t kFewestForProcess = 4;
constexpr double kProcessCatchUpShare = 0.5;  // share of random proposals while a random start is made up for

// What is predicted is a *value*: 1 - best time / time, so 0 for the fastest measured, about 1 for the very
// slow. The models see the value plus what the prior tasks say of the throughput (0 without any): the rest.
class BayesianSearch final : public SearchStrategy {
 public:
  BayesianSearch(const SearchSpace& space, uint64_t seed, const BayesianOptions& options)
      : options_(options),
        seed_(seed),
        pool_(space, seed),
        features_(space, CandidateFeatures::Columns::kSizesAndDivisibility),
        prior_(space, features_, seed),
        // With similar tasks the trend says it, and a column more is one more scale to learn from few rows.
        inputs_(space, /*divisibility=*/prior_.empty()),
        gp_(inputs_.columns(), trends()),
        feasibility_(seed, options.caution) {
    status_ = prior_.empty() ? "" : "warm start from " + prior_.describe();
  }

  std::string_view name() const override { return "bayesian"; }

  std::vector<Candidate> propose(size_t n) override {
    std::vector<Candidate> batch;
    while (batch.size() < n) {
      std::optional<Candidate> c = pool_.take_default();
      const bool blind = prior_.empty() && (pool_.taken() < options_.start || results_.ok() < 2);
      std::mt19937_64 rng = pool_.stream();
      if (!c && blind) c = pool_.take_random(rng);
      if (!c) break;
      accept(*c, batch);
    }
    if (batch.size() < n && pool_.left() > 0) choose(n, batch);
    return batch;
  }

  void observe(std::span<const Observation> results) override {
    for (const Observation& r : results) {
      if (pool_.take(r.candidate)) mark_taken(r.candidate);
      open_.erase(r.candidate);
      results_.add(r);
      check_.measured(r.candidate);
    }
    if (const std::optional<std::string> line = check_.judgement(results_))
      status_ = *line + (prior_.empty() ? "" : ", warm start from " + prior_.describe());
  }

  std::string status_line() const override { return status_; }
  uint64_t rng_counter() const override { return pool_.taken(); }
  std::string model_digest() const override { return digest_; }

 private:
  void accept(const Candidate& c, std::vector<Candidate>& batch) {
    open_.insert(c);
    batch.push_back(c);
  }

  // --- one round of proposals ---

  void choose(size_t n, std::vector<Candidate>& batch) {
    std::mt19937_64 rng = pool_.stream();
    const bool few = results_.size() < kFewestForProcess;
    const std::vector<Candidate> fast = few ? std::vector<Candidate>() : results_.fastest();
    if (!posterior_ || results_.size() >= fitted_results_ + std::max<size_t>(16, fitted_results_ / 10) ||
        (fitted_results_ == 0 && !few))
      refit(fast, rng);
    else
      update();

    const std::vector<Candidate> parents = niches(pool_, fast, options_.parents, options_.niche_distance);
    std::uniform_real_distribution<double> chance(0, 1);
    std::vector<std::vector<Candidate>> slots(n - batch.size());  // candidates of each; none: all of the pool
    std::vector<Candidate> known_to_models;
    for (std::vector<Candidate>& slot : slots) {
      const double draw = chance(rng);
      if (draw < (random_left_ > 0 ? kProcessCatchUpShare : options_.random_share)) {
        slot = {pool_.random(rng)};
        random_left_ -= random_left_ > 0 ? 1 : 0;
      } else if (draw < options_.random_share + options_.local_share && !parents.empty()) {
        slot = bred(pool_, parents, {options_.children, options_.crossover, options_.mutation}, rng);
      }
      known_to_models.insert(known_to_models.end(), slot.begin(), slot.end());
    }
    add_to_pool(known_to_models);
    for (const std::vector<Candidate>& slot : slots) {
      std::optional<size_t> best;
      double best_gain = 0;
      const auto consider = [&](size_t i) {
        if (taken_[i]) return;
        const double gain = works_[i] * expected_improvement(mean(i), deviation(i));
        if (best && gain <= best_gain) return;
        best = i;
        best_gain = gain;
      };
      for (const Candidate& c : slot) consider(position_.at(c));
      if (!best)
        for (size_t i = 0; i < candidates_.size(); ++i) consider(i);
      if (!best) break;
      const Candidate c = candidates_[*best];
      CHECK(pool_.take(c)) << "a candidate of the pool was taken behind its back";
      taken_[*best] = true;
      check_.predicted(c, static_cast<float>(-mean(*best)));
      believe(*best);
      accept(c, batch);
    }
    while (batch.size() < n) {  // the pool is used up
      const std::optional<Candidate> c = pool_.take_random(rng);
      if (!c) break;
      mark_taken(*c);
      accept(*c, batch);
    }
  }

  double mean(size_t i) const {
    const double share = tree_mean_.empty() ? 0 : options_.tree_share;
    const double rest =
        share == 0 ? posterior_->mean(i) : (1 - share) * posterior_->mean(i) + share * tree_mean_[i];
    return rest - prior_of_[i];
  }
  double deviation(size_t i) const {
    const double share = tree_mean_.empty() ? 0 : options_.tree_share;
    const double own = posterior_->deviation(i), trees = share == 0 ? 0 : tree_deviation_[i];
    return std::sqrt((1 - share) * own * own + share * trees * trees);
  }

  // --- the models ---

  // The first half of what may stay, then an even choice of the others.
  template <class T>
  static std::vector<T> thinned(const std::vector<T>& sorted, size_t most) {
    if (sorted.size() <= most) return sorted;
    std::vector<T> kept(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(most / 2));
    const size_t rest = sorted.size() - most / 2, wanted = most - most / 2;
    for (size_t i = 0; i < wanted; ++i) kept.push_back(sorted[most / 2 + i * rest / wanted]);
    return kept;
  }

  std::vector<float> prior_scores(std::span<const Candidate> candidates) {
    if (prior_.empty()) return std::vector<float>(candidates.size(), 0);
    return prior_.predict(features_.knobs(candidates));
  }
  GpInputs inputs_of(std::span<const Candidate> candidates, std::span<const float> prior) const {
    return inputs_.of(candidates, trends(), prior);
  }

  void refit(const std::vector<Candidate>& fast, std::mt19937_64& rng) {
    const bool few = results_.size() < kFewestForProcess;
    fitted_results_ = few ? 0 : results_.size();
    std::vector<Candidate> all;
    if (!few) all = results_.candidates();
    std::vector<float> scores;
    for (const Candidate& c : all) scores.push_back(results_.score(c));
    if (!prior_.empty() && !all.empty() && prior_.learn(all, features_.knobs(all), scores)) {
      universe_prior_.clear();
      if (prior_.given_up()) forget_prior();
    }
    fit_feasibility(all);
    fit_trees(all);
    fit_process(fast);
    fill_pool(fast, rng);
    describe();
  }

  // From here on the search is what it would be without similar tasks.
  void forget_prior() {
    inputs_ = KnobInputs(pool_.space(), /*divisibility=*/true);
    gp_ = GaussianProcess(inputs_.columns(), trends());
    universe_inputs_ = GpInputs();
    random_left_ = prior_.random_owed(options_.start);
  }
  size_t trends() const { return prior_.empty() || prior_.given_up() ? 0 : 1; }

  void fit_trees(const std::vector<Candidate>& all) {
    trees_.reset();
    std::vector<Candidate> used;
    for (const Candidate& c : all)
      if (!feasibility_.knows() || results_.at(c).ok) used.push_back(c);
    if (options_.tree_share == 0 || used.size() < 4) return;
    std::vector<float> rest = prior_scores(used);
    for (size_t i = 0; i < used.size(); ++i) rest[i] += results_.value(used[i]);
    trees_.emplace(options_.xgboost, options_.trees, seed_);
    const Status fitted = trees_->fit(features_.knobs(used), rest);
    CHECK(fitted.is_ok()) << fitted.message();
  }

  void fit_feasibility(const std::vector<Candidate>& all) {
    if (options_.caution == 0) return;
    std::vector<float> worked;
    worked.reserve(all.size());
    for (const Candidate& c : all) worked.push_back(results_.at(c).ok ? 1 : 0);
    feasibility_.fit(features_.knobs(all), worked);
  }

  void fit_process(const std::vector<Candidate>& fast) {
    rows_ = thinned(fast, options_.most_rows);
    const std::vector<float> prior = prior_scores(rows_);
    row_prior_ = prior;
    const GpInputs inputs = inputs_of(rows_, prior);
    const std::vector<float> rest = row_values();
    std::vector<size_t> order(rows_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    const std::vector<size_t> few = thinned(order, options_.tune_rows);
    std::vector<float> few_values;
    few_values.reserve(few.size());
    for (const size_t i : few) few_values.push_back(rest[i]);
    gp_.tune(inputs.selected(few), few_values, options_.tune_evaluations);
    gp_.fit(inputs, rest);
  }

  // Of the rows of the posterior, as far as they are known.
  std::vector<float> row_values() const {
    std::vector<float> values;
    for (size_t i = 0; i < rows_.size(); ++i) {
      const bool known = results_.contains(rows_[i]) && results_.at(rows_[i]).ok;
      values.push_back(known ? results_.value(rows_[i]) + row_prior_[i] : kNoFeature);
    }
    return values;
  }

  void update() { posterior_->set_values(row_values()); }

  // What trees say of candidates, appended to what the pool knows.
  void append_trees(const TreeEnsemble::Prediction& p) {
    tree_mean_.insert(tree_mean_.end(), p.mean.begin(), p.mean.end());
    tree_deviation_.insert(tree_deviation_.end(), p.deviation.begin(), p.deviation.end());
  }

  // --- the pool of candidates ---

  // What is said of the universe: means of the values, chances to work, and the trees alone.
  struct Survey {
    std::vector<float> mean, works;
    TreeEnsemble::Prediction trees;
  };

  Survey survey() {
    if (universe_prior_.size() != universe_.size()) {
      universe_prior_ =
          prior_.empty() ? std::vector<float>(universe_.size(), 0) : prior_.predict(universe_features_);
      universe_inputs_ = GpInputs();
    }
    if (universe_inputs_.rows != universe_.size()) universe_inputs_ = inputs_of(universe_, universe_prior_);
    Survey s{gp_.mean(universe_inputs_), feasibility_.factors(universe_features_), {}};
    if (trees_) s.trees = trees_->predict(universe_features_);
    const float share = tree_share();
    for (size_t i = 0; i < universe_.size(); ++i) {
      s.mean[i] = (1 - share) * s.mean[i] + (share > 0 ? share * s.trees.mean[i] : 0) - universe_prior_[i];
      s.mean[i] = s.works[i] * s.mean[i] + (1 - s.works[i]);  // a failure is as bad as the very slow
    }
    return s;
  }
  float tree_share() const { return trees_ ? static_cast<float>(options_.tree_share) : 0; }

  void set_universe(std::vector<Candidate> candidates) {
    universe_ = std::move(candidates);
    universe_prior_.clear();
    universe_features_ = features_.knobs(universe_);
  }

  Survey survey_universe(const std::vector<Candidate>& fast, std::mt19937_64& rng) {
    const SearchSpace& space = pool_.space();
    if (space.size() > options_.rank_whole) {
      set_universe(drawn(pool_, niches(pool_, fast, 2 * options_.parents, 1), options_.drawing, rng));
    } else if (universe_.empty()) {
      std::vector<Candidate> whole;
      for (size_t part = 0; part < space.parts.size(); ++part)
        for (ConfigIndex i = 0; i < space.parts[part].space->size(); ++i)
          whole.push_back({static_cast<int>(part), i});
      set_universe(std::move(whole));
    }
    return survey();
  }

  // Those of the universe whose mean is best, and some others; by position in the universe.
  std::vector<size_t> chosen_of(const std::vector<float>& mean, std::mt19937_64& rng) const {
    std::vector<size_t> order;
    for (size_t i = 0; i < universe_.size(); ++i)
      if (!pool_.is_taken(universe_[i])) order.push_back(i);
    if (order.size() <= options_.pool) return order;
    const size_t top = options_.pool * 3 / 4;
    std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(top), order.end(),
                     [&](size_t a, size_t b) { return mean[a] != mean[b] ? mean[a] < mean[b] : a < b; });
    std::sort(order.begin() + static_cast<std::ptrdiff_t>(top), order.end());
    // The others at random: where the mean is poor the deviation may be large.
    for (size_t i = top; i < options_.pool; ++i)
      std::swap(order[i], order[i + std::uniform_int_distribution<size_t>(0, order.size() - 1 - i)(rng)]);
    order.resize(options_.pool);
    std::sort(order.begin(), order.end());
    return order;
  }

  // The pool: what is chosen of the universe, and what is open.
  void fill_pool(const std::vector<Candidate>& fast, std::mt19937_64& rng) {
    const Survey s = survey_universe(fast, rng);
    const std::vector<size_t> order = chosen_of(s.mean, rng);
    candidates_.clear();
    position_.clear();
    taken_.clear();
    prior_of_.clear();
    works_.clear();
    tree_mean_.clear();
    tree_deviation_.clear();
    for (const size_t i : order) {
      position_.emplace(universe_[i], candidates_.size());
      candidates_.push_back(universe_[i]);
      taken_.push_back(false);
      prior_of_.push_back(universe_prior_[i]);
      works_.push_back(s.works[i]);
      if (tree_share() > 0) {
        tree_mean_.push_back(s.trees.mean[i]);
        tree_deviation_.push_back(s.trees.deviation[i]);
      }
    }
    posterior_.emplace(gp_, universe_inputs_.selected(order));
    std::vector<Candidate> open(open_.begin(), open_.end());
    add_to_pool(open);
    for (const Candidate& c : open) believe(position_.at(c));
  }

  void add_to_pool(const std::vector<Candidate>& wanted) {
    std::vector<Candidate> fresh;
    for (const Candidate& c : wanted)
      if (position_.emplace(c, candidates_.size() + fresh.size()).second) fresh.push_back(c);
    if (fresh.empty()) return;
    const std::vector<float> prior = prior_scores(fresh);
    posterior_->extend(inputs_of(fresh, prior));
    for (const Candidate& c : fresh) taken_.push_back(pool_.is_taken(c));
    candidates_.insert(candidates_.end(), fresh.begin(), fresh.end());
    prior_of_.insert(prior_of_.end(), prior.begin(), prior.end());
    const FeatureMatrix features = features_.knobs(fresh);
    const std::vector<float> works = feasibility_.factors(features);
    works_.insert(works_.end(), works.begin(), works.end());
    if (trees_) append_trees(trees_->predict(features));
  }

  void believe(size_t i) {
    posterior_->believe(i);
    rows_.push_back(candidates_[i]);
    row_prior_.push_back(prior_of_[i]);
  }

  void mark_taken(const Candidate& c) {
    if (const auto found = position_.find(c); found != position_.end()) taken_[found->second] = true;
  }

  // --- for people ---

  void describe() {
    uint64_t hash = 14695981039346656037ull;
    const auto add = [&](float x) { hash = (hash ^ std::bit_cast<uint32_t>(x)) * 1099511628211ull; };
    add(gp_.noise());
    add(gp_.amplitude());
    for (const float s : gp_.length_scales()) add(s);
    std::ostringstream text;
    text << "gp" << std::hex << hash;
    if (trees_) text << '-' << trees_->digest();
    if (feasibility_.knows()) text << '-' << feasibility_.digest();
    digest_ = text.str();
  }

  const BayesianOptions options_;
  const uint64_t seed_;
  CandidatePool pool_;
  CandidateFeatures features_;
  PriorModel prior_;
  KnobInputs inputs_;

  MeasuredResults results_;
  std::set<Candidate> open_;  // proposed, not yet observed

  // The models and the results they were fitted on.
  GaussianProcess gp_;
  std::optional<TreeEnsemble> trees_;
  Feasibility feasibility_;
  size_t fitted_results_ = 0;
  size_t random_left_ = 0;  // of the random start that prior tasks had saved, once those are given up

  // What the pool is drawn from: the whole space, or fresh draws at each fit.
  std::vector<Candidate> universe_;
  FeatureMatrix universe_features_;
  GpInputs universe_inputs_;
  std::vector<float> universe_prior_;

  // The pool: candidates with all that is known of them, by position.
  std::vector<Candidate> candidates_;
  std::unordered_map<Candidate, size_t, CandidateHash> position_;
  std::vector<bool> taken_;
  std::vector<float> prior_of_, tree_mean_, tree_deviation_, works_;
  std::optional<PoolPosterior> posterior_;
  std::vector<Candidate> rows_;  // of the posterior
  std::vector<float> row_prior_;

  ModelCheck check_;
  std::string status_, digest_;
};

}  // namespace

std::unique_ptr<SearchStrategy> make_bayesian_search(const SearchSpace& space, uint64_t seed) {
  return make_bayesian_search(space, seed, {});
}

std::unique_ptr<SearchStrategy> make_bayesian_search(const SearchSpace& space, uint64_t seed,
                                                     const BayesianOptions& options) {
  return std::make_unique<BayesianSearch>(space, seed, options);
}

}  // namespace tuner
