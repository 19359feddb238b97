// A config of one shape's space, moved into another's.
#pragma once

#include <optional>

#include "templates/space/config_space.h"

namespace tuner {

// The valid config of `space` nearest to `wanted`, a config of the same template for another task: itself
// where it is valid. Distance: doublings of ordered knobs and tiles, 2 for each other knob that differs.
// Nothing when the knobs are not those of `space`.
std::optional<Config> project(const Config& wanted, const ConfigSpace& space);

}  // namespace tuner
