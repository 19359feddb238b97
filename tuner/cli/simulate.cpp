// tuner study simulate: plays search strategies on recorded spaces; no device, no database.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <set>

#include "tuner/cli/study_commands.h"
#include "tuner/search/recorded_space.h"
#include "tuner/search/simulation.h"
#include "tuner/text/facts.h"
#include "tuner/text/progress_line.h"
#include "tuner/text/terminal.h"

namespace tuner::cli {

namespace {

constexpr size_t kMarks[] = {32, 64, 128, 256, 512};
constexpr double kShares[] = {0.90, 0.95, 0.99};
constexpr const char* kBaseline =
    "annealing";  // no model: a strategy that does not beat it is not worth its time

struct SimulateOptions {
  std::vector<std::string> spaces, warm, strategies{std::string(kDefaultStrategy)};
  bool warm_others = false, json = false;
  size_t trials = 512, in_flight = 8, warm_rows = 200;
  uint64_t seeds = 10, first_seed = 0;
};

std::set<std::string> knob_names(const RecordedSpace& space) {
  std::set<std::string> names;
  for (const RecordedSpace::Part& part : space.parts)
    for (const KnobInfo& knob : part.space.knobs()) names.insert(part.template_name + "/" + knob.name);
  return names;
}

struct Table {
  std::string space, strategy;
  SimulationSummary summary;
};

class Simulator {
 public:
  explicit Simulator(const SimulateOptions& options) : options_(options) {}

  Status run() {
    RETURN_IF_ERROR(read(options_.spaces, spaces_));
    RETURN_IF_ERROR(read(options_.warm, donors_));
    for (const RecordedSpace& space : spaces_) {
      if (space.best_ns() == std::numeric_limits<double>::infinity())
        return invalid_argument(space.name, ": every config fails; expected at least one with status ok");
      RETURN_IF_ERROR(donors_of(space).status());
    }
    std::vector<std::string> strategies = options_.strategies;
    if (std::find(strategies.begin(), strategies.end(), kBaseline) == strategies.end())
      strategies.push_back(kBaseline);
    const size_t runs = spaces_.size() * strategies.size() * options_.seeds;
    size_t done = 0;
    for (const std::string& strategy : strategies) {
      SimulationSummary all;
      for (const RecordedSpace& space : spaces_) {
        SimulationSummary summary;
        for (uint64_t seed = options_.first_seed; seed < options_.first_seed + options_.seeds; ++seed) {
          show_progress(++done, runs, strategy, space.name);
          ASSIGN_OR_RETURN(const SimulationRun played, play(space, strategy, seed));
          summary.add(played);
          all.add(played);
        }
        tables_.push_back({space.name, strategy, std::move(summary)});
      }
      if (spaces_.size() > 1) tables_.push_back({"all", strategy, std::move(all)});
    }
    show_progress(runs, runs, "", "");
    return Status::ok();
  }

  void print() const {
    for (const RecordedSpace& space : spaces_)
      std::printf("%s  %zu configs, median/best %.1f%s\n", space.name.c_str(),
                  static_cast<size_t>(space.size()), space.median_ns() / space.best_ns(),
                  donor_names(space).c_str());
    size_t width = 5;
    for (const Table& t : tables_) width = std::max(width, t.space.size());
    std::printf(
        "best of the space / best found, percent, after so many trials; mean over runs, then worst run\n");
    std::printf("%-*s %-14s", static_cast<int>(width), "space", "strategy");
    for (const char* group : {"", "|"}) {
      std::printf(" %s", group);
      for (const size_t mark : kMarks)
        if (mark <= options_.trials) std::printf(" %5zu", mark);
    }
    std::printf(" | median trials to");
    for (const double share : kShares) std::printf(" %.0f%%", 100 * share);
    std::printf(" | ms/trial\n");
    for (const Table& t : tables_) {
      std::printf("%-*s %-14s ", static_cast<int>(width), t.space.c_str(), t.strategy.c_str());
      for (const size_t mark : kMarks)
        if (mark <= options_.trials) std::printf(" %5.1f", 100 * t.summary.mean_share(mark));
      std::printf(" |");
      for (const size_t mark : kMarks)
        if (mark <= options_.trials) std::printf(" %5.1f", 100 * t.summary.worst_share(mark));
      std::printf(" |   ");
      for (const double share : kShares) {
        const double median = t.summary.median_trials_to(share);
        if (median > static_cast<double>(options_.trials))
          std::printf(" >%zu", options_.trials);
        else
          std::printf(" %4.0f", median);
      }
      std::printf(" | %.2f\n", t.summary.think_ms_per_trial());
    }
  }

