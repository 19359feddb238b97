// fit_defaults: makes the table that default configs are fitted from, and says how good they are.
//
//   fit_defaults table RESULTS.json...   the fastest config of every CPU shape in summaries of bench_cpu
//                                        (results/), the newest run of a shape on a target counts; prints
//                                        templates/fitted_defaults/measured_shapes.inc
//   fit_defaults judge --db FILE [--hide] [--donors] [--filter TEXT] [--rounds 15] [--json FILE]
//                                        for every task of a database tuned on this machine, in turn: the
//                                        config that the templates alone would try first, the default, and
//                                        the tuned one
//   --hide    the default is fitted without the shape itself: what it would be for a shape nobody measured
//   --donors  also times each config that could have been the default
//   --table   a table to fit by, in place of the program's own
//
// Exit status: 0 done; 1 a wrong answer or a task that cannot be built; 2 wrong use.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "compiler_core/codegen/compile.h"
#include "db/resolve/nearest.h"
#include "templates/fitted_defaults/fitted_defaults.h"
#include "templates/registry/registry.h"
#include "templates/space/project.h"
#include "tests/bench/cpu/time_configs.h"

namespace tuner {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr uint64_t kSeed = 20261130;
// Shapes of these sets judge the defaults, so they are not in the table.
constexpr std::string_view kUnseen = "unseen";  // what their names begin with

// --- table -----------------------------------------------------------------------------------------------

struct NewestShape {
  std::string date;
  MeasuredShape shape;
};
// In the order of the text: target, variant, extents.
using Place = std::tuple<std::string, std::string, std::vector<int64_t>>;

// Makes the config one of today's space of its template: knobs that came later are off, and what is no longer
// valid moves to the nearest that is.
Status as_of_today(const Workload& workload, const Target& target, MeasuredShape& shape) {
  const AnyTemplate* t = find_template(shape.template_name);
  if (t == nullptr) return not_found("no template is called ", shape.template_name);
  const Support support = t->supports(workload, target);
  if (!support.yes) return not_found(shape.template_name, " declines it now: ", support.reason);
  ASSIGN_OR_RETURN(const std::unique_ptr<TemplateInstance> instance, t->apply(workload, target));
  std::map<std::string, int64_t> values = shape.config.values();
  for (const KnobInfo& knob : instance->space().knobs()) {
    const bool can_be_off = std::ranges::find(knob.candidates, 0) != knob.candidates.end();
    values.try_emplace(knob.name, can_be_off ? 0 : knob.first);
  }
  const std::optional<Config> today = project(Config(std::move(values)), instance->space());
  if (!today) return not_found(shape.template_name, " has no longer the knobs of ", shape.config.to_text());
  shape.config = *today;
  return Status::ok();
}

Status add_shape(const json& entry, const std::string& date, const std::string& target_name,
                 std::map<Place, NewestShape>& table) {
  if (!entry.contains("config") || entry.at("set").get<std::string>().starts_with(kUnseen))
    return Status::ok();
  ASSIGN_OR_RETURN(const Workload workload, workload_from_key(entry.at("workload").get<std::string>()));
  ASSIGN_OR_RETURN(const Target target, parse_target(target_name));
  const TaskShape task = workload.shape();
  const std::string text = entry.at("config").get<std::string>();
  const size_t blank = std::min(text.find(' '), text.size());
  NewestShape next{.date = date};
  next.shape = {.target = target.name(), .variant = task.variant, .template_name = text.substr(0, blank)};
  for (const auto& [name, extent] : task.dimensions) next.shape.extents.push_back(extent);
  ASSIGN_OR_RETURN(next.shape.config, config_from_text(blank == text.size() ? "" : text.substr(blank + 1)));
  if (const Status valid = as_of_today(workload, target, next.shape); !valid) {
    std::fprintf(stderr, "left out: %s: %s\n", workload.key().c_str(), valid.message().c_str());
    return Status::ok();
  }
  NewestShape& known = table[{next.shape.target, next.shape.variant, next.shape.extents}];
  if (known.date <= next.date) known = std::move(next);
  return Status::ok();
}

Status print_table(const std::vector<std::string>& files) {
  std::map<Place, NewestShape> table;
  for (const std::string& file : files) {
    const json document = json::parse(std::ifstream(file), nullptr, /*allow_exceptions=*/false);
    if (document.is_discarded()) return invalid_argument(file, ": expected JSON");
    if (!document.is_object() || !document.contains("runs")) continue;  // an input of another program
    for (const json& run : document.at("runs")) {
      if (run.value("bench", "") != "bench_cpu" || !run.contains("shapes")) continue;
      for (const json& entry : run.at("shapes"))
        RETURN_IF_ERROR(add_shape(entry, run.at("date"), run.at("target"), table).with_context(file + ": "));
    }
  }
  std::vector<MeasuredShape> shapes;
  shapes.reserve(table.size());
  for (auto& [place, newest] : table) shapes.push_back(std::move(newest.shape));
  std::printf("// Written by `fit_defaults table tests/bench/results/*.json`.\nR\"(%s)\"\n",
              measured_shapes_to_text(shapes).c_str());
  return Status::ok();
}

// --- judge -----------------------------------------------------------------------------------------------

struct JudgeOptions {
  std::string db, filter, json, table;
  int rounds = 15;
  bool hide = false, donors = false;
};

struct Judged {
  ConfigToTime first, standard, tuned;
  std::vector<FittedConfig> fitted;
  std::vector<ConfigToTime> donors;
};

ConfigToTime config_of(const ServingTemplate& serving, Config config) {
  return {serving.schedule_template, serving.instance.get(), std::move(config)};
}

// The template that would be first if nothing were fitted.
const ServingTemplate& unfitted_first(const std::vector<ServingTemplate>& serving, const Workload& workload,
                                      const Target& target) {
  const AnyTemplate* const first = templates_in_order(workload, target).value().front();
  return *std::ranges::find(serving, first, &ServingTemplate::schedule_template);
}

std::vector<DefaultDonor> donors_of(const JudgeOptions& options, const std::vector<MeasuredShape>& table,
                                    const Workload& workload, const Target& target) {
  std::vector<DefaultDonor> donors = default_donors(table, workload, target);
  const TaskShape shape = workload.shape();
  if (options.hide)
    std::erase_if(donors, [&](const DefaultDonor& d) {
      return std::ranges::equal(d.shape->extents, shape.dimensions, {}, {},
                                [](const auto& d) { return d.second; });
    });
  return donors;
}

Result<Judged> configs_of(const JudgeOptions& options, const std::vector<MeasuredShape>& table,
                          const Workload& workload, const Target& target,
                          const std::vector<ServingTemplate>& serving, const TunedConfig& tuned) {
  Judged judged;
  const ServingTemplate& first = unfitted_first(serving, workload, target);
  judged.first = config_of(first, first.instance->space().at(first.instance->space().first_index()));
  judged.standard = judged.first;
  const std::vector<DefaultDonor> donors = donors_of(options, table, workload, target);
  std::vector<std::string_view> names;
  for (const ServingTemplate& s : serving) names.push_back(s.schedule_template->name());
  const auto named = [&](std::string_view name) {
    return std::ranges::find(serving, name,
                             [](const ServingTemplate& s) { return s.schedule_template->name(); });
  };
  if (std::ranges::any_of(
          donors, [&](const DefaultDonor& d) { return named(d.shape->template_name) != serving.end(); })) {
    const ServingTemplate& chosen = serving[fitted_first(donors, names)];
    const std::vector<FittedConfig> fitted =
        fitted_configs(donors, chosen.schedule_template->name(), chosen.instance->space());
    if (!fitted.empty()) judged.standard = config_of(chosen, fitted.front().config);
  }
  if (options.donors)
    for (const ServingTemplate& s : serving)
      for (FittedConfig& f : fitted_configs(donors, s.schedule_template->name(), s.instance->space())) {
        judged.donors.push_back(config_of(s, f.config));
        judged.fitted.push_back(std::move(f));
      }
  const auto of_tuned = named(tuned.template_name);
  if (of_tuned == serving.end()) return not_found("no template here is called ", tuned.template_name);
  ASSIGN_OR_RETURN(Config config, config_from_text(tuned.config));
  judged.tuned = config_of(*of_tuned, std::move(config));
  return judged;
}

ordered_json to_json(const Judged& judged) {
  const auto one = [](const ConfigToTime& c) {
    return ordered_json{
        {"ns", c.ns}, {"template", c.schedule_template->name()}, {"config", c.config.to_text()}};
  };
  ordered_json out{
      {"first", one(judged.first)}, {"default", one(judged.standard)}, {"tuned", one(judged.tuned)}};
  for (size_t i = 0; i < judged.donors.size(); ++i) {
    const FittedConfig& f = judged.fitted[i];
    ordered_json donor = one(judged.donors[i]);
    donor["distance"] = f.distance;
    donor["moved"] = f.moved;
    donor["waste"] = f.waste;
    donor["apart"] = f.apart;
    donor["extents"] = f.from->extents;
    out["donors"].push_back(std::move(donor));
  }
  return out;
}

// Sums of log(time / tuned time), and the worst.
struct Means {
  int shapes = 0;
  double first = 0, standard = 0, worst = 0;
};

Status judge(const JudgeOptions& options) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Store> store, Store::open(options.db, Store::Mode::kRead));
  ASSIGN_OR_RETURN(const std::vector<JobRow::Task> tasks, store->tasks());
  std::vector<MeasuredShape> table = measured_shapes();
  if (!options.table.empty()) {
    std::ifstream file(options.table);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    ASSIGN_OR_RETURN(table, measured_shapes_from_text(text));
  }
  ordered_json document = ordered_json::array();
  Means means;
  std::printf("%% of the tuned speed:\nfirst default  workload\n");
  for (const JobRow::Task& task : tasks) {
    if (task.workload_key.find(options.filter) == std::string::npos) continue;
    ASSIGN_OR_RETURN(const Workload workload, workload_from_key(task.workload_key));
    ASSIGN_OR_RETURN(const Target named, parse_target(task.target));
    const Target target = host_target(named.threads);
    if (target.name() != task.target)
      return invalid_argument(options.db, ": tuned for \"", task.target, "\", this machine is \"",
                              target.name(), "\"");
    ASSIGN_OR_RETURN(const std::vector<ServingTemplate> serving, serving_templates(workload, target, {}));
    const Result<TunedConfig> tuned = store->best(task.workload_key, task.target);
    if (!tuned && tuned.status().code() == StatusCode::kNotFound) continue;  // a job that was ended early
    if (!tuned) return tuned.status();
    ASSIGN_OR_RETURN(Judged judged, configs_of(options, table, workload, target, serving, *tuned));
    ASSIGN_OR_RETURN(const BenchCase bench_case, BenchCase::make(workload, kSeed));
    std::vector<ConfigToTime*> all = {&judged.first, &judged.standard, &judged.tuned};
    for (ConfigToTime& donor : judged.donors) all.push_back(&donor);
    RETURN_IF_ERROR(
        time_configs(bench_case, target, options.rounds, all).with_context(task.workload_key + ": "));
    const double first = judged.tuned.ns / judged.first.ns, standard = judged.tuned.ns / judged.standard.ns;
    means.first += std::log(first);
    means.standard += std::log(standard);
    means.worst = means.shapes++ == 0 ? standard : std::min(means.worst, standard);
    std::printf("%5.1f %7.1f  %s\n", 100 * first, 100 * standard, task.workload_key.c_str());
    std::fflush(stdout);
    ordered_json line = to_json(judged);
    line["workload"] = task.workload_key;
    document.push_back(std::move(line));
    if (!options.json.empty()) std::ofstream(options.json) << document.dump(1) << "\n";
  }
  if (means.shapes == 0) return not_found(options.db, ": no task to judge");
  std::printf(
      "%d shapes, geometric means of the tuned speed: tried first by the templates %.3f, default %.3f (worst "
      "%.3f)\n",
      means.shapes, std::exp(means.first / means.shapes), std::exp(means.standard / means.shapes),
      means.worst);
  return Status::ok();
}

}  // namespace
}  // namespace tuner

