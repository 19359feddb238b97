// search_replay: scores settings of the search strategies on spaces whose every time is known, no device
// needed.
//
//   search_replay [--seeds N] [--first-seed N] [--trials N] [--batch N] [--warm] [--strategies a,b]
//                 [--donor SPACE.csv[.gz]]... [--only NAME] [--options "key=value ..."]
//                 [--bayesian "key=value ..."] [SPACE.csv[.gz]...]
//
// For the constants: `tuner study simulate` plays the strategies as they are. Prints, for each space and
// strategy, best time of the space / best time found after 32, 64, 128, ... trials in percent: the mean over
// seeds, the worst run; median trials to 90, 95, 99 %; CPU milliseconds a trial. Without files: synthetic
// spaces. --only: of those, the ones with NAME in theirs. --warm: 200 rows of each other file are known, or
// of each other synthetic space of the same kind. --donor: 200 rows of this file are known, which is not
// played.
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
    else if (key == "start")
      o.start = static_cast<size_t>(v);
    else if (key == "niche_distance")
      o.niche_distance = static_cast<size_t>(v);
    else if (key == "least_deviation")
      o.least_deviation = v;
    else if (key == "caution")
      o.caution = v;
    else if (key == "divisibility")
      o.divisibility = v != 0;
    else if (key == "in_turn")
      o.in_turn = v != 0;
    else if (key == "expected_improvement")
      o.expected_improvement = v != 0;
    else if (key == "ranked")
      o.ranked = static_cast<size_t>(v);
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
        {"anywhere", [&] { o.drawing.anywhere = static_cast<size_t>(v); }},
        {"near", [&] { o.drawing.near = static_cast<size_t>(v); }},
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

struct Settings {
  uint64_t seeds = 5, first_seed = 0;
  size_t batch = 8, trials = 256;
  std::vector<std::string> names = strategy_names();
  ModelGuidedOptions options;
  BayesianOptions bayesian;
  bool own_options = false, warm = false;
  std::string only;
  std::vector<std::string> files, donors;
};

Result<Settings> settings_from(int argc, char** argv) {
  Settings s;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const bool has_value = i + 1 < argc;
    if (arg == "--warm") {
      s.warm = true;
    } else if (arg == "--seeds" && has_value) {
      s.seeds = std::stoul(argv[++i]);
    } else if (arg == "--first-seed" && has_value) {
      s.first_seed = std::stoul(argv[++i]);
    } else if (arg == "--only" && has_value) {
      s.only = argv[++i];
    } else if (arg == "--batch" && has_value) {
      s.batch = std::stoul(argv[++i]);
    } else if (arg == "--trials" && has_value) {
      s.trials = std::stoul(argv[++i]);
    } else if (arg == "--strategies" && has_value) {
      s.names = split(argv[++i], ',');
    } else if (arg == "--options" && has_value) {
      RETURN_IF_ERROR(set_options(s.options, argv[++i]));
      s.own_options = true;
    } else if (arg == "--bayesian" && has_value) {
      RETURN_IF_ERROR(set_options(s.bayesian, argv[++i]));
    } else if (arg == "--donor" && has_value) {
      s.donors.emplace_back(argv[++i]);
    } else if (arg.starts_with("--")) {
      return invalid_argument(arg, ": unknown option, or its value is missing");
    } else {
      s.files.push_back(arg);
    }
  }
  return s;
}

// A synthetic donor: `rows` random configs of another variant of a kind.
PriorTask drawn_rows(const MeasuredSpace& donor, const std::string& template_name, size_t rows,
                     uint64_t seed) {
  PriorTask prior{.source = donor.name, .rows = {}};
  std::mt19937_64 rng(seed);
  for (size_t i = 0; i < rows; ++i) {
    const Candidate c{0, donor.space.sample(rng)};
    const Observation found = donor.measure(c);
    prior.rows.push_back({template_name, donor.space.at(c.config), found.ok, found.time_ns});
  }
  return prior;
}

constexpr size_t kDonorRows = 200;