  void print_json() const {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const Table& t : tables_) {
      nlohmann::ordered_json mean, worst, median;
      for (const size_t mark : kMarks) {
        if (mark > options_.trials) continue;
        mean[std::to_string(mark)] = 100 * t.summary.mean_share(mark);
        worst[std::to_string(mark)] = 100 * t.summary.worst_share(mark);
      }
      for (const double share : kShares) {
        const double trials = t.summary.median_trials_to(share);
        median[std::to_string(std::lround(100 * share))] = trials > static_cast<double>(options_.trials)
                                                               ? nlohmann::ordered_json()
                                                               : nlohmann::ordered_json(trials);
      }
      rows.push_back({{"space", t.space},
                      {"strategy", t.strategy},
                      {"runs", t.summary.runs()},
                      {"mean_percent_of_optimum", mean},
                      {"worst_percent_of_optimum", worst},
                      {"median_trials_to_percent", median},
                      {"cpu_ms_per_trial", t.summary.think_ms_per_trial()}});
    }
    nlohmann::ordered_json document{
        {"trials", options_.trials},       {"seeds", options_.seeds}, {"first_seed", options_.first_seed},
        {"in_flight", options_.in_flight}, {"warm", options_.warm},   {"warm_others", options_.warm_others},
        {"warm_rows", options_.warm_rows}, {"results", rows}};
    std::printf("%s\n", pretty(document).c_str());
  }

 private:
  static Status read(const std::vector<std::string>& paths, std::vector<RecordedSpace>& spaces) {
    for (const std::string& path : paths) {
      ASSIGN_OR_RETURN(RecordedSpace space, read_recorded_space(path));
      spaces.push_back(std::move(space));
    }
    return Status::ok();
  }

  // The spaces whose rows are known before the first trial on `space`.
  Result<std::vector<const RecordedSpace*>> donors_of(const RecordedSpace& space) const {
    std::vector<const RecordedSpace*> donors;
    const std::set<std::string> knobs = knob_names(space);
    for (const RecordedSpace& donor : donors_) {
      if (donor.crc == space.crc)
        return invalid_argument("--warm ", donor.name, ": this is the scored space ", space.name,
                                " itself; expected spaces of other machines or shapes");
      if (knob_names(donor) != knobs)
        return invalid_argument("--warm ", donor.name, ": its knobs are not those of ", space.name,
                                "; expected the same knobs");
      donors.push_back(&donor);
    }
    if (options_.warm_others)
      for (const RecordedSpace& other : spaces_)
        if (other.crc != space.crc && knob_names(other) == knobs) donors.push_back(&other);
    return donors;
  }
  std::string donor_names(const RecordedSpace& space) const {
    std::string names;
    const Result<std::vector<const RecordedSpace*>> donors = donors_of(space);
    for (const RecordedSpace* donor : *donors)
      names += str(names.empty() ? ", warm from " : ", ", donor->name);
    return names;
  }

  Result<SimulationRun> play(const RecordedSpace& space, const std::string& strategy, uint64_t seed) const {
    SearchSpace search_space = space.search_space();
    ASSIGN_OR_RETURN(const std::vector<const RecordedSpace*> donors, donors_of(space));
    for (const RecordedSpace* donor : donors)
      search_space.priors.push_back(donor->drawn_rows(options_.warm_rows, seed));
    ASSIGN_OR_RETURN(const std::unique_ptr<SearchStrategy> search,
                     make_strategy(strategy, search_space, seed));
    return simulate(
        *search, [&](const Candidate& c) { return space.measure(c); }, space.best_ns(), options_.trials,
        options_.in_flight);
  }

  static void show_progress(size_t done, size_t runs, const std::string& strategy, const std::string& space) {
    static const bool terminal = isatty(STDERR_FILENO) != 0;
    if (!terminal) return;
    if (space.empty()) return erase_progress();
    draw_progress(shortened(str("run ", done, " of ", runs, ": ", strategy, " on ", space),
                            terminal_width(STDERR_FILENO) - 1));
  }

  const SimulateOptions& options_;
  std::vector<RecordedSpace> spaces_, donors_;
  std::vector<Table> tables_;
};

int run_simulate(const SimulateOptions& options) {
  Simulator simulator(options);
  if (const Status status = simulator.run(); !status) {
    report(status);
    return kExitWrongUse;
  }
  if (options.json)
    simulator.print_json();
  else
    simulator.print();
  return kExitDone;
}

}  // namespace

void add_simulate_command(Command study, CommandContext& context) {
  auto options = std::make_shared<SimulateOptions>();
  const Command command =
      add_command(study, context, "simulate", "Play search strategies on recorded spaces; needs no device",
                  [options] { return run_simulate(*options); });
  command.add_option("SPACE", options->spaces, "Recorded spaces, CSV or gzip").required().type_name("SPACE");
  command
      .add_option("--strategy", options->strategies,
                  "Strategies to play, with commas between; annealing is always printed beside them")
      .delimiter(',')
      .type_name("STRATEGY[,STRATEGY...]")
      .show_default();
  command.add_option("--trials", options->trials, "Trials a run").in_range(1, 1000000).show_default();
  command.add_option("--seeds", options->seeds, "Runs of each space, each with its own seed")
      .in_range(1, 100000)
      .show_default();
  command.add_option("--first-seed", options->first_seed, "Seed of the first run").show_default();
  command.add_option("--warm", options->warm, "Recorded spaces of the same kernel that are known beforehand")
      .type_name("SPACE");
  command.add_flag("--warm-others", options->warm_others,
                   "Each space is played with the other SPACEs of the same knobs known beforehand");
  command.add_option("--warm-rows", options->warm_rows, "Random rows of each that are known beforehand")
      .in_range(1, 1000000)
      .show_default();
  command.add_option("--in-flight", options->in_flight, "Configs proposed before the results of any are seen")
      .in_range(1, 4096)
      .show_default();
  add_json_option(command, options->json);
}

}  // namespace tuner::cli
