#include "tuner/study/simulator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "tuner/text/format.h"

namespace tuner {
namespace {

constexpr size_t kMarks[] = {32, 64, 128, 256, 512};
constexpr double kShares[] = {0.90, 0.95, 0.99};
constexpr const char* kBaseline =
    "annealing";  // no model: a strategy that does not beat it is not worth its time

std::set<std::string> knob_names(const RecordedSpace& space) {
  std::set<std::string> names;
  for (const RecordedSpace::Part& part : space.parts)
    for (const KnobInfo& knob : part.space.knobs()) names.insert(part.template_name + "/" + knob.name);
  return names;
}

}  // namespace

Status Simulator::run(const Progress& progress) {
  ASSIGN_OR_RETURN(spaces_, read_recorded_spaces(options_.spaces));
  ASSIGN_OR_RETURN(donors_, read_recorded_spaces(options_.warm));
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
        progress(++done, runs, str(strategy, " on ", space.name));
        ASSIGN_OR_RETURN(const SimulationRun played, play(space, strategy, seed));
        summary.add(played);
        all.add(played);
      }
      tables_.push_back({space.name, strategy, std::move(summary)});
    }
    if (spaces_.size() > 1) tables_.push_back({"all", strategy, std::move(all)});
  }
  progress(runs, runs, "");
  return Status::ok();
}

std::string Simulator::text() const {
  std::string out;
  for (const RecordedSpace& space : spaces_)
    append_format(out, "%s  %zu configs, median/best %.1f%s\n", space.name.c_str(),
                  static_cast<size_t>(space.size()), space.median_ns() / space.best_ns(),
                  donor_names(space).c_str());
  size_t width = 5;
  for (const Table& t : tables_) width = std::max(width, t.space.size());
  append_format(
      out, "best of the space / best found, percent, after so many trials; mean over runs, then worst run\n");
  append_format(out, "%-*s %-14s", static_cast<int>(width), "space", "strategy");
  for (const char* group : {"", "|"}) {
    append_format(out, " %s", group);
    for (const size_t mark : kMarks)
      if (mark <= options_.trials) append_format(out, " %5zu", mark);
  }
  append_format(out, " | median trials to");
  for (const double share : kShares) append_format(out, " %.0f%%", 100 * share);
  append_format(out, " | ms/trial\n");
  for (const Table& t : tables_) {
    append_format(out, "%-*s %-14s ", static_cast<int>(width), t.space.c_str(), t.strategy.c_str());
    for (const size_t mark : kMarks)
      if (mark <= options_.trials) append_format(out, " %5.1f", 100 * t.summary.mean_share(mark));
    append_format(out, " |");
    for (const size_t mark : kMarks)
      if (mark <= options_.trials) append_format(out, " %5.1f", 100 * t.summary.worst_share(mark));
    append_format(out, " |   ");
    for (const double share : kShares) {
      const double median = t.summary.median_trials_to(share);
      if (median > static_cast<double>(options_.trials))
        append_format(out, " >%zu", options_.trials);
      else
        append_format(out, " %4.0f", median);
    }
    append_format(out, " | %.2f\n", t.summary.think_ms_per_trial());
  }
  return out;
}

nlohmann::ordered_json Simulator::json() const {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Table& t : tables_) {
    nlohmann::ordered_json mean, middle, worst, median;
    for (const size_t mark : kMarks) {
      if (mark > options_.trials) continue;
      mean[std::to_string(mark)] = 100 * t.summary.mean_share(mark);
      middle[std::to_string(mark)] = 100 * t.summary.median_share(mark);
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
                    {"median_percent_of_optimum", middle},
                    {"worst_percent_of_optimum", worst},
                    {"median_trials_to_percent", median},
                    {"cpu_ms_per_trial", t.summary.think_ms_per_trial()}});
  }
  return {{"trials", options_.trials},       {"seeds", options_.seeds}, {"first_seed", options_.first_seed},
          {"in_flight", options_.in_flight}, {"warm", options_.warm},   {"warm_others", options_.warm_others},
          {"warm_rows", options_.warm_rows}, {"results", rows}};
}

Result<std::vector<const RecordedSpace*>> Simulator::donors_of(const RecordedSpace& space) const {
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

std::string Simulator::donor_names(const RecordedSpace& space) const {
  std::string names;
  const Result<std::vector<const RecordedSpace*>> donors = donors_of(space);
  for (const RecordedSpace* donor : *donors) names += str(names.empty() ? ", warm from " : ", ", donor->name);
  return names;
}

Result<SimulationRun> Simulator::play(const RecordedSpace& space, const std::string& strategy,
                                      uint64_t seed) const {
  SearchSpace search_space = space.search_space();
  ASSIGN_OR_RETURN(const std::vector<const RecordedSpace*> donors, donors_of(space));
  for (const RecordedSpace* donor : donors)
    search_space.priors.push_back(donor->drawn_rows(options_.warm_rows, seed));
  ASSIGN_OR_RETURN(const std::unique_ptr<SearchStrategy> search, make_strategy(strategy, search_space, seed));
  return simulate(
      *search, [&](const Candidate& c) { return space.measure(c); }, space.best_ns(), options_.trials,
      options_.in_flight);
}

}  // namespace tuner
