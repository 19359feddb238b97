// ConfigSpace: what a search does with a space: sampling, neighbours, mutation, crossover, features.
#include <algorithm>
#include <cmath>

#include "templates/config_space_impl.h"

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

// Another choice of this knob: of ordered ones, three times in four at most two steps away.
int moved(const KnobInfo& knob, int choice, std::mt19937_64& rng) {
  const int n = static_cast<int>(knob.candidates.size());
  if (is_ordered(knob) && uniform(rng, 4) != 0) {
    const int step = 1 + static_cast<int>(uniform(rng, 3) == 0);
    const int to = uniform(rng, 2) == 0 ? choice - step : choice + step;
    if (to >= 0 && to < n) return to;
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
    const ValidTree& tree = d.groups[d.group_of[i]];
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
  for (const ValidTree& tree : d.groups) tree.repair(first, second);
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

std::vector<float> ConfigSpace::features(const Config& config) const {
  std::vector<float> out;
  for (const KnobInfo& knob : impl_->ready().knobs) {
    const int64_t value = config.at(knob.name);
    if (knob.kind == KnobKind::kCategorical)
      for (const int64_t c : knob.candidates) out.push_back(c == value ? 1.0F : 0.0F);
    else if (knob.kind == KnobKind::kFlag)
      out.push_back(static_cast<float>(value));
    else
      out.push_back(value > 0 ? std::log2(static_cast<float>(value)) : -1.0F);
  }
  return out;
}

std::vector<std::string> ConfigSpace::feature_names() const {
  std::vector<std::string> out;
  for (const KnobInfo& knob : impl_->ready().knobs) {
    if (knob.kind == KnobKind::kCategorical)
      for (const std::string& label : knob.labels) out.push_back(knob.name + "=" + label);
    else if (knob.kind == KnobKind::kFlag)
      out.push_back(knob.name);
    else
      out.push_back("log2(" + knob.name + ")");
  }
  return out;
}

}  // namespace tuner
