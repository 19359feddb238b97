// ConfigSpace: the knobs of one template for one task, the constraints between them, and exactly the configs
// that satisfy them, counted, indexed and sampled without ever listing the product of all knobs.
//
// A knob has a finite list of candidate values. A constraint is an integer expression over knob values: data,
// not code. Knobs that no constraint ties together are independent; each group of tied knobs becomes a tree
// of its valid prefixes, pruned as early as interval bounds of the partially assigned constraint allow. The
// space is the product of the groups.
//
//   SplitKnob m = space.split("tile_m", w.m).at_most(16).try_first(8);
//   FlagKnob pack_a = space.flag("pack_a").try_first(false);
//   space.require(m.inner() * n.inner() / lanes + n.inner() / lanes + 1 <= registers);
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner {

// What a split knob says: `inner` is the factor, `outer` how many blocks cover the axis.
struct SplitFactors {
  int64_t inner = 1, outer = 1;
};

// Knob name -> value, as stored everywhere. A value is an integer: a split's inner factor, 0/1 of a flag, the
// number itself of an ordered choice, the position in its list of a categorical knob (ConfigSpace::describe
// prints it by name), the rank of a permutation among all of its items, in lexicographic order.
class Config {
 public:
  Config() = default;
  explicit Config(std::map<std::string, int64_t> values) : values_(std::move(values)) {}
  int64_t at(std::string_view knob) const;  // CHECKs that the knob is there
  // By handle, as templates read it; a categorical knob yields the position in its list.
  SplitFactors operator[](const class SplitKnob& knob) const;
  bool operator[](const class FlagKnob& knob) const;
  int64_t operator[](const class ChoiceKnob& knob) const;
  int64_t operator[](const class CategoryKnob& knob) const;
  std::vector<int> operator[](const class PermutationKnob& knob) const;
  const std::map<std::string, int64_t>& values() const { return values_; }
  std::string to_text() const;  // "pack_a=0 tile_m=8 tile_n=32": canonical, sorted by name
  bool operator==(const Config&) const = default;
  auto operator<=>(const Config&) const = default;  // NOLINT(modernize-use-nullptr)

 private:
  std::map<std::string, int64_t> values_;
};
// Reads to_text() back. InvalidArgument names the word that is no name=integer, or the knob given twice.
Result<Config> config_from_text(std::string_view text);

// Integer expression over knob values; declared in knob.h.
class IntExpr;

enum class KnobKind : uint8_t { kOrdered, kSplit, kFlag, kCategorical, kPermutation };

struct KnobInfo {
  std::string name;
  KnobKind kind;
  std::vector<int64_t> candidates;  // ascending for ordered and split knobs
  std::vector<std::string> labels;  // categorical: one name a candidate; permutation: its items
  int64_t extent = 0;               // split: of the axis
  int64_t first = 0;                // value to try first
};

// Position of a config among the valid ones, 0..size()-1.
using ConfigIndex = uint64_t;

// Interface the search sees (knob handles, IntExpr and the declaring side are in knob.h). After seal() the
// space never changes and may be read from any thread; an index or a config from another space is our bug
// (CHECK) unless it says Result.
class ConfigSpace {
 public:
  ConfigSpace();
  ~ConfigSpace();
  ConfigSpace(ConfigSpace&&) noexcept;
  ConfigSpace& operator=(ConfigSpace&&) noexcept;

  // --- declaring (templates; see knob.h for the handle types) ---
  class SplitBuilder split(std::string name, int64_t extent);
  class FlagBuilder flag(std::string name);
  class ChoiceBuilder choice(std::string name, std::vector<int64_t> candidates);
  class CategoryBuilder category(std::string name, std::vector<std::string> labels);
  // An order of 1 to 7 items, such as loops: n! candidates.
  class PermutationBuilder permutation(std::string name, std::vector<std::string> items);
  void require(IntExpr constraint);
  // The knob means something only where `condition` over other knobs holds. Elsewhere it stands at its value
  // to try first, so that no config is counted twice; describe() leaves it out, features() has NaN for it.
  void active_if(const class KnobHandle& knob, const IntExpr& condition);
  // Ends declaring: builds the trees. InvalidConfig when no config is valid or the default is not; names the
  // constraint.
  Status seal();

  // --- after seal() ---
  const std::vector<KnobInfo>& knobs() const;
  uint64_t size() const;  // valid configs, exact (the product of knob sizes may be far beyond it)
  Config at(ConfigIndex index) const;
  // NotFound when the config is not valid here (names the knob or the constraint it breaks).
  Result<ConfigIndex> index_of(const Config& config) const;
  ConfigIndex sample(std::mt19937_64& rng) const;  // uniform over the valid configs
  // All valid configs that differ in exactly one knob.
  std::vector<ConfigIndex> neighbours(ConfigIndex index) const;
  // A valid config near the knob-wise mix of two (crossover): takes each knob from a or b, repaired to be
  // valid.
  ConfigIndex crossover(ConfigIndex a, ConfigIndex b, std::mt19937_64& rng) const;
  // One knob moved at random; for ordered and split knobs mostly to a nearby candidate. Never returns `index`
  // unless the space has one config.
  ConfigIndex mutate(ConfigIndex index, std::mt19937_64& rng) const;
  ConfigIndex default_index() const;  // every knob at `first`, which seal() checked
  // False when the knob's condition (active_if) does not hold in `config`.
  bool is_active(const Config& config, std::string_view knob) const;
  // For the cost model: log2 of ordered and split values, one-hot of categorical ones, of a permutation the
  // position of each item; NaN of knobs that are not active. Same length for all configs.
  std::vector<float> features(const Config& config) const;
  std::vector<std::string> feature_names() const;
  // "order=oc_outer tile_m=8 unroll=yes": like Config::to_text(), with labels in place of positions and
  // yes/no for flags, a permutation as "order=oc,oh,ow".
  std::string describe(const Config& config) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tuner
