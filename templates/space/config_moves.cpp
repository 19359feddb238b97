// ConfigSpace: what a search does with a space: sampling, neighbours, mutation, crossover, features.
#include <algorithm>
#include <cmath>
#include <limits>

#include "templates/space/config_space_impl.h"
#include "templates/space/int_expr.h"

namespace tuner {
namespace {

// Uniform in 0..n-1, the same with every standard library: multiply and reject the uneven rest.
uint64_t uniform(std::mt19937_64& rng, uint64_t n) {
  for (;;) {
    const unsigned __int128 wide = static_cast<unsigned __int128>(rng()) * n;
    if (static_cast<uint64_t>(wide) >= (0 - n) % n) return static_cast<uint64_t>(wide >> 64);
  }
}

bool is_ordered(const KnobInfo& knob) {
  return knob.kind == KnobKind::kOrdered || knob.kind == KnobKind::kSplit;
}

// Another choice of this knob: of ordered ones, three times in four at most two steps away; of a permutation,
// as often two neighbours change places.
int moved(const KnobInfo& knob, int choice, std::mt19937_64& rng) {
  const int n = static_cast<int>(knob.candidates.size());
  if (is_ordered(knob) && uniform(rng, 4) != 0) {
    const int step = 1 + static_cast<int>(uniform(rng, 3) == 0);
    const int to = uniform(rng, 2) == 0 ? choice - step : choice + step;
    if (to >= 0 && to < n) return to;
  }
  if (knob.kind == KnobKind::kPermutation && uniform(rng, 4) != 0) {
    std::vector<int> order = permutation_of_rank(choice, static_cast<int>(knob.labels.size()));
    const uint64_t at = uniform(rng, order.size() - 1);
    std::swap(order[at], order[at + 1]);
    return static_cast<int>(rank_of_permutation(order));
  }
  const int to = static_cast<int>(uniform(rng, static_cast<uint64_t>(n - 1)));
  return to >= choice ? to + 1 : to;
}

}  // namespace

ConfigIndex ConfigSpace::sample(std::mt19937_64& rng) const { return uniform(rng, size()); }

std::vector<ConfigIndex> ConfigSpace::neighbours(ConfigIndex index) const {
  const Impl& d = *impl_;
  std::vector<int> choices = d.choices_at(index);
  std::vector<ConfigIndex> found;
  for (size_t i = 0; i < choices.size(); ++i) {
    const DecisionDiagram& tree = d.groups[d.group_of[i]];
    const uint64_t stride = d.strides[d.group_of[i]];
    const ConfigIndex rest = index - index / stride % tree.size() * stride;
    const int own = choices[i];
    for (int c = 0; c < static_cast<int>(d.knobs[i].candidates.size()); ++c) {
      choices[i] = c;
      uint64_t part = 0;
      if (c != own && tree.index_of(choices, part)) found.push_back(rest + part * stride);
    }
    choices[i] = own;
  }
  return found;
}

ConfigIndex ConfigSpace::crossover(ConfigIndex a, ConfigIndex b, std::mt19937_64& rng) const {
  const Impl& d = *impl_;
  const std::vector<int> of_a = d.choices_at(a), of_b = d.choices_at(b);
  std::vector<int> first(of_a.size()), second(of_a.size());
  for (size_t i = 0; i < of_a.size(); ++i) {
    const bool from_a = uniform(rng, 2) == 0;
    first[i] = from_a ? of_a[i] : of_b[i];
    second[i] = from_a ? of_b[i] : of_a[i];
  }
  for (const DecisionDiagram& tree : d.groups) tree.repair(first, second);
  ConfigIndex index = 0;
  CHECK(d.find_index(first, index)) << "a repaired config is not valid";
  return index;
}

ConfigIndex ConfigSpace::mutate(ConfigIndex index, std::mt19937_64& rng) const {
  const Impl& d = *impl_;
  if (size() == 1) return index;
  const std::vector<int> choices = d.choices_at(index);
  std::vector<size_t> movable;
  for (size_t i = 0; i < choices.size(); ++i)
    if (d.knobs[i].candidates.size() > 1) movable.push_back(i);
  ConfigIndex found = 0;
  for (int attempt = 0; attempt < 16; ++attempt) {
    const size_t i = movable[uniform(rng, movable.size())];
    std::vector<int> next = choices;
    next[i] = moved(d.knobs[i], choices[i], rng);
    if (d.find_index(next, found)) return found;
    // Every other time, let the other knobs of the group give way.
    if (attempt % 2 == 0) continue;
    d.groups[d.group_of[i]].repair(next, choices);
    if (d.find_index(next, found) && found != index) return found;
  }
  const std::vector<ConfigIndex> near = neighbours(index);
  if (!near.empty()) return near[uniform(rng, near.size())];
  found = uniform(rng, size() - 1);
  return found >= index ? found + 1 : found;
}

std::vector<int64_t> ConfigSpace::Impl::values_of(const Config& config) const {
  std::vector<int64_t> values;
  for (const KnobInfo& knob : ready().knobs) values.push_back(config.at(knob.name));
  return values;
}

bool ConfigSpace::Impl::is_active(size_t knob, const std::vector<int64_t>& values) const {
  const auto condition = conditions.find(static_cast<int>(knob));
  return condition == conditions.end() || evaluate(*condition->second.node(), values) != 0;
}

bool ConfigSpace::is_active(const Config& config, std::string_view knob) const {
  const auto found = impl_->position_of.find(std::string(knob));
  CHECK(found != impl_->position_of.end()) << "knob " << knob << " is not one of this space";
  return impl_->is_active(static_cast<size_t>(found->second), impl_->values_of(config));
}

std::vector<float> ConfigSpace::features(const Config& config) const {
  constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();
  const Impl& d = impl_->ready();
  const std::vector<int64_t> values = d.values_of(config);
  std::vector<float> out;
  for (size_t i = 0; i < d.knobs.size(); ++i) {
    const KnobInfo& knob = d.knobs[i];
    const int64_t value = values[i];
    const bool active = d.is_active(i, values);
    const auto put = [&](float v) { out.push_back(active ? v : kMissing); };
    switch (knob.kind) {
      case KnobKind::kCategorical:
        for (const int64_t c : knob.candidates) put(c == value ? 1.0F : 0.0F);
        break;
      case KnobKind::kFlag:
        put(static_cast<float>(value));
        break;
      case KnobKind::kPermutation: {
        std::vector<float> positions(knob.labels.size());
        const std::vector<int> order = permutation_of_rank(value, static_cast<int>(positions.size()));
        for (size_t at = 0; at < order.size(); ++at)
          positions[static_cast<size_t>(order[at])] = static_cast<float>(at);
        for (const float position : positions) put(position);
        break;
      }
      case KnobKind::kOrdered:
      case KnobKind::kSplit:
        put(value > 0 ? std::log2(static_cast<float>(value)) : -1.0F);
        break;
    }
  }
  return out;
}

std::vector<std::string> ConfigSpace::feature_names() const {
  std::vector<std::string> out;
  for (const KnobInfo& knob : impl_->ready().knobs) {
    if (knob.kind == KnobKind::kCategorical)
      for (const std::string& label : knob.labels) out.push_back(knob.name + "=" + label);
    else if (knob.kind == KnobKind::kPermutation)
      for (const std::string& label : knob.labels) out.push_back(knob.name + ":" + label);
    else if (knob.kind == KnobKind::kFlag)
      out.push_back(knob.name);
    else
      out.push_back("log2(" + knob.name + ")");
  }
  return out;
}

}  // namespace tuner
