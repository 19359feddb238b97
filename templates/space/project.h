// Moves a config into another shape's space.
#pragma once

#include <optional>

#include "templates/space/config_space.h"

namespace tuner {

// Returns the valid config of `space` nearest to `wanted`, a config of the same template for another task. If
// `wanted` is valid, it is returned. Distance counts doublings of ordered knobs and tiles, and 2 for each
// other knob that differs. Returns nothing if the knobs are not those of `space`.
std::optional<Config> project(const Config& wanted, const ConfigSpace& space);

// That distance between two configs that have the knobs of `space`.
double distance_between(const Config& a, const Config& b, const ConfigSpace& space);

}  // namespace tuner
