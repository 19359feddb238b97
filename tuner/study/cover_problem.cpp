#include "tuner/study/cover_problem.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "compiler_core/base/statistics.h"
#include "templates/schedule_template.h"
#include "templates/space/knob.h"
#include "templates/workload/workload.h"

namespace tuner {
namespace {

// Scores are filled in place by place; rows need ascending columns.
class Builder {
 public:
  int config(CoverConfig config) {
    const auto [at, fresh] = row_of_.emplace(std::move(config), static_cast<int>(problem.configs.size()));
    if (fresh) {
      problem.configs.push_back(at->first);
      problem.scores.rows.emplace_back();
    }
    return at->second;
  }
  // `times`: config and ns; the best of them is the place's.
  void place(CoverPlace place, const std::vector<std::pair<int, double>>& times) {
    place.best_ns = std::min_element(times.begin(), times.end(), [](const auto& a, const auto& b) {
                      return a.second < b.second;
                    })->second;
    const int column = problem.scores.columns++;
    for (const auto& [row, ns] : times)
      problem.scores.rows[static_cast<size_t>(row)].push_back({column, place.best_ns / ns});
    problem.places.push_back(std::move(place));
  }
  CoverProblem problem;

 private:
  std::map<CoverConfig, int> row_of_;
};

// Values by name, labels where a knob has them: two files may number the same labels differently.
std::string text_of(const std::vector<KnobInfo>& knobs, const Config& config) {
  std::map<std::string, std::string> words;
  for (const KnobInfo& knob : knobs) {
    const int64_t value = config.at(knob.name);
    words[knob.name] =
        knob.kind == KnobKind::kCategorical ? knob.labels[static_cast<size_t>(value)] : std::to_string(value);
  }
  std::string text;
  for (const auto& [name, word] : words) text += str(text.empty() ? "" : " ", name, "=", word);
  return text;
}

std::set<std::string> knob_names(const RecordedSpace& space) {
  std::set<std::string> names;
  for (const RecordedSpace::Part& part : space.parts)
    for (const KnobInfo& knob : part.space.knobs()) names.insert(part.template_name + "/" + knob.name);
  return names;
}

// "convolution_A4000" of "convolution_A4000.csv.gz".
std::string stem(const std::string& name) {
  std::string s = name;
  for (const char* ending : {".gz", ".csv"})
    if (s.ends_with(ending)) s.resize(s.size() - std::string(ending).size());
  return s;
}

// What is known of one config at one place.
struct Known {
  std::vector<double> times_ns;  // medians of its records that ran to their end
  bool failed = false;           // a record that is no time, or was cut short
};

struct PlaceKey {
  std::string op, workload_key, target, hardware;
  auto operator<=>(const PlaceKey&) const = default;
};

// "conv2d" of "v1 conv2d n=1 ...".
std::string op_of_key(std::string_view key) {
  const size_t from = std::min(key.find(' '), key.size() - 1) + 1;
  return std::string(key.substr(from, key.find(' ', from) - from));
}

bool is_wanted(const CoverScope& scope, const TrialWithRecord& t,
               const std::map<std::string, std::vector<std::string>>& allowed) {
  if (!scope.targets.empty() &&
      std::find(scope.targets.begin(), scope.targets.end(), t.task.target) == scope.targets.end())
    return false;
  if (scope.tasks.empty()) return true;
  const auto at = allowed.find(t.task.workload_key);
  if (at == allowed.end()) return false;
  return at->second.empty() ||
         std::find(at->second.begin(), at->second.end(), t.trial.template_name) != at->second.end();
}

// Set and tree; nothing that needs another solution.
CoverSolution solve_once(const CoverProblem& problem, const CoverWish& wish, int64_t steps) {
  CoverSolution s;
  if (wish.level) {
    SmallestCover smallest = smallest_cover(problem.scores, *wish.level, wish.most, {.steps = steps});
    s.set = std::move(smallest.set);
    s.at_least = smallest.at_least;
  } else {
    s.set = best_cover(problem.scores, wish.most, {.steps = steps});
  }
  std::vector<CoverFeatures> features;
  std::vector<std::vector<double>> scores;
  for (size_t c = 0; c < problem.places.size(); ++c) {
    features.push_back(problem.places[c].features);
    std::vector<double>& row = scores.emplace_back();
    for (const int r : s.set.rows) row.push_back(problem.scores.score(r, static_cast<int>(c)));
  }
  s.tree = grow_cover_tree(features, scores, s.set.worst);
  s.worst = 1;
  for (size_t c = 0; c < problem.places.size(); ++c) {
    s.use.push_back(s.tree.choose(features[c]));
    s.score.push_back(scores[c][static_cast<size_t>(s.use.back())]);
    s.worst = std::min(s.worst, s.score.back());
    s.mean += s.score.back() / static_cast<double>(problem.places.size());
    for (size_t i = 0; i < s.set.rows.size(); ++i)
      if (scores[c][i] == 0 && !problem.failed.contains({s.set.rows[i], static_cast<int>(c)}))
        ++s.unknown_pairs;
  }
  return s;
}

// The problem without one of its places.
CoverProblem without(const CoverProblem& problem, int hidden) {
  CoverProblem rest{.op = problem.op, .configs = {}, .places = problem.places, .scores = {}};
  rest.places.erase(rest.places.begin() + hidden);
  rest.scores.columns = problem.scores.columns - 1;
  for (const auto& row : problem.scores.rows) {
    auto& kept = rest.scores.rows.emplace_back();
    for (const ScoreTable::Entry& e : row)
      if (e.column != hidden) kept.push_back({e.column - (e.column > hidden ? 1 : 0), e.score});
  }
  return rest;
}

}  // namespace

Result<CoverProblem> problem_of_spaces(const std::vector<RecordedSpace>& spaces) {
  if (spaces.size() < 2)
    return invalid_argument(
        "--spaces: found one recorded space, expected two or more: one place needs no cover");
  Builder builder;
  builder.problem.op = "recorded";
  const std::set<std::string> knobs = knob_names(spaces.front());
  for (size_t s = 0; s < spaces.size(); ++s) {
    const RecordedSpace& space = spaces[s];
    if (knob_names(space) != knobs)
      return invalid_argument("--spaces: the knobs of ", space.name, " are not those of ", spaces[0].name,
                              "; expected the same kernel on other devices or shapes");
    for (size_t before = 0; before < s; ++before)
      if (spaces[before].crc == space.crc)
        return invalid_argument("--spaces: ", space.name, " is the same file as ", spaces[before].name,
                                "; expected each once");
    std::vector<std::pair<int, double>> times;
    const auto column = static_cast<int>(s);
    for (const RecordedSpace::Part& part : space.parts)
      for (uint64_t i = 0; i < part.space.size(); ++i) {
        const int row =
            builder.config({part.template_name, 0, text_of(part.space.knobs(), part.space.at(i))});
        if (std::isfinite(part.time_ns[i]))
          times.emplace_back(row, part.time_ns[i]);
        else
          builder.problem.failed.emplace(row, column);
      }
    if (times.empty())
      return invalid_argument(space.name, ": every config fails; expected at least one with status ok");
    builder.place(
        {.name = stem(space.name), .features = {.numbers = {}, .words = {{"space", stem(space.name)}}}},
        times);
  }
  return std::move(builder.problem);
}

Result<CoverProblems> problems_of_store(const Store& store, const CoverScope& scope) {
  std::map<std::string, std::vector<std::string>> allowed;  // templates by workload; empty: any
  for (const JobRow::Task& task : scope.tasks) allowed[task.workload_key] = templates_of(task.algorithms);
  std::map<PlaceKey, std::map<CoverConfig, Known>> known;
  std::map<std::string, int64_t> outdated;
  ASSIGN_OR_RETURN(const int64_t until, store.last_record_id());
  RETURN_IF_ERROR(store.for_each_record("", [&](const TrialWithRecord& t) {
    if (!is_wanted(scope, t, allowed) || t.task.constants != Constants::kWarm) return true;
    const std::string op = op_of_key(t.task.workload_key);
    if (!scope.op.empty() && op != scope.op) return true;
    const AnyTemplate* current = find_template(t.trial.template_name);
    if (current == nullptr || current->version() != t.trial.template_version) {
      ++outdated[op];
      return true;
    }
    const MeasureRecord& record = *t.record;
    if (record.outcome == Outcome::kDeviceLost) return true;  // says nothing about the config
    Known& k = known[{op, t.task.workload_key, t.task.target, record.environment.hardware}]
                    [{t.trial.template_name, t.trial.template_version, t.trial.config}];
    if (record.outcome == Outcome::kOk && !record.cut)
      k.times_ns.push_back(record_time_ns(record));
    else
      k.failed = true;
    return true;
  }));

  std::map<std::string, Builder> builders;
  std::set<std::pair<std::string, std::string>> timed;
  for (const auto& [key, configs] : known) {
    Builder& builder = builders[key.op];
    std::vector<std::pair<int, double>> times;
    std::vector<int> failed;
    for (const auto& [config, k] : configs) {
      const int row = builder.config(config);
      if (k.times_ns.empty())
        failed.push_back(row);
      else
        times.emplace_back(row, median(k.times_ns));
    }
    if (times.empty()) continue;
    for (const int row : failed) builder.problem.failed.emplace(row, builder.problem.scores.columns);
    CoverPlace place{.name = str(key.workload_key, " on ", key.target),
                     .workload_key = key.workload_key,
                     .target = key.target,
                     .features = features_of_key(key.workload_key)};
    place.features.words["target"] = key.target;
    builder.place(std::move(place), times);
    timed.emplace(key.workload_key, key.target);
  }
  CoverProblems out;
  for (auto& [op, builder] : builders) {
    builder.problem.op = op;
    builder.problem.outdated = outdated[op];
    builder.problem.until_record_id = until;
    if (!builder.problem.places.empty()) out.problems.push_back(std::move(builder.problem));
  }
  for (const JobRow::Task& task : scope.tasks) {
    const auto on = [&](const std::string& target) {
      const auto at = timed.lower_bound({task.workload_key, target});
      return at != timed.end() && at->first == task.workload_key && (target.empty() || at->second == target);
    };
    if (scope.targets.empty() && !on("")) out.unmeasured.push_back(task.workload_key);
    for (const std::string& target : scope.targets)
      if (!on(target)) out.unmeasured.push_back(str(task.workload_key, " on ", target));
  }
  return out;
}

CoverSolution solve(const CoverProblem& problem, const CoverWish& wish) {
  constexpr int64_t kSteps = 400'000'000, kStepsLeftOut = 20'000'000;
  constexpr size_t kMostLeftOut = 100;
  CoverSolution s = solve_once(problem, wish, kSteps);
  for (int k = 1; k < static_cast<int>(s.set.rows.size()); ++k)
    s.worst_of_fewer.push_back(best_cover(problem.scores, k, {.steps = kSteps / 4}).worst);
  const size_t places = problem.places.size();
  if (places < 3 || places > kMostLeftOut) return s;
  s.left_out = {.columns = static_cast<int>(places), .known = 0, .worst = 1, .mean = 0};
  double sum = 0;
  for (size_t c = 0; c < places; ++c) {
    const auto column = static_cast<int>(c);
    const CoverSolution hidden = solve_once(without(problem, column), wish, kStepsLeftOut);
    const int row = hidden.set.rows[static_cast<size_t>(hidden.tree.choose(problem.places[c].features))];
    const double score = problem.scores.score(row, column);
    if (score == 0 && !problem.failed.contains({row, column})) continue;  // never measured there
    ++s.left_out.known;
    s.left_out.worst = std::min(s.left_out.worst, score);
    sum += score;
  }
  if (s.left_out.known == 0)
    s.left_out.worst = 0;
  else
    s.left_out.mean = sum / s.left_out.known;
  return s;
}

std::vector<Cover> covers_to_store(const CoverProblem& problem, const CoverSolution& solution) {
  std::map<std::string, Cover> covers;
  for (size_t c = 0; c < problem.places.size(); ++c) {
    const auto [at, fresh] = covers.emplace(problem.places[c].target, Cover{.op = problem.op});
    Cover& cover = at->second;
    if (fresh) {
      cover.target = at->first;
      for (const int r : solution.set.rows) cover.configs.push_back(problem.configs[static_cast<size_t>(r)]);
      cover.tree = solution.tree.given("target", cover.target);
      cover.worst = 1;
      cover.left_out = solution.left_out;
    }
    ++cover.columns;
    cover.worst = std::min(cover.worst, solution.score[c]);
    cover.mean += solution.score[c];
  }
  std::vector<Cover> out;
  for (auto& [target, cover] : covers) {
    cover.mean = std::min(1.0, cover.mean / cover.columns);  // a sum of ones may round up
    out.push_back(std::move(cover));
  }
  return out;
}

Result<std::vector<std::string>> store_covers(Store& store, const CoverProblem& problem,
                                              const CoverSolution& solution) {
  std::vector<std::string> stored;
  for (const Cover& cover : covers_to_store(problem, solution)) {
    LearnedRow row{.kind = "cover",
                   .op = cover.op,
                   .target = cover.target,
                   .until_record_id = problem.until_record_id,
                   .document = cover_to_json(cover)};
    RETURN_IF_ERROR(store.add_learned(row));
    stored.push_back(str(cover.op, " on ", cover.target));
  }
  return stored;
}

}  // namespace tuner
