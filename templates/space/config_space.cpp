// ConfigSpace: declaring and sealing, and the mapping between configs and indices. Moves of the search:
// config_moves.cpp.
#include "templates/space/config_space.h"

#include <algorithm>
#include <numeric>

#include "compiler_core/base/int_math.h"
#include "templates/space/config_space_impl.h"
#include "templates/space/int_expr.h"

namespace tuner {
namespace {

constexpr size_t kMaxSplitCandidates = 256;

// The largest candidate not above the wish, or the smallest.
int64_t snap(const std::vector<int64_t>& candidates, int64_t wish) {
  const auto above = std::upper_bound(candidates.begin(), candidates.end(), wish);
  return above == candidates.begin() ? candidates.front() : *std::prev(above);
}

void list_split_candidates(KnobSpec& spec) {
  KnobInfo& knob = spec.info;
  const int64_t m = std::max<int64_t>(spec.multiple, 1);
  const int64_t last = std::min(round_up(knob.extent, m), spec.at_most);
  const auto keep = [&](int64_t v) {
    return v >= spec.at_least && (!spec.divisors_only || knob.extent % v == 0) &&
           (!spec.powers_of_two || (v & (v - 1)) == 0);
  };
  for (int64_t v = m; v <= last; v += m)
    if (keep(v)) knob.candidates.push_back(v);
  if (knob.candidates.size() <= kMaxSplitCandidates) return;
  const int64_t first = spec.has_first ? snap(knob.candidates, spec.first) : knob.candidates.front();
  const int64_t grain = std::max<int64_t>(last / 64, 1);
  std::erase_if(knob.candidates, [&](int64_t v) {
    return knob.extent % v != 0 && (v & (v - 1)) != 0 && v % grain != 0 && v != first;
  });
}

Status list_candidates(KnobSpec& spec) {
  KnobInfo& knob = spec.info;
  if (knob.kind == KnobKind::kSplit) {
    if (knob.extent < 1)
      return invalid_config("knob ", knob.name, ": extent ", knob.extent, ", expected at least 1");
    list_split_candidates(spec);
  } else {
    std::sort(knob.candidates.begin(), knob.candidates.end());
    knob.candidates.erase(std::unique(knob.candidates.begin(), knob.candidates.end()), knob.candidates.end());
    std::erase_if(knob.candidates, [&](int64_t v) {
      return knob.kind == KnobKind::kOrdered && (v < spec.at_least || v > spec.at_most);
    });
  }
  if (knob.candidates.empty())
    return invalid_config("knob ", knob.name, ": no candidate is left; widen its limits");
  knob.first = spec.has_first ? snap(knob.candidates, spec.first) : knob.candidates.front();
  return Status::ok();
}

}  // namespace

ConfigSpace::ConfigSpace() : impl_(std::make_unique<Impl>()) {}
ConfigSpace::~ConfigSpace() = default;
ConfigSpace::ConfigSpace(ConfigSpace&&) noexcept = default;
ConfigSpace& ConfigSpace::operator=(ConfigSpace&&) noexcept = default;

KnobSpec& ConfigSpace::Impl::add(std::string name, KnobKind kind) {
  CHECK(!sealed) << "knob " << name << " is declared after seal()";
  for (const KnobSpec& s : specs) CHECK(s.info.name != name) << "knob " << name << " is declared twice";
  specs.push_back(
      {.info = {.name = std::move(name), .kind = kind}, .position = static_cast<int>(specs.size())});
  return specs.back();
}

SplitBuilder ConfigSpace::split(std::string name, int64_t extent) {
  KnobSpec& spec = impl_->add(std::move(name), KnobKind::kSplit);
  spec.info.extent = extent;
  return SplitBuilder(spec);
}
FlagBuilder ConfigSpace::flag(std::string name) {
  KnobSpec& spec = impl_->add(std::move(name), KnobKind::kFlag);
  spec.info.candidates = {0, 1};
  return FlagBuilder(spec);
}
ChoiceBuilder ConfigSpace::choice(std::string name, std::vector<int64_t> candidates) {
  KnobSpec& spec = impl_->add(std::move(name), KnobKind::kOrdered);
  spec.info.candidates = std::move(candidates);
  return ChoiceBuilder(spec);
}
CategoryBuilder ConfigSpace::category(std::string name, std::vector<std::string> labels) {
  KnobSpec& spec = impl_->add(std::move(name), KnobKind::kCategorical);
  spec.info.labels = std::move(labels);
  spec.info.candidates.resize(spec.info.labels.size());
  std::iota(spec.info.candidates.begin(), spec.info.candidates.end(), 0);
  return CategoryBuilder(spec);
}
PermutationBuilder ConfigSpace::permutation(std::string name, std::vector<std::string> items) {
  CHECK(!items.empty() && items.size() <= 7)
      << "knob " << name << ": an order of " << items.size() << " items, expected 1 to 7";
  KnobSpec& spec = impl_->add(std::move(name), KnobKind::kPermutation);
  int64_t orders = 1;
  for (size_t i = 2; i <= items.size(); ++i) orders *= static_cast<int64_t>(i);
  spec.info.labels = std::move(items);
  spec.info.candidates.resize(static_cast<size_t>(orders));
  std::iota(spec.info.candidates.begin(), spec.info.candidates.end(), 0);
  return PermutationBuilder(spec);
}
PermutationBuilder& PermutationBuilder::try_first(const std::vector<std::string>& order) {
  std::vector<int> items;
  for (const std::string& label : order) {
    const auto& labels = spec_.info.labels;
    const auto found = std::find(labels.begin(), labels.end(), label);
    CHECK(found != labels.end()) << "knob " << spec_.info.name << " has no item " << label;
    items.push_back(static_cast<int>(found - labels.begin()));
  }
  CHECK(items.size() == spec_.info.labels.size())
      << "knob " << spec_.info.name << ": an order of all its items";
  spec_.first = rank_of_permutation(items);
  spec_.has_first = true;
  return *this;
}
void ConfigSpace::active_if(const KnobHandle& knob, const IntExpr& condition) {
  CHECK(!impl_->sealed && knob.position() >= 0) << "knob " << knob.name() << " is declared by no open space";
  std::vector<bool> reads(impl_->specs.size(), false);
  collect_knobs(*condition.node(), reads);
  CHECK(!reads[static_cast<size_t>(knob.position())])
      << "knob " << knob.name() << " is a condition of itself";
  CHECK(impl_->conditions.emplace(knob.position(), condition).second)
      << "knob " << knob.name() << " has a condition already; join them with &&";
}
void ConfigSpace::require(IntExpr constraint) {
  CHECK(!impl_->sealed) << "a constraint is declared after seal()";
  impl_->constraints.push_back(std::move(constraint));
}

Status ConfigSpace::seal() {
  Impl& d = *impl_;
  CHECK(!d.sealed) << "seal() is called twice";
  for (KnobSpec& spec : d.specs) {
    RETURN_IF_ERROR(list_candidates(spec));
    d.position_of.emplace(spec.info.name, spec.position);
    d.knobs.push_back(spec.info);
  }
  // Where a knob is not active, it has one value.
  for (const auto& [position, condition] : d.conditions) {
    const IntExpr knob(std::make_shared<IntExprNode>(IntExprNode{IntOp::kKnob, position, {}, {}}));
    d.constraints.push_back(condition || knob == d.knobs[static_cast<size_t>(position)].first);
  }
  // Knobs that a constraint reads together belong to one group (union-find by smallest member).
  const size_t n = d.knobs.size();
  std::vector<int> root(n);
  std::iota(root.begin(), root.end(), 0);
  const auto find = [&](int i) {
    while (root[static_cast<size_t>(i)] != i) i = root[static_cast<size_t>(i)];
    return i;
  };
  std::vector<int> reads(d.constraints.size(), -1);
  for (size_t c = 0; c < d.constraints.size(); ++c) {
    std::vector<bool> used(n, false);
    collect_knobs(*d.constraints[c].node(), used);
    for (size_t i = 0; i < n; ++i) {
      if (!used[i]) continue;
      const int mine = find(static_cast<int>(i));
      if (reads[c] < 0) reads[c] = mine;
      const int other = find(reads[c]);
      root[static_cast<size_t>(std::max(mine, other))] = std::min(mine, other);
    }
    if (reads[c] < 0 && evaluate(*d.constraints[c].node(), {}) == 0)
      return invalid_config("constraint ", to_text(d.constraints[c], d.knobs), " never holds");
  }
  d.group_of.assign(n, 0);
  d.total = 1;
  for (size_t i = 0; i < n; ++i) {
    if (find(static_cast<int>(i)) != static_cast<int>(i)) continue;
    std::vector<int> members;
    for (size_t k = i; k < n; ++k)
      if (find(static_cast<int>(k)) == static_cast<int>(i)) {
        members.push_back(static_cast<int>(k));
        d.group_of[k] = d.groups.size();
      }
    std::vector<IntExpr> mine;
    for (size_t c = 0; c < d.constraints.size(); ++c)
      if (reads[c] >= 0 && find(reads[c]) == static_cast<int>(i)) mine.push_back(d.constraints[c]);
    ASSIGN_OR_RETURN(DecisionDiagram tree, DecisionDiagram::build(d.knobs, members, mine));
    if (static_cast<__int128>(d.total) * tree.size() > (static_cast<__int128>(1) << 62))
      return invalid_config("config space: more than 2^62 valid configs; narrow knob ", d.knobs[i].name);
    d.strides.push_back(d.total);
    d.total *= tree.size();
    d.groups.push_back(std::move(tree));
  }
  d.sealed = true;

  std::map<std::string, int64_t> first;
  for (const KnobInfo& knob : d.knobs) first.emplace(knob.name, knob.first);
  const Result<ConfigIndex> index = index_of(Config(std::move(first)));
  if (!index)
    return invalid_config("default config: ", index.message(), "; give those knobs another try_first");
  d.first_index = *index;
  return Status::ok();
}

const std::vector<KnobInfo>& ConfigSpace::knobs() const { return impl_->knobs; }
uint64_t ConfigSpace::size() const { return impl_->ready().total; }
ConfigIndex ConfigSpace::first_index() const { return impl_->ready().first_index; }

ConfigIndex ConfigSpace::default_index() const {
  const Impl& d = impl_->ready();
  if (!d.choose_default) return d.first_index;
  std::call_once(d.default_is_chosen, [&] {
    d.default_index = d.first_index;
    const std::optional<Config> chosen = d.choose_default(*this);
    if (!chosen) return;
    if (const Result<ConfigIndex> index = index_of(*chosen)) d.default_index = *index;
  });
  return d.default_index;
}

void ConfigSpace::choose_default(std::function<std::optional<Config>(const ConfigSpace&)> choose) {
  CHECK(!impl_->choose_default) << "who chooses the default of a config space is set twice";
  impl_->choose_default = std::move(choose);
}

std::vector<int> ConfigSpace::Impl::choices_at(ConfigIndex index) const {
  CHECK(index < ready().total) << "config index " << index << " of a space of " << total;
  std::vector<int> choices(knobs.size(), 0);
  for (size_t g = 0; g < groups.size(); ++g) groups[g].at(index / strides[g] % groups[g].size(), choices);
  return choices;
}

bool ConfigSpace::Impl::find_index(const std::vector<int>& choices, ConfigIndex& index) const {
  index = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    uint64_t part = 0;
    if (!groups[g].index_of(choices, part)) return false;
    index += part * strides[g];
  }
  return true;
}