// The spaces that are played, and what lends them rows.
class Playground {
 public:
  Status read(const Settings& s) {
    for (const std::string& file : s.files) {
      ASSIGN_OR_RETURN(RecordedSpace read, read_recorded_space(file));
      add(recorded_.emplace_back(std::move(read)));
    }
    for (const std::string& file : s.donors) {
      ASSIGN_OR_RETURN(RecordedSpace read, read_recorded_space(file));
      donors_.push_back(std::move(read));
    }
    if (!s.files.empty()) return Status::ok();
    synthetic_ = synthetic_spaces();
    for (const MeasuredSpace& m : synthetic_)
      if (m.name.find(s.only) != std::string::npos) add(m);
    if (played_.empty())
      return invalid_argument("--only ", s.only, ": no synthetic space has this in its name");
    return Status::ok();
  }
  std::vector<Played>& played() { return played_; }

  // The rows that are known before `m` is searched: of the donors, else of every other file, or of the other
  // synthetic spaces of its kind.
  std::vector<PriorTask> priors_of(const Played& m, uint64_t seed) const {
    std::vector<PriorTask> priors;
    for (const RecordedSpace& donor : donors_) priors.push_back(donor.drawn_rows(kDonorRows, seed));
    if (!donors_.empty()) return priors;
    for (const RecordedSpace& donor : recorded_)
      if (donor.name != m.name) priors.push_back(donor.drawn_rows(kDonorRows, seed));
    for (const MeasuredSpace& donor : synthetic_)
      if (donor.name != m.name && kind(donor.name) == kind(m.name))
        priors.push_back(drawn_rows(donor, m.name, kDonorRows, seed));
    return priors;
  }

 private:
  static std::string kind(const std::string& name) { return name.substr(0, name.size() - 1); }
  template <class Space>
  void add(const Space& m) {
    played_.push_back(
        {m.name, m.search_space(), [&m](const Candidate& c) { return m.measure(c); }, m.best_ns()});
  }

  std::deque<RecordedSpace> recorded_, donors_;
  std::deque<MeasuredSpace> synthetic_;
  std::vector<Played> played_;
};

Result<std::unique_ptr<SearchStrategy>> make(const std::string& name, const SearchSpace& space, uint64_t seed,
                                             const Settings& s) {
  if (s.own_options && name.starts_with("xgb-"))
    return make_model_guided_search(name, space, seed, name == "xgb-genetic" ? walk_genetic : walk_annealing,
                                    s.options);
  if (name == "bayesian") return make_bayesian_search(space, seed, s.bayesian);
  return make_strategy(name, space, seed);
}

void print(const std::string& kind, const std::string& name, const SimulationSummary& summary, size_t trials,
           const FailedTrials& failed) {
  std::printf("%-26s %-14s", kind.c_str(), name.c_str());
  for (size_t mark = 32; mark <= trials; mark *= 2) std::printf(" %5.1f", 100 * summary.mean_share(mark));
  std::printf(" |");
  for (size_t mark = 32; mark <= trials; mark *= 2) std::printf(" %5.1f", 100 * summary.worst_share(mark));
  std::printf(" | %4.0f %4.0f %4.0f | %.2f", summary.median_trials_to(0.9), summary.median_trials_to(0.95),
              summary.median_trials_to(0.99), summary.think_ms_per_trial());
  if (failed.any())
    std::printf(" | failed %.0f %% of the first %zu, %.0f %% of the others", failed.percent(0),
                FailedTrials::kFirst, failed.percent(1));
  std::printf("\n");
}

Status run(int argc, char** argv) {
  ASSIGN_OR_RETURN(const Settings s, settings_from(argc, argv));
  Playground ground;
  RETURN_IF_ERROR(ground.read(s));
  for (const std::string& name : s.names) {
    SimulationSummary all;
    std::map<std::string, SimulationSummary> kinds;
    std::map<std::string, FailedTrials> failed;
    for (Played& m : ground.played()) {
      for (uint64_t seed = s.first_seed; seed < s.first_seed + s.seeds; ++seed) {
        if (s.warm || !s.donors.empty()) m.space.priors = ground.priors_of(m, seed);
        ASSIGN_OR_RETURN(const std::unique_ptr<SearchStrategy> search, make(name, m.space, seed, s));
        size_t trial = 0;
        const auto measure = [&](const Candidate& c) {
          const Observation found = m.measure(c);
          failed[m.name].add(++trial, !found.ok);
          return found;
        };
        const SimulationRun played = simulate(*search, measure, m.best_ns, s.trials, s.batch);
        kinds[m.name].add(played);
        all.add(played);
      }
    }
    if (kinds.size() > 1) kinds["~all"] = all;
    for (const auto& [kind, summary] : kinds) print(kind, name, summary, s.trials, failed[kind]);
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