int main(int argc, char** argv) {
  std::vector<std::string> files;
  tuner::JudgeOptions options;
  CLI::App app{"Makes the table that default configs are fitted from, and says how good they are."};
  app.require_subcommand(1);
  CLI::App* const table = app.add_subcommand("table", "print measured_shapes.inc");
  table->add_option("results", files, "summaries of bench_cpu")->required()->check(CLI::ExistingFile);
  CLI::App* const judge = app.add_subcommand("judge", "time defaults beside tuned configs");
  judge->add_option("--db", options.db, "database of tasks tuned on this machine")->required();
  judge->add_option("--filter", options.filter, "only workloads whose key contains this");
  judge->add_option("--rounds", options.rounds, "samples of each")->check(CLI::Range(3, 10000));
  judge->add_option("--json", options.json, "write everything, after each shape");
  judge->add_option("--table", options.table, "a table to fit by, in place of the program's own")
      ->check(CLI::ExistingFile);
  judge->add_flag("--hide", options.hide, "fit the default without the shape itself");
  judge->add_flag("--donors", options.donors, "also time each config that could have been the default");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  const tuner::Status status = *table ? tuner::print_table(files) : tuner::judge(options);
  if (!status) std::fprintf(stderr, "fit_defaults: %s\n", status.message().c_str());
  return status ? 0 : status.code() == tuner::StatusCode::kInvalidArgument ? 2 : 1;
}
