// ConfigSpace: the knobs of one template for one task, the constraints between them, and exactly the configs
// that satisfy them. These are counted, indexed and sampled without ever listing the product of all knobs.
//
// A knob has a finite list of candidate values. A constraint is an integer expression over knob values: data,
// not code. Knobs without a common constraint are independent. Each group of knobs tied by constraints
// becomes a diagram of its valid prefixes, pruned as early as interval bounds of the partially assigned
// constraint allow. The space is the product of the groups.
//
//   SplitKnob m = space.split("tile_m", w.m).at_most(16).try_first(8);
//   FlagKnob pack_a = space.flag("pack_a").try_first(false);
//   space.require(m.inner() * n.inner() / lanes + n.inner() / lanes + 1 <= registers);
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner {

// The value of a split knob: `inner` is the factor, `outer` the number of blocks that cover the axis.
struct SplitFactors {
  int64_t inner = 1, outer = 1;
};

// Knob name -> value, as stored everywhere. A value is an integer: a split's inner factor; 0 or 1 for a flag;
// the number itself for an ordered choice; the position in its list for a categorical knob
// (ConfigSpace::describe prints its name); the rank of a permutation among all orders of its items,
// lexicographically.
class Config {
 public:
  Config() = default;
  explicit Config(std::map<std::string, int64_t> values) : values_(std::move(values)) {}
  int64_t at(std::string_view knob) const;  // CHECKs that the knob is there
  // Read by handle, as templates do; a categorical knob gives the position in its list.
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
// Reads to_text() back. InvalidArgument names the word that is not name=integer, or the knob given twice.
Result<Config> config_from_text(std::string_view text);

// An integer expression over knob values, declared in knob.h.
class IntExpr;

enum class KnobKind : uint8_t { kOrdered, kSplit, kFlag, kCategorical, kPermutation };

struct KnobInfo {
  std::string name;
  KnobKind kind;
  std::vector<int64_t> candidates;  // ascending for ordered and split knobs
  std::vector<std::string> labels;  // categorical: one name per candidate; permutation: its items
  int64_t extent = 0;               // split: extent of the axis
  int64_t first = 0;                // value to try first
};

// Position of a config among the valid ones, 0..size()-1.
using ConfigIndex = uint64_t;

// The interface that a search sees; knob.h has knob handles, IntExpr and the declaring side. After seal() the
// space never changes, and any thread may read it. Passing an index or a config of another space is our bug
// (CHECK), except where a Result is returned.
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
  // Declares an order of 1 to 7 items, such as loops: n! candidates.
  class PermutationBuilder permutation(std::string name, std::vector<std::string> items);
  void require(IntExpr constraint);
  // Says that the knob only matters where `condition`, an expression over other knobs, holds. Elsewhere it
  // has its first value, so that no config counts twice; describe() leaves it out, and features() gives NaN
  // for it.
  void active_if(const class KnobHandle& knob, const IntExpr& condition);
  // Ends the declaration and builds the diagrams. InvalidConfig names the constraint: no config is valid, or
  // the default is not.
  Status seal();

  // --- after seal() ---
  const std::vector<KnobInfo>& knobs() const;
  uint64_t size() const;  // exact number of valid configs (the product of knob sizes may be far larger)
  Config at(ConfigIndex index) const;
  // NotFound if the config is not valid here; names the knob or the constraint it violates.
  Result<ConfigIndex> index_of(const Config& config) const;
  ConfigIndex sample(std::mt19937_64& rng) const;  // uniform over the valid configs
  // Returns all valid configs that differ in exactly one knob.
  std::vector<ConfigIndex> neighbours(ConfigIndex index) const;
  // Returns a valid config near the knob-wise mix of two (crossover): takes each knob from a or b, and
  // repairs the result.
  ConfigIndex crossover(ConfigIndex a, ConfigIndex b, std::mt19937_64& rng) const;
  // Returns a config with one knob moved at random, for ordered and split knobs mostly to a nearby candidate.
  // Never returns `index`, unless the space has one config.
  ConfigIndex mutate(ConfigIndex index, std::mt19937_64& rng) const;
  ConfigIndex first_index() const;  // the config with every knob at `first`, which seal() checked
  // The config to use before anything is measured: what choose_default() gives, else the first one.
  ConfigIndex default_index() const;
  // Sets who is asked for the default, once and when it is first needed, by any thread. An answer that is not
  // valid here counts as none.
  void choose_default(std::function<std::optional<Config>(const ConfigSpace&)> choose);
  // False if the knob's condition (active_if) does not hold in `config`.
  bool is_active(const Config& config, std::string_view knob) const;
  // Returns features for the cost model: log2 of ordered and split values, one-hot of categorical ones, the
  // position of each item of a permutation; NaN for inactive knobs. All configs give the same length.
  std::vector<float> features(const Config& config) const;
  std::vector<std::string> feature_names() const;
  // Returns "order=oc_outer tile_m=8 unroll=yes": like Config::to_text(), but with labels instead of
  // positions, yes/no for flags, and a permutation as "order=oc,oh,ow".
  std::string describe(const Config& config) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tuner
