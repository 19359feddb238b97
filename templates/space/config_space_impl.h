// The content of a ConfigSpace. Private to config_space.cpp and config_moves.cpp.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "templates/space/decision_diagram.h"
#include "templates/space/knob.h"

namespace tuner {

struct ConfigSpace::Impl {
  std::deque<KnobSpec> specs;  // builders keep references into it during the declaration
  std::vector<IntExpr> constraints;
  std::map<int, IntExpr> conditions;  // conditions of knobs that are not always active, by position
  bool sealed = false;

  // Filled by seal(). A *choice* is a position in a knob's candidates; vectors of choices have one per knob.
  std::vector<KnobInfo> knobs;
  std::map<std::string, int> position_of;
  std::vector<DecisionDiagram> groups;
  std::vector<size_t> group_of;   // group of each knob
  std::vector<uint64_t> strides;  // index = sum over groups of (index within the group) * stride
  uint64_t total = 0;
  ConfigIndex first_index = 0;
  std::function<std::optional<Config>(const ConfigSpace&)> choose_default;
  mutable std::once_flag default_is_chosen;
  mutable ConfigIndex default_index = 0;  // after that

  KnobSpec& add(std::string name, KnobKind kind);
  const Impl& ready() const {
    CHECK(sealed) << "a config space is used before seal()";
    return *this;
  }
  std::vector<int> choices_at(ConfigIndex index) const;
  std::vector<int64_t> values_of(const Config& config) const;  // by knob position
  bool is_active(size_t knob, const std::vector<int64_t>& values) const;
  bool find_index(const std::vector<int>& choices, ConfigIndex& index) const;
};

}  // namespace tuner
