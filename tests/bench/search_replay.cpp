// search_replay: scores settings of the search strategies on spaces whose every time is known, no device
// needed.
//
//   search_replay [--seeds N] [--first-seed N] [--trials N] [--batch N] [--warm] [--strategies a,b]
//                 [--only NAME] [--options "key=value ..."] [--bayesian "key=value ..."] [SPACE.csv[.gz]...]
//
// For the constants: `tuner simulate` plays the strategies as they are. Prints, for each space and strategy,
// best time of the space / best time found after 32, 64, 128, ... trials in percent: the mean over seeds, the
// worst run; median trials to 90, 95, 99 %; CPU milliseconds a trial. Without files: synthetic spaces.
// --only: of those, the ones with NAME in theirs. --warm: 200 rows of the other files are known.
#include <cstdio>
#include <deque>
#include <functional>
#include <map>
#include <sstream>

#include "tests/tuner/measured_space.h"
#include "tuner/search/bayesian.h"
#include "tuner/search/model_guided.h"
#include "tuner/search/recorded_space.h"
#include "tuner/search/simulation.h"

namespace tuner::testing {
namespace {

std::vector<std::string> split(const std::string& line, char at) {
  std::vector<std::string> fields;
  std::istringstream in(line);
  for (std::string field; std::getline(in, field, at);) fields.push_back(field);
  return fields;
}

// A space of either kind, as the strategies see it.
struct Played {
  std::string name;
  SearchSpace space;
  std::function<Observation(const Candidate&)> measure;
  double best_ns;
};

// How many trials failed, early and later in a run.
struct FailedTrials {
  static constexpr size_t kFirst = 64;
  size_t trials[2] = {}, failed[2] = {};
  void add(size_t trial, bool fails) {
    ++trials[trial <= kFirst ? 0 : 1];
    failed[trial <= kFirst ? 0 : 1] += fails ? 1 : 0;
  }
  bool any() const { return failed[0] + failed[1] > 0; }
  double percent(int part) const {
    return 100.0 * static_cast<double>(failed[part]) / static_cast<double>(std::max<size_t>(1, trials[part]));
  }
};

// "uncertainty=0.5 local_share=0.3": settings of the model-guided strategies to try out.
Status set_options(ModelGuidedOptions& o, const std::string& text) {
  std::istringstream in(text);
  for (std::string pair; in >> pair;) {
    const size_t equals = pair.find('=');
    const std::string key = pair.substr(0, equals);
    if (equals == std::string::npos) return invalid_argument("option ", pair, ": expected key=value");
    const double v = std::stod(pair.substr(equals + 1));
    if (key == "batch")
      o.batch = static_cast<size_t>(v);
    else if (key == "random_share")
      o.random_share = v;
    else if (key == "local_share")
      o.local_share = v;
    else if (key == "uncertainty")
      o.uncertainty = v;
    else if (key == "crossover")
      o.crossover = v;
    else if (key == "mutation")
      o.mutation = v;
    else if (key == "parents")
      o.parents = static_cast<size_t>(v);
    else if (key == "children")
      o.children = static_cast<size_t>(v);
    else if (key == "likeness")
      o.likeness = v;
    else if (key == "models")
      o.models = static_cast<int>(v);
    else if (key == "rank_whole")
      o.rank_whole = static_cast<size_t>(v);
    else if (key == "loss" && v >= 0 && v <= 2)
      o.xgboost.loss = static_cast<Loss>(static_cast<int>(v));  // 0 squared, 1 of logs, 2 pairs
    else if (key == "rounds")
      o.xgboost.rounds = static_cast<int>(v);
    else if (key == "max_depth")
      o.xgboost.max_depth = static_cast<int>(v);
    else if (key == "eta")
      o.xgboost.eta = static_cast<float>(v);
    else if (key == "subsample")
      o.xgboost.subsample = static_cast<float>(v);
    else if (key == "column_sample")
      o.xgboost.column_sample = static_cast<float>(v);
    else
      return invalid_argument("option ", key, ": not one of the model-guided options");
  }
  return Status::ok();
}

Status set_options(BayesianOptions& o, const std::string& text) {
  std::istringstream in(text);
  for (std::string pair; in >> pair;) {
    const size_t equals = pair.find('=');
    const std::string key = pair.substr(0, equals);
    if (equals == std::string::npos) return invalid_argument("option ", pair, ": expected key=value");
    const double v = std::stod(pair.substr(equals + 1));
    const std::map<std::string, std::function<void()>> known = {
        {"start", [&] { o.start = static_cast<size_t>(v); }},
        {"random_share", [&] { o.random_share = v; }},
        {"local_share", [&] { o.local_share = v; }},
        {"parents", [&] { o.parents = static_cast<size_t>(v); }},
        {"most_rows", [&] { o.most_rows = static_cast<size_t>(v); }},
        {"tune_rows", [&] { o.tune_rows = static_cast<size_t>(v); }},
        {"tune_evaluations", [&] { o.tune_evaluations = static_cast<int>(v); }},
        {"rank_whole", [&] { o.rank_whole = static_cast<size_t>(v); }},
        {"pool", [&] { o.pool = static_cast<size_t>(v); }},
        {"children", [&] { o.children = static_cast<size_t>(v); }},
        {"crossover", [&] { o.crossover = v; }},
        {"trees", [&] { o.trees = static_cast<int>(v); }},
        {"rounds", [&] { o.xgboost.rounds = static_cast<int>(v); }},
        {"max_depth", [&] { o.xgboost.max_depth = static_cast<int>(v); }},
        {"eta", [&] { o.xgboost.eta = static_cast<float>(v); }},
        {"niche_distance", [&] { o.niche_distance = static_cast<size_t>(v); }},
        {"tree_share", [&] { o.tree_share = v; }},
        {"caution", [&] { o.caution = v; }},
    };
    if (!known.contains(key)) return invalid_argument("option ", key, ": not one of the bayesian options");
    known.at(key)();
  }
  return Status::ok();
}

Status run(int argc, char** argv) {
  uint64_t seeds = 5, first_seed = 0;
  size_t batch = 8, trials = 256;
  std::vector<std::string> names = strategy_names();
  ModelGuidedOptions options;
  BayesianOptions bayesian;
  bool own_options = false, warm = false;
  std::string only;
  std::deque<RecordedSpace> recorded;
  std::deque<MeasuredSpace> synthetic;
  std::vector<Played> spaces;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const bool has_value = i + 1 < argc;
    if (arg == "--warm") {
      warm = true;
    } else if (arg == "--seeds" && has_value) {
      seeds = std::stoul(argv[++i]);
    } else if (arg == "--first-seed" && has_value) {
      first_seed = std::stoul(argv[++i]);
    } else if (arg == "--only" && has_value) {
      only = argv[++i];
    } else if (arg == "--batch" && has_value) {
      batch = std::stoul(argv[++i]);
    } else if (arg == "--trials" && has_value) {
      trials = std::stoul(argv[++i]);
    } else if (arg == "--strategies" && has_value) {
      names = split(argv[++i], ',');
    } else if (arg == "--options" && has_value) {
      RETURN_IF_ERROR(set_options(options, argv[++i]));
      own_options = true;
    } else if (arg == "--bayesian" && has_value) {
      RETURN_IF_ERROR(set_options(bayesian, argv[++i]));
    } else if (arg.starts_with("--")) {
      return invalid_argument(arg, ": unknown option, or its value is missing");
    } else {
      ASSIGN_OR_RETURN(RecordedSpace read, read_recorded_space(arg));
      const RecordedSpace& m = recorded.emplace_back(std::move(read));
      spaces.push_back(
          {m.name, m.search_space(), [&m](const Candidate& c) { return m.measure(c); }, m.best_ns()});
    }
  }
  if (spaces.empty()) synthetic = synthetic_spaces();
  std::erase_if(synthetic, [&](const MeasuredSpace& m) { return m.name.find(only) == std::string::npos; });
  for (const MeasuredSpace& m : synthetic)
    spaces.push_back(
        {m.name, m.search_space(), [&m](const Candidate& c) { return m.measure(c); }, m.best_ns()});
  if (spaces.empty()) return invalid_argument("--only ", only, ": no synthetic space has this in its name");
  for (const std::string& name : names) {
    SimulationSummary all;
    std::map<std::string, SimulationSummary> kinds;
    std::map<std::string, FailedTrials> failed;
    for (Played& m : spaces) {
      for (uint64_t seed = first_seed; seed < first_seed + seeds; ++seed) {
        if (warm) {
          m.space.priors.clear();
          for (const RecordedSpace& donor : recorded)
            if (donor.name != m.name) m.space.priors.push_back(donor.drawn_rows(200, seed));
        }
        std::unique_ptr<SearchStrategy> search;
        if (own_options && name.starts_with("xgb-")) {
          search = make_model_guided_search(name, m.space, seed,
                                            name == "xgb-genetic" ? walk_genetic : walk_annealing, options);
        } else if (name == "bayesian") {
          search = make_bayesian_search(m.space, seed, bayesian);
        } else {
          ASSIGN_OR_RETURN(search, make_strategy(name, m.space, seed));
        }
        size_t trial = 0;
        const SimulationRun played = simulate(
            *search,
            [&](const Candidate& c) {
              const Observation found = m.measure(c);
              failed[m.name].add(++trial, !found.ok);
              return found;
            },
            m.best_ns, trials, batch);
        kinds[m.name].add(played);
        all.add(played);
      }
    }
    if (spaces.size() > 1) kinds["~all"] = all;
    for (const auto& [kind, summary] : kinds) {
      std::printf("%-26s %-14s", kind.c_str(), name.c_str());
      for (size_t mark = 32; mark <= trials; mark *= 2) std::printf(" %5.1f", 100 * summary.mean_share(mark));
      std::printf(" |");
      for (size_t mark = 32; mark <= trials; mark *= 2)
        std::printf(" %5.1f", 100 * summary.worst_share(mark));
      std::printf(" | %4.0f %4.0f %4.0f | %.2f", summary.median_trials_to(0.9),
                  summary.median_trials_to(0.95), summary.median_trials_to(0.99),
                  summary.think_ms_per_trial());
      if (const FailedTrials& f = failed[kind]; f.any())
        std::printf(" | failed %.0f %% of the first %zu, %.0f %% of the others", f.percent(0),
                    FailedTrials::kFirst, f.percent(1));
      std::printf("\n");
    }
    std::fflush(stdout);
  }
  return Status::ok();
}

}  // namespace
}  // namespace tuner::testing

int main(int argc, char** argv) {
  const tuner::Status status = tuner::testing::run(argc, argv);
  if (status.is_ok()) return 0;
  std::fprintf(stderr, "%s\n", status.message().c_str());
  return 2;
}