Config ConfigSpace::at(ConfigIndex index) const {
  const std::vector<int> choices = impl_->choices_at(index);
  std::map<std::string, int64_t> values;
  for (size_t i = 0; i < choices.size(); ++i)
    values.emplace(impl_->knobs[i].name, impl_->knobs[i].candidates[static_cast<size_t>(choices[i])]);
  return Config(std::move(values));
}

Result<ConfigIndex> ConfigSpace::index_of(const Config& config) const {
  const Impl& d = impl_->ready();
  std::vector<int> choices(d.knobs.size(), 0);
  std::vector<int64_t> values(d.knobs.size(), 0);
  for (const auto& [name, value] : config.values())
    if (!d.position_of.contains(name)) return not_found("knob ", name, " is not one of this space");
  for (size_t i = 0; i < d.knobs.size(); ++i) {
    const KnobInfo& knob = d.knobs[i];
    const auto given = config.values().find(knob.name);
    if (given == config.values().end()) return not_found("knob ", knob.name, " is missing");
    const auto c = std::lower_bound(knob.candidates.begin(), knob.candidates.end(), given->second);
    if (c == knob.candidates.end() || *c != given->second)
      return not_found("knob ", knob.name, ": ", given->second, " is not one of its ", knob.candidates.size(),
                       " candidates (", knob.candidates.front(), " to ", knob.candidates.back(), ")");
    choices[i] = static_cast<int>(c - knob.candidates.begin());
    values[i] = given->second;
  }
  ConfigIndex index = 0;
  if (d.find_index(choices, index)) return index;
  for (const IntExpr& c : d.constraints)
    if (evaluate(*c.node(), values) == 0)
      return not_found("constraint ", to_text(c, d.knobs), " does not hold for ", config.to_text());
  CHECK(false) << "the tree refuses " << config.to_text() << ", which satisfies every constraint";
  return index;
}

