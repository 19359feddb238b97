#include "tuner/study/cover_json.h"

#include "tuner/study/cover_header.h"
#include "tuner/text/facts.h"

namespace tuner {

bool is_reached(const CoverSolution& s, const CoverWish& wish) {
  constexpr double kRounding = 1e-9;
  return !wish.level || s.worst >= *wish.level - kRounding;
}

nlohmann::ordered_json solution_json(const CoverProblem& p, const CoverSolution& s, const CoverWish& wish) {
  nlohmann::ordered_json configs = nlohmann::ordered_json::array(), places = nlohmann::ordered_json::array();
  for (const int r : s.set.rows) {
    const CoverConfig& c = p.configs[static_cast<size_t>(r)];
    configs.push_back({{"template", c.template_name},
                       {"template_version", c.template_version},
                       {"config", config_json(c.config)}});
  }
  for (size_t c = 0; c < p.places.size(); ++c) {
    nlohmann::ordered_json place{{"place", p.places[c].name}};
    if (!p.places[c].workload_key.empty()) {
      place["workload"] = p.places[c].workload_key;
      place["target"] = p.places[c].target;
    }
    place["best_ns"] = p.places[c].best_ns;
    place["config"] = s.use[c];
    place["percent_of_best"] = 100 * s.score[c];
    places.push_back(std::move(place));
  }
  nlohmann::ordered_json fewer = nlohmann::ordered_json::array();
  for (const double worst : s.worst_of_fewer) fewer.push_back(100 * worst);
  nlohmann::ordered_json j{{"op", p.op},
                           {"configs_known", p.configs.size()},
                           {"worst_percent", 100 * s.worst},
                           {"mean_percent", 100 * s.mean},
                           {"worst_percent_bound", 100 * s.set.bound},
                           {"optimal", s.set.is_optimal()},
                           {"worst_percent_of_fewer", fewer}};
  if (wish.level) {
    j["within_percent"] = 100 * (1 - *wish.level);
    j["reached"] = is_reached(s, wish);
    j["at_least_configs"] = s.at_least;
  }
  j["configs"] = configs;
  j["tree"] = tree_text(s.tree, "");
  j["places"] = places;
  j["pairs_not_measured"] = s.unknown_pairs;
  j["records_outdated"] = p.outdated;
  if (s.left_out.columns > 0)
    j["left_out"] = {{"places", s.left_out.columns},
                     {"measured", s.left_out.known},
                     {"worst_percent", 100 * s.left_out.worst},
                     {"mean_percent", 100 * s.left_out.mean}};
  return j;
}

nlohmann::ordered_json covers_json(const Covers& covers, const std::vector<std::string>& unmeasured,
                                   const CoverWish& wish) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const auto& [problem, solution] : covers) list.push_back(solution_json(problem, solution, wish));
  return {{"covers", list}, {"unmeasured", unmeasured}};
}

}  // namespace tuner
