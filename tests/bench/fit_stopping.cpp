// fit_stopping: fits and judges the coefficients of tuner/search/stopping_estimate.cpp.
//
//   fit_stopping [--seeds N] [--first-seed N] [--trials N] [--strategy S] [--stop-below P] [--check-only]
//                SPACE.csv[.gz]...
//
// Plays the strategy on every space (the given files and synthetic ones) and asks, every 16 trials, whether
// the best time fell by 1 % within the next 100. For each file it prints how the estimate does there when
// fitted on all other spaces (so never on itself): predicted and observed chance by tenths of the
// predictions, and what stopping below P would have lost and saved. Then the coefficients fitted on all, as
// C++.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "tests/tuner/measured_space.h"
#include "tuner/search/recorded_space.h"
#include "tuner/search/stopping_estimate.h"

namespace tuner::testing {
namespace {

constexpr size_t kInFlight = 8;
constexpr size_t kEvery = 16;
constexpr size_t kWidth = StoppingFacts::kCount + 1;
using Coefficients = std::array<double, kWidth>;

// What the estimate knows at a moment: facts, then 1; and what a stall takes off the logit.
struct Known {
  std::array<double, kWidth> x;
  double stall;
};
struct Moment {
  Known known;
  bool gained;
  double log_gain;
};
struct Run {
  std::vector<double> best;                        // after each trial
  std::vector<std::pair<size_t, Moment>> moments;  // trials done -> facts; only where the next 100 are known
  std::vector<std::pair<size_t, Known>> all;       // every moment, for the stopping rule
};
struct Played {
  std::string name;
  bool recorded = false;  // else synthetic
  std::vector<Run> runs;
};

Result<Run> play(const SearchSpace& space, const std::function<Observation(const Candidate&)>& measure,
                 const std::string& strategy, uint64_t seed, size_t trials) {
  Run run;
  StoppingEstimate estimate(space);
  ASSIGN_OR_RETURN(std::unique_ptr<SearchStrategy> search, make_strategy(strategy, space, seed));
  std::vector<std::pair<size_t, Known>> asked;
  size_t next = kStoppingLeast;
  while (run.best.size() < trials) {
    const std::vector<Candidate> proposed = search->propose(std::min(kInFlight, trials - run.best.size()));
    if (proposed.empty()) break;
    std::vector<Observation> results;
    for (const Candidate& c : proposed) {
      results.push_back(measure(c));
      estimate.observe({&results.back(), 1});
      run.best.push_back(estimate.best_ns());
    }
    search->observe(results);
    if (run.best.size() < next) continue;
    next = run.best.size() + kEvery;
    const std::optional<StoppingFacts> facts = estimate.facts();
    if (!facts) continue;
    Known known{{}, facts->stall};
    const auto values = facts->values();
    std::copy(values.begin(), values.end(), known.x.begin());
    known.x.back() = 1;
    asked.emplace_back(run.best.size(), known);
  }
  for (const auto& [at, known] : asked) {
    run.all.emplace_back(at, known);
    const size_t later = at + kStoppingHorizon;
    if (later > run.best.size()) continue;
    const double ratio = run.best[later - 1] / run.best[at - 1];
    run.moments.push_back({at, {known, ratio <= 1 - kStoppingGain, std::log(std::max(1 - ratio, 1e-9))}});
  }
  return run;
}

double dot(const Coefficients& a, const Coefficients& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

double chance(const Coefficients& c, const Known& known) {
  return 1 / (1 + std::exp(known.stall - dot(c, known.x)));
}

// Solves a x = b for a symmetric positive a (Cholesky).
Coefficients solve(std::array<Coefficients, kWidth> a, Coefficients b) {
  for (size_t i = 0; i < kWidth; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      double sum = a[i][j];
      for (size_t k = 0; k < j; ++k) sum -= a[i][k] * a[j][k];
      a[i][j] = i == j ? std::sqrt(sum) : sum / a[j][j];
    }
  }
  for (size_t i = 0; i < kWidth; ++i) {
    for (size_t k = 0; k < i; ++k) b[i] -= a[i][k] * b[k];
    b[i] /= a[i][i];
  }
  for (size_t i = kWidth; i-- > 0;) {
    for (size_t k = i + 1; k < kWidth; ++k) b[i] -= a[k][i] * b[k];
    b[i] /= a[i][i];
  }
  return b;
}

// One weighted least-squares step's normal equations, with a ridge that keeps it solvable.
struct Normal {
  std::array<Coefficients, kWidth> a{};
  Coefficients b{};
  explicit Normal(double ridge) {
    for (size_t i = 0; i < kWidth; ++i) a[i][i] = i + 1 < kWidth ? ridge : 1e-9;
  }
  void add(const Coefficients& x, double weight, double y) {
    for (size_t i = 0; i < kWidth; ++i) {
      b[i] += weight * x[i] * y;
      for (size_t j = 0; j < kWidth; ++j) a[i][j] += weight * x[i] * x[j];
    }
  }
};

// Every space has the same say, whatever its number of moments; a recorded one that of ten synthetic ones: it
// is what people tune.
StoppingCoefficients fit(const std::vector<const Played*>& spaces) {
  StoppingCoefficients result{};
  const auto each = [&](const std::function<void(const Moment&, double)>& visit) {
    for (const Played* p : spaces) {
      size_t moments = 0;
      for (const Run& run : p->runs) moments += run.moments.size();
      for (const Run& run : p->runs)
        for (const auto& [at, m] : run.moments)
          visit(m, (p->recorded ? 3000.0 : 1000.0) / static_cast<double>(moments));
    }
  };
  for (int step = 0; step < 30; ++step) {  // Newton
    Normal normal(1.0);
    each([&](const Moment& m, double weight) {
      const double p = chance(result.chance, m.known);
      const double w = std::max(p * (1 - p), 1e-6);
      normal.add(m.known.x, weight * w, dot(result.chance, m.known.x) + ((m.gained ? 1 : 0) - p) / w);
    });
    result.chance = solve(normal.a, normal.b);
  }
  Normal normal(1.0);
  each([&](const Moment& m, double weight) {
    if (m.gained) normal.add(m.known.x, weight, m.log_gain);
  });
  result.gain = solve(normal.a, normal.b);
  return result;
}

// Returns the largest distance between predicted and observed, over the tenths.
using Judged = std::pair<const Played*, StoppingCoefficients>;
double judge(const std::vector<Judged>& spaces, double stop_below) {
  std::vector<std::pair<double, bool>> predicted;
  std::vector<double> lost, saved;
  size_t within = 0;
  for (const auto& [p, c] : spaces) {
    for (const Run& run : p->runs) {
      for (const auto& [at, m] : run.moments) predicted.emplace_back(chance(c.chance, m.known), m.gained);
      size_t stopped = run.best.size();
      for (const auto& [at, known] : run.all) {
        if (chance(c.chance, known) >= stop_below) continue;
        stopped = at;
        break;
      }
      lost.push_back(1 - run.best.back() / run.best[stopped - 1]);
      saved.push_back(1 - static_cast<double>(stopped) / static_cast<double>(run.best.size()));
      within += lost.back() <= 0.01 ? 1 : 0;
    }
  }
  std::sort(predicted.begin(), predicted.end());
  double farthest = 0;
  std::printf("    predicted ");
  std::vector<double> observed;
  for (size_t tenth = 0; tenth < 10; ++tenth) {
    const size_t from = predicted.size() * tenth / 10, to = predicted.size() * (tenth + 1) / 10;
    double sum = 0, hits = 0;
    for (size_t i = from; i < to; ++i) {
      sum += predicted[i].first;
      hits += predicted[i].second ? 1 : 0;
    }
    const double n = static_cast<double>(std::max<size_t>(to - from, 1));
    std::printf(" %5.1f", 100 * sum / n);
    observed.push_back(hits / n);
    farthest = std::max(farthest, std::abs(sum / n - hits / n));
  }
  std::printf("\n    observed  ");
  for (const double o : observed) std::printf(" %5.1f", 100 * o);
  const double n = static_cast<double>(lost.size());
  std::printf("   farthest %.1f points, %zu moments\n", 100 * farthest, predicted.size());
  std::printf(
      "    stopping below %.0f %%: lost %.2f %% (mean; worst %.2f, at most 1 %% in %zu of %zu runs), saved "
      "%.0f %% of "
      "the trials\n",
      100 * stop_below, 100 * std::accumulate(lost.begin(), lost.end(), 0.0) / n,
      100 * *std::max_element(lost.begin(), lost.end()), within, lost.size(),
      100 * std::accumulate(saved.begin(), saved.end(), 0.0) / n);
  return farthest;
}

void print(const char* name, const Coefficients& c) {
  std::printf("      .%s = {", name);
  for (size_t i = 0; i < c.size(); ++i) std::printf("%s%.3f", i == 0 ? "" : ", ", c[i]);
  std::printf("},\n");
}

Status run(int argc, char** argv) {
  int seeds = 10, first_seed = 0;
  size_t trials = 1000;
  std::string strategy{kDefaultStrategy};
  double stop_below = 0.05;
  bool check_only = false;
  std::vector<Played> spaces;
  std::vector<std::string> files;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const bool has_value = i + 1 < argc;
    if (arg == "--seeds" && has_value)
      seeds = std::stoi(argv[++i]);
    else if (arg == "--first-seed" && has_value)
      first_seed = std::stoi(argv[++i]);
    else if (arg == "--trials" && has_value)
      trials = std::stoul(argv[++i]);
    else if (arg == "--strategy" && has_value)
      strategy = argv[++i];
    else if (arg == "--stop-below" && has_value)
      stop_below = std::stod(argv[++i]) / 100;
    else if (arg == "--check-only")
      check_only = true;
    else if (arg.starts_with("--"))
      return invalid_argument(arg, ": unknown option, or its value is missing");
    else
      files.push_back(arg);
  }
  const auto play_all = [&](const std::string& name, bool recorded, const SearchSpace& space,
                            const std::function<Observation(const Candidate&)>& measure) -> Status {
    Played played{name, recorded, {}};
    for (int seed = first_seed; seed < first_seed + seeds; ++seed) {
      ASSIGN_OR_RETURN(Run one, play(space, measure, strategy, static_cast<uint64_t>(seed), trials));
      played.runs.push_back(std::move(one));
    }
    std::fprintf(stderr, "%s: %d runs of %s\n", name.c_str(), seeds, strategy.c_str());
    spaces.push_back(std::move(played));
    return Status::ok();
  };
  for (const std::string& file : files) {
    ASSIGN_OR_RETURN(const RecordedSpace space, read_recorded_space(file));
    RETURN_IF_ERROR(play_all(space.name, true, space.search_space(),
                             [&](const Candidate& c) { return space.measure(c); }));
  }
  if (!check_only) {
    for (uint64_t variant = 0; variant < 6; ++variant) {
      const MeasuredSpace space = rugged_space(variant);
      RETURN_IF_ERROR(play_all(space.name, false, space.search_space(),
                               [&](const Candidate& c) { return space.measure(c); }));
    }
  }
  std::vector<const Played*> all, recorded;
  for (const Played& p : spaces) {
    all.push_back(&p);
    if (p.recorded) recorded.push_back(&p);
  }
  if (recorded.empty()) recorded = all;
  std::vector<Judged> held_out_ones, all_ones;
  for (const Played* held_out : recorded) {
    std::vector<const Played*> others;
    for (const Played* p : all)
      if (p != held_out) others.push_back(p);
    std::printf("%s, %s\n", held_out->name.c_str(),
                check_only ? "with those coefficients" : "fitted on all others");
    held_out_ones.emplace_back(held_out, check_only ? fitted_stopping_coefficients() : fit(others));
    judge({held_out_ones.back()}, stop_below);
  }
  std::printf("all of these together, each as above\n");
  judge(held_out_ones, stop_below);
  if (check_only) return Status::ok();
  const StoppingCoefficients c = fit(all);
  std::printf("all spaces, fitted on all of them\n");
  for (const Played* p : all) all_ones.emplace_back(p, c);
  judge(all_ones, stop_below);
  print("chance", c.chance);
  print("gain", c.gain);
  return Status::ok();
}

}  // namespace
}  // namespace tuner::testing

int main(int argc, char** argv) {
  const tuner::Status status = tuner::testing::run(argc, argv);
  if (status) return 0;
  std::fprintf(stderr, "fit_stopping: %s\n", status.message().c_str());
  return 2;
}