std::string ConfigSpace::describe(const Config& config) const {
  const Impl& d = *impl_;
  // Of another space's config, too: a knob that is missing counts as at its first candidate.
  std::vector<int64_t> values;
  for (const KnobInfo& knob : d.knobs) {
    const auto given = config.values().find(knob.name);
    values.push_back(given == config.values().end() ? knob.candidates.front() : given->second);
  }
  std::string text;
  for (const auto& [name, value] : config.values()) {
    const auto p = d.position_of.find(name);
    const KnobInfo* knob = p == d.position_of.end() ? nullptr : &d.knobs[static_cast<size_t>(p->second)];
    if (knob != nullptr && !d.is_active(static_cast<size_t>(p->second), values)) continue;
    text += text.empty() ? name + "=" : " " + name + "=";
    const bool listed =
        knob != nullptr && value >= 0 && value < static_cast<int64_t>(knob->candidates.size());
    if (knob != nullptr && knob->kind == KnobKind::kFlag) {
      text += value != 0 ? "yes" : "no";
    } else if (listed && knob->kind == KnobKind::kCategorical) {
      text += knob->labels[static_cast<size_t>(value)];
    } else if (listed && knob->kind == KnobKind::kPermutation) {
      const std::vector<int> order = permutation_of_rank(value, static_cast<int>(knob->labels.size()));
      for (size_t i = 0; i < order.size(); ++i)
        text += (i > 0 ? "," : "") + knob->labels[static_cast<size_t>(order[i])];
    } else {
      text += str(value);
    }
  }
  return text;
}

}  // namespace tuner
