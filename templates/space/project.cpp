#include "templates/space/project.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "templates/space/knob.h"

namespace tuner {

namespace {

constexpr int kMostLooks = 3000;  // configs tried on the way outwards
constexpr double kOtherName = 2;

// Between two values of a knob.
double distance_of_values(const KnobInfo& knob, int64_t a, int64_t b) {
  if (a == b) return 0;
  const bool ordered = knob.kind == KnobKind::kOrdered || knob.kind == KnobKind::kSplit;
  if (!ordered) return kOtherName;
  if (a <= 0 || b <= 0)
    return kOtherName + std::abs(std::log2(static_cast<double>(std::max<int64_t>(std::max(a, b), 1)))) / 4;
  return std::abs(std::log2(static_cast<double>(a) / static_cast<double>(b)));
}

// Values as positions in the candidate lists of the space's knobs.
using Places = std::vector<size_t>;

class Projection {
 public:
  Projection(const ConfigSpace& space, Config wanted) : space_(space), wanted_(std::move(wanted)) {
    for (const KnobInfo& knob : space.knobs()) {
      const int64_t value = wanted_.at(knob.name);
      std::vector<double> away;
      for (const int64_t candidate : knob.candidates)
        away.push_back(distance_of_values(knob, candidate, value));
      away_.push_back(std::move(away));
    }
  }

  // Outwards from the wanted values, nearest first, one knob a step, until a config is valid.
  std::optional<Config> nearest() const {
    Places start;
    for (const std::vector<double>& away : away_)
      start.push_back(static_cast<size_t>(std::min_element(away.begin(), away.end()) - away.begin()));
    using Entry = std::pair<double, Places>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
    std::set<Places> seen = {start};
    open.emplace(away(start), std::move(start));
    for (int looks = 0; !open.empty() && looks < kMostLooks; ++looks) {
      const Places places = open.top().second;
      open.pop();
      const Config config = settled(config_at(places));
      if (space_.index_of(config)) return config;
      for (size_t k = 0; k < places.size(); ++k) {
        for (const int step : {-1, 1}) {
          if (places[k] == 0 && step < 0) continue;
          Places next = places;
          next[k] += static_cast<size_t>(step);
          if (next[k] < away_[k].size() && seen.insert(next).second)
            open.emplace(away(next), std::move(next));
        }
      }
    }
    return closest_by_steps();
  }

 private:
  double away(const Places& places) const {
    double sum = 0;
    for (size_t k = 0; k < places.size(); ++k) sum += away_[k][places[k]];
    return sum;
  }
  Config config_at(const Places& places) const {
    std::map<std::string, int64_t> values;
    for (size_t k = 0; k < places.size(); ++k)
      values[space_.knobs()[k].name] = space_.knobs()[k].candidates[places[k]];
    return Config(std::move(values));
  }
  // Knobs without a meaning stand at their first value.
  Config settled(Config config) const {
    for (int pass = 0; pass < 2; ++pass) {
      std::map<std::string, int64_t> values = config.values();
      for (const KnobInfo& knob : space_.knobs())
        if (!space_.is_active(config, knob.name)) values[knob.name] = knob.first;
      config = Config(std::move(values));
    }
    return config;
  }
  double away(const Config& config) const { return distance_between(config, wanted_, space_); }
  // Where the constraints leave nothing near: from the first config, always to the neighbour that is
  // nearer.
  std::optional<Config> closest_by_steps() const {
    ConfigIndex at = space_.first_index();
    double here = away(space_.at(at));
    for (bool moved = true; moved;) {
      moved = false;
      for (const ConfigIndex next : space_.neighbours(at)) {
        const double there = away(space_.at(next));
        if (there < here) here = there, at = next, moved = true;
      }
    }
    return space_.at(at);
  }

  const ConfigSpace& space_;
  const Config wanted_;
  std::vector<std::vector<double>> away_;  // of each knob's candidates from the wanted value
};

}  // namespace

double distance_between(const Config& a, const Config& b, const ConfigSpace& space) {
  double sum = 0;
  for (const KnobInfo& knob : space.knobs())
    sum += distance_of_values(knob, a.at(knob.name), b.at(knob.name));
  return sum;
}

std::optional<Config> project(const Config& wanted, const ConfigSpace& space) {
  if (wanted.values().size() != space.knobs().size()) return std::nullopt;
  for (const KnobInfo& knob : space.knobs())
    if (!wanted.values().contains(knob.name)) return std::nullopt;
  if (space.index_of(wanted)) return wanted;
  return Projection(space, wanted).nearest();
}

}  // namespace tuner
