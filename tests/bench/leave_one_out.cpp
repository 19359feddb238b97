// leave_one_out: how good the answers are for shapes that were never tuned. For every tuned shape of a
// database: hide it, ask, and time what is answered, on this machine and in turn with
//   default   the default config
//   product   the tuned config of the shape with the nearest product of output sizes: what other tuners look
//   up tuned     the shape's own tuned config
// Percent are of the fastest of them all. See README.md beside this file.
//
//   leave_one_out --db FILE [--op conv2d] [--filter TEXT] [--rounds 15] [--others N] [--json FILE]
//   [--deadline S]
//
//   --filter  only workloads whose key contains this
//   --others  also times so many of the configs that could have been the answer
//
// Exit status: 0 all was timed; 1 a wrong answer or the deadline; 2 wrong use.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "compiler_core/codegen/compile.h"
#include "db/resolve/nearest.h"
#include "templates/space/project.h"
#include "tests/bench/cpu/bench_case.h"
#include "tests/bench/cpu/time_configs.h"

namespace tuner {
namespace {

using nlohmann::ordered_json;
using std::chrono::steady_clock;

constexpr uint64_t kSeed = 20261122;
constexpr double kNoise = 0.02;

struct Options {
  std::string db, op = "conv2d", filter, json;
  int rounds = 15, others = 0;
  double deadline_s = 3600;
};

// A way to answer for the hidden shape. Ways may agree on a config, which is then timed once.
struct Way {
  std::string name;
  size_t serving = 0;
  Config config;
  Prediction prediction;
  std::string from;  // the shape it was tuned for
  double ns = 0;
};

// The config of the shape whose product of output sizes is nearest to that of `workload`, as the tuners do
// that look so: the first that a template here can be applied with.
std::optional<Way> nearest_by_product(const Knowledge& knowledge, const Workload& workload,
                                      const std::vector<ServingTemplate>& serving) {
  const TaskShape shape = shape_of(workload);
  const int64_t wanted = output_elements(workload);
  std::vector<std::pair<int64_t, const TunedShape*>> order;
  for (const TunedShape& donor : knowledge.shapes) {
    const Result<Workload> there = workload_from_key(donor.workload_key);
    if (there && donor.shape.variant == shape.variant)
      order.emplace_back(std::llabs(output_elements(*there) - wanted), &donor);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [away, donor] : order) {
    const TopConfig& top = donor->tops.front();
    for (size_t i = 0; i < serving.size(); ++i) {
      const Result<Config> config = config_from_text(top.config);
      if (serving[i].schedule_template->name() != top.template_name || !config) continue;
      const std::optional<Config> here = project(*config, serving[i].instance->space());
      if (here) return Way{.name = "product", .serving = i, .config = *here, .from = donor->workload_key};
    }
  }
  return std::nullopt;
}

Result<std::vector<Way>> ways_of(const Store& store, const Options& options, const Knowledge& knowledge,
                                 const Workload& workload, const Target& target,
                                 const std::vector<ServingTemplate>& serving) {
  const std::vector<NearestCandidate> candidates = candidates_for(knowledge, workload, serving);
  if (candidates.empty()) return not_found("too few shapes like ", workload.key());
  const auto way = [&](std::string name, const NearestCandidate& c) {
    return Way{std::move(name), c.serving, c.config, c.prediction, c.from ? c.from->workload_key : ""};
  };
  std::vector<Way> ways = {way("answer", candidates[fastest_of(candidates)]), way("default", candidates[0])};
  if (std::optional<Way> product = nearest_by_product(knowledge, workload, serving))
    ways.push_back(*std::move(product));
  ASSIGN_OR_RETURN(const TunedConfig best, store.best(workload.key(), target.name()));
  for (size_t i = 0; i < serving.size(); ++i) {
    const Result<Config> config = config_from_text(best.config);
    if (serving[i].schedule_template->name() == best.template_name && config)
      ways.push_back({.name = "tuned", .serving = i, .config = *config});
  }
  const size_t step =
      std::max<size_t>(1, candidates.size() / static_cast<size_t>(std::max(options.others, 1)));
  for (size_t i = 1; options.others > 0 && i < candidates.size(); i += step)
    ways.push_back(way(str("other ", i), candidates[i]));
  return ways;
}

// Times the ways' configs in turn, each once; checks every answer.
Status time_ways(const Options& options, const Workload& workload, const Target& target,
                 const std::vector<ServingTemplate>& serving, std::vector<Way>& ways) {
  ASSIGN_OR_RETURN(const BenchCase bench_case, BenchCase::make(workload, kSeed));
  std::vector<ConfigToTime> timed;
  for (const Way& w : ways)
    timed.push_back({serving[w.serving].schedule_template, serving[w.serving].instance.get(), w.config});
  std::vector<ConfigToTime*> all;
  for (ConfigToTime& t : timed) all.push_back(&t);
  RETURN_IF_ERROR(time_configs(bench_case, target, options.rounds, all));
  for (size_t i = 0; i < ways.size(); ++i) ways[i].ns = timed[i].ns;
  return Status::ok();
}

struct Totals {
  int shapes = 0, behind_default = 0, inside = 0, nearest = 0;
  double answer = 0, standard = 0, product = 0, predicted_error = 0;
};

void count(const std::vector<Way>& ways, Totals& totals, ordered_json& line) {
  double fastest = std::numeric_limits<double>::infinity();
  std::map<std::string, double> fraction;
  for (const Way& w : ways) fastest = std::min(fastest, w.name.starts_with("other") ? fastest : w.ns);
  for (const Way& w : ways) {
    fraction[w.name] = fastest / w.ns;
    line["ways"].push_back({{"name", w.name},
                            {"fraction", fastest / w.ns},
                            {"ns", w.ns},
                            {"predicted", w.prediction.fraction},
                            {"low", w.prediction.low},
                            {"high", w.prediction.high},
                            {"score", w.prediction.score},
                            {"config", w.config.to_text()},
                            {"from", w.from}});
  }
  const Way& answer = ways[0];
  ++totals.shapes;
  totals.answer += fraction["answer"];
  totals.standard += fraction["default"];
  totals.product += fraction["product"];
  totals.nearest += !answer.from.empty();
  totals.behind_default += fraction["answer"] < (1 - kNoise) * fraction["default"];
  totals.inside +=
      fraction["answer"] >= answer.prediction.low && fraction["answer"] <= answer.prediction.high;
  totals.predicted_error += std::abs(fraction["answer"] - answer.prediction.fraction);
  std::printf("%5.1f %5.1f %5.1f %5.1f   %5.1f (%5.1f .. %5.1f)  %s\n", 100 * fraction["answer"],
              100 * fraction["default"], 100 * fraction["product"], 100 * fraction["tuned"],
              100 * answer.prediction.fraction, 100 * answer.prediction.low, 100 * answer.prediction.high,
              line["workload"].get<std::string>().c_str());
  std::fflush(stdout);
}

Status run(const Options& options) {
  const auto stop_at = steady_clock::now() + std::chrono::duration_cast<steady_clock::duration>(
                                                 std::chrono::duration<double>(options.deadline_s));
  ASSIGN_OR_RETURN(const std::unique_ptr<Store> store, Store::open(options.db, Store::Mode::kRead));
  ASSIGN_OR_RETURN(const std::vector<JobRow::Task> tasks, store->tasks());
  ordered_json document = ordered_json::array();
  Totals totals;
  std::printf("%% of the fastest:\nanswer default product tuned  predicted (80 %%)  workload\n");
  for (const JobRow::Task& task : tasks) {
    if (!task.workload_key.starts_with(str("v1 ", options.op, " ")) ||
        task.workload_key.find(options.filter) == std::string::npos)
      continue;
    if (steady_clock::now() > stop_at) return failed("--deadline: not every shape was timed");
    ASSIGN_OR_RETURN(const Workload workload, workload_from_key(task.workload_key));
    ASSIGN_OR_RETURN(const Target named, parse_target(task.target));
    const Target target = host_target(named.threads);
    if (target.name() != task.target)
      return invalid_argument(options.db, ": tuned for \"", task.target, "\", this machine is \"",
                              target.name(), "\"");
    const std::string hidden = key_without_epilogue(workload);
    ASSIGN_OR_RETURN(const Knowledge knowledge, learn(*store, options.op, target, [&](const Workload& w) {
                       return key_without_epilogue(w) != hidden;
                     }));
    ASSIGN_OR_RETURN(const std::vector<ServingTemplate> serving, serving_templates(workload, target, {}));
    Result<std::vector<Way>> ways = ways_of(*store, options, knowledge, workload, target, serving);
    if (!ways && ways.status().code() == StatusCode::kNotFound) continue;
    if (!ways) return ways.status();
    RETURN_IF_ERROR(
        time_ways(options, workload, target, serving, *ways).with_context(task.workload_key + ": "));
    ordered_json line{{"workload", task.workload_key}};
    count(*ways, totals, line);
    document.push_back(std::move(line));
    if (!options.json.empty()) std::ofstream(options.json) << document.dump(1) << "\n";
  }
  if (totals.shapes == 0) return not_found(options.db, ": no shape of ", options.op, " to hide");
  const double n = totals.shapes;
  std::printf(
      "%d shapes: answer %.1f %%, default %.1f %%, nearest by product %.1f %%; %d answers nearest, others "
      "the "
      "default\nslower than the default by more than %.0f %%: %d; inside the predicted interval (80 %%): "
      "%.0f %%; "
      "mean error of the prediction: %.1f points\n",
      totals.shapes, 100 * totals.answer / n, 100 * totals.standard / n, 100 * totals.product / n,
      totals.nearest, 100 * kNoise, totals.behind_default, 100 * totals.inside / n,
      100 * totals.predicted_error / n);
  return Status::ok();
}

}  // namespace
}  // namespace tuner

int main(int argc, char** argv) {
  tuner::Options options;
  CLI::App app{"How good the answers are for shapes that were never tuned: hides each, asks, and times."};
  app.add_option("--db", options.db, "database of tuned shapes")->required();
  app.add_option("--op", options.op, "operator");
  app.add_option("--filter", options.filter, "only workloads whose key contains this");
  app.add_option("--rounds", options.rounds, "samples of each")->check(CLI::Range(3, 10000));
  app.add_option("--others", options.others, "so many of the other candidates, too")
      ->check(CLI::Range(0, 1000));
  app.add_option("--json", options.json, "write everything, after each shape");
  app.add_option("--deadline", options.deadline_s, "seconds after which no shape is begun")
      ->check(CLI::Range(1.0, 1e6));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  const tuner::Status status = tuner::run(options);
  if (!status) std::fprintf(stderr, "leave_one_out: %s\n", status.message().c_str());
  return status ? 0 : status.code() == tuner::StatusCode::kInvalidArgument ? 2 : 1;
}
